"""Errors name Python arguments and files; arguments accept the usual Python types."""

import os
import re

import numpy as np
import petal
import pytest
from petal._distributed import jobs, tasks
from test_distributed import MEMORY, LocalEngine

# ---- Errors -------------------------------------------------------------------------------------


def full():
    petal.QuotientFilter(100).update(["a"] * 1000)


def unknown(tmp_path):
    (tmp_path / "bits").write_bytes(bytes(range(1, 65)))
    return tmp_path / "bits"


def guava(tmp_path):
    petal.ForeignFilter("guava", 10).save(tmp_path / "guava")
    return tmp_path / "guava"


CAUSES = {
    "full": (lambda d: full(), "plan for a larger maximum capacity"),
    "grown": (lambda d: petal.QuotientFilter(1, max_capacity=2**63), ""),
    "rate": (lambda d: petal.BloomFilter(10, 1e-20), "64-bit hashes"),
    "build": (lambda d: petal.build(unknown(d), d / "f", fpr=1e-20), "64-bit hashes"),
    "unknown": (lambda d: petal.open(unknown(d)), "(rbloom) with format="),
    "load": (lambda d: petal.load(unknown(d)), "(rbloom) with format="),
    "bytes": (lambda d: petal.from_bytes(bytes(range(1, 65))), "(rbloom) with format="),
    "check": (lambda d: petal.check(unknown(d), unknown(d)), "(rbloom) with format="),
    "foreign": (lambda d: petal.open(guava(d), format="dcso"), ""),
    "wrong keys": (lambda d: petal.ForeignFilter("squid-digest", 5, key_type="int64").add("a"), ""),
}


@pytest.mark.parametrize("name", CAUSES)
def test_errors_name_no_command_line_flags(name, tmp_path):
    cause, message = CAUSES[name]
    with pytest.raises(Exception) as raised:
        cause(tmp_path)
    text = str(raised.value)
    assert message in text
    assert not re.search(r"--[a-z]|max_keys|petal build|(^|\s)-[a-zA-Z]\b", text), text


def test_info_names_no_command_line_flags(tmp_path):
    for name in "guava", "spark-v2", "parquet", "datasketches":
        info = petal.ForeignFilter(name, 10).info()
        assert "key_type=" in info["not_recorded"]
        assert "--" not in info["not_recorded"] + info["warnings"]


def test_file_name_that_looks_like_a_flag_is_kept_in_errors(tmp_path):
    with pytest.raises(petal.MissingFileError, match="--format-max_keys: cannot read"):
        petal.open(tmp_path / "--format-max_keys")


# ---- Arguments ---------------------------------------------------------------------------------


def test_numpy_bools_are_accepted(tmp_path):
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
    assert jobs.dedup(LocalEngine(), lines, os.fsencode(tmp_path / "many"), memory_limit=MEMORY).kept == 2
    for wrong in 3, None, object():
        with pytest.raises(TypeError, match="expected str, bytes or os.PathLike"):
            petal.open(wrong)


# ---- Distributed jobs ------------------------------------------------------------------------


@pytest.fixture
def a(tmp_path):
    (tmp_path / "a").write_text("b\na\nb\n")
    return tmp_path / "a"


def dedup(a, **options):
    return jobs.dedup(LocalEngine(), a, None, work=options.pop("work", a.parent), **{"memory_limit": MEMORY} | options)


def test_memory_limit_is_bytes_or_a_size_with_unit(a):
    assert dedup(a, memory_limit="16M").kept == dedup(a, memory_limit=np.int64(MEMORY)).kept == 2
    with pytest.raises(ValueError, match="memory_limit=: '16X' is no size"):
        dedup(a, memory_limit="16X")
    with pytest.raises(ValueError, match="memory_limit=: expected the bytes of one task.*'25%'"):
        dedup(a, memory_limit="25%")


