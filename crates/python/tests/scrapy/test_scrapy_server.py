"""Spiders that share a filter on a real Redis with petal's module."""

import contextlib
import logging
import socket
import threading
import time
from types import SimpleNamespace

import pytest
import redis
from conftest import CLASS, numbered_request
from redis_server import Server
from test_scrapy_pending import Engine, count_pending

import petal

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(400),
]


def test_two_spiders_visit_every_page_once_together(site, crawl, server):
    settings = CLASS | {"PETAL_DUPEFILTER_REDIS_URL": server.url, "PETAL_DUPEFILTER_KEY": "fleet"}
    both = [crawl(**settings), crawl(**settings)]
    stats = [one.stats() for one in both]
    visits = site.take_visits()
    assert visits.pop(0) <= 2 + 1
    assert visits == {page: 1 for page in range(1, site.pages)}
    assert max(one["petal/dupefilter/inserted"] for one in stats) == site.pages
    assert sum(one["petal/dupefilter/new_requests"] for one in stats) == site.pages


def test_filters_with_the_same_key_share_requests(open_filter, server):
    one, other = open_filter(REDIS_URL=server.url), open_filter(REDIS_URL=server.url)
    assert server.client.exists("empty:dupefilter")
    assert one.new(range(0, 100)) == list(range(0, 100))
    assert other.new(range(50, 150)) == list(range(100, 150))
    assert server.calls("bf.insert") == 200
    one.close()
    other.close()
    assert one.stat("inserted") == 150
    assert one.stat("new_requests") == 100


def test_existing_filter_of_another_kind_is_refused(open_filter, server):
    open_filter(REDIS_URL=server.url).close()
    with pytest.raises(petal.IncompatibleError, match="of kind grow, window None; the"):
        open_filter(REDIS_URL=server.url, WINDOW=60)
    open_filter(REDIS_URL=server.url, WINDOW=60, KEY="{spider}:week").close()
    assert server.client.exists("empty:week")
    with pytest.raises(petal.IncompatibleError, match="of kind window, window 60"):
        open_filter(REDIS_URL=server.url, WINDOW=90, KEY="{spider}:week")
    command = "PETAL.RESERVE", "full", "0.0001", 4_000_000, "NONSCALING", "SATURATE"
    server.client.execute_command(*command)
    with pytest.raises(petal.IncompatibleError, match="key full: the existing filter saturates"):
        open_filter(REDIS_URL=server.url, KEY="full", GROW=False)
    server.client.set("text", "not a filter")
    with pytest.raises(redis.ResponseError, match="127.0.0.1:.*, key text"):
        open_filter(REDIS_URL=server.url, KEY="text")


def test_joining_without_jobdir_logs_a_warning(
    open_filter, server, tmp_path, caplog
):
    dupefilter = open_filter(REDIS_URL=server.url)
    open_filter(REDIS_URL=server.url).close()
    dupefilter.new(range(10))
    open_filter(REDIS_URL=server.url, JOBDIR=tmp_path / "job").close()
    assert "there is no JOBDIR" not in caplog.text
    open_filter(REDIS_URL=server.url).close()
    assert caplog.text.count("there is no JOBDIR") == 1
    dupefilter.close()


def test_jobdir_of_a_server_filter_needs_the_server(open_filter, server, tmp_path):
    settings = {"JOBDIR": tmp_path / "job", "REDIS_URL": server.url}
    dupefilter = open_filter(**settings)
    assert dupefilter.new(range(10)) == list(range(10))
    dupefilter.close()
    dupefilter = open_filter(**settings)
    assert dupefilter.new(range(20)) == list(range(10, 20))
    dupefilter.close()
    with pytest.raises(petal.IncompatibleError, match="with server True, but the settings have F"):
        open_filter(JOBDIR=tmp_path / "job")
    # The server has the other settings.
    open_filter(**settings, WINDOW=60, KEY="week").close()


def test_fpr_is_sent_without_exponent(open_filter, server):
    dupefilter = open_filter(REDIS_URL=server.url, FPR="1e-06", GROW=False)
    dupefilter.close()
    assert dupefilter.stat("target_fpr") == 1e-6
    assert dupefilter.stat("kind") == "fixed"


def test_lookups_do_not_prolong_the_window(open_filter, server):
    dupefilter = open_filter(REDIS_URL=server.url, WINDOW=3600, CAPACITY=1000)
    key = "empty:dupefilter"
    hours_ago = int((time.time() - 2 * 3600) * 1000)
    fingerprints = [dupefilter.filter._fingerprint(numbered_request(at)) for at in range(10)]
    server.client.execute_command("PETAL.SEENAT", key, hours_ago, *fingerprints)
    assert dupefilter.new(range(20)) == list(range(20))
    added = server.calls("petal.seen")
    assert dupefilter.new(range(20)) == []
    assert server.calls("petal.seen") == added == 20
    dupefilter.close()


