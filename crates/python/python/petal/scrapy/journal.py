"""What a JOBDIR keeps of the filter: a snapshot, and a log of what came after it.

| file in `JOBDIR/petal.dupefilter` | what it is |
|---|---|
| `made.json` | what the filter was made for, also if it is on a server; `made.part` before |
| `filter-N.petal` | the filter as it was when log N began |
| `log-N` | what was let through since: records as of Scrapy's `requests.seen` |

A record is its length in two bytes, big-endian, and its bytes. It is handed to the system before
`write` is back, so that a process that is killed loses none. A record that is cut at the end of a
file, as by a power cut, ends the reading: what it told of is asked once more, which costs a page
that is fetched twice, never one that is lost.

Invariants: the newest snapshot and all logs from its number on are the whole set. A snapshot has
its name only when it is whole, its log begins behind it, and what is older is removed only then, so
that a kill at any point leaves such a set, and a disk that is full the old one. No run goes on with
the log of another: it begins its own, behind a snapshot.

Cost: one `write` of 22 bytes for each record. A snapshot is due when the log is as large as the
filter (at least 16 MiB), so that all snapshots together write about as much as the log.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import petal

LEAST_LOG = 16 << 20

_HEX = frozenset(b"0123456789abcdefABCDEF")
_NAME = re.compile(r"(?:filter-(\d+)\.petal|log-(\d+))")


def records(path: Path) -> Iterator[bytes]:
    """The records of a log, or of Scrapy's `requests.seen`: binary, lines of hexadecimal digits as
    older versions wrote, or one after the other. Cut ones at the end are passed over.

    Raises `petal.FormatError` where there is neither, `OSError` if it cannot be read.
    """
    with path.open("rb") as file:
        while len(head := file.read(2)) == 2:
            # No fingerprint is as long as a length that begins with a digit would say.
            if head[0] in _HEX:
                line = head + file.readline(512)
                try:
                    yield bytes.fromhex(line.decode())
                except ValueError:
                    if not line.endswith(b"\n") and len(line) < 512:
                        return
                    raise _strange(path, file.tell() - len(line)) from None
                continue
            size = int.from_bytes(head, "big")
            record = file.read(size)
            # A power cut may leave zeros.
            if len(record) < size or size == 0:
                return
            yield record


def _strange(path: Path, place: int) -> petal.FormatError:
    return petal.FormatError(
        f"{path}: at byte {place}: expected a fingerprint, in hexadecimal digits or behind its"
        " length, found neither; remove the file to go on without it"
    )


def sync(path: Path) -> None:
    """Waits until a file, or what a folder lists, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class JobDir:
    """A JOBDIR (`path`) and petal's part of it (`folder`), locked for one process."""

    def __init__(self, path: Path) -> None:
        """Raises `petal.InputError` if another process works there, `OSError` as files do."""
        self.path = path
        self.folder = path / "petal.dupefilter"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise petal.InputError(
                f"JOBDIR {path}: another process uses it; end that crawl, or take another JOBDIR"
            ) from None

    def close(self) -> None:
        """Lets go of it."""
        self._lock.close()


class Journal:
    """The files of a filter in a folder that is locked.

    `made` is what the filter there was made for, `None` if there is none.
    """

    def __init__(self, folder: Path) -> None:
        """Raises `petal.FormatError` if the folder is damaged, `OSError` as files do."""
        self._folder = folder
        # What a snapshot left that was killed halfway.
        for path in folder.glob(".petal-*.tmp"):
            path.unlink()
        self._log: int | None = None
        self._size = 0
        self.made: dict[str, Any] | None = self._read_made()

    def _read_made(self) -> dict[str, Any] | None:
        path = self._folder / "made.json"
        try:
            made = json.loads(path.read_bytes())
        except FileNotFoundError:
            files = self._files()
            told = [file for file in files if file.suffix or file.stat().st_size > 0]
            if told and not path.with_suffix(".part").exists():
                raise petal.FormatError(
                    f"{path}: missing, though {told[0].name} is there; restore it, or remove"
                    f" {self._folder} to begin anew"
                ) from None
            # What a first run left that did not come so far.
            for file in files:
                file.unlink()
            return None
        except ValueError:
            made = None
        if not isinstance(made, dict):
            raise petal.FormatError(
                f"{path}: damaged; restore it, or remove {self._folder} to begin anew"
            )
        return made

    def begin(self, made: dict[str, Any], save: Callable[[Path], object]) -> None:
        """Tells what the filter was made for, once the first snapshot is there."""
        path = self._folder / "made.json"
        part = path.with_suffix(".part")
        with part.open("w") as file:
            json.dump(made, file)
            file.flush()
            os.fsync(file.fileno())
        self.rotate(save)
        part.rename(path)
        sync(self._folder)
        self.made = made

    def _files(self) -> dict[Path, int]:
        """Snapshots and logs, with their numbers."""
        names = ((path, _NAME.fullmatch(path.name)) for path in self._folder.iterdir())
        return {path: int(name[1] or name[2]) for path, name in names if name}

    def snapshot(self) -> Path:
        """The newest snapshot.

        Raises `petal.FormatError` if there is none.
        """
        found = {number: path for path, number in self._files().items() if path.suffix}
        if not found:
            raise petal.FormatError(
                f"{self._folder}: no filter-*.petal is left; restore it, or remove the folder to"
                " begin anew"
            )
        return found[max(found)]

    def records(self) -> Iterator[bytes]:
        """What came after the newest snapshot, in order."""
        files = self._files()
        since = files[self.snapshot()]
        logs = sorted((number, path) for path, number in files.items() if not path.suffix)
        for number, path in logs:
            if number >= since:
                yield from records(path)

    def rotate(self, save: Callable[[Path], object]) -> None:
        """Lets the filter be saved, begins a log, and removes what is older.

        Raises `OSError`: if the filter was not saved the old log goes on.
        """
        old = self._files()
        number = max(old.values(), default=0) + 1
        save(self._folder / f"filter-{number}.petal")
        self.give_up()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._log = os.open(self._folder / f"log-{number}", flags, 0o644)
        self._size = 0
        sync(self._folder)
        for path in old:
            path.unlink()

    def write(self, record: bytes) -> None:
        """Appends a record.

        Raises `OSError` if that fails; then nothing more can be written before `rotate`.
        """
        if self._log is None:
            return
        line = len(record).to_bytes(2, "big") + record
        if os.write(self._log, line) != len(line):
            self.give_up()
            raise OSError("the disk is full")
        self._size += len(line)

    def give_up(self) -> None:
        """Writes no more to this log: what follows a cut record would not be read."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def is_due(self, filter_bytes: int) -> bool:
        """Whether a snapshot is due of a filter of so many bytes, or as no log is open."""
        return self._log is None or self._size > max(LEAST_LOG, filter_bytes)

    def sync(self) -> None:
        """Waits until the log is on the disk."""
        if self._log is not None:
            os.fsync(self._log)

    def close(self) -> None:
        """Lets go of the log."""
        self.give_up()
