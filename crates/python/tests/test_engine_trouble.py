"""What goes wrong in the file engine: one clear line, the right exception, nothing half written."""

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
    """Some 20 MB: work for a moment, and in 8 MiB of memory with a file beside."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.writelines(b"line number %012d\n" % n for n in range(700_000))
    return path


def both_in_one(a: Path, file: io.BytesIO) -> None:
    petal.dedup(a, out=file, rest=file)


TROUBLE: list[tuple[Callable[[Path, Path], object], type[Exception], str]] = [
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
        "named for two outputs",
    ),
    (lambda a, d: both_in_one(a, io.BytesIO()), ValueError, "one file for two outputs"),
    (lambda a, d: petal.dedup(a, out=3), TypeError, "out=: expected a path or a file open for"),
    (lambda a, d: petal.dedup(a, out=io.StringIO()), TypeError, "out=: .* open it with 'wb'"),
    (lambda a, d: petal.dedup(a, out=""), ValueError, "out=: expected a path .* an empty one"),
    (lambda a, d: petal.dedup(a.open("rb")), TypeError, "give the path of the file"),
    (lambda a, d: petal.common(None, a), TypeError, "a path or several, found NoneType"),
    (lambda a, d: petal.common(a, [a]), TypeError, "expected a path, found list"),
    (lambda a, d: petal.check(3, a), TypeError, "expected a filter or its path, found int"),
    (lambda a, d: petal.dedup(a, delimiter="\n"), TypeError, "delimiter=: expected one byte"),
    (lambda a, d: petal.dedup(a, approx=True, rate="1"), TypeError, "rate=: expected a number"),
    (lambda a, d: petal.dedup(a, memory=True), ValueError, "memory=: .* found True"),
    (lambda a, d: petal.dedup(a, out=d / "x", count=True), ValueError, "count=True: lines are"),
    (lambda a, d: petal.dedup(a, memory="1M"), petal.MemoryCapError, "memory=: 1 MiB is too lit"),
    (lambda a, d: petal.dedup(a, memory="4"), ValueError, "memory=: '4' has no unit; write 4M"),
    (lambda a, d: petal.dedup(a, memory="4X"), ValueError, "memory=: '4X' is no size; write a num"),
    (lambda a, d: petal.dedup(a, memory="0%"), ValueError, "memory=: '0%' is no share of memory"),
    (lambda a, d: petal.dedup(a, memory=-1), ValueError, "memory=: expected a whole number from 0"),
    (lambda a, d: petal.dedup(a, memory=1e9), ValueError, "memory=: expected a whole number from"),
    (lambda a, d: petal.dedup(a, jobs=0), ValueError, "jobs=: expected a whole number from 1"),
    (lambda a, d: petal.dedup(a, delimiter=b""), ValueError, "delimiter=: expected one byte, fou"),
    (lambda a, d: petal.dedup(a, temp_dir=d / "no"), petal.InputError, "name another temp_dir="),
    (lambda a, d: petal.dedup(a, resume=True), ValueError, "say with work_dir="),
    (lambda a, d: petal.dedup(a, rate=0.1), ValueError, "add approx=True"),
    (lambda a, d: petal.dedup(a, approx=True, rate=2.0), ValueError, "rate"),
    (lambda a, d: petal.dedup(), TypeError, "expected at least one file"),
    (lambda a, d: petal.dedup([]), ValueError, "found an empty list"),
    (lambda a, d: petal.common(a), TypeError, "expected at least two files"),
    (lambda a, d: petal.build(a, d / "f", type="x"), ValueError, 'type=: no type "x"; one of blo'),
    (lambda a, d: petal.build(a, d / "f", width=3), ValueError, "width=: a bloom filter has no"),
    (lambda a, d: petal.build(a, d / "f", type="windowed"), ValueError, "window=604_800 or la"),
    (
        lambda a, d: petal.build(a, d / "f", type="windowed", window=9, last=9),
        ValueError,
        "last=: tells all of what is held; leave out window= and capacity=",
    ),
    (
        lambda a, d: petal.build(a, d / "f", type="quotient", max_capacity=9, capacity=10),
        ValueError,
        "max_capacity=: 9 keys is less than the 10",
    ),
    (lambda a, d: petal.build(a, d / "f", type="cascade"), ValueError, "not_in="),
    (lambda a, d: petal.build(a, d / "f", type="static", capacity=9), ValueError, "capacity=: a st"),
    (lambda a, d: petal.build(a, d / "f", type="static", memory="1G"), ValueError, "memory=: alone"),
    (lambda a, d: petal.build(a, d / "f", rate=1.5), ValueError, "1.5"),
    (lambda a, d: petal.build(a, d / "f", capacity=0), ValueError, "capacity=: expected a whole"),
    (
        lambda a, d: petal.build(a, d / "f", capacity=10**6, rate=0.01, memory="1M"),
        petal.MemoryCapError,
        "1,000,000 keys at 1 % take 1.2 MiB, more than 1 MiB, memory=; raise memory=, or leave out rate=",
    ),
    (lambda a, d: petal.check(a, a), petal.PetalError, "a: "),
    (lambda a, d: petal.check(d / "no", a), petal.InputError, "no: cannot read"),
    (lambda a, d: petal.check(petal.BloomFilter(9), d / "no"), petal.InputError, "no: cannot read"),
]


@pytest.mark.parametrize(("call", "kind", "words"), TROUBLE, ids=[case[2] for case in TROUBLE])
def test_trouble_is_one_clear_line(tmp_path: Path, a: Path, call, kind, words: str):
    with pytest.raises(kind, match=words) as raised:
        call(a, tmp_path)
    assert "\n" not in str(raised.value) and not isinstance(raised.value, SystemError)
    assert sorted(os.listdir(tmp_path)) == ["a"], "something half written is left"
    # Nothing of the program's command line in it.
    assert not any(word in f" {raised.value} " for word in [" -m", " -o ", " -T", "-p:"])


def test_a_filter_that_is_full_says_so(tmp_path: Path, large: Path):
    with pytest.raises(petal.FullError, match="larger capacity="):
        petal.build(large, tmp_path / "f", type="quotient", capacity=1000)
    assert not (tmp_path / "f").exists()


def test_a_line_that_is_too_long_says_where(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 5_000_000)
    with pytest.raises(petal.InputError, match='at byte 6 is longer than .*raise memory=.*delimi'):
        petal.dedup(tmp_path / "a", memory="8M")


def test_what_python_raises_ends_the_job(tmp_path: Path, large: Path):
    class Breaks:
        calls = 0

        def write(self, data: bytes) -> None:
            self.calls += 1
            raise ArithmeticError("no more")

    breaks = Breaks()
    with pytest.raises(ArithmeticError, match="no more"):
        petal.dedup(large, out=breaks)
    assert breaks.calls == 1

    def progress(phase: str, done: int, total: int | None) -> None:
        raise KeyError(phase)

    with pytest.raises(KeyError):
        petal.dedup(large, out=tmp_path / "out", progress=progress)
    assert sorted(os.listdir(tmp_path)) == ["large"]


def test_progress_tells_every_phase_from_none_to_all(large: Path):
    told: list[tuple[str, int, int | None]] = []
    petal.common(large, large, memory="8M", progress=lambda *words: told.append(words))
    phases = list(dict.fromkeys(what for what, _, _ in told))
    assert len(phases) >= 2
    for phase in phases:
        ends = [(done, total) for what, done, total in told if what == phase]
        assert ends[0][0] == 0
        # Phases that read all of an input; others skip what holds nothing to print.
        done, total = ends[-1]
        assert total is None or done <= total
    first = [(done, total) for what, done, total in told if what == phases[0]]
    assert first[-1] == (large.stat().st_size,) * 2


def test_a_file_that_takes_a_little_gets_all(large: Path):
    class Slow(io.RawIOBase):
        got = b""

        def write(self, data: bytes) -> int:
            self.got += data[:50_000]
            return min(len(data), 50_000)

    slow = Slow()
    petal.dedup(large, out=slow)
    assert slow.got == large.read_bytes()


def test_a_file_that_takes_nothing_is_refused(a: Path):
    class Full(io.RawIOBase):
        def write(self, data: bytes) -> None:
            return None

    with pytest.raises(petal.InputError, match="took none of 18 bytes"):
        petal.dedup(a, out=Full())


def test_a_file_says_what_it_took(a: Path):
    class Says:
        def __init__(self, says):
            self.got, self.says = b"", says

        def write(self, data: bytes):
            self.got += data
            return self.says

    for says in None, True, "well", 18, 99:
        file = Says(says)
        petal.dedup(a, out=file)
        assert file.got == a.read_bytes()
    # It may have lost the rest, or have packed it.
    with pytest.raises(petal.InputError, match="took 7 of 18 bytes; give a file that takes them"):
        petal.dedup(a, out=Says(7))


def test_a_file_gets_small_pieces(tmp_path: Path, a: Path):
    class Measures:
        longest = 0

        def write(self, data: bytes) -> None:
            self.longest = max(self.longest, len(data))

    file = Measures()
    petal.build(a, file, capacity=1_000_000)
    assert file.longest == 64 << 10


def test_work_is_kept_until_the_last_line_is_written(tmp_path: Path, a: Path):
    class Full:
        def write(self, data: bytes) -> None:
            time.sleep(0.2)
            raise OSError("no space left")

    work, rest = tmp_path / "work", tmp_path / "rest"
    with pytest.raises(OSError, match="no space left"):
        petal.dedup(a, out=Full(), rest=rest, work_dir=work)
    assert not rest.exists() and any(work.iterdir())
    petal.dedup(a, out=tmp_path / "out", work_dir=work, resume=True)
    assert (tmp_path / "out").read_bytes() == a.read_bytes() and not work.exists()


def test_no_descriptor_is_left_when_python_raises_at_the_end(a: Path):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    calls: list[object] = []
    petal.dedup(a, progress=lambda *words: calls.append(words))
    before = descriptors()
    for _ in range(5):
        left = len(calls)

        def last(*words: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyError

        with pytest.raises(KeyError):
            petal.dedup(a, progress=last)
    assert descriptors() == before


def test_a_filter_is_not_replaced_by_its_answer(tmp_path: Path, a: Path):
    petal.build(a, tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(ValueError, match="is the same file as the input"):
        petal.check(tmp_path / "f", a, out=tmp_path / "f")
    with pytest.raises(ValueError, match="is the same file as the input"):
        petal.check(tmp_path / "f", a, allow=a, out=a)
    assert (tmp_path / "f").read_bytes() == before


def test_a_mapped_filter_counts_as_memory(tmp_path: Path, a: Path):
    petal.BloomFilter(10, memory="17M").save(tmp_path / "f")
    with pytest.raises(petal.MemoryCapError, match="the filter takes 17 MiB, more than 16 MiB"):
        petal.check(tmp_path / "f", a, memory="16M")


def test_ctrl_c_ends_the_wait_for_a_reader(tmp_path: Path, a: Path):
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


def test_an_output_keeps_its_permissions_and_its_link(tmp_path: Path, a: Path):
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


def python(code: str, *words: object, **told) -> subprocess.Popen:
    code = textwrap.dedent(code)
    run = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **told)


@pytest.mark.parametrize("endless", ["zeros", "fifo"])
def test_ctrl_c_ends_the_job(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, endless: str
):
    # Lines without end, or a writer that never comes: without a way to be cancelled the job would
    # go on for ever.
    source = Path("/dev/zero")
    if endless == "fifo":
        source = tmp_path_factory.mktemp("fifo") / "fifo"
        os.mkfifo(source)
    job = python(
        """
        import sys, threading, petal
        told = {"temp_dir": sys.argv[3], "memory": "8M", "delimiter": b"\\0"}
        progress = lambda phase, done, total: print(phase, flush=True)
        try:
            petal.dedup(sys.argv[1], out=sys.argv[2], progress=progress, **told)
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


def test_memory_stays_under_the_cap(tmp_path: Path, large: Path):
    other = tmp_path / "other"
    with other.open("wb") as file:
        file.writelines(b"line number %012d\n" % n for n in range(350_000, 1_050_000))
    code = """
        import resource, sys, petal
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        before = peak()
        for verb in petal.common, petal.diff:
            assert sum(1 for _ in verb(sys.argv[1], sys.argv[2], memory="16M")) == 350_000
        print(peak() - before)
    """
    job = python(code, large, other)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    # The cap, and the engine's own slack.
    assert int(out) <= (16 << 20) + (16 << 20), int(out) >> 20
