"""Functions on data frames that run on executors.

Executors have Python, pyarrow and, sent by `addFile`, the extension module under the name
`_petal`. They do not have the package `petal`, so these functions are sent by value.

Fingerprints are stored in *runs*: one binary value with the fingerprints of many rows, 16 bytes
each, because every row that passes between the JVM and Python costs about a third of a microsecond.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles, cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])

FINGERPRINT_SIZE = 16
"""Bytes of a fingerprint."""

MAX_RUN_SIZE = FINGERPRINT_SIZE << 9
"""Maximum bytes of a run. Small, because Spark passes 10,000 rows to Python at once."""

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]
F = TypeVar("F", bound=Callable[..., Any])


def _named(name: str, task: F) -> F:
    """Sets the name of a function in Spark's plans."""
    task.__name__ = name
    return task


def make_runs(key: bytes) -> Task:
    """From key columns to runs of their fingerprints: `fingerprints binary`."""

    def task(batches: Batches) -> Batches:
        import _petal

        for batch in batches:
            data = _petal.fingerprints(batch.columns, key)
            starts = range(0, len(data), MAX_RUN_SIZE)
            yield _binary_batch([data[at : at + MAX_RUN_SIZE] for at in starts])

    return _named("petal_fingerprints", task)


def build_filter(capacity: int, fpr: float) -> Task:
    """From the runs of a task to one filter of their fingerprints."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.BloomFilter(capacity, fpr)
        for data in _join_runs(batches):
            _petal.add_fingerprints(filter, data)
        yield pa.RecordBatch.from_arrays([pa.array([filter.to_bytes()], pa.binary())], names=["a"])

    return _named("petal_build", task)


def build_filter_pair(capacity: int, fpr: float) -> Task:
    """From the runs of a task to two filters: of all and of repeated fingerprints."""

    def task(batches: Batches) -> Batches:
        import _petal

        seen, repeated = (_petal.BloomFilter(capacity, fpr) for _ in range(2))
        for data in _join_runs(batches):
            _petal.add_fingerprints_with_repeats(seen, repeated, data)
        columns = [pa.array([filter.to_bytes()], pa.binary()) for filter in (seen, repeated)]
        yield pa.RecordBatch.from_arrays(columns, names=["a", "b"])

    return _named("petal_build", task)


def union(left: tuple[bytes, ...], right: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Returns the union of two filters, or of two pairs.

    A key that is once in each pair is repeated. All its bits are in both filters, so the
    intersection of the two has it.
    """
    import _petal

    a, b = ([_petal.from_bytes(part) for part in side] for side in (left, right))
    if len(a) == 1:
        return ((a[0] | b[0]).to_bytes(),)
    return (a[0] | b[0]).to_bytes(), (a[1] | b[1] | (a[0] & b[0])).to_bytes()


def fingerprint_candidates(
    name: str, key: bytes
) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """From key columns to the fingerprints of rows that a filter contains, null for other rows."""

    def task(rows: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for columns in rows:
            # Spark passes a single column without a tuple.
            columns = columns if isinstance(columns, tuple) else (columns,)
            data = _petal.fingerprints(columns, key)
            found = _petal.contains_fingerprints(filter, data)
            buffers = [pa.py_buffer(found), pa.py_buffer(data)]
            all_rows = pa.Array.from_buffers(
                pa.binary(FINGERPRINT_SIZE), len(columns[0]), buffers
            )
            yield all_rows.cast(pa.binary())

    return _named("petal_candidates", task)


def select_candidates(name: str, key: bytes, keys: list[str]) -> Task:
    """From rows to those whose key a filter contains, with an additional fingerprint column."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for batch in batches:
            columns = [batch.column(column) for column in keys]
            # Integers of one size, as the driver casts them in the other tasks.
            columns = [c.cast(pa.int64()) if pa.types.is_integer(c.type) else c for c in columns]
            mask, found = _select(filter, _petal.fingerprints(columns, key))
            kept = [*batch.filter(mask).columns, found]
            yield pa.RecordBatch.from_arrays(kept, names=[*batch.schema.names, "fingerprints"])

    return _named("petal_candidates", task)


def select_from_runs(name: str) -> Task:
    """From runs to those of their fingerprints that a filter contains, one per row."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for data in _join_runs(batches):
            _, kept = _select(filter, data)
            yield pa.RecordBatch.from_arrays([kept], names=["fingerprints"])

    return _named("petal_candidates", task)


def build_filter_of_keys(capacity: int, fpr: float, changes: str) -> Task:
    """From a key column to one filter of the keys of a task, after changes to text or bytes."""

    def task(batches: Batches) -> Batches:
        import _petal

        filter = _petal.BloomFilter(capacity, fpr)
        for batch in batches:
            filter.update(_changed(batch.column(0), changes))
        yield pa.RecordBatch.from_arrays([pa.array([filter.to_bytes()], pa.binary())], names=["a"])

    return _named("petal_build", task)


def look_up(
    name: str, changes: str, null: bool | None
) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """From a key column to whether a filter contains the keys, after changes to text or bytes.

    `null` is the result for a null.
    """

    def task(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        import _petal

        filter = _petal.open(SparkFiles.get(name))
        for column in columns:
            found = filter.contains_batch(_changed(column, changes))
            yield pc.if_else(column.is_valid(), found, pa.scalar(null, pa.bool_()))

    return _named("petal_contains", task)


def change(names: str) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """From a column of text or bytes to its values after changes, of the same type."""

    def task(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for column in columns:
            changed = _changed(column, names)
            # All changes turn valid UTF-8 into valid UTF-8.
            yield changed if changed.type == column.type else changed.cast(column.type)

    return _named("petal_transform_key", task)


def _changed(column: pa.Array, names: str) -> pa.Array:
    """Returns the keys after changes, as bytes. Integers have none."""
    if not names or pa.types.is_integer(column.type):
        return column
    import _petal

    return pa.array(_petal._transform_keys(column.to_pylist(), names), pa.binary())


def run_items(function: Callable[[Any], Any], items: list[bytes]) -> Task:
    """From numbers to the results of a function of the pickled items with these numbers."""

    def task(batches: Batches) -> Batches:
        import pickle

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            results = [pickle.dumps(function(pickle.loads(items[n]))) for n in numbers]
            arrays = [pa.array(numbers, pa.int64()), pa.array(results, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, names=["id", "data"])

    return task


def _select(filter: Any, data: bytes) -> tuple[pa.Array, pa.Array]:
    """Returns a mask of the fingerprints that a filter contains, and these fingerprints."""
    import _petal

    rows = len(data) // FINGERPRINT_SIZE
    found = pa.py_buffer(_petal.contains_fingerprints(filter, data))
    mask = pa.Array.from_buffers(pa.bool_(), rows, [None, found])
    buffers = [None, pa.py_buffer(data)]
    every = pa.Array.from_buffers(pa.binary(FINGERPRINT_SIZE), rows, buffers)
    return mask, every.filter(mask).cast(pa.binary())


def _join_runs(batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        yield b"".join(batch.column(0).to_pylist())


def _binary_batch(values: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], names=["fingerprints"])
