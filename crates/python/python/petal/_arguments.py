"""What callers give to jobs past one machine: paths, and settings that are numbers."""

import operator
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import unquote

from petal._petal import InputError, ranges

Folder = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Folder | Iterable[Folder]

#: The file that keeps a folder for one job, while it writes its answer there.
CLAIM = "_CLAIMED"


def path_of(path: object, word: str) -> str:
    """A path as all workers have it. `file:` URIs are decoded to paths; other schemes need a mount."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"{word}expected a path, found {type(path).__name__}")
    name = os.fsdecode(path)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", name)
    if scheme and scheme[1] == "file":
        # Bytes that are no UTF-8 are as `os.fsdecode` has them.
        name = unquote(re.sub(r"^file:(//(localhost)?(?=/))?", "", name), errors="surrogateescape")
    elif scheme and "://" in name:
        raise ValueError(
            f"{word}{name}: expected a path that all workers can open, found a URI of {scheme[1]}; "
            "mount the storage and name the path there"
        )
    if not name:
        raise ValueError(f"{word}expected a path, found an empty one")
    return os.path.abspath(name)


def paths_of(paths: Paths) -> list[str]:
    """The files of an input; of the folder of a job's answer, its parts."""
    if isinstance(paths, str | bytes | os.PathLike):
        return _files(path_of(paths, ""))
    if not isinstance(paths, Iterable) or hasattr(paths, "columns"):
        raise TypeError(f"expected a path or several, found {type(paths).__name__}")
    named = [path_of(path, "") for path in paths]
    if not named:
        raise ValueError("expected at least one path, found an empty list")
    return [file for path in named for file in _files(path)]


def _files(path: str) -> list[str]:
    """A file; of the folder of an answer that is complete, its parts in order."""
    if not os.path.isdir(path):
        return [path]
    names = os.listdir(path)
    if "_SUCCESS" not in names:
        why = "is being written, or was left by a job that was killed" if CLAIM in names else (
            "is a folder without _SUCCESS"
        )
        raise InputError(f"{path}: {why}, expected a file of lines or the complete answer of a job")
    return [os.path.join(path, name) for name in sorted(names) if not name.startswith(("_", "."))]


def whole(name: str, number: object, least: int, most: int | None = None) -> int:
    with suppress(TypeError):
        whole = operator.index(number)  # type: ignore[arg-type]
        if not isinstance(number, bool) and least <= whole <= (most or 2**63 - 1):
            return whole
    range = f"from {least} to {most}" if most else f"of at least {least}"
    raise ValueError(f"{name}=: expected a whole number {range}, found {number!r}")


def memory_of(memory: int | str) -> int:
    """The cap of a task in bytes. What a share is of, only its worker knows."""
    if isinstance(memory, str):
        if memory.strip().endswith("%"):
            raise ValueError(
                f"memory=: expected the bytes of one task, such as 1 << 30 or '1G', found {memory!r}"
            )
        return int(ranges.memory(memory))
    return whole("memory", memory, 0)
