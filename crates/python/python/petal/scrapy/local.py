"""A filter in this process: alone, with fingerprints on disk that confirm it, with a JOBDIR.

Three orders of work, by what the settings ask for:

- plain: the filter asks and marks in one step;
- exact: what the filter calls seen is looked up on disk, and let through if it is not there;
- window: a request that was let through is held back for the window and then let through again.
  Only what is let through is marked: were duplicates marked too, a page that is linked
  everywhere would never be due.

What is let through goes to the journal before the answer is given.

A disk that is full, or broken, costs pages that are fetched twice and never one that is lost: what
is new to the filter is answered so, whatever the files say.
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
from petal.scrapy.exact import Exact
from petal.scrapy.journal import JobDir, Journal, records
from petal.scrapy.pending import Pending
from petal.scrapy.plan import PREFIX, Plan
from petal.scrapy.teller import Teller

BATCH = 65_536
# Bytes of the time, in seconds since 1970, before a fingerprint in the log of a window.
TIME = 8
# New requests between two looks: a wait for the disk in each takes milliseconds, and after a power
# cut so many at most are asked again.
STEP = 1000
# Seconds until a snapshot that failed is tried again, for each try may write all that there is;
# twice as long each time, up to the longest.
PAUSE, LONGEST_PAUSE = 60.0, 3600.0


class Local:
    """The filter of one process. `seen(fingerprint, request)` asks and marks."""

    def __init__(
        self,
        plan: Plan,
        teller: Teller,
        pending: Pending | None = None,
        jobdir: JobDir | None = None,
    ) -> None:
        """`pending` is told of what is new before the journal is.

        Raises `petal.IncompatibleError` if the JOBDIR has a filter for other settings,
        `petal.FormatError` if what it has is damaged.
        """
        self._plan = plan
        self._teller = teller
        self._pending = pending
        self._journal = Journal(jobdir.folder) if jobdir is not None else None
        self._exact: Exact | None = None
        made = self._journal.made if self._journal is not None else None
        if made is not None:
            plan.agree(made)
            self._warn(made)
        if plan.exact:
            self._exact = Exact(jobdir.folder / "exact.sqlite3" if jobdir is not None else None)
        if self._journal is None or jobdir is None:
            self._filter = _make(plan)
        elif made is None:
            self._filter = self._begun(self._journal, jobdir.path / "requests.seen")
        else:
            self._filter = self._resumed(self._journal)
        self._add = self._filter.add
        # As of the last look, and new requests until the next.
        self._inserted = self._left = 0
        # A fixed filter is looked at when it is full, the others when it is time.
        self._alarm: float = self._filter.capacity if plan.kind == "fixed" else math.inf
        # After a snapshot that failed: when it is tried again, and the pause if it fails once more.
        self._again = 0.0
        self._pause = PAUSE
        self._size = 0
        self._layers = 0
        self._look()
        self.seen: Callable[[bytes, Request], bool] = self._seen
        if plan.window is not None:
            self.seen = self._seen_in_window
        elif self._exact is not None:
            self.seen = self._seen_exactly
        elif pending is None and self._journal is None:
            self.seen = self._seen_in_memory()

    # Three orders of work.

    def _seen(self, fingerprint: bytes, request: Request) -> bool:
        if self._add(fingerprint):
            self._keep(fingerprint, request)
            self._let_through(fingerprint)
            return False
        return True

    def _seen_in_memory(self) -> Callable[[bytes, Request], bool]:
        """The same where nothing else is to be done, in the fewest steps of Python."""
        add, left = self._add, self._left

        def seen(fingerprint: bytes, _request: Request) -> bool:
            nonlocal left
            if add(fingerprint):
                left -= 1
                if left == 0:
                    self._look()
                    left = self._left
                return False
            return True

        return seen

    def _seen_exactly(self, fingerprint: bytes, request: Request) -> bool:
        assert self._exact is not None
        if not self._add(fingerprint):
            try:
                if fingerprint in self._exact:
                    return True
                self._teller.count("false_positives")
            except sqlite3.Error as error:
                self._lose_exact(error)
        # First, as before the log: the table, too, must not know what would be lost at a kill.
        self._keep(fingerprint, request)
        try:
            self._exact.add(fingerprint)
        except sqlite3.Error as error:
            self._lose_exact(error)
        self._let_through(fingerprint)
        return False

    def _seen_in_window(self, fingerprint: bytes, request: Request) -> bool:
        now = int(time.time())
        self._filter.advance_to(now)
        if fingerprint in self._filter:
            return True
        self._add(fingerprint)
        self._keep(fingerprint, request)
        self._let_through(now.to_bytes(TIME, "big") + fingerprint)
        return False

    def _keep(self, fingerprint: bytes, request: Request) -> None:
        """Keeps a request that is new, before anything on the disk knows it as seen."""
        if self._pending is not None:
            self._pending.add(fingerprint, request)

    def _let_through(self, record: bytes) -> None:
        """Logs a request that is new and is kept."""
        if self._journal is not None:
            try:
                self._journal.write(record)
            except OSError as error:
                self._lose_log(error)
        self._left -= 1
        if self._left == 0:
            self._look()

    # Now and then.

    def _look(self) -> None:
        """Stats, the alarm, growth, and what the journal needs."""
        self._inserted = self._filter.inserted
        if self._inserted >= self._alarm or self._overflows():
            self._raise_alarm()
        if self._filter.size_bytes != self._size:
            self._tell_growth()
        if self._journal is not None:
            # First: a request that is seen and not pending would be lost.
            if self._pending is not None:
                self._pending.sync()
            due = self._journal.is_due(self._filter.size_bytes)
            if due and time.monotonic() >= self._again:
                self._save_if_it_can(self._journal)
            try:
                self._journal.sync()
            except OSError as error:
                self._lose_log(error)
        self._teller.facts(self.facts())
        # Of a window, what its newest part still takes: a part that becomes full is noticed then.
        part = self._filter.capacity_left if self._plan.window is not None else 0
        self._left = max(1, int(min(self._alarm - self._inserted, STEP, part or STEP)))

    def _tell_growth(self) -> None:
        """Told only where its size has changed: this reads the whole filter."""
        first, self._size = self._size == 0, self._filter.size_bytes
        self._layers = self._filter.info().get("layers", 1)
        if not first:
            words = "Duplicate filter grew to %d layers and %d bytes at %d requests"
            self._teller.line(logging.INFO, words, self._layers, self._size, self._inserted)

    def _overflows(self) -> bool:
        """Whether the newest part of a window has its share of the capacity."""
        return self._plan.window is not None and self._filter.capacity_left == 0

    def _raise_alarm(self) -> None:
        self._alarm = math.inf
        if self._exact is not None:
            return
        number, advice = f"{self._inserted} requests", "larger"
        if self._plan.window is None:
            advice = f"larger, leave {PREFIX}GROW on, or set {PREFIX}EXACT"
        else:
            number = "more requests in this part of the window than its share"
        words = (
            "Duplicate filter is full: %s, planned for %d at a rate of %g. From here on it"
            " takes ever more new pages for seen ones and loses them without a word: begin anew"
            f" with {PREFIX}CAPACITY or {PREFIX}MEMORY {advice}"
        )
        self._teller.alarm(words, number, self._filter.capacity, self._filter.rate)

    def facts(self) -> dict[str, object]:
        """Figures, by name. Cost: none that grows with the filter."""
        return {
            "kind": self._plan.kind,
            "capacity": self._filter.capacity,
            "rate": self._filter.rate,
            "inserted": self._inserted,
            "bytes": self._filter.memory_bytes,
            "layers": self._layers,
        }

    # The JOBDIR.

    def _begun(self, journal: Journal, stock: Path) -> petal.Filter:
        """A new filter for a JOBDIR, with what Scrapy's own filter had seen there."""
        self._filter = _make(self._plan)
        if stock.exists():
            now = int(time.time()).to_bytes(TIME, "big") if self._plan.window else b""
            number = self._replay(now + record for record in records(stock))
            self._teller.facts({"imported": number})
            words = "Duplicate filter took over %d requests from %s"
            self._teller.line(logging.INFO, words, number, stock)
        self._commit()
        journal.begin(self._plan.lasting, self._filter.save)
        return self._filter

    def _resumed(self, journal: Journal) -> petal.Filter:
        """The filter of a JOBDIR, with all that its log tells."""
        path = journal.snapshot()
        try:
            self._filter = petal.load(path)
        except petal.PetalError as error:
            raise petal.FormatError(
                f"{path}: {error}; restore it, or remove {path.parent} to begin anew"
            ) from None
        replayed = self._replay(journal.records())
        self._save(journal)
        self._teller.facts({"replayed": replayed})
        words = "Duplicate filter resumed: %d requests, %d of them from the log of a killed run"
        self._teller.line(logging.INFO, words, self._filter.inserted, replayed)
        return self._filter

    def _warn(self, made: dict[str, Any]) -> None:
        """Tells what of a JOBDIR's filter is not as asked."""
        asked, names = self._plan.lasting, ("capacity", "rate", "memory")
        parts = [of.get(name) for of in (made, asked) for name in names]
        if parts[:3] != parts[3:]:
            words = (
                "Duplicate filter in JOBDIR stays as it was made: capacity %s, rate %s, memory %s;"
                " the settings say %s, %s, %s"
            )
            self._teller.line(logging.WARNING, words, *parts)

    def _replay(self, found: Iterable[bytes]) -> int:
        """Adds records, whose number is the result."""
        if self._plan.window is not None:
            return self._replay_times(found)
        number = 0
        for batch in _batches(found):
            self._filter.update(batch)
            if self._exact is not None:
                self._exact.update(batch)
            number += len(batch)
        return number

    def _replay_times(self, found: Iterable[bytes]) -> int:
        """The same of records that begin with their time, which come in its order."""
        number = 0
        for record in found:
            self._filter.advance_to(int.from_bytes(record[:TIME], "big"))
            self._filter.add(record[TIME:])
            number += 1
        return number

    def _save(self, journal: Journal) -> None:
        """A snapshot; what is on disk of the others must not be behind it."""
        if self._pending is not None:
            self._pending.sync()
        self._commit()
        journal.rotate(self._filter.save)

    def _commit(self) -> None:
        if self._exact is not None:
            self._exact.commit()

    def _save_if_it_can(self, journal: Journal) -> None:
        """The same; if it fails, what is there and the log still are the whole set."""
        try:
            self._save(journal)
            self._pause = PAUSE
        except (OSError, sqlite3.Error) as error:
            words = "Duplicate filter cannot save itself in JOBDIR (%s); it is tried again"
            self._teller.trouble("snapshot_errors", words, error)
            self._again = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _lose_exact(self, error: sqlite3.Error) -> None:
        """The crawl goes on: what cannot be looked up is let through."""
        words = (
            "Duplicate filter cannot use its table of fingerprints (%s): pages may be fetched twice"
        )
        self._teller.trouble("exact_errors", words, error)

    def _lose_log(self, error: OSError) -> None:
        """The crawl goes on: what is not in the log costs pages that are fetched twice."""
        assert self._journal is not None
        self._journal.give_up()
        words = (
            "Duplicate filter cannot write its log in JOBDIR (%s): if this run is killed before it"
            " can, the next fetches again what follows"
        )
        self._teller.trouble("log_errors", words, error)

    def close(self) -> None:
        """Saves, tells the stats, and lets go of all files."""
        self._look()
        number = self._inserted
        if isinstance(self._filter, petal.WindowedBloomFilter):
            # The part that is about to be forgotten is beyond the window.
            parts = self._filter.generations
            number = number * (parts - 1) // parts
        # At the end only: in layers it takes a tenth of a millisecond.
        self._teller.facts({"expected_rate": self._filter.expected_rate(number)})
        if self._journal is not None:
            self._save_if_it_can(self._journal)
            self._journal.close()
        if self._exact is not None:
            self._exact.close()


