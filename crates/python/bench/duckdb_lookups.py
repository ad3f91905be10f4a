"""Compares look-ups in a filter file with DuckDB's own joins: seconds and peak memory.

`python crates/python/bench/duckdb_lookups.py [--keys N] [--keys-b N] [--shared PERCENT] [--rounds N]` writes
two Parquet files of URLs of 64 bytes, a table A and a table B, and a filter file of B. It prints rows of CSV:
the number of rows of A whose URL is not in B, by each method in turns, each in a new process.

- `anti`: `SELECT count(*) FROM A ANTI JOIN B USING (url)`.
- `filter`: the same by a function of the filter file. False positives are missing in its answer, which is checked.
- `build`: builds the filter file from B, once.

Seconds are of the query alone, without the start of the process; memory is the peak of the whole process, of
which `start_mb` is taken before the query.
"""

import argparse
import csv
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HEADER = ["date", "commit", "method", "keys_a", "keys_b", "percent", "round", "processor_s", "wall_s", "start_mb", "peak_mb"]
HEADER += ["answer", "load_1min", "command", "machine"]
URL = "'https://www.example.com/archive/' || left(md5(range::VARCHAR), 32)"


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def commit() -> str:
    """Returns the short hash of the checked-out commit, empty outside a repository."""
    command = ["git", "-C", Path(__file__).parent, "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return f"{names[0].split(': ')[1] if names else platform.machine()}, {os.cpu_count()} cores"


def run(method: str, folder: Path) -> None:
    """Runs one method in this process and prints its figures."""
    import duckdb
    import petal
    import petal.duckdb

    os.chdir(folder)
    connection = duckdb.connect()
    connection.execute("SET threads = 2; SET enable_progress_bar = false")
    if method == "filter":
        petal.duckdb.register(connection, "in_b", "b.petal")
    query = {
        "anti": "SELECT count(*) FROM 'a.parquet' ANTI JOIN 'b.parquet' USING (url)",
        "filter": "SELECT count(*) FROM 'a.parquet' WHERE NOT in_b(url)",
    }
    before, start, clock = peak_mb(), time.process_time(), time.monotonic()
    if method == "build":
        rows = connection.execute("SELECT count(*) FROM 'b.parquet'").fetchall()[0][0]
        filter = petal.BloomFilter(rows, 0.001)
        filter.update(connection.sql("SELECT url FROM 'b.parquet'"))
        filter.save("b.petal")
        answer = filter.inserted
    else:
        answer = connection.execute(query[method]).fetchall()[0][0]
    spent = time.process_time() - start, time.monotonic() - clock
    print(",".join(map(str, [round(spent[0], 2), round(spent[1], 2), before, peak_mb(), answer])))


def main() -> None:
    import duckdb

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--keys-b", type=int, default=10_000_000)
    parser.add_argument("--shared", type=float, default=50, help="percent of the rows of A that are in B")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--method", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.method:
        run(args.method, args.folder)
        return
    out = csv.writer(sys.stdout)
    out.writerow(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        start = args.keys_b - int(args.keys * args.shared / 100)
        for name, first, rows in [("a", start, args.keys), ("b", 0, args.keys_b)]:
            source = f"SELECT {URL} AS url FROM range({first}, {first + rows})"
            duckdb.execute(f"COPY ({source}) TO '{folder}/{name}.parquet'")
        absent = args.keys - (args.keys_b - start)
        for number in range(args.rounds):
            for method in ["build"] * (number == 0) + ["anti", "filter"]:
                again = [sys.executable, __file__, "--method", method, "--folder", folder]
                figures = subprocess.run(again, stdout=subprocess.PIPE, text=True, check=True).stdout.split(",")
                answer = int(figures[-1])
                assert method == "build" or (0.98 if method == "filter" else 1) * absent <= answer <= absent, answer
                load = round(os.getloadavg()[0], 1)
                row = [datetime.now(UTC).date(), commit(), method, args.keys, args.keys_b, args.shared, number]
                command = "python crates/python/bench/duckdb_lookups.py " + " ".join(sys.argv[1:])
                out.writerow([*row, *figures[:-1], answer, load, command.strip(), machine()])
                sys.stdout.flush()


if __name__ == "__main__":
    main()
