"""Columns of dates, times, decimal numbers, UUIDs and booleans have the keys of Python's objects of the same
value; extension types are keys only if their meaning is known."""

import datetime as dt
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import petal
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

UTC = dt.timezone.utc
UUIDS = [uuid.UUID(int=5 << 100), uuid.UUID(int=2**128 - 1)]
DATES = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
TIMES = [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29, 12), dt.datetime(9999, 12, 31, 1, 2, 3)]
FINE_TIMES = [*TIMES, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 2, 29, 0, 0, 0, 5_000)]
NUMBERS = [Decimal(text) for text in ("0", "-0.05", "1.5", "100", "-7", "12345.67")]
BOOLEANS = [True, False]


def check(column, keys):
    """Asserts that a column and its keys one by one make the same filter, and that each finds the other's."""
    one, other = petal.BloomFilter(1000, 1e-9), petal.BloomFilter(1000, 1e-9)
    assert one.update(column) == len(set(keys))
    for key in keys:
        assert key in one
        other.add(key)
    assert one == other
    return list(one.contains_batch(column))


ARROW = [
    (pa.date32(), DATES), (pa.date64(), DATES), (pa.bool_(), BOOLEANS),
    (pa.timestamp("s"), TIMES), (pa.timestamp("ms"), [*TIMES, FINE_TIMES[-1]]), (pa.timestamp("us"), FINE_TIMES),
    (pa.timestamp("ns"), FINE_TIMES[1:3] + FINE_TIMES[4:]),
    (pa.timestamp("us", "UTC"), [time.replace(tzinfo=UTC) for time in FINE_TIMES]),
    (pa.timestamp("us", "+02:00"), [time.replace(tzinfo=UTC) for time in FINE_TIMES[1:]]),
    (pa.decimal32(7, 2), NUMBERS), (pa.decimal64(12, 3), NUMBERS), (pa.decimal128(20, 5), NUMBERS),
    (pa.decimal256(50, 9), [*NUMBERS, Decimal("-123456789012345678901234567890.5")]),
    (pa.decimal128(5, -2), [Decimal(100), Decimal(-1200)]),
    (pa.uuid(), UUIDS), (pa.bool8(), BOOLEANS), (pa.json_(), ['{"a":1}', "[]"]),
]  # fmt: skip


@pytest.mark.parametrize("kind,keys", ARROW, ids=[str(kind) for kind, _ in ARROW])
def test_arrow_columns_equal_their_scalars(kind, keys):
    # Not every extension type is made from Python's objects.
    storage = getattr(kind, "storage_type", None)
    stored = [key.bytes if isinstance(key, uuid.UUID) else key for key in keys]
    stored = [int(key) for key in keys] if isinstance(kind, pa.Bool8Type) else stored
    made = pa.array([None, *stored], storage or kind)
    array = made if storage is None else pa.ExtensionArray.from_storage(kind, made)
    for column in array, array[1:], pa.chunked_array([array[:2], array[2:]]), pa.table({"key": array}):
        found = check(column, keys)
        assert [bool(one.as_py()) for one in found] == [False] * (len(found) - len(keys)) + [True] * len(keys)
    if storage is None:
        indexes = pa.array([*range(1, len(keys) + 1), 0, 1], pa.int8())
        check(pa.DictionaryArray.from_arrays(indexes, array), keys)


@given(st.lists(st.datetimes(), min_size=1))
def test_any_time_equals_its_scalar(times):
    check(pa.array(times, pa.timestamp("us")), times)
    check(pa.array(times, pa.date32()), [time.date() for time in times])
    check(np.array(times, "datetime64[us]"), times)
    check(np.array(times, "datetime64[D]"), [time.date() for time in times])


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9), min_size=1))
def test_any_decimal_equals_its_scalar(numbers):
    check(pa.array(numbers, pa.decimal128(20, 4)), numbers)


def test_numpy_arrays_and_scalars_equal_pythons_objects():
    for unit, keys in [
        ("D", DATES), ("M", [dt.date(1970, 1, 1), dt.date(2024, 2, 1)]), ("Y", [dt.date(2024, 1, 1)]),
        ("W", [dt.date(1970, 1, 1)]), ("h", [dt.datetime(2024, 2, 29, 12)]), ("s", TIMES), ("25s", [dt.datetime(1970, 1, 1, 0, 0, 50)]),
        ("ms", TIMES), ("us", FINE_TIMES), ("ns", FINE_TIMES[1:3]),
    ]:  # fmt: skip
        array = np.array(keys, f"datetime64[{unit}]")
        for column in array, array.astype(array.dtype.newbyteorder()), [*array]:
            assert check(column, keys) == [True] * len(keys)
    check(np.array(BOOLEANS), BOOLEANS)
    check([np.True_, np.False_], BOOLEANS)
    nanosecond = np.datetime64("2024-02-29T12:00:00.000000001")
    check(np.array([nanosecond]), [pd.Timestamp(nanosecond)])
    filter = petal.BloomFilter(10)
    for wrong in [np.datetime64("NaT"), np.datetime64(1, "ps"), np.timedelta64(1, "s"), np.timedelta64(1, "D")]:
        for keys in np.array([wrong]), [wrong]:
            with pytest.raises(TypeError, match="key"):
                filter.update(keys)
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        filter.update(np.array(["10000-01-01"], "datetime64[D]"))
    assert filter.inserted == 0


