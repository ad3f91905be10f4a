"""Spiders that share a filter on a real Redis with petal's module.

They need `PETAL_PEERS`, the folder that `cargo x peers` fills, and the module, which is
`PETAL_MODULE` or what `cargo build -p petal-redis` made.
"""

import contextlib
import logging
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from conftest import CLASS, number
from test_scrapy_pending import Engine, kept

import petal

PEERS = os.environ.get("PETAL_PEERS")
ROOT = Path(__file__).parents[4]
MODULE = os.environ.get("PETAL_MODULE", ROOT / "target/debug/libpetal_redis.so")

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(400),
]


class Server:
    """A Redis on a port of its own, which keeps nothing."""

    def __init__(self, folder: Path, *words: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        plain = ["--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        port = ["--port", str(self.port)]
        self.command = [f"{PEERS}/bin/redis-server", *port, *plain, *words]
        self.client = redis.Redis.from_url(self.url)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        for _ in range(1000):
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.01)
        raise AssertionError("the server did not start")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def calls(self, command: str) -> int:
        return self.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path, "--loadmodule", str(MODULE))
    yield made
    made.stop()


def test_two_spiders_visit_every_page_once_in_all(site, crawl, server):
    words = CLASS | {"PETAL_DUPEFILTER_REDIS_URL": server.url, "PETAL_DUPEFILTER_KEY": "fleet"}
    both = [crawl(**words), crawl(**words)]
    stats = [one.stats() for one in both]
    visits = site.forget()
    assert visits.pop(0) <= 2 + 1
    assert visits == {page: 1 for page in range(1, site.pages)}
    assert max(one["petal/dupefilter/inserted"] for one in stats) == site.pages
    assert sum(one["petal/dupefilter/let_through"] for one in stats) == site.pages


def test_filters_with_one_key_are_one(ask, server):
    one, other = ask(REDIS_URL=server.url), ask(REDIS_URL=server.url)
    assert server.client.exists("bare:dupefilter")
    assert one.new(range(0, 100)) == list(range(0, 100))
    assert other.new(range(50, 150)) == list(range(100, 150))
    assert server.calls("bf.insert") == 200
    one.close()
    other.close()
    assert one.stat("inserted") == 150
    assert one.stat("let_through") == 100


def test_a_key_of_another_kind_is_refused(ask, server):
    ask(REDIS_URL=server.url).close()
    with pytest.raises(petal.IncompatibleError, match="of kind grow, window None; the"):
        ask(REDIS_URL=server.url, WINDOW=60)
    ask(REDIS_URL=server.url, WINDOW=60, KEY="{spider}:week").close()
    assert server.client.exists("bare:week")
    with pytest.raises(petal.IncompatibleError, match="of kind window, window 60"):
        ask(REDIS_URL=server.url, WINDOW=90, KEY="{spider}:week")
    words = "PETAL.RESERVE", "full", "0.0001", 4_000_000, "NONSCALING", "SATURATE"
    server.client.execute_command(*words)
    with pytest.raises(petal.IncompatibleError, match="key full: the filter there saturates"):
        ask(REDIS_URL=server.url, KEY="full", GROW=False)
    server.client.set("text", "no filter")
    with pytest.raises(redis.ResponseError, match="127.0.0.1:.*, key text"):
        ask(REDIS_URL=server.url, KEY="text")


def test_a_spider_without_a_jobdir_is_warned_that_a_stop_loses_its_queue(
    ask, server, tmp_path, caplog
):
    asked = ask(REDIS_URL=server.url)
    ask(REDIS_URL=server.url).close()
    asked.new(range(10))
    ask(REDIS_URL=server.url, JOBDIR=tmp_path / "job").close()
    assert "there is no JOBDIR" not in caplog.text
    ask(REDIS_URL=server.url).close()
    assert caplog.text.count("there is no JOBDIR") == 1
    asked.close()


def test_a_jobdir_of_a_fleet_goes_on_with_the_server_only(ask, server, tmp_path):
    words = {"JOBDIR": tmp_path / "job", "REDIS_URL": server.url}
    asked = ask(**words)
    assert asked.new(range(10)) == list(range(10))
    asked.close()
    asked = ask(**words)
    assert asked.new(range(20)) == list(range(10, 20))
    asked.close()
    with pytest.raises(petal.IncompatibleError, match="made with server True, the settings say F"):
        ask(JOBDIR=tmp_path / "job")
    # The server is asked about the rest.
    ask(**words, WINDOW=60, KEY="week").close()


def test_rates_are_sent_as_the_server_reads_them(ask, server):
    asked = ask(REDIS_URL=server.url, RATE="1e-06", GROW=False)
    asked.close()
    assert asked.stat("rate") == 1e-6
    assert asked.stat("kind") == "fixed"


