"""Requests that were let through and are not done: with them a crawl that was killed goes on.

Scrapy's own queue in a JOBDIR tells what is in it only when it is closed. After `kill -9` it is
lost, while what was seen is not, and the next run holds back all that the queue had: it fetches the
first page and calls itself finished. So what is let through is kept here too, in a table of
SQLite, until Scrapy is done with it, its callback and items included. After a run that was not
closed, Scrapy's queue is removed and the crawl is given these requests anew.

Invariants: a request is here before the journal knows it as seen, and until it has left the
engine. What is fetched twice after a kill is therefore what was under way.

Cost: for each request that is new one `pickle` and two short transactions, some 80 microseconds in
all; disk as Scrapy's own queue takes. The disk is waited for only where SQLite cleans up its log.

Limits, as of Scrapy's queue: a request that cannot be pickled, such as one with a lambda for a
callback, is not kept, and a JOBDIR must be trusted like code, for `pickle` reads it.
"""

import logging
import pickle
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from petal.scrapy.teller import Teller

_BEGUN, _CLOSED = 1, 2


class Pending:
    """The table of one crawler."""

    def __init__(self, path: Path) -> None:
        self._base = sqlite3.connect(path, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.execute(
            "CREATE TABLE IF NOT EXISTS pending"
            " (id INTEGER PRIMARY KEY, fingerprint BLOB UNIQUE, request BLOB)"
        )
        (state,) = self._base.execute("PRAGMA user_version").fetchone()
        self.was_killed: bool = state == _BEGUN
        self.gives_back = False
        self._left: list[Request] = []
        # Requests that came again past the filter, such as retries: done is only the last of them.
        self._again: Counter[bytes] = Counter()

    def begin(
        self, crawler: Crawler, fingerprint: Callable[[Request], bytes], teller: Teller
    ) -> None:
        """From here on a run that is not closed counts as killed."""
        self._base.execute(f"PRAGMA user_version = {_BEGUN}")
        self._crawler, self._fingerprint, self._teller = crawler, fingerprint, teller
        crawler.signals.connect(self._came, signals.request_scheduled)
        crawler.signals.connect(self._gone, signals.request_left_downloader)
        if self.was_killed:
            crawler.signals.connect(self._give_back, signals.spider_opened)

    def fingerprints(self) -> list[bytes]:
        """Of all requests that are kept."""
        return [row for (row,) in self._base.execute("SELECT fingerprint FROM pending")]

    def add(self, fingerprint: bytes, request: Request) -> None:
        """Keeps a request."""
        try:
            # What the request refers to is looked up by name, as Scrapy's queue does.
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            self._teller.count("not_pickled")
            return
        self._base.execute(
            "INSERT OR REPLACE INTO pending (fingerprint, request) VALUES (?, ?)",
            (fingerprint, data),
        )

    def _came(self, request: Request) -> None:
        if request.dont_filter:
            self._again[self._fingerprint(request)] += 1

    def _gone(self, request: Request) -> None:
        """A request left the downloader; those before it that left the engine too are done."""
        engine = self._crawler.engine
        # Scrapy below 2.13 calls it `slot`.
        slot = getattr(engine, "_slot", None) or getattr(engine, "slot", None)
        under_way = slot.inprogress if slot is not None else ()
        done = [request for request in self._left if request not in under_way]
        self._left = [request for request in self._left if request in under_way]
        self._left.append(request)
        for request in done:
            self._drop(request)

    def _drop(self, request: Request) -> None:
        fingerprint = self._fingerprint(request)
        if self._again[fingerprint] > 0:
            self._again[fingerprint] -= 1
            return
        del self._again[fingerprint]
        self._base.execute("DELETE FROM pending WHERE fingerprint = ?", (fingerprint,))

    def _give_back(self) -> None:
        """Schedules all that a killed run had not done."""
        rows = self._base.execute("SELECT request FROM pending ORDER BY id").fetchall()
        engine, spider = self._crawler.engine, self._crawler.spider
        assert engine is not None
        self.gives_back = True
        for (data,) in rows:
            engine.crawl(request_from_dict(pickle.loads(data), spider=spider))
        self.gives_back = False
        self._teller.facts({"given_back": len(rows)})
        words = "The last run was killed: %d requests that it had not done are scheduled anew"
        self._teller.line(logging.INFO, words, len(rows))

    def close(self, finished: bool) -> None:
        """A run ends as it should: Scrapy's queue has what is left, if it has not `finished`."""
        for request in self._left:
            self._drop(request)
        if finished:
            self._base.execute("DELETE FROM pending")
        self._base.execute(f"PRAGMA user_version = {_CLOSED}")
        self._base.close()
