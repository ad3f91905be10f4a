"""Errors name what Python has: its arguments and its files; and arguments are what Python's are."""

import os
import re

import numpy as np
import petal
import pytest
from petal import _jobs, _tasks
from test_jobs import MEMORY, Here

# ---- Names -------------------------------------------------------------------------------------


def full():
    petal.QuotientFilter(100).update(["a"] * 1000)


def unknown(tmp_path):
    (tmp_path / "bits").write_bytes(bytes(range(1, 65)))
    return tmp_path / "bits"


def guava(tmp_path):
    petal.ForeignFilter("guava", 10).save(tmp_path / "guava")
    return tmp_path / "guava"


SAID = {
    "full": (lambda d: full(), "plan for more keys (max_capacity=)"),
    "grown": (lambda d: petal.QuotientFilter(1, max_capacity=2**63), ""),
    "rate": (lambda d: petal.BloomFilter(10, 1e-20), "a WideBloomFilter"),
    "build": (lambda d: petal.build(unknown(d), d / "f", rate=1e-20), "a WideBloomFilter"),
    "unknown": (lambda d: petal.open(unknown(d)), "(rbloom), with format="),
    "load": (lambda d: petal.load(unknown(d)), "(rbloom), with format="),
    "bytes": (lambda d: petal.from_bytes(bytes(range(1, 65))), "(rbloom), with format="),
    "check": (lambda d: petal.check(unknown(d), unknown(d)), "(rbloom), with format="),
    "foreign": (lambda d: petal.open(guava(d), format="dcso"), ""),
    "wrong keys": (lambda d: petal.ForeignFilter("squid-digest", 5, keys="int64").add("a"), ""),
}


@pytest.mark.parametrize("said", SAID)
def test_errors_name_no_flags_of_the_program(said, tmp_path):
    cause, words = SAID[said]
    with pytest.raises(Exception) as raised:
        cause(tmp_path)
    text = str(raised.value)
    assert words in text
    assert not re.search(r"--[a-z]|max_keys|petal build|(^|\s)-[a-zA-Z]\b", text), text


def test_what_is_known_of_a_filter_names_no_flags(tmp_path):
    for name in "guava", "spark-v2", "parquet", "datasketches":
        info = petal.ForeignFilter(name, 10).info()
        assert "keys=" in info["untold"]
        assert "--" not in info["untold"] + info["warnings"]


def test_a_file_whose_name_looks_like_a_flag_keeps_it(tmp_path):
    with pytest.raises(petal.MissingFileError, match="--format-max_keys: cannot read"):
        petal.open(tmp_path / "--format-max_keys")


# ---- Arguments ---------------------------------------------------------------------------------


def test_bools_of_numpy_are_bools(tmp_path):
    one = petal.BloomFilter(10, 1e-9)
    assert one.add(np.True_) and True in one and 1 in one and np.False_ not in one
    assert one.contains_batch([np.True_, np.False_]) == [True, False]
    path = tmp_path / "a"
    path.write_text("a\n")
    assert petal.dedup(path, count=np.True_).kept == 1
    assert petal.check(one, path, invert=np.bool_(True), count=True).kept == 1
    for flag in "count", "approx", "resume":
        with pytest.raises(TypeError, match=f"{flag}=: expected True or False, found 'no'"):
            petal.dedup(path, **{flag: "no"}, work_dir=tmp_path)


def test_paths_may_be_bytes(tmp_path):
    name = os.fsencode(tmp_path / "f\udcff.petal")
    one = petal.BloomFilter(10)
    one.add("a")
    one.save(name)
    assert petal.open(name) == petal.load(name) == one
    lines, out = os.fsencode(tmp_path / "a"), os.fsencode(tmp_path / "out")
    (tmp_path / "a").write_text("a\nb\n")
    assert list(petal.check(name, lines)) == [b"a"]
    petal.dedup([lines], out=out, temp_dir=os.fsencode(tmp_path))
    assert (tmp_path / "out").read_text() == "a\nb\n"
    assert _jobs.dedup(Here(), lines, os.fsencode(tmp_path / "many"), memory=MEMORY).kept == 2
    for wrong in 3, None, object():
        with pytest.raises(TypeError, match="expected str, bytes or os.PathLike"):
            petal.open(wrong)


# ---- Jobs past one machine ---------------------------------------------------------------------


@pytest.fixture
def a(tmp_path):
    (tmp_path / "a").write_text("b\na\nb\n")
    return tmp_path / "a"


def dedup(a, **given):
    return _jobs.dedup(Here(), a, None, work=given.pop("work", a.parent), **{"memory": MEMORY} | given)


def test_memory_is_bytes_or_a_size(a):
    assert dedup(a, memory="16M").kept == dedup(a, memory=np.int64(MEMORY)).kept == 2
    with pytest.raises(ValueError, match="memory=: '16X' is no size"):
        dedup(a, memory="16X")
    with pytest.raises(ValueError, match="memory=: expected the bytes of one task.*'25%'"):
        dedup(a, memory="25%")


WRONG = {
    "jobs": (0, "expected a whole number of at least 1, found"), "slots": (1.5, "expected a whole number of at least 1, found"),
    "partitions": (0, "from 1 to 1024, found 0"), "shards": (1000, "from 0 to 256, found 1000"),
    "range_bytes": (0, "expected a whole number of at least 1, found"), "delimiter": ("\n", "expected one byte"),
}