def test_a_window_forgets_and_asking_does_not_renew(ask, server):
    asked = ask(REDIS_URL=server.url, WINDOW=3600, CAPACITY=1000)
    key = "bare:dupefilter"
    hours_ago = int((time.time() - 2 * 3600) * 1000)
    prints = [asked.filter._fingerprint(number(at)) for at in range(10)]
    server.client.execute_command("PETAL.SEENAT", key, hours_ago, *prints)
    assert asked.new(range(20)) == list(range(20))
    marked = server.calls("petal.seen")
    assert asked.new(range(20)) == []
    assert server.calls("petal.seen") == marked == 20
    asked.close()


def test_without_the_server_a_spider_goes_on_alone_and_ends(ask, server, caplog, monkeypatch):
    monkeypatch.setattr("petal.scrapy.fleet.PAUSE", 0.0)
    asked = ask(REDIS_URL=server.url)
    assert asked.new(range(10)) == list(range(10))
    server.stop()
    # What it had let through counts as new once more, and then no more.
    assert asked.new(range(20)) == list(range(20))
    assert asked.new(range(20)) == []
    assert asked.stat("alone") >= 20 and asked.stat("server_errors") > 0
    errors = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert len(errors) == 1 and "the server does not answer" in errors[0].getMessage()
    server.start()
    server.client.execute_command("PETAL.RESERVE", "bare:dupefilter", "0.001", 1000)
    assert asked.new(range(30)) == list(range(20, 30))
    assert server.client.execute_command("BF.CARD", "bare:dupefilter") == 10
    asked.close()


@pytest.mark.parametrize(("words", "seconds"), [("", 5), ("?socket_timeout=1", 1)])
def test_a_server_that_is_silent_or_down_has_as_long_as_the_url_says(ask, server, words, seconds):
    asked = ask(REDIS_URL=server.url + words)
    connection = asked.filter._tier._client.connection_pool.make_connection()
    assert (connection.socket_timeout, connection.socket_connect_timeout) == (seconds, seconds)
    asked.close()


