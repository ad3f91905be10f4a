"""Compares the duplicate filters of Scrapy and petal: memory, and the cost of `request_seen`.

    python crates/python/bench/dupefilter.py [--requests 10000000] [--turns 10]
    python crates/python/bench/dupefilter.py --jobdir

Each filter runs in a process of its own and gets the same fingerprints in rounds: new ones first,
then the same ones again. All filters use a fingerprinter that returns precomputed fingerprints. The
results are checked: repeated requests must be seen, and the share of new requests that are seen
must not exceed the false-positive rate.

Prints rows of CSV: filter, requests, nanoseconds of CPU for one `request_seen` of new and of
repeated requests (medians of the rounds), growth of resident bytes since before the first request,
bytes per request, share of new requests that were filtered by mistake.

With `--jobdir`: nanoseconds of CPU for one new request, of 50,000 in five rounds, in memory and
with a JOBDIR. The requests are `scrapy.Request` objects with known fingerprints.
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
from petal.scrapy.config import DEFAULT_CAPACITY

FPR = 0.0001
CHUNK = 10_000


class Precomputed:
    """A fingerprinter for requests that are fingerprints."""

    def fingerprint(self, request: bytes) -> bytes:
        return request


def opened(name: str, requests: int) -> object:
    """Creates a filter by name, as Scrapy does."""
    capacity = requests if name == "petal" else DEFAULT_CAPACITY
    settings = {"PETAL_DUPEFILTER_CAPACITY": capacity, "PETAL_DUPEFILTER_FPR": FPR}
    crawler = get_crawler(Spider, settings)
    crawler.request_fingerprinter = Precomputed()
    made = (RFPDupeFilter if name == "scrapy" else DupeFilter).from_crawler(crawler)
    made.open()
    return made


def fingerprints(turn: int, number: int) -> Iterator[list[bytes]]:
    """Yields fingerprints of 20 bytes, others in each round, in chunks.

    Chunks, because their memory must not count as that of the filter.
    """
    for piece in range(number // CHUNK):
        seed = b"%d %d" % (turn, piece)
        stream = hashlib.shake_128(seed).digest(20 * CHUNK)
        yield [stream[at : at + 20] for at in range(0, 20 * CHUNK, 20)]


def resident() -> int:
    """Returns the resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(seen: Callable[[bytes], bool], pieces: Iterable[list[bytes]]) -> tuple[float, int]:
    """Returns nanoseconds of CPU per request, and the number of requests that were seen."""
    spent, filtered, number = 0.0, 0, 0
    for piece in pieces:
        begin = time.process_time()
        for request in piece:
            filtered += seen(request)
        spent += time.process_time() - begin
        number += len(piece)
    return spent / number * 1e9, filtered


def work(name: str, requests: int, turns: int, line: Connection) -> None:
    """Runs one filter: a round for each message, then sends its row."""
    made = opened(name, requests)
    each = requests // turns // CHUNK * CHUNK
    gc.collect()
    before = resident()
    new, again, wrong = [], [], 0
    for turn in range(turns):
        line.recv()
        nanoseconds, filtered = measure(made.request_seen, fingerprints(turn, each))
        new.append(nanoseconds)
        wrong += filtered
        # Created again, so that the objects differ.
        nanoseconds, filtered = measure(made.request_seen, fingerprints(turn, each))
        again.append(nanoseconds)
        if filtered != each:
            raise AssertionError(f"{name}: {each - filtered} requests were not found")
        line.send(None)
    gc.collect()
    memory = resident() - before
    requests = each * turns
    share = wrong / requests
    if share > (0 if name == "scrapy" else 1.2 * FPR):
        raise AssertionError(f"{name}: {wrong} of {requests} new requests were filtered")
    parts = (median(new), median(again), memory, memory / requests, share)
    line.send(f"{name},{requests},%.0f,%.0f,%d,%.2f,%.7f" % parts)
    made.close("finished")


class KnownFingerprint:
    """A fingerprinter for requests with their fingerprint in `meta`."""

    def fingerprint(self, request: Request) -> bytes:
        return request.meta["known"]


def with_jobdir(turns: int = 5, number: int = 50_000) -> None:
    """Prints the rows of `--jobdir`."""
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
                    crawler.request_fingerprinter = KnownFingerprint()
                    made = made_by.from_crawler(crawler)
                    made.open()
                    known = (key for piece in fingerprints(turn, number) for key in piece)
                    requests = [
                        Request(f"http://example.com/{at}", meta={"known": key})
                        for at, key in enumerate(known)
                    ]
                    figures.append(measure(made.request_seen, [requests])[0])
                    made.close("finished")
        print(f"{name},{number},{median(spent[False]):.0f},{median(spent[True]):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobdir", action="store_true", help="measure the cost of a JOBDIR")
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=10)
    chosen = parser.parse_args()
    if chosen.jobdir:
        return with_jobdir()
    processes = multiprocessing.get_context("spawn")
    lines = []
    for name in ("scrapy", "petal", "petal by default"):
        ours, theirs = processes.Pipe()
        args = (name, chosen.requests, chosen.turns, theirs)
        processes.Process(target=work, args=args, daemon=True).start()
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
