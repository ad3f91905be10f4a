"""Set operations on files of lines, and filters filled from and asked with them.

A line is the bytes up to the delimiter, which is no part of it; every other byte is. Inputs are
files, packed with gzip or zstd or not, or pipes. Memory is a promise of the engine: what does not
fit `memory` goes to a nameless temporary file in `temp_dir`.

These functions only name what they hand over: the work is done by the extension module, without
the interpreter's lock, in as many threads as there are processors or `jobs` says. Ctrl-C ends it,
and leaves nothing half written.
"""

import io
import numbers
import operator
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from petal._petal import Filter, UnsupportedError, _build_job, _check_job, _set_job
from petal._petal import open as _open

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Path | Iterable[Path]
Progress = Callable[[str, int, int | None], object]


class Writes(Protocol):
    """What lines can be written to: a file open for bytes, or anything like it."""

    def write(self, data: bytes, /) -> object:
        """Takes bytes: any part of lines, some 64 KiB at a time."""


Out = Path | Writes


@dataclass(frozen=True)
class Phase:
    """One phase of a job."""

    what: str
    """What was done, in a word."""
    seconds: float
    """Wall time."""
    bytes: int
    """Bytes of input gone through."""
    lines: int | None
    """Lines gone through; 0 of phases that look at no lines, `None` of `build` and `check`."""


class _Lines:
    """The nameless file of an answer: closed when the last report that has it is gone. No other
    process has it.
    """

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor
        if descriptor is not None:
            weakref.finalize(self, os.close, descriptor)

    def read(self, size: int, at: int) -> bytes:
        if self.descriptor is None:
            raise UnsupportedError(
                "the lines of the report stayed in the process that made it; name a file with out="
            )
        return os.pread(self.descriptor, size, at)

    def __copy__(self) -> "_Lines":
        return self

    def __deepcopy__(self, memo: object) -> "_Lines":
        return self

    def __reduce__(self) -> tuple[type["_Lines"], tuple[None]]:
        return _Lines, (None,)


@dataclass(frozen=True)
class Report:
    """What a job did. `len(report)` is how many lines the answer has; where no `out` was named,
    `for line in report` gives them, as bytes without their delimiter, from a temporary file that
    is there as long as the report is. Any number of loops may do so at a time, each with some
    hundred KiB of memory. Copies share them; a pickled report has its numbers only.
    """

    strategy: str
    """How it was done."""
    kept: int
    """Lines of the answer; of `build`, lines that the filter had not seen."""
    first_lines: int
    """Lines of the first input, or of all that were taken as one."""
    seconds: float
    """Wall time."""
    passes: int = 1
    """Passes over an input, or over several taken as one."""
    bytes_read: int = 0
    """Bytes of input read, all passes together."""
    spilled: int = 0
    """Bytes written to the directory for temporary files, beside the answer."""
    candidates: int = 0
    """Lines that filters could not rule out, before they were decided exactly."""
    false_found: int | None = None
    """Of the candidates, the filter's false positives."""
    false_promised: float | None = None
    """How many of them the filter's arithmetic promised."""
    records: int = 0
    """Records that were decided by fingerprint."""
    wrong: float = 0.0
    """Of an approximate job, the best estimate of wrong lines; not a number if the filter was too
    full to tell. Zero of an exact one."""
    wrong_error: float = 0.0
    """The standard error of `wrong`."""
    repeats_possible: bool = False
    """Of an approximate job: lines were repeated because memory ran out."""
    resumed: int = 0
    """Phases that an earlier run of this job had finished."""
    phases: tuple[Phase, ...] = ()
    """The phases, in order."""
    _lines: _Lines | None = field(default=None, repr=False, compare=False)
    _delimiter: bytes = field(default=b"\n", repr=False, compare=False)

    def __len__(self) -> int:
        return self.kept

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[bytes]:
        if self._lines is None:
            raise UnsupportedError(
                "the report has no lines: they were counted, or went to out=; leave both out"
            )
        return self._read()

    def _read(self) -> Iterator[bytes]:
        assert self._lines is not None
        at, size, rest = 0, _PIECE, b""
        while piece := self._lines.read(size, at):
            at += len(piece)
            lines = (rest + piece).split(self._delimiter)
            rest = lines.pop()
            # Of a line longer than a piece, more at a time.
            size = _PIECE if lines else size * 2
            yield from lines

    def as_dict(self) -> dict[str, Any]:
        """The numbers by name, such as `json.dumps` takes."""
        numbers = asdict(self)
        return {name: value for name, value in numbers.items() if not name.startswith("_")}


