"""Filters asked from data frames, and exact set operations between them.

A filter is a semi-join's reduction before the shuffle: rows whose key is certainly on one side
only never leave the machine that reads them. What decides afterwards is never a filter, but
128-bit fingerprints of the keys under a random key of each call, in Spark's own joins.

**Cost.** A row costs about a third of a microsecond from the JVM to Python and back, whatever is
done with it there, so no row is taken there twice: the pass over `b` leaves its fingerprints
behind, 16 bytes a row, held by Spark in runs of many, and everything after that works on these.
Only key columns leave the JVM; others are carried along in it.
"""

import os
import secrets
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext, StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from petal import _petal
from petal.spark import _frame_tasks as _tasks

_PRINT = "__petal_print"
"""The column of fingerprints, while there is one."""

_ROWS_A_PARTITION = 1 << 20
"""Survivors that one task of the exact join takes."""

_REPEATED = 0.5
"""Share of repeated keys from which on nothing is saved by leaving the others where they are."""

_planning = threading.Lock()

_folders: weakref.WeakKeyDictionary[SparkContext, Path] = weakref.WeakKeyDictionary()


def contains(
    df: DataFrame,
    col: str | Column,
    filter: _petal.Filter | str | os.PathLike[str],
    *,
    column: str | None = None,
) -> DataFrame:
    """The rows of `df` whose key may be in `filter`; with `column`, all rows, with the answer in a
    boolean column of that name. Null is no key: false.

    `col` is of strings, binary values or whole numbers from 0, and a filter holds them as it holds
    `str`, `bytes` and `int`. `filter` is one, or the path of its file where the driver runs; it is
    copied once to each executor and mapped there. Lazy, as Spark is.
    """
    key = _column(df, col) if isinstance(col, str) else col
    _check_kind(df.select(key).schema[0].dataType, f"col: {col!r}")
    context = df.sparkSession.sparkContext
    context.addFile(_petal.__file__)
    if isinstance(filter, _petal.Filter):
        name = _publish(context, filter.to_bytes())
    elif isinstance(filter, str | bytes | os.PathLike):
        _petal.open(filter)  # Says at once what is wrong with it.
        name = _publish(context, Path(os.fsdecode(filter)))
    else:
        kind = type(filter).__name__
        raise TypeError(f"filter: expected a filter or the path of its file, found {kind}")
    mask = F.arrow_udf(_tasks.mask_of(name), "boolean")(key)
    return df.where(mask) if column is None else df.withColumn(column, mask)


