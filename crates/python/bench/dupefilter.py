"""Scrapy's duplicate filter and petal's, in turns: memory, and what `request_seen` costs.

    python crates/python/bench/dupefilter.py [--requests 10000000] [--turns 10]
    python crates/python/bench/dupefilter.py --jobdir

Each filter lives in a process of its own and gets the same fingerprints in as many turns: new ones
first, then the same ones again. A fingerprinter that hands over what is precomputed stands in for
Scrapy's, for all alike; its own work is in no figure. Every answer is judged: what comes again must
be held back, and no more of what is new than the rate allows.

Rows of CSV on standard output: filter, requests in it, nanoseconds of CPU for one `request_seen` of
what is new and of what came before (medians of the turns), resident bytes more than before the
first request, bytes a request, share of new requests that were held back.

With `--jobdir`: nanoseconds of CPU for one new request, of 50,000 in five turns, in memory and with a
JOBDIR. The requests are real ones, which know their fingerprint already.
"""

import argparse
import gc
import hashlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from statistics import median

from scrapy import Request, Spider
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.test import get_crawler

from petal.scrapy import DupeFilter
from petal.scrapy.plan import CAPACITY

RATE = 0.0001
PIECE = 10_000


class Precomputed:
    """A request is its fingerprint."""

    def fingerprint(self, request: bytes) -> bytes:
        return request


def opened(name: str, requests: int) -> object:
    """A filter by name, as Scrapy makes it."""
    capacity = requests if name == "petal" else CAPACITY
    settings = {"PETAL_DUPEFILTER_CAPACITY": capacity, "PETAL_DUPEFILTER_RATE": RATE}
    crawler = get_crawler(Spider, settings)
    crawler.request_fingerprinter = Precomputed()
    made = (RFPDupeFilter if name == "scrapy" else DupeFilter).from_crawler(crawler)
    made.open()
    return made


def fingerprints(turn: int, number: int) -> Iterator[list[bytes]]:
    """Others in every turn, 20 bytes each, as SHA-1 has; few at a time, for the memory that they
    take themselves is no filter's.
    """
    for piece in range(number // PIECE):
        seed = b"%d %d" % (turn, piece)
        stream = hashlib.shake_128(seed).digest(20 * PIECE)
        yield [stream[at : at + 20] for at in range(0, 20 * PIECE, 20)]


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def asked(seen: Callable[[bytes], bool], pieces: Iterable[list[bytes]]) -> tuple[float, int]:
    """Nanoseconds of CPU a request, and how many were held back."""
    spent, held, number = 0.0, 0, 0
    for piece in pieces:
        begin = time.process_time()
        for request in piece:
            held += seen(request)
        spent += time.process_time() - begin
        number += len(piece)
    return spent / number * 1e9, held


def work(name: str, requests: int, turns: int, line: Connection) -> None:
    """One filter: a turn whenever it is told to, then its row."""
    made = opened(name, requests)
    each = requests // turns // PIECE * PIECE
    gc.collect()
    before = resident()
    new, again, wrong = [], [], 0
    for turn in range(turns):
        line.recv()
        nanoseconds, held = asked(made.request_seen, fingerprints(turn, each))
        new.append(nanoseconds)
        wrong += held
        # Made anew: the filter must not find the very same objects.
        nanoseconds, held = asked(made.request_seen, fingerprints(turn, each))
        again.append(nanoseconds)
        if held != each:
            raise AssertionError(f"{name}: {each - held} requests were forgotten")
        line.send(None)
    gc.collect()
    memory = resident() - before
    requests = each * turns
    share = wrong / requests
    if share > (0 if name == "scrapy" else 1.2 * RATE):
        raise AssertionError(f"{name}: {wrong} of {requests} new requests were held back")
    parts = (median(new), median(again), memory, memory / requests, share)
    line.send(f"{name},{requests},%.0f,%.0f,%d,%.2f,%.7f" % parts)
    made.close("finished")


class Known:
    """A request knows its fingerprint."""

    def fingerprint(self, request: Request) -> bytes:
        return request.meta["known"]


def with_jobdir(turns: int = 5, number: int = 50_000) -> None:
    """The rows of `--jobdir`."""
    ways = {"scrapy": (RFPDupeFilter, True), "petal": (DupeFilter, True)}
    ways["petal, PENDING off"] = (DupeFilter, False)
    print("filter,requests,ns_in_memory,ns_with_jobdir")
    for name, (made_by, pending) in ways.items():
        spent: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(turns):
            for in_folder, figures in spent.items():
                with tempfile.TemporaryDirectory() as folder:
                    settings = {"PETAL_DUPEFILTER_PENDING": pending}
                    settings |= {"JOBDIR": folder} if in_folder else {}
                    crawler = get_crawler(Spider, settings)
                    crawler.spider = crawler._create_spider("bench")
                    crawler.request_fingerprinter = Known()
                    made = made_by.from_crawler(crawler)
                    made.open()
                    known = (key for piece in fingerprints(turn, number) for key in piece)
                    requests = [
                        Request(f"http://example.com/{at}", meta={"known": key})
                        for at, key in enumerate(known)
                    ]
                    figures.append(asked(made.request_seen, [requests])[0])
                    made.close("finished")
        print(f"{name},{number},{median(spent[False]):.0f},{median(spent[True]):.0f}")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--jobdir", action="store_true", help="what a JOBDIR costs")
    words.add_argument("--requests", type=int, default=10_000_000)
    words.add_argument("--turns", type=int, default=10)
    chosen = words.parse_args()
    if chosen.jobdir:
        return with_jobdir()
    processes = multiprocessing.get_context("spawn")
    lines = []
    for name in ("scrapy", "petal", "petal by default"):
        ours, theirs = processes.Pipe()
        told = (name, chosen.requests, chosen.turns, theirs)
        processes.Process(target=work, args=told, daemon=True).start()
        theirs.close()
        lines.append(ours)
    for _ in range(chosen.turns):
        for line in lines:
            line.send(None)
            line.recv()
    print("filter,requests,ns_new,ns_again,bytes,bytes_each,held_back")
    for line in lines:
        print(line.recv())
    sys.stdout.flush()


if __name__ == "__main__":
    main()
