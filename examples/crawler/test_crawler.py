"""The crawler on its generated site: each page once, also after a kill."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import wait_until

PROGRAM = "petal-example-crawler"
HOSTS = 8
SETS = ["petal", "hashset", "sqlite"]


class Site:
    """The generated site, in a process of its own."""

    def __init__(self, proxy: str, pages: int) -> None:
        self.proxy = proxy
        self.starts = [f"http://s{n}.example/~shop/caf%C3%A9/{n}" for n in range(min(pages, HOSTS))]

    def counts(self) -> dict[str, int]:
        """Returns what was requested so far."""
        with urllib.request.urlopen(f"{self.proxy}/counts") as response:
            return figures(response.read().decode())

    def command(self, *options: str | Path) -> list[str | Path]:
        """Returns the command of a crawl."""
        delay = [] if "--delay" in options else ["--delay", "0"]
        return [PROGRAM, "--figures", "--proxy", self.proxy, *delay, *options, *self.starts]

    def crawl(self, *options: str | Path) -> dict[str, int]:
        """Crawls to the end and returns the figures of the crawl."""
        return figures(subprocess.run(self.command(*options), check=True, capture_output=True, text=True).stdout)


def figures(text: str) -> dict[str, int]:
    """Parses lines `NAME VALUE`."""
    return {name: int(float(value)) for name, value in (line.split() for line in text.splitlines())}


@contextmanager
def site(pages: int) -> Iterator[Site]:
    """Serves the site until the end of the block."""
    command = [PROGRAM, "--serve", "--pages", str(pages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield Site(re.search(r"proxy: (\S+)", server.stdout.readline())[1], pages)
        server.stdin.close()


@pytest.mark.parametrize("visited", SETS)
def test_each_page_is_fetched_once(visited: str, tmp_path: Path):
    with site(3000) as served:
        crawl = served.crawl("--visited", visited, "--state", tmp_path)
        counts = served.counts()
    assert (counts["once"], counts["repeated"], counts["missed"]) == (3000, 0, 0)
    assert (counts["forbidden"], counts["unknown"], counts["robots"]) == (0, 0, HOSTS)
    assert crawl["fetched"] == 3000 + counts["calendar"] + counts["redirects"]
    # The calendar ends at the depth limit: on each host the first month, and 39 in each direction.
    assert 0 < counts["calendar"] <= HOSTS * (1 + 2 * 39)
    queued = [line for queue in (tmp_path / "queues").iterdir() for line in queue.read_text().splitlines()]
    assert len(queued) == len({line.split()[1] for line in queued})


@pytest.mark.parametrize("visited", SETS)
def test_killed_crawl_loses_no_page(visited: str, tmp_path: Path):
    snapshot, threads = 300, 4
    options = ["--visited", visited, "--state", tmp_path, "--snapshot", str(snapshot), "--threads", str(threads)]
    with site(4000) as served:
        for fetched in (700, 2100):
            with subprocess.Popen(served.command(*options), stdout=subprocess.DEVNULL) as crawl:
                wait_until(lambda: crawl.poll() is not None or served.counts()["once"] >= fetched, "pages are fetched")
                crawl.kill()
            assert crawl.returncode == -signal.SIGKILL
        assert served.counts()["missed"] > 0
        served.crawl(*options)
        counts = served.counts()
    assert counts["missed"] == 0
    # For each kill: the pages since the last snapshot, and those being fetched.
    assert counts["repeated"] <= 2 * (snapshot + threads)


def test_pages_of_earlier_runs_are_not_reported_as_missed(tmp_path: Path):
    def run(*options: str) -> str:
        command = [PROGRAM, "--pages", "300", "--state", tmp_path, *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    first = re.search(r"pages of the site: (\d+) fetched once, 0 repeated, (\d+) missed;", run("--max-pages", "100"))
    assert first
    assert int(first[1]) + int(first[2]) == 300
    rest = re.search(r"in this run: (\d+) fetched once, 0 repeated, (\d+) not fetched: in earlier runs", run())
    assert rest
    assert (rest[1], rest[2]) == (first[2], first[1])


def test_without_rules_the_crawl_does_not_end(tmp_path: Path):
    with site(100) as served:
        crawl = served.crawl("--strip", "none", "--max-pages", "2000", "--state", tmp_path)
        counts = served.counts()
    assert crawl["fetched"] == 2000
    assert counts["repeated"] > 100


def test_depth_of_a_path_is_limited(tmp_path: Path):
    with site(100) as served:
        served.crawl("--depth-of", "/calendar/=2", "--state", tmp_path)
        counts = served.counts()
    # On each host the month that the pages link to, the one before and the one after it.
    assert counts["calendar"] == 3 * HOSTS
    assert counts["missed"] == 0


def test_high_rate_misses_few_pages_and_repeats_none(tmp_path: Path):
    with site(5000) as served:
        served.crawl("--fpr", "0.01", "--state", tmp_path)
        counts = served.counts()
    assert counts["repeated"] == 0
    # At most 1 % of the pages, and those to which only they link.
    assert counts["missed"] < 100


def test_hosts_are_not_asked_faster_than_allowed(tmp_path: Path):
    with site(24) as served:
        served.crawl("--delay", "0.05", "--depth-of", "/calendar/=0", "--state", tmp_path)
        counts = served.counts()
    assert counts["missed"] == 0
    # The delay begins when the response has arrived, which is after the site has noted the request.
    assert counts["shortest_gap_us"] >= 50_000


def test_wrong_use_is_an_error(tmp_path: Path):
    def error(*args: str | Path) -> str:
        ran = subprocess.run([PROGRAM, *args], capture_output=True, text=True)
        assert ran.returncode == 2
        return ran.stderr

    assert "expected a URL such as http://www.example.org/" in error("www.example.org")
    assert "expected a rate between 0 and 1" in error("--fpr", "7")
    (tmp_path / "visited.petal").write_text("damaged")
    message = error("--state", tmp_path, "http://127.0.0.1:9/")
    assert "visited.petal: not a petal file" in message and "delete this file" in message
