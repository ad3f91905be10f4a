"""The duplicate filter with the scheduler of scrapy-redis, whose queue several spiders share."""

import json
import logging

import pytest
import redis
from conftest import CLASS, EmptySpider, numbered_request
from scrapy.settings import BaseSettings
from scrapy.utils.test import get_crawler

from petal.scrapy import DupeFilter
from petal.scrapy.connection import connect_like_scrapy_redis

SCHEDULER = CLASS | {"SCHEDULER": "scrapy_redis.scheduler.Scheduler", "SCHEDULER_PERSIST": True}
KEYS = {b"follow:dupefilter", b"follow:requests"}

# Seconds of work, but minutes on a busy machine.
pytestmark = pytest.mark.timeout(400)


def take_visits(site):
    """Visits of each page but the first, because start requests are not filtered."""
    return {page: number for page, number in site.take_visits().items() if page != 0}


def from_spider(**settings):
    """Creates the filter as the scheduler does."""
    crawler = get_crawler(EmptySpider, settings)
    crawler.spider = crawler._create_spider()
    return DupeFilter.from_spider(crawler.spider)


@pytest.mark.foreign
def test_spiders_with_a_shared_queue_visit_every_page_once(site, crawl, server):
    both = [crawl(**SCHEDULER, REDIS_URL=server.url) for _ in range(2)]
    stats = [one.stats() for one in both]
    assert take_visits(site) == {page: 1 for page in range(1, site.pages)}
    assert sum(one["petal/dupefilter/new_requests"] for one in stats) == site.pages
    assert all("overfull" not in one.log.read_text() for one in both)
    assert server.client.execute_command("BF.CARD", "follow:dupefilter") == site.pages


@pytest.mark.foreign
def test_another_process_continues_with_the_shared_queue(site, crawl, server):
    first = crawl(**SCHEDULER, REDIS_URL=server.url, CLOSESPIDER_PAGECOUNT=50)
    assert first.stats()["finish_reason"] == "closespider_pagecount"
    before = take_visits(site)
    assert server.client.zcard("follow:requests") > 0
    second = crawl(**SCHEDULER, REDIS_URL=server.url)
    assert second.stats()["finish_reason"] == "finished"
    after = take_visits(site)
    assert not before.keys() & after.keys()
    assert before | after == {page: 1 for page in range(1, site.pages)}
    assert "there is no JOBDIR" not in second.log.read_text()


@pytest.mark.foreign
@pytest.mark.parametrize("options", [{"SCHEDULER_PERSIST": False}, {"SCHEDULER_FLUSH_ON_START": True}])
def test_scheduler_clears_the_filter(site, crawl, server, options):
    server.client.execute_command("BF.ADD", "follow:requests-of-others", "kept")
    for _ in range(2):
        one = crawl(**(SCHEDULER | options), REDIS_URL=server.url)
        stats = one.stats()
        assert take_visits(site) == {page: 1 for page in range(1, site.pages)}
        assert stats["petal/dupefilter/inserted"] == site.pages
        assert "petal/dupefilter/server_errors" not in stats
        assert "was deleted" not in one.log.read_text()
    left = KEYS & set(server.client.keys())
    assert left == ({b"follow:dupefilter"} if "SCHEDULER_FLUSH_ON_START" in options else set())


@pytest.mark.foreign
def test_filter_that_another_spider_has_cleared_is_created_again(server, caplog):
    one, other = (from_spider(REDIS_URL=server.url) for _ in range(2))
    assert not one.request_seen(numbered_request(0))
    other.clear()
    other.close("finished")
    assert not one.request_seen(numbered_request(0))
    assert one.request_seen(numbered_request(0))
    assert caplog.text.count("was deleted from the server") == 1
    one.clear()
    one.close("finished")
    assert not [line for line in caplog.records if line.levelno > logging.WARNING]
    assert not server.client.keys()


@pytest.mark.foreign
@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, b"empty:dupefilter"),
        ({"SCHEDULER_DUPEFILTER_KEY": "all:%(spider)s:seen"}, b"all:empty:seen"),
        ({"SCHEDULER_DUPEFILTER_KEY": "a", "PETAL_DUPEFILTER_KEY": "b:{spider}"}, b"b:empty"),
    ],
)
def test_key_is_that_of_scrapy_redis_unless_set(server, settings, key):
    dupefilter = from_spider(REDIS_HOST="127.0.0.1", REDIS_PORT=server.port, **settings)
    assert server.client.keys() == [key]
    dupefilter.close("finished")


@pytest.mark.foreign
def test_filter_may_be_on_another_server(server):
    dupefilter = from_spider(REDIS_PORT=1, PETAL_DUPEFILTER_REDIS_URL=server.url)
    assert not dupefilter.request_seen(numbered_request(0))
    dupefilter.close("finished")


@pytest.mark.parametrize(("name", "value"), [("EXACT", True), ("MEMORY_LIMIT", "64M")])
def test_settings_of_a_filter_in_the_process_are_refused(name, value):
    expected = f"PETAL_DUPEFILTER_{name} and the scheduler of scrapy-redis: .*; remove one of them"
    with pytest.raises(ValueError, match=expected):
        from_spider(**{f"PETAL_DUPEFILTER_{name}": value})


def test_commands_are_never_repeated():
    settings = {"REDIS_URL": "redis://:word@host:7/3", "REDIS_PARAMS": {"socket_timeout": 2, "retry_on_timeout": True}}
    for given in (settings, settings | {"REDIS_PARAMS": json.dumps(settings["REDIS_PARAMS"])}):
        pool = connect_like_scrapy_redis(BaseSettings(given)).connection_pool
        connection = pool.make_connection()
        assert connection.retry._retries == 0
        assert (connection.host, connection.port, connection.db) == ("host", 7, 3)
        assert (connection.socket_timeout, connection.socket_connect_timeout) == (2, 5)


@pytest.mark.foreign
def test_set_of_scrapy_redis_own_filter_is_refused(server):
    server.client.sadd("empty:dupefilter", "a fingerprint")
    with pytest.raises(redis.ResponseError, match="key empty:dupefilter: WRONGTYPE"):
        from_spider(REDIS_URL=server.url)