def test_spider_continues_without_the_server(open_filter, server, caplog, monkeypatch):
    monkeypatch.setattr("petal.scrapy.server.MIN_PAUSE", 0.0)
    dupefilter = open_filter(REDIS_URL=server.url)
    assert dupefilter.new(range(10)) == list(range(10))
    server.stop()
    # Its earlier requests are new once more.
    assert dupefilter.new(range(20)) == list(range(20))
    assert dupefilter.new(range(20)) == []
    assert dupefilter.stat("decided_locally") >= 20 and dupefilter.stat("server_errors") > 0
    errors = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert len(errors) == 1 and "the server does not answer" in errors[0].getMessage()
    server.start()
    server.client.execute_command("PETAL.RESERVE", "empty:dupefilter", "0.001", 1000)
    assert dupefilter.new(range(30)) == list(range(20, 30))
    assert server.client.execute_command("BF.CARD", "empty:dupefilter") == 10
    dupefilter.close()


@pytest.mark.parametrize(("query", "seconds"), [("", 5), ("?socket_timeout=1", 1)])
def test_socket_timeout_of_the_url_is_used(open_filter, server, query, seconds):
    dupefilter = open_filter(REDIS_URL=server.url + query)
    connection = dupefilter.filter._backend.client.connection_pool.make_connection()
    assert (connection.socket_timeout, connection.socket_connect_timeout) == (seconds, seconds)
    dupefilter.close()


