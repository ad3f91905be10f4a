"""`DupeFilter`, the class that Scrapy's scheduler calls.

`request_seen` looks up and adds the fingerprint that `crawler.request_fingerprinter` returns, or with
`PETAL_DUPEFILTER_KEY_TRANSFORM` a key of the changed URL. Cost:
the fingerprint (some 20 microseconds, computed by Scrapy), then less than one microsecond in
memory, or one round trip to a server. With a JOBDIR new requests cost more: see `snapshot_log` and
`pending`.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.job import job_dir
from scrapy.utils.request import referer_str

import petal
from petal.scrapy.config import PREFIX, naming_settings, read_config
from petal.scrapy.connection import connect, connect_like_scrapy_redis
from petal.scrapy.keys import fingerprinter, with_keys_in_meta
from petal.scrapy.local import LocalFilter
from petal.scrapy.pending import FILE_NAME, PendingRequests
from petal.scrapy.reporter import Reporter
from petal.scrapy.server import ServerFilter
from petal.scrapy.snapshot_log import JobDir

logger = logging.getLogger("petal.scrapy")


class DupeFilter:
    """The class for `DUPEFILTER_CLASS`; docs/guides/scrapy.md describes the settings."""

    def __init__(self, crawler: Crawler, shared_queue: bool = False) -> None:
        """Reads the settings and locks the JOBDIR; `open` creates or loads the filter.

        With `shared_queue` there is no JOBDIR: requests and filter are on a server.

        Raises `ValueError` if a setting is invalid, `petal.InputError` if another process uses the
        JOBDIR, `petal.IncompatibleError` if the JOBDIR keeps pending requests and `PENDING` is off.
        """
        self._logged_duplicate = False
        self._crawler = crawler
        self._backend: LocalFilter | ServerFilter | None = None
        self._jobdir: JobDir | None = None
        self._pending: PendingRequests | None = None
        with self._release_on_error():
            self._configure(crawler, shared_queue)

    @contextmanager
    def _release_on_error(self) -> Iterator[None]:
        """Logs an error in one line, because Scrapy logs a traceback, and releases the JOBDIR."""
        try:
            yield
        except BaseException as error:
            logger.error("Duplicate filter cannot start: %s", error)
            self._release()
            raise

    def _configure(self, crawler: Crawler, shared_queue: bool) -> None:
        self._debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        self._config = read_config(crawler.settings, shared_queue)
        if shared_queue:
            return
        if path := job_dir(crawler.settings):
            self._jobdir = JobDir(Path(path))
            if self._config.pending:
                self._pending = PendingRequests(self._jobdir)
            elif (self._jobdir.folder / FILE_NAME).exists():
                # A table that is no longer updated would later be taken for that of a killed run.
                raise petal.IncompatibleError(
                    f"JOBDIR {path} keeps pending requests, but {PREFIX}PENDING is off: turn it on,"
                    " or use another JOBDIR"
                )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Creates the filter; called by Scrapy."""
        return cls(crawler)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """Creates and opens the filter; called by the scheduler of scrapy-redis.

        That scheduler calls neither `open` nor `close`, so the filter is closed with the spider.
        Raises the errors of `__init__` and `open`.
        """
        made = cls(spider.crawler, shared_queue=True)
        made.open()
        spider.crawler.signals.connect(made._spider_closed, signals.spider_closed)
        return made

    def open(self) -> None:
        """Creates the filter, or loads that of the JOBDIR, or joins that on the server.

        Raises `petal.IncompatibleError` if the existing filter has other settings,
        `petal.FormatError` if it is damaged, `redis.RedisError` if the server does not answer.
        """
        reporter = Reporter(self._crawler)
        assert self._crawler.request_fingerprinter is not None
        self._fingerprint: Callable[[Request], bytes]
        self._fingerprint = self._crawler.request_fingerprinter.fingerprint
        if names := self._config.key_transform:
            self._fingerprint = fingerprinter(names)
        self._fingerprint = with_keys_in_meta(self._fingerprint)
        with self._release_on_error():
            # First, because the backend syncs it, and that may fail.
            if self._pending is not None:
                self._pending.start(self._crawler, self._fingerprint, reporter)
            self._backend = self._open_backend(reporter)
        self._seen = self._backend.seen
        if self._pending is not None:
            self._seen = self._seen_unless_rescheduled

    def _open_backend(self, reporter: Reporter) -> LocalFilter | ServerFilter:
        config = self._config
        if not config.on_server:
            return LocalFilter(config, reporter, self._pending, self._jobdir)
        if config.redis_url is not None:
            with naming_settings(PREFIX, "REDIS_URL"):
                client = connect(config.redis_url)
        else:
            client = connect_like_scrapy_redis(self._crawler.settings)
        return ServerFilter(config, reporter, client, self._pending, self._jobdir)

    def request_seen(self, request: Request) -> bool:
        """Returns whether the request was seen before, and adds it."""
        return self._seen(self._fingerprint(request), request)

    def _seen_unless_rescheduled(self, fingerprint: bytes, request: Request) -> bool:
        """The same, but `False` for a pending request of an earlier run."""
        assert self._backend is not None and self._pending is not None
        seen = self._backend.seen(fingerprint, request)
        return seen and self._pending.rescheduling is not request

    def fingerprint(self, request: Request) -> bytes:
        """Returns the key of a request in the filter."""
        return self._fingerprint(request)

    def shared_filter(self) -> ServerFilter:
        """Returns the filter that `from_spider` has opened."""
        assert isinstance(self._backend, ServerFilter)
        return self._backend

    def close(self, reason: str) -> None:
        """Saves the state that a later run needs, and sets the final stats."""
        try:
            if self._backend is not None:
                self._backend.close()
                # Last: if the backend cannot be closed, this run counts as killed.
                if self._pending is not None:
                    self._pending.mark_closed()
        finally:
            self._release()

    def clear(self) -> None:
        """Deletes the filter; called by scrapy-redis, which then deletes its queue.

        Raises `redis.RedisError` if the server does not answer.
        """
        assert isinstance(self._backend, ServerFilter)
        self._backend.clear()

    def _spider_closed(self, reason: str) -> None:
        self.close(reason)

    def _release(self) -> None:
        """Closes the files in the JOBDIR and unlocks it."""
        if self._pending is not None:
            self._pending.close()
        if self._jobdir is not None:
            self._jobdir.close()

    def log(self, request: Request, spider: Spider) -> None:
        """Logs and counts a filtered request as Scrapy's own filter does."""
        if self._debug or not self._logged_duplicate:
            message = "Filtered duplicate request: %(request)s (referer: %(referer)s)"
            if not self._debug:
                message += " - no more duplicates will be shown (DUPEFILTER_DEBUG shows all)"
            args: dict[str, Any] = {"request": request, "referer": referer_str(request)}
            logger.debug(message, args, extra={"spider": spider})
            self._logged_duplicate = True
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("dupefilter/filtered")
