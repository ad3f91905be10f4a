"""Writes the files of testdata/tables with pyarrow: golden.py DIR."""

import datetime
import sys
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


folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
pq.write_table(table(A), folder / "a.parquet", row_group_size=3, compression="zstd")
pq.write_table(table(B), folder / "b.parquet", compression="snappy", data_page_version="2.0")
with ipc.new_file(str(folder / "a.arrow"), SCHEMA, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
    writer.write_table(table(A), max_chunksize=3)
with ipc.new_stream(str(folder / "a.arrows"), SCHEMA) as writer:
    writer.write_table(table(A), max_chunksize=5)
