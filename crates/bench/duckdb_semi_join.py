"""The rival's side of `cargo x bench headline`: lines of A that are in B, with DuckDB.

Usage: duckdb_semi_join.py A B OUT MEMORY_LIMIT THREADS TEMP_DIR     (or: --version)

Each file is read as one column without quoting; the delimiter is a byte that does not occur. The lines of A are
distinct by construction, so a semi join answers the question and no DISTINCT is asked for.
"""

import sys

import duckdb

if sys.argv[1:] == ["--version"]:
    print(duckdb.__version__)
    sys.exit(0)

a, b, out, memory_limit, threads, temp_dir = sys.argv[1:]
db = duckdb.connect()
db.execute(f"SET memory_limit = '{memory_limit}'")
db.execute(f"SET threads = {int(threads)}")
db.execute(f"SET temp_directory = '{temp_dir}'")
db.execute("SET preserve_insertion_order = false")
db.execute("SET enable_progress_bar = false")


def lines(path):
    return (
        f"read_csv('{path}', delim = '\x01', quote = '', escape = '', header = false, "
        "columns = {'line': 'VARCHAR'}, auto_detect = false)"
    )


db.execute(
    f"COPY (SELECT a.line FROM {lines(a)} a SEMI JOIN {lines(b)} b ON a.line = b.line) "
    f"TO '{out}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')"
)
