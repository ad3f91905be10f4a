"""A blocklist of mail addresses and host names: a petal filter, and an allow list of its false alarms.

An address is blocked if the address, its domain or a domain above it is in the filter and not in the allow list:
`ann@mx.mailinator.com` is blocked by `mailinator.com`. The allow list is exact, as that of `petal check --allow`. The
mail service and the script in the DNS resolver use this class; it needs nothing but petal.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator
from pathlib import Path

import petal


def names_looked_up(address: str) -> Iterator[str]:
    """Yields an address, its domain and the domains above it that have at least two labels, in lower case."""
    local, at, domain = address.lower().rpartition("@")
    domain = domain.rstrip(".")
    if not domain.isascii():
        try:
            domain = domain.encode("idna").decode()
        except UnicodeError:
            pass  # Not a host name: looked up as it is.
    if at:
        yield f"{local}@{domain}"
    while "." in domain:
        yield domain
        domain = domain.partition(".")[2]


def listed_name(address: str, names: Container[str], allowed: Container[str] = ()) -> str | None:
    """Returns the name for which an address is blocked. `None`: the address is not blocked."""
    for name in names_looked_up(address):
        if name in names and name not in allowed:
            return name
    return None


def read_names(path: Path) -> frozenset[str]:
    """Returns the lines of a list in lower case, without empty lines and lines that begin with `#`."""
    lines = (line.strip().lower() for line in path.read_text(encoding="utf-8").splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


def false_alarms(filter: Container[str], universe: set[str]) -> list[str]:
    """Returns the names known to be good that a filter reports as listed: the allow list."""
    return sorted(name for name in universe if name in filter)


def blocked(addresses: list[str], names: Container[str], allowed: Container[str] = ()) -> int:
    """Returns the number of addresses that are blocked."""
    return sum(listed_name(address, names, allowed) is not None for address in addresses)


def false_alarm(addresses: list[str], names: Container[str]) -> tuple[str, str]:
    """Returns a good address that is blocked, and the one name for which it is."""
    for address in addresses:
        name = listed_name(address, names)
        if name and listed_name(address, names, {name}) is None:
            return address, name
    raise ValueError(f"no false alarm among {len(addresses)} addresses: raise --limit or --fpr")


def passing(addresses: list[str], names: Container[str]) -> str:
    """Returns a good address that is not blocked."""
    return next(address for address in addresses if listed_name(address, names) is None)


def write_names(path: Path, names: list[str] | set[str]) -> None:
    """Writes names as sorted lines."""
    path.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


class Blocklist:
    """A filter file and an allow list. Both are read again when they change."""

    def __init__(self, filter_path: Path, allow_path: Path | None = None) -> None:
        self.filter_path, self.allow_path = filter_path, allow_path
        self.versions = self.read_versions()
        self.filter, self.allowed = self.read()

    def listed_name(self, address: str) -> str | None:
        """Returns the name for which an address is blocked. `None`: the address is not blocked."""
        return listed_name(address, self.filter, self.allowed)

    def refresh(self) -> None:
        """Reads the files again if they changed. Files that cannot be read are reported, and the old ones kept."""
        try:
            versions = self.read_versions()
            if versions != self.versions:
                self.versions = versions
                self.filter, self.allowed = self.read()
        except (OSError, ValueError) as error:
            print(f"blocklist: {error}; the lists read before stay in use", file=sys.stderr, flush=True)

    def read(self) -> tuple[petal.Filter, frozenset[str]]:
        allowed = read_names(self.allow_path) if self.allow_path else frozenset()
        return petal.load(self.filter_path), allowed

    def read_versions(self) -> list[tuple[int, int, int]]:
        stats = [path.stat() for path in (self.filter_path, self.allow_path) if path]
        return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]
