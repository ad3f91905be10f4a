"""Compares `common` and `diff` on Spark with Spark's own joins: CPU seconds and shuffled bytes.

`python crates/python/bench/spark.py [--keys N] [--keys-b N] [--shared PERCENT] [--payload BYTES]
[--rounds N] [--local] [METHOD ...]` writes two text files of N URLs of 64 bytes, starts a standalone
master and two workers with one core each (`--local`: `local[2]`), runs the methods in turns in one
session, and prints rows of CSV. Round 0 warms up the JVM and is printed like the others.
B has `--keys-b` keys, of which PERCENT of the smaller side are in A too. With `--payload` both are
Parquet files, and each row of A has that many random bytes, which the result must have.

It runs in the environment `target/python/spark` (installed by `cargo x python --engines`), with
psutil installed in addition. CPU seconds are of all processes. Every result is counted and checked.

Other methods run if they are named: `semi` and `anti` are Spark's joins as it chooses them without
a hint, `broadcast` and `anti-hash` with one; `frames-diff` is petal's `diff`, and `files-diff` that of
files. `scan` and `scan-python` add the lengths of A's lines, the
second after sending them to Python and back; `dropDuplicates` and `frames-dedup` read both files.
"""

import argparse
import csv
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import petal.spark

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/spark"))
from clusters import free_port, standalone  # noqa: E402

URL = b"https://www.example.com/archive/"
AT_ONCE = 1 << 19
ROW_GROUP = 1 << 16
HEADER = (
    ["date", "commit", "work", "way", "keys", "keys_b", "percent", "payload_bytes", "cluster", "round"]
    + ["processor_s", "wall_s", "shuffled_bytes", "answer", "load_1min", "machine", "command"]
)


def write_urls(path: Path, start: int, number: int) -> None:
    """Writes lines of 64 bytes, each a function of its number."""
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