_PIECE = 1 << 18


def common(
    a: Paths,
    *others: Path,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    rate: float | None = None,
    memory: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    progress: Progress | None = None,
) -> Report:
    """The distinct lines of `a` that occur in every other file, in the order of `a`.

    `a` is a path, or several that are taken as one file. The answer is exact, unless `approx`.

    - `out`: where the answer goes. A path, which gets a whole file or none; an object with
      `write(bytes)`; or nothing, then the report gives the lines.
    - `rest`: where the lines of `a` go that are not in the answer.
    - `count`: the lines are counted, and go nowhere.
    - `approx`: one pass over each file, filters alone decide; `capacity` is how many lines to plan
      for where that cannot be known, `rate` the false-positive rate [the best in the memory].
    - `memory`: cap on the memory that the job adds to the process, in bytes or like `"4G"`,
      `"512M"`, `"25%"` [half of what there is].
    - `jobs`: threads [all processors]. `temp_dir`: for temporary files [the system's].
    - `work_dir`, `resume`: keeps what finished phases have brought in that folder until the job
      is done, and goes on from there.
    - `delimiter`: the byte that ends a line.
    - `text`: files that look like compressed or binary files or like UTF-16 are read as lines,
      instead of raising `InputError`, and no warning is issued. A `UserWarning` otherwise tells of
      a byte order mark, and of CRLF line ends in some files and LF in others.
    - `progress(phase, done, total)`: called about ten times a second, and when a phase begins and
      ends, with bytes of input; `total` is `None` where it is not known. What it raises ends the
      job.

    Cost: two passes or three over the files, CPU of about a hash a line.

    Raises `InputError` if a file cannot be read or written, `MemoryCapError` if the memory is too
    little, `ValueError` of what makes no sense.
    """
    if not others:
        raise TypeError("common: expected at least two files, found one; dedup takes one")
    answer = _answer(out, rest, count, approx, capacity, rate)
    told = _told(memory, jobs, temp_dir, delimiter, text, progress, work_dir, resume)
    return _report(_set_job("common", _paths(a), _each(others), answer, told), delimiter)


def diff(
    a: Paths,
    *others: Paths,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    rate: float | None = None,
    memory: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    progress: Progress | None = None,
) -> Report:
    """The distinct lines of `a` that occur in no other file, in the order of `a`.

    All else is as in `common`.
    """
    if not others:
        raise TypeError("diff: expected at least two files, found one; dedup takes one")
    answer = _answer(out, rest, count, approx, capacity, rate)
    told = _told(memory, jobs, temp_dir, delimiter, text, progress, work_dir, resume)
    compared = [path for other in others for path in _paths(other)]
    return _report(_set_job("diff", _paths(a), compared, answer, told), delimiter)


def dedup(
    *inputs: Paths,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    rate: float | None = None,
    memory: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    progress: Progress | None = None,
) -> Report:
    """The distinct lines of all inputs taken as one, in the order of their first appearance.

    `rest` gets the later appearances. All else is as in `common`.
    """
    first = [path for paths in inputs for path in _paths(paths)]
    if not first:
        raise TypeError("dedup: expected at least one file, found none")
    answer = _answer(out, rest, count, approx, capacity, rate)
    told = _told(memory, jobs, temp_dir, delimiter, text, progress, work_dir, resume)
    return _report(_set_job("dedup", first, [], answer, told), delimiter)