@pytest.mark.parametrize("name", WRONG)
def test_settings_are_checked_before_the_work(a, name):
    value, words = WRONG[name]
    with pytest.raises(ValueError, match=f"{name}=: .*{words}"):
        dedup(a, **{name: value})
    assert list(a.parent.iterdir()) == [a]


def test_a_missing_file_is_a_missing_file(a, tmp_path):
    for call in [
        lambda: dedup(tmp_path / "gone"),
        lambda: _jobs.check(Here(), a, tmp_path / "gone", None, work=tmp_path, memory=MEMORY),
    ]:
        with pytest.raises(petal.MissingFileError, match="gone: cannot read: no such file"):
            call()


def test_what_is_wrong_with_a_filter_names_its_own_file(a, tmp_path):
    ask = {"work": tmp_path, "memory": MEMORY}
    with pytest.raises(petal.FormatError, match="^[^ ]*/bits: not a petal file"):
        _jobs.check(Here(), a, unknown(tmp_path), None, **ask)
    whole = petal.BloomFilter(10).to_bytes()
    (tmp_path / "damaged").write_bytes(whole[:-1] + b"\xff")
    with pytest.raises(petal.FormatError, match="^[^ ]*/damaged: "):
        _jobs.check(Here(), a, tmp_path / "damaged", None, **ask)
    with pytest.raises(petal.UnsupportedError, match="^[^ ]*/guava: is a filter of guava, expect"):
        _jobs.check(Here(), a, guava(tmp_path), None, **ask)


def test_no_error_names_a_work_folder_that_is_gone(a, tmp_path, monkeypatch):
    union = _tasks.build

    def cuts(job, item):
        done = union(job, item)
        path = item["out"][0] if isinstance(item["out"], (list, tuple)) else item["out"]
        os.truncate(path, 300)
        return done

    monkeypatch.setattr(_tasks, "build", cuts)
    with pytest.raises(petal.PetalError) as raised:
        _jobs.diff(Here(), a, a, None, work=tmp_path, memory=MEMORY)
    text = str(raised.value)
    assert text.startswith(f"{tmp_path}: work file ") and ".petal-work" not in text
    for path in re.findall(r"(?<!\S)/[^\s:;,]+", text):
        assert os.path.exists(path), text


def test_an_answer_is_an_input(a, tmp_path):
    (tmp_path / "c").write_text("".join(f"{n % 50}\n" for n in range(300)))
    first = _jobs.dedup(Here(), tmp_path / "c", tmp_path / "d", memory=MEMORY, range_bytes=100)
    assert first.kept == 50 and len(list((tmp_path / "d").glob("part-*"))) > 5
    again = _jobs.common(Here(), tmp_path / "d", [a, tmp_path / "c"], tmp_path / "e", memory=MEMORY)
    assert (again.lines, again.kept) == (50, 50)
    # One without a line, too.
    _jobs.diff(Here(), a, a, tmp_path / "none", memory=MEMORY)
    (tmp_path / "empty").touch()
    _jobs.dedup(Here(), tmp_path / "empty", tmp_path / "parts", memory=MEMORY)
    for nothing in "none", "parts":
        empty = _jobs.dedup(Here(), [tmp_path / nothing], None, work=tmp_path, memory=MEMORY)
        assert empty.lines == 0
        left = _jobs.diff(Here(), a, tmp_path / nothing, None, work=tmp_path, memory=MEMORY)
        assert (left.lines, left.kept) == (3, 2)
    (tmp_path / "d/_SUCCESS").unlink()
    with pytest.raises(petal.InputError, match="d: is a folder without _SUCCESS"):
        dedup(tmp_path / "d", work=tmp_path)
    (tmp_path / "d/_CLAIMED").touch()
    with pytest.raises(petal.InputError, match="d: is being written, or was left by a job that wa"):
        dedup(tmp_path / "d", work=tmp_path)


def test_file_uris_are_paths(a, tmp_path):
    for uri in f"file://{a}", f"file:{a}", f"file://localhost{a}":
        assert _jobs.dedup(Here(), uri, f"file://{tmp_path}/out", memory=MEMORY).kept == 2
        assert (tmp_path / "out/_SUCCESS").exists()
        for path in (tmp_path / "out").iterdir():
            path.unlink()
    spaced = tmp_path / "a b%20\udcff"
    spaced.write_bytes(a.read_bytes())
    for name in spaced.as_uri(), f"file:{tmp_path}/a%20b%2520%ff", str(spaced):
        assert _jobs.dedup(Here(), name, None, work=tmp_path, memory=MEMORY).kept == 2
    with pytest.raises(ValueError, match="s3a://bucket/a: .* found a URI of s3a; mount the storage"):
        _jobs.dedup(Here(), "s3a://bucket/a", None, work=tmp_path, memory=MEMORY)


def test_what_is_no_path_is_told(a, tmp_path):
    class Frame:
        columns = ["url"]

        def __iter__(self):
            yield "x"

    for wrong, kind in (Frame(), "Frame"), (3, "int"), ([3], "int"):
        with pytest.raises(TypeError, match=f"expected a path( or several)?, found {kind}"):
            _jobs.dedup(Here(), wrong, None, work=tmp_path, memory=MEMORY)
    with pytest.raises(ValueError, match="at least one path, found an empty list"):
        _jobs.dedup(Here(), [], None, work=tmp_path, memory=MEMORY)


def test_dask_wants_a_client(a):
    dask = pytest.importorskip("petal.dask")
    with pytest.raises(TypeError, match="expected a distributed.Client first, found str"):
        dask.dedup("tcp://scheduler:8786", a, None)
