"""Filters compared with Python's sets and with each other; invalid input; threads."""

import errno
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import petal
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KEY = st.one_of(TEXT, st.binary(max_size=20), st.integers(0, 2**64 - 1))
KEYS = st.lists(KEY, max_size=200)


def as_bytes(key):
    """Returns the bytes of a key as documented."""
    if isinstance(key, int):
        return key.to_bytes(8, "little")
    return key.encode() if isinstance(key, str) else key


# ---- Keys ---------------------------------------------------------------------------------------


def test_added_key_is_contained():
    seen = petal.BloomFilter(1000, fpr=0.001)
    assert seen.add("one")
    assert not seen.add(b"one")
    assert "one" in seen and "two" not in seen
    assert round(seen.estimated_len) == 1


def test_equal_keys_of_different_types():
    import numpy as np

    seen = petal.BloomFilter(1000, fpr=1e-6)
    seen.update(["a", 5])
    for key in ["a", b"a", bytearray(b"a"), memoryview(b"xax")[1:2], np.str_("a"), np.bytes_("a")]:
        assert key in seen
    for key in [5, np.uint8(5), np.int64(5), (5).to_bytes(8, "little")]:
        assert key in seen
    assert "5" not in seen and b"5" not in seen


@pytest.mark.parametrize("key,kind", [
    (None, TypeError), (1.5, TypeError), (["a"], TypeError), (("a", None), TypeError),
    (-1, OverflowError), (2**64, OverflowError), ("\ud800", UnicodeEncodeError),
], ids=repr)
def test_invalid_keys_are_refused(key, kind):
    seen = petal.CountingBloomFilter(100)
    for method in [seen.add, seen.__contains__, seen.remove, seen.discard, seen.count]:
        with pytest.raises(kind):
            method(key)
    with pytest.raises(kind):
        seen.update([key])


@given(KEYS, KEYS)
@settings(max_examples=60, deadline=None)
def test_union_equals_filter_built_from_both(ours, theirs):
    for make in [petal.BloomFilter, petal.ClassicBloomFilter]:
        a, b, both = make(400, 0.01), make(400, 0.01), make(400, 0.01)
        a.update(ours)
        b.update(theirs)
        both.update(ours, theirs)
        assert all(key in a for key in ours)
        assert a | b == both == a.union(b)
        assert all((a & b).contains_batch([key for key in ours if key in theirs]))
        a |= b
        assert a == both
    seen = petal.QuotientFilter(500, 1e-6, max_capacity=10_000)
    new = [seen.add(key) for key in ours]
    # Fails if two of 200 keys collide, with probability 2e-8.
    assert sum(new) == len({as_bytes(key) for key in ours})


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=300))
@settings(max_examples=40, deadline=None)
def test_counting_filters_behave_like_a_multiset(steps):
    makes = [
        lambda: petal.CountingBloomFilter(100, 1e-6, width=8),
        lambda: petal.ClassicCountingBloomFilter(100, 1e-6, width=8),
        lambda: petal.QuotientFilter(400, 1e-6),
    ]
    for make in makes:
        seen, bag = make(), {}
        for add, key in steps:
            if add:
                seen.add(key)
                bag[key] = bag.get(key, 0) + 1
            elif bag.get(key):
                seen.remove(key)
                bag[key] -= 1
            else:
                assert not seen.discard(key)
                with pytest.raises(KeyError):
                    seen.remove(key)
        assert {key: seen.count(key) for key in range(21)} == {key: bag.get(key, 0) for key in range(21)}


# ---- Operations of single types ----------------------------------------------------------------


def test_compare_fold_and_freeze(tmp_path):
    a, b = petal.BloomFilter(1_000_000), petal.BloomFilter(1_000_000)
    a.update(range(6000))
    b.update(range(3000, 9000))
    a.save(tmp_path / "a")
    for one in [a, petal.open(tmp_path / "a")]:
        keys, error = one.compare(b)["intersection"]
        assert abs(keys - 3000) < 5 * error
        assert abs(one.jaccard(b) - 1 / 3) < 0.05
        small = one.shrink_to_fpr(0.01)
        assert small.size_bytes < a.size_bytes / 4 and all(small.contains_batch(range(6000)))
    assert a.fold(2).size_bytes == a.size_bytes // 2
    with pytest.raises(ValueError):
        a.fold(10**9)
    counting = petal.CountingBloomFilter(1_000_000)
    counting.update(range(6000))
    assert counting.freeze() == a
    with pytest.raises(petal.IncompatibleError):
        a |= petal.BloomFilter(5)
    with pytest.raises(petal.IncompatibleError):
        a |= petal.BloomFilter(1_000_000, seed=1)
    with pytest.raises(petal.IncompatibleError):
        a &= counting
    with pytest.raises(TypeError):
        a |= {"a"}
    with pytest.raises(TypeError):
        a | {"a"}


