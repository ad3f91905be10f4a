"""The folders of a distributed job: the output folder, and work folders for temporary data."""

import errno
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from petal._distributed.arguments import CLAIM, Folder, read_path
from petal._distributed.stages import ByteRange
from petal._petal import InputError

#: Temporary files that a killed worker leaves beside the parts.
_TEMPORARY = ".petal-*"


def make_folder(path: Folder, option: str) -> Path:
    """Creates a folder unless it exists. Raises `InputError` if it is not writable."""
    folder = Path(read_path(path, f"{option}=: "))
    hint = f"set {option}= to a folder on storage that all workers share"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot create the folder: {error.strerror}; {hint}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: the folder is not writable; {hint}")
    return folder


# ---- The output folder ---------------------------------------------------------------------------


@dataclass
class Output:
    """The output folder, if any, and the names of its parts."""

    folder: Path | None
    names: set[str] = field(default_factory=set)
    #: Number of the first part of the job that writes.
    first: int = 0

    @property
    def parent(self) -> Path | None:
        return self.folder and self.folder.parent

    def part(self, byte_range: ByteRange) -> str | None:
        """Returns the path of the part for a byte range."""
        if self.folder is None:
            return None
        name = f"part-{self.first + byte_range[0]:08}"
        self.names.add(name)
        return str(self.folder / name)


@contextmanager
def open_output(out: Folder | None) -> Iterator[Output]:
    """Reserves the output folder for one job.

    At the end it has all parts, `_SUCCESS` and nothing else. If the block raises, all of the job's
    files are removed.
    """
    if out is None:
        yield Output(None)
        return
    folder = Path(read_path(out, "out=: "))
    is_new = not folder.exists()
    if not is_new:
        _check_contains_only(folder, set())
    folder = make_folder(folder, "out")
    output = Output(folder)
    claim, claim_text = folder / CLAIM, f"{uuid.uuid4().hex} on {socket.gethostname()}"
    try:
        with claim.open("x") as file:
            file.write(claim_text)
        # Another job may have used the folder since the first check, and may be finished.
        _check_contains_only(folder, {CLAIM})
    except FileExistsError:
        with suppress(InputError):
            _check_claim(claim, claim_text)
            claim.unlink()
        _check_contains_only(folder, set())
        raise
    except BaseException:
        # The claim may be incomplete, but it is this job's.
        claim.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise
    try:
        yield output
        _remove(folder, _TEMPORARY)
        sync_folder(folder)
        _check_claim(claim, claim_text)
        if (found := set(os.listdir(folder))) != output.names | {CLAIM}:
            different = ", ".join(sorted(found ^ (output.names | {CLAIM}))[:3])
            raise InputError(
                f"{folder}: expected the parts of this job and no other files, but {different} is "
                "missing or from another job; start again with an empty folder"
            )
        (folder / "_SUCCESS").touch()
        claim.unlink()
    except BaseException:
        with suppress(OSError):
            _check_claim(claim, claim_text)
            for names in "_SUCCESS", _TEMPORARY, "part-*":
                _remove(folder, names)
            claim.unlink()
            if is_new:
                folder.rmdir()
        raise


def _check_contains_only(folder: Path, names: set[str]) -> None:
    """Raises `FileExistsError` if an output path is no folder, or has other files."""
    found = set(os.listdir(folder)) if folder.is_dir() else {""}
    if CLAIM in found - names:
        claim = folder / CLAIM
        raise FileExistsError(
            f"{claim}: another job writes to this folder, or was killed; set out= to another "
            "folder, or, if no job is running, remove this file and the parts beside it"
        )
    if found - names:
        raise FileExistsError(
            f"{folder}: already exists, expected a new or empty folder; set out= to another one, "
            "or remove it"
        )


def _check_claim(claim: Path, claim_text: str) -> None:
    """Raises `InputError` if the claim was removed, and perhaps replaced by another job."""
    try:
        found = claim.read_text()
    except FileNotFoundError:
        found = "nothing"
    if found != claim_text:
        raise InputError(
            f"{claim}: removed while the job was running, expected {claim_text!r} in it, found "
            f"{found!r}; empty the folder when no job is running, and start again"
        )


def _remove(folder: Path, names: str) -> None:
    for path in folder.glob(names):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable; the contents of the files already are."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


# ---- The work folder -----------------------------------------------------------------------------


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Creates a folder, and removes it at the end with all files of tasks still running."""
    folder = parent / f".petal-work-{uuid.uuid4().hex}"
    folder.mkdir()
    try:
        yield folder
    finally:
        # Repeated, because a running task may add a file. Tasks create no folders.
        for _ in range(5):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
