"""`common` on Spark, beside Spark's own joins: processor seconds and shuffled bytes.

`python crates/python/bench/spark.py [--keys N] [--shared PERCENT] [--rounds N] [--local] [WAY ...]`
makes two text files of so many URLs of 64 bytes, starts a standalone master and two workers of one
core each (`--local`: `local[2]`), lets the ways take turns in one session, and prints rows of CSV.
Round 0 warms the JVM up and is printed like the others.

It runs in `target/python/spark` (`cargo x python --engines` makes it) with psutil installed there.

Processor seconds are of the whole tree of processes. Every answer is counted and compared.

Four more ways are run where they are named: `scan` and `scan-python`, which add up the lengths of A's
lines, the second after taking them to Python and back; `dropDuplicates` and `frames-dedup`, of both
files as one.
"""

import argparse
import csv
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import psutil
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import petal.spark

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/spark"))
from clusters import free_port, standalone  # noqa: E402

URL = b"https://www.example.com/archive/"
AT_ONCE = 1 << 19


def write_urls(path: Path, start: int, number: int) -> None:
    """Lines of 64 bytes, a function of their number each."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    with path.open("wb") as out:
        for at in range(start, start + number, AT_ONCE):
            n = np.arange(at, min(at + AT_ONCE, start + number), dtype=np.uint64)
            lines = np.full((len(n), 65), ord("\n"), np.uint8)
            lines[:, :32] = np.frombuffer(URL, np.uint8)
            for half, odd in enumerate([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9]):
                mixed = (n + np.uint64(1)) * np.uint64(odd)
                mixed ^= mixed >> np.uint64(29)
                for digit in range(16):
                    nibble = (mixed >> np.uint64(4 * digit)) & np.uint64(15)
                    lines[:, 32 + 16 * half + digit] = digits[nibble.astype(np.intp)]
            out.write(lines.tobytes())


def processor_seconds() -> float:
    """Of this process and all below it, living or ended."""
    total = 0.0
    own = psutil.Process()
    for process in [own, *own.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def shuffled_bytes(context: SparkContext) -> int:
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(url) as stages:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(stages))


def ways(spark: SparkSession, a: Path, b: Path, folder: Path) -> dict[str, Callable[[], int]]:
    def frame(path: Path) -> DataFrame:
        return spark.read.text(str(path))

    def frames() -> int:
        answer = petal.spark.common(frame(a), frame(b), "value")
        rows = answer.count()
        answer.unpersist()
        return rows

    def files() -> int:
        out = Path(tempfile.mkdtemp(dir=folder)) / "out"
        return petal.spark.common(spark, str(a), str(b), str(out)).kept

    def joined(hint: str) -> int:
        return frame(a).join(frame(b).hint(hint), "value", "left_semi").count()

    def length(df: DataFrame) -> int:
        return df.agg(F.sum(F.length("value"))).first()[0]

    def both() -> DataFrame:
        return frame(a).unionAll(frame(b))

    return {
        "sort-merge": lambda: joined("merge"),
        "shuffle-hash": lambda: joined("shuffle_hash"),
        "frames": frames,
        "files": files,
        "scan": lambda: length(frame(a)),
        "scan-python": lambda: length(frame(a).mapInArrow(lambda batches: batches, "value string")),
        "dropDuplicates": lambda: both().dropDuplicates(["value"]).count(),
        "frames-dedup": lambda: petal.spark.dedup(both(), "value").count(),
    }


def expected(way: str, keys: int, shared: int) -> int:
    """What a way must come to."""
    if way.startswith("scan"):
        return 64 * keys
    return 2 * keys - shared if way in ("dropDuplicates", "frames-dedup") else shared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--shared", type=float, default=1, help="percent in common")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--memory", default="3g", help="of each worker, or of local[2]")
    parser.add_argument("ways", nargs="*", default=["sort-merge", "shuffle-hash", "frames", "files"])
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="petal-bench-"))
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    shared = int(asked.keys * asked.shared / 100)
    a, b = folder / "a.txt", folder / "b.txt"
    write_urls(a, 0, asked.keys)
    write_urls(b, asked.keys - shared, asked.keys)
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    machine = names[0].split(": ")[1] if names else platform.machine()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(
        ["work", "way", "keys", "percent", "cluster", "round"]
        + ["processor_s", "wall_s", "shuffled_bytes", "answer", "machine"]
    )
    cluster = nullcontext("local[2]") if asked.local else standalone(folder, asked.memory)
    try:
        with cluster as master:
            builder = SparkSession.builder.master(master).appName("petal's bench")
            settings = {
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.memory": asked.memory,
                "spark.executor.memory": asked.memory,
                "spark.local.dir": folder / "local",
                "spark.ui.port": free_port(),
                "spark.ui.showConsoleProgress": "false",
            }
            for name, value in settings.items():
                builder = builder.config(name, str(value))
            spark = builder.getOrCreate()
            spark.sparkContext.setLogLevel("OFF")
            todo = ways(spark, a, b, folder)
            for number in range(asked.rounds):
                for way in asked.ways:
                    before = processor_seconds(), time.time(), shuffled_bytes(spark.sparkContext)
                    answer = todo[way]()
                    after = processor_seconds(), time.time(), shuffled_bytes(spark.sparkContext)
                    wanted = expected(way, asked.keys, shared)
                    assert answer == wanted, f"{way}: {answer}, expected {wanted}"
                    spent = [new - old for new, old in zip(after, before, strict=True)]
                    row = ["common", way, asked.keys, asked.shared, master.split(":")[0], number]
                    figures = [f"{spent[0]:.1f}", f"{spent[1]:.1f}", spent[2], answer]
                    out.writerow([*row, *figures, f"{machine}, {os.cpu_count()} cores"])
                    sys.stdout.flush()
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
