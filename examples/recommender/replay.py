"""Visits of many users, replayed into windows and into the other ways to remember shown items."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import hiredis
import redis
import support
from shown import Shown

DAY = 86400
WINDOW_DAYS = 7
HISTORY_DAYS = 12  # more than the 9.3 days after which a window of 4 generations has dropped an item
CANDIDATES = 20

Command = tuple[str | bytes | int | float, ...]


def item(user: int, number: int) -> int:
    """Returns the item at a place of a user's list. All items of a list differ."""
    return (user * 0x9E3779B1 + number * 0x85EBCA6B) % 2**24


def long_name(number: int) -> str:
    """Returns an item's identifier of eleven letters."""
    return f"{number * 0x9E3779B97F4A7C15 % 2**44:011x}"


@dataclass
class History:
    """The visits of users, one a day, with `items` shown at each. The last one was up to a day before `now`."""

    users: int
    items: int
    now: float

    @property
    def capacity(self) -> int:
        return self.items * WINDOW_DAYS

    def visits(self, user: int, days: int = HISTORY_DAYS) -> Iterator[tuple[float, range]]:
        """Yields time and item numbers of the visits of the last days, the oldest first."""
        for day in range(HISTORY_DAYS - days, HISTORY_DAYS):
            jitter = (user * 31 + day * 17) % 21 - 10
            at = self.now - DAY * (HISTORY_DAYS - 1 - day) - DAY / 2 + jitter * 3600
            yield at, range(day * self.items, (day + 1) * self.items)

    def unshown(self, user: int, count: int) -> list[int]:
        """Returns items that were never shown to a user."""
        start = HISTORY_DAYS * self.items
        return [item(user, number) for number in range(start, start + count)]


@dataclass
class Server:
    """A running server: a client, the path of its socket, and its process."""

    client: redis.Redis
    path: str
    pid: int

    def memory(self) -> int:
        """Returns the bytes that the server has allocated."""
        return self.client.info("memory")["used_memory"]

    def send(self, commands: Iterable[Command]) -> Iterator[object]:
        """Sends commands in batches. Yields the replies; raises RuntimeError for an error reply."""
        reader = hiredis.Reader()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            commands = iter(commands)
            while True:
                batch = [hiredis.pack_command(command) for _, command in zip(range(2000), commands)]
                if not batch:
                    return
                connection.sendall(b"".join(batch))
                for _ in batch:
                    while (reply := reader.gets()) is False:
                        reader.feed(connection.recv(1 << 20))
                    if isinstance(reply, hiredis.HiredisError):
                        raise RuntimeError(f"the server replied: {reply}")
                    yield reply


@contextmanager
def server(module: str | None = None) -> Iterator[Server]:
    """Starts an empty redis-server, with a module."""
    program = support.peers() / "bin/redis-server"
    if not program.exists():
        raise FileNotFoundError(f"{program}: not found; `cargo x example recommender` installs it")
    if module is not None and not Path(module).exists():
        raise FileNotFoundError(f"{module}: no such module; `cargo x example recommender` builds or installs it")
    with tempfile.TemporaryDirectory() as folder:
        port, path = support.free_port(), f"{folder}/socket"
        options = ["--port", str(port), "--unixsocket", path, "--save", "", "--dir", folder]
        command = [program, *options, *(["--loadmodule", module] if module else [])]
        with support.server(command, port, Path(folder) / "log") as process:
            client = redis.Redis(unix_socket_path=path, decode_responses=True)
            yield Server(client, path, process.pid)
            client.close()


def petal_module() -> str:
    """Returns the path of petal's module; `cargo x example` sets PETAL_MODULE."""
    return os.environ.get("PETAL_MODULE") or str(support.ROOT / "target/release/libpetal_redis.so")


# What each way of remembering sends for a user's history. The days before the window are left out where the keys of
# these days have expired. Keys per day end in the number of the day.


def window(history: History, user: int, fpr: float) -> Iterator[Command]:
    key = f"shown:{user}"
    yield "PETAL.RESERVE", key, fpr, history.capacity, "WINDOW", f"{WINDOW_DAYS}d", "TTL", f"{WINDOW_DAYS}d"
    for at, numbers in history.visits(user):
        yield "PETAL.SEENAT", key, int(at * 1000), *[item(user, number) for number in numbers]