def test_windowed_filter_drops_old_keys():
    seen = petal.WindowedBloomFilter(1000, 0.001, window=60)
    assert seen.window == 60 and seen.generations == 4
    seen.advance_to(1_000_000)
    seen.add("early")
    seen.advance_to(1_000_060)
    assert "early" in seen and seen.contains_batch(["early"]) == [True]
    seen.add("late")
    seen.advance_to(1_000_080)
    assert "early" not in seen and "late" in seen
    seen.restart_at(5)
    assert "late" not in seen and seen.info()["now"] == 5
    last = petal.WindowedBloomFilter(100)
    last.update(range(1000))
    assert last.window is None and 999 in last and 5 not in last


@pytest.mark.parametrize("size", [3, 40, 1000])
@pytest.mark.parametrize(
    "make",
    [
        lambda: petal.WindowedBloomFilter(90, 1e-9),
        lambda: petal.WindowedBloomFilter(7, 1e-9, generations=12),
        lambda: petal.ScalableBloomFilter(20, 1e-6),
        lambda: petal.QuotientFilter(2000, 1e-6),
        lambda: petal.CountingBloomFilter(300, 1e-6),
    ],
)
def test_batch_insertion_equals_single_insertions(make, size):
    # Keys that repeat within a batch, and more than the window's capacity.
    keys = [str(at * at % 211) for at in range(2000)]
    single, batched = make(), make()
    for at in range(0, len(keys), size):
        batch = keys[at : at + size]
        assert batched.update(batch) == sum(map(single.add, batch))
        assert batched == single


def test_windowed_filter_uses_the_systems_clock(tmp_path):
    seen = petal.WindowedBloomFilter(1000, window=3600)
    before = int(time.time())
    seen.add("a")
    assert before <= seen.info()["now"] <= time.time()
    seen.save(tmp_path / "seen")
    mapped = petal.open(tmp_path / "seen")
    assert "a" in mapped
    # Another time changes look-ups in a mapped file, not the file.
    mapped.advance_to(int(time.time()) + 10_000)
    assert "a" not in mapped and mapped.contains_batch(["a"]) == [False]
    assert "a" in petal.load(tmp_path / "seen")


def test_filter_that_would_contain_every_key_is_refused():
    for kind in petal.BloomFilter, petal.ClassicBloomFilter, petal.CountingBloomFilter:
        with pytest.raises(ValueError, match="fewer keys, or more memory or bits, found 20,000"):
            kind(20_000, memory_limit=64 if kind is not petal.CountingBloomFilter else 256)
    with pytest.raises(ValueError, match="fewer keys, or more memory or bits"):
        petal.BloomFilter(20_000, bits=64)


def test_growth_does_not_end_where_the_rate_is_out_of_reach():
    grows = petal.ScalableBloomFilter(1000, 1e-12)
    grows.update(range(300_000))
    assert grows.inserted == 300_000 and grows.keeps_fpr and not grows.is_overfull
    grows = petal.ScalableBloomFilter(40, 2e-17)
    assert all(grows.add(key) for key in range(100_000))
    assert not grows.keeps_fpr and grows.is_overfull and 99_999 in grows
    assert petal.from_bytes(grows.to_bytes()).inserted == 100_000


def test_growing_filters_grow():
    scalable = petal.ScalableBloomFilter(100, 0.01, growth=4)
    scalable.update(range(5000))
    assert scalable.layers > 2 and scalable.growth == 4 and scalable.capacity == 100
    assert not scalable.is_overfull and scalable.capacity_left is None
    full = petal.QuotientFilter(100, 0.01)
    with pytest.raises(petal.FullError):
        full.update(range(10_000))
    assert all(full.contains_batch(range(100)))
    growing = petal.QuotientFilter(100, 0.01, max_capacity=10_000)
    growing.update(range(9000))
    assert all(growing.contains_batch(range(9000)))


