"""A filter in this process, with an optional table of exact fingerprints and an optional JOBDIR.

There are three modes:

- default: the filter looks up and adds the fingerprint in one step;
- exact: a fingerprint that the filter reports as seen is looked up on disk, and the request is new
  if it is not there;
- window: a request is filtered for a period of time and then is new again. Only new requests are
  added: otherwise each duplicate would prolong the period, and a page that is linked everywhere
  would never be fetched again.

The snapshot log gets each new request before `seen` returns.

If the disk is full or broken, pages may be fetched twice, and none is lost: a request that is new
to the filter is reported as new, even if it cannot be written.
"""

import logging
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from scrapy import Request

import petal
from petal.scrapy.config import PREFIX, Config, naming_settings
from petal.scrapy.exact import FingerprintTable
from petal.scrapy.pending import PendingRequests
from petal.scrapy.reporter import Reporter
from petal.scrapy.snapshot_log import JobDir, SnapshotLog, read_records

# Records that are added to the filter in one batch.
REPLAY_BATCH = 65_536
# Bytes of the time, in seconds since 1970, before a fingerprint in the log of a window.
TIME_SIZE = 8
# New requests between two checks. Each check syncs the log, which takes milliseconds; after a power
# cut the requests since the last sync may be fetched again.
CHECK_INTERVAL = 1000
# Seconds until a failed snapshot is tried again; the pause doubles with each failure, because a
# snapshot may write the whole filter.
MIN_PAUSE, MAX_PAUSE = 60.0, 3600.0


