"""What the filter tells: lines of Scrapy's log, and stats below `petal/dupefilter/`."""

import logging
from collections.abc import Mapping

from scrapy.crawler import Crawler

_logger = logging.getLogger("petal.scrapy")


class Teller:
    """The log and the stats of one crawler."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._extra = {"spider": crawler.spider}
        self._told: set[str] = set()
        self.spider_name = crawler.spider.name if crawler.spider is not None else ""

    def line(self, level: int, words: str, *parts: object) -> None:
        """A line of the log; `level` is one of `logging`."""
        _logger.log(level, words, *parts, extra=self._extra)

    def count(self, name: str, more: int = 1) -> None:
        """Adds to a stat."""
        self._stats.inc_value(f"petal/dupefilter/{name}", more)

    def trouble(self, name: str, words: str, *parts: object) -> None:
        """Counts what went wrong; the first time it is also a line of level ERROR."""
        self._once(name, words, *parts)
        self.count(name)

    def alarm(self, words: str, *parts: object) -> None:
        """A filter is full: the first time a line of level ERROR and the stat `overfull`."""
        if self._once("overfull", words, *parts):
            self.facts({"overfull": 1})

    def _once(self, name: str, words: str, *parts: object) -> bool:
        # Not by the stats: a crawler may have none.
        if name in self._told:
            return False
        self._told.add(name)
        self.line(logging.ERROR, words, *parts)
        return True

    def facts(self, facts: Mapping[str, object]) -> None:
        """Sets stats."""
        for name, value in facts.items():
            self._stats.set_value(f"petal/dupefilter/{name}", value)
