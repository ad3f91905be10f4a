"""The results of jobs: their figures and, without `out`, their lines."""

import codecs
import os
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from petal._arguments import DEFAULT_DELIMITER, ReadOptions
from petal._petal import UnsupportedError, _csv_records

_READ_SIZE = 1 << 18


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


#: The separator, the quote and the escape of CSV records.
_Dialect = tuple[int, int | None, int | None]


class _Lines:
    """The unnamed file of a report's lines. Closed with the last report that uses it.

    It cannot be used in another process.
    """

    def __init__(
        self,
        descriptor: int | None,
        delimiter: bytes = b"\n",
        dialect: _Dialect | None = None,
        has_header: bool = False,
        counted: bool = False,
    ) -> None:
        self.descriptor = descriptor
        self.delimiter = delimiter
        #: How CSV records are written, which may have line ends in quotes or after an escape.
        self.dialect = dialect
        #: Whether the first record is a header.
        self.has_header = has_header
        #: Whether the first field of each record is its number of appearances.
        self.counted = counted
        if descriptor is not None:
            weakref.finalize(self, os.close, descriptor)

    def header(self) -> bytes | None:
        """Returns the header of CSV records."""
        header = next(self._all(), None) if self.has_header else None
        if header is None or not self.counted:
            return header
        name, _, columns = header.partition(self._count_end())
        # A byte order mark stays.
        return name.removesuffix(b"count") + columns

    def records(self) -> Iterator[bytes]:
        """Yields the lines, or the records without the header."""
        records = self._all()
        if self.has_header:
            next(records, None)
        return records

    def counts(self) -> Iterator[tuple[bytes, int]]:
        """Yields the records and their numbers of appearances."""
        for record in self.records():
            count, _, line = record.partition(self._count_end())
            yield line, int(count)

    def _count_end(self) -> bytes:
        """Returns the byte after a number of appearances."""
        return b"\t" if self.dialect is None else bytes([self.dialect[0]])

    def _all(self) -> Iterator[bytes]:
        at, size, rest = 0, _READ_SIZE, b""
        quote, escape = (None, None) if self.dialect is None else self.dialect[1:]
        special = [bytes([byte]) for byte in (quote, escape) if byte is not None]
        while chunk := self._read(size, at):
            at += len(chunk)
            if at == len(chunk) and self.dialect is not None and not self.has_header:
                # Before a record, unlike before a header, a byte order mark would be data.
                chunk = chunk.removeprefix(codecs.BOM_UTF8)
            text = rest + chunk
            if self.dialect is None or not any(byte in text for byte in special):
                records = text.split(self.delimiter)
                rest = records.pop()
            else:
                records, end = _csv_records(text, self.dialect)
                rest = text[end:]
            # Larger reads for a line that is longer than the last read.
            size = _READ_SIZE if records else size * 2
            yield from records

    def _read(self, size: int, at: int) -> bytes:
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


class _Results:
    """What reports of lines and of counts share."""

    kept: int
    _lines: _Lines | None

    def __len__(self) -> int:
        return self.kept

    def __bool__(self) -> bool:
        return True

    @property
    def header(self) -> bytes | None:
        """The header of CSV records, which is none of the records; `None` if they have none.

        Raises `UnsupportedError` if the report has no records.
        """
        return self._file().header()

    def _file(self) -> _Lines:
        if self._lines is None:
            raise UnsupportedError(
                "the report has no lines because of count= or out=; leave both out"
            )
        return self._lines

    def as_dict(self) -> dict[str, Any]:
        """Returns the figures by name, in types that `json.dumps` accepts."""
        fields = asdict(self)  # type: ignore[call-overload]
        return {name: value for name, value in fields.items() if not name.startswith("_")}


@dataclass(frozen=True)
class Report(_Results):
    """The figures of a job and, without `out`, its lines.

    `len(report)` is the number of lines in the result. Without `out`, `for line in report` yields
    them as bytes without their delimiter, from a temporary file that exists as long as the report.
    Of CSV, they are the records without the header, which `header` has. Several loops may run at
    the same time; each takes some hundred KiB of memory. Copies share the lines; a pickled report
    has the figures only.
    """

    strategy: str
    """The strategy that was chosen."""
    kept: int
    """Lines of the result; for `build`, lines that were new to the filter."""
    first_lines: int
    """Lines of the first input (several files may form one input); of `symdiff` and `dedup`, of all
    inputs."""
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

    def __iter__(self) -> Iterator[bytes]:
        return self._file().records()


@dataclass(frozen=True)
class CountReport(_Results):
    """The figures of `petal.count` and, without `out`, the distinct lines with their counts.

    `len(report)` is the number of distinct lines in the result. Without `out`,
    `for line, count in report` yields lines as bytes without their delimiter and their numbers of
    appearances, from a temporary file, as in `Report`.
    """

    kept: int
    """Distinct lines of the result."""
    first_lines: int
    """Lines of the inputs."""
    seconds: float
    """Wall time."""
    phases: tuple[Phase, ...] = ()
    """The phases, in order."""
    _lines: _Lines | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return self._file().counts()


# Pickles name the classes by their public names, whatever file they are in.
for _class in Phase, Report, CountReport:
    _class.__module__ = "petal"


def read_result(
    result: tuple[dict[str, Any], int | None], options: ReadOptions, counted: bool = False
) -> dict[str, Any]:
    """Returns the arguments of a report from the result of a job."""
    fields, descriptor = result
    phases = tuple(Phase(*phase) for phase in fields.pop("phases", ()))
    dialect, has_header = fields.pop("csv", None) or (None, False)
    lines = None
    if descriptor is not None:
        delimiter = options.get("delimiter", DEFAULT_DELIMITER)
        lines = _Lines(descriptor, delimiter, dialect, has_header, counted)
    return {**fields, "phases": phases, "_lines": lines}