@pytest.mark.parametrize("dtype", ["float64", "complex128", "timedelta64[s]", "datetime64[ps]", "O", "V3", "S0"])
def test_any_empty_numpy_array_has_no_keys(dtype):
    one = petal.BloomFilter(10)
    assert one.update(np.array([], dtype)) == 0 and one.contains_batch(np.array([], dtype)).tolist() == []
    assert petal.StaticFilter(np.array([])).inserted == 0


def test_pandas_columns_equal_pythons_objects():
    for keys in DATES[1:4], FINE_TIMES[1:3], [time.replace(tzinfo=UTC) for time in FINE_TIMES[1:3]], UUIDS, NUMBERS, BOOLEANS:
        for column in pd.Series([*keys, None]), pd.Index([*keys, None]), pd.Series([*keys, None], dtype="object"):
            assert check(column, keys) == [True] * len(keys) + [False]
    for column in pd.Series(BOOLEANS), pd.Series(BOOLEANS, dtype="boolean"), pd.Series(BOOLEANS, dtype="bool[pyarrow]"):
        check(column, BOOLEANS)
    check(pd.Series(FINE_TIMES[1:3], dtype="timestamp[us][pyarrow]"), FINE_TIMES[1:3])
    check(pd.Series(NUMBERS, dtype=pd.ArrowDtype(pa.decimal128(20, 5))), NUMBERS)
    empty = petal.BloomFilter(10).contains_batch(pd.Series([], dtype="float64"))
    assert isinstance(empty, pd.Series) and len(empty) == 0


def test_polars_columns_equal_pythons_objects():
    filter = petal.BloomFilter(10)
    for keys, dtype in [
        (UUIDS, pl.Object), (["a", 5], pl.Object), (DATES, pl.Date), (FINE_TIMES, pl.Datetime("us")),
        (FINE_TIMES[1:3], pl.Datetime("ns")), (NUMBERS, pl.Decimal(20, 5)), (BOOLEANS, pl.Boolean),
        ([0, 2**64 - 1], pl.Int128),
    ]:  # fmt: skip
        series = pl.Series("k", [*keys, None], dtype=dtype)
        for column in series, pl.DataFrame([series]):
            assert check(column, keys) == [True] * len(keys) + [False]
            assert filter.contains_batch(column).name == "k"
    with pytest.raises(TypeError, match="a key is .*, found float"):
        filter.update(pl.Series([1.5], dtype=pl.Object))
    several = pl.DataFrame([pl.Series("a", UUIDS, dtype=pl.Object), pl.Series("b", UUIDS, dtype=pl.Object)])
    with pytest.raises(TypeError, match=r"expected one column, found 2 \(a, b\); choose one"):
        filter.update(several)


class OnlyStream:
    """An object with only the interface of an Arrow stream."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __arrow_c_stream__(self, requested_schema=None):
        return self.arrays.__arrow_c_stream__(requested_schema)


class Celsius(pa.ExtensionType):
    """An extension type that petal does not know."""

    def __init__(self):
        super().__init__(pa.int64(), "example.celsius")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def test_unknown_extension_types_are_refused_by_name():
    unknown = pa.ExtensionArray.from_storage(Celsius(), pa.array([20]))
    opaque = pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "bit", "DuckDB"), pa.array([b"1"]))
    filter = petal.BloomFilter(10)
    for array, name in (unknown, "example.celsius"), (opaque, r"arrow.opaque.*bit"):
        table = pa.table({"key": array})
        for column in array, pa.chunked_array([array]), table, OnlyStream(table), OnlyStream(pa.chunked_array([array])):
            for use in filter.update, filter.contains_batch, petal.StaticFilter:
                with pytest.raises(TypeError, match=f"the extension type {name}.* holds no keys; cast it"):
                    use(column)
    coded = pa.DictionaryArray.from_arrays(pa.array([0]), unknown)
    for keys in coded, OnlyStream(pa.chunked_array([coded])), OnlyStream(pa.table({"key": coded})):
        with pytest.raises(TypeError, match="example.celsius"):
            filter.update(keys)
    assert filter.inserted == 0


def test_duckdb_without_loss_equals_pythons_objects_or_is_refused():
    connection = duckdb.connect(config={"arrow_lossless_conversion": "true"})
    for sql, key in [
        (f"uuid '{UUIDS[0]}'", UUIDS[0]), ("true", True), ("false", False), ("date '2024-02-29'", DATES[3]),
        ("timestamp '2024-02-29 12:00:00'", TIMES[2]), ("1.50::decimal(5,2)", Decimal("1.5")), ("'a'", "a"),
    ]:  # fmt: skip
        for column in connection.sql(f"SELECT {sql} AS k"), connection.sql(f"SELECT {sql} AS k").to_arrow_table():
            filter = petal.BloomFilter(10, 1e-9)
            assert filter.update(column) == 1 and key in filter, sql
    for sql in "'101'::bit", "12::bignum", "12::hugeint", "'1:00'::timetz":
        with pytest.raises(TypeError, match="holds no keys"):
            petal.BloomFilter(10).update(connection.sql(f"SELECT {sql} AS k"))


def test_hashes_of_spark_are_of_types_that_spark_hashes_alike():
    from petal._petal import spark_xxhash64

    for keys in pa.array([True]), pa.array(DATES), [True], DATES, UUIDS, NUMBERS, [("a",)], np.array([True]):
        with pytest.raises(TypeError, match="whose hashes are those of Spark"):
            spark_xxhash64(keys)
