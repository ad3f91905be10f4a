"""`DupeFilter`: what Scrapy's scheduler calls.

`request_seen` asks and marks in one step, by the fingerprint that `crawler.request_fingerprinter`
gives. Cost: the fingerprint (some 20 microseconds, Scrapy's), then less than one microsecond in
memory, or one round trip to a server; a JOBDIR costs more for what is new (`journal`, `pending`).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.job import job_dir
from scrapy.utils.request import referer_str

import petal
from petal.scrapy import plan
from petal.scrapy.fleet import Fleet
from petal.scrapy.journal import JobDir
from petal.scrapy.local import Local
from petal.scrapy.pending import TABLE, Pending
from petal.scrapy.teller import Teller

logger = logging.getLogger("petal.scrapy")


class DupeFilter:
    """For `DUPEFILTER_CLASS`; docs/scrapy.md has the settings."""

    def __init__(self, crawler: Crawler) -> None:
        """Reads the settings, and takes the JOBDIR; `open` makes or finds the filter.

        Raises `ValueError` of settings that cannot be, `petal.InputError` if another process uses
        the JOBDIR, `petal.IncompatibleError` if `PENDING` was on there and is off.
        """
        self._told = False
        self._crawler = crawler
        self._tier: Local | Fleet | None = None
        self._jobdir: JobDir | None = None
        self._pending: Pending | None = None
        with self._whole():
            self._read(crawler)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is raised is also a line of the log, for Scrapy shows a traceback."""
        try:
            yield
        except BaseException as error:
            logger.error("Duplicate filter cannot begin: %s", error)
            self._let_go()
            raise

    def _read(self, crawler: Crawler) -> None:
        self._debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        self._plan = plan.read(crawler.settings)
        if path := job_dir(crawler.settings):
            self._jobdir = JobDir(Path(path))
            if self._plan.pending:
                self._pending = Pending(self._jobdir)
            elif (self._jobdir.folder / TABLE).exists():
                # It would go stale, and be taken for what a killed run had left.
                raise petal.IncompatibleError(
                    f"JOBDIR {path} keeps pending requests, and {plan.PREFIX}PENDING is off: leave"
                    " it on, or take another JOBDIR"
                )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        return cls(crawler)

    def open(self) -> None:
        """Makes the filter, or goes on with that of the JOBDIR or the server.

        Raises `petal.IncompatibleError` if that one was made for other settings,
        `petal.FormatError` if it is damaged, `redis.RedisError` if there is no server.
        """
        teller = Teller(self._crawler)
        assert self._crawler.request_fingerprinter is not None
        self._fingerprint = self._crawler.request_fingerprinter.fingerprint
        with self._whole():
            # First: what follows waits for its disk, which may make trouble.
            if self._pending is not None:
                self._pending.begin(self._crawler, self._fingerprint, teller)
            tier = Local if self._plan.redis_url is None else Fleet
            self._tier = tier(self._plan, teller, self._pending, self._jobdir)
        self._seen = self._tier.seen
        if self._pending is not None:
            self._seen = self._seen_or_given_back

    def request_seen(self, request: Request) -> bool:
        """Whether this request was asked before; it is known from now on."""
        return self._seen(self._fingerprint(request), request)

    def _seen_or_given_back(self, fingerprint: bytes, request: Request) -> bool:
        """What is given back was let through by an earlier run."""
        assert self._tier is not None and self._pending is not None
        seen = self._tier.seen(fingerprint, request)
        return seen and self._pending.given_back is not request

    def close(self, reason: str) -> None:
        """Saves what a later run needs, and tells the stats."""
        try:
            if self._tier is not None:
                self._tier.close()
                # Last: what comes before may fail, and then this run counts as killed.
                if self._pending is not None:
                    self._pending.close()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Of the JOBDIR."""
        if self._pending is not None:
            self._pending.let_go()
        if self._jobdir is not None:
            self._jobdir.close()

    def log(self, request: Request, spider: Spider) -> None:
        """Tells of a request that was held back, as Scrapy's own filter does."""
        if self._debug or not self._told:
            words = "Filtered duplicate request: %(request)s (referer: %(referer)s)"
            if not self._debug:
                words += " - DUPEFILTER_DEBUG shows all of them, this is the only one"
            parts: dict[str, Any] = {"request": request, "referer": referer_str(request)}
            logger.debug(words, parts, extra={"spider": spider})
            self._told = True
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("dupefilter/filtered")
