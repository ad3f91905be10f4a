"""A table of fingerprints on disk, in which requests that the filter reports as seen are confirmed.

The table is an SQLite database whose primary key is the fingerprint. New fingerprints are buffered
in memory and written in sorted order, in one transaction, so that neighbours share pages. Look-ups
search the buffer first.

Invariant: when `commit` returns, everything added before is in the file, also after a power cut.

Cost: some 35 bytes of disk per request, and up to `BUFFER_SIZE` fingerprints in memory (3 MB). A
duplicate costs a look-up, which reads the disk once the table exceeds SQLite's cache of 64 MB.
Adding a fingerprint is free; writing it costs a page read and one or two page writes, because
fingerprints are random and few share a page.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from petal.scrapy import sqlite

BUFFER_SIZE = 20_000


class FingerprintTable:
    """A set of fingerprints in a file, or in a temporary file if there is no path."""

    def __init__(self, path: Path | None) -> None:
        """Raises the errors of `sqlite.connect`."""
        self._database = sqlite.connect(
            path,
            "PRAGMA cache_size = -65536",
            "CREATE TABLE IF NOT EXISTS seen (fingerprint BLOB PRIMARY KEY) WITHOUT ROWID",
        )
        self._buffer: set[bytes] = set()
        self._write_at = BUFFER_SIZE

    def __contains__(self, fingerprint: bytes) -> bool:
        if fingerprint in self._buffer:
            return True
        found = self._database.execute("SELECT 1 FROM seen WHERE fingerprint = ?", (fingerprint,))
        return found.fetchone() is not None

    def update(self, fingerprints: Iterable[bytes]) -> None:
        """Adds fingerprints; those already present are ignored."""
        for fingerprint in fingerprints:
            self.add(fingerprint)

    def add(self, fingerprint: bytes) -> None:
        """Adds a fingerprint, unless it is present.

        Raises `sqlite3.Error` if the buffer cannot be written. The buffer then stays in memory and
        is written after another `BUFFER_SIZE` fingerprints.
        """
        self._buffer.add(fingerprint)
        if len(self._buffer) >= self._write_at:
            self._write_at = len(self._buffer) + BUFFER_SIZE
            self._write()

    def _write(self) -> None:
        try:
            self._database.execute("BEGIN")
            rows = ((fingerprint,) for fingerprint in sorted(self._buffer))
            self._database.executemany("INSERT OR IGNORE INTO seen VALUES (?)", rows)
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self._buffer.clear()
        self._write_at = BUFFER_SIZE

    def commit(self) -> None:
        """Writes the buffer and waits for the disk."""
        self._write()
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Closes the file; fingerprints that were not committed are lost."""
        self._database.close()
