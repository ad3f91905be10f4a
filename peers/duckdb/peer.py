# DuckDB's Parquet files with a Bloom filter on the column `key` at RATE; and its lookups in any Parquet file.
#
# Variants: string, binary (both BYTE_ARRAY), long (INT64), int (INT32). N is the maximum number of keys in the dictionary of a row group:
# DuckDB writes filters only for dictionary-encoded columns, sized for the number of keys in the dictionary.
# `check` uses only the filters; every key is present in a row group without one.

import duckdb
from common import lines, lookup, run

# How the text of a line becomes a key.
KEYS = {"string": "{}::VARCHAR", "binary": "encode({})", "long": "{}::BIGINT", "int": "{}::INTEGER"}


def write(variant, n, rate, members, out):
    key = lookup(KEYS, variant).format("line")
    database = duckdb.connect()
    database.execute("CREATE TABLE keys (line VARCHAR)")
    database.execute("INSERT INTO keys SELECT unnest(?)", [lines(members)])
    database.execute(
        f"COPY (SELECT {key} AS key FROM keys) TO $out (FORMAT parquet, WRITE_BLOOM_FILTER true, "
        f"BLOOM_FILTER_FALSE_POSITIVE_RATIO {rate}, DICTIONARY_SIZE_LIMIT {n})",
        {"out": out},
    )


def check(variant, file, keys):
    key = lookup(KEYS, variant).format("$line")
    database = duckdb.connect()
    probe = f"SELECT NOT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe($file, 'key', {key})"
    return [database.execute(probe, {"file": file, "line": line}).fetchone()[0] for line in lines(keys)]


run("duckdb", write, check)