def _make(plan: Plan) -> petal.Filter:
    """An empty filter, hashed with a random key: the pages that a crawl meets are strangers'.

    Raises `ValueError` of a rate that cannot be, `petal.MemoryCapError` of one too large.
    """
    secret = os.urandom(16)
    if plan.memory is None:
        assert plan.capacity is not None
        return _of_capacity(plan, plan.capacity, secret)
    memory, low, high = plan.memory, 1, 2
    refused: petal.MemoryCapError | None = None

    def fits(capacity: int) -> bool:
        nonlocal refused
        try:
            # Memory that nothing was written to costs nothing, so trying is cheap.
            return int(_of_capacity(plan, capacity, secret).memory_bytes) <= memory
        except petal.MemoryCapError as error:
            refused = error
            return False

    if not fits(low):
        raise ValueError(f"{PREFIX}MEMORY: {memory} bytes are too few for any filter")
    while fits(high):
        low, high = high, 2 * high
    while high - low > low // 1024 + 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    made = _of_capacity(plan, low, secret)
    # The system may refuse what is larger than asked for, and nothing else.
    if refused is not None and made.memory_bytes < memory - memory // 16:
        raise refused
    return made


def _of_capacity(plan: Plan, capacity: int, secret: bytes) -> petal.Filter:
    if plan.window is not None:
        return petal.WindowedBloomFilter(capacity, plan.rate, window=plan.window, secret=secret)
    if plan.grow:
        return petal.ScalableBloomFilter(capacity, plan.rate, secret=secret)
    return petal.BloomFilter(capacity, plan.rate, secret=secret)


def _batches(found: Iterable[bytes]) -> Iterator[list[bytes]]:
    source = iter(found)
    while batch := list(islice(source, BATCH)):
        yield batch