def sorted_set(history: History, user: int, name: Callable[[int], str | int]) -> Iterator[Command]:
    key = f"shown:{user}"
    for at, numbers in history.visits(user, WINDOW_DAYS):
        yield "ZADD", key, *[word for number in numbers for word in (int(at), name(item(user, number)))]
    yield "EXPIRE", key, WINDOW_DAYS * DAY


def set_per_day(history: History, user: int, name: Callable[[int], str | int]) -> Iterator[Command]:
    for _, numbers in history.visits(user, WINDOW_DAYS):
        key = f"shown:{user}:{numbers.start // history.items}"
        yield "SADD", key, *[name(item(user, number)) for number in numbers]
        yield "EXPIRE", key, WINDOW_DAYS * DAY


def redisbloom_per_day(history: History, user: int, fpr: float) -> Iterator[Command]:
    # An item is looked up in the filters of all days, so each has its share of the rate.
    for _, numbers in history.visits(user, WINDOW_DAYS):
        key, items = f"shown:{user}:{numbers.start // history.items}", [item(user, number) for number in numbers]
        yield "BF.RESERVE", key, fpr / WINDOW_DAYS, history.items, "NONSCALING"
        yield "BF.MADD", key, *items
        yield "EXPIRE", key, WINDOW_DAYS * DAY


def fill(on: Server, history: History, commands: Callable[..., Iterator[Command]], *args) -> tuple[float, float]:
    """Sends the history of all users. Returns the bytes per user and the seconds."""
    before, started = on.memory(), time.perf_counter()
    for _ in on.send(command for user in range(history.users) for command in commands(history, user, *args)):
        pass
    return (on.memory() - before) / history.users, time.perf_counter() - started


def check(on: Server, history: History, users: range) -> tuple[int, float, float]:
    """Looks up the whole history of users, and items that were never shown.

    Returns the number of items within the window, all of which must be found, and the shares of expired and of
    unshown items that are found. Raises AssertionError if an item of the window could be shown again.
    """
    asked = []
    for user in users:
        numbers = [(at, number) for at, numbers in history.visits(user) for number in numbers]
        asked.append((user, numbers, history.unshown(user, CANDIDATES)))
    commands = [
        ("BF.MEXISTS", f"shown:{user}", *[item(user, n) for _, n in numbers], *unshown)
        for user, numbers, unshown in asked
    ]
    kept = expired = expired_found = unshown_found = 0
    started = time.time()
    for (user, numbers, _), reply in zip(asked, on.send(commands), strict=True):
        ended = time.time()
        for (at, number), found in zip(numbers, reply):
            if at + WINDOW_DAYS * DAY > ended:
                kept += 1
                assert found, f"item {item(user, number)} was shown to user {user} and is not remembered"
            elif at + WINDOW_DAYS * DAY * 4 / 3 < started:
                expired += 1
                expired_found += found
        unshown_found += sum(reply[len(numbers) :])
    return kept, expired_found / expired, unshown_found / (len(asked) * CANDIDATES)


def offer(on: Server, history: History, users: range, fpr: float) -> tuple[float, int, float]:
    """Offers half shown and half unshown candidates to users, for half as many slots.

    Returns visits per second, the number of items shown, and the share of visits with an empty slot. Raises
    AssertionError if an item is shown again.
    """
    shown, count, short = Shown(on.client, history.capacity, fpr), 0, 0
    started = time.perf_counter()
    for user in users:
        last = HISTORY_DAYS * history.items
        old = [item(user, number) for number in range(last - CANDIDATES // 2, last)]
        mixed = [str(x) for pair in zip(old, history.unshown(user, CANDIDATES // 2)) for x in pair]
        result = shown.recommend(user, mixed, CANDIDATES // 2)
        assert not {int(x) for x in result} & set(old), f"user {user} was shown an item again"
        count += len(result)
        short += len(result) < CANDIDATES // 2
    return len(users) / (time.perf_counter() - started), count, short / len(users)
