"""petal on Apache Spark: exact set operations on files of lines and on data frames with little
shuffle, filters built and asked by a cluster, and filters as Spark's own SQL reads and writes them.

Two faces, told apart by what comes first:

* a `SparkSession` or `SparkContext`: a job on line files that all executors see. Spark schedules,
  petal reads. `common`, `diff`, `dedup`, `build`, `check`.
* a `DataFrame`: rows that Spark has already. `common`, `dedup`, `contains`.

Needs the extra `petal[spark]` where the driver runs: `pyspark` 4.1 or newer, `pyarrow`, `pandas`.
Executors, whose Python is what `PYSPARK_PYTHON` names, need `pyarrow` for data frames and nothing
for files; the driver ships petal's extension module to them, one file of some megabytes.
"""

from collections.abc import Sequence
from typing import Any, overload

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from petal._arguments import Folder, Paths
from petal._stages import Report
from petal.spark import _files, _frames
from petal.spark._files import build, check, diff
from petal.spark._frames import contains
from petal.spark._sketch import from_spark_bloom, sql_extension, to_spark_bloom, xxhash64

__all__ = [
    "Report",
    "build",
    "check",
    "common",
    "contains",
    "dedup",
    "diff",
    "from_spark_bloom",
    "sql_extension",
    "to_spark_bloom",
    "xxhash64",
]


@overload
def common(
    first: DataFrame, df_b: DataFrame, /, on: str | Sequence[str], *, rate: float = 0.01
) -> DataFrame: ...
@overload
def common(
    first: SparkSession | SparkContext, /, a: Paths, b: Paths, out: Folder | None, **options: Any
) -> Report: ...
def common(first: Any, /, *args: Any, **options: Any) -> Any:
    """What two inputs have in common, exactly.

    `common(df_a, df_b, on)`: the rows of a data frame whose key is in another. It is in this
    package's `_frames` and described there.

    `common(spark, a, b, out)`: the lines of files that are in other files. It is
    `petal._jobs.common` on Spark and described there.
    """
    return _face(first).common(first, *args, **options)


@overload
def dedup(first: DataFrame, /, on: str | Sequence[str], *, rate: float = 0.01) -> DataFrame: ...
@overload
def dedup(
    first: SparkSession | SparkContext, /, a: Paths, out: Folder | None, **options: Any
) -> Report: ...
def dedup(first: Any, /, *args: Any, **options: Any) -> Any:
    """One of each: `dedup(df, on)` rows of a data frame, `dedup(spark, a, out)` lines of files."""
    return _face(first).dedup(first, *args, **options)


def _face(first: Any) -> Any:
    return _frames if isinstance(first, DataFrame) else _files
