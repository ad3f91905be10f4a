"""petal on Apache Spark: exact set operations on line files and data frames, and filters.

The type of the first argument selects the kind of operation:

* a `SparkSession` or `SparkContext`: a job on line files that all executors see. Spark schedules
  the tasks, petal reads the files. `common`, `diff`, `symdiff`, `dedup`, `build`, `check`.
* a `DataFrame`: an operation on rows, with less shuffling than Spark's own joins. `common`,
  `diff`, `dedup`, `build`, `contains`; `transform_key` for their columns. `register` makes a look-up
  an SQL function.

`to_spark_bloom` and `from_spark_bloom` convert filters from and to the format of Spark's SQL.

The driver needs the extra `petal-filters[spark]`: `pyspark` 4.1 or newer, `pyarrow`, `pandas`; a
client of Spark Connect needs `petal-filters[connect]`. Executors use the Python of `PYSPARK_PYTHON`;
for data frames and in Spark Connect it needs `pyarrow`, for files nothing. The driver sends them
petal's extension module, a file of some megabytes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Unpack, overload

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession

from petal._distributed.arguments import Folder, Paths
from petal._distributed.options import ExactOptions, Options
from petal._distributed.stages import Report
from petal._petal import BloomFilter
from petal.spark import _engine, _frames
from petal.spark._engine import check, symdiff
from petal.spark._frames import contains, register, transform_key
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
    "register",
    "sql_extension",
    "symdiff",
    "to_spark_bloom",
    "transform_key",
    "xxhash64",
]


@overload
def common(
    first: DataFrame, df_b: DataFrame, /, on: str | Sequence[str], *, fpr: float = 0.01
) -> DataFrame: ...
@overload
def common(
    first: SparkSession | SparkContext,
    /,
    a: Paths,
    b: Paths,
    out: Folder | None,
    *,
    at_least: int | None = None,
    **options: Unpack[ExactOptions],
) -> Report: ...
def common(first: Any, /, *args: Any, **options: Any) -> Any:
    """Returns or writes the exact intersection of two inputs.

    `common(df_a, df_b, on)` returns the rows of `df_a` whose key is in `df_b`; see
    `petal.spark._frames.common`.

    `common(spark, a, b, out)` writes the lines of files that are in other files; see
    `petal._distributed.jobs.common`.
    """
    return _implementation(first).common(first, *args, **options)


@overload
def diff(
    first: DataFrame, df_b: DataFrame, /, on: str | Sequence[str], *, fpr: float = 0.01
) -> DataFrame: ...
@overload
def diff(
    first: SparkSession | SparkContext,
    /,
    a: Paths,
    b: Paths,
    out: Folder | None,
    **options: Unpack[ExactOptions],
) -> Report: ...
def diff(first: Any, /, *args: Any, **options: Any) -> Any:
    """Returns or writes what is in the first input and not in the second.

    `diff(df_a, df_b, on)` returns the rows of `df_a` whose key is not in `df_b`; see
    `petal.spark._frames.diff`.

    `diff(spark, a, b, out)` writes the lines of files that are not in other files; see
    `petal._distributed.jobs.diff`.
    """
    return _implementation(first).diff(first, *args, **options)


@overload
def build(
    first: DataFrame,
    /,
    col: str | Column,
    *,
    capacity: int | None = None,
    fpr: float = 0.01,
    key_transform: Iterable[str] | None = None,
) -> BloomFilter: ...
@overload
def build(
    first: SparkSession | SparkContext,
    /,
    paths: Paths,
    out: Folder,
    *,
    capacity: int | None = None,
    fpr: float = 0.01,
    **options: Unpack[Options],
) -> Report: ...
def build(first: Any, /, *args: Any, **options: Any) -> Any:
    """Builds a Bloom filter: `build(df, col)` returns one of a column, `build(spark, paths, out)`
    writes one of the lines of files."""
    return _implementation(first).build(first, *args, **options)


@overload
def dedup(first: DataFrame, /, on: str | Sequence[str], *, fpr: float = 0.01) -> DataFrame: ...
@overload
def dedup(
    first: SparkSession | SparkContext,
    /,
    a: Paths,
    out: Folder | None,
    *,
    only_duplicates: bool = False,
    only_unique: bool = False,
    **options: Unpack[ExactOptions],
) -> Report: ...
def dedup(first: Any, /, *args: Any, **options: Any) -> Any:
    """Removes duplicates: `dedup(df, on)` of rows, `dedup(spark, a, out)` of lines in files."""
    return _implementation(first).dedup(first, *args, **options)


def _implementation(first: Any) -> Any:
    return _frames if isinstance(first, DataFrame) else _engine
