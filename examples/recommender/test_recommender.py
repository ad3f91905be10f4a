"""Windows of shown items on a real redis-server, compared with a dict."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from replay import History, Server, check, fill, item, offer, petal_module, server, window
from shown import Shown

HERE = Path(__file__).parent


@pytest.fixture
def on() -> Iterator[Server]:
    with server(petal_module()) as running:
        yield running


def test_nothing_is_shown_again_within_the_window(on):
    """Users visit for a second; a window is 300 ms. A dict has the time of each item."""
    window_s, rng, shown_at = 0.3, random.Random(1), {}
    shown = Shown(on.client, 100, 0.001, window_s)
    end, again = time.monotonic() + 1, 0
    while time.monotonic() < end:
        user, candidates = rng.randrange(3), [str(n) for n in rng.sample(range(200), 10)]
        before = time.monotonic()
        result = shown.recommend(user, candidates, 5)
        after = time.monotonic()
        assert len(result) <= 5 and set(result) <= set(candidates)
        for name in result:
            last = shown_at.get((user, name))
            assert last is None or after - last >= window_s, f"shown again after {after - last:.3f} s"
            again += last is not None
            shown_at[user, name] = before
    assert again > 0, "items come back after the window"


def test_history_is_remembered_and_forgotten(on):
    history = History(users=200, items=14, now=time.time())
    fill(on, history, window, 0.01)
    kept, expired, withheld = check(on, history, range(200))
    assert kept > 200 * 90 and expired < 0.03 and withheld < 0.03


def test_lost_item_is_noticed(on):
    """The check fails if a window lacks an item: here the capacity is right and a user's window is empty."""
    history = History(users=50, items=14, now=time.time())
    fill(on, history, window, 0.01)
    on.client.execute_command("PETAL.CLEAR", "shown:7")
    with pytest.raises(AssertionError, match="was shown to user 7"):
        check(on, history, range(50))


def test_offered_items_are_new(on):
    history = History(users=100, items=14, now=time.time())
    fill(on, history, window, 0.001)
    _, count, short = offer(on, history, range(100), 0.001)
    assert count >= 100 * 10 * 0.99 and short < 0.1


def test_users_do_not_share_items(on):
    shown = Shown(on.client, 100)
    assert shown.recommend("ann", ["1", "2", "3"], 2) == ["1", "2"]
    assert shown.recommend("bob", ["1", "2", "3"], 2) == ["1", "2"]
    assert shown.recommend("ann", ["1", "2", "3"], 2) == ["3"]
    assert shown.recommend("ann", [], 2) == [] and shown.recommend("ann", ["1"], 2) == []


def test_two_requests_of_a_user_do_not_show_the_same_item(on):
    """Eight threads ask for the same user; each item is returned once."""
    results, names = [], [str(number) for number in range(400)]
    shown = Shown(on.client, 1000, 1e-6)

    def ask():
        for _ in range(20):
            results.extend(shown.recommend("ann", names, 3))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == len(set(results)) > 100


def test_key_expires_with_its_items(on):
    shown = Shown(on.client, 100, 0.01, window_s=0.2)
    shown.mark("ann", ["1"])
    time.sleep(0.1)
    shown.mark("ann", ["2"])
    assert 100 < on.client.pttl("shown:ann") <= 200
    time.sleep(0.3)
    assert on.client.exists("shown:ann") == 0


def test_items_of_a_user_differ():
    assert len({item(12345, number) for number in range(10_000)}) == 10_000


def test_program_runs():
    command = [sys.executable, HERE / "main.py", "--users", "200"]
    output = subprocess.run(command, capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    assert "none can be shown again" in output.stdout and output.stdout.count("Redis, a") == 4


def test_missing_module_is_refused(monkeypatch):
    monkeypatch.setenv("PETAL_MODULE", "/nowhere/libpetal_redis.so")
    ran = subprocess.run([sys.executable, HERE / "main.py", "--users", "100"], capture_output=True, text=True)
    assert ran.returncode == 2 and "/nowhere/libpetal_redis.so: no such module" in ran.stderr
