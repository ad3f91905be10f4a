"""Set operations on files: same results as Python's sets, same bytes as the program."""

import bz2
import copy
import dataclasses
import gzip
import json
import lzma
import os
import pickle
import random
import shutil
import subprocess
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import petal

ROOT = Path(__file__).resolve().parents[3]


def lines(random_: random.Random, count: int, kinds: int) -> list[bytes]:
    """Returns lines with many repeats, some of them empty or not UTF-8."""
    numbers = random_.choices(range(kinds), k=count)
    return [b"\xff" * (n % 5) + b"%d" % n if n else b"" for n in numbers]


def write(path: Path, lines: list[bytes], delimiter: bytes = b"\n", ended: bool = True) -> Path:
    path.write_bytes(delimiter.join(lines) + (delimiter if ended and lines else b""))
    return path


def distinct(lines: list[bytes]) -> list[bytes]:
    return list(dict.fromkeys(lines))


@pytest.mark.parametrize("seed", range(12))
def test_operations_equal_pythons_sets(tmp_path: Path, seed: int):
    random_ = random.Random(seed)
    delimiter = b"\n" if seed % 2 else b"\0"
    texts = [lines(random_, random_.choice([0, 1, 50, 5000]), 3000) for _ in range(3)]
    # An empty last line without a delimiter is not a line.
    texts = [text + [b"last"] if text else text for text in texts]
    a, b, c = (
        write(tmp_path / name, text, delimiter, ended=seed % 3 > 0)
        for name, text in zip("abc", texts, strict=True)
    )
    options = {"delimiter": delimiter, "memory_limit": "8M"}
    in_b, in_c = set(texts[1]), set(texts[2])
    both = [line for line in distinct(texts[0]) if line in in_b and line in in_c]
    neither = [line for line in distinct(texts[0]) if line not in in_b and line not in in_c]
    assert list(petal.common(a, b, c, **options)) == both
    assert list(petal.diff(a, b, c, **options)) == neither
    assert list(petal.diff(a, [b, c], **options)) == neither
    assert list(petal.dedup(a, [b, c], **options)) == distinct(sum(texts, []))
    assert list(petal.common([a, b], c, **options)) == [
        line for line in distinct(texts[0] + texts[1]) if line in in_c
    ]


def test_report_has_lines_and_figures(tmp_path: Path):
    a = write(tmp_path / "a", [b"cherry", b"apple", b"plum", b"apple"])
    b = write(tmp_path / "b", [b"apple", b"fig", b"cherry"])
    report = petal.common(str(a), b)
    assert len(report) == report.kept == 2 and report.first_lines == 4
    assert list(report) == list(report) == [b"cherry", b"apple"]
    # Two loops at once.
    assert list(zip(report, report, strict=True)) == [(b"cherry",) * 2, (b"apple",) * 2]
    assert report.wrong == 0 and report.seconds > 0 and report.phases[-1].lines == 4
    assert "kept=2" in repr(report)
    assert json.loads(json.dumps(report.as_dict()))["kept"] == 2
    counted = petal.common(a, b, count=True)
    assert len(counted) == 2
    with pytest.raises(petal.UnsupportedError, match="because of count="):
        iter(counted)
    # A report of no lines is still true.
    assert petal.diff(b, b) and list(petal.diff(b, b)) == []


def test_long_lines_are_complete(tmp_path: Path):
    long = [b"x" * 3_000_000, b"", b"y" * 700_000, b"z"]
    assert list(petal.dedup(write(tmp_path / "a", long))) == long


def test_file_of_a_report_is_closed_with_it(tmp_path: Path):
    a = write(tmp_path / "a", [b"1"])
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        list(petal.dedup(a))
    assert len(os.listdir("/proc/self/fd")) == before


def test_outputs_equal_those_of_the_program(tmp_path: Path, program: Path):
    random_ = random.Random(7)
    a = write(tmp_path / "a", lines(random_, 30_000, 20_000), ended=False)
    b = write(tmp_path / "b", lines(random_, 30_000, 20_000))
    for operation in ["common", "diff"]:
        subprocess.run([program, operation, a, b, "-o", tmp_path / "expected"], check=True)
        getattr(petal, operation)(a, b, out=tmp_path / "out", memory_limit="8M")
        assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes(), operation
    dupes = ["--dupes-output", tmp_path / "expected.rest"]
    subprocess.run([program, "dedup", a, b, "-o", tmp_path / "expected", *dupes], check=True)
    with open(tmp_path / "out", "wb") as out:
        petal.dedup(a, b, out=out, rest=tmp_path / "rest")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()
    assert (tmp_path / "rest").read_bytes() == (tmp_path / "expected.rest").read_bytes()


