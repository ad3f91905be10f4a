"""Set operations past one machine, on Apache Spark.

`build`, `check`, `common`, `dedup` and `diff` work on line files that all workers see; `frames` has
the same for data frames; and Spark's own Bloom filters are written and read for clusters that do
not have petal.
"""

from petal.spark._files import build, check, common, dedup, diff
from petal.spark._sketch import from_spark_bloom, sql_extension, to_spark_bloom, xxhash64

__all__ = [
    "build",
    "check",
    "common",
    "dedup",
    "diff",
    "from_spark_bloom",
    "sql_extension",
    "to_spark_bloom",
    "xxhash64",
]
