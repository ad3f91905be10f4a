"""Runs a spider and writes its stats to a file: `spider_process.py URL OUT SETTINGS`."""

import json
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess


class FollowSpider(scrapy.Spider):
    """Follows every link. The item of a page is its URL."""

    name = "follow"

    def __init__(self, url: str, **options: object) -> None:
        super().__init__(**options)
        self.start_urls = [url + "/0"]

    def parse(self, response):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class FailingPipeline:
    """A pipeline that cannot open."""

    def open_spider(self, spider=None):
        raise OSError("the database is down")


class RecordingPipeline:
    """Appends the page of each item to the file `ITEMS`."""

    def __init__(self, file):
        self._file = file

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings["ITEMS"])

    def process_item(self, item, spider=None):
        with open(self._file, "a") as file:
            file.write(item["url"].rsplit("/")[-1] + "\n")
        return item


class FullDisk:
    """Makes the table of pending requests read-only just before the spider is opened."""

    def __init__(self, crawler):
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def open_spider(self, spider=None):
        engine = self._crawler.engine
        slot = getattr(engine, "_slot", None) or engine.slot
        slot.scheduler.df._pending._database.execute("PRAGMA query_only = 1")


def main(url: str, out: str, settings: str) -> None:
    defaults = {"LOG_LEVEL": "INFO", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False}
    process = CrawlerProcess(defaults | json.loads(settings))
    crawler = process.create_crawler(FollowSpider)
    process.crawl(crawler, url=url)
    process.start()
    Path(out).write_text(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