BUILDS = [
    ({}, []),
    ({"capacity": 50_000, "fpr": 1e-4, "seed": 5}, ["-n5e4", "-p1e-4", "--seed=5"]),
    ({"size": "64K"}, ["--size=64K"]),
    ({"size": "100M"}, ["--size=100M"]),
    ({"memory_limit": "100M"}, ["-m100M"]),
    ({"type": "classic"}, ["--type=classic"]),
    ({"type": "counting", "width": 3}, ["--type=counting", "--width=3"]),
    ({"type": "counting-classic"}, ["--type=counting-classic"]),
    ({"type": "quotient"}, ["--type=quotient"]),
    ({"type": "quotient", "max_capacity": 10**6}, ["--max-capacity=1e6"]),
    ({"type": "scalable"}, ["--growing"]),
    ({"type": "scalable", "capacity": 1000}, ["--growing", "-n1000"]),
    ({"type": "windowed", "last": 4000}, ["--last=4000"]),
    ({"type": "static", "fpr": 1e-3}, ["--type=static", "-p1e-3"]),
    ({"type": "static", "memory_limit": "8M"}, ["--type=static", "-m8M"]),
]


@pytest.mark.parametrize(("options", "flags"), BUILDS, ids=lambda part: "".join(map(str, part)))
def test_filter_files_equal_those_of_the_program(
    tmp_path: Path, program: Path, options: dict, flags: list
):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(20_000)])
    subprocess.run([program, "build", a, "-q", "-o", tmp_path / "expected", *flags], check=True)
    report = petal.build(a, tmp_path / "out", **options)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()
    assert report.first_lines == 20_000 and report.kept <= 20_000


def test_cascade_has_no_errors_for_both_inputs(tmp_path: Path, program: Path):
    a = write(tmp_path / "a", [b"in %d" % n for n in range(5000)])
    b = write(tmp_path / "b", [b"out %d" % n for n in range(20_000)])
    petal.build(a, tmp_path / "f", type="cascade", not_in=b)
    subprocess.run([program, "build", a, "--not-in", b, "-o", tmp_path / "expected"], check=True)
    assert (tmp_path / "f").read_bytes() == (tmp_path / "expected").read_bytes()
    assert petal.check(tmp_path / "f", [a, b], count=True).kept == 5000
    with pytest.raises(ValueError, match="a: 5,000 lines are in the other inputs.*petal.common"):
        petal.build(a, tmp_path / "g", type="cascade", not_in=a)


def test_windowed_filter_is_read_by_the_program(tmp_path: Path, program: Path):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(1000)])
    petal.build(a, tmp_path / "f", type="windowed", window=3600)
    run = [program, "check", "-c", tmp_path / "f", a]
    assert subprocess.run(run, check=True, capture_output=True).stdout == b"1000\n"
    assert petal.check(tmp_path / "f", a, count=True).kept == 1000
    late = subprocess.run([*run, "--now", "99999999999"], capture_output=True)
    assert late.stdout == b"0\n"


def test_check_accepts_files_and_filter_objects(tmp_path: Path, program: Path):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(3000)])
    b = write(tmp_path / "b", [b"line %d" % n for n in range(2000, 6000)])
    allow = write(tmp_path / "allow", [b"line 2001", b"line 9"])
    petal.build(a, tmp_path / "f", fpr=1e-6)
    for invert, flags in [(False, []), (True, ["-v"])]:
        run = [program, "check", tmp_path / "f", b, "--allow", allow, *flags]
        expected = subprocess.run(run, check=True, capture_output=True).stdout
        for filter in [tmp_path / "f", petal.open(tmp_path / "f"), petal.load(tmp_path / "f")]:
            report = petal.check(filter, b, invert=invert, allow=allow)
            assert b"".join(line + b"\n" for line in report) == expected
            assert report.first_lines == 4000 and report.kept == expected.count(b"\n")


def test_check_accepts_filters_of_other_programs(tmp_path: Path, program: Path):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(3000)])
    b = write(tmp_path / "b", [b"line %d" % n for n in range(2000, 9000)])
    subprocess.run([program, "build", "--format", "guava", a, "-o", tmp_path / "f"], check=True)
    expected = subprocess.run(
        [program, "check", tmp_path / "f", b], check=True, capture_output=True
    )
    assert b"".join(line + b"\n" for line in petal.check(tmp_path / "f", b)) == expected.stdout
    assert 1000 <= expected.stdout.count(b"\n") < 2000