def build(
    inputs: Paths,
    out: Out,
    *,
    type: str = "bloom",
    capacity: int | None = None,
    rate: float | None = None,
    memory: int | str | None = None,
    seed: int = 0,
    width: int | None = None,
    max_capacity: int | None = None,
    window: int | None = None,
    last: int | None = None,
    not_in: Paths | None = None,
    jobs: int | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Makes a filter file of all lines of the inputs: the same bytes as `petal build` makes.

    - `type`: `bloom`, `classic`, `counting`, `counting-classic`, `quotient`, `scalable`,
      `windowed`, `static`, `cascade` or `wide`.
    - `capacity`: lines to plan for [they are counted first]. `rate`: the false-positive rate to
      plan for [0.01; with `memory` alone the best that fits it].
    - `memory`: cap on the filter's size, in bytes or like `"512M"` [half of what there is].
    - `seed`: of the hash. `width`: bits of a counter, of counting types [4].
    - `max_capacity`: a quotient filter grows up to so many lines.
    - `window` (seconds) or `last` (lines): after which a windowed filter forgets.
    - `not_in`: lines about which a cascade is never wrong: it holds none of them.
    - `jobs`, `delimiter`, `text`, `progress`: as in `common`.

    Cost: a pass over the inputs, and one to count their lines without `capacity`; the memory of
    the filter, for static types and cascades up to 24 bytes a line more.

    Raises as `common`, `MemoryCapError` if the filter is larger than it may be, `FullError` if it
    takes no more lines.
    """
    asked = {
        "type": type,
        "capacity": _whole("capacity", capacity, 1),
        "rate": _number("rate", rate),
        "memory": _memory(memory),
        "seed": _whole("seed", seed, 0),
        "width": _whole("width", width, 2, 8),
        "max_capacity": _whole("max_capacity", max_capacity, 1),
        "window": _whole("window", window, 1),
        "last": _whole("last", last, 1),
        "now": int(time.time()),
    }
    told = _told(None, jobs, None, delimiter, text, progress)
    others = [] if not_in is None else _paths(not_in)
    return _report(_build_job(_paths(inputs), _out("out", out), others, asked, told), delimiter)


def check(
    filter: Filter | Path,
    inputs: Paths,
    *,
    out: Out | None = None,
    invert: bool = False,
    count: bool = False,
    allow: Paths | None = None,
    format: str | None = None,
    keys: str = "text",
    memory: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    progress: Progress | None = None,
) -> Report:
    """The lines of the inputs that a filter may hold, in their order, repeated ones too.

    - `filter`: a filter, which others may ask and change meanwhile, or the path of its file, which
      is asked where it lies.
    - `invert`: the lines that the filter certainly does not hold instead.
    - `allow`: files of lines that count as not held, whatever the filter says.
    - `format`, `keys`: of another program's filter file, as in `open`.
    - `out`, `count`, `memory`, `jobs`, `temp_dir`, `delimiter`, `text`, `progress`: as in `common`.

    Cost: one pass over the inputs. Raises as `common`.
    """
    listed = [] if allow is None else _paths(allow)
    question = {
        "out": _out("out", out),
        "invert": _flag("invert", invert),
        "count": _flag("count", count),
        "allow": listed,
        "asked": [] if isinstance(filter, Filter) else [_path(filter, expected="a filter or its path")],
    }
    if isinstance(filter, Filter):
        if format is not None or keys != "text":
            raise ValueError("format=, keys=: the filter knows them; say them where it is opened")
        asked = filter
    else:
        asked = _open(filter, format=format, keys=keys)
    told = _told(memory, jobs, temp_dir, delimiter, text, progress)
    return _report(_check_job(asked, _paths(inputs), question, told), delimiter)


def _paths(paths: Paths) -> list[str]:
    """One path, or several."""
    if isinstance(paths, (str, bytes, os.PathLike)) or hasattr(paths, "read"):
        return [_path(paths)]
    if not isinstance(paths, Iterable):
        raise TypeError(f"expected a path or several, found {_name(paths)}")
    listed = _each(paths)
    if not listed:
        raise ValueError("expected at least one path, found an empty list")
    return listed


def _each(paths: Iterable[Path]) -> list[str]:
    return [_path(path) for path in paths]


def _path(path: object, word: str = "", expected: str = "a path") -> str:
    """A path that means the same wherever the process goes meanwhile."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        more = "; give the path of the file" if hasattr(path, "read") else ""
        raise TypeError(f"{word}expected {expected}, found {_name(path)}{more}")
    name = os.fsdecode(path)
    if not name:
        raise ValueError(f"{word}expected {expected}, found an empty one")
    return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)


