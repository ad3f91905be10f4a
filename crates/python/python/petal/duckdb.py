"""Look-ups in a filter as a function of DuckDB's SQL.

`register` makes a function of a connection, which DuckDB calls with Arrow columns of some 2,000 values.
Keys are hashed as everywhere in petal, so a filter of `petal build`, of a crawler or of a cluster
answers for a column of a table:

    >>> import duckdb, petal.duckdb                                               # doctest: +SKIP
    >>> connection = duckdb.connect()                                             # doctest: +SKIP
    >>> petal.duckdb.register(connection, "is_known", "known.petal")              # doctest: +SKIP
    >>> connection.sql("SELECT url FROM 'new.parquet' WHERE NOT is_known(url)")   # doctest: +SKIP

It needs the extra `petal-filters[duckdb]`: `duckdb` 1.4 or newer, `pyarrow`, `numpy`.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import duckdb

from petal import _petal
from petal._arguments import read_transforms

__all__ = ["register"]

#: Types of columns whose values are keys as they are, like those of `str`, `bytes` and `int`.
COLUMN_TYPES = ("VARCHAR", "BLOB", "BIGINT", "UBIGINT")


def register(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    filter: _petal.Filter | str | os.PathLike[str],
    *,
    column_type: str = "VARCHAR",
    key_transform: Iterable[str] | None = None,
) -> None:
    """Registers the SQL function `name(key)`, which returns whether a filter contains a key.

    The function returns NULL for NULL. A function of this name that the connection has made is replaced.

    - `connection`: a connection of the package `duckdb`, without a result that has not been read yet.
      The function belongs to its database, so its cursors have it, too.
    - `filter`: a filter, which may be changed between queries, or the path of its file, which is mapped.
    - `column_type`: `VARCHAR`, `BLOB`, `BIGINT` or `UBIGINT`, the type of the function's argument
      [`VARCHAR`]. DuckDB refuses columns of types that it does not convert to it by itself: cast them.
    - `key_transform`: names of changes to text and bytes before they are looked up, as in
      `petal.check` [those that the filter records; others raise `IncompatibleError`]. A changed key
      takes some microseconds.

    A negative number is not a key: the query fails. Raises `ValueError` for another type, and for a
    name that is not an identifier or is that of another function, `TypeError` for an object that is
    not a connection or a filter, and the errors of `petal.open`.
    """
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        raise TypeError(f"connection: expected a connection of DuckDB, found {type(connection).__name__}")
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name: expected the name of an SQL function, found {name!r}")
    if column_type not in COLUMN_TYPES:
        raise ValueError(f"column_type: expected one of {', '.join(COLUMN_TYPES)}, found {column_type!r}")
    opened = _opened(filter)
    changes = read_transforms(key_transform)
    if not isinstance(opened, _petal.ForeignFilter):
        changes = _petal._adopted_transforms(opened.metadata, changes)
    if column_type.endswith("BIGINT"):
        changes = ""

    def look_up(keys: Any) -> Any:
        # DuckDB leaves out nulls, and puts them into the result.
        return opened.contains_batch(_changed(keys, changes) if changes else keys)

    _remove(connection, name)
    # DuckDB's stubs lack the texts that it accepts as types.
    create: Any = connection.create_function
    create(name, look_up, [column_type], "BOOLEAN", type="arrow")


def _remove(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Removes a function that this connection has made; another one of this name is an error."""
    with suppress(duckdb.InvalidInputException):  # There is none.
        connection.remove_function(name)
    named = "SELECT count(*) FROM duckdb_functions() WHERE lower(function_name) = lower(?)"
    if connection.execute(named, [name]).fetchall() != [(0,)]:
        raise ValueError(f"name: the database has another function {name!r}; choose another name")


def _opened(filter: _petal.Filter | str | os.PathLike[str]) -> _petal.Filter:
    """Returns the filter, opened if it is the path of its file."""
    if isinstance(filter, _petal.Filter):
        return filter
    if isinstance(filter, str | bytes | os.PathLike):
        return _petal.open(filter)
    raise TypeError(f"filter: expected a filter or the path of its file, found {type(filter).__name__}")


def _changed(keys: Any, names: str) -> Any:
    """Returns an Arrow column of text or bytes after changes, as bytes."""
    import pyarrow as pa

    return pa.array(_petal._transform_keys(keys.to_pylist(), names), pa.binary())
