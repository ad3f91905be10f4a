"""The filter's files in a JOBDIR: a snapshot, and a log of the requests after it.

| file in `JOBDIR/petal.dupefilter` | contents |
|---|---|
| `made.json` | the settings that the filter was made with, also if it is on a server |
| `made.part` | the same, before the first snapshot is complete |
| `filter-N.petal` | the filter at the time when log N began |
| `log-N` | the new requests since then, in the record format of Scrapy's `requests.seen` |

A record is its length in two bytes, big-endian, followed by its bytes. `write` hands it to the
operating system before it returns, so a killed process loses no record. Reading stops at a record
that is cut off at the end of a file, as after a power cut: its request is fetched a second time,
and never lost.

Invariants: the newest snapshot and all logs from its number on are the complete set. A snapshot is
renamed into place when it is complete, then its log is created, and only then older files are
removed. So a kill at any point leaves a complete set, and a full disk leaves the old one. A run
never appends to the log of another run: it starts with a snapshot and a log of its own.

Cost: one `write` of 22 bytes per record. A snapshot is due when the log is as large as the filter
(at least 16 MiB), so snapshots write about as many bytes as the log.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import petal

# Bytes of the log below which no snapshot is due.
MIN_LOG_SIZE = 16 << 20

_HEX = frozenset(b"0123456789abcdefABCDEF")
_NAME = re.compile(r"(?:filter-(\d+)\.petal|log-(\d+))")


def read_records(path: Path) -> Iterator[bytes]:
    """Yields the records of a log, or of Scrapy's `requests.seen`.

    The records of `requests.seen` are binary, or lines of hexadecimal digits as older versions of
    Scrapy write them, or first the one and then the other. A record that is cut off is skipped.

    Raises `petal.FormatError` at bytes in neither format, `OSError` if the file cannot be read.
    """
    with path.open("rb") as file:
        while len(head := file.read(2)) == 2:
            # A length that begins with a hexadecimal digit is larger than any fingerprint.
            if head[0] in _HEX:
                line = head + file.readline(512)
                try:
                    yield bytes.fromhex(line.decode())
                except ValueError:
                    if not line.endswith(b"\n") and len(line) < 512:
                        return
                    raise _format_error(path, file.tell() - len(line)) from None
                continue
            size = int.from_bytes(head, "big")
            record = file.read(size)
            # A power cut may leave zeros.
            if len(record) < size or size == 0:
                return
            yield record


def _format_error(path: Path, offset: int) -> petal.FormatError:
    return petal.FormatError(
        f"{path}: at byte {offset}: expected a fingerprint, in hexadecimal digits or after its"
        " length, found neither; remove the file to continue without it"
    )


def sync(path: Path) -> None:
    """Waits until a file, or the list of files of a folder, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def lock(folder: Path, name: str, setting: str) -> IO[str]:
    """Locks a folder for one process and returns the open file `lock` in it.

    Raises `petal.InputError` with these names if another process has locked it, and `OSError`.
    """
    file = (folder / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise petal.InputError(
            f"{name}: another process uses it; stop that crawl, or use another {setting}"
        ) from None
    return file


class JobDir:
    """A JOBDIR (`path`) and petal's folder in it (`folder`), locked for one process."""

    def __init__(self, path: Path) -> None:
        """Raises `petal.InputError` if another process uses the JOBDIR, and `OSError`."""
        self.path = path
        self.folder = path / "petal.dupefilter"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock(self.folder, f"JOBDIR {path}", "JOBDIR")

    def close(self) -> None:
        """Unlocks the JOBDIR."""
        self._lock.close()


class SnapshotLog:
    """The files of a filter in a locked folder.

    `saved_settings` are those of the filter that is there, `None` if there is none.
    """

    def __init__(self, folder: Path) -> None:
        """Raises `petal.FormatError` if the folder is damaged, and `OSError`."""
        self._folder = folder
        # Temporary files of snapshots that were interrupted by a kill.
        for path in folder.glob(".petal-*.tmp"):
            path.unlink()
        self._log: int | None = None
        self._size = 0
        self.saved_settings: dict[str, Any] | None = self._read_settings()

    def _read_settings(self) -> dict[str, Any] | None:
        path = self._folder / "made.json"
        try:
            settings = json.loads(path.read_bytes())
        except FileNotFoundError:
            files = self._files()
            used = [file for file in files if file.suffix or file.stat().st_size > 0]
            if used and not path.with_suffix(".part").exists():
                raise petal.FormatError(
                    f"{path}: missing, but {used[0].name} is there; restore it, or remove"
                    f" {self._folder} to start over"
                ) from None
            # The first run was killed before its first snapshot was complete.
            for file in files:
                file.unlink()
            return None
        except ValueError:
            settings = None
        if not isinstance(settings, dict):
            raise petal.FormatError(
                f"{path}: damaged; restore it, or remove {self._folder} to start over"
            )
        return settings

    def create(self, settings: dict[str, Any], save: Callable[[Path], object]) -> None:
        """Writes the first snapshot, and then the settings."""
        path = self._folder / "made.json"
        part = path.with_suffix(".part")
        with part.open("w") as file:
            json.dump(settings, file)
            file.flush()
            os.fsync(file.fileno())
        self.rotate(save)
        part.rename(path)
        sync(self._folder)
        self.saved_settings = settings

    def reset(self) -> None:
        """Removes the filter, its logs and its table of fingerprints."""
        path = self._folder / "made.json"
        # Marks the other files as those of a start that was killed.
        path.with_suffix(".part").touch()
        path.unlink(missing_ok=True)
        for file in (*self._files(), *self._folder.glob("exact.sqlite3*")):
            file.unlink()
        self.saved_settings = None

    def _files(self) -> dict[Path, int]:
        """Snapshots and logs, with their numbers."""
        names = ((path, _NAME.fullmatch(path.name)) for path in self._folder.iterdir())
        return {path: int(name[1] or name[2]) for path, name in names if name}

    def snapshot(self) -> Path:
        """Returns the path of the newest snapshot.

        Raises `petal.FormatError` if there is none.
        """
        found = {number: path for path, number in self._files().items() if path.suffix}
        if not found:
            raise petal.FormatError(
                f"{self._folder}: filter-*.petal is missing; restore it, or remove the folder to"
                " start over"
            )
        return found[max(found)]

    def records(self) -> Iterator[bytes]:
        """Yields the records after the newest snapshot, in order."""
        files = self._files()
        since = files[self.snapshot()]
        logs = sorted((number, path) for path, number in files.items() if not path.suffix)
        for number, path in logs:
            if number >= since:
                yield from read_records(path)

    def rotate(self, save: Callable[[Path], object]) -> None:
        """Writes a snapshot by calling `save(path)`, starts a log, and removes older files.

        Raises `OSError`; if the snapshot failed, the old log stays in use.
        """
        old = self._files()
        number = max(old.values(), default=0) + 1
        save(self._folder / f"filter-{number}.petal")
        self.close()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._log = os.open(self._folder / f"log-{number}", flags, 0o644)
        self._size = 0
        sync(self._folder)
        for path in old:
            path.unlink()

    def write(self, record: bytes) -> None:
        """Appends a record. Does nothing if the log is closed.

        Raises `OSError` if that fails; the log is then unusable until `rotate`.
        """
        if self._log is None:
            return
        data = len(record).to_bytes(2, "big") + record
        if os.write(self._log, data) != len(data):
            # Records after a cut one would not be read.
            self.close()
            raise OSError("the disk is full")
        self._size += len(data)

    def is_snapshot_due(self, filter_bytes: int) -> bool:
        """Returns whether the log is closed, or larger than a filter of this size."""
        return self._log is None or self._size > max(MIN_LOG_SIZE, filter_bytes)

    def sync(self) -> None:
        """Waits until the log is on the disk."""
        if self._log is not None:
            os.fsync(self._log)

    def close(self) -> None:
        """Closes the log."""
        if self._log is not None:
            os.close(self._log)
            self._log = None
