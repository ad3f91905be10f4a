"""Remembers the recently shown items of many users on a Redis server, and measures the memory per user.

Twelve days of visits are replayed into one window per user; then items of the last seven days are offered again. The
same items go into Redis sets with expiry and into filters of RedisBloom, on servers of their own.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import support  # noqa: E402
from replay import (  # noqa: E402
    HISTORY_DAYS, WINDOW_DAYS, History, check, fill, long_name, offer, petal_module, redisbloom_per_day, server,
    set_per_day, sorted_set, window,
)  # fmt: skip

RATES = (0.1, 0.01, 0.001, 0.0001)
EXAMPLE = "example:\n  cargo x example recommender --users 1000000"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="cargo x example recommender", description=__doc__, epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--users", type=int, default=20_000, metavar="N", help="users [default: 20000]")
    parser.add_argument("--items", type=int, default=14, metavar="N", help="items shown at a daily visit [default: 14]")
    parser.add_argument("--fpr", type=float, default=0.01, help="false-positive rate of a window [default: 0.01]")
    parser.add_argument("--others", type=int, default=5000, metavar="N",
                        help="maximum number of users for everything but petal at --fpr [default: 5000]")  # fmt: skip
    parser.add_argument("--rows", type=Path, metavar="FILE", help="append the figures to a CSV file")
    args = parser.parse_args()
    if args.users < 100 or args.others < 100 or not 5 <= args.items <= 10_000 or not 0 < args.fpr < 1:
        parser.error("--users and --others are 100 or more, --items 5 to 10000, --fpr above 0 and below 1")
    rows = support.Rows(args.rows, "recommender")
    history = History(args.users, args.items, time.time())
    few = History(min(args.users, args.others), args.items, history.now)
    sample = range(min(args.users, 20_000))
    print(f"{args.users:,} users, {args.items} items a day, window of {WINDOW_DAYS} days: {history.capacity} items\n")

    with server(petal_module()) as on:
        petal, seconds = fill(on, history, window, args.fpr)
        visits = args.users * HISTORY_DAYS
        print(f"petal at {args.fpr:.3g}: {visits:,} visits in {seconds:.1f} s, {petal:,.0f} bytes per user, "
              f"{support.resident_bytes(on.pid) / 2**20:,.0f} MiB in all")  # fmt: skip
        kept, expired, withheld = check(on, history, sample)
        print(f"{kept:,} items of the last 7 days: none can be shown again")
        print(f"items older than 9.3 days: {100 * (1 - expired):.2f} % can be shown again")
        more = range(min(args.users, 5000))
        speed, count, _ = offer(on, history, more, args.fpr)
        print(f"{len(more):,} more visits: {count:,} items shown, none again; {speed:,.0f} visits/s by one client\n")
        rows.add("petal, window", args.users, "memory per user", petal, "bytes")
        rows.add("petal, window", args.users, "resident memory of the server", support.resident_bytes(on.pid), "bytes")
        rows.add("petal, window", args.users, "history replayed", visits / seconds, "visits/s")
        rows.add("petal, window", args.users, "shown again within the window", 0, f"of {kept}")
        rows.add("petal, window", args.users, "visits of one client", speed, "1/s")

    print("rate       bytes per user  withheld  visits with an empty slot")
    for fpr in RATES:
        with server(petal_module()) as on:
            memory, _ = fill(on, few, window, fpr)
            _, _, withheld = check(on, few, range(min(few.users, 20_000)))
            _, _, short = offer(on, few, range(min(few.users, 2000)), fpr)
        print(f"{100 * fpr:6.4g} % {memory:14,.0f} {100 * withheld:10.4f} % {100 * short:8.2f} %")
        rows.add(f"petal, window, rate {fpr:g}", few.users, "memory per user", memory, "bytes")
        rows.add(f"petal, window, rate {fpr:g}", few.users, "withheld", 100 * withheld, "%")
        rows.add(f"petal, window, rate {fpr:g}", few.users, "visits with an empty slot", 100 * short, "%")

    print(f"\nbytes per user, {few.users:,} users                           of petal's")
    redisbloom = os.environ.get("PETAL_REDISBLOOM") or str(support.peers() / "redisbloom/redisbloom.so")
    others = [
        ("petal, one window", petal_module(), window, args.fpr),
        ("RedisBloom, a filter per day with EXPIRE", redisbloom, redisbloom_per_day, args.fpr),
        ("Redis, a set per day with EXPIRE, 24-bit ids", None, set_per_day, int),
        ("Redis, a set per day with EXPIRE, 11 letters", None, set_per_day, long_name),
        ("Redis, a sorted set by time, 24-bit ids", None, sorted_set, int),
        ("Redis, a sorted set by time, 11 letters", None, sorted_set, long_name),
    ]
    first = 0.0
    for name, module, commands, value in others:
        with server(module) as on:
            memory, _ = fill(on, few, commands, value)
        first = first or memory
        print(f"{name:46} {memory:8,.0f} {memory / first:8.1f}x")
        rows.add(name, few.users, "memory per user", memory, "bytes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        print(f"recommender: {error}", file=sys.stderr)
        sys.exit(2)
