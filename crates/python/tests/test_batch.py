"""Batches in arrays of any library equal their keys one by one."""

import struct
import threading

import numpy as np
import petal
import polars as pl
import pyarrow as pa
import pytest

WORDS = ["a", "", "Gäste", "🌸", "a key that is longer than a pointer", "nul\0inside"]
NUMBERS = [0, 1, 255, 127, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1]


def filter_of(keys):
    one = petal.BloomFilter(10_000, 1e-6)
    for key in keys:
        one.add(key)
    return one


def check_batch(array, keys):
    """Asserts that a filter of the array equals one of its keys; returns look-ups in two filters."""
    empty = petal.BloomFilter(10_000, 1e-6)
    assert empty.update(array) == len(set(keys))
    assert empty == filter_of(keys)
    mask = empty.contains_batch(array)
    again = petal.BloomFilter(10_000, 1e-6)
    new = again.add_batch(array)
    assert again == empty and type(new) is type(mask)
    new = new.to_pylist() if hasattr(new, "to_pylist") else list(new)
    assert [bool(one) for one in new] == [key not in keys[:at] for at, key in enumerate(keys)]
    half = filter_of(keys[::2])
    return mask, half.contains_batch(array)


ARROW = [
    (pa.string(), WORDS), (pa.large_string(), WORDS), (pa.string_view(), WORDS),
    (pa.binary(), [word.encode() for word in WORDS]),
    (pa.large_binary(), [word.encode() for word in WORDS]),
    (pa.binary_view(), [word.encode() for word in WORDS]),
    (pa.binary(3), [b"abc", b"a\0\0", b"\0\0\0"]),
    (pa.uint8(), NUMBERS[:3]), (pa.uint16(), NUMBERS[:4]), (pa.uint32(), NUMBERS[:6]),
    (pa.uint64(), NUMBERS), (pa.int8(), [0, 1, 127]), (pa.int16(), NUMBERS[:4]),
    (pa.int32(), NUMBERS[:5]), (pa.int64(), NUMBERS[:7]),
    (pa.dictionary(pa.int8(), pa.string()), WORDS),
    (pa.dictionary(pa.uint32(), pa.large_binary()), [b"x", b"y"]),
]


@pytest.mark.parametrize("kind,keys", ARROW, ids=[str(kind) for kind, _ in ARROW])
def test_arrow_arrays_equal_their_keys(kind, keys):
    array = pa.array(keys, kind)
    mask, half = check_batch(array, keys)
    assert isinstance(mask, pa.BooleanArray) and mask.to_pylist() == [True] * len(keys)
    assert half.to_pylist() == [at % 2 == 0 for at in range(len(keys))]
    # A slice, nulls, and several chunks.
    nulls = pa.array([None, keys[0], None, keys[-1], None], kind)
    one = petal.BloomFilter(100, 1e-6)
    assert one.update(nulls) == 2
    assert one.contains_batch(nulls).to_pylist() == [False, True, False, True, False]
    assert one.contains_batch(nulls[1:4]).to_pylist() == [True, False, True]
    chunks = pa.chunked_array([nulls[:2], nulls[2:2], nulls[2:]], kind)
    again = petal.BloomFilter(100, 1e-6)
    assert again.update(chunks) == 2 and again == one
    assert one.contains_batch(chunks) == pa.array([False, True, False, True, False])


def test_long_arrays_equal_their_keys():
    keys = [f"key-{number}" for number in range(50_001)]
    some = [None if at % 7 == 3 else key for at, key in enumerate(keys)]
    one, whole = petal.BloomFilter(60_000, 1e-6), petal.BloomFilter(60_000, 1e-6)
    one.update(key for key in some if key is not None)
    assert whole.update(pa.array(some)) == sum(key is not None for key in some)
    assert one == whole
    expect = [at % 7 != 3 for at in range(len(keys))]
    assert one.contains_batch(pa.array(keys)).to_pylist() == expect
    assert one.contains_batch(keys) == expect
    assert one.contains_batch(np.array(keys)).tolist() == expect
    assert one.contains_batch(pa.array(keys).dictionary_encode()).to_pylist() == expect


