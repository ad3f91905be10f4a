"""Runs set operations on line files with DuckDB, for the benchmarks.

Usage: duckdb_lines.py MEMORY_LIMIT THREADS TEMP_DIR OUT A [B]     (or: --version)

With B: the lines of A that are in B. The lines of A are distinct by construction, so a semi join is enough
and DISTINCT is not needed. Without B: the distinct lines of A, in any order. Each file is read as one column without
quoting; the delimiter is a byte that does not occur.

Files named .csv have a header and are compared by their column url.
"""

import sys

import duckdb

if sys.argv[1:] == ["--version"]:
    print(duckdb.__version__)
    sys.exit(0)

memory_limit, threads, temp_dir, out, *files = sys.argv[1:]
db = duckdb.connect()
db.execute(f"SET memory_limit = '{memory_limit}'")
db.execute(f"SET threads = {int(threads)}")
db.execute(f"SET temp_directory = '{temp_dir}'")
db.execute("SET preserve_insertion_order = false")
db.execute("SET enable_progress_bar = false")


def lines(path):
    if path.endswith(".csv"):
        columns = "{'lang': 'VARCHAR', 'title': 'VARCHAR', 'url': 'VARCHAR'}"
        return f"read_csv('{path}', header = true, columns = {columns}, auto_detect = false)"
    return (
        f"read_csv('{path}', delim = '\x01', quote = '', escape = '', header = false, "
        "columns = {'line': 'VARCHAR'}, auto_detect = false)"
    )


if files[0].endswith(".csv"):
    a, b = map(lines, files)
    db.execute(f"COPY (SELECT a.* FROM {a} a SEMI JOIN {b} b ON a.url = b.url) TO '{out}' (FORMAT csv, HEADER true)")
    sys.exit(0)
if len(files) == 2:
    a, b = map(lines, files)
    query = f"SELECT a.line FROM {a} a SEMI JOIN {b} b ON a.line = b.line"
else:
    (a,) = map(lines, files)
    query = f"SELECT DISTINCT line FROM {a}"
db.execute(f"COPY ({query}) TO '{out}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')")
