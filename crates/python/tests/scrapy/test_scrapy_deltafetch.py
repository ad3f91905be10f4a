"""`DeltaFetch` skips pages that gave items in an earlier run, as scrapy-deltafetch does."""

import dbm.dumb
import json
import logging
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import EmptySpider, numbered_request
from scrapy import Request, signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.test import get_crawler

import petal
from petal.scrapy import DeltaFetch

sys.path.append(str(Path(__file__).parents[1]))
from environments import python_with

SCRIPT = "delta_process.py"
OTHER = ["scrapy-deltafetch==2.1.0", "scrapy==2.12.0", "w3lib==2.2.1", "twisted==24.11.0"]

# Seconds of work, but minutes on a busy machine.
pytestmark = pytest.mark.timeout(600)


def settings(folder, name="petal.scrapy.DeltaFetch", **more):
    base = {"SPIDER_MIDDLEWARES": {name: 100}, "DELTAFETCH_ENABLED": True, "DELTAFETCH_DIR": str(folder)}
    return base | {"CONCURRENT_REQUESTS": 1} | more


def reachable(site, stored):
    """The pages of a run in which the pages `stored` gave items before."""
    found, queue = set(), [0]
    while queue:
        page = queue.pop()
        if page not in found:
            found.add(page)
            queue += [other for other in site.links(page) if other % 7 == 0 or other not in stored]
    return found


def take_pages(site):
    return set(site.take_visits())


@pytest.fixture
def crawlers():
    """The crawlers of `opened`."""
    return []


@pytest.fixture
def opened(tmp_path, crawlers):
    """Opens the middleware as Scrapy does: `opened(SETTING=value)`."""
    made = []

    def build(arguments=(), **more):
        crawler = get_crawler(EmptySpider, settings(tmp_path / "delta", **more))
        crawler.spider = crawler._create_spider(**dict(arguments))
        crawlers.append(crawler)
        made.append(DeltaFetch.from_crawler(crawler))
        return made[-1]

    yield build
    for one in made:
        one._store._lock.close()


def odd_pages(site):
    return set(range(1, site.pages, 2))


@pytest.mark.parametrize("spider", ["DeltaSpider", "AsyncSpider"])
def test_pages_that_gave_items_are_skipped(site, crawl, tmp_path, spider):
    folder = tmp_path / "delta"
    first = crawl(SCRIPT, **settings(folder, SPIDER=spider)).stats()
    assert take_pages(site) == set(range(site.pages))
    assert first["deltafetch/stored"] == len(odd_pages(site))
    second = crawl(SCRIPT, **settings(folder, SPIDER=spider)).stats()
    expected = reachable(site, odd_pages(site))
    assert take_pages(site) == expected and len(expected) < site.pages
    # The first page is fetched twice: start requests are not filtered.
    links = (other for page in [0, *expected] for other in site.links(page))
    assert second["deltafetch/skipped"] == sum(other % 2 and other % 7 != 0 for other in links)
    for reset in ({"DELTAFETCH_RESET": True}, {"ARGUMENTS": {"deltafetch_reset": "1"}}):
        stats = crawl(SCRIPT, **settings(folder, SPIDER=spider, **reset)).stats()
        assert take_pages(site) == set(range(site.pages))
        assert stats["deltafetch/stored"] == first["deltafetch/stored"]
    crawl(SCRIPT, **settings(folder, SPIDER=spider, ARGUMENTS={"deltafetch_reset": "0"})).stats()
    assert take_pages(site) == expected


def test_runs_equal_those_of_scrapy_deltafetch_and_its_pages_are_imported(site, crawl, tmp_path):
    python = python_with(*OTHER)
    visits = {}
    for name in ("scrapy_deltafetch.DeltaFetch", "petal.scrapy.DeltaFetch"):
        folder = tmp_path / name
        runs = [{}, {}, {"ARGUMENTS": {"deltafetch_reset": "1"}}, {}]
        visits[name] = []
        for run in runs:
            stats = crawl(SCRIPT, python, **settings(folder, name, **run)).stats()
            visits[name].append((take_pages(site), stats.get("deltafetch/stored")))
    theirs, ours = visits.values()
    assert theirs == ours
    # The folder of the other package, with the present version of Scrapy.
    stats = crawl(SCRIPT, **settings(tmp_path / "scrapy_deltafetch.DeltaFetch")).stats()
    assert stats["deltafetch/imported"] == len(odd_pages(site))
    assert take_pages(site) == theirs[1][0]


