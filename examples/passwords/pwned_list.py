"""A list of breached passwords in the two forms of the download tool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path


def breached(number: int) -> str:
    return f"password-{number}"


def listed(count: int) -> Iterator[tuple[str, int]]:
    """Returns hashes in order, each with how often it was seen; one in 50 is padding, with a count of 0."""
    hashes = ((hashlib.sha1(breached(n).encode()).hexdigest().upper(), n % 50) for n in range(count))
    return iter(sorted(hashes))


def write_list(path: Path, count: int) -> None:
    """Writes the list as one file of lines that end with CRLF."""
    path.write_text("".join(f"{name}:{seen}\r\n" for name, seen in listed(count)), newline="")


def write_ranges(folder: Path, count: int, start: str) -> None:
    """Writes the hashes that start with `start` as range files, of which each is named by five digits."""
    folder.mkdir()
    ranges: dict[str, list[str]] = {}
    for name, seen in listed(count):
        if name.startswith(start):
            ranges.setdefault(name[:5], []).append(f"{name[5:]}:{seen}")
    for prefix, lines in ranges.items():
        (folder / f"{prefix}.txt").write_text("\r\n".join(lines), newline="")
