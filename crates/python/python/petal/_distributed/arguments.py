"""Reads the arguments of distributed jobs: paths and numbers."""

import operator
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import unquote

from petal._petal import InputError, UnsupportedError, ranges

Folder = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Folder | Iterable[Folder]

#: The file that reserves an output folder for one job.
CLAIM = "_CLAIMED"


def read_path(path: object, prefix: str) -> str:
    """Returns an absolute path. Decodes `file:` URIs; errors begin with `prefix`.

    Raises `TypeError` or `ValueError` if it is no path, or a URI of another scheme.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"{prefix}expected a path, found {type(path).__name__}")
    name = os.fsdecode(path)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", name)
    if scheme and scheme[1] == "file":
        # Bytes that are not UTF-8 are decoded as by `os.fsdecode`.
        name = unquote(re.sub(r"^file:(//(localhost)?(?=/))?", "", name), errors="surrogateescape")
    elif scheme and "://" in name:
        raise ValueError(
            f"{prefix}{name}: expected a path that all workers can open, found a URI with scheme "
            f"{scheme[1]}; mount the storage and give the path there, or, in Spark, read data frames with "
            "spark.read.text(uri, lineSep='\\n')"
        )
    if not name:
        raise ValueError(f"{prefix}expected a path, found an empty one")
    return os.path.abspath(name)


def read_paths(paths: Paths) -> list[str]:
    """Returns the files of an input. The output folder of a job stands for its parts."""
    if isinstance(paths, str | bytes | os.PathLike):
        return _expand(read_path(paths, ""))
    if not isinstance(paths, Iterable) or hasattr(paths, "columns"):
        raise TypeError(f"expected a path or several, found {type(paths).__name__}")
    names = [read_path(path, "") for path in paths]
    if not names:
        raise ValueError("expected at least one path, found an empty list")
    return [file for name in names for file in _expand(name)]


def read_inputs(paths: Paths) -> list[list[str]]:
    """Returns the files of several inputs: each path is one."""
    if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable):
        return [read_paths(paths)]
    if hasattr(paths, "columns"):
        raise TypeError(f"expected a path or several, found {type(paths).__name__}")
    inputs = [read_paths(path) for path in paths]
    if not inputs:
        raise ValueError("expected at least one path, found an empty list")
    return inputs


#: Arguments of the functions for one machine that byte ranges of files cannot have.
_ONE_MACHINE = {
    "column": "records of CSV may have line ends in quotes, so files cannot be split into byte ranges",
    "separator": "only for CSV, which cannot be split into byte ranges",
    "quote": "only for CSV, which cannot be split into byte ranges",
    "escape": "only for CSV, which cannot be split into byte ranges",
    "header": "only for CSV, which cannot be split into byte ranges",
    "rest": "jobs on several machines have one output",
    "approx": "jobs on several machines are exact",
}


def refuse_options(options: Mapping[str, object]) -> None:
    """Raises `UnsupportedError` for arguments that only jobs on one machine have."""
    for name, reason in _ONE_MACHINE.items():
        if name in options:
            raise UnsupportedError(
                f"{name}=: {reason}; use the function of the same name in petal, on one machine, or "
                "leave it out"
            )


def _expand(path: str) -> list[str]:
    """Returns a file as it is, and the parts of an output folder in order."""
    if not os.path.isdir(path):
        return [path]
    names = os.listdir(path)
    if "_SUCCESS" not in names:
        claimed = CLAIM in names
        problem = "another job writes to it, or was killed" if claimed else "no _SUCCESS in it"
        raise InputError(
            f"{path}: {problem}; expected a file of lines or the complete output folder of a job"
        )
    return [os.path.join(path, name) for name in sorted(names) if not name.startswith(("_", "."))]


def read_int(name: str, number: object, minimum: int, maximum: int | None = None) -> int:
    """Returns an integer argument. Raises `ValueError` if it is out of range or no integer."""
    with suppress(TypeError):
        value = operator.index(number)  # type: ignore[arg-type]
        if not isinstance(number, bool) and minimum <= value <= (maximum or 2**63 - 1):
            return value
    limits = f"from {minimum} to {maximum}" if maximum else f"of at least {minimum}"
    raise ValueError(f"{name}=: expected an integer {limits}, found {number!r}")


def read_memory_limit(memory_limit: int | str) -> int:
    """Returns the memory limit of a task in bytes.

    Raises `ValueError` for a percentage, because the driver has no figure of the workers' memory.
    """
    if isinstance(memory_limit, str):
        if memory_limit.strip().endswith("%"):
            raise ValueError(
                "memory_limit=: expected the bytes of one task, such as 1 << 30 or '1G', found "
                f"{memory_limit!r}"
            )
        return int(ranges.parse_memory_limit(memory_limit))
    return read_int("memory_limit", memory_limit, 0)