def test_filter_may_change_during_check(tmp_path: Path):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(200_000)])
    seen = petal.BloomFilter(300_000)
    # Called in this thread during the job: they must not deadlock.
    report = petal.check(seen, a, count=True, progress=lambda *_: seen.add("more"))
    assert report.first_lines == 200_000 and "more" in seen


def test_compressed_inputs_are_read(tmp_path: Path):
    text = [b"line %d" % n for n in range(50_000)]
    a, b = write(tmp_path / "a", text), write(tmp_path / "b", text[::3])
    compressed = tmp_path / "a.gz"
    compressed.write_bytes(gzip.compress(a.read_bytes()))
    assert list(petal.common(compressed, b)) == text[::3]
    assert list(petal.diff(a, compressed)) == []
    for name, compress in [("b.xz", lzma.compress), ("b.bz2", bz2.compress)]:
        (tmp_path / name).write_bytes(compress(b.read_bytes()))
        assert list(petal.common(compressed, tmp_path / name)) == text[::3]
    if zstd := shutil.which("zstd"):
        subprocess.run([zstd, "-q", b], check=True)
        assert list(petal.common(compressed, tmp_path / "b.zst")) == text[::3]


def test_pipe_is_an_input(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"b\na\nb\n",))
    writer.start()
    assert list(petal.common(pipe, write(tmp_path / "a", [b"b"]))) == [b"b"]
    writer.join()

    def refused() -> None:
        with suppress(BrokenPipeError):
            pipe.write_bytes(b"b\n")

    with pytest.raises(ValueError, match="read only once .* specify capacity="):
        writer = threading.Thread(target=refused)
        writer.start()
        try:
            petal.build(pipe, tmp_path / "f")
        finally:
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
            writer.join(timeout=1)


def test_approximate_result_has_the_estimated_errors(tmp_path: Path):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(50_000)])
    b = write(tmp_path / "b", [b"line %d" % n for n in range(0, 100_000, 2)])
    exact = set(petal.common(a, b))
    report = petal.common(a, b, approx=True, fpr=0.01)
    found = set(report)
    # No line is lost; of 25,000 others 1 % are false positives, plus six standard deviations of 16.
    assert exact < found and len(found - exact) < 250 + 100
    assert 100 < report.wrong < 400 and report.strategy == "approximate"


