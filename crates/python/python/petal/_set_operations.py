"""Set operations on files of lines, and filters of lines.

A line is the bytes up to the delimiter, which is not part of it. Inputs are files, plain or
compressed with gzip, zstd, xz, bzip2 or lz4, or pipes. Data that exceeds `memory_limit` goes to
an unnamed spill file in `temp_dir`.

These functions check their arguments and call the extension module, which releases the
interpreter's lock and uses `jobs` threads. Ctrl-C ends a job; no output file is left incomplete.
"""

import io
import numbers
import operator
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeVar

from petal._petal import (
    Filter,
    UnsupportedError,
    _build_job,
    _check_job,
    _set_operation_job,
    _transform_key,
)
from petal._petal import open as _open

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Path | Iterable[Path]
Progress = Callable[[str, int, int | None], object]
Key = TypeVar("Key", bytes, str)


class Writer(Protocol):
    """An object that lines are written to, such as a file opened in binary mode."""

    def write(self, data: bytes, /) -> object:
        """Writes bytes, which may begin or end within a line, at most 64 KiB at a time."""


Out = Path | Writer


@dataclass(frozen=True)
class Phase:
    """One phase of a job."""

    what: str
    """Name of the phase."""
    seconds: float
    """Wall time."""
    bytes: int
    """Bytes of input processed."""
    lines: int | None
    """Lines processed; 0 for phases without lines, `None` for `build` and `check`."""


class _Lines:
    """The unnamed file of a report's lines. Closed with the last report that uses it.

    It cannot be used in another process.
    """

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor
        if descriptor is not None:
            weakref.finalize(self, os.close, descriptor)

    def read(self, size: int, at: int) -> bytes:
        if self.descriptor is None:
            raise UnsupportedError(
                "the lines of a report are available only in the process that ran the job; write them "
                "to a file with out="
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
    """The figures of a job and, without `out`, its lines.

    `len(report)` is the number of lines in the result. Without `out`, `for line in report` yields
    them as bytes without their delimiter, from a temporary file that exists as long as the report.
    Several loops may run at the same time; each takes some hundred KiB of memory. Copies share the
    lines; a pickled report has the figures only.
    """

    strategy: str
    """The strategy that was chosen."""
    kept: int
    """Lines of the result; for `build`, lines that were new to the filter."""
    first_lines: int
    """Lines of the first input (several files may form one input)."""
    seconds: float
    """Wall time."""
    passes: int = 1
    """Passes over an input."""
    bytes_read: int = 0
    """Bytes of input read in all passes."""
    spilled: int = 0
    """Bytes written to spill files."""
    candidates: int = 0
    """Lines that filters could not exclude and that were compared exactly."""
    false_found: int | None = None
    """Candidates that were false positives of the filter."""
    false_promised: float | None = None
    """The expected number of false positives."""
    records: int = 0
    """Records that were compared by fingerprint."""
    wrong: float = 0.0
    """For an approximate job, the estimated number of wrong lines; NaN if the filter was too full
    for an estimate. Zero for an exact job."""
    wrong_error: float = 0.0
    """The standard error of `wrong`."""
    repeats_possible: bool = False
    """For an approximate job: lines may be repeated, because memory ran out."""
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
                "the report has no lines because of count= or out=; leave both out"
            )
        return self._read()

    def _read(self) -> Iterator[bytes]:
        assert self._lines is not None
        at, size, rest = 0, _READ_SIZE, b""
        while chunk := self._lines.read(size, at):
            at += len(chunk)
            lines = (rest + chunk).split(self._delimiter)
            rest = lines.pop()
            # Larger reads for a line that is longer than the last read.
            size = _READ_SIZE if lines else size * 2
            yield from lines

    def as_dict(self) -> dict[str, Any]:
        """Returns the figures by name, in types that `json.dumps` accepts."""
        fields = asdict(self)
        return {name: value for name, value in fields.items() if not name.startswith("_")}


_READ_SIZE = 1 << 18


