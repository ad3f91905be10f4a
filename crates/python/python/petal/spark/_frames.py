"""Filter look-ups in data frames, and exact set operations on data frames.

Filters reduce a semi-join before the shuffle: a row whose key is certainly on one side only is not
shuffled. The remaining rows are decided exactly, by Spark's own joins of 128-bit fingerprints of
the keys, with a random hash key for each call.

Cost: a row takes about a third of a microsecond from the JVM to Python and back, so each row makes
that way once. The pass over `b` persists its fingerprints, 16 bytes per row, in runs of many rows,
and later steps read these. Only key columns leave the JVM.
"""

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from petal import _petal
from petal._arguments import read_transforms
from petal.spark import _frame_tasks as _tasks
from petal.spark._session import Session, active_session, of_frame

_FINGERPRINT = "__petal_fingerprint"
"""The name of the temporary column of fingerprints."""

_ROWS_PER_PARTITION = 1 << 20
"""Candidates of one task of the exact join."""

_MAX_REPEATED = 0.5
"""Share of repeated keys above which the filters save nothing."""

_planning = threading.Lock()


def contains(
    df: DataFrame,
    col: str | Column,
    filter: _petal.Filter | str | os.PathLike[str],
    *,
    column: str | None = None,
    key_transform: Iterable[str] | None = None,
) -> DataFrame:
    """Returns the rows of `df` whose key `filter` contains. The result is lazy.

    - `col`: a column of strings, binary values or integers from 0, which are the keys of `str`,
      `bytes` and `int`. A null is not contained.
    - `filter`: a filter, or the path of its file on the driver, or a URI that Hadoop's file system
      reads, such as `hdfs:` or `s3a:`. It is copied once to each executor and mapped there.
    - `column`: return all rows, with the result in a boolean column of this name.
    - `key_transform`: as in `petal.check`, for strings and binary values. A changed key takes some
      microseconds.

    Raises `TypeError` if `col` is of another type, and the errors of `petal.open`.
    """
    key = _checked_column(df, col)
    mask = _mask(of_frame(df), filter, key_transform, null=False)(key)
    return df.where(mask) if column is None else df.withColumn(column, mask)


def _mask(
    session: Session,
    filter: _petal.Filter | str | os.PathLike[str],
    key_transform: str | Iterable[str] | None,
    null: bool | None,
) -> Any:
    """Returns the function of a key column that looks up keys in a filter; `null` is that of a null."""
    if isinstance(filter, _petal.Filter):
        opened, name = filter, session.publish(filter.to_bytes())
    elif isinstance(filter, str | bytes | os.PathLike):
        with session.local_file(filter) as path:
            opened = _petal.open(path)  # Raises errors on the driver.
            name = session.publish(Path(os.fsdecode(path)))
    else:
        kind = type(filter).__name__
        raise TypeError(f"filter: expected a filter or the path of its file, found {kind}")
    changes = read_transforms(key_transform)
    if not isinstance(opened, _petal.ForeignFilter):
        changes = _petal._adopted_transforms(opened, changes)
    return F.arrow_udf(_tasks.look_up(name, changes, null), "boolean")


