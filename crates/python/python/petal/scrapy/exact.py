"""Fingerprints on disk: what a filter calls seen is looked up here, so that nothing is lost.

A table of SQLite whose key is the fingerprint. New ones are gathered in memory and written sorted,
in one transaction, so that neighbours share pages; look-ups ask what was gathered first.

Invariant: once `commit` is back, all that was added before is in the file, also after a power cut.
Cost: some 35 bytes of disk, and `GATHER` fingerprints in memory, some 3 MB. Beyond SQLite's cache
of 64 MB, one read of the disk for each request that was seen before. What is new costs none when it
is added; when it is written, nearly each costs a page read and one or two written, for fingerprints
are random and few share a page.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from petal.scrapy import base

GATHER = 20_000


class Exact:
    """A set of fingerprints in a file; without a path in a temporary one."""

    def __init__(self, path: Path | None) -> None:
        """Raises as `base.opened`."""
        self._base = base.opened(
            path,
            "PRAGMA cache_size = -65536",
            "CREATE TABLE IF NOT EXISTS seen (fingerprint BLOB PRIMARY KEY) WITHOUT ROWID",
        )
        self._new: set[bytes] = set()
        self._full = GATHER

    def __contains__(self, fingerprint: bytes) -> bool:
        if fingerprint in self._new:
            return True
        found = self._base.execute("SELECT 1 FROM seen WHERE fingerprint = ?", (fingerprint,))
        return found.fetchone() is not None

    def update(self, fingerprints: Iterable[bytes]) -> None:
        """Adds many, there or not."""
        for fingerprint in fingerprints:
            self.add(fingerprint)

    def add(self, fingerprint: bytes) -> None:
        """Adds one, there or not.

        Raises `sqlite3.Error` if the disk does not take what was gathered; it is in memory then,
        and tried again when as many more have come.
        """
        self._new.add(fingerprint)
        if len(self._new) >= self._full:
            self._full = len(self._new) + GATHER
            self._write()

    def _write(self) -> None:
        try:
            self._base.execute("BEGIN")
            rows = ((fingerprint,) for fingerprint in sorted(self._new))
            self._base.executemany("INSERT OR IGNORE INTO seen VALUES (?)", rows)
            self._base.execute("COMMIT")
        except sqlite3.Error:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise
        self._new.clear()
        self._full = GATHER

    def commit(self) -> None:
        """Writes what was gathered, and waits for the disk."""
        self._write()
        self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Lets go of the file; what was not committed is gone."""
        self._base.close()