def common(
    a: Paths,
    *others: Path,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines of `a` that are in every other file, in the order of `a`.

    The result is exact unless `approx` is set.

        >>> petal.common("a.txt", "b.txt", out="both.txt").kept               # doctest: +SKIP
        2

    - `a`: a path, or several that are read as one file. `others`: one path per file.
    - `out`: destination of the result: a path, which is replaced when the job is complete; or an
      object with `write(bytes)` [the report has the lines].
    - `rest`: destination of the lines of `a` that are not in the result.
    - `count`: only count the lines.
    - `approx`: read each file once and decide with filters only. Then `capacity` is the number of
      lines to plan for if it cannot be estimated, and `fpr` the false-positive rate [the lowest
      that fits in memory].
    - `memory_limit`: memory of the job, in bytes or like `"4G"`, `"512M"`, `"25%"` [half of the
      available memory].
    - `jobs`: threads [all processors].
    - `temp_dir`: folder for spill files [the system's].
    - `work_dir`: folder that keeps finished phases until the job is complete. `resume`: continue a
      job from there.
    - `delimiter`: the byte that ends a line.
    - `text`: read files as lines that look like compressed, binary or UTF-16 files, instead of
      raising `InputError`, and issue no `UserWarning` about byte order marks or mixed line ends.
    - `key_transform`: names of changes to the lines before they are compared, in order, such as
      `["trim", "url-surt"]`; those of `petal common --key-transform`. The result has the lines as
      they are.
    - `progress(phase, done, total)`: called some ten times a second and at the start and end of
      each phase, with bytes of input; `total` is `None` if unknown. Its exceptions end the job.

    Cost: two or three passes over the files, and about one hash per line.

    Raises `InputError` if a file cannot be read or written, `MemoryLimitError` if `memory_limit` is
    too small, `ValueError` or `TypeError` if an argument is invalid.
    """
    if not others:
        raise TypeError("common: expected at least two files, found one; dedup takes one")
    outputs = _outputs(out, rest, count, approx, capacity, fpr)
    options = _options(
        memory_limit, jobs, temp_dir, delimiter, text, key_transform, progress, work_dir, resume
    )
    result = _set_operation_job("common", _paths(a), _path_list(others), outputs, options)
    return _report(result, delimiter)


def diff(
    a: Paths,
    *others: Paths,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines of `a` that are in no other file, in the order of `a`.

    Arguments, cost and errors are those of `common`; each of `others` may be several paths.
    """
    if not others:
        raise TypeError("diff: expected at least two files, found one; dedup takes one")
    outputs = _outputs(out, rest, count, approx, capacity, fpr)
    options = _options(
        memory_limit, jobs, temp_dir, delimiter, text, key_transform, progress, work_dir, resume
    )
    compared = [path for other in others for path in _paths(other)]
    return _report(_set_operation_job("diff", _paths(a), compared, outputs, options), delimiter)


def dedup(
    *inputs: Paths,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines of all inputs, in the order of their first occurrence.

    `rest` gets the repeated lines. Other arguments, cost and errors are those of `common`.
    """
    first = [path for paths in inputs for path in _paths(paths)]
    if not first:
        raise TypeError("dedup: expected at least one file, found none")
    outputs = _outputs(out, rest, count, approx, capacity, fpr)
    options = _options(
        memory_limit, jobs, temp_dir, delimiter, text, key_transform, progress, work_dir, resume
    )
    return _report(_set_operation_job("dedup", first, [], outputs, options), delimiter)


def build(
    inputs: Paths,
    out: Out,
    *,
    type: str = "bloom",
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    bits: int | None = None,
    probes: int | None = None,
    seed: int = 0,
    width: int | None = None,
    max_capacity: int | None = None,
    window: int | None = None,
    last: int | None = None,
    not_in: Paths | None = None,
    jobs: int | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Builds a filter file of all lines of the inputs, the same bytes as `petal build`.

    - `type`: `bloom`, `classic`, `counting`, `counting-classic`, `quotient`, `scalable`,
      `windowed`, `static`, `cascade` or `wide`.
    - `capacity`: number of lines to plan for [they are counted first].
    - `fpr`: target false-positive rate [0.01; with only `memory_limit` the lowest that fits].
    - `memory_limit`: maximum size, in bytes or like `"512M"` [half of the available memory].
    - `bits`, `probes`: bits of the filter, and bits that each line sets, for `bloom`, `classic` and
      counting types [as `capacity` and `fpr` need]. With both and without `capacity` and `fpr`,
      the filter has no plan: its `capacity` and `target_fpr` are 0.
    - `seed`: seed of the hash [0].
    - `width`: bits of a counter, for counting types [4].
    - `max_capacity`: the capacity up to which a quotient filter grows.
    - `window`: seconds after which a windowed filter drops lines; or `last`: number of lines after
      which it does.
    - `not_in`: lines that a cascade must report as absent.
    - `key_transform`: as in `common`; the filter's file records the names, and `check` uses them.
    - `jobs`, `delimiter`, `text`, `progress`: as in `common`.

    Cost: one pass over the inputs, and another to count lines if `capacity` is not given. Memory:
    the filter, and up to 24 bytes per line for static filters and cascades.

    Raises the errors of `common`, `MemoryLimitError` if the filter exceeds `memory_limit`,
    `FullError` if it accepts no more lines.
    """
    filter_spec = {
        "type": type,
        "capacity": _integer("capacity", capacity, 1),
        "fpr": _number("fpr", fpr),
        "memory_limit": _memory(memory_limit),
        "seed": _integer("seed", seed, 0),
        "bits": _integer("bits", bits, 1),
        "probes": _integer("probes", probes, 1, 64),
        "width": _integer("width", width, 2, 8),
        "max_capacity": _integer("max_capacity", max_capacity, 1),
        "window": _integer("window", window, 1),
        "last": _integer("last", last, 1),
        "now": int(time.time()),
    }
    options = _options(None, jobs, None, delimiter, text, key_transform, progress)
    others = [] if not_in is None else _paths(not_in)
    result = _build_job(_paths(inputs), _out("out", out), others, filter_spec, options)
    return _report(result, delimiter)


def check(
    filter: Filter | Path,
    inputs: Paths,
    *,
    out: Out | None = None,
    invert: bool = False,
    count: bool = False,
    allow: Paths | None = None,
    format: str | None = None,
    key_type: str = "text",
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the lines of the inputs that a filter contains, in order, with repeats.

    - `filter`: a filter, which other threads may use and change at the same time; or the path of a
      filter file, which is mapped.
    - `invert`: return the lines that the filter does not contain.
    - `allow`: files of lines that are treated as absent.
    - `format`, `key_type`: of another program's filter file, as in `open`.
    - `key_transform`: as in `common` [those that the filter records; others raise
      `IncompatibleError`].
    - `out`, `count`, `memory_limit`, `jobs`, `temp_dir`, `delimiter`, `text`, `progress`: as in
      `common`.

    Cost: one pass over the inputs. Raises the errors of `common`.
    """
    filter_paths = []
    if not isinstance(filter, Filter):
        filter_paths = [_path(filter, expected="a filter or its path")]
    check_options = {
        "out": _out("out", out),
        "invert": _flag("invert", invert),
        "count": _flag("count", count),
        "allow": [] if allow is None else _paths(allow),
        "filter_paths": filter_paths,
    }
    if isinstance(filter, Filter):
        if format is not None or key_type != "text":
            raise ValueError("format=, key_type=: pass them to open(), not with a filter object")
        opened = filter
    else:
        opened = _open(filter, format=format, key_type=key_type)
    options = _options(memory_limit, jobs, temp_dir, delimiter, text, key_transform, progress)
    return _report(_check_job(opened, _paths(inputs), check_options, options), delimiter)


def transform_key(key: Key, key_transform: Iterable[str]) -> Key:
    """Returns a key after changes, the same bytes as in jobs with `key_transform`.

    Methods of filters take keys as they are. For a filter that records changes, pass its keys
    through this function.

        >>> petal.transform_key("http://www.Example.com/?b=1&a=2", ["url-surt"])
        'com,example)/?a=2&b=1'

    Raises `ValueError` if a name is unknown.
    """
    names = _transforms(key_transform)
    if isinstance(key, str):
        return _transform_key(key.encode(), names).decode()
    if isinstance(key, bytes):
        return _transform_key(key, names)
    raise TypeError(f"transform_key: expected bytes or text, found {key!r}")


def _paths(paths: Paths) -> list[str]:
    """Reads one path or several."""
    if isinstance(paths, (str, bytes, os.PathLike)) or hasattr(paths, "read"):
        return [_path(paths)]
    if not isinstance(paths, Iterable):
        raise TypeError(f"expected a path or several, found {_name(paths)}")
    names = _path_list(paths)
    if not names:
        raise ValueError("expected at least one path, found an empty list")
    return names


def _path_list(paths: Iterable[Path]) -> list[str]:
    return [_path(path) for path in paths]


def _path(path: object, prefix: str = "", expected: str = "a path") -> str:
    """Returns an absolute path, which stays valid if the process changes its directory."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        hint = "; pass the path of the file" if hasattr(path, "read") else ""
        raise TypeError(f"{prefix}expected {expected}, found {_name(path)}{hint}")
    name = os.fsdecode(path)
    if not name:
        raise ValueError(f"{prefix}expected {expected}, found an empty one")
    return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)


def _name(value: object) -> str:
    return value.__class__.__name__


def _out(name: str, out: Out | None) -> str | Writer | None:
    """Reads the destination of lines."""
    if out is None:
        return None
    if isinstance(out, io.TextIOBase):
        raise TypeError(f"{name}=: the file is opened in text mode; open it with 'wb'")
    if not isinstance(out, (str, bytes, os.PathLike)) and hasattr(out, "write"):
        return out
    return _path(out, f"{name}=: ", "a path or a file open for writing bytes")


def _number(name: str, number: float | None) -> float | None:
    if number is None:
        return None
    if isinstance(number, numbers.Real) and not isinstance(number, bool):
        return float(number)
    raise TypeError(f"{name}=: expected a number, found {number!r}")


def _integer(
    name: str, number: int | None, minimum: int, maximum: int = 2**64 - 1
) -> int | None:
    if number is None:
        return None
    if hasattr(number, "__index__") and not isinstance(number, bool):
        value = operator.index(number)
        if minimum <= value <= maximum:
            return value
    raise ValueError(f"{name}=: expected an integer from {minimum} to {maximum}, found {number!r}")


def _flag(name: str, flag: object) -> bool:
    if isinstance(flag, bool) or type(flag).__name__ in ("bool", "bool_"):
        return bool(flag)
    raise TypeError(f"{name}=: expected True or False, found {flag!r}")


def _memory(memory_limit: int | str | None) -> int | str | None:
    if isinstance(memory_limit, str):
        return memory_limit
    return _integer("memory_limit", memory_limit, 0)


def _outputs(
    out: Out | None,
    rest: Out | None,
    count: bool,
    approx: bool,
    capacity: int | None,
    fpr: float | None,
) -> dict[str, object]:
    if not approx and (capacity is not None or fpr is not None):
        raise ValueError("capacity=, fpr=: only for approximate jobs; add approx=True")
    if out is not None and out is rest and not isinstance(out, (str, bytes, os.PathLike)):
        raise ValueError("out=, rest=: the same file for two outputs; use another one for rest=")
    return {
        "out": _out("out", out),
        "rest": _out("rest", rest),
        "count": _flag("count", count),
        "approx": _flag("approx", approx),
        "capacity": _integer("capacity", capacity, 1),
        "fpr": _number("fpr", fpr),
    }


def _options(
    memory_limit: int | str | None,
    jobs: int | None,
    temp_dir: Path | None,
    delimiter: bytes,
    text: bool,
    key_transform: Iterable[str] | None,
    progress: Progress | None,
    work_dir: Path | None = None,
    resume: bool = False,
) -> dict[str, object]:
    if resume and work_dir is None:
        raise ValueError("resume=True: set work_dir= to the folder of the job to resume")
    if not isinstance(delimiter, (bytes, bytearray)):
        raise TypeError(f"delimiter=: expected one byte, such as b'\\n', found {delimiter!r}")
    return {
        "memory_limit": _memory(memory_limit),
        "jobs": _integer("jobs", jobs, 1),
        "temp_dir": None if temp_dir is None else _path(temp_dir, "temp_dir=: "),
        "work_dir": None if work_dir is None else _path(work_dir, "work_dir=: "),
        "resume": _flag("resume", resume),
        "delimiter": bytes(delimiter),
        "text": bool(text),
        "key_transform": _transforms(key_transform),
        "progress": progress,
    }


def _transforms(names: Iterable[str] | None) -> str:
    """Reads the names of transforms; the extension module checks them."""
    if names is None:
        return ""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"key_transform=: expected a list of names, found {names!r}")
    listed = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"key_transform=: expected a list of names, found {name!r} in it")
        if not name or "," in name:
            raise ValueError(f"key_transform=: expected one name, found {name!r}")
    return ",".join(listed)


def _report(result: tuple[dict[str, Any], int | None], delimiter: bytes) -> Report:
    fields, descriptor = result
    phases = tuple(Phase(*phase) for phase in fields.pop("phases", ()))
    lines = None if descriptor is None else _Lines(descriptor)
    return Report(**fields, phases=phases, _lines=lines, _delimiter=delimiter)