def test_mask_of_added_keys_is_true_for_the_first_of_each():
    numbers = [number * number % 1009 for number in range(5000)]
    one, by_one = petal.BloomFilter(2000, 1e-6), petal.BloomFilter(2000, 1e-6)
    expected = [by_one.add(number) for number in numbers]
    assert one.add_batch(numbers) == expected and one == by_one
    assert one.add_batch(np.array(numbers)).tolist() == [False] * len(numbers)
    words = pa.array(["a", None, "a", "b", None])
    assert one.add_batch(words).to_pylist() == [True, False, False, True, False]
    series = pl.Series("word", ["c", "c", "d"])
    assert series.filter(one.add_batch(series)).to_list() == ["c", "d"]
    # Keys before one that is refused stay.
    with pytest.raises(TypeError):
        one.add_batch(["e", None])
    assert "e" in one
    counts = petal.CountingBloomFilter(100)
    assert counts.add_batch(["a", "a"]) == [True, False] and counts.count("a") == 2
    static = petal.StaticFilter(["a"])
    with pytest.raises(petal.UnsupportedError):
        static.add_batch(["b"])


def test_empty_batches_are_accepted():
    one = petal.BloomFilter(100)
    for empty in [pa.array([], pa.string()), np.array([], "S3"), [], iter([]), pa.nulls(0)]:
        assert one.update(empty) == 0 and len(one.contains_batch(empty)) == 0
    assert one.update(pa.nulls(3)) == 0
    assert one.contains_batch(pa.nulls(3)).to_pylist() == [False] * 3


NUMPY = [
    (np.array([b"a", b"bc", b"", b"a\0b"]), [b"a", b"bc", b"", b"a\0b"]),
    (np.array(WORDS), WORDS),
    (np.array(WORDS).astype(">U45"), WORDS),
    (np.array(WORDS, object), WORDS),
    (np.array(NUMBERS, "u8"), NUMBERS),
    (np.array(NUMBERS, ">u8"), NUMBERS),
    (np.array(NUMBERS[:7], "i8"), NUMBERS[:7]),
    (np.array(NUMBERS[:4], ">i2"), NUMBERS[:4]),
    (np.array(NUMBERS[:3], "u1"), NUMBERS[:3]),
    (np.array([b"ab", b"a\0"], "V2"), [b"ab", b"a\0"]),
    (np.arange(20, dtype="u4")[::3], list(range(0, 20, 3))),
    (np.array(WORDS, np.dtypes.StringDType()), WORDS),
]


@pytest.mark.parametrize("array,keys", NUMPY, ids=[str(array.dtype) for array, _ in NUMPY])
def test_numpy_arrays_equal_their_keys(array, keys):
    mask, half = check_batch(array, keys)
    assert mask.dtype == bool and mask.all() and len(mask) == len(keys)
    assert half.tolist() == [at % 2 == 0 for at in range(len(keys))]
    mask[0] = False


class OnlyArrow:
    """An object with only the interface of an Arrow array."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


class OnlyStream:
    """An object with only the interface of an Arrow stream."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __arrow_c_stream__(self, requested_schema=None):
        return self.arrays.__arrow_c_stream__(requested_schema)


def test_other_arrow_producers_get_a_mask():
    one = filter_of(WORDS)
    mask = one.contains_batch(OnlyArrow(pa.array([*WORDS, "no", None])))
    assert isinstance(mask, petal.Mask) and len(mask) == len(WORDS) + 2
    assert pa.array(mask).to_pylist() == [True] * len(WORDS) + [False, False]
    assert list(mask) == pa.array(mask).to_pylist()
    assert "6 of 8" in repr(mask)
    chunks = pa.chunked_array([WORDS[:2], ["no"], WORDS[2:]])
    mask = one.contains_batch(OnlyStream(chunks))
    assert isinstance(mask, petal.Mask) and list(mask) == [True, True, False, *[True] * len(WORDS[2:])]
    assert petal.BloomFilter(100).update(OnlyStream(pa.table({"key": chunks}))) == len(WORDS) + 1
    for wrong in pa.table({"a": [1], "b": [2]}), pa.chunked_array([[1.5]]):
        with pytest.raises(TypeError):
            one.update(OnlyStream(wrong))


def test_one_column_table_is_accepted():
    table = pa.table({"url": WORDS})
    for keys in [table, table.to_batches()[0], table.to_reader()]:
        one = petal.BloomFilter(100)
        assert one.update(keys) == len(WORDS)
    with pytest.raises(TypeError, match="one column, found 2"):
        filter_of([]).update(pa.table({"a": [1], "b": [2]}))


def test_stream_may_be_a_python_generator():
    schema = pa.schema([("key", pa.string())])
    one = petal.BloomFilter(1000)

    def batches():
        for number in range(10):
            assert number == 0 or f"key-{number - 1}" in one
            yield pa.record_batch({"key": [f"key-{number}"]})

    assert one.update(pa.RecordBatchReader.from_batches(schema, batches())) == 10


