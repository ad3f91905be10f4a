"""Look-ups in a filter as a function of DuckDB's SQL.

`register` makes a function of a connection, which DuckDB calls with Arrow columns of some 2,000 values.
Keys are hashed as everywhere in petal, so the filter may come from `petal build`, a crawler or a cluster:

    >>> import duckdb, petal.duckdb                                               # doctest: +SKIP
    >>> connection = duckdb.connect()                                             # doctest: +SKIP
    >>> petal.duckdb.register(connection, "is_known", "known.petal")              # doctest: +SKIP
    >>> connection.sql("SELECT url FROM 'new.parquet' WHERE NOT is_known(url)")   # doctest: +SKIP

It needs the extra `petal-filters[duckdb]`: `duckdb` 1.4 or newer, `pyarrow`, `numpy`.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

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
    column_type: Literal["VARCHAR", "BLOB", "BIGINT", "UBIGINT"] = "VARCHAR",
    key_transform: Iterable[str] | None = None,
) -> None:
    """Registers the SQL function `name(key)`, which returns whether a filter contains a key.

    The function returns NULL for NULL. A function of this name that the connection has made is replaced.
    Do not register inside a transaction that may be rolled back: the name cannot be used afterwards.

    - `connection`: a connection of the package `duckdb`, without a result that has not been read yet.
      The function belongs to its database, so its cursors have it, too.
    - `filter`: a filter, which may be changed between queries, or the path of its file, which is mapped.
    - `column_type`: `VARCHAR`, `BLOB`, `BIGINT` or `UBIGINT`, the type of the function's argument
      [`VARCHAR`]. DuckDB refuses columns of types that it does not convert to it by itself: cast them.
    - `key_transform`: as in `petal.check`, for text and bytes. A changed key takes some microseconds.
      Numbers are not changed.

    A negative number is not a key: the query fails. Raises `ValueError` for another type, for changes
    to numbers, and for a name that is not an identifier, is a keyword or is that of another function,
    `TypeError` for an object that is not a connection or a filter, and the errors of `petal.open`.
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
        changes = _petal._adopted_transforms(opened, changes)
    if column_type.endswith("BIGINT"):
        if key_transform is not None:
            raise ValueError(f"key_transform: keys of column_type {column_type!r} cannot be changed; remove one of them")
        changes = ""

    def look_up(keys: Any) -> Any:
        # DuckDB leaves out nulls, and puts them into the result.
        return opened.contains_batch(_changed(keys, changes) if changes else keys)

    _remove(connection, name)
    # DuckDB's stubs lack the texts that it accepts as types.
    create: Any = connection.create_function
    try:
        # DuckDB computes functions without side effects of constants once, when it prepares a statement: the
        # result would be wrong after the filter has changed.
        create(name, look_up, [column_type], "BOOLEAN", type="arrow", side_effects=True)
    except (duckdb.CatalogException, duckdb.NotImplementedException) as error:
        # Its creation was rolled back with a transaction.
        raise ValueError(f"name: DuckDB refuses {name!r}; choose another name or connection: {error}") from None


def _remove(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Removes a function that this connection has made; other functions and keywords are errors."""
    with suppress(duckdb.InvalidInputException, duckdb.CatalogException):  # There is none.
        connection.remove_function(name)
    functions = "SELECT count(*) FROM duckdb_functions() WHERE lower(function_name) = lower(?)"
    if connection.execute(functions, [name]).fetchall() != [(0,)]:
        raise ValueError(f"name: the database has another function {name!r}; choose another name")
    keywords = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
    # The parser replaces `ifnull` by `coalesce`, but does not list it.
    if name.lower() in {"ifnull", *(keyword for (keyword,) in connection.execute(keywords).fetchall())}:
        raise ValueError(f"name: {name!r} is a keyword of SQL; choose another name")


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
