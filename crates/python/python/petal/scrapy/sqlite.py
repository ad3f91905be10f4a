"""Opens SQLite files in a JOBDIR. They survive a kill; only checkpoints wait for the disk."""

import sqlite3
from pathlib import Path

import petal


def connect(path: Path | None, *statements: str) -> sqlite3.Connection:
    """Opens a database and runs `statements`; `None` opens a temporary database.

    Raises `petal.FormatError` if the file is damaged, `petal.InputError` if it cannot be used.
    """
    try:
        # SQLite gives an empty name a temporary file, and removes it.
        connection = sqlite3.connect(path or "", isolation_level=None)
        if path is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        for statement in statements:
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        raise petal.InputError(f"{path or 'temporary file'}: {error}") from None
    except sqlite3.DatabaseError as error:
        folder = path and path.parent
        raise petal.FormatError(
            f"{path}: {error}; restore the file, or remove {folder} to start over"
        ) from None
    return connection