def test_failing_stream_is_an_error():
    def batches():
        yield pa.record_batch({"key": ["a"]})
        raise RuntimeError("no more")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("key", pa.string())]), batches())
    one = petal.BloomFilter(1000)
    with pytest.raises(RuntimeError, match="no more"):
        one.update(reader)
    assert "a" in one
    # A stream of another library returns an error number and a message.
    reader = pa.RecordBatchReader.from_batches(pa.schema([("key", pa.string())]), batches())
    with pytest.raises(ValueError, match="no more"):
        one.update(OnlyStream(reader))


@pytest.mark.parametrize("keys", [
    pa.array([1.5]), pa.array([[1]]), pa.chunked_array([[[1]]]),
    pa.table({"a": ["a"], "b": ["b"]}), np.array([("a",)], [("k", "O")]), np.array([(1,)], [("k", "i4")]), np.array([1.5]), np.array([1j]),
    [1.5], [None], [["a"]], "abc", b"abc", bytearray(b"abc"), memoryview(b"abc"), 5, None,
], ids=repr)
def test_invalid_keys_are_refused(keys):
    one = petal.BloomFilter(100)
    with pytest.raises(TypeError):
        one.update(keys)
    with pytest.raises(TypeError):
        one.contains_batch(keys)


@pytest.mark.parametrize("keys", [
    pa.array([-1]), pa.array([-1], pa.int8()), np.array([-1]), np.array([-1], "i1"), [-1], [2**64],
], ids=repr)
def test_integers_out_of_range_are_refused(keys):
    with pytest.raises(OverflowError, match="from 0 to 2"):
        petal.BloomFilter(100).update(keys)
    # The value below a null is ignored.
    assert petal.BloomFilter(100).update(pa.array([None], pa.int8())) == 0


def test_keys_before_an_invalid_key_stay():
    one = petal.BloomFilter(5000)
    keys = [str(number) for number in range(3000)]
    with pytest.raises(TypeError):
        one.update([*keys, 1.5, "after"])
    assert all(one.contains_batch(keys)) and "after" not in one


def test_dictionary_arrays_equal_their_keys():
    values = pa.array(["a", None, "b"])
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 0]), values)
    one = petal.BloomFilter(100)
    assert one.update(array) == 2
    assert one.contains_batch(array).to_pylist() == [True, False, True, False, True]


def test_iterable_may_use_the_filter_that_it_fills():
    one = petal.BloomFilter(1000)
    one.add("first")
    assert one.update(key for key in ["first", "second"] if key not in one) == 1


def test_other_threads_run_during_update():
    keys = pa.array(np.arange(4_000_000, dtype="u8"))
    one, stop, turns = petal.BloomFilter(4_000_000), threading.Event(), [0]

    def count():
        while not stop.is_set():
            turns[0] += 1

    def fill():
        started = turns[0]
        one.update(keys)
        return turns[0] - started

    other = threading.Thread(target=count)
    other.start()
    done = fill()
    stop.set()
    other.join()
    # It would be 0 if the interpreter's lock was held.
    assert done > 1000


def text(offsets, kind=pa.utf8(), shift=0):
    data = b"x" * shift + struct.pack(f"<{len(offsets)}i", *offsets)
    buffers = [None, pa.py_buffer(data).slice(shift), pa.py_buffer(b"abb")]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def index(*indexes):
    return pa.DictionaryArray.from_arrays(
        pa.array(indexes, pa.int32()), pa.array(["a"]), safe=False
    )


def view(*views, nulls=None):
    """Returns an array of string views: (length, buffer, offset)."""
    data = b"".join(struct.pack("<i4sii", length, b"aaaa", *at) for length, *at in views)
    buffers = [nulls, pa.py_buffer(data), pa.py_buffer(b"a" * 20)]
    return pa.Array.from_buffers(pa.string_view(), len(views), buffers)


def blob(offsets):
    """Returns an array with these offsets, which pyarrow has not checked."""
    data = np.zeros(len(offsets), "i4")
    buffers = [None, pa.py_buffer(data), pa.py_buffer(b"abb")]
    array = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    # pyarrow has checked the zeros.
    data[:] = offsets
    return array


BAD = [
    view((20, 0, 1)), view((20, 0, -1)), view((20, 1, 0)), view((20, -1, 0)), view((-1, 0, 0)),
    text([0, -(1 << 20), 3]), text([0, 1 << 22, 3]), text([3, 1, 3]),
    text([0, 3, 1], pa.binary()), text([0, 1, 3], shift=1), index(0, 77), index(0, -1),
    pa.DictionaryArray.from_arrays([0], text([0, 1 << 22, 3]), safe=False),
]


