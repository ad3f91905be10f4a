"""Compares petal's rows with those of DuckDB: compare.py PETAL ROUNDS SEED

Random CSV, JSON lines, Parquet and Arrow files with quotes, line ends, nulls and nested columns, written by Python's
csv and json, by pyarrow and by DuckDB. `common`, `diff` and `dedup` by one or two columns must give the rows that
DuckDB gives, in the order of the input. Exit code 1 and the seed of the round if they do not.
"""

import csv
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

TEXTS = ["", "a", "b", "A", " a", "a,b", 'say "x"', "two\nlines", "\r\n", "ä€", "http://a.example/", "\t", "NULL"]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("number", pa.int32()),
        ("page", pa.struct([("host", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("day", pa.date32()),
    ]
)
FORMATS = ["csv", "jsonl", "parquet", "parquet-v2", "parquet-duckdb", "arrow", "feather", "stream"]
KEYS = [["text"], ["number"], ["page.host"], ["text", "number"], ["day"]]


def rows(rng, first, count):
    def text():
        return None if rng.random() < 0.1 else rng.choice(TEXTS) + str(rng.randrange(3)) * rng.randrange(2)

    def page():
        if rng.random() < 0.1:
            return None
        return {"host": text(), "tags": [text() for _ in range(rng.randrange(3))]}

    def number():
        return None if rng.random() < 0.1 else rng.randrange(-9, 9)

    def row(id):
        return {"id": id, "text": text(), "number": number(), "page": page(), "day": rng.randrange(-40, 40)}

    return [row(first + i) for i in range(count)]


def write(rng, path, form, rows):
    """Writes rows; returns the table that DuckDB sees."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    size = rng.choice([3, 50, 1000])
    codec = rng.choice(["none", "snappy", "zstd", "gzip", "lz4"])
    if form == "csv":
        # CSV has no null: it is an empty field.
        with open(path, "w", newline="") as file:
            quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
            lines = csv.writer(file, lineterminator=rng.choice(["\n", "\r\n"]), quoting=quoting)
            lines.writerow(["id", "text", "number", "page.host", "day"])
            lines.writerows(flat(rows))
    elif form == "jsonl":
        ascii = rng.random() < 0.5
        path.write_text("".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in rows))
    elif form == "parquet":
        pq.write_table(table, path, compression=codec, row_group_size=size, use_dictionary=rng.random() < 0.5)
    elif form == "parquet-v2":
        options = {"data_page_version": "2.0", "data_page_size": 64, "write_batch_size": 10}
        pq.write_table(table, path, compression=codec, row_group_size=size, **options)
    elif form == "parquet-duckdb":
        connection = duckdb.connect()
        connection.register("source", table)
        codec = "uncompressed" if codec == "none" else codec
        connection.sql(f"COPY (SELECT * FROM source ORDER BY id) TO '{path}' (FORMAT parquet, CODEC '{codec}')")
    elif form == "feather":
        feather.write_feather(table, path, compression=rng.choice(["lz4", "zstd", "uncompressed"]), chunksize=size)
    else:
        options = ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))
        make = ipc.new_file if form == "arrow" else ipc.new_stream
        with make(str(path), SCHEMA, options=options) as writer:
            writer.write_table(table, max_chunksize=size)
    return table


def flat(rows):
    """The rows of CSV: all fields are texts."""
    for row in rows:
        fields = [row["id"], row["text"], row["number"], (row["page"] or {}).get("host"), row["day"]]
        yield ["" if field is None else str(field) for field in fields]


def texts(names, rows):
    """The table of CSV that DuckDB sees: texts, but the id is a number."""
    columns = {name.replace(".", "_"): [row[at] for row in rows] for at, name in enumerate(names)}
    columns["id"] = pa.array([int(one) for one in columns["id"]], pa.int64())
    others = {name: pa.array(column, pa.string()) for name, column in columns.items() if name != "id"}
    return pa.table({"id": columns["id"], **others})


def ids(path, form):
    """The ids of the rows in an output, which must be whole rows."""
    if form == "csv":
        return [int(row["id"]) for row in csv.DictReader(io.StringIO(path.read_bytes().decode(), newline=""))]
    if form == "jsonl":
        return [json.loads(line)["id"] for line in path.read_text().splitlines()]
    return [row["id"] for row in read(path, form).to_pylist()]


def read(path, form):
    if form.startswith("parquet"):
        return pq.read_table(path)
    if form == "stream":
        return ipc.open_stream(path.read_bytes()).read_all()
    return ipc.open_file(path.read_bytes()).read_all()


def expected(op, tables, keys):
    """The ids that DuckDB finds: of rows with one key the first."""
    connection = duckdb.connect()
    for name, table in zip("abc", tables):
        connection.register(name, table)
    key = ", ".join(keys)
    first = "SELECT min(id) FROM {} GROUP BY " + key
    if op == "dedup":
        everything = " UNION ALL ".join(f"SELECT * FROM {name}" for name in "abc"[: len(tables)])
        query = first.format(f"({everything})")
    else:
        same = " AND ".join(f"a.{one} IS NOT DISTINCT FROM o.{one}" for one in keys)
        within = [f"EXISTS (SELECT 1 FROM {other} o WHERE {same})" for other in "bc"[: len(tables) - 1]]
        where = " AND ".join(within) if op == "common" else " AND ".join("NOT " + one for one in within)
        query = f"SELECT min(id) FROM a WHERE {where} GROUP BY {key}"
    return sorted(found for (found,) in connection.sql(query).fetchall())


def round_of(seed, petal, folder):
    rng = random.Random(seed)
    form = FORMATS[seed % len(FORMATS)]
    op = rng.choice(["common", "diff", "dedup"])
    count = rng.choice([2, 3])
    files = [folder / f"{name}.{form}" for name in "abc"[:count]]
    all_rows = [rows(rng, 1000 * number, rng.choice([0, 1, 30, 200])) for number in range(count)]
    tables = [write(rng, path, form, part) for path, part in zip(files, all_rows)]
    keys = rng.choice(KEYS)
    if form == "csv":
        names = ["id", "text", "number", "page.host", "day"]
        columns = [[list(row) for row in flat(part)] for part in all_rows]
        tables = [texts(names, part) for part in columns]
    if form == "jsonl":
        selection = [part for key in keys for part in ("--json-key", "/" + key.replace(".", "/"))]
    else:
        selection = ["--column", ",".join(keys)]
    out = folder / "out"
    command = [petal, op, *map(str, files), *selection, "-o", str(out), "-m", "64M", "-q"]
    if rng.random() < 0.5:
        command += ["--strategy", rng.choice(["memory", "partition", "narrow"])]
    subprocess.run(command, check=True)
    sql = [key.replace(".", "_") for key in keys] if form == "csv" else keys
    wanted = expected(op, tables, sql)
    found = ids(out, form)
    if found != wanted:
        print(f"seed {seed}: {' '.join(command)}\nexpected {wanted}\nfound    {found}", file=sys.stderr)
        return False
    if form not in ("csv", "jsonl"):
        result = read(out, form)
        assert result.schema.equals(read(files[0], form).schema, check_metadata=True), f"seed {seed}: schema"
        by_id = {row["id"]: row for table in tables for row in table.to_pylist()}
        assert result.to_pylist() == [by_id[one] for one in found], f"seed {seed}: rows"
    return True


def main(petal, rounds, seed):
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(seed), int(seed) + int(rounds)):
            if not round_of(number, petal, Path(folder)):
                return 1
    print(f"{rounds} rounds from seed {seed} on: the same rows as DuckDB {duckdb.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
