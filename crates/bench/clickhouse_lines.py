"""Runs set operations on line files with ClickHouse (chdb), for the benchmarks.

Usage: clickhouse_lines.py WORK LIMIT THREADS TEMP_DIR OUT A [B]     (or: --version)

LIMIT is `memory`, or a size in MB: tables of joins and aggregations above it go to disk. It does not limit the memory of
the process, of which the library alone takes 230 MB, and parallel reading of input as much again. `max_memory_usage`
ends queries with an error. In memory, `IN` with a subquery is faster than a semi join; it has no form on disk.

The works are those of duckdb_lines.py.
"""

import os
import sys

import chdb
from chdb.session import Session

if sys.argv[1:] == ["--version"]:
    print(chdb.engine_version)
    sys.exit(0)

work, limit, threads, temp_dir, out, *files = sys.argv[1:]
settings = {"max_threads": int(threads)}
if limit != "memory":
    most = int(limit.removesuffix("MB")) * 1_000_000
    settings |= {f"max_bytes_before_external_{kind}": most for kind in ("join", "group_by", "distinct")}
    # Blocks of the default size take more memory than the tables.
    settings["max_block_size"] = 8192


def lines(*paths):
    names = paths[0] if len(paths) == 1 else "{" + ",".join(paths) + "}"
    return f"file('{os.getcwd()}/{names}', LineAsString, 'line String')"


if work == "common":
    a, b = map(lines, files)
    query = f"SELECT line FROM {a} WHERE line IN (SELECT line FROM {b})"
    if limit != "memory":
        query = f"SELECT a.line FROM {a} a LEFT SEMI JOIN {b} b ON a.line = b.line"
elif work == "dedup":
    query = f"SELECT DISTINCT line FROM {lines(*files)}"
elif work == "count":
    query = f"SELECT count(), line FROM {lines(*files)} GROUP BY line"
else:
    sys.exit(f"no such work: {work}")
given = ", ".join(f"{name} = {value}" for name, value in settings.items())
with Session(f"{os.getcwd()}/{temp_dir}/clickhouse") as session:
    session.query(f"{query} INTO OUTFILE '{os.getcwd()}/{out}' TRUNCATE FORMAT TSVRaw SETTINGS {given}")