def test_sizes_follow_memory_limit_and_fpr():
    assert petal.BloomFilter(1000, memory_limit="64K").size_bytes == 64 << 10
    assert petal.BloomFilter(1000, memory_limit=1 << 16).target_fpr < 1e-6
    assert petal.BloomFilter(1000).target_fpr == 0.01
    assert petal.BloomFilter(10, 0.01, memory_limit="25%").target_fpr == 0.01
    with pytest.raises(petal.MemoryLimitError, match="raise it"):
        petal.BloomFilter(1_000_000, 0.01, memory_limit="64K")
    with pytest.raises(MemoryError):
        petal.CountingBloomFilter(10**6, 0.01, memory_limit="3M")
    for memory in ["64X", "", "-1", "inf", "4", True, -1, 1.5]:
        with pytest.raises(ValueError, match="memory"):
            petal.BloomFilter(1000, memory_limit=memory)
    assert petal.BloomFilter(10).info()["hash"] != petal.BloomFilter(10, secret=bytes(16)).info()["hash"]


@pytest.mark.parametrize("make", [
    lambda: petal.BloomFilter(1000, 0), lambda: petal.BloomFilter(1000, 1.5),
    lambda: petal.BloomFilter(1000, float("nan")), lambda: petal.BloomFilter(1000, secret=b"short"),
    lambda: petal.BloomFilter(1000, seed=1, secret=bytes(16)),
    lambda: petal.BloomFilter(10**9, 1e-19), lambda: petal.StaticFilter(["a"], 0),
    lambda: petal.WindowedBloomFilter(10, window=0), lambda: petal.ScalableBloomFilter(10, growth=0),
    lambda: petal.CountingBloomFilter(10, width=99), lambda: petal.QuotientFilter(100, max_capacity=99),
    lambda: petal.FilterCascade(["a"], ["a"]),
    lambda: petal.ForeignFilter("nothing", 10), lambda: petal.ForeignFilter("guava", 10, key_type="x"),
    lambda: petal.ForeignFilter("guava", 0), lambda: petal.ForeignFilter("guava", 10, 1.5),
])
def test_invalid_arguments_are_value_errors(make):
    with pytest.raises(ValueError) as raised:
        make()
    assert not isinstance(raised.value, petal.PetalError) and "\n" not in str(raised.value)


@pytest.mark.parametrize("unsupported", [
    lambda: petal.ForeignFilter("redisbloom", 10) | petal.ForeignFilter("redisbloom", 10),
    lambda: petal.ForeignFilter("filter-cascade", 10),
])
def test_operations_that_a_foreign_format_does_not_have_are_unsupported(unsupported):
    with pytest.raises(petal.UnsupportedError, match="^a filter of (redisbloom|filter-cascade) "):
        unsupported()


def test_unavailable_memory_is_an_error():
    with pytest.raises((petal.MemoryLimitError, ValueError)):
        petal.BloomFilter(2**60, 0.01)


def test_exceptions_have_a_common_base_class():
    tree = {
        petal.FormatError: ValueError, petal.IncompatibleError: ValueError,
        petal.FullError: Exception, petal.UnsupportedError: TypeError,
        petal.MemoryLimitError: MemoryError, petal.InputError: OSError,
        petal.MissingFileError: FileNotFoundError,
    }
    for exception, base in tree.items():
        assert issubclass(exception, petal.PetalError) and issubclass(exception, base)
        assert exception.__module__ == "petal" and exception.__doc__
        assert isinstance(pickle.loads(pickle.dumps(exception("message"))), exception)


def test_system_errors_have_errno_and_filename(tmp_path):
    missing = tmp_path / "no"
    for tried in (
        lambda: petal.open(missing), lambda: petal.common(missing, missing),
        lambda: petal.BloomFilter(9).save(missing / "x"),
    ):
        with pytest.raises(FileNotFoundError) as raised:
            tried()
        error = raised.value
        assert isinstance(error, petal.InputError) and error.errno == errno.ENOENT
        assert error.filename.startswith(str(missing))
        assert str(error).startswith(error.filename) and "Errno" not in str(error)
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.errno, again.filename) == (str(error), 2, error.filename)
    os.mkfifo(tmp_path / "fifo")
    for no_file in tmp_path, tmp_path / "fifo", "/dev/null":
        with pytest.raises(petal.InputError, match="expected the name of a file") as raised:
            petal.BloomFilter(9).save(no_file)
        assert raised.value.errno is None and not isinstance(raised.value, FileNotFoundError)


