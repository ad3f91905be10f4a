"""Files of SQLite in a JOBDIR: fast, whole after a kill, on the disk when that is asked for."""

import sqlite3
from pathlib import Path

import petal


def opened(path: Path | None, *words: str) -> sqlite3.Connection:
    """The base in a file, or without a path in a temporary one, after these statements.

    Raises `petal.FormatError` if it is damaged, `petal.InputError` if it cannot be used.
    """
    try:
        # SQLite gives an empty name a temporary file, which it removes.
        base = sqlite3.connect(path or "", isolation_level=None)
        if path is not None:
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
        for statement in words:
            base.execute(statement)
    except sqlite3.OperationalError as error:
        raise petal.InputError(f"{path or 'temporary file'}: {error}") from None
    except sqlite3.DatabaseError as error:
        folder = path and path.parent
        raise petal.FormatError(
            f"{path}: {error}; restore it, or remove {folder} to begin anew"
        ) from None
    return base
