"""Unfinished requests in a JOBDIR, so that a killed crawl can continue.

Scrapy's request queue in a JOBDIR writes its index only when it is closed. After `kill -9` the
queue is lost while the seen fingerprints are not: the next run filters every request of the lost
queue, fetches the first page and finishes. So this module also keeps each new request, in an SQLite
table, until Scrapy has finished with it, including its callback and items.

- After a run that was killed, Scrapy's queue is moved to another name and the pending requests are
  scheduled again.
- Requests of a queue that was filled without this table, such as that of Scrapy's own filter, are
  first copied into the table.
- A run that ends normally marks its end, unless it failed to schedule all pending requests. Then
  the mark of the run before stays, and the next run starts as this one did.

A request is finished when the scheduler has handed it out and the engine no longer lists it as in
progress: fetched, answered by a cache, or refused. A request that never gets there stays in the
table, also when the crawl is finished. The next run that finds Scrapy's queue empty schedules it,
and at worst fetches it again.

Invariants:

- A request is in the table before the snapshot log or a server has its fingerprint, and is on the
  disk when `sync` returns.
- Before a server is asked to add a request, the table has it as an intent, which is withdrawn if
  another spider was first. A kill leaves one intent at most; the next run fetches it, at worst for
  the second time.
- A request is removed after all requests of its callback were added.
- The mark of a run's start is on the disk before anything leaves Scrapy's queue, and that queue
  before the mark of its end.

Cost: for each new request one `pickle` and two short transactions, together some 30 µs, and as much
disk as Scrapy's own queue. Only `sync` and SQLite's checkpoints wait for the disk.

Limits: as in Scrapy's queue, requests that cannot be pickled (a lambda as callback) are not kept,
and the JOBDIR must be trusted like code because `pickle` reads it. If the disk is full, new
requests are not kept and the crawl continues; a run whose start cannot be marked is closed.
"""

import logging
import os
import pickle
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import CallLaterOnce
from scrapy.utils.request import request_from_dict

from petal.scrapy import sqlite
from petal.scrapy.reporter import Reporter
from petal.scrapy.snapshot_log import JobDir, sync

FILE_NAME = "pending.sqlite3"
# States of a run, in the table's `user_version`.
_STARTED, _CLOSED = 1, 2
# Rows that are read at once.
READ_BATCH = 500
# The key in `Request.meta` of the fingerprint that a request is stored under. Retries inherit it:
# their own fingerprint may differ, because middlewares change headers.
FINGERPRINT_KEY = "petal_fingerprint"
# The `finish_reason` of a spider whose start could not be marked.
NOT_STARTED = "petal_dupefilter_not_started"


class Intent(Enum):
    """The result of `PendingRequests.add_intent`."""

    ADDED = auto()
    # An earlier run has added it, or this one before the filter's window ended.
    ALREADY_PENDING = auto()
    # The request cannot be pickled, or cannot be written to the disk.
    NOT_ADDED = auto()