def test_array_as_a_key_is_its_bytes():
    one = petal.BloomFilter(100, 1e-6)
    one.add(b"\1\2")
    assert np.array([1, 2], "u1") in one and np.uint8(1) not in one

    class Wrong:
        def __index__(self):
            raise RuntimeError("wrong")

    with pytest.raises(RuntimeError, match="wrong"):
        one.add(Wrong())


def test_filters_with_different_key_types_differ(tmp_path):
    text = petal.ForeignFilter("guava", 1000)
    wide = petal.ForeignFilter("guava", 1000, key_type="utf16")
    assert text != wide and text == petal.ForeignFilter("guava", 1000)
    wide.add("a")
    with pytest.raises(petal.IncompatibleError, match="form of keys"):
        text | wide
    (tmp_path / "lines").write_text("a\n")
    with pytest.raises(ValueError, match="not with a filter object"):
        petal.check(text, tmp_path / "lines", key_type="utf16")


def test_filter_has_no_len_iteration_or_hash():
    one = petal.BloomFilter(10)
    assert bool(one) and not hasattr(one, "__len__") and not hasattr(one, "__iter__")
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(TypeError):
        petal.Filter()
    assert one != {"a"} and one != petal.ClassicBloomFilter(10)


# ---- Damaged bytes and files ---------------------------------------------------------------------

SMALL = {
    "bloom": lambda: petal.BloomFilter(20),
    "classic": lambda: petal.ClassicBloomFilter(20),
    "counting": lambda: petal.CountingBloomFilter(20),
    "quotient": lambda: petal.QuotientFilter(40),
    "vector-quotient": lambda: petal.VectorQuotientFilter(40),
    "scalable": lambda: petal.ScalableBloomFilter(10),
    "windowed": lambda: petal.WindowedBloomFilter(20, window=60),
    "static": lambda: petal.StaticFilter(range(20)),
    "static-fuse": lambda: petal.StaticFilter(range(20), fuse=True),
    "cascade": lambda: petal.FilterCascade(range(20), range(100, 200)),
}


@pytest.mark.parametrize("kind", SMALL)
def test_damaged_bytes_are_refused(kind, tmp_path):
    one = SMALL[kind]()
    if kind not in ("static", "static-fuse", "cascade"):
        one.update(range(20))
    whole, path = one.to_bytes(), tmp_path / "damaged"
    assert petal.from_bytes(bytearray(whole)) == one == petal.from_bytes(memoryview(whole))
    for length in range(len(whole)):
        with pytest.raises(petal.FormatError):
            petal.from_bytes(whole[:length])
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 0x10
        with pytest.raises(petal.FormatError):
            petal.from_bytes(flipped)
    with pytest.raises(petal.FormatError):
        petal.from_bytes(whole + b"\0")
    for length in [0, 1, 8, 63, 64, len(whole) - 1]:
        path.write_bytes(whole[:length])
        for read in [petal.open, petal.load]:
            with pytest.raises(petal.FormatError, match="damaged"):
                read(path)
    # A mapped file is verified on request.
    flipped = bytearray(whole)
    flipped[-100] ^= 0x10
    path.write_bytes(flipped)
    try:
        mapped = petal.open(path)
    except petal.FormatError:
        return
    with pytest.raises(petal.FormatError):
        mapped.verify()


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_a_filter_or_an_error(data):
    for start in [b"", b"\x89PETAL\r\n"]:
        try:
            petal.from_bytes(start + data)
        except petal.PetalError as error:
            assert "\n" not in str(error)


def test_unreadable_and_unwritable_files_are_input_errors(tmp_path):
    for read in [petal.open, petal.load]:
        for path in [tmp_path / "nothing", tmp_path]:
            with pytest.raises(petal.InputError, match=str(path)):
                read(path)
    one = petal.BloomFilter(10)
    for path in [tmp_path / "no folder" / "one", tmp_path]:
        with pytest.raises(petal.InputError, match="cannot write|directory"):
            one.save(path)
    assert not list(tmp_path.iterdir())