@pytest.mark.parametrize("array", BAD, ids=range(len(BAD)))
def test_arrays_with_invalid_offsets_are_refused(array):
    one = petal.BloomFilter(100)
    chunked = pa.chunked_array([array])
    table = pa.table({"key": chunked})
    for several in chunked, table, table.to_reader():
        with pytest.raises(ValueError):
            one.update(several)
    with pytest.raises(ValueError):
        one.contains_batch(array)
    with pytest.raises(ValueError):
        one.update(array)
    with pytest.raises(ValueError):
        one.update(OnlyArrow(array))
    assert one == petal.BloomFilter(100)


@pytest.mark.parametrize("offsets", [
    [0] * 3000 + [-1], [0] + [1 << 30] * 3000 + [-1], [-5] + [0] * 3000, [0] * 3000 + [3, 1], [0, -1],
], ids=range(5))
def test_invalid_offsets_in_large_arrays_are_refused(offsets):
    one = petal.BloomFilter(100)
    with pytest.raises(ValueError):
        one.update(OnlyArrow(blob(offsets)))
    with pytest.raises(ValueError):
        petal.BloomFilter(100).update(OnlyArrow(pa.StructArray.from_arrays([blob(offsets)], ["k"])))


def test_view_of_a_null_is_not_read():
    one = petal.BloomFilter(100, 1e-6)
    one.add("a" * 20)
    array = view((20, 0, 0), (20, 7, 7), (20, 0, 1), nulls=pa.py_buffer(b"\x01"))
    assert pa.array(one.contains_batch(OnlyArrow(array))).to_pylist() == [True, False, False]
    with pytest.raises(ValueError, match="a view of the Arrow array points outside its buffers"):
        one.update(OnlyArrow(view((20, 0, 0), (20, 7, 7))))


def test_arrow_array_can_be_consumed_once():
    schema, taken = pa.array(["a"]).__arrow_c_array__()

    class Again:
        def __arrow_c_array__(self, requested_schema=None):
            return schema, taken

    one = petal.BloomFilter(100)
    assert one.update(Again()) == 1
    with pytest.raises(ValueError, match="already released or consumed"):
        one.update(Again())


def test_mask_is_a_sequence():
    one = petal.BloomFilter(100, 1e-6)
    one.add("a")
    mask = one.contains_batch(OnlyArrow(pa.array(["a", "b", "c"])))
    assert len(mask) == 3 and list(mask) == [True, False, False]
    assert mask[0] and mask[-3] and not mask[-1]
    for at in 3, -4:
        with pytest.raises(IndexError):
            mask[at]
    assert mask == [True, False, False] and mask != [True, False] and mask != "abc"
    assert mask == one.contains_batch(OnlyArrow(pa.array(["a", "c", "b"])))


def test_arrow_strings_may_be_invalid_utf8():
    one = petal.BloomFilter(100, 1e-6)
    one.add(b"\xff")
    packed = pa.py_buffer(struct.pack("<3i", 0, 1, 2))
    array = pa.Array.from_buffers(pa.utf8(), 2, [None, packed, pa.py_buffer(b"\xff\xfe")])
    assert one.contains_batch(array).to_pylist() == [True, False]
    # Also in a table with a null row.
    rows = pa.StructArray.from_arrays([array], ["key"], mask=pa.array([False, True]))
    assert one.contains_batch(rows).to_pylist() == [True, False]


def test_null_and_masked_values_are_not_keys():
    one = petal.BloomFilter(100, 1e-6)
    one.add("a")
    nothing = pa.array([None, None], pa.string()).dictionary_encode()
    assert len(nothing.dictionary) == 0 and one.contains_batch(nothing).to_pylist() == [False] * 2
    table = pa.array([{"k": "a"}, None, {"k": None}, {"k": "a"}])
    assert one.contains_batch(table).to_pylist() == [True, False, False, True]
    assert one.contains_batch(table[1:]).to_pylist() == [False, False, True]
    with pytest.raises(TypeError, match=r"masked array; use keys.compressed\(\)"):
        one.contains_batch(np.ma.array([1, 2], mask=[0, 1]))


def test_polars_columns_without_a_type_have_only_nulls():
    one = petal.BloomFilter(100, 1e-6)
    for keys in pl.Series("k", [None, None]), pl.DataFrame({"k": [None, None]}):
        assert one.update(keys) == 0
        assert one.contains_batch(keys).equals(pl.Series("k", [False, False]), check_names=True)
    with pytest.raises(TypeError, match=r"found a LazyFrame, .* use keys.collect\(\)"):
        one.update(pl.LazyFrame({"k": ["a"]}))
