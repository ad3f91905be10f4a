"""Log messages and stats of the duplicate filter. Stats are named `petal/dupefilter/...`."""

import logging
from collections.abc import Mapping

from scrapy.crawler import Crawler

_logger = logging.getLogger("petal.scrapy")


class Reporter:
    """The log and the stats of one crawler."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._extra = {"spider": crawler.spider}
        self._logged: set[str] = set()
        self.spider_name = crawler.spider.name if crawler.spider is not None else ""

    def log(self, level: int, message: str, *args: object) -> None:
        """Logs a message; `level` is one of the levels of `logging`."""
        _logger.log(level, message, *args, extra=self._extra)

    def count(self, name: str, increment: int = 1) -> None:
        """Increments a stat."""
        self._stats.inc_value(f"petal/dupefilter/{name}", increment)

    def count_error(self, name: str, message: str, *args: object) -> None:
        """Increments a stat of failures; logs the message at level ERROR the first time."""
        self._log_once(name, message, *args)
        self.count(name)

    def alarm(self, message: str, *args: object) -> None:
        """Reports a full filter: logs at level ERROR and sets the stat `overfull`, once."""
        if self._log_once("overfull", message, *args):
            self.set_stats({"overfull": 1})

    def _log_once(self, name: str, message: str, *args: object) -> bool:
        # The stats cannot be used for this: a crawler may have a collector that stores nothing.
        if name in self._logged:
            return False
        self._logged.add(name)
        self.log(logging.ERROR, message, *args)
        return True

    def set_stats(self, stats: Mapping[str, object]) -> None:
        """Sets stats."""
        for name, value in stats.items():
            self._stats.set_value(f"petal/dupefilter/{name}", value)
