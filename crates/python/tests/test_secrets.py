"""Filters with keyed hashes: secrets in their files, and apart."""

import copy
import pickle
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import petal
import pytest

SECRET, OTHER = b"0123456789abcdef", b"fedcba9876543210"
KEYS = ["a", "b", "c"]

#: A filter of each class, given its secret.
CLASSES: list[Callable[..., petal.Filter]] = [
    lambda **secret: petal.BloomFilter(20, **secret),
    lambda **secret: petal.ClassicBloomFilter(20, **secret),
    lambda **secret: petal.CountingBloomFilter(20, **secret),
    lambda **secret: petal.ClassicCountingBloomFilter(20, **secret),
    lambda **secret: petal.QuotientFilter(20, **secret),
    lambda **secret: petal.VectorQuotientFilter(20, **secret),
    lambda **secret: petal.ScalableBloomFilter(20, **secret),
    lambda **secret: petal.WindowedBloomFilter(20, **secret),
    lambda **secret: petal.StaticFilter(KEYS, **secret),
    lambda **secret: petal.FilterCascade(KEYS, ["x"], **secret),
]


@pytest.mark.parametrize("make", CLASSES)
def test_file_without_the_secret_needs_it(make: Callable[..., petal.Filter], tmp_path: Path) -> None:
    filter, path = make(secret=SECRET, secret_apart=True), tmp_path / "f"
    if filter.type not in ("static", "cascade"):
        filter.update(KEYS)
    filter.save(path)
    data = path.read_bytes()
    assert SECRET not in data and SECRET not in filter.to_bytes() and data == filter.to_bytes()
    for read in (
        lambda **secret: petal.open(path, **secret),
        lambda **secret: petal.load(path, **secret),
        lambda **secret: petal.from_bytes(data, **secret),
    ):
        with pytest.raises(petal.IncompatibleError, match="not in its file; pass it as secret="):
            read()
        with pytest.raises(petal.IncompatibleError, match="built with another secret"):
            read(secret=OTHER)
        with pytest.raises(ValueError, match="expected 16 bytes"):
            read(secret=SECRET[1:])
        opened = read(secret=SECRET)
        assert opened == filter and all(opened.contains_batch(KEYS)) and "a" in opened.copy()
    for shown in (repr(filter), repr(filter.info()), filter.metadata):
        assert SECRET.decode() not in shown and SECRET.hex() not in shown
    assert filter.info()["is_secret_apart"] and filter.info()["is_keyed"]


@pytest.mark.parametrize("make", CLASSES)
def test_filter_without_its_secret_is_not_pickled(make: Callable[..., petal.Filter]) -> None:
    filter = make(secret=SECRET, secret_apart=True)
    for protocol in (2, 5):
        with pytest.raises(petal.UnsupportedError, match="cannot be pickled; save it"):
            pickle.dumps(filter, protocol)
    assert copy.deepcopy(filter) == filter
    in_file = make(secret=SECRET)
    assert pickle.loads(pickle.dumps(in_file)) == in_file and not in_file.info()["is_secret_apart"]
    assert in_file != filter


def test_secret_apart_needs_a_secret() -> None:
    with pytest.raises(ValueError, match="secret_apart=True: pass 16 bytes as secret="):
        petal.BloomFilter(20, secret_apart=True)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "lines").write_bytes(b"a\nb\nc\n")
    (tmp_path / "more").write_bytes(b"c\nd\n")
    (tmp_path / "secret").write_text(SECRET.hex() + "\n")
    return tmp_path


@pytest.mark.parametrize("type", ["bloom", "static", "quotient"])
def test_build_writes_the_file_of_the_program(lists: Path, program: Path, type: str) -> None:
    command = [program, "build", "-q", "--type", type, "--keyed", "--secret-file", "secret", "-o", "theirs", "lines"]
    subprocess.run(command, cwd=lists, check=True)
    secret = bytes.fromhex((lists / "secret").read_text())
    petal.build(lists / "lines", lists / "ours", type=type, secret=secret, secret_apart=True)  # type: ignore[arg-type]
    assert (lists / "ours").read_bytes() == (lists / "theirs").read_bytes()
    assert petal.check(lists / "theirs", lists / "more", secret=secret, count=True).kept == 1