def test_page_is_stored_only_when_its_items_have_left_the_pipelines(site, crawl, tmp_path):
    folder = tmp_path / "delta"
    crawl(SCRIPT, **settings(folder, FAIL_AT=13)).stats()
    assert take_pages(site) == set(range(site.pages))
    killed = crawl(SCRIPT, **settings(folder, FAIL_AT=13, KILL_AT=13))
    # Only page 13 was not stored: the second run fetches it again, and is killed by it.
    killed.process.wait(300)
    site.take_visits()
    stats = crawl(SCRIPT, **settings(folder)).stats()
    expected = reachable(site, odd_pages(site) - {13})
    assert take_pages(site) == expected
    assert stats["deltafetch/stored"] - 1 == sum(page % 14 == 7 for page in expected)


def test_page_whose_items_another_middleware_removes_is_not_stored(opened, crawlers, caplog):
    middleware = opened()
    send = crawlers[-1].signals.send_catch_log
    for at, signal in enumerate([signals.item_scraped, signals.item_dropped, signals.item_error, None]):
        response = Response(f"http://example.com/{at}", request=numbered_request(at))
        (item,) = middleware.process_spider_output(response, iter([{"at": at}]))
        if signal is not None:
            send(signal, item=item, response=response, spider=None)
    middleware._spider_closed()
    stored = [middleware._key(numbered_request(at)) in middleware._store for at in range(4)]
    assert stored == [True, True, False, False]
    found = [middleware._stats.get_value(f"deltafetch/{name}") for name in ("stored", "not_stored")]
    assert found == [2, 2]
    assert "did not store 2 pages that gave items" in caplog.text


def test_page_reached_by_a_redirect_is_skipped(opened, crawlers):
    middleware, page = opened(), Response("http://example.com/", request=Request("http://example.com/"))

    def wanted(request, of=page):
        return list(middleware.process_spider_output(of, iter([request]))) == [request]

    def give_item(request):
        response = Response(request.url, request=request)
        (item,) = middleware.process_spider_output(response, iter([{}]))
        crawlers[-1].signals.send_catch_log(signals.item_scraped, item=item, response=response, spider=None)
        return response

    def form(url):
        return Request(url, method="POST", body=b"a=1", meta=dict(page.meta))

    # As Scrapy's middleware redirects: meta stays, the method may change.
    old = form("http://example.com/old")
    assert wanted(old)
    new = give_item(old.replace(url="http://example.com/new", method="GET", body=b""))
    assert middleware._stats.get_value("deltafetch/stored") == 1
    assert not wanted(form("http://example.com/old")) and not wanted(Request("http://example.com/new"))
    # A callback that copies meta does not store the page it comes from.
    failed = Request("http://example.com/failed")
    assert wanted(failed)
    copies = Request("http://example.com/next", meta=dict(failed.meta))
    assert wanted(copies, new)
    give_item(copies)
    opts_out = Request("http://example.com/free", meta=dict(failed.meta) | {"deltafetch_enabled": False})
    assert wanted(opts_out)
    give_item(opts_out)
    assert wanted(failed) and not wanted(Request("http://example.com/next"))


def test_pages_survive_a_kill(site, crawl, tmp_path):
    folder = tmp_path / "delta"
    assert crawl(SCRIPT, **settings(folder, KILL_AT=99)).process.wait(300) == -9
    before = Counter(site.take_visits())
    crawl(SCRIPT, **settings(folder)).stats()
    after = take_pages(site)
    again = {page for page in before if page in after and page % 2 and page % 7}
    # The page at whose item the process was killed, and those that were fetched meanwhile.
    assert 99 in after and len(again) < len(before) / 4
    assert after == reachable(site, {page for page in before if page % 2} - again)