WRONG = {
    "jobs": (0, "expected an integer of at least 1, found"), "slots": (1.5, "expected an integer of at least 1, found"),
    "partitions": (0, "from 1 to 1024, found 0"), "shards": (1000, "from 0 to 256, found 1000"),
    "range_bytes": (0, "expected an integer of at least 1, found"), "delimiter": ("\n", "expected one byte"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_arguments_are_errors_before_the_work(a, name):
    value, message = WRONG[name]
    with pytest.raises(ValueError, match=f"{name}=: .*{message}"):
        dedup(a, **{name: value})
    assert list(a.parent.iterdir()) == [a]


def test_missing_file_raises_missing_file_error(a, tmp_path):
    for call in [
        lambda: dedup(tmp_path / "gone"),
        lambda: jobs.check(LocalEngine(), a, tmp_path / "gone", None, work=tmp_path, memory_limit=MEMORY),
    ]:
        with pytest.raises(petal.MissingFileError, match="gone: cannot read: no such file"):
            call()


def test_filter_errors_name_the_callers_file(a, tmp_path):
    options = {"work": tmp_path, "memory_limit": MEMORY}
    with pytest.raises(petal.FormatError, match="^[^ ]*/bits: not a petal file"):
        jobs.check(LocalEngine(), a, unknown(tmp_path), None, **options)
    whole = petal.BloomFilter(10).to_bytes()
    (tmp_path / "damaged").write_bytes(whole[:-1] + b"\xff")
    with pytest.raises(petal.FormatError, match="^[^ ]*/damaged: "):
        jobs.check(LocalEngine(), a, tmp_path / "damaged", None, **options)
    with pytest.raises(petal.UnsupportedError, match="^[^ ]*/guava: a filter of guava, expect"):
        jobs.check(LocalEngine(), a, guava(tmp_path), None, **options)


def test_errors_do_not_name_the_removed_work_folder(a, tmp_path, monkeypatch):
    build = tasks.build

    def build_and_truncate(job, item):
        done = build(job, item)
        path = item["out"][0] if isinstance(item["out"], (list, tuple)) else item["out"]
        os.truncate(path, 300)
        return done

    monkeypatch.setattr(tasks, "build", build_and_truncate)
    with pytest.raises(petal.PetalError) as raised:
        jobs.diff(LocalEngine(), a, a, None, work=tmp_path, memory_limit=MEMORY)
    text = str(raised.value)
    assert text.startswith(f"{tmp_path}: work file ") and ".petal-work" not in text
    for path in re.findall(r"(?<!\S)/[^\s:;,]+", text):
        assert os.path.exists(path), text


def test_output_folder_is_an_input(a, tmp_path):
    (tmp_path / "c").write_text("".join(f"{n % 50}\n" for n in range(300)))
    first = jobs.dedup(
        LocalEngine(), tmp_path / "c", tmp_path / "d", memory_limit=MEMORY, range_bytes=100
    )
    assert first.kept == 50 and len(list((tmp_path / "d").glob("part-*"))) > 5
    again = jobs.common(
        LocalEngine(), tmp_path / "d", [a, tmp_path / "c"], tmp_path / "e", memory_limit=MEMORY
    )
    assert (again.lines, again.kept) == (50, 50)
    # Also one without lines.
    jobs.diff(LocalEngine(), a, a, tmp_path / "none", memory_limit=MEMORY)
    (tmp_path / "empty").touch()
    jobs.dedup(LocalEngine(), tmp_path / "empty", tmp_path / "parts", memory_limit=MEMORY)
    for nothing in "none", "parts":
        empty = jobs.dedup(
            LocalEngine(), [tmp_path / nothing], None, work=tmp_path, memory_limit=MEMORY
        )
        assert empty.lines == 0
        left = jobs.diff(
            LocalEngine(), a, tmp_path / nothing, None, work=tmp_path, memory_limit=MEMORY
        )
        assert (left.lines, left.kept) == (3, 2)
    (tmp_path / "d/_SUCCESS").unlink()
    with pytest.raises(petal.InputError, match="d: no _SUCCESS in it; expected"):
        dedup(tmp_path / "d", work=tmp_path)
    (tmp_path / "d/_CLAIMED").touch()
    with pytest.raises(petal.InputError, match="d: another job writes to it, or was killed"):
        dedup(tmp_path / "d", work=tmp_path)


def test_file_uris_are_paths(a, tmp_path):
    for uri in f"file://{a}", f"file:{a}", f"file://localhost{a}":
        assert jobs.dedup(LocalEngine(), uri, f"file://{tmp_path}/out", memory_limit=MEMORY).kept == 2
        assert (tmp_path / "out/_SUCCESS").exists()
        for path in (tmp_path / "out").iterdir():
            path.unlink()
    spaced = tmp_path / "a b%20\udcff"
    spaced.write_bytes(a.read_bytes())
    for name in spaced.as_uri(), f"file:{tmp_path}/a%20b%2520%ff", str(spaced):
        assert jobs.dedup(LocalEngine(), name, None, work=tmp_path, memory_limit=MEMORY).kept == 2
    with pytest.raises(ValueError, match="s3a://bucket/a: .* found a URI with scheme s3a; mount the storage"):
        jobs.dedup(LocalEngine(), "s3a://bucket/a", None, work=tmp_path, memory_limit=MEMORY)


def test_other_types_of_paths_are_type_errors(a, tmp_path):
    class Frame:
        columns = ["url"]

        def __iter__(self):
            yield "x"

    for wrong, kind in (Frame(), "Frame"), (3, "int"), ([3], "int"):
        with pytest.raises(TypeError, match=f"expected a path( or several)?, found {kind}"):
            jobs.dedup(LocalEngine(), wrong, None, work=tmp_path, memory_limit=MEMORY)
    with pytest.raises(ValueError, match="at least one path, found an empty list"):
        jobs.dedup(LocalEngine(), [], None, work=tmp_path, memory_limit=MEMORY)


def test_dask_needs_a_client(a):
    dask = pytest.importorskip("petal.dask")
    with pytest.raises(TypeError, match="expected a distributed.Client first, found str"):
        dask.dedup("tcp://scheduler:8786", a, None)
