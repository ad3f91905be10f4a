"""The queue of `petal.scrapy.Scheduler` on a real server, and its settings."""

import re
import time
from types import SimpleNamespace

import pytest
import redis
from conftest import CLASS, EmptySpider, fingerprint, numbered_request
from redis_server import MODULE, Server
from scrapy.utils.test import get_crawler

from petal.scrapy import Scheduler
from petal.scrapy.connection import connect, connect_like_scrapy_redis, location, single_connection
from petal.scrapy.fleet_queue import FleetQueue
from petal.scrapy.reporter import Reporter

QUEUE = "q:requests"


@pytest.fixture
def join(server):
    """Joins the queue as another process: `join(lease=seconds)`."""

    def create():
        server.client.execute_command("PETAL.RESERVE", "q:filter", "0.000000001", 1000)

    def joined(lease=60):
        crawler = get_crawler(EmptySpider)
        made = FleetQueue(
            lambda: single_connection(connect(server.url)), (QUEUE, "q:filter"), lease, create, Reporter(crawler)
        )
        made.stats = crawler.stats
        made.extend_lease()
        return made

    create()
    return joined


def break_connections(server):
    for client in server.client.client_list():
        if client["cmd"] != "client|list":
            server.client.client_kill_filter(_id=client["id"])


@pytest.mark.foreign
def test_requests_are_taken_by_priority_and_added_once(join):
    one, other = join(), join()
    assert [one.add(fingerprint(at), -at, b"%d" % at) for at in range(3)] == [True] * 3
    assert not other.add(fingerprint(1), 0, b"again")
    assert other.add(None, 5, b"unfiltered")
    assert [one.take(), other.take(), one.take(), other.take(), one.take()] == [b"2", b"1", b"0", b"unfiltered", None]
    for data in (b"2", b"0"):
        one.finish(data)
    assert not one.is_finished()
    for data in (b"1", b"unfiltered"):
        other.finish(data)
    assert one.is_finished() and other.is_finished()


@pytest.mark.foreign
def test_requests_are_returned_when_the_lease_has_ended(join):
    killed, alive = join(lease=0.01), join()
    alive.add(fingerprint(1), 7, b"1")
    assert killed.take() == b"1"
    time.sleep(0.1)
    assert not alive.is_finished()
    assert alive.stats.get_value("petal/dupefilter/returned") == 1
    assert alive.take() == b"1"
    # It was only slow: the request is now that of the other process.
    killed.finish(b"1")
    assert not killed.is_finished()
    alive.finish(b"1")
    assert alive.is_finished()


@pytest.mark.foreign
def test_request_is_kept_while_the_process_lives(join):
    one, other = join(), join()
    one.add(fingerprint(1), 0, b"1")
    assert one.take() == b"1"
    assert (other.is_finished(), other.take()) == (False, None)
    one.close()
    assert other.take() == b"1"


@pytest.mark.foreign
def test_requests_in_progress_are_returned_after_a_broken_connection(join, server):
    one, other = join(), join()
    for at in range(3):
        one.add(fingerprint(at), at, b"%d" % at)
    assert [one.take(), one.take()] == [b"0", b"1"]
    one.finish(b"0")
    break_connections(server)
    one.extend_lease()
    assert one.stats.get_value("petal/dupefilter/server_errors") == 1
    # The server is not tried again at once: this change waits.
    one.finish(b"1")
    assert one.add(fingerprint(1), 0, b"again")
    for queue in (one, other):
        queue.close()
    third = join()
    assert [third.take(), third.take(), third.take()] == [b"1", b"2", None]


@pytest.mark.foreign
def test_taken_request_whose_reply_was_lost_is_returned(join):
    one = join()
    one.add(fingerprint(1), 0, b"1")
    assert one.take() == b"1"
    one._taken.clear()
    assert not one.is_finished()
    assert one.take() == b"1"


@pytest.mark.foreign
def test_changes_wait_for_the_server(join, server):
    one = join()
    server.stop()
    assert one.add(fingerprint(1), 0, b"1") and one.add(fingerprint(1), 0, b"1")
    assert (one.take(), one.is_finished()) == (None, False)
    # It has lost its data: the filter is created again.
    server.start()
    one._retry_at = 0
    assert [one.take(), one.take()] == [b"1", None]


def open_scheduler(**settings):
    """Opens the scheduler as Scrapy does; no request is in progress. Returns the stats too."""
    crawler = get_crawler(EmptySpider, CLASS | settings)
    crawler.spider = crawler._create_spider()
    crawler.engine = SimpleNamespace(_slot=None)
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    return scheduler, crawler.stats


def close(scheduler):
    scheduler.close("finished")
    scheduler.df.close("finished")