def test_local_fallback_ends_with_the_window(open_filter, server, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("petal.scrapy.server.time", SimpleNamespace(monotonic=lambda: now[0]))
    dupefilter = open_filter(REDIS_URL=server.url, WINDOW=3600, CAPACITY=1000)
    server.stop()
    assert dupefilter.new(range(10)) == list(range(10))
    now[0] += 3599
    assert dupefilter.new(range(10)) == []
    now[0] += 1
    assert dupefilter.new(range(10)) == list(range(10))
    assert dupefilter.new(range(10)) == []
    dupefilter.close()


def test_local_fallback_ends_when_the_filter_is_created_again(
    open_filter, server, monkeypatch
):
    monkeypatch.setattr("petal.scrapy.server.MIN_PAUSE", 0.0)
    dupefilter = open_filter(REDIS_URL=server.url)
    server.stop()
    assert dupefilter.new(range(10)) == list(range(10))
    # The server has no persistence: the next request that is new to the fallback finds no filter.
    server.start()
    assert dupefilter.new(range(10, 20)) == list(range(10, 20))
    assert dupefilter.new(range(20)) == list(range(10))
    dupefilter.close()


@pytest.mark.parametrize("options", [{}, {"WINDOW": 3600}])
def test_deleted_filter_is_created_again_with_the_settings(open_filter, server, caplog, options):
    dupefilter = open_filter(REDIS_URL=server.url, CAPACITY=5000, FPR=1e-6, **options)
    assert dupefilter.new(range(10)) == list(range(10))
    server.client.delete("empty:dupefilter")
    assert dupefilter.new(range(20)) == list(range(20))
    assert "was deleted from the server" in caplog.text
    assert dupefilter.stat("server_errors") is None
    dupefilter.close()
    assert (dupefilter.stat("target_fpr"), dupefilter.stat("capacity")) == (1e-6, 5000)
    caplog.clear()
    open_filter(REDIS_URL=server.url, CAPACITY=5000, FPR=1e-6, **options).close()
    assert "keeps its size" not in caplog.text
    open_filter(REDIS_URL=server.url, CAPACITY=5000, FPR=1e-3, **options).close()
    assert "keeps its size: capacity 5000" in caplog.text


def test_refused_command_is_logged_with_its_reason(open_filter, server, caplog):
    dupefilter = open_filter(REDIS_URL=server.url)
    server.client.set("empty:dupefilter", "not a filter")
    assert dupefilter.new(range(5)) == list(range(5))
    assert "the server refuses the request (WRONGTYPE" in caplog.text
    dupefilter.close()


def test_full_filter_on_the_server_raises_one_alarm_and_loses_nothing(open_filter, server, caplog):
    dupefilter = open_filter(REDIS_URL=server.url, GROW=False, CAPACITY=100, FPR=0.0001)
    assert len(dupefilter.new(range(200))) >= 199
    assert dupefilter.new(range(200)) == []
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "is full (127.0.0.1:" in alarm.getMessage()
    dupefilter.close()
    assert (dupefilter.stat("overfull"), dupefilter.stat("server_errors")) == (1, None)
    assert dupefilter.stat("decided_locally") >= 99


def test_overfull_window_on_the_server_raises_the_alarm_during_the_run(
    open_filter, server, caplog, monkeypatch
):
    monkeypatch.setattr("petal.scrapy.server.CHECK_INTERVAL", 50)
    dupefilter = open_filter(REDIS_URL=server.url, WINDOW=3600, CAPACITY=300, FPR=0.0001)
    # All in one part of the window, whose share of the capacity is 100.
    dupefilter.new(range(95))
    assert 80 <= dupefilter.stat("inserted") <= dupefilter.stat("new_requests") + 1
    assert dupefilter.stat("overfull") is None and "is full" not in caplog.text
    dupefilter.new(range(95, 107))
    assert dupefilter.stat("overfull") == 1 and "has its share of 100" in caplog.text
    dupefilter.new(range(107, 600))
    assert caplog.text.count("Duplicate filter on the server is full") == 1
    dupefilter.close()


def test_older_overfull_part_of_a_window_raises_the_alarm(open_filter, server, caplog):
    dupefilter = open_filter(REDIS_URL=server.url, WINDOW=3600, CAPACITY=3000, FPR=0.0001)
    # By another spider, 25 minutes ago, so the newest part is not full.
    then = int((time.time() - 25 * 60) * 1000)
    others = [b"%d" % at for at in range(1200)]
    server.client.execute_command("PETAL.SEENAT", "empty:dupefilter", then, *others)
    dupefilter.new(range(10))
    assert dupefilter.stat("overfull") is None
    dupefilter.close()
    assert dupefilter.stat("overfull") == 1


class Killed(BaseException):
    """Simulates a kill at this point."""


@pytest.mark.parametrize("options", [{}, {"WINDOW": 3600}])
def test_kill_before_or_after_the_servers_answer_loses_nothing(
    open_filter, server, tmp_path, options
):
    settings = {"REDIS_URL": server.url, "JOBDIR": tmp_path / "job"} | options
    found = []
    for at, when in enumerate(["before", "after"] * 3):
        dupefilter = open_filter(**settings)
        engine = Engine(dupefilter)
        found += engine.urls()
        while engine.scheduler.next_request() is not None:
            pass
        sent = dupefilter.filter._backend._command

        def command_and_kill(command, *args, sent=sent, when=when):
            adds = command in ("BF.INSERT", "PETAL.SEEN")
            if adds and when == "before":
                raise Killed
            answer = sent(command, *args)
            if adds:
                raise Killed
            return answer

        dupefilter.filter._backend._command = command_and_kill
        with pytest.raises(Killed):
            engine.crawl(numbered_request(at))
        dupefilter.kill()
    dupefilter = open_filter(**settings)
    found += Engine(dupefilter).urls()
    assert sorted(found) == [numbered_request(at).url for at in range(6)]
    dupefilter.close()


def test_intent_is_withdrawn_if_another_spider_is_first(open_filter, server, tmp_path):
    dupefilter = open_filter(REDIS_URL=server.url, JOBDIR=tmp_path / "job")
    other = open_filter(REDIS_URL=server.url)
    engine = Engine(dupefilter)
    sent = dupefilter.filter._backend._command

    def command_late(command, *args):
        if command == "BF.INSERT":
            assert count_pending(tmp_path / "job") == 1
            assert other.new(range(1)) == [0]
        return sent(command, *args)

    dupefilter.filter._backend._command = command_late
    engine.crawl(numbered_request(0))
    assert (engine.urls(), count_pending(tmp_path / "job")) == ([], 0)
    dupefilter.filter._backend._command = sent
    # A waiting request is not an intent, and stays.
    engine.crawl(numbered_request(1))
    engine.crawl(numbered_request(1))
    assert (len(engine.urls()), count_pending(tmp_path / "job")) == (1, 1)
    server.client.delete("empty:dupefilter")
    engine.crawl(numbered_request(1))
    assert (len(engine.urls()), count_pending(tmp_path / "job")) == (2, 1)
    dupefilter.close()
    other.close()


class SlowProxy:
    """A proxy of a server that delays replies."""

    def __init__(self, port: int, delay: float) -> None:
        self._port, self._delay = port, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            for parts in ((client, server, 0.0), (server, client, self._delay)):
                threading.Thread(target=self._pass_on, args=parts, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket, delay: float) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(delay)
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()


@pytest.mark.parametrize("window", [None, 3600])
def test_repeatedly_killed_spider_with_a_server_loses_no_page(
    site, crawl, server, tmp_path, window
):
    slow = SlowProxy(server.port, 0.004)
    settings = CLASS | {
        "PETAL_DUPEFILTER_REDIS_URL": slow.url,
        "PETAL_DUPEFILTER_KEY": "fleet",
        "JOBDIR": str(tmp_path / "job"),
    }
    if window is not None:
        settings["PETAL_DUPEFILTER_WINDOW"] = window
    kills, before = 0, 0
    while kills < 12:
        one = crawl(**settings)
        # Until it has fetched 12 more pages.
        while len(site.visits) < min(before + 12, site.pages) and one.process.poll() is None:
            time.sleep(0.002)
        before = len(site.visits)
        if one.process.poll() is not None:
            break
        time.sleep(0.003 * (kills % 4))
        one.kill()
        kills += 1
    crawl(**settings).stats()
    visits = site.take_visits()
    slow.close()
    assert kills >= 5
    assert set(visits) == set(range(site.pages))
    assert sum(visits.values()) <= site.pages + kills * 60


def test_missing_module_and_missing_server_are_errors(open_filter, tmp_path):
    plain = Server(tmp_path)
    try:
        with pytest.raises(redis.ResponseError, match="has not loaded petal's module"):
            open_filter(REDIS_URL=plain.url)
    finally:
        plain.stop()
    with pytest.raises(redis.ConnectionError):
        open_filter(REDIS_URL=plain.url)
