"""Runs set operations on line files with DuckDB, for the benchmarks.

Usage: duckdb_lines.py WORK MEMORY_LIMIT THREADS TEMP_DIR OUT A [B]     (or: --version)

`common`: the lines of A that are in B. The lines of A are distinct by construction, so a semi join is enough and
DISTINCT is not needed. `dedup`: the distinct lines of A, in any order. `count`: the distinct lines of both files with
their counts. Each file is read as one column without quoting; the delimiter is a byte that does not occur.

`columns`: `common` of CSV files with a header, compared by their column url.
"""

import sys

import duckdb

if sys.argv[1:] == ["--version"]:
    print(duckdb.__version__)
    sys.exit(0)

work, memory_limit, threads, temp_dir, out, *files = sys.argv[1:]
db = duckdb.connect()
db.execute(f"SET memory_limit = '{memory_limit}'")
db.execute(f"SET threads = {int(threads)}")
db.execute(f"SET temp_directory = '{temp_dir}'")
db.execute("SET preserve_insertion_order = false")
db.execute("SET enable_progress_bar = false")


def lines(*paths):
    return (
        f"read_csv({list(paths)}, delim = '\x01', quote = '', escape = '', header = false, "
        "columns = {'line': 'VARCHAR'}, auto_detect = false)"
    )


def records(path):
    columns = "{'lang': 'VARCHAR', 'title': 'VARCHAR', 'url': 'VARCHAR'}"
    return f"read_csv('{path}', header = true, columns = {columns}, auto_detect = false)"


output = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\t'"
if work == "columns":
    a, b = map(records, files)
    query = f"SELECT a.* FROM {a} a SEMI JOIN {b} b ON a.url = b.url"
    output = "FORMAT csv, HEADER true"
elif work == "common":
    a, b = map(lines, files)
    query = f"SELECT a.line FROM {a} a SEMI JOIN {b} b ON a.line = b.line"
elif work == "dedup":
    query = f"SELECT DISTINCT line FROM {lines(*files)}"
elif work == "count":
    query = f"SELECT count(*), line FROM {lines(*files)} GROUP BY line"
else:
    sys.exit(f"no such work: {work}")
db.execute(f"COPY ({query}) TO '{out}' ({output})")