@pytest.mark.foreign
def test_request_that_cannot_be_read_stays_on_the_server(server):
    scheduler, stats = open_scheduler(REDIS_URL=server.url)
    server.client.zadd("empty:requests", {b"no pickle": -9})
    assert scheduler.enqueue_request(numbered_request(1))
    assert not scheduler.enqueue_request(numbered_request(1))
    assert not scheduler.enqueue_request(numbered_request(2).replace(callback=lambda _: None))
    assert scheduler.next_request().url == numbered_request(1).url
    assert not scheduler.has_pending_requests()
    assert server.client.smembers("empty:requests:not_restored") == {b"no pickle"}
    counts = [stats.get_value(f"petal/dupefilter/{name}") for name in ("not_restored", "not_pickled")]
    assert counts == [1, 1]
    close(scheduler)


@pytest.mark.foreign
def test_flush_on_start_deletes_queue_and_filter(server):
    for flush in (False, True):
        scheduler, _ = open_scheduler(REDIS_URL=server.url, SCHEDULER_FLUSH_ON_START=flush)
        assert not scheduler.has_pending_requests()
        assert scheduler.enqueue_request(numbered_request(1))
        close(scheduler)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"PETAL_DUPEFILTER_REDIS_URL": "redis://host"}, "REDIS_URL: cannot be used with petal.scrapy.Scheduler"),
        ({"PETAL_DUPEFILTER_WINDOW": 60}, "WINDOW: cannot be used with petal.scrapy.Scheduler"),
        ({"PETAL_DUPEFILTER_GROW": False}, "GROW: petal.scrapy.Scheduler needs a filter that grows"),
        ({"PETAL_SCHEDULER_LEASE": 0}, "PETAL_SCHEDULER_LEASE: expected an integer above 0, found 0"),
        (
            {"PETAL_SCHEDULER_LAESE": 60},
            "PETAL_SCHEDULER_LAESE: unknown setting; expected PETAL_SCHEDULER_LEASE",
        ),
        (
            {"PETAL_SCHEDULER_QUEUE_KEY": "q"},
            "PETAL_SCHEDULER_QUEUE_KEY: unknown setting; expected PETAL_SCHEDULER_LEASE",
        ),
    ],
)
def test_wrong_settings_are_refused(settings, expected, caplog):
    with pytest.raises(ValueError, match=re.escape(expected)):
        Scheduler.from_crawler(get_crawler(EmptySpider, settings))
    (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert line.name == "petal.scrapy" and line.getMessage().startswith("Scheduler cannot start: ")
    assert expected in line.getMessage()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("host", "expected host:port or a pair of them"),
        (("host",), "expected host:port or a pair of them"),
        (("host", "x"), "expected host:port or a pair of them"),
        (("host", "²"), "expected host:port or a pair of them"),
        ("host:99999", "expected host:port or a pair of them"),
        (":1", "expected host:port or a pair of them"),
        (("host", 1, "secret"), "expected host:port or a pair of them"),
        ({"host": "h", "password": "secret"}, "expected host:port or a pair of them"),
        ("redis://:secret@host", "expected host:port without a URL; user and password belong in SENTINEL_KWARGS"),
        ("redis://:secret@host:1", "expected host:port without a URL; user and password belong in SENTINEL_KWARGS"),
        (("u:secret@host", 1), "expected host:port without a URL; user and password belong in SENTINEL_KWARGS"),
    ],
)
def test_wrong_address_of_a_sentinel_is_refused_and_not_shown(given, expected):
    crawler = get_crawler(EmptySpider, {"REDIS_SENTINELS": ["a:1", given]})
    with pytest.raises(ValueError, match=re.escape(f"REDIS_SENTINELS[1]: {expected}")) as raised:
        connect_like_scrapy_redis(crawler.settings)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["SENTINEL_KWARGS", "REDIS_PARAMS", "REDIS_SENTINEL_PARAMS"])
def test_arguments_for_sentinels_are_a_dict(name):
    settings = get_crawler(EmptySpider, {"REDIS_SENTINELS": ["a:1"], name: "password=secret"}).settings
    with pytest.raises(ValueError, match=f"^{name}: expected a dict, or a text that is one in JSON$"):
        connect_like_scrapy_redis(settings)


def test_unknown_argument_for_sentinels_names_the_setting():
    settings = get_crawler(EmptySpider, {"REDIS_SENTINELS": ["a:1"], "SENTINEL_KWARGS": {"pasword": "secret"}}).settings
    with pytest.raises(ValueError, match="SENTINEL_KWARGS: redis-py refuses an argument: .*'pasword'") as raised:
        connect_like_scrapy_redis(settings)
    assert "secret" not in str(raised.value)


def test_addresses_of_sentinels_are_texts_or_pairs():
    for given in ["a:1,b:2"], [["a:1", "b:2"]], [[("a", 1), ["b", "2"]]]:
        settings = get_crawler(EmptySpider, {"REDIS_SENTINELS": given[0]}).settings
        sentinels = connect_like_scrapy_redis(settings).connection_pool.sentinel_manager.sentinels
        assert [location(one) for one in sentinels] == ["a:1", "b:2"]


