"""Writes the files of testdata/tables with pyarrow: golden.py DIR."""

import datetime
import sys
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("url", pa.string()),
        ("page", pa.struct([("host", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("tags", pa.list_(pa.string())),
        ("day", pa.date32()),
    ]
)
A = ["http://a.example/", "http://b.example/?q=x,y", "http://a.example/", "", 'say "hi"', "ä", None, None]
B = ["http://b.example/?q=x,y", "http://a.example/", "http://b.example/?q=x,y", "new"]


def table(urls):
    def row(number, url):
        page = None if number % 4 == 3 else {"host": f"h{number % 2}", "tags": ["x", None][: number % 3]}
        day = datetime.date(2026, 11, 23 + number // 4)
        return {"id": number, "url": url, "page": page, "tags": ["t"] * (number % 3), "day": day}

    return pa.Table.from_pylist([row(number, url) for number, url in enumerate(urls, 1)], SCHEMA)


def lists(rows, length):
    """Lists of zeros, which take no bytes in Parquet."""
    zeros = pa.array([[0] * length] * rows, pa.list_(pa.int64()))
    return pa.table({"id": pa.array(range(rows)), "zeros": zeros})


def types():
    """Columns whose values are stored in other forms than they have as text."""
    money, time = [Decimal("997.00"), Decimal("-12.30")], datetime.datetime(2026, 11, 23, 15, 4, 5, 250_000)
    uuids = [uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6").bytes, bytes(16)]
    return pa.table(
        {
            "fixed": pa.array(money, pa.decimal128(30, 2)),
            "date": pa.array([datetime.date(2026, 11, 23), datetime.date(1969, 12, 31)]),
            "time": pa.array([datetime.time(15, 4, 5), datetime.time(0)], pa.time64("us")),
            "millis": pa.array([time, None], pa.timestamp("ms")),
            "micros": pa.array([time, None], pa.timestamp("us", "UTC")),
            "nanos": pa.array([time, None], pa.timestamp("ns")),
            "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array(uuids, pa.binary(16))),
        }
    )


def write_types(path, table, **options):
    filters = {name: {"ndv": 10} for name in table.column_names}
    pq.write_table(table, path, bloom_filter_options=filters, **options)


folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
pq.write_table(table(A), folder / "a.parquet", row_group_size=3, compression="zstd")
pq.write_table(table(B), folder / "b.parquet", compression="snappy", data_page_version="2.0")
with ipc.new_file(str(folder / "a.arrow"), SCHEMA, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
    writer.write_table(table(A), max_chunksize=3)
with ipc.new_stream(str(folder / "a.arrows"), SCHEMA) as writer:
    writer.write_table(table(A), max_chunksize=5)
pq.write_table(lists(2, 300_000), folder / "zeros.parquet", compression="zstd")
pq.write_table(lists(500, 1000), folder / "lists.parquet", compression="zstd")
columns = pa.table({f"c{number}": pa.array([1, 2]) for number in range(500)})
with pa.CompressedOutputStream(str(folder / "columns.parquet.zst"), "zstd") as file:
    pq.write_table(columns, file, compression="none")
write_types(folder / "types.parquet", types())
integers = pa.table({"int32": pa.array([Decimal("997.00"), Decimal("-12.30")], pa.decimal128(9, 2))})
write_types(folder / "money.parquet", integers, store_decimal_as_integer=True)
with ipc.new_file(str(folder / "types.arrow"), types().schema) as writer:
    writer.write_table(types())
