"""`Scheduler`, which shares a queue on a Redis or Valkey server between spiders and loses no request.

It takes the settings of scrapy-redis' scheduler and reads its queue. In contrast to that scheduler, a
request stays on the server until its callback has ended and its items have left the pipelines. So a
process that is killed loses nothing, and a spider ends only when no process works on a request.
`fleet_queue` has the queue.
"""

import logging
import pickle
from functools import partial
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.request import request_from_dict
from twisted.internet.task import LoopingCall

from petal.scrapy.config import PREFIX, check_names, read_flag, read_positive_int
from petal.scrapy.connection import single_connection
from petal.scrapy.dupefilter import DupeFilter
from petal.scrapy.fleet_queue import FleetQueue
from petal.scrapy.reporter import Reporter

SCHEDULER_PREFIX = "PETAL_SCHEDULER_"
NAMES = ("LEASE",)
# Seconds without a sign of a process until its requests are returned.
DEFAULT_LEASE = 60

logger = logging.getLogger("petal.scrapy")


def _read_lease(settings: BaseSettings) -> int:
    """Returns the seconds of a lease. Raises `ValueError` if a setting is invalid."""
    check_names(settings, SCHEDULER_PREFIX, NAMES)
    for name in ("REDIS_URL", "WINDOW"):
        if settings.get(PREFIX + name):
            raise ValueError(f"{PREFIX}{name}: cannot be used with petal.scrapy.Scheduler; remove it")
    if not read_flag(settings, PREFIX + "GROW", True):
        raise ValueError(f"{PREFIX}GROW: petal.scrapy.Scheduler needs a filter that grows; turn it on")
    return read_positive_int(settings, SCHEDULER_PREFIX + "LEASE") or DEFAULT_LEASE


class Scheduler:
    """The class for `SCHEDULER`; docs/guides/scrapy.md describes the settings."""

    def __init__(self, crawler: Crawler) -> None:
        """Reads the settings. Raises `ValueError` if one is invalid."""
        self._crawler = crawler
        self._in_progress: dict[Request, bytes] = {}
        try:
            self._lease = _read_lease(crawler.settings)
        except ValueError as error:
            # Scrapy logs a traceback.
            logger.error("Scheduler cannot start: %s", error)
            raise

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Creates the scheduler; called by Scrapy."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Joins the queue and the filter, or creates them.

        Raises the errors of `DupeFilter.open`, `redis.RedisError` if the server does not answer.
        """
        settings = self._crawler.settings
        self.df = DupeFilter.from_spider(spider)
        self._spider = spider
        self._reporter = Reporter(self._crawler)
        shared = self.df.shared_filter()
        name = settings.get("SCHEDULER_QUEUE_KEY") or "%(spider)s:requests"
        names = (name % {"spider": spider.name}, shared.key)
        self._shared = shared
        connect = partial(single_connection, shared.client)
        self._queue = FleetQueue(connect, names, self._lease, shared.create_again, self._reporter)
        if settings.getbool("SCHEDULER_FLUSH_ON_START"):
            self.df.clear()
            self._queue.clear()
        self._queue.extend_lease()
        self._timer = LoopingCall(self._queue.extend_lease)
        self._timer.start(self._lease / 3, now=False)

    def close(self, reason: str) -> None:
        """Returns unfinished requests. Queue and filter stay on the server."""
        if self._timer.running:
            self._timer.stop()
        self._remove_finished()
        self._queue.close()

    def enqueue_request(self, request: Request) -> bool:
        """Adds a request unless it was seen. Returns whether it was added."""
        fingerprint = None if request.dont_filter else self.df.fingerprint(request)
        try:
            data = pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError) as error:
            message = "Scheduler cannot pickle a request (%s): %s; it is not fetched"
            self._reporter.count_error("not_pickled", message, error, request)
            return False
        is_new = self._queue.add(fingerprint, -request.priority, data)
        if not is_new:
            self.df.log(request, self._spider)
        elif fingerprint is not None:
            self._shared.count_new()
        return is_new

    def next_request(self) -> Request | None:
        """Takes a request from the queue."""
        self._remove_finished()
        while (data := self._queue.take()) is not None:
            try:
                request = request_from_dict(pickle.loads(data), spider=self._spider)
            except Exception as error:
                # For example a callback that was renamed.
                message = "Scheduler cannot restore a request (%s: %s); it stays on the server"
                self._reporter.count_error("not_restored", message, type(error).__name__, error)
                self._queue.park(data)
                continue
            self._in_progress[request] = data
            return request
        return None

    def has_pending_requests(self) -> bool:
        """Returns whether any process has requests; Scrapy calls this when the spider is idle."""
        self._remove_finished()
        return bool(self._in_progress) or not self._queue.is_finished()

    def _remove_finished(self) -> None:
        engine: Any = self._crawler.engine
        # Named `slot` in Scrapy before 2.13.
        slot = getattr(engine, "_slot", None) or getattr(engine, "slot", None)
        # The engine lists a request as in progress before it takes the next one.
        unfinished = slot.inprogress if slot is not None else set()
        for request in self._in_progress.keys() - unfinished:
            self._queue.finish(self._in_progress.pop(request))