def test_two_jobs_run_at_once(tmp_path: Path):
    texts = [[b"%d %d" % (job, n) for n in range(100_000)] for job in range(2)]
    files = [write(tmp_path / str(job), text + text) for job, text in enumerate(texts)]
    results: dict[int, list[bytes]] = {}

    def job(number: int) -> None:
        results[number] = list(petal.dedup(files[number], memory_limit="8M"))

    threads = [threading.Thread(target=job, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == texts[0] and results[1] == texts[1]


def test_interrupted_job_is_resumed(tmp_path: Path):
    a = write(tmp_path / "a", [b"line %d" % n for n in range(600_000)])
    b = write(tmp_path / "b", [b"line %d" % n for n in range(0, 1_200_000, 2)])
    work = tmp_path / "work"
    options = {"memory_limit": "8M", "work_dir": work}

    def stop(phase: str, done: int, total: int | None) -> None:
        if phase == "deciding":
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        petal.common(a, b, progress=stop, **options)
    with pytest.raises(ValueError, match="unfinished job; pass resume=True"):
        petal.common(a, b, **options)
    report = petal.common(a, b, resume=True, **options)
    assert report.resumed > 0 and report.kept == 300_000
    assert not work.exists()


def test_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = (ROOT / "docs/guides/python-files.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) == 8
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        if "tqdm" in block:
            pytest.importorskip("tqdm")
        exec(compile(block, "python-files.md", "exec"), names)


def test_copies_share_the_lines_and_pickles_have_none(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x\ny\n")
    report = petal.dedup(tmp_path / "a")
    copies = [copy.copy(report), copy.deepcopy(report), dataclasses.replace(report, passes=9)]
    pickled = pickle.loads(pickle.dumps(report))
    del report
    assert [list(one) for one in copies] == [[b"x", b"y"]] * 3
    assert pickled == copies[0]
    with pytest.raises(petal.UnsupportedError, match="only in the process that ran the job"):
        list(pickled)
    assert "_lines" not in copies[0].as_dict()
    del copies[0]
    assert list(copies[0]) == [b"x", b"y"]


def test_reports_of_filter_jobs_have_passes_and_bytes(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x\ny\n")
    built = petal.build(tmp_path / "a", tmp_path / "f")
    assert (built.passes, built.bytes_read, len(built.phases)) == (2, 8, 2)
    checked = petal.check(tmp_path / "f", tmp_path / "a", jobs=np.int64(2))
    assert (checked.passes, checked.bytes_read, len(checked.phases)) == (1, 4, 1)
    assert checked.phases[0].bytes == 4
    assert petal.build(tmp_path / "a", tmp_path / "f", capacity=9).passes == 1


def test_relative_paths_are_resolved_at_the_call(tmp_path: Path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x\n")
    monkeypatch.chdir(tmp_path)
    petal.dedup("a", out="out", progress=lambda *_: os.chdir("/"))
    assert (tmp_path / "out").read_bytes() == b"x\n"


def test_utf16_file_is_an_error_unless_text_is_set(tmp_path: Path) -> None:
    lines = write(tmp_path / "lines", [b"one", b"two"])
    wide = tmp_path / "wide"
    wide.write_bytes("one\ntwo\n".encode("utf-16"))
    with pytest.raises(petal.InputError, match="wide: is text in UTF-16.* text=True"):
        petal.common(lines, wide)
    assert len(petal.dedup(wide, text=True)) == 3


def test_byte_order_mark_and_mixed_line_ends_are_warnings(tmp_path: Path) -> None:
    lines = write(tmp_path / "lines", [b"one", b"two"])
    crlf = write(tmp_path / "crlf", [b"one\r", b"two\r"])
    mark = write(tmp_path / "mark", [b"\xef\xbb\xbfone", b"two"])
    with pytest.warns(UserWarning, match="crlf: lines end with CRLF") as warned:
        assert len(petal.common(lines, crlf)) == 0
    assert [Path(warning.filename).name for warning in warned] == ["test_engine.py"]
    with pytest.warns(UserWarning, match="mark: begins with a byte order mark"):
        petal.common(lines, mark)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        petal.common(lines, mark, crlf, text=True)
        petal.common(crlf, crlf)


def test_keys_that_are_spelled_differently_are_warnings(tmp_path: Path) -> None:
    lines = write(tmp_path / "lines", [b"one", b"two"])
    crlf = write(tmp_path / "crlf", [b"one\r", b"two\r"])
    lower = write(tmp_path / "lower", [b"0aff", b"12"])
    upper = write(tmp_path / "upper", [b"0AFF", b"12"])
    of_lines, of_lower = tmp_path / "of lines", tmp_path / "of lower"
    petal.build(lines, of_lines)
    petal.build(lower, of_lower)
    petal.build(crlf, tmp_path / "of crlf")
    with pytest.warns(UserWarning, match="crlf end with CRLF, those in .* do not.*strip-cr"):
        petal.check(of_lines, crlf)
    with pytest.warns(UserWarning, match="crlf end with CRLF, and the CR is part of the key"):
        petal.check(petal.BloomFilter(10), crlf)
    with pytest.warns(UserWarning, match="crlf: lines end with CRLF, the keys of .*lines do not"):
        petal.check(of_lines, lines, allow=crlf)
    with pytest.warns(UserWarning, match="lower: keys are hexadecimal in lowercase"):
        petal.common(lower, upper)
    with pytest.warns(UserWarning, match="of crlf end with CRLF"):
        petal.merge(of_lines, tmp_path / "of crlf", out=tmp_path / "both")
    with pytest.warns(UserWarning, match="some lines in .* end with CRLF and others with LF"):
        petal.check(tmp_path / "both", upper)
    petal.seen(tmp_path / "state", lower, capacity=10)
    with pytest.warns(UserWarning, match="upper are hexadecimal in uppercase"):
        petal.seen(tmp_path / "state", upper)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        petal.check(of_lower, lower)
        # Hexadecimal keys are looked up in the case of the filter.
        assert petal.check(of_lower, upper, count=True).kept == 2
        petal.check(of_lower, upper, text=True)
        petal.check(tmp_path / "both", lines)
        petal.seen(tmp_path / "state", upper)


def test_keys_that_python_adds_end_what_is_known_of_the_spelling(tmp_path: Path) -> None:
    lower = write(tmp_path / "lower", [b"0aff", b"be"])
    path = tmp_path / "lower.petal"
    petal.build(lower, path, capacity=100)
    recorded = petal.load(path).metadata
    assert '"hex":{"case":"lower","keys":2}' in recorded
    other = petal.BloomFilter(100)
    other.add("0AFF")

    def cleared() -> petal.BloomFilter:
        filter = petal.load(path)
        filter.clear()
        return filter

    additions = {
        "add": (petal.load(path), lambda filter: filter.add(b"0AFF")),
        "update": (petal.load(path), lambda filter: filter.update([b"0AFF", "BE"])),
        "union": (petal.load(path), lambda filter: filter.__ior__(other)),
        "cleared": (cleared(), lambda filter: filter.add("0AFF")),
        "set": (petal.load(path), lambda filter: (filter.add("x"), setattr(filter, "metadata", recorded), filter.add("y"))),
    }
    for name, (filter, add) in additions.items():
        add(filter)
        assert '"hex"' not in filter.metadata and "keys" in filter.metadata, name
        # What is saved gives no warning for keys in the other case.
        filter.save(tmp_path / name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            petal.check(tmp_path / name, write(tmp_path / "upper", [b"0AFF"]), count=True)
    # Nothing was added.
    filter = petal.load(path)
    filter.update([])
    mapped = petal.open(path)
    with pytest.raises(petal.UnsupportedError, match="read only"):
        mapped.add("0AFF")
    assert filter.metadata == mapped.metadata == filter.copy().metadata == recorded


@pytest.mark.parametrize("format", [None, "guava"])
def test_filter_beside_a_copy_of_its_old_contents_is_not_read(tmp_path: Path, format: str | None) -> None:
    lines, path, copy = write(tmp_path / "lines", [b"one"]), tmp_path / "f", tmp_path / "f.petal-backup"
    filter = petal.ForeignFilter(format, 10, 0.01) if format else petal.BloomFilter(10)
    filter.save(path)
    copy.write_bytes(b"old")
    for read in [
        lambda: petal.open(path),
        lambda: petal.load(path),
        lambda: petal.check(path, lines),
        lambda: petal.merge(path, path, out=tmp_path / "out"),
    ]:
        with pytest.raises(petal.InputError, match="f: cannot read: .*restore or remove .*f.petal-backup"):
            read()
    copy.unlink()
    petal.open(path)


def test_output_of_lines_is_compressed_as_its_name_says(tmp_path: Path) -> None:
    one = write(tmp_path / "one", [b"line %d" % (number % 700) for number in range(1000)])
    two = write(tmp_path / "two", [b"line %d" % number for number in range(0, 2000, 3)])
    petal.build(one, tmp_path / "filter")
    jobs = [
        lambda out: petal.dedup(one, two, out=out),
        lambda out: petal.common(one, two, out=out),
        lambda out: petal.diff(two, one, out=tmp_path / "other.gz", rest=out),
        lambda out: petal.symdiff(one, two, out=out),
        lambda out: petal.count(one, two, out=out),
        lambda out: petal.check(tmp_path / "filter", two, out=out),
        lambda out: petal.seen(tmp_path / f"seen-{out.suffix[1:]}", two, capacity=2000, exact=True, out=out),
    ]
    for job in jobs:
        job(tmp_path / "out")
        plain = (tmp_path / "out").read_bytes()
        for name in ["out.gz", "out.zst", "out.LZ4"]:
            job(tmp_path / name)
            packed = (tmp_path / name).read_bytes()
            assert packed != plain
            if name == "out.gz":
                assert gzip.decompress(packed) == plain
            again = tmp_path / "again"
            petal.diff(tmp_path / name, os.devnull, out=again)
            assert sorted(again.read_bytes().splitlines()) == sorted(set(plain.splitlines()))
            (tmp_path / name).unlink()


def test_output_that_would_not_be_compressed_as_its_name_says_is_refused(tmp_path: Path) -> None:
    lines = write(tmp_path / "lines", [b"one", b"two"])
    with pytest.raises(petal.InputError, match="out.xz: outputs are not compressed as .xz; name it .gz"):
        petal.dedup(lines, out=tmp_path / "out.xz")
    with pytest.raises(ValueError, match="memory_limit=8 MiB: is too little, at least 8.5 MiB is needed"):
        petal.dedup(lines, out=tmp_path / "out.gz", memory_limit="8M")
    for name in ["out.gz", "out.zst", "out.XZ"]:
        with pytest.raises(petal.InputError, match=f"{name}: the output is not compressed"):
            petal.BloomFilter(10).save(tmp_path / name)
        with pytest.raises(petal.InputError, match=f"{name}: the output is not compressed"):
            petal.seen(tmp_path / name, lines, capacity=10)
        assert not (tmp_path / name).exists()
