"""The guard on a real SQLite and a real PostgreSQL, compared with a dict."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import petal
import pytest
import support
from guard import Guard
from tables import PostgresTable, SqliteTable, postgres

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request, tmp_path) -> Iterator[object]:
    """A function that connects to one empty table."""
    tables = []
    address = request.getfixturevalue("address") if request.param == "postgresql" else None

    def connect():
        tables.append(PostgresTable(address) if address else SqliteTable(tmp_path / "links.db"))
        return tables[-1]

    if address:
        connect()._writer.execute("TRUNCATE link")
    yield connect
    for table in tables:
        table.close()


def rows(numbers) -> list[tuple[str, str]]:
    return [(f"slug-{number}", f"url-{number}") for number in numbers]


def test_inserts_deletes_and_rebuilds_agree_with_a_dict(make):
    rng, model = random.Random(1), {}
    guard = Guard(make())
    for step in range(300):
        some = rows(rng.sample(range(400), 5))
        if rng.random() < 0.6:
            assert guard.insert(some) == sum(key not in model for key, _ in some)
            model = dict(some) | model
        else:
            assert guard.delete(key for key, _ in some) == sum(model.pop(key, None) is not None for key, _ in some)
        if step % 60 == 7:
            assert guard.rebuild()
        for key, value in rows(rng.sample(range(400), 20)):
            assert guard.get(key) == model.get(key), (step, key)
    for key, value in rows(range(400)):
        assert (guard.get(key), key in model or guard.get(key) is None) == (model.get(key), True)
    before = guard.queries
    assert not any(guard.get(f"absent-{n}") for n in range(5000))
    assert guard.queries - before < 5000 * 0.02


def test_row_is_found_as_soon_as_it_is_committed(make):
    """A reader between the commit and the end of insert() finds the row: the filter has its key before the commit."""
    table, answers = make(), []
    guard = Guard(table)
    guard.rebuild()
    transaction = table.transaction

    @contextmanager
    def look_after_commit():
        with transaction():
            yield
        answers.append(guard.get("slug-1"))

    table.transaction = look_after_commit
    guard.insert(rows([1]))
    assert answers == ["url-1"]


def test_failed_commit_leaves_keys_in_the_filter(make):
    table = make()
    guard = Guard(table)
    guard.rebuild()
    guard.insert(rows([1, 2]))
    transaction = table.transaction

    @contextmanager
    def fail():
        with transaction():
            yield
            raise ConnectionError("connection lost")

    table.transaction = fail
    with pytest.raises(ConnectionError):
        guard.insert(rows([3]))
    with pytest.raises(ConnectionError):
        guard.delete(["slug-1"])
    assert [guard.get(key) for key, _ in rows([1, 2, 3])] == ["url-1", "url-2", None]
    table.transaction = transaction
    assert guard.insert(rows([3])) == 1 and guard.get("slug-3") == "url-3"


def test_lost_filter_queries_the_database(make):
    guard = Guard(make())
    guard.rebuild()
    guard.insert(rows(range(50)))
    guard.drop()
    before = guard.queries
    assert [guard.get(key) for key, _ in rows(range(60))] == [f"url-{n}" for n in range(50)] + [None] * 10
    assert guard.queries - before == 60
    guard.rebuild()
    before = guard.queries
    assert [guard.get(key) for key, _ in rows(range(60))] == [f"url-{n}" for n in range(50)] + [None] * 10
    assert 50 <= guard.queries - before < 60


def test_rows_of_another_program_are_found_after_check(make):
    guard, other = Guard(make()), make()
    guard.rebuild()
    guard.insert(rows([1]))
    assert not guard.check(), "own inserts are in the filter"
    with other.transaction():
        other.insert("slug-2", "url-2")
    support.wait_until(guard.check, "the insert is noticed")
    assert guard.filter is None
    assert guard.get("slug-2") == "url-2"
    assert guard.rebuild() and not guard.check()
    assert guard.get("slug-2") == "url-2"


def test_change_of_another_program_during_a_rebuild_discards_it(make):
    table, other = make(), make()
    guard = Guard(table)
    keys = table.keys

    def insert_after_snapshot():
        yield from list(keys())
        with other.transaction():
            other.insert("slug-2", "url-2")
        support.wait_until(guard.check, "the insert is noticed")

    table.keys = insert_after_snapshot
    assert not guard.rebuild() and guard.filter is None
    assert guard.get("slug-2") == "url-2"


def test_writes_during_rebuilds_lose_no_key(make):
    """A thread rebuilds again and again while another writes and reads its own rows."""
    guard, done = Guard(make()), threading.Event()
    guard.insert(rows(range(1000)))
    guard.rebuild()
    rebuilt = []

    def rebuild():
        while not done.is_set():
            rebuilt.append(guard.rebuild())

    thread = threading.Thread(target=rebuild)
    thread.start()
    try:
        for number in range(1000, 1300):
            guard.insert(rows([number]))
            guard.delete([f"slug-{number - 1000}"])
            assert guard.get(f"slug-{number}") == f"url-{number}"
            assert guard.get(f"slug-{number - 1000}") is None
    finally:
        done.set()
        thread.join()
    assert rebuilt and all(rebuilt)
    assert [guard.get(key) for key, _ in rows(range(300, 1300))] == [f"url-{n}" for n in range(300, 1300)]


def test_insert_during_a_rebuild_is_in_the_new_filter(make):
    """A row that is committed after the snapshot is in the filter that the rebuild makes."""
    table = make()
    guard = Guard(table)
    guard.insert(rows(range(10)))
    guard.rebuild()
    keys = table.keys

    def insert_after_snapshot():
        yield from list(keys())
        guard.insert(rows([77]))
        guard.delete(["slug-3"])

    table.keys = insert_after_snapshot
    guard.rebuild()
    assert guard.get("slug-77") == "url-77" and guard.get("slug-3") is None
    assert all(guard.get(key) == value for key, value in rows([0, 1, 2, 4, 5, 6, 7, 8, 9]))


def test_rebuild_waits_for_the_transaction_in_progress(make):
    """A row whose insert began before the rebuild, and ends during it, is not lost."""
    table = make()
    guard = Guard(table)
    transaction, thread = table.transaction, threading.Thread(target=lambda: guard.rebuild())

    @contextmanager
    def rebuild_before_commit():
        with transaction():
            yield
            thread.start()
            thread.join(0.3)
            assert thread.is_alive(), "the rebuild did not wait"

    table.transaction = rebuild_before_commit
    guard.insert(rows([5]))
    thread.join()
    assert guard.filter is not None and guard.get("slug-5") == "url-5"


def test_full_filter_is_dropped(make, monkeypatch):
    guard = Guard(make())
    guard.rebuild()
    guard.filter = petal.QuotientFilter(10)
    assert guard.insert(rows(range(500))) == 500
    assert guard.filter is None
    assert all(guard.get(key) == value for key, value in rows(range(500)))


def test_program_runs():
    command = [sys.executable, HERE / "main.py", "--keys", "2000", "--lookups", "300"]
    output = subprocess.run(command, capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    assert output.stdout.count("found after it") == 2


def test_wrong_size_is_refused():
    ran = subprocess.run([sys.executable, HERE / "main.py", "--keys", "1"], capture_output=True, text=True)
    assert ran.returncode == 2 and "--keys is 1000 or more" in ran.stderr
