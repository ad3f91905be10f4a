# DuckDB's Parquet files with a Bloom filter on the column `key`, of RATE; and its answer to any Parquet file.
#
# Variants: string, binary (both BYTE_ARRAY), long (INT64), int (INT32). N is the most keys the dictionary of a row group may have:
# DuckDB writes a filter for dictionary-encoded columns only, and sizes it for the keys it finds.
# `check` asks the filters alone; a row group without one may hold everything.

import duckdb
from words import choose, lines, obey

# How the text of a line becomes a key.
KEYS = {"string": "{}::VARCHAR", "binary": "encode({})", "long": "{}::BIGINT", "int": "{}::INTEGER"}


def write(variant, n, rate, members, out):
    key = choose(KEYS, variant).format("line")
    database = duckdb.connect()
    database.execute("CREATE TABLE keys (line VARCHAR)")
    database.execute("INSERT INTO keys SELECT unnest(?)", [lines(members)])
    database.execute(
        f"COPY (SELECT {key} AS key FROM keys) TO $out (FORMAT parquet, WRITE_BLOOM_FILTER true, "
        f"BLOOM_FILTER_FALSE_POSITIVE_RATIO {rate}, DICTIONARY_SIZE_LIMIT {n})",
        {"out": out},
    )


def check(variant, file, keys):
    key = choose(KEYS, variant).format("$line")
    database = duckdb.connect()
    probe = f"SELECT NOT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe($file, 'key', {key})"
    return [database.execute(probe, {"file": file, "line": line}).fetchone()[0] for line in lines(keys)]


obey("duckdb", write, check)
