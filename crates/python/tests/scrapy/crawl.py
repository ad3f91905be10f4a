"""A spider in a process of its own: `crawl.py URL OUT SETTINGS`; its stats go to the file OUT."""

import json
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess


class Follow(scrapy.Spider):
    """Follows every link."""

    name = "follow"

    def __init__(self, url: str, **words: object) -> None:
        super().__init__(**words)
        self.start_urls = [url + "/0"]

    def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class Down:
    """A pipeline whose database does not answer."""

    def open_spider(self, spider=None):
        raise OSError("the database is down")


class Full:
    """A disk that takes no more pending requests, from just before the spider is open."""

    def __init__(self, crawler):
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def open_spider(self, spider=None):
        engine = self._crawler.engine
        slot = getattr(engine, "_slot", None) or engine.slot
        slot.scheduler.df._pending._base.execute("PRAGMA query_only = 1")


def main(url: str, out: str, settings: str) -> None:
    plain = {"LOG_LEVEL": "INFO", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False}
    process = CrawlerProcess(plain | json.loads(settings))
    crawler = process.create_crawler(Follow)
    process.crawl(crawler, url=url)
    process.start()
    Path(out).write_text(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