def test_what_a_spider_let_through_alone_is_forgotten_with_the_window(ask, server, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("petal.scrapy.fleet.time", SimpleNamespace(monotonic=lambda: now[0]))
    asked = ask(REDIS_URL=server.url, WINDOW=3600, CAPACITY=1000)
    server.stop()
    assert asked.new(range(10)) == list(range(10))
    now[0] += 3599
    assert asked.new(range(10)) == []
    now[0] += 1
    assert asked.new(range(10)) == list(range(10))
    assert asked.new(range(10)) == []
    asked.close()


def test_a_filter_that_begins_anew_does_so_too_for_what_was_let_through_alone(
    ask, server, monkeypatch
):
    monkeypatch.setattr("petal.scrapy.fleet.PAUSE", 0.0)
    asked = ask(REDIS_URL=server.url)
    server.stop()
    assert asked.new(range(10)) == list(range(10))
    # It kept nothing. The first request that the spider cannot answer by itself finds that out.
    server.start()
    assert asked.new(range(10, 20)) == list(range(10, 20))
    assert asked.new(range(20)) == list(range(10))
    asked.close()


@pytest.mark.parametrize("words", [{}, {"WINDOW": 3600}])
def test_a_key_that_vanishes_is_made_again_as_the_settings_say(ask, server, caplog, words):
    asked = ask(REDIS_URL=server.url, CAPACITY=5000, RATE=1e-6, **words)
    assert asked.new(range(10)) == list(range(10))
    server.client.delete("bare:dupefilter")
    assert asked.new(range(20)) == list(range(20))
    assert "is gone from the server" in caplog.text
    assert asked.stat("server_errors") is None
    asked.close()
    assert (asked.stat("rate"), asked.stat("capacity")) == (1e-6, 5000)
    caplog.clear()
    ask(REDIS_URL=server.url, CAPACITY=5000, RATE=1e-6, **words).close()
    assert "stays as it was made" not in caplog.text
    ask(REDIS_URL=server.url, CAPACITY=5000, RATE=1e-3, **words).close()
    assert "stays as it was made: capacity 5000" in caplog.text


def test_a_server_that_refuses_is_told_from_one_that_is_away(ask, server, caplog):
    asked = ask(REDIS_URL=server.url)
    server.client.set("bare:dupefilter", "no filter")
    assert asked.new(range(5)) == list(range(5))
    assert "the server refuses the request (WRONGTYPE" in caplog.text
    asked.close()


def test_a_full_filter_on_the_server_raises_the_alarm_once_and_loses_nothing(ask, server, caplog):
    asked = ask(REDIS_URL=server.url, GROW=False, CAPACITY=100, RATE=0.0001)
    assert len(asked.new(range(200))) >= 199
    assert asked.new(range(200)) == []
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "is full (127.0.0.1:" in alarm.getMessage()
    asked.close()
    assert (asked.stat("overfull"), asked.stat("server_errors")) == (1, None)
    assert asked.stat("alone") >= 99


def test_a_fleet_tells_while_it_runs_also_of_a_window_that_is_too_full(
    ask, server, caplog, monkeypatch
):
    monkeypatch.setattr("petal.scrapy.fleet.STEP", 50)
    asked = ask(REDIS_URL=server.url, WINDOW=3600, CAPACITY=300, RATE=0.0001)
    # All in one part of the window, whose share is 100.
    asked.new(range(95))
    assert 80 <= asked.stat("inserted") <= asked.stat("let_through") + 1
    assert asked.stat("overfull") is None and "is full" not in caplog.text
    asked.new(range(95, 107))
    assert asked.stat("overfull") == 1 and "has its share of 100" in caplog.text
    asked.new(range(107, 600))
    assert caplog.text.count("Duplicate filter on the server is full") == 1
    asked.close()


def test_a_part_of_a_window_that_was_too_full_is_told_later_too(ask, server, caplog):
    asked = ask(REDIS_URL=server.url, WINDOW=3600, CAPACITY=3000, RATE=0.0001)
    # Another spider did it, twenty-five minutes ago: the newest part has little.
    then = int((time.time() - 25 * 60) * 1000)
    others = [b"%d" % at for at in range(1200)]
    server.client.execute_command("PETAL.SEENAT", "bare:dupefilter", then, *others)
    asked.new(range(10))
    assert asked.stat("overfull") is None
    asked.close()
    assert asked.stat("overfull") == 1


class Killed(BaseException):
    """In the place of a signal that a process does not survive."""


@pytest.mark.parametrize("words", [{}, {"WINDOW": 3600}])
def test_a_kill_around_the_servers_answer_loses_nothing(ask, server, tmp_path, words):
    words = {"REDIS_URL": server.url, "JOBDIR": tmp_path / "job"} | words
    found = []
    for at, when in enumerate(["before", "after"] * 3):
        asked = ask(**words)
        engine = Engine(asked)
        found += engine.urls()
        while engine.scheduler.next_request() is not None:
            pass
        sent = asked.filter._tier._ask

        def ask_and_die(command, *rest, sent=sent, when=when):
            marks = command in ("BF.INSERT", "PETAL.SEEN")
            if marks and when == "before":
                raise Killed
            answer = sent(command, *rest)
            if marks:
                raise Killed
            return answer

        asked.filter._tier._ask = ask_and_die
        with pytest.raises(Killed):
            engine.crawl(number(at))
        asked.kill()
    asked = ask(**words)
    found += Engine(asked).urls()
    assert sorted(found) == [number(at).url for at in range(6)]
    asked.close()


def test_an_intent_is_withdrawn_if_another_spider_is_first(ask, server, tmp_path):
    asked = ask(REDIS_URL=server.url, JOBDIR=tmp_path / "job")
    other = ask(REDIS_URL=server.url)
    engine = Engine(asked)
    sent = asked.filter._tier._ask

    def ask_late(command, *rest):
        if command == "BF.INSERT":
            assert kept(tmp_path / "job") == 1
            assert other.new(range(1)) == [0]
        return sent(command, *rest)

    asked.filter._tier._ask = ask_late
    engine.crawl(number(0))
    assert (engine.urls(), kept(tmp_path / "job")) == ([], 0)
    asked.filter._tier._ask = sent
    # One that waits, of an earlier run or of this one, is no intent.
    engine.crawl(number(1))
    engine.crawl(number(1))
    assert (len(engine.urls()), kept(tmp_path / "job")) == (1, 1)
    server.client.delete("bare:dupefilter")
    engine.crawl(number(1))
    assert (len(engine.urls()), kept(tmp_path / "job")) == (2, 1)
    asked.close()
    other.close()


class Slow:
    """A way to a server on which answers take some milliseconds."""

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
def test_a_spider_of_a_fleet_that_is_killed_again_and_again_loses_no_page(
    site, crawl, server, tmp_path, window
):
    slow = Slow(server.port, 0.004)
    words = CLASS | {
        "PETAL_DUPEFILTER_REDIS_URL": slow.url,
        "PETAL_DUPEFILTER_KEY": "fleet",
        "JOBDIR": str(tmp_path / "job"),
    }
    if window is not None:
        words["PETAL_DUPEFILTER_WINDOW"] = window
    kills, before = 0, 0
    while kills < 12:
        one = crawl(**words)
        # As soon as it has fetched some pages more.
        while len(site.visits) < min(before + 12, site.pages) and one.process.poll() is None:
            time.sleep(0.002)
        before = len(site.visits)
        if one.process.poll() is not None:
            break
        time.sleep(0.003 * (kills % 4))
        one.kill()
        kills += 1
    crawl(**words).stats()
    visits = site.forget()
    slow.close()
    assert kills >= 5
    assert set(visits) == set(range(site.pages))
    assert sum(visits.values()) <= site.pages + kills * 60


def test_a_server_without_the_module_and_none_at_all_are_told(ask, tmp_path):
    plain = Server(tmp_path)
    try:
        with pytest.raises(redis.ResponseError, match="has not petal's module"):
            ask(REDIS_URL=plain.url)
    finally:
        plain.stop()
    with pytest.raises(redis.ConnectionError):
        ask(REDIS_URL=plain.url)