def register(
    spark: SparkSession,
    name: str,
    filter: _petal.Filter | str | os.PathLike[str],
    *,
    key_transform: Iterable[str] | None = None,
) -> None:
    """Registers the SQL function `name(key)`, which returns whether a filter contains a key.

        >>> petal.spark.register(spark, "is_blocked", "blocked.petal")       # doctest: +SKIP
        >>> spark.sql("SELECT * FROM pages WHERE NOT is_blocked(url)")       # doctest: +SKIP

    Arguments, cost and errors are those of `contains`; the function takes a column of strings, binary
    values or integers, and returns NULL for NULL. Raises `ValueError` for a name that is not an
    identifier or is that of a function of Spark, which SQL would call instead.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name: expected the name of an SQL function, found {name!r}")
    if spark.sql(f"SHOW SYSTEM FUNCTIONS LIKE '{name}'").count():
        raise ValueError(f"name: Spark has a function {name!r}, which SQL would call; choose another name")
    spark.udf.register(name, _mask(Session(spark), filter, key_transform, null=None))


def build(
    df: DataFrame,
    col: str | Column,
    *,
    capacity: int | None = None,
    fpr: float = 0.01,
    key_transform: Iterable[str] | None = None,
) -> _petal.BloomFilter:
    """Returns a Bloom filter of the keys in a column. Nulls are not in it.

    - `col`: a column of strings, binary values or integers from 0, as in `contains`.
    - `capacity`: number of keys that the filter is planned for [the rows are counted first].
    - `fpr`: false-positive rate at that number [0.01].
    - `key_transform`: as in `petal.build`, for strings and binary values; the filter records the
      names, and `contains` uses them.

    Cost: one pass over the column, or two if rows are counted. Each executor slot holds a filter of
    full size, and the driver receives one. Raises the errors of `contains` and of `BloomFilter`.
    """
    key, names = _checked_column(df, col), read_transforms(key_transform)
    _petal._transform_key(b"", names)
    keys = df.select(key.alias("key")).where("key is not null")
    session = of_frame(df)
    planned = keys.count() if capacity is None else capacity
    filter = _petal.BloomFilter(max(planned, 1), fpr)
    if planned:
        task = _tasks.build_filter_of_keys(planned, fpr, names)
        slots = keys.coalesce(session.slots).mapInArrow(task, "a binary")
        if (union := session.union(slots)) is not None:
            filter = _bloom(union[0])
    keys_are = {"producer": f"petal {_petal.__version__}", "keys": "a column of a data frame"}
    filter.metadata = json.dumps(keys_are | ({"key_transform": names} if names else {}))
    return filter


def _bloom(data: bytes) -> _petal.BloomFilter:
    """Returns the Bloom filter in the bytes of its file."""
    filter = _petal.from_bytes(data)
    assert isinstance(filter, _petal.BloomFilter)
    return filter


def _checked_column(df: DataFrame, col: str | Column) -> Column:
    """Returns a key column. Raises `TypeError` if its type is not supported."""
    key = _column(df, col) if isinstance(col, str) else col
    _check_type(df.select(key).schema[0].dataType, f"col: {col!r}")
    return key


def transform_key(col: str | Column, key_transform: Iterable[str]) -> Column:
    """Returns a column of strings after changes, the same bytes as `petal.transform_key` returns.

    Rows of data frames are compared as they are: add this column to both, and name it in `on`. The
    first call sends petal's extension module to the executors.

    - `col`: a column of strings.
    - `key_transform`: names of changes, as in `petal.common`.

    Cost: the way from the JVM to Python and back, and some microseconds per row. Raises `ValueError`
    if a name is unknown.
    """
    names = read_transforms(key_transform)
    _petal._transform_key(b"", names)
    active_session("transform_key")
    column = F.col(col) if isinstance(col, str) else col
    return F.arrow_udf(_tasks.change(names), "string")(column)


def common(
    df_a: DataFrame, df_b: DataFrame, on: str | Sequence[str], *, fpr: float = 0.01
) -> DataFrame:
    """Returns the rows of `df_a` whose key is in `df_b`.

    The result is exactly that of `df_a.join(df_b, on, "left_semi")`: rows with a null in their key
    are not in it. It is computed in this call and persisted; call `unpersist()` after use. Use its
    columns by name: `result["url"]`, because `df_a["url"]` is a column of `df_a`.

    - `on`: the names of key columns: strings, binary values or integers, of the same type in both.
    - `fpr`: false-positive rate of the filters, the share of other rows that are shuffled too.

    Cost: shuffles the common rows of `df_a`, a share `fpr` of its other rows, and 16 bytes for each
    common row of `df_b`. Persists, while it runs, 16 bytes per row of `df_b` and the shuffled rows.

    Raises `TypeError` or `ValueError` if the key columns are unsuitable.
    """
    keys, keys_b = _keys(on, df_a, df_b)
    df_a, df_b = _not_null(df_a, keys), _not_null(df_b, keys_b)
    session, key = of_frame(df_a), secrets.token_bytes(_tasks.FINGERPRINT_SIZE)
    runs = _key_columns(df_b, keys_b).mapInArrow(_tasks.make_runs(key), "fingerprints binary")
    with _persisted(runs):
        (filter,) = _build_filters(session, runs, _tasks.build_filter, _count_fingerprints(runs), fpr)
        candidates = _candidates(df_a, keys, key, session.publish(filter))
        with _persisted(candidates):
            rows = candidates.count()
            own = candidates.select(_FINGERPRINT)
            (filter,) = _build_filters(session, own, _tasks.build_filter, rows, fpr)
            task = _tasks.select_from_runs(session.publish(filter))
            found = runs.mapInArrow(task, f"{_FINGERPRINT} binary")
            result = candidates.join(found, _FINGERPRINT, "left_semi").drop(_FINGERPRINT)
            parts = max(session.slots, -(-rows // _ROWS_PER_PARTITION))
            with _shuffle_partitions(df_a.sparkSession, parts):
                result.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                result.count()
            except BaseException:
                result.unpersist()
                raise
    return result


def diff(
    df_a: DataFrame, df_b: DataFrame, on: str | Sequence[str], *, fpr: float = 0.01
) -> DataFrame:
    """Returns the rows of `df_a` whose key is not in `df_b`.

    The result is exactly that of `df_a.join(df_b, on, "left_anti")`: rows with a null in their key
    are in it. It is computed in this call and persisted; call `unpersist()` after use. Use its
    columns by name, as for `common`.

    - `on`, `fpr`: as in `common`. Rows of `df_a` whose key is certainly not in `df_b` are not
      shuffled.

    Cost: reads `df_a` twice and `df_b` once. Shuffles the common rows of `df_a`, a share `fpr` of its
    other rows, and 16 bytes for each common row of `df_b`. Persists what `common` persists, and the
    result. If most rows of `df_a` are in `df_b`, Spark's own join is the better choice.

    Raises `TypeError` or `ValueError` if the key columns are unsuitable.
    """
    keys, keys_b = _keys(on, df_a, df_b)
    df_b = _not_null(df_b, keys_b)
    session, key = of_frame(df_a), secrets.token_bytes(_tasks.FINGERPRINT_SIZE)
    runs = _key_columns(df_b, keys_b).mapInArrow(_tasks.make_runs(key), "fingerprints binary")
    with _persisted(runs):
        (filter,) = _build_filters(session, runs, _tasks.build_filter, _count_fingerprints(runs), fpr)
        tagged = _tagged(df_a, keys, key, session.publish(filter))
        candidates = tagged.where(f"{_FINGERPRINT} is not null")
        with _persisted(candidates):
            rows = candidates.count()
            own = candidates.select(_FINGERPRINT)
            (filter,) = _build_filters(session, own, _tasks.build_filter, rows, fpr)
            task = _tasks.select_from_runs(session.publish(filter))
            found = runs.mapInArrow(task, f"{_FINGERPRINT} binary")
            kept = candidates.join(found, _FINGERPRINT, "left_anti").select(*tagged.columns)
            others = tagged.where(f"{_FINGERPRINT} is null")
            result = others.unionAll(kept).drop(_FINGERPRINT)
            parts = max(session.slots, -(-rows // _ROWS_PER_PARTITION))
            with _shuffle_partitions(df_a.sparkSession, parts):
                result.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                result.count()
            except BaseException:
                result.unpersist()
                raise
    return result


def dedup(df: DataFrame, on: str | Sequence[str], *, fpr: float = 0.01) -> DataFrame:
    """Returns one row for each key. Null is a key.

    The result has the same keys as `df.dropDuplicates(on)`; as there, which of several rows is kept
    is not defined. The filters are built in this call; the result is lazy and reads `df` again. If
    more than half of the keys are repeated, it is `df.dropDuplicates(on)`.

    - `on`: the names of key columns, as in `common`.
    - `fpr`: false-positive rate of the filters, the share of rows with a unique key that are
      shuffled too. Rows whose key is certainly unique are not shuffled.
    """
    (keys,) = _keys(on, df)
    session, key = of_frame(df), secrets.token_bytes(_tasks.FINGERPRINT_SIZE)
    runs = _key_columns(df, keys).mapInArrow(_tasks.make_runs(key), "fingerprints binary")
    with _persisted(runs):
        rows = _count_fingerprints(runs)
        _, repeated = _build_filters(session, runs, _tasks.build_filter_pair, rows, fpr)
    if _petal.from_bytes(repeated).estimated_len > rows * _MAX_REPEATED:
        return df.dropDuplicates(keys)
    tagged = _tagged(df, keys, key, session.publish(repeated))
    unique, others = (tagged.where(f"{_FINGERPRINT} is {what} null") for what in ("", "not"))
    return unique.unionAll(others.dropDuplicates([_FINGERPRINT])).drop(_FINGERPRINT)


def _keys(on: str | Sequence[str], *frames: DataFrame) -> list[list[str]]:
    """Returns the names of the key columns in each frame. Raises an error if types differ."""
    for frame in frames:
        if not isinstance(frame, DataFrame):
            raise TypeError(
                f"expected data frames on both sides, found {type(frame).__name__}; for files pass "
                "the session first, and paths: common(spark, a, b, out)"
            )
    names = [on] if isinstance(on, str) else list(on)
    if not names:
        raise ValueError("on: expected the names of key columns, found none")
    keys = [[_name(frame, name) for name in names] for frame in frames]
    for name, *found in zip(names, *keys):
        types = [_key_type(frame, key) for frame, key in zip(frames, found)]
        if len(set(types)) > 1:
            raise TypeError(
                f"on: column {name!r} is {types[0]} in one frame and {types[1]} in the other; "
                "cast one of them"
            )
    return keys


def _name(frame: DataFrame, name: object) -> str:
    """Returns the column of a name, ignoring case unless `spark.sql.caseSensitive` is set."""
    if not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"on: expected the names of key columns, found {kind}")
    found = _find_columns(frame, name)
    if not found:
        raise ValueError(f"on: no column {name!r}, expected one of {', '.join(frame.columns)}")
    if len(found) > 1:
        raise ValueError(f"on: {name!r} names {len(found)} columns; rename all but one")
    return found[0]


def _find_columns(frame: DataFrame, name: str) -> list[str]:
    """Returns the columns of that name."""
    exact = [column for column in frame.columns if column == name]
    if exact or frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return exact
    return [column for column in frame.columns if column.lower() == name.lower()]


def _column(frame: DataFrame, name: str) -> Column:
    """Returns the column of that name, which may have dots; else parses it as Spark does."""
    found = _find_columns(frame, name)
    return F.col(_quoted(found[0])) if len(found) == 1 else F.col(name)


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _not_null(frame: DataFrame, keys: list[str]) -> DataFrame:
    for key in keys:
        frame = frame.where(F.col(_quoted(key)).isNotNull())
    return frame


def _key_type(frame: DataFrame, name: str) -> str:
    return _check_type(frame.schema[name].dataType, f"on: column {name!r}")


def _check_type(type: T.DataType, what: str) -> str:
    """Returns the kind of keys of a type. Raises `TypeError` if the type is not supported."""
    if isinstance(type, T.IntegralType):
        return "integers"
    if isinstance(type, T.BinaryType) or type == T.StringType():
        return "text or binary"
    raise TypeError(
        f"{what} is {type.simpleString()}, expected string, binary or integers; cast it"
    )


def _columns(frame: DataFrame, keys: list[str]) -> list[Column]:
    """Returns the key columns, with integers cast to one size."""
    numbers = {name for name in keys if isinstance(frame.schema[name].dataType, T.IntegralType)}
    columns = [(F.col(_quoted(key)), key in numbers) for key in keys]
    return [column.cast("long") if number else column for column, number in columns]


def _key_columns(frame: DataFrame, keys: list[str]) -> DataFrame:
    """Selects the key columns under new names, because `mapInArrow` parses dots in names."""
    columns = _columns(frame, keys)
    return frame.select([column.alias(f"k{at}") for at, column in enumerate(columns)])


def _tagged(df: DataFrame, keys: list[str], key: bytes, filter: str) -> DataFrame:
    """Adds a column with the fingerprints of rows that a filter contains, null for other rows."""
    udf = F.arrow_udf(_tasks.fingerprint_candidates(filter, key), "binary")
    # Nondeterministic, because Spark would otherwise call it twice, to select and to filter.
    return df.withColumn(_FINGERPRINT, udf.asNondeterministic()(*_columns(df, keys)))


def _candidates(df: DataFrame, keys: list[str], key: bytes, filter: str) -> DataFrame:
    """Returns the rows of `df` whose key a filter contains, with their fingerprints."""
    if set(df.columns) != set(keys):
        return _tagged(df, keys, key, filter).where(f"{_FINGERPRINT} is not null")
    # Without other columns, whole rows are sent and only candidates come back.
    fields = [*df.schema.fields, T.StructField(_FINGERPRINT, T.BinaryType())]
    plain = {name: f"k{at}" for at, name in enumerate(df.columns)}
    task = _tasks.select_candidates(filter, key, [plain[name] for name in keys])
    return df.toDF(*plain.values()).mapInArrow(task, T.StructType(fields))


def _count_fingerprints(runs: DataFrame) -> int:
    """Returns the number of fingerprints in runs."""
    (total,) = runs.agg(F.sum(F.length("fingerprints"))).collect()
    return (total[0] or 0) // _tasks.FINGERPRINT_SIZE


def _build_filters(
    session: Session,
    runs: DataFrame,
    task: Callable[[int, float], _tasks.Task],
    rows: int,
    fpr: float,
) -> tuple[bytes, ...]:
    """Builds filters of fingerprints: one in each slot, then their union."""
    names = ["a", "b"] if task is _tasks.build_filter_pair else ["a"]
    if rows:  # Otherwise there may be no partition.
        schema = ", ".join(f"{name} binary" for name in names)
        slots = runs.coalesce(session.slots).mapInArrow(task(rows, fpr), schema)
        if (union := session.union(slots)) is not None:
            return union
    return tuple(_petal.BloomFilter(1, fpr).to_bytes() for _ in names)


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[None]:
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        frame.unpersist()


@contextmanager
def _shuffle_partitions(session: SparkSession, number: int) -> Iterator[None]:
    """Sets the number of shuffle partitions of plans that are made in the block.

    A persisted frame is planned at once and not adapted later: it would get 200 partitions for the
    smallest result.
    """
    name = "spark.sql.shuffle.partitions"
    # Threads may share the session and its setting.
    with _planning:
        old = session.conf.get(name) or "200"
        session.conf.set(name, str(number))
        try:
            yield
        finally:
            session.conf.set(name, old)