def test_save_replaces_a_file_atomically(tmp_path):
    path, link = tmp_path / "one", tmp_path / "link"
    link.symlink_to("one")
    old, new = petal.BloomFilter(10), petal.BloomFilter(100_000)
    old.save(link)
    path.chmod(0o640)
    mapped = petal.open(path)
    new.save(link)
    assert link.is_symlink() and petal.load(path) == new
    assert path.stat().st_mode & 0o777 == 0o640
    assert mapped == old, "the old file exists as long as it is mapped"


# ---- Threads and processes ----------------------------------------------------------------------


def test_threads_share_one_filter():
    one, threads, wrong = petal.BloomFilter(100_000, 1e-6), [], []

    def fill(part):
        keys = [f"{part}-{number}" for number in range(5000)]
        one.update(keys[:2500])
        wrong.extend(key for key in keys[2500:] if not one.add(key))
        if not all(one.contains_batch(keys)):
            wrong.append(part)

    def read():
        while any(thread.is_alive() for thread in threads[:4]):
            one.add("0-0")
            _ = one.estimated_len, one == one, one.copy(), one.to_bytes(), repr(one)

    threads += [threading.Thread(target=fill, args=(part,)) for part in range(4)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads[:4] + threads[4:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(f"{part}-{number}" in one for part in range(4) for number in range(5000))


def test_concurrent_operations_on_two_filters_do_not_deadlock():
    a, b = petal.BloomFilter(10_000), petal.BloomFilter(10_000)

    def union(ours, theirs):
        for number in range(300):
            ours |= theirs
            _ = ours == theirs, ours | theirs, ours.jaccard(theirs)
            ours.add(number)

    threads = [threading.Thread(target=union, args=pair) for pair in [(a, b), (b, a), (a, a)] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "deadlock"
    a |= a
    a &= a
    assert a == a.union(a, b, a)
    counting = petal.CountingBloomFilter(100)
    counting.add("a")
    counting |= counting
    assert counting.count("a") == 2


def test_ctrl_c_ends_a_long_update():
    code = """
import petal, pyarrow, numpy, signal, threading, os
keys = pyarrow.array(numpy.arange(1_000_000, dtype="u8"))
endless = pyarrow.chunked_array([keys] * 10_000)
one = petal.ClassicBloomFilter(1000)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    one.update(endless)
except KeyboardInterrupt:
    print("interrupted")
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted\n", done.stderr


def test_extension_module_works_without_the_package(tmp_path):
    """As on executors of a cluster, which get only the file of the extension."""
    library = petal._petal.__file__
    (tmp_path / os.path.basename(library)).symlink_to(library)
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import _petal, pickle
one = _petal.BloomFilter(10)
one.add("a")
assert pickle.loads(pickle.dumps(one)) == one and "petal" not in sys.modules
"""
    run = [sys.executable, "-I", "-c", code, str(tmp_path)]
    subprocess.run(run, check=True, timeout=60)


def test_filters_support_weak_references():
    one = petal.BloomFilter(10)
    seen = weakref.ref(one)
    assert seen() is one
    del one
    assert seen() is None


# ---- Keys chosen by an adversary --------------------------------------------------------


def colliding_key(kind, at):
    """Returns a key that collides with the others under the unkeyed hash, with any seed."""
    if kind == "first word":
        return (0x4B33A62ED433D4A3).to_bytes(8, "little") + b"%08x" % at + b"x" * 16
    return b"%08x" % at + (0x8BB84B93962EACC9 ^ 24).to_bytes(8, "little") + b"%08x" % at


@pytest.mark.parametrize("kind", ["first word", "last word"])
@pytest.mark.parametrize(
    "make",
    [
        petal.BloomFilter,
        petal.ClassicBloomFilter,
        petal.CountingBloomFilter,
        petal.ScalableBloomFilter,
        petal.WindowedBloomFilter,
    ],
)
def test_secret_prevents_prepared_collisions_and_seed_does_not(make, kind):
    keys = [colliding_key(kind, at) for at in range(1000)]
    for seed in [0, 7]:
        filter = make(1000, 1e-6, seed=seed)
        filter.add(keys[0])
        assert all(key in filter for key in keys)
    filter = make(1000, 1e-6, secret=bytes(range(16)))
    filter.add(keys[0])
    assert sum(key in filter for key in keys) == 1