def common(
    df_a: DataFrame, df_b: DataFrame, on: str | Sequence[str], *, rate: float = 0.01
) -> DataFrame:
    """The rows of `df_a` whose key, in the columns `on`, is that of a row of `df_b`: exactly the
    answer of `df_a.join(df_b, on, "left_semi")`, so rows with a null in their key are not in it.

    The work is done in this call, and the answer persisted: `unpersist()` it when done. Its columns
    go by their names: `answer["url"]`, not `df_a["url"]`, which is a column of `df_a` alone. Key
    columns are strings, binary values or whole numbers, of the same kind on both sides. `rate` is
    that of the filters: share of the other rows of `df_a` that are shuffled all the same.

    Shuffles the rows of `df_a` that are in common, `rate` of the others, and 16 bytes a row of
    `df_b` that is in common. Holds, while it runs, 16 bytes a row of `df_b` and what is shuffled.
    """
    keys, keys_b = _keys(on, df_a, df_b)
    df_a, df_b = _not_null(df_a, keys), _not_null(df_b, keys_b)
    context, key = df_a.sparkSession.sparkContext, secrets.token_bytes(_tasks.PRINT)
    context.addFile(_petal.__file__)
    runs = _keyed(df_b, keys_b).mapInArrow(_tasks.runs_of(key), "prints binary")
    with _held(runs):
        (filter,) = _filled(runs, _tasks.one_filter, _rows(runs), rate)
        survivors = _survivors(df_a, keys, key, _publish(context, filter))
        with _held(survivors):
            rows = survivors.count()
            own = survivors.select(_PRINT)
            (filter,) = _filled(own, _tasks.one_filter, rows, rate)
            found = runs.mapInArrow(_tasks.narrowed(_publish(context, filter)), f"{_PRINT} binary")
            answer = survivors.join(found, _PRINT, "left_semi").drop(_PRINT)
            parts = max(context.defaultParallelism, -(-rows // _ROWS_A_PARTITION))
            with _shuffle_partitions(df_a.sparkSession, parts):
                answer.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                answer.count()
            except BaseException:
                answer.unpersist()
                raise
    return answer


def dedup(df: DataFrame, on: str | Sequence[str], *, rate: float = 0.01) -> DataFrame:
    """One row for each key in the columns `on`: exactly as many rows as `df.dropDuplicates(on)`
    has, and as there it is not said which row of several; null is a key like others.

    Filters are filled in this call; what it returns is as lazy as Spark is, and reads `df` twice.
    Key columns are as in `common`. `rate` is that of the filters: share of the rows with a key of
    their own that are shuffled all the same. Rows whose key is certainly their own never are.

    Where so many keys repeat that this saves nothing, it is `df.dropDuplicates(on)`.
    """
    (keys,) = _keys(on, df)
    context, key = df.sparkSession.sparkContext, secrets.token_bytes(_tasks.PRINT)
    context.addFile(_petal.__file__)
    runs = _keyed(df, keys).mapInArrow(_tasks.runs_of(key), "prints binary")
    with _held(runs):
        rows = _rows(runs)
        _, twice = _filled(runs, _tasks.two_filters, rows, rate)
    if _petal.BloomFilter.from_bytes(twice).estimated_len > rows * _REPEATED:
        return df.dropDuplicates(keys)
    tagged = _tagged(df, keys, key, _publish(context, twice))
    single, several = (tagged.where(f"{_PRINT} is {what} null") for what in ("", "not"))
    return single.unionAll(several.dropDuplicates([_PRINT])).drop(_PRINT)


def _keys(on: str | Sequence[str], *frames: DataFrame) -> list[list[str]]:
    """The names of the key columns in each frame, of kinds that can be keys and are the same."""
    for frame in frames:
        if not isinstance(frame, DataFrame):
            raise TypeError(
                f"expected data frames on both sides, found {type(frame).__name__}; for files give "
                "the session first, and paths: common(spark, a, b, out)"
            )
    names = [on] if isinstance(on, str) else list(on)
    if not names:
        raise ValueError("on: expected the names of key columns, found none")
    keys = [[_name(frame, name) for name in names] for frame in frames]
    for name, *found in zip(names, *keys):
        kinds = [_kind(frame, key) for frame, key in zip(frames, found)]
        if len(set(kinds)) > 1:
            raise TypeError(
                f"on: column {name!r} is {kinds[0]} in one frame and {kinds[1]} in the other; "
                f"cast one of them"
            )
    return keys


def _name(frame: DataFrame, name: object) -> str:
    """The column of that name, found as Spark finds it: in any case, unless it is told to look."""
    if not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"on: expected the names of key columns, found {kind}")
    found = _named(frame, name)
    if not found:
        raise ValueError(f"on: no column {name!r}, expected one of {', '.join(frame.columns)}")
    if len(found) > 1:
        raise ValueError(f"on: {name!r} names {len(found)} columns; rename all but one")
    return found[0]


def _named(frame: DataFrame, name: str) -> list[str]:
    """The columns of that name."""
    exact = [column for column in frame.columns if column == name]
    if exact or frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return exact
    return [column for column in frame.columns if column.lower() == name.lower()]


def _column(frame: DataFrame, name: str) -> Column:
    """The column of that name, dots and all; else what Spark takes it for, such as `a.field`."""
    found = _named(frame, name)
    return F.col(_quoted(found[0])) if len(found) == 1 else F.col(name)


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _not_null(frame: DataFrame, keys: list[str]) -> DataFrame:
    for key in keys:
        frame = frame.where(F.col(_quoted(key)).isNotNull())
    return frame


def _kind(frame: DataFrame, name: str) -> str:
    return _check_kind(frame.schema[name].dataType, f"on: column {name!r}")


def _check_kind(kind: T.DataType, what: str) -> str:
    """What keys of a type are; TypeError if they are none."""
    if isinstance(kind, T.IntegralType):
        return "whole numbers"
    if isinstance(kind, T.BinaryType) or kind == T.StringType():
        return "text or binary"
    raise TypeError(
        f"{what} is {kind.simpleString()}, expected string, binary or whole numbers; cast it"
    )


def _columns(frame: DataFrame, keys: list[str]) -> list[Column]:
    """Key columns as executors take them: whole numbers of one size."""
    numbers = {name for name in keys if isinstance(frame.schema[name].dataType, T.IntegralType)}
    columns = [(F.col(_quoted(key)), key in numbers) for key in keys]
    return [column.cast("long") if number else column for column, number in columns]


def _keyed(frame: DataFrame, keys: list[str]) -> DataFrame:
    """The key columns under plain names: `mapInArrow` takes a dot in a name for a field."""
    columns = _columns(frame, keys)
    return frame.select([column.alias(f"k{at}") for at, column in enumerate(columns)])


def _tagged(df: DataFrame, keys: list[str], key: bytes, filter: str) -> DataFrame:
    """`df` with fingerprints of the rows whose key may be in a filter, null of others."""
    udf = F.arrow_udf(_tasks.found_in(filter, key), "binary")
    # As if it could answer differently each time: else Spark asks twice, to select and to filter.
    return df.withColumn(_PRINT, udf.asNondeterministic()(*_columns(df, keys)))


def _survivors(df: DataFrame, keys: list[str], key: bytes, filter: str) -> DataFrame:
    """The rows of `df` whose key may be in a filter, with their fingerprints."""
    if set(df.columns) != set(keys):
        return _tagged(df, keys, key, filter).where(f"{_PRINT} is not null")
    # Nothing to wait for in the JVM: whole rows go, and only survivors come back.
    fields = [*df.schema.fields, T.StructField(_PRINT, T.BinaryType())]
    plain = {name: f"k{at}" for at, name in enumerate(df.columns)}
    task = _tasks.survivors_in(filter, key, [plain[name] for name in keys])
    return df.toDF(*plain.values()).mapInArrow(task, T.StructType(fields))


def _rows(runs: DataFrame) -> int:
    """How many fingerprints are in runs."""
    (total,) = runs.agg(F.sum(F.length("prints"))).collect()
    return (total[0] or 0) // _tasks.PRINT


def _filled(
    runs: DataFrame, task: Callable[[int, float], _tasks.Task], rows: int, rate: float
) -> tuple[bytes, ...]:
    """Filters of fingerprints: one partial in each executor slot, united as a tree."""
    names = ["a", "b"] if task is _tasks.two_filters else ["a"]
    if rows == 0:  # and perhaps not one partition
        return tuple(_petal.BloomFilter(1, rate).to_bytes() for _ in names)
    kind = ", ".join(f"{name} binary" for name in names)
    slots = runs.coalesce(runs.sparkSession.sparkContext.defaultParallelism)
    return slots.mapInArrow(task(rows, rate), kind).rdd.map(tuple).treeReduce(_tasks.united)


@contextmanager
def _held(frame: DataFrame) -> Iterator[None]:
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        frame.unpersist()


@contextmanager
def _shuffle_partitions(session: SparkSession, number: int) -> Iterator[None]:
    """Plans made in here shuffle to so many partitions. What is persisted is planned at once, and
    Spark does not adapt that plan later: without this, it would be 200 for the smallest answer."""
    name = "spark.sql.shuffle.partitions"
    # The setting is the session's, and threads may share that.
    with _planning:
        old = session.conf.get(name) or "200"
        session.conf.set(name, str(number))
        try:
            yield
        finally:
            session.conf.set(name, old)


def _publish(context: SparkContext, filter: bytes | Path) -> str:
    """Makes a filter a file that every executor has, once, and tells its name there."""
    folder = _folders.get(context)
    if folder is None:
        folder = _folders[context] = Path(tempfile.mkdtemp(prefix="petal-spark-"))
        # Until the session ends: an executor that comes later fetches it too.
        weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
    name = f"{secrets.token_hex(8)}.petal"
    if isinstance(filter, bytes):
        (folder / name).write_bytes(filter)
    else:
        shutil.copyfile(filter, folder / name)
    context.addFile(str(folder / name))
    return name
