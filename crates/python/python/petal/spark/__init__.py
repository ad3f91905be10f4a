"""petal on Apache Spark: filters asked from data frames, exact set operations with little shuffle,
and filters as Spark's own SQL reads and writes them.

Needs `pyspark` 4.1 or newer and `pyarrow` where the driver runs, and `pyarrow` on the executors;
petal itself ships to them what they need, one file of a megabyte.
"""

from petal.spark._frames import common, contains, dedup
from petal.spark._sketch import from_spark_bloom, sql_extension, to_spark_bloom, xxhash64

__all__ = [
    "common",
    "contains",
    "dedup",
    "from_spark_bloom",
    "sql_extension",
    "to_spark_bloom",
    "xxhash64",
]
