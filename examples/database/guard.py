"""A guard in front of a database: a filter of the keys of a table, so that absent keys are not queried."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import petal


class Table(Protocol):
    """What the guard needs of a table of keys and values."""

    def get(self, key: str) -> str | None:
        """Returns the value of a key."""

    def count(self) -> int:
        """Returns the number of rows."""

    def keys(self) -> Iterator[list[str]]:
        """Yields the keys of one snapshot in batches, on a connection of its own."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begins a transaction for `insert` and `delete`, and commits it at the end of the block."""

    def insert(self, key: str, value: str) -> bool:
        """Inserts a row. Returns false if the key has one."""

    def delete(self, key: str) -> bool:
        """Deletes a row. Returns false if there is none."""

    def changed_elsewhere(self) -> bool:
        """Returns true if another program may have inserted rows since the last call."""


class Guard:
    """Reads and writes the rows of a table, and keeps a filter of its keys in the memory of this process.

    If the filter reports a key as absent, the table has no such row. While there is no filter, every lookup is a
    query. Any number of threads may call all methods.
    """

    def __init__(self, table: Table, fpr: float = 0.01) -> None:
        self.table, self.fpr = table, fpr
        self.filter: petal.QuotientFilter | None = None
        self.queries = 0  # sent by get(); not exact if several threads read
        self._building: petal.QuotientFilter | None = None
        self._write = threading.Lock()
        self._rebuild = threading.Lock()

    def get(self, key: str) -> str | None:
        """Returns the value of a key. The database is queried only if the filter contains the key."""
        filter = self.filter
        if filter is not None and key not in filter:
            return None
        self.queries += 1
        return self.table.get(key)

    def insert(self, rows: Iterable[tuple[str, str]]) -> int:
        """Inserts rows in one transaction. Returns the number of rows whose keys were new.

        The keys are in the filter before the commit makes the rows visible. After a rollback they stay there: a
        lookup of such a key is one query too many, which is harmless.
        """
        with self._write, self.table.transaction():
            new = [key for key, value in rows if self.table.insert(key, value)]
            self._add(new)
        return len(new)

    def delete(self, keys: Iterable[str]) -> int:
        """Deletes rows in one transaction. Returns the number of deleted rows.

        The keys leave the filter after the commit. If the commit fails they stay there.
        """
        with self._write:
            with self.table.transaction():
                gone = [key for key in keys if self.table.delete(key)]
            if self.filter is not None:
                for key in gone:
                    self.filter.discard(key)
        return len(gone)

    def rebuild(self) -> bool:
        """Builds the filter from the table. Lookups and writes continue meanwhile. Returns false if it was dropped.

        Waits for the transaction in progress, so that a row is either in the snapshot of `keys` or was inserted
        after `_building` was set. A key may be in the new filter twice, and a key that is deleted meanwhile stays
        there: both cost a query at most.
        """
        with self._rebuild:
            count = self.table.count()
            new = petal.QuotientFilter(
                max(count, 1000), self.fpr, max_capacity=4 * count + 10_000, secret=os.urandom(16)
            )
            with self._write:
                self._building = new
            try:
                for keys in self.table.keys():
                    new.update(keys)
            except BaseException:
                self._building = None
                raise
            with self._write:
                was_dropped = self._building is not new
                if not was_dropped:
                    self.filter = new
                self._building = None
            return not was_dropped

    def drop(self) -> None:
        """Removes the filter, for example because it may lack a key. Every lookup is a query until `rebuild`."""
        with self._write:
            self.filter = self._building = None

    def check(self) -> bool:
        """Drops the filter if another program may have inserted rows. Returns true if it did.

        Call it once a second, and `rebuild` in another thread if it returns true. Until then `get` does not find
        the rows of other programs.
        """
        is_stale = self.table.changed_elsewhere()
        if is_stale:
            self.drop()
        return is_stale

    def _add(self, keys: list[str]) -> None:
        try:
            for filter in (self.filter, self._building):
                if filter is not None:
                    filter.update(keys)
        except petal.FullError:  # four times the rows of the last rebuild
            self.filter = self._building = None