def _name(thing: object) -> str:
    return thing.__class__.__name__


def _out(name: str, out: Out | None) -> str | Writes | None:
    """Where lines go."""
    if out is None:
        return None
    if isinstance(out, io.TextIOBase):
        raise TypeError(f"{name}=: the file is open for text; open it with 'wb'")
    if not isinstance(out, (str, bytes, os.PathLike)) and hasattr(out, "write"):
        return out
    return _path(out, f"{name}=: ", "a path or a file open for writing bytes")


def _number(name: str, number: float | None) -> float | None:
    if number is None:
        return None
    if isinstance(number, numbers.Real) and not isinstance(number, bool):
        return float(number)
    raise TypeError(f"{name}=: expected a number, found {number!r}")


def _whole(name: str, number: int | None, least: int, most: int = 2**64 - 1) -> int | None:
    if number is None:
        return None
    if hasattr(number, "__index__") and not isinstance(number, bool):
        whole = operator.index(number)
        if least <= whole <= most:
            return whole
    raise ValueError(f"{name}=: expected a whole number from {least} to {most}, found {number!r}")


def _flag(name: str, flag: object) -> bool:
    if isinstance(flag, bool) or type(flag).__name__ in ("bool", "bool_"):
        return bool(flag)
    raise TypeError(f"{name}=: expected True or False, found {flag!r}")


def _memory(memory: int | str | None) -> int | str | None:
    return memory if isinstance(memory, str) else _whole("memory", memory, 0)


def _answer(
    out: Out | None,
    rest: Out | None,
    count: bool,
    approx: bool,
    capacity: int | None,
    rate: float | None,
) -> dict[str, object]:
    if not approx and (capacity is not None or rate is not None):
        raise ValueError("capacity=, rate=: an exact job has no filter to plan; add approx=True")
    if out is not None and out is rest and not isinstance(out, (str, bytes, os.PathLike)):
        raise ValueError("out=, rest=: one file for two outputs; give another for rest=")
    return {
        "out": _out("out", out),
        "rest": _out("rest", rest),
        "count": _flag("count", count),
        "approx": _flag("approx", approx),
        "capacity": _whole("capacity", capacity, 1),
        "rate": _number("rate", rate),
    }


def _told(
    memory: int | str | None,
    jobs: int | None,
    temp_dir: Path | None,
    delimiter: bytes,
    text: bool,
    progress: Progress | None,
    work_dir: Path | None = None,
    resume: bool = False,
) -> dict[str, object]:
    if resume and work_dir is None:
        raise ValueError("resume=True: say with work_dir= where the job has left its work")
    if not isinstance(delimiter, (bytes, bytearray)):
        raise TypeError(f"delimiter=: expected one byte, such as b'\\n', found {delimiter!r}")
    return {
        "memory": _memory(memory),
        "jobs": _whole("jobs", jobs, 1),
        "temp_dir": None if temp_dir is None else _path(temp_dir, "temp_dir=: "),
        "work_dir": None if work_dir is None else _path(work_dir, "work_dir=: "),
        "resume": _flag("resume", resume),
        "delimiter": bytes(delimiter),
        "text": bool(text),
        "progress": progress,
    }


def _report(done: tuple[dict[str, Any], int | None], delimiter: bytes) -> Report:
    fields, lines = done
    phases = tuple(Phase(*phase) for phase in fields.pop("phases", ()))
    owner = None if lines is None else _Lines(lines)
    return Report(**fields, phases=phases, _lines=owner, _delimiter=delimiter)
