# pyarrow's Parquet files with a Bloom filter on the column `key`, for N distinct keys in a row group at RATE.
#
# Variants: string, binary, long (INT64), int (INT32), each also -groups: row groups of N rows.
# pyarrow cannot query the filters that it writes, so `check` is that of the peer duckdb.

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from common import lines, lookup, run

TYPES = {"string": pa.string(), "binary": pa.binary(), "long": pa.int64(), "int": pa.int32()}


def write(variant, n, rate, members, out):
    type_name = variant.removesuffix("-groups")
    type_ = lookup(TYPES, type_name)
    keys = lines(members)
    if pa.types.is_integer(type_):
        keys = [int(key) for key in keys]
    options = {"row_group_size": n} if type_name != variant else {}
    table = pa.table({"key": pa.array(keys, type_)})
    pq.write_table(table, out, bloom_filter_options={"key": {"ndv": n, "fpp": rate}}, **options)


def check(variant, file, keys):
    duckdb = Path(__file__).parent.parent / "duckdb" / "peer.py"
    type_name = variant.removesuffix("-groups")
    answers = subprocess.check_output([sys.executable, duckdb, "check", type_name, file, keys], text=True)
    return [answer == "1" for answer in answers.split()]


run("pyarrow", write, check)
