"""`DeltaFetch`, a spider middleware that skips pages which gave items in an earlier run.

Settings, spider argument, keys in `meta` and stats have the names of scrapy-deltafetch. A page is
stored when its callback has ended and all its items have left the pipelines, scraped or dropped.
If the callback or a pipeline fails, or the process is killed before, the next run fetches the page
again. `page_store` keeps the pages.

Cost: a fingerprint and a look-up in memory for each request of a callback, a record in a log for
each stored page.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.project import data_path

from petal.scrapy.config import is_true
from petal.scrapy.page_store import PageStore

logger = logging.getLogger("petal.scrapy")

#: The name in `Request.meta` of the key, in hexadecimal, of the request that a callback returned. A redirect
#: inherits it, and the next run skips the request again before it is redirected.
REQUESTED = "deltafetch_requested"


@dataclass(slots=True)
class _Progress:
    """The items of one page: how many are in the pipelines, and whether more can follow."""

    items: int = 0
    waiting: int = 0
    has_ended: bool = False
    has_failed: bool = False


class DeltaFetch:
    """A class for `SPIDER_MIDDLEWARES`; docs/guides/scrapy.md describes the settings."""

    def __init__(self, crawler: Crawler) -> None:
        """Opens the store of the spider.

        Raises `scrapy.exceptions.NotConfigured` unless `DELTAFETCH_ENABLED` is on, and the errors
        of `PageStore`.
        """
        settings, spider = crawler.settings, crawler.spider
        if not settings.getbool("DELTAFETCH_ENABLED"):
            raise NotConfigured
        assert spider is not None and crawler.stats is not None
        assert crawler.request_fingerprinter is not None
        self._stats = crawler.stats
        self._fingerprint = crawler.request_fingerprinter.fingerprint
        self._progress: WeakKeyDictionary[Response, _Progress] = WeakKeyDictionary()
        # Pages that gave items and are not stored.
        self._not_stored = 0
        folder = Path(data_path(settings.get("DELTAFETCH_DIR") or "deltafetch"))
        reset = is_true(getattr(spider, "deltafetch_reset", settings.get("DELTAFETCH_RESET")))
        try:
            self._store = PageStore(folder, spider.name, settings, reset)
        except Exception as error:
            # Scrapy logs a traceback.
            logger.error("DeltaFetch cannot start: %s", error)
            raise
        if self._store.imported:
            self._stats.set_value("deltafetch/imported", self._store.imported)
        for method, signal in (
            (self._item_left, signals.item_scraped),
            (self._item_left, signals.item_dropped),
            (self._item_failed, signals.item_error),
            (self._spider_closed, signals.spider_closed),
        ):
            crawler.signals.connect(method, signal)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Creates the middleware; called by Scrapy."""
        return cls(crawler)

    # ---- Output of callbacks ---------------------------------------------------------------------

    def process_spider_output(
        self, response: Response, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Yields the items, and the requests whose pages are not stored."""
        progress = self._progress.setdefault(response, _Progress())
        for output in result:
            if self._is_wanted(output, progress):
                yield output
        self._end(response, progress)

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterable[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """The same for asynchronous callbacks."""
        progress = self._progress.setdefault(response, _Progress())
        async for output in result:
            if self._is_wanted(output, progress):
                yield output
        self._end(response, progress)

    def _is_wanted(self, output: Any, progress: _Progress) -> bool:
        if isinstance(output, Request):
            # A request may opt out.
            if not output.meta.get("deltafetch_enabled", True):
                output.meta.pop(REQUESTED, None)
                return True
            key = self._key(output)
            if key not in self._store:
                # Also replaces that of another page, whose `meta` the callback has copied.
                output.meta[REQUESTED] = key.hex()
                return True
            logger.debug("Page gave items in an earlier run: %s", output)
            self._stats.inc_value("deltafetch/skipped")
            return False
        if output is not None:
            if progress.items == 0:
                self._not_stored += 1
            progress.items += 1
            progress.waiting += 1
        return True

    def _key(self, request: Request) -> bytes:
        key = request.meta.get("deltafetch_key") or self._fingerprint(request)
        if isinstance(key, str):
            return key.encode()
        if isinstance(key, bytes):
            return key
        raise TypeError(f"meta['deltafetch_key']: expected str or bytes, found {key!r}: {request}")

    # ---- Items -----------------------------------------------------------------------------------

    def _item_left(self, response: Response | None) -> None:
        """An item has left the pipelines."""
        # A spider may yield items without a response.
        progress = self._progress.get(response) if response is not None else None
        if response is not None and progress is not None:
            progress.waiting -= 1
            self._store_if_complete(response, progress)

    def _item_failed(self, response: Response | None) -> None:
        """A pipeline has failed: the page must be fetched again."""
        progress = self._progress.get(response) if response is not None else None
        if progress is not None:
            progress.has_failed = True

    def _end(self, response: Response, progress: _Progress) -> None:
        """The callback has ended without an exception."""
        progress.has_ended = True
        self._store_if_complete(response, progress)

    def _store_if_complete(self, response: Response, progress: _Progress) -> None:
        if not progress.has_ended or progress.waiting or progress.has_failed or not progress.items:
            return
        assert response.request is not None
        key = self._key(response.request)
        self._store.add(key)
        requested = bytes.fromhex(response.request.meta.get(REQUESTED, ""))
        if requested and requested != key:
            self._store.add(requested)
        self._not_stored -= 1
        self._stats.inc_value("deltafetch/stored")

    def _spider_closed(self) -> None:
        if self._not_stored:
            self._stats.set_value("deltafetch/not_stored", self._not_stored)
            message = (
                "DeltaFetch did not store %d pages that gave items: a callback or a pipeline failed,"
                " or a spider middleware with a number below DeltaFetch's removed the items. The"
                " next run fetches these pages again"
            )
            logger.warning(message, self._not_stored)
        self._store.close()
