"""Measures how many queries of absent keys a filter in front of a database avoids.

The table has short links: a slug and the address that it stands for. Guessed and dead slugs are absent keys. All
answers are compared with a dict.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import support  # noqa: E402
from guard import Guard  # noqa: E402
from tables import PostgresTable, SqliteTable, postgres  # noqa: E402

SHARES = (0, 50, 90, 99)
ROUNDS = 5  # the ways take turns; the speed is the median
EXAMPLE = "example:\n  cargo x example database --keys 1000000 --lookups 200000"


def slug(number: int) -> str:
    """Returns the slug of a number: different numbers have different slugs."""
    return f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}"


def url(number: int) -> str:
    """Returns the address that the slug of a number stands for."""
    return f"https://example.org/articles/{number}.html"


def requests(keys: int, lookups: int, absent: int, seed: int) -> list[int]:
    """Returns numbers to look up: `absent` % are not below `keys`. Low numbers are more popular than high ones."""
    rng = random.Random(seed)
    return [
        keys + rng.randrange(10**12) if rng.random() * 100 < absent else int(keys * rng.random() ** 3)
        for _ in range(lookups)
    ]


def run(get: Callable[[str], str | None], numbers: list[int], keys: int) -> float:
    """Looks up numbers. Returns the lookups per second. Raises AssertionError at a wrong answer."""
    slugs = [slug(number) for number in numbers]
    started = time.perf_counter()
    found = [get(key) for key in slugs]
    seconds = time.perf_counter() - started
    for number, value in zip(numbers, found, strict=True):
        assert value == (url(number) if number < keys else None), f"wrong answer: {slug(number)}: {value}"
    return len(numbers) / seconds


def measure(table: SqliteTable | PostgresTable, guard: Guard, args: argparse.Namespace, rows: support.Rows) -> None:
    """Prints queries and speed of the database alone, with a cache of rows, and with the filter."""
    print(f"\n{table.name}: {args.lookups:,} lookups\n")
    print("absent  way       queries  avoided  lookups/s  speed")
    for share in SHARES:
        numbers = requests(args.keys, args.lookups, share, share)
        guards = {way: Guard(table) for way in ("database", "cache", "filter")}
        guards["filter"].filter = guard.filter
        ways = {way: asked.get for way, asked in guards.items()}
        ways["cache"] = functools.lru_cache(args.cache)(ways["cache"])
        speeds: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(ROUNDS):
            for way, get in ways.items():
                speeds[way].append(run(get, numbers[turn::ROUNDS], args.keys))
        plain = statistics.median(speeds["database"])
        for way, asked in guards.items():
            speed, avoided = statistics.median(speeds[way]), 100 * (1 - asked.queries / args.lookups)
            print(f"{share:4} %  {way:8} {asked.queries:8,} {avoided:6.1f} % {speed:10,.0f} {speed / plain:5.1f}x")
            case = f"{table.name}, {share} % absent, {way}"
            rows.add(case, args.keys, "queries avoided", avoided, "%")
            rows.add(case, args.keys, "lookups", speed, "1/s")


def change(table: SqliteTable | PostgresTable, guard: Guard, args: argparse.Namespace, rows: support.Rows) -> None:
    """Deletes a tenth of the rows, 10,000 at most, and inserts as many; checks them and the false-positive rate."""
    count = min(args.keys // 10, 10_000)
    old = [slug(number) for number in range(count)]
    new = [(slug(number), url(number)) for number in range(args.keys, args.keys + count)]
    started = time.perf_counter()
    for start in range(0, count, 100):
        assert guard.insert(new[start : start + 100]) == len(new[start : start + 100])
        assert guard.delete(old[start : start + 100]) == len(old[start : start + 100])
    seconds = time.perf_counter() - started
    assert all(guard.get(key) == value for key, value in new), "an inserted row is missing"
    assert not any(guard.get(key) for key in old), "a deleted row was found"
    before = guard.queries
    for number in requests(args.keys + count, args.lookups, 100, 7):
        assert guard.get(slug(number)) is None
    rate = 100 * (guard.queries - before) / args.lookups
    print(f"\n{count:,} rows inserted and {count:,} deleted, 100 per transaction: {2 * count / seconds:,.0f} rows/s")
    print(f"queries for absent keys afterwards: {rate:.2f} %")
    rows.add(f"{table.name}, after inserts and deletes", args.keys, "false-positive rate", rate, "%")
    # Back to the rows of the other parts.
    guard.insert((slug(number), url(number)) for number in range(count))
    guard.delete(key for key, _ in new)


def lose(table: SqliteTable | PostgresTable, guard: Guard, args: argparse.Namespace, rows: support.Rows) -> None:
    """Drops the filter, and looks up keys while a thread builds it again."""
    guard.drop()
    seconds = []

    def rebuild() -> None:
        started = time.perf_counter()
        assert guard.rebuild()
        seconds.append(time.perf_counter() - started)

    thread = threading.Thread(target=rebuild)
    thread.start()
    lookups, started = 0, time.perf_counter()
    while thread.is_alive():
        run(guard.get, requests(args.keys, 100, 90, lookups), args.keys)
        lookups += 100
    speed = lookups / (time.perf_counter() - started)
    thread.join()
    print(f"\nfilter lost: {lookups:,} right answers, {speed:,.0f}/s, while it was rebuilt in {seconds[0]:.2f} s")
    guard.drop()
    started = time.perf_counter()
    guard.rebuild()
    alone = time.perf_counter() - started
    print(f"rebuilt without other work: {alone:.2f} s, {args.keys / alone:,.0f} keys/s")
    rows.add(f"{table.name}, rebuild", args.keys, "time", alone, "s")
    rows.add(f"{table.name}, rebuild while 90 % absent are looked up", args.keys, "time", seconds[0], "s")
    rows.add(f"{table.name}, rebuild while 90 % absent are looked up", args.keys, "lookups", speed, "1/s")


def stale(guard: Guard, other: SqliteTable | PostgresTable) -> None:
    """Inserts a row as another program would, behind the guard's back."""
    assert not guard.check()
    key = slug(10**15)
    with other.transaction():
        other.insert(key, "https://example.org/new")
    missed = guard.get(key) is None
    support.wait_until(guard.check, "the insert of another program is noticed")
    assert guard.get(key) == "https://example.org/new"
    guard.rebuild()
    assert guard.get(key) == "https://example.org/new"
    print(f"a row of another program: {'missed' if missed else 'found'} before check(), found after it")