def write_table(lines: Path, payload: int) -> None:
    """Replaces a file of lines by a Parquet file of them, with random bytes beside each."""
    schema = pa.schema([("value", pa.string())] + [("payload", pa.binary())] * (payload > 0))
    table, random = lines.with_suffix(".parquet"), np.random.default_rng(1)
    with lines.open() as texts, pq.ParquetWriter(table, schema, compression="none") as out:
        while rows := [line.rstrip("\n") for _, line in zip(range(ROW_GROUP), texts, strict=False)]:
            columns: dict[str, list] = {"value": rows}
            if payload:
                columns["payload"] = [random.bytes(payload) for _ in rows]
            out.write_table(pa.table(columns, schema))
    lines.unlink()
    table.rename(lines)


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and all its descendants, running or ended."""
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


def count(answer: DataFrame) -> int:
    """Returns the number of rows, after all their columns were read."""
    if "payload" not in answer.columns:
        return answer.count()
    rows, _ = answer.agg(F.count("*"), F.sum(F.length("payload"))).first()
    return rows


def methods(
    spark: SparkSession, a: Path, b: Path, folder: Path, is_table: bool
) -> dict[str, Callable[[], int]]:
    def frame(path: Path) -> DataFrame:
        return spark.read.parquet(str(path)) if is_table else spark.read.text(str(path))

    def frames(operation: Callable[..., DataFrame]) -> int:
        answer = operation(frame(a), frame(b), "value")
        rows = count(answer)
        answer.unpersist()
        return rows

    def files(operation: Callable[..., petal.spark.Report]) -> int:
        out = Path(tempfile.mkdtemp(dir=folder)) / "out"
        return operation(spark, str(a), str(b), str(out)).kept

    def joined(hint: str | None, kind: str = "left_semi") -> int:
        other = frame(b) if hint is None else frame(b).hint(hint)
        return count(frame(a).join(other, "value", kind))

    def length(df: DataFrame) -> int:
        return df.agg(F.sum(F.length("value"))).first()[0]

    def both() -> DataFrame:
        return frame(a).unionAll(frame(b))

    return {
        "sort-merge": lambda: joined("merge"),
        "shuffle-hash": lambda: joined("shuffle_hash"),
        "broadcast": lambda: joined("broadcast"),
        "frames": lambda: frames(petal.spark.common),
        "files": lambda: files(petal.spark.common),
        "semi": lambda: joined(None),
        "anti": lambda: joined(None, "left_anti"),
        "anti-hash": lambda: joined("shuffle_hash", "left_anti"),
        "frames-diff": lambda: frames(petal.spark.diff),
        "files-diff": lambda: files(petal.spark.diff),
        "scan": lambda: length(frame(a)),
        "scan-python": lambda: length(frame(a).mapInArrow(lambda batches: batches, "value string")),
        "dropDuplicates": lambda: both().dropDuplicates(["value"]).count(),
        "frames-dedup": lambda: petal.spark.dedup(both(), "value").count(),
    }


def expected(method: str, keys: int, keys_b: int, shared: int) -> int:
    """Returns the expected result of a method."""
    if method.startswith("scan"):
        return 64 * keys
    if method.startswith("anti") or method.endswith("-diff"):
        return keys - shared
    return keys + keys_b - shared if method in ("dropDuplicates", "frames-dedup") else shared


def commit() -> str:
    """Returns the short hash of the checked-out commit, empty outside a repository."""
    command = ["git", "-C", Path(__file__).parent, "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--keys-b", type=int, help="keys of B [as many as A]")
    parser.add_argument("--payload", type=int, default=0, help="bytes beside each key of A, in Parquet")
    parser.add_argument("--shared", type=float, default=1, help="percent in common")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--memory", default="3g", help="memory of each worker, or of local[2]")
    parser.add_argument("methods", nargs="*", default=["sort-merge", "shuffle-hash", "frames", "files"])
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="petal-bench-"))
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    keys_b = args.keys_b or args.keys
    shared = int(min(args.keys, keys_b) * args.shared / 100)
    a, b = folder / "a.txt", folder / "b.txt"
    write_urls(a, 0, args.keys)
    write_urls(b, args.keys - shared, keys_b)
    if args.payload:
        write_table(a, args.payload)
        write_table(b, 0)
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    machine = names[0].split(": ")[1] if names else platform.machine()
    fixed = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "work": "common",
        "keys": args.keys,
        "keys_b": keys_b,
        "percent": args.shared,
        "payload_bytes": args.payload,
        "machine": f"{machine}, {os.cpu_count()} cores",
        "command": shlex.join(["python", "crates/python/bench/spark.py", *sys.argv[1:]]),
    }
    out = csv.DictWriter(sys.stdout, HEADER, lineterminator="\n")
    out.writeheader()
    cluster = nullcontext("local[2]") if args.local else standalone(folder, args.memory)
    try:
        with cluster as master:
            builder = SparkSession.builder.master(master).appName("petal's benchmark")
            settings = {
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.memory": args.memory,
                "spark.executor.memory": args.memory,
                "spark.local.dir": folder / "local",
                "spark.ui.port": free_port(),
                "spark.ui.showConsoleProgress": "false",
            }
            for name, value in settings.items():
                builder = builder.config(name, str(value))
            spark = builder.getOrCreate()
            spark.sparkContext.setLogLevel("OFF")
            todo = methods(spark, a, b, folder, args.payload > 0)
            for number in range(args.rounds):
                for method in args.methods:
                    before = cpu_seconds(), time.time(), shuffled_bytes(spark.sparkContext)
                    answer = todo[method]()
                    after = cpu_seconds(), time.time(), shuffled_bytes(spark.sparkContext)
                    wanted = expected(method, args.keys, keys_b, shared)
                    assert answer == wanted, f"{method}: {answer}, expected {wanted}"
                    spent = [new - old for new, old in zip(after, before, strict=True)]
                    out.writerow(
                        fixed
                        | {
                            "way": method,
                            "cluster": master.split(":")[0],
                            "round": number,
                            "processor_s": f"{spent[0]:.1f}",
                            "wall_s": f"{spent[1]:.1f}",
                            "shuffled_bytes": spent[2],
                            "answer": answer,
                            "load_1min": f"{os.getloadavg()[0]:.1f}",
                        }
                    )
                    sys.stdout.flush()
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