class ProtectedSentinel(Server):
    """A sentinel of `primary` with only the user `asker`."""

    def __init__(self, folder, primary):
        folder.mkdir()
        self._config = folder / "sentinel.conf"
        self._config.write_text(
            f"sentinel monitor fleet 127.0.0.1 {primary.port} 1\n"
            "sentinel auth-user fleet crawler\n"
            "sentinel auth-pass fleet of-the-primary\n"
            "user asker on >of-the-sentinel +@all ~* &*\n"
            "user default off\n"
        )
        super().__init__(folder, program="valkey-server-9")

    def start(self):
        self.command = [self.command[0], str(self._config), "--sentinel", "--port", str(self.port)]
        self.client = redis.Redis(port=self.port, username="asker", password="of-the-sentinel")
        super().start()


@pytest.fixture
def protected(tmp_path):
    """A primary with only the user `crawler`, and its sentinel."""
    primary = Server(tmp_path, "--loadmodule", str(MODULE), program="valkey-server-9")
    primary.client.acl_setuser(
        "crawler", enabled=True, passwords=["+of-the-primary"], keys="*", channels="*", commands=["+@all"]
    )
    primary.client.acl_setuser("default", enabled=False)
    sentinel = ProtectedSentinel(tmp_path / "sentinel", primary)
    yield primary, sentinel
    for one in (primary, sentinel):
        one.stop()


PRIMARY = {"username": "crawler", "password": "of-the-primary"}
SENTINEL = {"username": "asker", "password": "of-the-sentinel"}


@pytest.mark.foreign
@pytest.mark.parametrize(
    "settings",
    [
        {"REDIS_SENTINEL_SERVICE": "fleet", "REDIS_PARAMS": PRIMARY},
        # As for scrapy-redis-sentinel.
        {"REDIS_SENTINEL_PARAMS": PRIMARY | {"service_name": "fleet", "db": 3}},
    ],
)
def test_sentinels_and_primary_with_users_and_passwords(protected, settings):
    primary, sentinel = protected
    address = ("127.0.0.1", sentinel.port)
    scheduler, _ = open_scheduler(REDIS_SENTINELS=[address], SENTINEL_KWARGS=SENTINEL, **settings)
    assert scheduler.enqueue_request(numbered_request(1))
    assert not scheduler.enqueue_request(numbered_request(1))
    assert scheduler.next_request().url == numbered_request(1).url
    close(scheduler)
    db = settings.get("REDIS_SENTINEL_PARAMS", {}).get("db", 0)
    keys = redis.Redis(port=primary.port, db=db, **PRIMARY).keys()
    assert b"empty:dupefilter" in keys


@pytest.mark.foreign
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"SENTINEL_KWARGS": {}}, "; set username and password of the sentinels in SENTINEL_KWARGS"),
        ({"SENTINEL_KWARGS": SENTINEL | {"password": "wrong-one"}}, "; set username and password of the sentinels in"),
        ({"REDIS_SENTINEL_SERVICE": "fleeet"}, "no primary 'fleeet' that is up: 127.0.0.1:{port}: knows fleet"),
        ({"REDIS_PARAMS": PRIMARY | {"password": "wrong-one"}}, "invalid username-password pair"),
    ],
)
def test_refused_password_of_a_sentinel_is_one_line(protected, changed, reason, caplog):
    _, sentinel = protected
    address = f"127.0.0.1:{sentinel.port}"
    settings = {"REDIS_SENTINELS": [address], "SENTINEL_KWARGS": SENTINEL, "REDIS_PARAMS": PRIMARY}
    settings |= {"REDIS_SENTINEL_SERVICE": "fleet"} | changed
    with pytest.raises(redis.RedisError):
        open_scheduler(**settings)
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert reason.format(port=sentinel.port) in line and "\n" not in line
    if "REDIS_PARAMS" not in changed:
        assert f"REDIS_SENTINELS: no primary '{settings['REDIS_SENTINEL_SERVICE']}' that is up: {address}: " in line
    assert "of-the-" not in line and "wrong-one" not in line


@pytest.mark.foreign
def test_server_that_is_no_sentinel_is_passed_over(protected):
    primary, sentinel = protected
    # It refuses the command of sentinels with an error that is not one of the connection.
    plain = f"127.0.0.1:{primary.port}"
    settings = get_crawler(
        EmptySpider,
        {"REDIS_SENTINELS": [plain], "SENTINEL_KWARGS": PRIMARY, "REDIS_SENTINEL_SERVICE": "fleet"},
    ).settings
    with pytest.raises(redis.RedisError, match=f"no primary 'fleet' that is up: {plain}: unknown command"):
        connect_like_scrapy_redis(settings).ping()
