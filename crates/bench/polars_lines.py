"""Runs set operations on line files with polars' streaming engine, for the benchmarks.

Usage: polars_lines.py WORK LIMIT THREADS TEMP_DIR OUT A [B]     (or: --version)

LIMIT is `memory`, or the memory budget in MB above which tables go to disk. Each file is read as CSV without quoting;
the delimiter is a byte that does not occur, which takes less time than `scan_lines`.

The works are those of duckdb_lines.py.
"""

import os
import shutil
import sys

if len(sys.argv) > 2:
    work, limit, threads, temp_dir, out, *files = sys.argv[1:]
    spill_dir = os.path.join(temp_dir, "polars")
    os.environ["POLARS_MAX_THREADS"] = threads
    os.environ["POLARS_OOC_SPILL_DIR"] = spill_dir
    if limit != "memory":
        os.environ["POLARS_OOC_MEMORY_BUDGET_MB"] = limit.removesuffix("MB")

# The library reads the variables.
import polars as pl

if sys.argv[1:] == ["--version"]:
    print(pl.__version__)
    sys.exit(0)


def lines(paths):
    return pl.scan_csv(paths, has_header=False, separator="\x01", quote_char=None, schema={"line": pl.String})


if work == "common":
    a, b = map(lines, files)
    query = a.join(b, on="line", how="semi")
elif work == "dedup":
    query = lines(files).unique()
elif work == "count":
    query = lines(files).group_by("line").len().select("len", "line")
else:
    sys.exit(f"no such work: {work}")
query.sink_csv(
    out, include_header=False, separator="\t", quote_style="never", maintain_order=False, engine="streaming"
)
# It leaves empty folders.
shutil.rmtree(spill_dir, ignore_errors=True)
