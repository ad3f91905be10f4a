"""Requests that were let through and are not done: with them a crawl that was killed goes on.

Scrapy's own queue in a JOBDIR tells what is in it only when it is closed. After `kill -9` it is
lost, while what was seen is not, and the next run holds back all that the queue had: it fetches the
first page and calls itself finished. So what is let through is kept here too, in a table of
SQLite, until Scrapy is done with it, its callback and items included. After a run that was not
closed, Scrapy's queue is moved aside and the crawl is given these requests anew. What a queue has
that no table knows of, such as that of Scrapy's own filter, is taken into the table first. A run
that ends as it should marks its end, unless it never had all of its requests: then the mark of the
run before it stays, and the next one begins as this one did.

Scrapy is done with a request that its scheduler handed out and that is no longer under way in the
engine, however it ended: fetched, from a cache, refused. A request that never comes to that end
stays here, also when the crawl is finished: the next run that finds Scrapy's queue empty is given
it, and it is at worst fetched again.

Invariants: a request is here before the journal or a server knows it as seen, and is durable here
before `sync` is back. Before a server is asked to mark a request, only an intent is here: it is
withdrawn if another spider was first. At a kill at most one request is an intent, and the next run
fetches it, which at worst is once more. It leaves after all that its callback asked for is here. The mark of a run's begin
is durable before anything leaves Scrapy's queue, and that queue before the mark of its end.

Cost: for each request that is new one `pickle` and two short transactions, some 30 µs in all; disk
as Scrapy's own queue takes. The disk is waited for in `sync` only, and where SQLite cleans up its
log.

Limits, as of Scrapy's queue: a request that cannot be pickled, such as one with a lambda for a
callback, is not kept, and a JOBDIR must be trusted like code, for `pickle` reads it. A disk that is
full keeps no more; the crawl goes on without, but none begins whose begin cannot be marked.
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

from petal.scrapy import base
from petal.scrapy.journal import JobDir, sync
from petal.scrapy.teller import Teller

TABLE = "pending.sqlite3"
_BEGUN, _CLOSED = 1, 2
# Requests that are read at once.
SLICE = 500
# In the `meta` of what was handed out, where what repeats it inherits it: the fingerprint that it
# is kept by. Middlewares may since have changed what fingerprints are made of, such as headers.
KEPT_BY = "petal_kept_by"
# Why a spider was closed whose begin could not be marked.
NOT_BEGUN = "petal_dupefilter_not_begun"


class Intent(Enum):
    """What became of a request that is kept before it is known to be new."""

    KEPT = auto()
    # An earlier run let it through, or this one before the filter forgot it.
    WAS_KEPT = auto()
    # It cannot be pickled, or the disk does not take it.
    NOT_KEPT = auto()


class Pending:
    """The table of one crawler."""

    def __init__(self, jobdir: JobDir) -> None:
        """Finds out how the last run ended; of one that was killed, moves Scrapy's queue aside.

        Now, for the scheduler opens it next, and stumbles over what it was not told. Raises as
        `base.opened`.
        """
        self._queue = jobdir.path / "requests.queue"
        self._base = base.opened(
            jobdir.folder / TABLE,
            "CREATE TABLE IF NOT EXISTS pending"
            " (id INTEGER PRIMARY KEY, fingerprint BLOB UNIQUE, request BLOB)",
        )
        (state,) = self._base.execute("PRAGMA user_version").fetchone()
        self._was_killed: bool = state == _BEGUN
        self._is_new: bool = state not in (_BEGUN, _CLOSED)
        if self._was_killed and self._queue.exists():
            self._move_aside()
        # The one that is just given back, which the filter must not hold back.
        self.given_back: Request | None = None
        self._slot: Any = None
        self._closing = CallLaterOnce(self._close_spider)
        # Whether this run has all requests of those before it.
        self._is_going = False
        # What the scheduler handed out and was not seen to be done, and what it is kept by.
        self._handed_out: dict[Request, bytes] = {}
        # Requests that came again past the filter, such as retries: done is only the last of them.
        self._again: Counter[bytes] = Counter()

    def _move_aside(self) -> None:
        """What an earlier kill left goes, unless nothing comes in its place."""
        aside = self._queue.with_name("requests.queue.killed")
        files = (path for path in self._queue.rglob("*") if path.is_file())
        # A start that failed leaves a list of its queues, and none of them.
        is_empty = all(path.name == "active.json" for path in files)
        shutil.rmtree(self._queue if is_empty else aside, ignore_errors=True)
        if not is_empty:
            self._queue.rename(aside)

    def begin(
        self, crawler: Crawler, fingerprint: Callable[[Request], bytes], teller: Teller
    ) -> None:
        """Waits for the spider to be opened; from then on a run that is not closed was killed."""
        self._crawler, self._fingerprint, self._teller = crawler, fingerprint, teller
        crawler.signals.connect(self._came, signals.request_scheduled)
        crawler.signals.connect(self._opened, signals.spider_opened)

    def add(self, fingerprint: bytes, request: Request) -> bool:
        """Keeps a request, if it can be."""
        data = self._pickled(request)
        return data is not None and self._change(
            "INSERT OR REPLACE INTO pending (fingerprint, request) VALUES (?, ?)",
            (fingerprint, data),
        )

    def intend(self, fingerprint: bytes, request: Request) -> Intent:
        """Keeps a request that may turn out not to be new, unless it is kept already."""
        data = self._pickled(request)
        if data is None:
            return Intent.NOT_KEPT
        words = "INSERT OR IGNORE INTO pending (fingerprint, request) VALUES (?, ?)"
        before = self._base.total_changes
        if not self._change(words, (fingerprint, data)):
            return Intent.NOT_KEPT
        return Intent.KEPT if self._base.total_changes > before else Intent.WAS_KEPT

    def withdraw(self, fingerprint: bytes) -> None:
        """Drops an intent that was `KEPT`: the request is not new."""
        self._change("DELETE FROM pending WHERE fingerprint = ?", (fingerprint,))

    def _pickled(self, request: Request) -> bytes | None:
        try:
            # What the request refers to is looked up by name, as Scrapy's queue does.
            return pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            self._teller.count("not_pickled")
            return None

    def sync(self) -> bool:
        """Waits until all that was added is on the disk, if the disk takes it."""
        return self._change("PRAGMA wal_checkpoint(PASSIVE)", ())

    def _change(self, words: str, values: tuple[bytes, ...]) -> bool:
        """Whether the disk took it. The crawl goes on without: only a kill makes a difference."""
        try:
            self._base.execute(words, values).fetchall()
        except sqlite3.Error as error:
            told = (
                "Duplicate filter cannot keep pending requests in JOBDIR (%s): if this run is"
                " killed, the next may not know of some, or fetch some again"
            )
            self._teller.trouble("pending_errors", told, error)
            return False
        return True

    def _opened(self) -> None:
        """The spider is open, and nothing was handed out yet."""
        # Scrapy logs what a handler of its signals raises, and crawls on.
        try:
            self._go()
        except Exception as error:
            words = (
                "Duplicate filter cannot schedule the pending requests of JOBDIR (%s: %s): what is"
                " not scheduled now stays there for the next run"
            )
            self._teller.line(logging.ERROR, words, type(error).__name__, error)
            self._teller.count("pending_errors")

    def _go(self) -> None:
        engine = self._crawler.engine
        # Scrapy below 2.13 calls it `slot`.
        self._slot = getattr(engine, "_slot", None) or getattr(engine, "slot", None)
        scheduler = self._slot.scheduler
        self._next: Callable[[], Request | None] = scheduler.next_request
        # No signal tells of all requests that are handed out, such as those that a cache answers.
        scheduler.next_request = self._hand_out
        if not (self._change(f"PRAGMA user_version = {_BEGUN}", ()) and self.sync()):
            # Under the old mark a kill would leave a torn queue that is taken for a whole one.
            scheduler.next_request = self._hand_out_nothing
            words = (
                "Duplicate filter cannot mark in JOBDIR that this run has begun: the spider is"
                " closed before anything is fetched; make room on its disk, and start it again"
            )
            self._teller.line(logging.ERROR, words)
            return
        if self._is_new:
            self._take_over()
        elif self._was_killed or not scheduler.has_pending_requests():
            if number := self._rows():
                # Before: of millions it takes minutes, in which nothing else is done.
                words = "%d requests that the last run had not done are scheduled anew first"
                self._teller.line(logging.INFO, words, number)
                self._teller.facts({"given_back": self._give_back()})
        # What was taken over is no longer in a queue that is whole.
        self.sync()
        self._is_going = True

    def _came(self, request: Request) -> None:
        if request.dont_filter and (kept_by := self._kept_by(request)) is not None:
            self._again[kept_by] += 1

    def _kept_by(self, request: Request) -> bytes | None:
        """`None` where nothing is kept by it: past the filter only what inherits repeats a request
        that is kept; another may be of a page that still waits."""
        if not request.dont_filter:
            return self._fingerprint(request)
        inherited = request.meta.get(KEPT_BY)
        return None if inherited is None else bytes.fromhex(inherited)

    def _hand_out(self) -> Request | None:
        """In the place of the scheduler's `next_request`."""
        self._drop_done()
        request = self._next()
        if request is not None and (kept_by := self._kept_by(request)) is not None:
            self._handed_out[request] = kept_by
            request.meta[KEPT_BY] = kept_by.hex()
        return request

    def _hand_out_nothing(self) -> None:
        """Likewise, in a run that must not begin."""
        # Not now: the engine goes on with what its closing takes away.
        self._closing.schedule()

    def _close_spider(self) -> None:
        engine: Any = self._crawler.engine
        if self._slot.closing is not None:
            return
        # Scrapy below 2.14 has the other one.
        if hasattr(engine, "close_spider_async"):
            deferred_from_coro(engine.close_spider_async(reason=NOT_BEGUN))
        else:
            engine.close_spider(self._crawler.spider, NOT_BEGUN)

    def _drop_done(self) -> None:
        # The engine has what was handed out under way before it asks for the next.
        for request in self._handed_out.keys() - self._slot.inprogress:
            self._drop(self._handed_out.pop(request))

    def _drop(self, fingerprint: bytes) -> None:
        again = self._again.pop(fingerprint, 0)
        if again == 0:
            self._change("DELETE FROM pending WHERE fingerprint = ?", (fingerprint,))
        elif again > 1:
            self._again[fingerprint] = again - 1

    def _give_back(self) -> int:
        """Schedules all requests that are kept; their number."""
        last, number = 0, 0
        # What the filter does not know is added once more, behind the end.
        (end,) = self._base.execute("SELECT ifnull(max(id), 0) FROM pending").fetchone()
        rows = "SELECT id, request FROM pending WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        while found := self._base.execute(rows, (last, end, SLICE)).fetchall():
            last = found[-1][0]
            for _, data in found:
                number += self._restore(data)
        return number

    def _restore(self, data: bytes) -> bool:
        """Schedules a request, if it can be. Raises what a disk does that takes no other either."""
        try:
            # Such as a callback that the spider no longer has, or a class that moved.
            kept = request_from_dict(pickle.loads(data), spider=self._crawler.spider)
        except Exception as error:
            return self._not_restored(error)
        try:
            self._crawl(kept)
        except (OSError, sqlite3.Error):
            raise
        except Exception as error:
            # Such as a priority that is no number: the others must not wait for it.
            return self._not_restored(error)
        return True

    def _not_restored(self, error: Exception) -> bool:
        words = (
            "Duplicate filter cannot restore a pending request (%s: %s); the stat"
            " petal/dupefilter/not_restored counts all of them, which stay in JOBDIR"
        )
        self._teller.trouble("not_restored", words, type(error).__name__, error)
        return False

    def _crawl(self, request: Request) -> None:
        engine = self._crawler.engine
        assert engine is not None
        self.given_back = request
        try:
            engine.crawl(request)
        finally:
            self.given_back = None

    def _take_over(self) -> None:
        """Keeps what is in a queue that was filled without this table, and queues it anew."""
        others = []
        while (request := self._next()) is not None:
            if request.dont_filter or not self.add(self._fingerprint(request), request):
                others.append(request)
        if number := self._rows() + len(others):
            words = "Duplicate filter keeps the %d requests of a queue that was there before it"
            self._teller.line(logging.INFO, words, number)
        self._give_back()
        for request in others:
            self._crawl(request)

    def _rows(self) -> int:
        (rows,) = self._base.execute("SELECT count(*) FROM pending").fetchone()
        return int(rows)

    def close(self) -> None:
        """A run ends as it should: what is left is in Scrapy's queue, or has come to no end."""
        if self._slot is not None:
            self._drop_done()
        if self._is_going:
            self._sync_queue()
            self._base.execute(f"PRAGMA user_version = {_CLOSED}")

    def let_go(self) -> None:
        """Of the file."""
        self._base.close()

    def _sync_queue(self) -> None:
        """Waits until Scrapy's queue is on the disk, which Scrapy does not."""
        for folder, _, names in os.walk(self._queue):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
        sync(self._queue.parent)
