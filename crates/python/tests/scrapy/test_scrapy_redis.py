"""The duplicate filter with the scheduler of scrapy-redis, whose queue several spiders share."""

import json
import logging

import pytest
import redis
from conftest import CLASS, EmptySpider, numbered_request
from redis_server import MODULE, Server
from scrapy.settings import BaseSettings
from scrapy.utils.test import get_crawler
from scrapy_redis.scheduler import Scheduler

from petal.scrapy import DupeFilter
from petal.scrapy.connection import connect_like_scrapy_redis

SCHEDULER = CLASS | {"SCHEDULER": "scrapy_redis.scheduler.Scheduler", "SCHEDULER_PERSIST": True}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("server"), "--loadmodule", str(MODULE))
    yield made
    made.stop()


@pytest.fixture
def server(running):
    """A server without keys."""
    running.client.flushall()
    return running


def from_spider(**settings):
    """Creates the filter as the scheduler does."""
    crawler = get_crawler(EmptySpider, settings)
    crawler.spider = crawler._create_spider()
    return DupeFilter.from_spider(crawler.spider)


def open_scheduler(**settings):
    """Opens the scheduler of scrapy-redis with petal's filter, as Scrapy's engine does."""
    crawler = get_crawler(EmptySpider, SCHEDULER | {"SCHEDULER_PERSIST": False} | settings)
    crawler.spider = crawler._create_spider()
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    return scheduler


@pytest.mark.foreign
def test_schedulers_share_queue_and_filter(server):
    one, other = (open_scheduler(REDIS_URL=server.url, SCHEDULER_PERSIST=True) for _ in range(2))
    assert [one.enqueue_request(numbered_request(at)) for at in range(60)] == [True] * 60
    accepted = [other.enqueue_request(numbered_request(at)) for at in range(30, 90)]
    assert accepted == [False] * 30 + [True] * 30
    found = []
    while one.has_pending_requests():
        found += [one.next_request(), other.next_request()]
    urls = [request.url for request in found if request is not None]
    assert sorted(urls) == sorted(numbered_request(at).url for at in range(90))
    for scheduler in (one, other):
        scheduler.close("finished")
        scheduler.df.close("finished")
    # A process that starts later does not fetch them again.
    later = open_scheduler(REDIS_URL=server.url)
    assert not later.enqueue_request(numbered_request(0))
    later.close("finished")
    later.df.close("finished")
    assert not server.client.keys()


@pytest.mark.foreign
def test_flush_on_start_clears_queue_and_filter(server, caplog):
    first = open_scheduler(REDIS_URL=server.url, SCHEDULER_PERSIST=True)
    assert all(first.enqueue_request(numbered_request(at)) for at in range(10))
    first.df.close("finished")
    second = open_scheduler(REDIS_URL=server.url, SCHEDULER_FLUSH_ON_START=True, SCHEDULER_PERSIST=True)
    assert all(second.enqueue_request(numbered_request(at)) for at in range(10))
    assert len(second) == 10
    second.close("finished")
    second.df.close("finished")
    assert set(server.client.keys()) == {b"empty:dupefilter", b"empty:requests"}
    assert "was deleted" not in caplog.text


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
