"""Keys that are tuples, dates, UUIDs and decimal numbers: their bytes, which are documented."""

import datetime as dt
import uuid
from collections import namedtuple
from decimal import Decimal
from pathlib import Path

import pandas as pd
import petal
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

UTC = dt.timezone.utc
PLUS_2 = dt.timezone(dt.timedelta(hours=2))
Pair = namedtuple("Pair", "a b")
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")

#: Keys with their bytes.
KEYS = [
    ((), b""),
    (("a",), b"\x01\0\0\0a"),
    (("a", b"bc"), b"\x01\0\0\0a\x02\0\0\0bc"),
    (Pair("a", "bc"), b"\x01\0\0\0a\x02\0\0\0bc"),
    ((1, ("x",)), b"\x08\0\0\0" + bytes([1, 0, 0, 0, 0, 0, 0, 0]) + b"\x05\0\0\0\x01\0\0\0x"),
    (ID, ID.bytes),
    (dt.date(2024, 2, 29), b"2024-02-29"),
    (dt.datetime(2024, 2, 29, 12), b"2024-02-29T12:00:00"),
    (dt.datetime(2024, 2, 29, 12, 0, 0, 5), b"2024-02-29T12:00:00.000005"),
    (dt.datetime(2024, 2, 29, 12, tzinfo=UTC), b"2024-02-29T12:00:00+00:00"),
    (dt.datetime(2024, 2, 29, 14, tzinfo=PLUS_2), b"2024-02-29T12:00:00+00:00"),
    (pd.Timestamp("2024-02-29T12:00:00"), b"2024-02-29T12:00:00"),
    (pd.Timestamp("2024-02-29T12:00:00.000000001"), b"2024-02-29T12:00:00.000000001"),
    (Decimal("0"), b"0"),
    (Decimal("-0.00"), b"0"),
    (Decimal("1.50"), b"1.5"),
    (Decimal("-0.05"), b"-0.05"),
    (Decimal("1E+3"), b"1000"),
    (Decimal("12.5E-3"), b"0.0125"),
    (Decimal("1E+40"), b"1" + b"0" * 40),
    (Decimal("1.25E+41"), b"1.25E+41"),
    (Decimal("-7E-41"), b"-7E-41"),
    ((dt.date(2024, 1, 1), Decimal("1.0")), b"\x0a\0\0\x002024-01-01\x01\0\0\x001"),
]


def bytes_of(key: object) -> bytes | None:
    """Returns the bytes of a key that are among those expected."""
    filter = petal.BloomFilter(1000, 1e-9)
    filter.add(key)
    found = {expected for _, expected in KEYS if expected in filter}
    return found.pop() if len(found) == 1 else None


@pytest.mark.parametrize(("key", "expected"), KEYS, ids=repr)
def test_bytes_of_keys(key: object, expected: bytes) -> None:
    filter = petal.BloomFilter(1000, 1e-9)
    assert filter.add(key) and expected in filter and key in filter
    assert bytes_of(key) == expected
    batch = petal.BloomFilter(1000, 1e-9)
    assert batch.update([key]) == 1 and batch == filter
    assert batch.contains_batch([key, "other"]) == [True, False]


def test_other_objects_are_refused() -> None:
    filter = petal.BloomFilter(10)
    for key in (None, 1.5, object(), [1], {"a": 1}, {"a"}, ("a", None), ("a", [1]), dt.time(1), pd.NaT):
        with pytest.raises(TypeError, match="a key is"):
            filter.add(key)
    for key in (Decimal("NaN"), Decimal("-Infinity"), ("a", Decimal("sNaN"))):
        with pytest.raises(ValueError, match="is not a number"):
            filter.add(key)
    with pytest.raises(OverflowError):
        filter.add(("a", -1))
    assert filter.inserted == 0


def test_deeply_nested_tuple_is_an_error() -> None:
    nested: tuple[object, ...] = ()
    for _ in range(100):
        nested = (nested,)
    filter = petal.BloomFilter(10)
    assert filter.add(nested) and nested in filter
    for _ in range(200_000):
        nested = (nested,)
    for use in (filter.add, filter.__contains__, lambda key: filter.update([key])):
        with pytest.raises(ValueError, match="tuples of a key are nested more than 100 times"):
            use(nested)


@given(st.decimals(allow_nan=False, allow_infinity=False))
@example(Decimal("1E-40"))
@example(Decimal("12345E-44"))
def test_decimal_is_text_of_the_same_number(number: Decimal) -> None:
    # The naive model: the digits of the exact number.
    shown = format(number, "f")
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    shown = "0" if number == 0 else shown
    filter = petal.BloomFilter(100, 1e-9)
    filter.add(number)
    if abs(number.adjusted()) <= 40 or number == 0:
        assert shown in filter
    # Equal numbers are one key, whatever their zeros.
    sign, digits, exponent = number.as_tuple()
    assert Decimal((sign, (*digits, 0, 0), exponent - 2)) in filter


@given(st.datetimes(timezones=st.timezones()))
def test_equal_times_are_one_key(time: dt.datetime) -> None:
    try:
        in_utc = time.astimezone(UTC)
    except OverflowError:
        return
    filter = petal.BloomFilter(10)
    filter.add(time)
    assert in_utc in filter


def test_tuple_is_the_key_of_several_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,url,lang\n1,http://a/,en\n2,http://b/,de\n")
    petal.build(tmp_path / "a.csv", tmp_path / "f", column=["url", "lang"], fpr=1e-9)
    filter = petal.load(tmp_path / "f")
    assert ("http://a/", "en") in filter and ("http://b/", "en") not in filter
