"""Runs a spider with items on odd pages: `delta_process.py URL OUT SETTINGS`, as `spider_process.py`."""

import json
import os
import signal
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DropItem


class DeltaSpider(scrapy.Spider):
    """Pages divisible by 5 have a key of their own, those divisible by 7 are always fetched."""

    name = "delta"

    def __init__(self, url: str, **options: object) -> None:
        super().__init__(**options)
        self.start_urls = [url + "/0"]

    def parse(self, response):
        page = int(response.url.rsplit("/")[-1])
        if page % 2:
            yield {"page": page}
        for link in response.css("a::attr(href)").getall():
            target, meta = int(link[1:]), {}
            if target % 5 == 0:
                meta["deltafetch_key"] = f"item-{target}"
            if target % 7 == 0:
                meta["deltafetch_enabled"] = False
            yield response.follow(link, meta=meta)


class AsyncSpider(DeltaSpider):
    """The same with an asynchronous callback."""

    async def parse(self, response):
        for output in super().parse(response):
            yield output


class Pipeline:
    """Drops the items of pages that end with 1, and fails at or kills at a page of the settings."""

    def __init__(self, crawler):
        self._fail_at, self._kill_at = (crawler.settings.getint(name) for name in ("FAIL_AT", "KILL_AT"))

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def process_item(self, item, spider=None):
        if item["page"] % 10 == 1:
            raise DropItem("ends with 1")
        if item["page"] == self._fail_at:
            raise OSError("the database is down")
        if item["page"] == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return item


def main(url: str, out: str, settings: str) -> None:
    settings = json.loads(settings)
    arguments, spider = settings.pop("ARGUMENTS", {}), settings.pop("SPIDER", "DeltaSpider")
    defaults = {"LOG_LEVEL": "INFO", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False}
    defaults["ITEM_PIPELINES"] = {Pipeline: 1}
    process = CrawlerProcess(defaults | settings)
    crawler = process.create_crawler(globals()[spider])
    process.crawl(crawler, url=url, **arguments)
    process.start()
    Path(out).write_text(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
