"""Errors of set operations on files: one line, the right exception, no incomplete file."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import petal


@pytest.fixture
def a(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"cherry\napple\nplum\n")
    return tmp_path / "a"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of 20 MB, which takes a moment and with 8 MiB of memory a spill file."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.writelines(b"line number %012d\n" % n for n in range(700_000))
    return path


def both_in_one(a: Path, file: io.BytesIO) -> None:
    petal.dedup(a, out=file, rest=file)


ERRORS: list[tuple[Callable[[Path, Path], object], type[Exception], str]] = [
    (lambda a, d: petal.common(a, d / "no"), petal.InputError, "no: cannot read: no such file"),
    (lambda a, d: petal.common(a, d), petal.InputError, "is a directory, expected a file of lines"),
    (lambda a, d: petal.dedup(a, out=d), petal.InputError, "is a directory, expected a file"),
    (lambda a, d: petal.dedup(a, out=d / "no/x"), petal.InputError, "no/x: cannot write: no such"),
    (lambda a, d: petal.dedup(a, out="/dev/full"), petal.InputError, "no space left; .* out="),
    (lambda a, d: petal.build(a, "/dev/full"), petal.InputError, "out=: cannot write: no space"),
    (lambda a, d: petal.dedup(a, out=a), ValueError, "is the same file as the input"),
    (
        lambda a, d: petal.dedup(a, out=d / "x", rest=d / "../" / d.name / "x"),
        ValueError,
        "given for two outputs",
    ),
    (lambda a, d: both_in_one(a, io.BytesIO()), ValueError, "the same file for two outputs"),
    (lambda a, d: petal.dedup(a, out=3), TypeError, "out=: expected a path or a file open for"),
    (lambda a, d: petal.dedup(a, out=io.StringIO()), TypeError, "out=: .* open it with 'wb'"),
    (lambda a, d: petal.dedup(a, out=""), ValueError, "out=: expected a path .* an empty one"),
    (lambda a, d: petal.dedup(a.open("rb")), TypeError, "pass the path of the file"),
    (lambda a, d: petal.common(None, a), TypeError, "a path or several, found NoneType"),
    (lambda a, d: petal.common(a, [a]), TypeError, "expected a path, found list"),
    (lambda a, d: petal.check(3, a), TypeError, "expected a filter or its path, found int"),
    (lambda a, d: petal.dedup(a, delimiter="\n"), TypeError, "delimiter=: expected one byte"),
    (lambda a, d: petal.dedup(a, approx=True, fpr="1"), TypeError, "fpr=: expected a number"),
    (lambda a, d: petal.dedup(a, memory_limit=True), ValueError, "memory_limit=: .* found True"),
    (lambda a, d: petal.dedup(a, out=d / "x", count=True), ValueError, "count=True: lines are"),
    (lambda a, d: petal.dedup(a, memory_limit="1M"), petal.MemoryLimitError, "memory_limit=: 1 MiB is too lit"),
    (lambda a, d: petal.dedup(a, memory_limit="4"), ValueError, "memory_limit=: '4' has no unit; write 4M"),
    (lambda a, d: petal.dedup(a, memory_limit="4X"), ValueError, "memory_limit=: '4X' is no size; write a num"),
    (lambda a, d: petal.dedup(a, memory_limit="0%"), ValueError, "memory_limit=: '0%' is no share of memory"),
    (lambda a, d: petal.dedup(a, memory_limit=-1), ValueError, "memory_limit=: expected an integer from 0"),
    (lambda a, d: petal.dedup(a, memory_limit=1e9), ValueError, "memory_limit=: expected an integer from"),
    (lambda a, d: petal.dedup(a, jobs=0), ValueError, "jobs=: expected an integer from 1"),
    (lambda a, d: petal.dedup(a, delimiter=b""), ValueError, "delimiter=: expected one byte, fou"),
    (lambda a, d: petal.dedup(a, temp_dir=d / "no"), petal.InputError, "choose another temp_dir="),
    (lambda a, d: petal.dedup(a, resume=True), ValueError, "set work_dir="),
    (lambda a, d: petal.dedup(a, fpr=0.1), ValueError, "add approx=True"),
    (lambda a, d: petal.dedup(a, approx=True, fpr=2.0), ValueError, "rate"),
    (lambda a, d: petal.dedup(), TypeError, "expected at least one file"),
    (lambda a, d: petal.dedup([]), ValueError, "found an empty list"),
    (lambda a, d: petal.common(a), TypeError, "expected at least two files"),
    (lambda a, d: petal.build(a, d / "f", type="x"), ValueError, 'type=: expected one of bloom, .*, found "x"'),
    (lambda a, d: petal.build(a, d / "f", width=3), ValueError, "width=: a bloom filter has no"),
    (
        lambda a, d: petal.build(a, d / "f", type="windowed"),
        ValueError,
        "specify window=, or specify last=",
    ),
    (
        lambda a, d: petal.build(a, d / "f", type="windowed", window=9, last=9),
        ValueError,
        "last=: determines the lines in the filter.*; leave out window=",
    ),
    (
        lambda a, d: petal.build(a, d / "f", type="quotient", max_capacity=9, capacity=10),
        ValueError,
        "max_capacity=: 9 keys is less than .* 10; raise max_capacity=",
    ),
    (lambda a, d: petal.build(a, d / "f", type="cascade"), ValueError, "not_in="),
    (lambda a, d: petal.build(a, d / "f", type="static", capacity=9), ValueError, "capacity=: a st"),
    (
        lambda a, d: petal.build(a, d / "f", type="static", size="1G"),
        ValueError,
        "size=: memory alone .*; specify fpr=",
    ),
    (lambda a, d: petal.build(a, d / "f", fpr=1.5), ValueError, "1.5"),
    (lambda a, d: petal.build(a, d / "f", capacity=0), ValueError, "capacity=: expected an integer"),
    (
        lambda a, d: petal.build(a, d / "f", capacity=10**6, fpr=0.01, size="1M"),
        petal.MemoryLimitError,
        "1,000,000 keys at .* 1 % take 1.2 MiB, more than 1 MiB, .*; raise size=, or leave out fpr=",
    ),
    (lambda a, d: petal.check(a, a), petal.PetalError, "a: "),
    (lambda a, d: petal.check(d / "no", a), petal.InputError, "no: cannot read"),
    (lambda a, d: petal.check(petal.BloomFilter(9), d / "no"), petal.InputError, "no: cannot read"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[case[2] for case in ERRORS])
def test_each_error_is_one_line_and_leaves_no_file(
    tmp_path: Path, a: Path, call, kind, message: str
):
    with pytest.raises(kind, match=message) as raised:
        call(a, tmp_path)
    assert "\n" not in str(raised.value) and not isinstance(raised.value, SystemError)
    assert sorted(os.listdir(tmp_path)) == ["a"], "a file is left"
    # It names no command-line flags.
    assert not any(flag in f" {raised.value} " for flag in [" -m", " -o ", " -T", "-p:"])


def test_full_filter_is_an_error(tmp_path: Path, large: Path):
    with pytest.raises(petal.FullError, match="with a higher capacity="):
        petal.build(large, tmp_path / "f", type="quotient", capacity=1000)
    assert not (tmp_path / "f").exists()


def test_error_of_a_long_line_has_its_offset(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 5_000_000)
    with pytest.raises(petal.InputError, match='at byte 6 is longer than .*raise memory_limit=.*delimi'):
        petal.dedup(tmp_path / "a", memory_limit="8M")


def test_exception_of_a_callback_ends_the_job(tmp_path: Path, large: Path):
    class FailingWriter:
        calls = 0

        def write(self, data: bytes) -> None:
            self.calls += 1
            raise ArithmeticError("no more")

    writer = FailingWriter()
    with pytest.raises(ArithmeticError, match="no more"):
        petal.dedup(large, out=writer)
    assert writer.calls == 1

    def progress(phase: str, done: int, total: int | None) -> None:
        raise KeyError(phase)

    with pytest.raises(KeyError):
        petal.dedup(large, out=tmp_path / "out", progress=progress)
    assert sorted(os.listdir(tmp_path)) == ["large"]


def test_progress_covers_every_phase(large: Path):
    calls: list[tuple[str, int, int | None]] = []
    petal.common(large, large, memory_limit="8M", progress=lambda *args: calls.append(args))
    phases = list(dict.fromkeys(what for what, _, _ in calls))
    assert len(phases) >= 2
    for phase in phases:
        ends = [(done, total) for what, done, total in calls if what == phase]
        assert ends[0][0] == 0
        # A phase reads all of an input, or skips parts without lines to print.
        done, total = ends[-1]
        assert total is None or done <= total
    first = [(done, total) for what, done, total in calls if what == phases[0]]
    assert first[-1] == (large.stat().st_size,) * 2


def test_progress_is_shown_in_one_line(large: Path, capsys: pytest.CaptureFixture[str]):
    petal.common(large, large, memory_limit="8M", progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "\n" not in err
    shown = err.split("\r")
    assert shown[1].startswith("petal: reading: 0 bytes of ")
    # The last line is overwritten by spaces.
    assert shown[-1] == "" and set(shown[-2]) == {" "}
    assert len(shown[-2]) >= len(shown[-3].rstrip())
    petal.common(large, large, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="progress=: expected a function or True, found str"):
        petal.common(large, large, progress="yes")  # type: ignore[arg-type]


def test_partial_writes_are_continued(large: Path):
    class PartialWriter(io.RawIOBase):
        got = b""

        def write(self, data: bytes) -> int:
            self.got += data[:50_000]
            return min(len(data), 50_000)

    writer = PartialWriter()
    petal.dedup(large, out=writer)
    assert writer.got == large.read_bytes()


def test_writer_that_accepts_nothing_is_an_error(a: Path):
    class BlockedWriter(io.RawIOBase):
        def write(self, data: bytes) -> None:
            return None

    with pytest.raises(petal.InputError, match="took none of 18 bytes"):
        petal.dedup(a, out=BlockedWriter())


def test_return_values_of_write_are_checked(a: Path):
    class ReturningWriter:
        def __init__(self, result):
            self.got, self.result = b"", result

        def write(self, data: bytes):
            self.got += data
            return self.result

    for result in None, True, "well", 18, 99:
        file = ReturningWriter(result)
        petal.dedup(a, out=file)
        assert file.got == a.read_bytes()
    # The rest may be lost.
    with pytest.raises(petal.InputError, match="took 7 of 18 bytes; use a file that writes all"):
        petal.dedup(a, out=ReturningWriter(7))


def test_writer_gets_at_most_64_kib_at_once(tmp_path: Path, a: Path):
    class MeasuringWriter:
        longest = 0

        def write(self, data: bytes) -> None:
            self.longest = max(self.longest, len(data))

    file = MeasuringWriter()
    petal.build(a, file, capacity=1_000_000)
    assert file.longest == 64 << 10


def test_work_folder_is_kept_until_the_output_is_complete(tmp_path: Path, a: Path):
    class FullWriter:
        def write(self, data: bytes) -> None:
            time.sleep(0.2)
            raise OSError("no space left")

    work, rest = tmp_path / "work", tmp_path / "rest"
    with pytest.raises(OSError, match="no space left"):
        petal.dedup(a, out=FullWriter(), rest=rest, work_dir=work)
    assert not rest.exists() and any(work.iterdir())
    petal.dedup(a, out=tmp_path / "out", work_dir=work, resume=True)
    assert (tmp_path / "out").read_bytes() == a.read_bytes() and not work.exists()


def test_exception_at_the_end_leaks_no_descriptor(a: Path):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    calls: list[object] = []
    petal.dedup(a, progress=lambda *args: calls.append(args))
    before = descriptors()
    for _ in range(5):
        left = len(calls)

        def raise_at_the_end(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyError

        with pytest.raises(KeyError):
            petal.dedup(a, progress=raise_at_the_end)
    assert descriptors() == before


def test_output_of_check_cannot_replace_the_filter(tmp_path: Path, a: Path):
    petal.build(a, tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(ValueError, match="is the same file as the input"):
        petal.check(tmp_path / "f", a, out=tmp_path / "f")
    with pytest.raises(ValueError, match="is the same file as the input"):
        petal.check(tmp_path / "f", a, allow=a, out=a)
    assert (tmp_path / "f").read_bytes() == before


def test_mapped_filter_counts_against_the_memory_limit(tmp_path: Path, a: Path):
    petal.BloomFilter(10, memory_limit="17M").save(tmp_path / "f")
    with pytest.raises(petal.MemoryLimitError, match="the filter takes 17 MiB, more than 16 MiB"):
        petal.check(tmp_path / "f", a, memory_limit="16M")


def test_ctrl_c_ends_waiting_for_a_pipes_reader(tmp_path: Path, a: Path):
    os.mkfifo(tmp_path / "fifo")
    code = "import petal, sys; print(flush=True); petal.dedup(sys.argv[1], out=sys.argv[2])"
    job = python(code, a, tmp_path / "fifo")
    assert job.stdout is not None
    job.stdout.readline()
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=60)
    assert b"KeyboardInterrupt" in err
    job = python(code, a, tmp_path / "fifo")
    assert (tmp_path / "fifo").read_bytes() == a.read_bytes()
    assert job.communicate(timeout=60)[1] == b""


def test_replaced_output_keeps_permissions_and_link(tmp_path: Path, a: Path):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o640)
    (tmp_path / "link").symlink_to("old")
    petal.dedup(a, out=tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "old").read_bytes() == a.read_bytes()
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o022)
    os.umask(mask)
    petal.dedup(a, out=tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def python(code: str, *args: object, **options) -> subprocess.Popen:
    code = textwrap.dedent(code)
    run = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("endless", ["zeros", "fifo"])
def test_ctrl_c_ends_a_job(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, endless: str
):
    # Endless input, or a pipe without a writer: a job that cannot be cancelled would never end.
    source = Path("/dev/zero")
    if endless == "fifo":
        source = tmp_path_factory.mktemp("fifo") / "fifo"
        os.mkfifo(source)
    job = python(
        """
        import sys, threading, petal
        options = {"temp_dir": sys.argv[3], "memory_limit": "8M", "delimiter": b"\\0"}
        progress = lambda phase, done, total: print(phase, flush=True)
        try:
            petal.dedup(sys.argv[1], out=sys.argv[2], progress=progress, **options)
        except KeyboardInterrupt:
            print("interrupted", threading.active_count())
            raise
        """,
        source,
        tmp_path / "out",
        tmp_path,
    )
    assert job.stdout is not None
    job.stdout.readline()
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=60)
    assert b"interrupted 1" in out and b"KeyboardInterrupt" in err
    assert os.listdir(tmp_path) == []


def test_memory_stays_under_the_limit(tmp_path: Path, large: Path):
    other = tmp_path / "other"
    with other.open("wb") as file:
        file.writelines(b"line number %012d\n" % n for n in range(350_000, 1_050_000))
    code = """
        import resource, sys, petal
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        before = peak()
        for operation in petal.common, petal.diff:
            assert sum(1 for _ in operation(sys.argv[1], sys.argv[2], memory_limit="16M")) == 350_000
        print(peak() - before)
    """
    job = python(code, large, other)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    # The limit and the overhead of the engine.
    assert int(out) <= (16 << 20) + (16 << 20), int(out) >> 20