class PendingRequests:
    """The table of one crawler."""

    def __init__(self, jobdir: JobDir) -> None:
        """Opens the table. If the last run was killed, moves Scrapy's queue to another name.

        This must be done before the scheduler opens the queue, which fails if its index is missing.
        Raises the errors of `sqlite.connect`.
        """
        self._queue = jobdir.path / "requests.queue"
        self._database = sqlite.connect(
            jobdir.folder / FILE_NAME,
            "CREATE TABLE IF NOT EXISTS pending"
            " (id INTEGER PRIMARY KEY, fingerprint BLOB UNIQUE, request BLOB)",
        )
        (state,) = self._database.execute("PRAGMA user_version").fetchone()
        self._was_killed: bool = state == _STARTED
        self._is_new: bool = state not in (_STARTED, _CLOSED)
        if self._was_killed and self._queue.exists():
            self._move_queue()
        # The request that is being scheduled again, which the filter must not filter.
        self.rescheduling: Request | None = None
        self._slot: Any = None
        self._closing = CallLaterOnce(self._close_spider)
        # Whether all pending requests of earlier runs were scheduled.
        self._is_running = False
        # Requests in progress, with the fingerprints that they are stored under.
        self._in_progress: dict[Request, bytes] = {}
        # Repetitions, such as retries, that are scheduled: only the last of them ends a request.
        self._repeats: Counter[bytes] = Counter()

    def _move_queue(self) -> None:
        """Replaces the queue of an earlier kill, unless the present one is empty."""
        target = self._queue.with_name("requests.queue.killed")
        files = (path for path in self._queue.rglob("*") if path.is_file())
        # A start that failed leaves an index without queues.
        is_empty = all(path.name == "active.json" for path in files)
        shutil.rmtree(self._queue if is_empty else target, ignore_errors=True)
        if not is_empty:
            self._queue.rename(target)

    def start(
        self, crawler: Crawler, fingerprint: Callable[[Request], bytes], reporter: Reporter
    ) -> None:
        """Connects to the signals; when the spider is opened, the run is marked as started."""
        self._crawler, self._fingerprint, self._reporter = crawler, fingerprint, reporter
        crawler.signals.connect(self._request_scheduled, signals.request_scheduled)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)

    # ---- The table -------------------------------------------------------------------------------

    def add(self, fingerprint: bytes, request: Request) -> bool:
        """Stores a request. Returns false if it cannot be pickled or written."""
        data = self._pickle(request)
        return data is not None and self._execute(
            "INSERT OR REPLACE INTO pending (fingerprint, request) VALUES (?, ?)",
            (fingerprint, data),
        )

    def add_intent(self, fingerprint: bytes, request: Request) -> Intent:
        """Stores a request that may turn out not to be new."""
        data = self._pickle(request)
        if data is None:
            return Intent.NOT_ADDED
        statement = "INSERT OR IGNORE INTO pending (fingerprint, request) VALUES (?, ?)"
        before = self._database.total_changes
        if not self._execute(statement, (fingerprint, data)):
            return Intent.NOT_ADDED
        added = self._database.total_changes > before
        return Intent.ADDED if added else Intent.ALREADY_PENDING

    def withdraw(self, fingerprint: bytes) -> None:
        """Removes an intent that was `ADDED`, because the request is not new."""
        self._execute("DELETE FROM pending WHERE fingerprint = ?", (fingerprint,))

    def _pickle(self, request: Request) -> bytes | None:
        try:
            # Callbacks are stored by name, as in Scrapy's queue.
            return pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            self._reporter.count("not_pickled")
            return None

    def sync(self) -> bool:
        """Waits until all requests are on the disk. Returns false if that fails."""
        return self._execute("PRAGMA wal_checkpoint(PASSIVE)", ())

    def _execute(self, statement: str, values: tuple[bytes, ...]) -> bool:
        """Runs a statement. Reports a failure and returns false: the crawl continues."""
        try:
            self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            message = (
                "Duplicate filter cannot store pending requests in JOBDIR (%s): if this run is"
                " killed, the next one may miss some of them or fetch some again"
            )
            self._reporter.count_error("pending_errors", message, error)
            return False
        return True

    def _count_rows(self) -> int:
        (rows,) = self._database.execute("SELECT count(*) FROM pending").fetchone()
        return int(rows)

    # ---- Start of a run --------------------------------------------------------------------------

    def _spider_opened(self) -> None:
        """Schedules the pending requests. The spider is open and has fetched nothing."""
        # Scrapy only logs an exception of a signal handler.
        try:
            self._start_run()
        except Exception as error:
            message = (
                "Duplicate filter cannot schedule the pending requests of JOBDIR (%s: %s): those"
                " that are not scheduled stay there for the next run"
            )
            self._reporter.log(logging.ERROR, message, type(error).__name__, error)
            self._reporter.count("pending_errors")

    def _start_run(self) -> None:
        engine = self._crawler.engine
        # Named `slot` in Scrapy before 2.13.
        self._slot = getattr(engine, "_slot", None) or getattr(engine, "slot", None)
        scheduler = self._slot.scheduler
        self._scheduler_next: Callable[[], Request | None] = scheduler.next_request
        # No signal is sent for all requests that are handed out, such as those in a cache.
        scheduler.next_request = self._next_request
        if not (self._execute(f"PRAGMA user_version = {_STARTED}", ()) and self.sync()):
            # With the old mark, the next run would take a damaged queue for a complete one.
            scheduler.next_request = self._no_request
            message = (
                "Duplicate filter cannot mark the start of this run in JOBDIR: the spider is closed"
                " before it fetches anything; free some disk space and start it again"
            )
            self._reporter.log(logging.ERROR, message)
            return
        if self._is_new:
            self._import_queue()
        elif self._was_killed or not scheduler.has_pending_requests():
            if number := self._count_rows():
                # Logged before, because millions of requests take minutes.
                message = "Scheduling %d unfinished requests of the last run first"
                self._reporter.log(logging.INFO, message, number)
                self._reporter.set_stats({"rescheduled": self._reschedule_all()})
        # Imported requests are no longer in a complete queue.
        self.sync()
        self._is_running = True

    def _reschedule_all(self) -> int:
        """Schedules all requests of the table and returns their number."""
        last, number = 0, 0
        # A request that the filter does not have is added again, after `end`.
        (end,) = self._database.execute("SELECT ifnull(max(id), 0) FROM pending").fetchone()
        rows = "SELECT id, request FROM pending WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        while found := self._database.execute(rows, (last, end, READ_BATCH)).fetchall():
            last = found[-1][0]
            for _, data in found:
                number += self._reschedule_pickled(data)
        return number

    def _reschedule_pickled(self, data: bytes) -> bool:
        """Schedules a request, and returns false if that is impossible for this request.

        Raises the errors of the disk, which would stop all other requests too.
        """
        try:
            # Fails if the spider no longer has the callback, or a class was moved.
            request = request_from_dict(pickle.loads(data), spider=self._crawler.spider)
        except Exception as error:
            return self._report_not_restored(error)
        try:
            self._reschedule(request)
        except (OSError, sqlite3.Error):
            raise
        except Exception as error:
            # For example a priority that is no number.
            return self._report_not_restored(error)
        return True

    def _report_not_restored(self, error: Exception) -> bool:
        message = (
            "Duplicate filter cannot restore a pending request (%s: %s); the stat"
            " petal/dupefilter/not_restored counts these requests, which stay in JOBDIR"
        )
        self._reporter.count_error("not_restored", message, type(error).__name__, error)
        return False

    def _reschedule(self, request: Request) -> None:
        engine = self._crawler.engine
        assert engine is not None
        self.rescheduling = request
        try:
            engine.crawl(request)
        finally:
            self.rescheduling = None

    def _import_queue(self) -> None:
        """Stores the requests of a queue that was filled without this table, and requeues them."""
        others = []
        while (request := self._scheduler_next()) is not None:
            if request.dont_filter or not self.add(self._fingerprint(request), request):
                others.append(request)
        if number := self._count_rows() + len(others):
            message = "Duplicate filter keeps %d requests of an existing queue"
            self._reporter.log(logging.INFO, message, number)
        self._reschedule_all()
        for request in others:
            self._reschedule(request)

    # ---- During a run ----------------------------------------------------------------------------

    def _request_scheduled(self, request: Request) -> None:
        if request.dont_filter and (stored := self._stored_under(request)) is not None:
            self._repeats[stored] += 1

    def _stored_under(self, request: Request) -> bytes | None:
        """The fingerprint that a request is stored under; `None` if it is not stored.

        A request with `dont_filter` is stored only if it repeats another one, from which it has
        inherited the fingerprint. Its own fingerprint may be that of a request that still waits.
        """
        if not request.dont_filter:
            return self._fingerprint(request)
        inherited = request.meta.get(FINGERPRINT_KEY)
        return None if inherited is None else bytes.fromhex(inherited)

    def _next_request(self) -> Request | None:
        """Replaces the scheduler's `next_request`."""
        self._remove_finished()
        request = self._scheduler_next()
        if request is not None and (stored := self._stored_under(request)) is not None:
            self._in_progress[request] = stored
            request.meta[FINGERPRINT_KEY] = stored.hex()
        return request

    def _no_request(self) -> None:
        """Replaces the scheduler's `next_request` in a run that must not start."""
        # Delayed, because the engine still uses what closing removes.
        self._closing.schedule()

    def _close_spider(self) -> None:
        engine: Any = self._crawler.engine
        if self._slot.closing is not None:
            return
        # Scrapy before 2.14 has only `close_spider`.
        if hasattr(engine, "close_spider_async"):
            deferred_from_coro(engine.close_spider_async(reason=NOT_STARTED))
        else:
            engine.close_spider(self._crawler.spider, NOT_STARTED)

    def _remove_finished(self) -> None:
        # The engine lists a request as in progress before it takes the next one.
        for request in self._in_progress.keys() - self._slot.inprogress:
            self._remove(self._in_progress.pop(request))

    def _remove(self, fingerprint: bytes) -> None:
        repeats = self._repeats.pop(fingerprint, 0)
        if repeats == 0:
            self._execute("DELETE FROM pending WHERE fingerprint = ?", (fingerprint,))
        elif repeats > 1:
            self._repeats[fingerprint] = repeats - 1

    # ---- End of a run ----------------------------------------------------------------------------

    def mark_closed(self) -> None:
        """Marks the normal end of a run: unfinished requests are in Scrapy's queue."""
        if self._slot is not None:
            self._remove_finished()
        if self._is_running:
            self._sync_queue()
            self._database.execute(f"PRAGMA user_version = {_CLOSED}")

    def close(self) -> None:
        """Closes the table."""
        self._database.close()

    def _sync_queue(self) -> None:
        """Waits until Scrapy's queue is on the disk; Scrapy itself does not."""
        for folder, _, names in os.walk(self._queue):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
        sync(self._queue.parent)
