"""`cargo x bench python`: the Python package beside the program, the library and rbloom.

Two files of lines that look like URLs, 64 bytes and LF each, half of them in common, made by the
tool `urls`. What is compared takes turns, round for round. Batches and single keys run on one
core; Rust's batch runs on the same bytes, in a process of its own. Answers are compared too. The
raw rows of a whole run go to `results/<machine>/<date>-python.csv`; ratios are of medians.
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
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
WIDTH = 64
RATE = 0.01
HEADER = ["date", "work", "tool", "keys", "round", "seconds", "answer", "machine", "rustc", "commit"]


@dataclass
class Rows:
    """Seconds of each round, by work and tool; and the answer, which all tools must agree on."""

    keys: int
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    answers: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, work: str, tool: str, seconds: float, answer: int) -> None:
        self.seconds.setdefault((work, tool), []).append(seconds)
        self.answers[work, tool] = answer

    def median(self, work: str, tool: str) -> float:
        return statistics.median(self.seconds[work, tool])

    def run(self, work: str, tool: str, job: Callable[[], int]) -> None:
        begun = time.perf_counter()
        answer = job()
        self.add(work, tool, time.perf_counter() - begun, answer)


def make(folder: Path, keys: int) -> tuple[Path, Path]:
    """Two files of lines, if they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / f"a-{keys}.txt", folder / f"b-{keys}.txt"
    for file, side in zip(files, "ab", strict=True):
        if not file.exists():
            size = ["--count", str(keys), "--common", str(keys // 2), "--bytes", str(WIDTH)]
            run = [RELEASE / "urls", *size, "--side", side, "--out", file]
            subprocess.run(run, check=True)
    return files


def arrow(keys: bytes) -> pyarrow.Array:
    """Keys of one width as strings of Arrow, where they lie."""
    offsets = numpy.arange(len(keys) // WIDTH + 1, dtype=numpy.int64) * WIDTH
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(keys)]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(offsets) - 1, buffers)


def batches(rows: Rows, files: tuple[Path, Path], rounds: int) -> None:
    """`update` and `contains_batch` of Arrow strings, Rust's batches, rbloom's `update`."""
    raw = []
    for file in files:
        lines = numpy.fromfile(file, dtype=numpy.uint8).reshape(-1, WIDTH + 1)
        keys = numpy.ascontiguousarray(lines[:, :WIDTH]).tobytes()
        raw.append(file.with_suffix(".keys"))
        raw[-1].write_bytes(keys)
    members, queries = (arrow(file.read_bytes()) for file in raw)
    texts = members.to_pylist()
    for _ in range(rounds):
        seen = petal.BloomFilter(rows.keys, RATE)
        rows.run("update", "petal", lambda seen=seen: seen.update(members))
        rows.run("query", "petal", lambda seen=seen: seen.contains_batch(queries).true_count)
        run = [RELEASE / "batch", str(WIDTH), str(RATE), "1", *raw]
        told = subprocess.run(map(str, run), check=True, capture_output=True, text=True)
        filled, asked, new, found = told.stdout.split()
        rows.add("update", "rust", float(filled), int(new))
        rows.add("query", "rust", float(asked), int(found))
        rival = rbloom.Bloom(rows.keys, RATE)
        rows.run("update", "rbloom", lambda rival=rival: rival.update(texts) or 0)


def single(rows: Rows, rounds: int) -> None:
    """`in`, key by key: half of the keys are members."""
    keys = [f"https://example.com/page/{n}" for n in range(1_000_000)]
    seen, rival = petal.BloomFilter(len(keys), RATE), rbloom.Bloom(len(keys), RATE)
    seen.update(keys[::2])
    rival.update(keys[::2])

    def ask(filter_: petal.Filter | rbloom.Bloom) -> int:
        found = 0
        for key in keys:
            if key in filter_:
                found += 1
        return found

    for _ in range(rounds):
        rows.run("in, 10^6 times", "petal", lambda: ask(seen))
        rows.run("in, 10^6 times", "rbloom", lambda: ask(rival))


def lines(rows: Rows, files: tuple[Path, Path], rounds: int, folder: Path) -> None:
    """`petal.common` on files, and the program on the same ones, each to a file."""
    out = folder / "answer.txt"
    for _ in range(rounds):
        rows.run("common", "petal", lambda: petal.common(*files, out=out, memory="4G").kept)
        run = [RELEASE / "petal", "common", "-q", "-m4G", *files, "-o", folder / "told.txt"]
        rows.run("common", "program", lambda run=run: subprocess.run(run, check=True).returncode)
        assert out.stat().st_size == (folder / "told.txt").stat().st_size
        told = (folder / "told.txt").stat().st_size // (WIDTH + 1)
        rows.answers["common", "program"] = told


TARGETS = [
    ("update", "petal", "rust", 1.15),
    ("query", "petal", "rust", 1.15),
    ("update", "petal", "rbloom", 1 / 5),
    ("in, 10^6 times", "petal", "rbloom", 1.0),
    ("common", "petal", "program", 1.10),
]


def verdict(rows: Rows) -> None:
    for work, ours, other, most in TARGETS:
        if (work, other) not in rows.seconds:
            continue
        one, two = rows.median(work, ours), rows.median(work, other)
        met = "met" if one / two <= most else "MISSED"
        print(f"{work}: {ours} {one:.3f} s, {other} {two:.3f} s: {one / two:.2f} of it, ", end="")
        print(f"at most {most:.2f} wanted: {met}")


def save(rows: Rows) -> None:
    told = subprocess.run([RELEASE / "batch", "machine"], check=True, capture_output=True, text=True)
    slug, machine, rustc, commit, date = told.stdout.splitlines()
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
    parser.add_argument("--keys", type=int, default=10_000_000, help="keys, and lines of a file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["batches", "single", "files"], help="of these three")
    parser.add_argument("--quick", action="store_true", help="whether it works; keeps no rows")
    told = parser.parse_args()
    keys, rounds = (200_000, 2) if told.quick else (told.keys, told.rounds)
    folder = ROOT / "bench-data" / "python"
    rows, files = Rows(keys), make(folder, keys)
    if told.only in (None, "files"):
        lines(rows, files, rounds, folder)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if told.only in (None, "batches"):
        batches(rows, files, rounds)
    if told.only in (None, "single"):
        single(rows, rounds)
    verdict(rows)
    # rbloom hashes otherwise, and errs on other keys.
    pairs = [(work, "petal", other) for work, _, other, _ in TARGETS if other != "rbloom"]
    for work, ours, other in pairs:
        if rows.answers.get((work, ours)) != rows.answers.get((work, other)):
            print(f"{work}: {ours} and {other} give different answers", file=sys.stderr)
            return 1
    if not told.quick and told.only is None:
        save(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