class LocalFilter:
    """The filter of one process. `seen(fingerprint, request)` looks up and adds a request."""

    def __init__(
        self,
        config: Config,
        reporter: Reporter,
        pending: PendingRequests | None = None,
        jobdir: JobDir | None = None,
    ) -> None:
        """Creates the filter, or loads that of the JOBDIR.

        Raises `petal.IncompatibleError` if the JOBDIR has a filter with other settings,
        `petal.FormatError` if its files are damaged.
        """
        self._config = config
        self._reporter = reporter
        self._pending = pending
        self._snapshot_log = SnapshotLog(jobdir.folder) if jobdir is not None else None
        self._exact: FingerprintTable | None = None
        saved = self._snapshot_log.saved_settings if self._snapshot_log is not None else None
        if saved is not None:
            config.check_compatible(saved)
            self._warn_of_differences(saved)
        if config.exact:
            path = jobdir.folder / "exact.sqlite3" if jobdir is not None else None
            self._exact = FingerprintTable(path)
        if self._snapshot_log is None or jobdir is None:
            self._filter = _new_filter(config)
        elif saved is None:
            self._filter = self._create(self._snapshot_log, jobdir.path / "requests.seen")
        else:
            self._filter = self._resume(self._snapshot_log)
        self._add = self._filter.add
        # Requests in the filter at the last check, and new requests until the next check.
        self._inserted = self._until_check = 0
        # A fixed filter is full at its capacity. The others have no such number.
        self._alarm_at: float = self._filter.capacity if config.kind == "fixed" else math.inf
        # When a failed snapshot is tried again, and the pause after the next failure.
        self._retry_at = 0.0
        self._pause = MIN_PAUSE
        self._size = 0
        self._layers = 0
        self._check()
        self.seen: Callable[[bytes, Request], bool] = self._seen
        if config.window is not None:
            self.seen = self._seen_in_window
        elif self._exact is not None:
            self.seen = self._seen_exactly
        elif pending is None and self._snapshot_log is None:
            self.seen = self._seen_in_memory()

    # ---- Look-ups --------------------------------------------------------------------------------

    def _seen(self, fingerprint: bytes, request: Request) -> bool:
        if self._add(fingerprint):
            self._add_pending(fingerprint, request)
            self._record(fingerprint)
            return False
        return True

    def _seen_in_memory(self) -> Callable[[bytes, Request], bool]:
        """Returns the same function for a filter without a JOBDIR, with less work per call."""
        add, until_check = self._add, self._until_check

        def seen(fingerprint: bytes, _request: Request) -> bool:
            nonlocal until_check
            if add(fingerprint):
                until_check -= 1
                if until_check == 0:
                    self._check()
                    until_check = self._until_check
                return False
            return True

        return seen

    def _seen_exactly(self, fingerprint: bytes, request: Request) -> bool:
        assert self._exact is not None
        if not self._add(fingerprint):
            try:
                if fingerprint in self._exact:
                    return True
                self._reporter.count("false_positives")
            except sqlite3.Error as error:
                self._report_exact_error(error)
        # Before the table is written: it must not have a request that a kill would lose.
        self._add_pending(fingerprint, request)
        try:
            self._exact.add(fingerprint)
        except sqlite3.Error as error:
            self._report_exact_error(error)
        self._record(fingerprint)
        return False

    def _seen_in_window(self, fingerprint: bytes, request: Request) -> bool:
        now = int(time.time())
        self._advance_to(now)
        if fingerprint in self._filter:
            return True
        self._add(fingerprint)
        self._add_pending(fingerprint, request)
        self._record(now.to_bytes(TIME_SIZE, "big") + fingerprint)
        return False

    def _advance_to(self, now: int) -> None:
        """Sets the time of a filter that forgets."""
        if isinstance(self._filter, petal.WindowedBloomFilter):
            self._filter.advance_to(now)

    def _add_pending(self, fingerprint: bytes, request: Request) -> None:
        """Stores a new request, before any file on disk has its fingerprint."""
        if self._pending is not None:
            self._pending.add(fingerprint, request)

    def _record(self, record: bytes) -> None:
        """Logs a new request, which is already stored as pending."""
        if self._snapshot_log is not None:
            try:
                self._snapshot_log.write(record)
            except OSError as error:
                self._report_log_error(error)
        self._until_check -= 1
        if self._until_check == 0:
            self._check()

    # ---- Periodic checks -------------------------------------------------------------------------

    def _check(self) -> None:
        """Sets the stats, raises the alarm, and saves a snapshot if one is due."""
        self._inserted = self._filter.inserted
        if self._inserted >= self._alarm_at or self._is_window_overfull():
            self._raise_alarm()
        if self._filter.size_bytes != self._size:
            self._report_growth()
        if self._snapshot_log is not None:
            # First: a request in the log that is not pending would be lost.
            if self._pending is not None:
                self._pending.sync()
            due = self._snapshot_log.is_snapshot_due(self._filter.size_bytes)
            if due and time.monotonic() >= self._retry_at:
                self._try_save(self._snapshot_log)
            try:
                self._snapshot_log.sync()
            except OSError as error:
                self._report_log_error(error)
        self._reporter.set_stats(self.stats())
        # The next check of a window is when its newest part is full, at the latest.
        part = self._filter.capacity_left if self._config.window is not None else 0
        until_alarm = self._alarm_at - self._inserted
        self._until_check = max(1, int(min(until_alarm, CHECK_INTERVAL, part or CHECK_INTERVAL)))

    def _report_growth(self) -> None:
        """Logs a change of size. Called only after a change, because `info` reads the filter."""
        first, self._size = self._size == 0, self._filter.size_bytes
        self._layers = self._filter.info().get("layers", 1)
        if not first:
            message = "Duplicate filter grew to %d layers and %d bytes at %d requests"
            self._reporter.log(logging.INFO, message, self._layers, self._size, self._inserted)
        if (
            isinstance(self._filter, petal.ScalableBloomFilter)
            and not self._filter.keeps_fpr
            and self._exact is None
        ):
            message = (
                "Duplicate filter cannot keep its false-positive rate of %g: 64-bit hashes do not"
                f" reach it for %d requests. It grows on at a higher rate: raise {PREFIX}FPR, or set"
                f" {PREFIX}EXACT"
            )
            self._reporter.alarm(message, self._filter.target_fpr, self._inserted)

    def _is_window_overfull(self) -> bool:
        """Returns whether the newest part of a window has its share of the capacity."""
        return self._config.window is not None and self._filter.capacity_left == 0

    def _raise_alarm(self) -> None:
        self._alarm_at = math.inf
        if self._exact is not None:
            return
        if self._config.window is None:
            number = f"{self._inserted} requests"
            advice = f"larger, leave {PREFIX}GROW on, or set {PREFIX}EXACT"
        else:
            number, advice = "this part of the window has more requests than its share", "larger"
        message = (
            "Duplicate filter is full: %s, capacity %d, false-positive rate %g. More and more new"
            f" requests will be filtered by mistake: start over with {PREFIX}CAPACITY or"
            f" {PREFIX}MEMORY_LIMIT {advice}"
        )
        self._reporter.alarm(message, number, self._filter.capacity, self._filter.target_fpr)

    def stats(self) -> dict[str, object]:
        """Returns the stats by name. The cost does not depend on the size of the filter."""
        return {
            "kind": self._config.kind,
            "capacity": self._filter.capacity,
            "target_fpr": self._filter.target_fpr,
            "inserted": self._inserted,
            "bytes": self._filter.memory_bytes,
            "layers": self._layers,
        }

    # ---- JOBDIR ----------------------------------------------------------------------------------

    def _create(self, snapshot_log: SnapshotLog, requests_seen: Path) -> petal.Filter:
        """Creates a filter in a JOBDIR, with the fingerprints of Scrapy's own filter."""
        self._filter = _new_filter(self._config)
        if requests_seen.exists():
            if self._config.key_transform:
                raise petal.IncompatibleError(
                    f"{requests_seen}: the fingerprints of Scrapy's own filter are of URLs that were"
                    " not changed; use another JOBDIR, or remove the file to fetch all pages again"
                )
            now = int(time.time()).to_bytes(TIME_SIZE, "big") if self._config.window else b""
            number = self._replay(now + record for record in read_records(requests_seen))
            self._reporter.set_stats({"imported": number})
            message = "Duplicate filter imported %d requests from %s"
            self._reporter.log(logging.INFO, message, number, requests_seen)
        self._commit_exact()
        snapshot_log.create(self._config.to_saved(), self._filter.save)
        return self._filter

    def _resume(self, snapshot_log: SnapshotLog) -> petal.Filter:
        """Loads the filter of a JOBDIR and adds the records of its log."""
        path = snapshot_log.snapshot()
        try:
            self._filter = petal.load(path)
        except petal.PetalError as error:
            raise petal.FormatError(
                f"{error}; restore it, or remove {path.parent} to start over"
            ) from None
        replayed = self._replay(snapshot_log.records())
        self._save(snapshot_log)
        self._reporter.set_stats({"replayed": replayed})
        message = "Duplicate filter resumed: %d requests, %d of them from the log of a killed run"
        self._reporter.log(logging.INFO, message, self._filter.inserted, replayed)
        return self._filter

    def _warn_of_differences(self, saved: dict[str, Any]) -> None:
        """Warns if the filter of the JOBDIR has another size than the settings."""
        if different := self._config.differences(saved):
            old, new = different
            message = (
                "Duplicate filter in JOBDIR keeps its size: capacity %s, fpr %s, memory limit %s;"
                " the settings have %s, %s, %s"
            )
            self._reporter.log(logging.WARNING, message, *old, *new)

    def _replay(self, records: Iterable[bytes]) -> int:
        """Adds records and returns their number."""
        if self._config.window is not None:
            return self._replay_window(records)
        number = 0
        for batch in _batches(records):
            self._filter.update(batch)
            if self._exact is not None:
                self._exact.update(batch)
            number += len(batch)
        return number

    def _replay_window(self, records: Iterable[bytes]) -> int:
        """The same for records that begin with a time, in the order of their times."""
        number = 0
        for record in records:
            self._advance_to(int.from_bytes(record[:TIME_SIZE], "big"))
            self._filter.add(record[TIME_SIZE:])
            number += 1
        return number

    def _save(self, snapshot_log: SnapshotLog) -> None:
        """Saves a snapshot, after the tables that must not be older than it."""
        if self._pending is not None:
            self._pending.sync()
        self._commit_exact()
        snapshot_log.rotate(self._filter.save)

    def _commit_exact(self) -> None:
        if self._exact is not None:
            self._exact.commit()

    def _try_save(self, snapshot_log: SnapshotLog) -> None:
        """The same; after a failure the old snapshot and its log remain the complete set."""
        try:
            self._save(snapshot_log)
            self._pause = MIN_PAUSE
        except (OSError, sqlite3.Error) as error:
            message = "Duplicate filter cannot save a snapshot in JOBDIR (%s); it will try again"
            self._reporter.count_error("snapshot_errors", message, error)
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, MAX_PAUSE)

    def _report_exact_error(self, error: sqlite3.Error) -> None:
        """The crawl continues: a request that cannot be looked up is new."""
        message = (
            "Duplicate filter cannot use its table of fingerprints (%s): pages may be fetched twice"
        )
        self._reporter.count_error("exact_errors", message, error)

    def _report_log_error(self, error: OSError) -> None:
        """The crawl continues: requests that are not in the log may be fetched twice."""
        assert self._snapshot_log is not None
        self._snapshot_log.close()
        message = (
            "Duplicate filter cannot write its log in JOBDIR (%s): if this run is killed before the"
            " next snapshot, requests from now on will be fetched again"
        )
        self._reporter.count_error("log_errors", message, error)

    def close(self) -> None:
        """Saves the filter, sets the stats, and closes all files."""
        self._check()
        number = self._inserted
        if isinstance(self._filter, petal.WindowedBloomFilter):
            # The oldest generation is beyond the window.
            generations = self._filter.generations
            number = number * (generations - 1) // generations
        # Only here: with several layers it takes a tenth of a millisecond.
        self._reporter.set_stats({"expected_fpr": self._filter.expected_fpr(number)})
        if self._snapshot_log is not None:
            self._try_save(self._snapshot_log)
            self._snapshot_log.close()
        if self._exact is not None:
            self._exact.close()


