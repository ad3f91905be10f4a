"""What runs on executors. They have Python, pyarrow and, from `addFile`, the extension module under
the name `_petal`; the package `petal` they need not have, so these functions travel by value.

Fingerprints go in *runs*: one binary value that holds those of many rows, 16 bytes each. A row of
Spark costs about a third of a microsecond between the JVM and Python, whatever is in it.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import SparkFiles, cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PRINT = 16
"""Bytes of a fingerprint."""

RUN = PRINT << 9
"""Most bytes of a run: Spark hands 10,000 rows at once to Python, and that must not be much."""

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]


def runs_of(key: bytes) -> Task:
    """From key columns to runs of their fingerprints: `prints binary`."""

    def task(batches: Batches) -> Batches:
        import _petal

        for batch in batches:
            prints = _petal.fingerprints(batch.columns, key)
            yield _binary([prints[at : at + RUN] for at in range(0, len(prints), RUN)])

    return task


def one_filter(capacity: int, rate: float) -> Task:
    """From runs to one filter of their fingerprints for the whole task."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.BloomFilter(capacity, rate)
        for prints in _values(batches):
            _petal.add_prints(filter, prints)
        yield pa.RecordBatch.from_arrays([pa.array([filter.to_bytes()], pa.binary())], names=["a"])

    return task


def two_filters(capacity: int, rate: float) -> Task:
    """From runs to two filters: of what the task saw, and of what it saw more than once."""

    def task(batches: Batches) -> Batches:
        import _petal

        seen, twice = (_petal.BloomFilter(capacity, rate) for _ in range(2))
        for prints in _values(batches):
            _petal.add_prints_twice(seen, twice, prints)
        columns = [pa.array([filter.to_bytes()], pa.binary()) for filter in (seen, twice)]
        yield pa.RecordBatch.from_arrays(columns, names=["a", "b"])

    return task


def united(left: tuple[bytes, ...], right: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """One filter, or a pair of them, of what is in two. Twice is also what both saw once: a key
    in both has all of its bits in both, so none is lost."""
    import _petal

    a, b = ([_petal.BloomFilter.from_bytes(part) for part in side] for side in (left, right))
    if len(a) == 1:
        return ((a[0] | b[0]).to_bytes(),)
    return (a[0] | b[0]).to_bytes(), (a[1] | b[1] | (a[0] & b[0])).to_bytes()


def found_in(name: str, key: bytes) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """From key columns to the fingerprint of each row that may be in a filter, null of others."""

    def task(rows: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for columns in rows:
            # Of a single column Spark makes no tuples.
            columns = columns if isinstance(columns, tuple) else (columns,)
            prints = _petal.fingerprints(columns, key)
            found = _petal.prints_found(filter, prints)
            buffers = [pa.py_buffer(found), pa.py_buffer(prints)]
            all_rows = pa.Array.from_buffers(pa.binary(PRINT), len(columns[0]), buffers)
            yield all_rows.cast(pa.binary())

    return task


def survivors_in(name: str, key: bytes, keys: list[str]) -> Task:
    """From rows to those whose key may be in a filter, with their fingerprints behind them."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for batch in batches:
            columns = [batch.column(column) for column in keys]
            # Whole numbers of one size, as other columns come here.
            columns = [c.cast(pa.int64()) if pa.types.is_integer(c.type) else c for c in columns]
            mask, prints = _hits(filter, _petal.fingerprints(columns, key))
            kept = [*batch.filter(mask).columns, prints]
            yield pa.RecordBatch.from_arrays(kept, names=[*batch.schema.names, "prints"])

    return task


def narrowed(name: str) -> Task:
    """From runs to the fingerprints in them that may be in a filter, one a row."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for prints in _values(batches):
            _, kept = _hits(filter, prints)
            yield pa.RecordBatch.from_arrays([kept], names=["prints"])

    return task


def mask_of(name: str) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """From a key column to whether each row's may be in a filter."""

    def task(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for column in columns:
            yield filter.contains_batch(column)

    return task


def _hits(filter: Any, prints: bytes) -> tuple[pa.Array, pa.Array]:
    """Which fingerprints may be in a filter, and these."""
    import _petal

    rows, found = len(prints) // PRINT, pa.py_buffer(_petal.prints_found(filter, prints))
    mask = pa.Array.from_buffers(pa.bool_(), rows, [None, found])
    every = pa.Array.from_buffers(pa.binary(PRINT), rows, [None, pa.py_buffer(prints)])
    return mask, every.filter(mask).cast(pa.binary())


def _values(batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        yield b"".join(batch.column(0).to_pylist())


def _binary(values: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], names=["prints"])
