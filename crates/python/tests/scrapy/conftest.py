"""Fixtures for the tests of the duplicate filter."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis_server import MODULE, Server
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler
from site_server import Site

from petal.scrapy import DupeFilter

SCRAPY_SETTINGS = ("JOBDIR", "DUPEFILTER_DEBUG", "REQUEST_FINGERPRINTER_CLASS", "STATS_CLASS")
CLASS = {"DUPEFILTER_CLASS": "petal.scrapy.DupeFilter"}


class EmptySpider(Spider):
    name = "empty"


def numbered_request(number: int) -> Request:
    """Returns a request; each number has another URL."""
    return Request(f"http://example.com/{number}")


def fingerprint(number: int) -> bytes:
    """Returns 20 bytes that differ for each number."""
    return hashlib.sha1(b"%d" % number).digest()


class OpenFilter:
    """An open duplicate filter with its crawler."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.crawler = get_crawler(EmptySpider, settings)
        self.crawler.spider = self.crawler._create_spider()
        self.filter = DupeFilter.from_crawler(self.crawler)
        self.filter.open()

    def new(self, numbers: range) -> list[int]:
        """Looks up numbered requests and returns the numbers of those that are new."""
        return [at for at in numbers if not self.filter.request_seen(numbered_request(at))]

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"petal/dupefilter/{name}")

    def close(self, reason: str = "finished") -> None:
        self.filter.close(reason)

    def kill(self) -> None:
        """Unlocks the JOBDIR and saves nothing, as if the process was killed."""
        self.filter._jobdir.close()


@pytest.fixture
def open_filter() -> Callable[..., OpenFilter]:
    """Opens a filter: `open_filter(CAPACITY=1000, JOBDIR=path)`, without petal's prefix."""

    def opened(**settings: Any) -> OpenFilter:
        scrapy = {name: settings.pop(name) for name in SCRAPY_SETTINGS if name in settings}
        petal = {f"PETAL_DUPEFILTER_{name}": value for name, value in settings.items()}
        return OpenFilter({name: str(value) for name, value in (scrapy | petal).items()})

    return opened


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site(300)
    yield made
    made.close()


class Crawl:
    """A spider in a process of its own that follows all links of a site."""

    def __init__(
        self,
        site: Site,
        folder: Path,
        settings: dict[str, Any],
        script: str = "spider_process.py",
        python: str | Path = sys.executable,
    ) -> None:
        self.out = folder / "stats.json"
        self.log = folder / "log"
        command = [python, Path(__file__).with_name(script), site.url, self.out]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*map(str, command), json.dumps(settings)], stderr=log
            )

    def stats(self) -> dict[str, Any]:
        """Waits for the end of the crawl and returns its stats."""
        assert self.process.wait(200) == 0, self.log.read_text()
        return json.loads(self.out.read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def crawl(site: Site, tmp_path: Path) -> Iterator[Callable[..., Crawl]]:
    """Starts a spider on the site: `crawl(SETTING=value)`, or with another script: `crawl(script)`."""
    started: list[Crawl] = []

    def start(*process: Any, **settings: Any) -> Crawl:
        folder = tmp_path / f"crawl-{len(started)}"
        folder.mkdir()
        started.append(Crawl(site, folder, settings, *process))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A Redis server with petal's module."""
    made = Server(tmp_path, "--loadmodule", str(MODULE))
    yield made
    made.stop()
