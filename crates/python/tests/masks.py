"""Checks the results of batches of NumPy, pandas, polars and pyarrow: `python masks.py numpy ...`.

The environment needs petal and the libraries that are named as arguments.
"""

import sys
from datetime import datetime

import petal

WORDS = ["a", None, "b", "x", "a key that is longer than a pointer"]
MEMBERS = ["a", "a key that is longer than a pointer", "y"]
FOUND = [True, False, False, False, True]


def filter_of(keys):
    made = petal.BloomFilter(1000, 1e-9)
    made.update(keys)
    return made


SEEN = filter_of(MEMBERS)
NUMBERS = filter_of([1, 2, 2**63])
DAYS = filter_of([datetime(2020, 1, 1)])


def assert_raises(kind, message, keys):
    for method in SEEN.contains_batch, petal.BloomFilter(10).update:
        try:
            method(keys)
        except kind as error:
            assert message in str(error), error
        else:
            raise AssertionError(f"{keys!r} was accepted")


def numpy():
    import numpy as np

    def is_array(mask, expected):
        assert type(mask) is np.ndarray and mask.dtype == np.dtype(bool), mask
        assert mask.tolist() == expected
        assert (~mask).tolist() == [not found for found in expected]
        mask[:] = False

    words = [word or "" for word in WORDS]
    arrays = [np.array(words), np.array(words, object), np.array([w.encode() for w in words])]
    if hasattr(np.dtypes, "StringDType"):
        arrays.append(np.array(words, np.dtypes.StringDType()))
    for array in arrays:
        is_array(SEEN.contains_batch(array), FOUND)
        assert array[SEEN.contains_batch(array)].size == 2
        is_array(SEEN.contains_batch(array[::-1]), FOUND[::-1])
        is_array(SEEN.contains_batch(array[:0]), [])

    class Own(np.ndarray):
        pass

    is_array(SEEN.contains_batch(np.array(words).view(Own)), FOUND)
    is_array(NUMBERS.contains_batch(np.arange(4)), [False, True, True, False])
    is_array(NUMBERS.contains_batch(np.array(["", ""], "U0")), [False, False])
    is_array(NUMBERS.contains_batch(np.array([True, False])), [True, False])
    is_array(DAYS.contains_batch(np.array(["2020-01-01", "2021-01-01"], "datetime64[s]")), [True, False])
    assert_raises(TypeError, "float64 holds no keys", np.array([1.5]))
    assert_raises(TypeError, "masked array", np.ma.array([1]))