def test_exact_store_takes_no_page_for_another(opened):
    sizes = {"PETAL_DELTAFETCH_CAPACITY": 100, "PETAL_DELTAFETCH_FPR": 0.5}
    inexact = opened(**sizes)._store
    for at in range(100):
        inexact.add(b"%d" % at)
    assert all(b"%d" % at in inexact for at in range(100))
    assert any(b"%d" % at in inexact for at in range(100, 1000))
    inexact.close()
    with pytest.raises(petal.IncompatibleError, match="EXACT False, but the settings have True"):
        opened(PETAL_DELTAFETCH_EXACT=True, **sizes)
    for reset in (True, False):
        exact = opened(PETAL_DELTAFETCH_EXACT=True, DELTAFETCH_RESET=reset, **sizes)._store
        if reset:
            for at in range(100):
                exact.add(b"%d" % at)
        assert [at for at in range(1000) if b"%d" % at in exact] == list(range(100))
        # As if killed: nothing is saved.
        exact._lock.close()


def test_long_keys_and_binary_keys_are_kept(opened):
    keys = [b"", b"\xff\0", b"k" * 255, b"k" * 256, b"k" * 70_000]
    store = opened()._store
    for key in keys[1:]:
        store.add(key)
    store._lock.close()
    again = opened()._store
    assert [key in again for key in keys] == [False, True, True, True, True]
    assert b"k" * 257 not in again


def test_reset_that_was_killed_leaves_an_empty_store(opened, monkeypatch):
    store = opened()._store
    store.add(b"a")
    store.close()
    with monkeypatch.context() as patch:
        patch.setattr("petal.scrapy.snapshot_log.SnapshotLog.create", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            opened(DELTAFETCH_RESET=True)
    assert b"a" not in opened()._store


def test_full_disk_is_logged_once_and_the_crawl_continues(opened, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    store = opened()._store
    monkeypatch.setattr("petal.scrapy.snapshot_log.SnapshotLog.write", full)
    for at in range(3):
        store.add(b"%d" % at)
    assert b"2" in store
    errors = [line.getMessage() for line in caplog.records if line.levelno == logging.ERROR]
    assert len(errors) == 1 and "No space left on device): the next run may fetch" in errors[0]


def test_wrong_settings_and_a_second_process_are_refused(opened, tmp_path):
    with pytest.raises(ValueError, match="PETAL_DELTAFETCH_FPR: expected a number above 0 and below 1, found 2"):
        opened(PETAL_DELTAFETCH_FPR=2)
    with pytest.raises(ValueError, match="PETAL_DELTAFETCH_RATE: unknown setting; expected .*CAPACITY, FPR, EXACT"):
        opened(PETAL_DELTAFETCH_RATE=2)
    with pytest.raises(NotConfigured):
        opened(DELTAFETCH_ENABLED=False)
    one = opened()
    with pytest.raises(petal.InputError, match="empty.petal: another process uses it; .* DELTAFETCH_DIR"):
        opened()
    with pytest.raises(TypeError, match=r"meta\['deltafetch_key'\]: expected str or bytes, found 7: <GET"):
        one._key(numbered_request(1).replace(meta={"deltafetch_key": 7}))


def test_pages_of_scrapy_deltafetch_are_imported_once(opened, tmp_path):
    (tmp_path / "delta").mkdir()
    with dbm.dumb.open(str(tmp_path / "delta" / "empty.db"), "c") as pages:
        pages[b"a"] = "1"
    one = opened()
    assert (b"a" in one._store, one._stats.get_value("deltafetch/imported")) == (True, 1)
    one._store.close()
    assert b"a" not in opened(DELTAFETCH_RESET=True)._store


def test_docs_name_the_tested_versions():
    guides = Path(__file__).parents[4] / "docs/guides"
    pages = "".join((guides / name).read_text() for name in ["scrapy.md", "scrapy-fleets.md"])
    assert all(" ".join(package.split("==")) in pages for package in ["scrapy-redis==0.9.1", *OTHER[:1]])
