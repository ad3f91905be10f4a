"""`cargo x bench python`: compares the Python package with the program, the library and rbloom.

The input are two files of URL-like lines, 64 bytes and LF each, half of them in common, written by
the tool `urls`. The candidates take turns in each round. Batches and single keys run on one core;
Rust's batch runs on the same bytes, in a process of its own. Results are compared too. The rows of
a whole run are appended to `results/<machine>/<date>-python.csv`; ratios are of medians.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pyarrow
import rbloom

import petal

ROOT = Path(__file__).resolve().parents[3]
DIST = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "dist"
WIDTH = 64
FPR = 0.01
HEADER = ["date", "work", "tool", "keys", "round", "seconds", "answer", "machine", "rustc", "commit"]


@dataclass
class Rows:
    """Seconds of each round, and the result, by work and tool."""

    keys: int
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    answers: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, work: str, tool: str, seconds: float, answer: int) -> None:
        self.seconds.setdefault((work, tool), []).append(seconds)
        self.answers[work, tool] = answer

    def median(self, work: str, tool: str) -> float:
        return statistics.median(self.seconds[work, tool])

    def run(self, work: str, tool: str, job: Callable[[], int]) -> None:
        start = time.perf_counter()
        answer = job()
        self.add(work, tool, time.perf_counter() - start, answer)


def make(folder: Path, keys: int) -> tuple[Path, Path]:
    """Writes the two files of lines, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / f"a-{keys}.txt", folder / f"b-{keys}.txt"
    for file, side in zip(files, "ab", strict=True):
        if not file.exists():
            size = ["--count", str(keys), "--common", str(keys // 2), "--bytes", str(WIDTH)]
            run = [DIST / "urls", *size, "--side", side, "--out", file]
            subprocess.run(run, check=True)
    return files


def arrow(keys: bytes) -> pyarrow.Array:
    """Returns keys of one width as Arrow strings, without a copy."""
    offsets = numpy.arange(len(keys) // WIDTH + 1, dtype=numpy.int64) * WIDTH
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(keys)]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(offsets) - 1, buffers)


def batches(rows: Rows, files: tuple[Path, Path], rounds: int) -> None:
    """Measures `update` and `contains_batch` of Arrow strings, Rust's batches, rbloom's `update`."""
    raw = []
    for file in files:
        lines = numpy.fromfile(file, dtype=numpy.uint8).reshape(-1, WIDTH + 1)
        keys = numpy.ascontiguousarray(lines[:, :WIDTH]).tobytes()
        raw.append(file.with_suffix(".keys"))
        raw[-1].write_bytes(keys)
    members, queries = (arrow(file.read_bytes()) for file in raw)
    texts = members.to_pylist()
    for _ in range(rounds):
        seen = petal.BloomFilter(rows.keys, FPR)
        rows.run("update", "petal", lambda seen=seen: seen.update(members))
        rows.run("query", "petal", lambda seen=seen: seen.contains_batch(queries).true_count)
        run = [DIST / "batch", "run", str(WIDTH), str(FPR), "1", *raw]
        done = subprocess.run(map(str, run), check=True, capture_output=True, text=True)
        update_time, query_time, new, found = done.stdout.split()
        rows.add("update", "rust", float(update_time), int(new))
        rows.add("query", "rust", float(query_time), int(found))
        rival = rbloom.Bloom(rows.keys, FPR)
        rows.run("update", "rbloom", lambda rival=rival: rival.update(texts) or 0)


def single(rows: Rows, rounds: int) -> None:
    """Measures `in` for single keys, half of which are members."""
    keys = [f"https://example.com/page/{n}" for n in range(1_000_000)]
    seen, rival = petal.BloomFilter(len(keys), FPR), rbloom.Bloom(len(keys), FPR)
    seen.update(keys[::2])
    rival.update(keys[::2])

    def look_up(filter_: petal.Filter | rbloom.Bloom) -> int:
        found = 0
        for key in keys:
            if key in filter_:
                found += 1
        return found

    for _ in range(rounds):
        rows.run("in, 10^6 times", "petal", lambda: look_up(seen))
        rows.run("in, 10^6 times", "rbloom", lambda: look_up(rival))


def lines(rows: Rows, files: tuple[Path, Path], rounds: int, folder: Path) -> None:
    """Measures `petal.common` and the program on the same files."""
    out = folder / "answer.txt"
    for _ in range(rounds):
        rows.run("common", "petal", lambda: petal.common(*files, out=out, memory_limit="4G").kept)
        run = [DIST / "petal", "common", "-q", "-m4G", *files, "-o", folder / "program.txt"]
        rows.run("common", "program", lambda run=run: subprocess.run(run, check=True).returncode)
        assert out.stat().st_size == (folder / "program.txt").stat().st_size
        kept = (folder / "program.txt").stat().st_size // (WIDTH + 1)
        rows.answers["common", "program"] = kept


TARGETS = [
    ("update", "petal", "rust", 1.15),
    ("query", "petal", "rust", 1.15),
    ("update", "petal", "rbloom", 1 / 5),
    ("in, 10^6 times", "petal", "rbloom", 1.0),
    ("common", "petal", "program", 1.10),
]


def verdict(rows: Rows) -> None:
    for work, ours, other, maximum in TARGETS:
        if (work, other) not in rows.seconds:
            continue
        one, two = rows.median(work, ours), rows.median(work, other)
        met = "met" if one / two <= maximum else "MISSED"
        print(f"{work}: {ours} {one:.3f} s, {other} {two:.3f} s: {one / two:.2f} of it, ", end="")
        print(f"target {maximum:.2f}: {met}")


def save(rows: Rows) -> None:
    batch = [DIST / "batch", "machine"]
    done = subprocess.run(batch, check=True, capture_output=True, text=True)
    slug, machine, rustc, commit, date = done.stdout.splitlines()
    file = ROOT / "results" / slug / f"{date}-python.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not file.exists()
    with file.open("a", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        if is_new:
            table.writerow(HEADER)
        for (work, tool), seconds in rows.seconds.items():
            for number, took in enumerate(seconds, 1):
                answer = rows.answers[work, tool]
                fixed = [date, work, tool, rows.keys, number, f"{took:.4f}", answer]
                table.writerow([*fixed, machine, rustc, commit])
    print(f"rows: {file.relative_to(ROOT)}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="cargo x bench python", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="number of keys and of lines per file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["batches", "single", "files"], help="run one part")
    parser.add_argument("--quick", action="store_true", help="small input, no rows")
    args = parser.parse_args()
    keys, rounds = (200_000, 2) if args.quick else (args.keys, args.rounds)
    folder = ROOT / "bench-data" / "python"
    rows, files = Rows(keys), make(folder, keys)
    if args.only in (None, "files"):
        lines(rows, files, rounds, folder)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if args.only in (None, "batches"):
        batches(rows, files, rounds)
    if args.only in (None, "single"):
        single(rows, rounds)
    verdict(rows)
    # rbloom has another hash, and so other false positives.
    pairs = [(work, "petal", other) for work, _, other, _ in TARGETS if other != "rbloom"]
    for work, ours, other in pairs:
        if rows.answers.get((work, ours)) != rows.answers.get((work, other)):
            print(f"{work}: {ours} and {other} give different results", file=sys.stderr)
            return 1
    if not args.quick and args.only is None:
        save(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
