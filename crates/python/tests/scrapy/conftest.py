"""What the tests of the duplicate filter share."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import Site
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler

from petal.scrapy import DupeFilter

STOCK = ("JOBDIR", "DUPEFILTER_DEBUG", "REQUEST_FINGERPRINTER_CLASS", "STATS_CLASS")
CLASS = {"DUPEFILTER_CLASS": "petal.scrapy.DupeFilter"}


class Bare(Spider):
    name = "bare"


def number(at: int) -> Request:
    """A request, another one for every number."""
    return Request(f"http://example.com/{at}")


def fingerprint(at: int) -> bytes:
    """Twenty bytes, others for every number."""
    return hashlib.sha1(b"%d" % at).digest()


class Asked:
    """A duplicate filter that is open, with the crawler that it belongs to.

    `new(numbers)` asks for them, and tells which were let through.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.crawler = get_crawler(Bare, settings)
        self.crawler.spider = self.crawler._create_spider()
        self.filter = DupeFilter.from_crawler(self.crawler)
        self.filter.open()

    def new(self, numbers: range) -> list[int]:
        return [at for at in numbers if not self.filter.request_seen(number(at))]

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"petal/dupefilter/{name}")

    def close(self, reason: str = "finished") -> None:
        self.filter.close(reason)

    def kill(self) -> None:
        """Ends it as a kill does: what the process held is gone, its lock too."""
        self.filter._jobdir.close()


@pytest.fixture
def ask() -> Callable[..., Asked]:
    """Opens a filter: `ask(CAPACITY=1000, JOBDIR=path)`; petal's settings without their prefix."""

    def opened(**words: Any) -> Asked:
        stock = {name: words.pop(name) for name in STOCK if name in words}
        ours = {f"PETAL_DUPEFILTER_{name}": value for name, value in words.items()}
        return Asked({name: str(value) for name, value in (stock | ours).items()})

    return opened


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site(300)
    yield made
    made.close()


class Crawl:
    """A spider in a process of its own that follows all links of a site."""

    def __init__(self, site: Site, folder: Path, settings: dict[str, Any]) -> None:
        self.out = folder / "stats.json"
        self.log = folder / "log"
        words = [str(Path(__file__).with_name("crawl.py")), site.url, self.out]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *map(str, words), json.dumps(settings)], stderr=log
            )

    def stats(self) -> dict[str, Any]:
        """Waits for its end."""
        assert self.process.wait(200) == 0, self.log.read_text()
        return json.loads(self.out.read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def crawl(site: Site, tmp_path: Path) -> Iterator[Callable[..., Crawl]]:
    """Starts a spider on the site: `crawl(SETTING=value)`."""
    started: list[Crawl] = []

    def start(**settings: Any) -> Crawl:
        folder = tmp_path / f"crawl-{len(started)}"
        folder.mkdir()
        started.append(Crawl(site, folder, settings))
        return started[-1]

    yield start
    for one in started:
        one.kill()