def pandas():
    import numpy as np
    import pandas as pd

    index = [7, 7, "c", "d", "e"]
    kinds = [object, "string", "category", None]
    try:
        import pyarrow as pa
    except ImportError:
        pass
    else:
        kinds += [
            "string[pyarrow]", pd.ArrowDtype(pa.string()), pd.ArrowDtype(pa.large_string()),
            pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
        ]
    for kind in kinds:
        keys = pd.Series(WORDS, index=index, name="url", dtype=kind)
        mask = SEEN.contains_batch(keys)
        expected = pd.Series(FOUND, index=index, name="url")
        pd.testing.assert_series_equal(mask, expected)
        df = pd.DataFrame({"url": keys, "n": range(5)}, index=index)
        assert df[mask]["n"].tolist() == df.loc[mask, "n"].tolist() == [0, 4]
        assert df[~mask]["n"].tolist() == [1, 2, 3]
        assert (mask & (df["n"] > 0)).tolist() == [False] * 4 + [True]
        seen = df.assign(seen=mask)["seen"]
        assert seen.dtype == bool and seen.tolist() == FOUND
        pd.testing.assert_series_equal(SEEN.contains_batch(df[["url"]]), expected)
        # A slice keeps its part of the index.
        some = SEEN.contains_batch(keys[1:])
        assert some.index.tolist() == index[1:] and some.tolist() == FOUND[1:]
        for plain in pd.Index(keys), keys.array:
            mask = SEEN.contains_batch(plain)
            assert type(mask) is np.ndarray and mask.dtype == bool and mask.tolist() == FOUND
        # A null is not a key.
        assert petal.BloomFilter(100).update(keys) == 4
        assert filter_of(keys) == filter_of(word for word in WORDS if word is not None)
    many = pd.Series([None if n % 3 == 0 else str(n) for n in range(5000)], dtype=object)
    assert filter_of(many).contains_batch(many).equals(many.notna())
    kinds = ["int64", "uint8", "Int64", object]
    for kind in kinds:
        keys = pd.Series([1, 2, 3], index=["x", "y", "z"], dtype=kind)
        mask = NUMBERS.contains_batch(keys)
        pd.testing.assert_series_equal(mask, pd.Series([True, True, False], index=["x", "y", "z"]))
    assert NUMBERS.contains_batch(pd.Series([1, None], dtype="Int64")).tolist() == [True, False]
    assert NUMBERS.contains_batch(pd.Series([2**63], dtype="uint64")).tolist() == [True]
    assert len(SEEN.contains_batch(pd.Series([], dtype=object))) == 0

    class Own(pd.Series):
        pass

    assert isinstance(SEEN.contains_batch(Own(WORDS)), pd.Series)
    assert_raises(TypeError, "float64 holds no keys", pd.Series([1, None]))
    assert NUMBERS.contains_batch(pd.Series([True, False])).tolist() == [True, False]
    assert DAYS.contains_batch(pd.Series(pd.to_datetime(["2020-01-01", None]))).tolist() == [True, False]
    assert_raises(TypeError, "found 2 (a, b); choose one", pd.DataFrame({"a": ["x"], "b": ["y"]}))
    assert_raises(TypeError, "MultiIndex", pd.MultiIndex.from_tuples([("a", "b")]))
    assert_raises(OverflowError, "from 0 to 2", pd.Series([-1]))
    assert_raises(OverflowError, "from 0 to 2", pd.Series([-1], dtype="Int64"))
    assert petal.StaticFilter(pd.Series(MEMBERS, dtype="string")).contains_batch(MEMBERS) == [True] * 3


def pyarrow():
    import pyarrow as pa

    for keys in pa.array(WORDS), pa.chunked_array([WORDS[:2], WORDS[2:]]), pa.table({"k": WORDS}):
        mask = SEEN.contains_batch(keys)
        assert isinstance(mask, pa.BooleanArray) and mask.to_pylist() == FOUND
        assert len(keys.filter(mask)) == 2


def polars():
    import polars as pl

    df = pl.DataFrame({"url": WORDS, "n": range(5)})
    for keys in df["url"], df[["url"]], df["url"].cast(pl.Categorical), df["url"].cast(pl.Binary):
        mask = SEEN.contains_batch(keys)
        assert isinstance(mask, pl.Series) and mask.dtype == pl.Boolean
        assert mask.to_list() == FOUND and mask.name == "url"
        assert df.filter(mask)["n"].to_list() == [0, 4]
        assert df.filter(~mask)["n"].to_list() == [1, 2, 3]
        assert df.with_columns(seen=mask)["seen"].to_list() == FOUND
    found = pl.col("url").map_batches(SEEN.contains_batch, return_dtype=pl.Boolean)
    assert df.lazy().filter(found).collect()["n"].to_list() == [0, 4]
    assert_raises(TypeError, "one column, found 2", df)


def none():
    """Checks keys without any library."""
    for name in "numpy", "pandas", "polars", "pyarrow":
        assert name not in sys.modules
    keys = [word for word in WORDS if word is not None]
    found = [found for found, word in zip(FOUND, WORDS) if word is not None]
    for some in keys, tuple(keys), iter(keys), dict.fromkeys(keys):
        assert SEEN.contains_batch(some) == found


if __name__ == "__main__":
    none()
    for library in sys.argv[1:]:
        globals()[library]()