def test_check_and_merge_need_the_secret(lists: Path) -> None:
    for name in ("lines", "more"):
        petal.build(lists / name, lists / f"{name}.petal", capacity=20, secret=SECRET, secret_apart=True)
    filters, union = [lists / "lines.petal", lists / "more.petal"], lists / "union"
    for wrong in ({}, {"secret": OTHER}):
        with pytest.raises(petal.IncompatibleError, match="secret"):
            petal.check(filters[0], lists / "more", **wrong)  # type: ignore[arg-type]
        with pytest.raises(petal.IncompatibleError, match="secret"):
            petal.merge(filters, out=union, **wrong)  # type: ignore[arg-type]
    assert not union.exists()
    petal.merge(filters, out=union, secret=SECRET)
    assert SECRET not in union.read_bytes()
    assert list(petal.check(union, lists / "more", secret=SECRET)) == [b"c", b"d"]
    with pytest.raises(ValueError, match="not with a filter object"):
        petal.check(petal.open(union, secret=SECRET), lists / "more", secret=SECRET)


def test_files_with_a_secret_are_private(lists: Path) -> None:
    petal.build(lists / "lines", lists / "in", secret=SECRET)
    petal.build(lists / "lines", lists / "apart", secret=SECRET, secret_apart=True)
    petal.open(lists / "apart", secret=SECRET).save(lists / "saved")
    assert SECRET in (lists / "in").read_bytes() and "a" in petal.open(lists / "in")
    others = {name: stat.S_IMODE((lists / name).stat().st_mode) & 0o077 for name in ("in", "apart", "saved", "lines")}
    assert others["in"] == 0 and others["apart"] == others["saved"] == others["lines"]


def test_notes_are_those_of_the_program(lists: Path, program: Path) -> None:
    notes = {"source": "https://example.com/a=b", "licence": "CC0"}
    options = [part for name, text in notes.items() for part in ("--metadata", f"{name}={text}")]
    subprocess.run([program, "build", "-q", *options, "-o", "theirs", "lines"], cwd=lists, check=True)
    petal.build(lists / "lines", lists / "ours", metadata=notes)
    assert (lists / "ours").read_bytes() == (lists / "theirs").read_bytes()
    merged = [program, "merge", "-q", "--metadata", "source=both", "-o", "union", "theirs", "ours"]
    subprocess.run(merged, cwd=lists, check=True)
    petal.merge(lists / "theirs", lists / "ours", out=lists / "ours-union", metadata={"source": "both"})
    assert (lists / "ours-union").read_bytes() == (lists / "union").read_bytes()
    petal.seen(lists / "ours-union", lists / "lines", metadata={"seen": "yes"})
    assert '"seen":"yes"' in petal.load(lists / "ours-union").metadata
    for bad in ({"keys": "x"}, {"a b": "x"}, {"a": "x\n"}):
        with pytest.raises(ValueError, match="metadata=: "):
            petal.build(lists / "lines", lists / "bad", metadata=bad)
        with pytest.raises(ValueError, match="metadata=: "):
            petal.merge(lists / "ours", out=lists / "bad", metadata=bad)
    for wrong in ([("a", "b")], {"a": 1}):
        with pytest.raises(TypeError, match="metadata=: "):
            petal.build(lists / "lines", lists / "bad", metadata=wrong)  # type: ignore[arg-type]
    assert not (lists / "bad").exists()


@pytest.mark.parametrize("type", ["static", "static-fuse", "cascade"])
def test_static_filters_beyond_memory_are_those_of_the_program(tmp_path: Path, program: Path, type: str) -> None:
    (tmp_path / "lines").write_bytes(b"".join(b"key %d\n" % i for i in range(2_000_000)))
    (tmp_path / "others").write_bytes(b"".join(b"other %d\n" % i for i in range(10_000)))
    (tmp_path / "temp").mkdir()
    limits = ["-m", "12M", "-T", "temp", "--size", "8M", "-p", "0.01"]
    command: list[object] = [program, "build", "-q", "--type", type, *limits, "-o", "theirs", "lines"]
    not_in = tmp_path / "others" if type == "cascade" else None
    command += ["--not-in", "others"] if not_in else []
    subprocess.run(command, cwd=tmp_path, check=True)  # type: ignore[arg-type]
    report = petal.build(
        tmp_path / "lines", tmp_path / "ours", type=type, not_in=not_in,  # type: ignore[arg-type]
        memory_limit="12M", temp_dir=tmp_path / "temp", size="8M", fpr=0.01,
    )
    assert report.first_lines == 2_000_000 and not list((tmp_path / "temp").iterdir())
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    with pytest.raises(petal.MemoryLimitError):
        petal.build(tmp_path / "lines", tmp_path / "bad", type=type, not_in=not_in, fpr=0.01, size="1M")  # type: ignore[arg-type]