def _new_filter(config: Config) -> petal.Filter:
    """Creates an empty filter with a random hash key, because the web chooses the URLs.

    With a memory limit it is the largest one that fits, found by bisection.

    Raises `ValueError` if the memory limit is below the smallest filter,
    `petal.MemoryLimitError` if the system refuses the memory.
    """
    secret = os.urandom(16)
    if config.memory_limit is None:
        assert config.capacity is not None
        return _with_capacity(config, config.capacity, secret)
    memory, low, high = config.memory_limit, 1, 2
    refused: petal.MemoryLimitError | None = None

    def fits(capacity: int) -> bool:
        nonlocal refused
        try:
            # The pages of an empty filter are not in use, so a trial is cheap.
            return int(_with_capacity(config, capacity, secret).memory_bytes) <= memory
        except petal.MemoryLimitError as error:
            refused = error
            return False

    if not fits(low):
        raise ValueError(f"{PREFIX}MEMORY_LIMIT: {memory} bytes are too few for any filter")
    while fits(high):
        low, high = high, 2 * high
    while high - low > low // 1024 + 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    filter = _with_capacity(config, low, secret)
    # It is no error if the system refused only filters above the limit.
    if refused is not None and filter.memory_bytes < memory - memory // 16:
        raise refused
    return filter


def _with_capacity(config: Config, capacity: int, secret: bytes) -> petal.Filter:
    with naming_settings(PREFIX, "FPR", "MEMORY_LIMIT" if config.capacity is None else "CAPACITY"):
        if config.window is not None:
            return petal.WindowedBloomFilter(capacity, config.fpr, window=config.window, secret=secret)
        if config.grow:
            return petal.ScalableBloomFilter(capacity, config.fpr, secret=secret)
        return petal.BloomFilter(capacity, config.fpr, secret=secret)


def _batches(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    source = iter(records)
    while batch := list(islice(source, REPLAY_BATCH)):
        yield batch