def show(table: SqliteTable | PostgresTable, other: SqliteTable | PostgresTable, args, rows: support.Rows) -> None:
    """Runs all parts on one database."""
    table.load((slug(number), url(number)) for number in range(args.keys))
    guard = Guard(table, args.fpr)
    guard.rebuild()
    size = guard.filter.size_bytes
    print(f"{args.keys:,} rows; filter: {size:,} bytes, {8 * size / args.keys:.1f} bits per key")
    rows.add(table.name, args.keys, "filter", size, "bytes")
    measure(table, guard, args, rows)
    change(table, guard, args, rows)
    lose(table, guard, args, rows)
    stale(guard, other)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="cargo x example database", description=__doc__, epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--keys", type=int, default=100_000, metavar="N", help="rows of the table [default: 100000]")
    parser.add_argument("--lookups", type=int, default=10_000, metavar="N", help="lookups of each case [default: 10000]")
    parser.add_argument("--fpr", type=float, default=0.01, help="false-positive rate of the filter [default: 0.01]")
    parser.add_argument("--cache", type=int, metavar="N", help="rows in the cache [default: a tenth of all]")
    parser.add_argument("--only", choices=["sqlite", "postgresql"], help="use one of the databases [default: both]")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="append the figures to a CSV file")
    args = parser.parse_args()
    if args.keys < 1000 or args.lookups < 100 or not 0 < args.fpr < 1:
        parser.error("--keys is 1000 or more, --lookups 100 or more, --fpr above 0 and below 1")
    args.cache = args.cache or args.keys // 10
    rows = support.Rows(args.rows, "database")
    with ExitStack() as stack:
        if args.only != "postgresql":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            tables = [SqliteTable(folder / "links.db") for _ in range(2)]
            show(*tables, args, rows)
            for table in tables:
                table.close()
        if args.only is None:
            print()
        if args.only != "sqlite":
            address = stack.enter_context(postgres())
            tables = [PostgresTable(address) for _ in range(2)]
            try:
                show(*tables, args, rows)
            finally:
                for table in tables:
                    table.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        print(f"database: {error}", file=sys.stderr)
        sys.exit(2)
