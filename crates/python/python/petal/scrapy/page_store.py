"""The pages of `DeltaFetch`: a set of keys in a folder that survives a kill.

The set is a growing filter in memory, with a snapshot and a log (`snapshot_log`), and with
`PETAL_DELTAFETCH_EXACT` a table of the keys on disk (`exact`). A key that was added is always found,
also after a kill; without the table another key is found with probability `PETAL_DELTAFETCH_FPR` at
most.

Cost: 5 bytes of memory per page with the default rate. A look-up takes less than a microsecond; with
the table, a look-up of a stored page reads the disk.
"""

import dbm
import hashlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from scrapy.settings import BaseSettings

import petal
from petal.scrapy.config import check_names, naming_settings, read_flag, read_fpr, read_positive_int
from petal.scrapy.exact import FingerprintTable
from petal.scrapy.snapshot_log import SnapshotLog, lock

logger = logging.getLogger("petal.scrapy")

PREFIX = "PETAL_DELTAFETCH_"
NAMES = ("CAPACITY", "FPR", "EXACT")
DEFAULT_CAPACITY = 1_000_000
# A page that is taken for a stored one is never fetched, in no run.
DEFAULT_FPR = 0.000001
# Longer keys are hashed.
MAX_KEY_SIZE = 255


class PageStore:
    """The pages of one spider. `imported` is the number of pages of scrapy-deltafetch."""

    def __init__(self, folder: Path, spider: str, settings: BaseSettings, reset: bool) -> None:
        """Opens `SPIDER.petal` in the folder, or creates it with the pages of `SPIDER.db`.

        Raises `ValueError` if a setting is invalid, `petal.InputError` if another process uses the
        store or `SPIDER.db` cannot be read, `petal.IncompatibleError` if `EXACT` was changed,
        `petal.FormatError` if the store is damaged.
        """
        self.imported = 0
        check_names(settings, PREFIX, NAMES)
        capacity = read_positive_int(settings, PREFIX + "CAPACITY") or DEFAULT_CAPACITY
        fpr = read_fpr(settings, PREFIX + "FPR", DEFAULT_FPR)
        is_exact = read_flag(settings, PREFIX + "EXACT", False)
        path = folder / f"{spider}.petal"
        path.mkdir(parents=True, exist_ok=True)
        self._lock = lock(path, f"{path}", "DELTAFETCH_DIR")
        try:
            self._log = SnapshotLog(path)
            if reset:
                self._log.reset()
            self._check_exact(path, is_exact)
            self._exact = FingerprintTable(path / "exact.sqlite3") if is_exact else None
            self._filter: petal.Filter
            if self._log.saved_settings is None:
                with naming_settings(PREFIX, "FPR", "CAPACITY"):
                    self._filter = petal.ScalableBloomFilter(capacity, fpr, secret=os.urandom(16))
                if not reset:
                    self._import(folder / f"{spider}.db")
                self._commit_exact()
                self._log.create({"exact": is_exact}, self._filter.save)
            else:
                self._filter = petal.load(self._log.snapshot())
                self._add_all(self._log.records())
                self._save()
        except BaseException:
            self._lock.close()
            raise
        self._has_failed = False

    def _check_exact(self, path: Path, is_exact: bool) -> None:
        saved = self._log.saved_settings
        if saved is not None and saved.get("exact") != is_exact:
            raise petal.IncompatibleError(
                f"{path} was made with {PREFIX}EXACT {saved.get('exact')}, but the settings have"
                f" {is_exact}: restore the setting, or start over with DELTAFETCH_RESET"
            )

    def _import(self, path: Path) -> None:
        """Adds the pages of scrapy-deltafetch, if it has been used. Its file is not changed."""
        if dbm.whichdb(str(path)) is None:
            return
        try:
            with dbm.open(str(path), "r") as pages:
                # Not all kinds of these files can be iterated.
                self.imported = self._add_all(_short(key) for key in pages.keys())  # noqa: SIM118
        except dbm.error as error:
            raise petal.InputError(
                f"{path}: {error}; remove the file to start without its pages"
            ) from None
        logger.info("DeltaFetch imported %d pages from %s", self.imported, path)

    def _add_all(self, keys: Iterable[bytes]) -> int:
        number = 0

        def added() -> Iterator[bytes]:
            nonlocal number
            for key in keys:
                number += 1
                if self._exact is not None:
                    self._exact.add(key)
                yield key

        self._filter.update(added())
        return number

    def __contains__(self, key: bytes) -> bool:
        short = _short(key)
        if short not in self._filter:
            return False
        try:
            return self._exact is None or short in self._exact
        except sqlite3.Error as error:
            self._report(error)
            return False

    def add(self, key: bytes) -> None:
        """Adds a page; after a kill it is still there."""
        short = _short(key)
        self._filter.add(short)
        try:
            if self._exact is not None:
                self._exact.add(short)
            self._log.write(short)
            if not self._has_failed and self._log.is_snapshot_due(self._filter.size_bytes):
                self._save()
        except (OSError, sqlite3.Error) as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        """The crawl continues: pages that are not stored are fetched again by the next run."""
        if not self._has_failed:
            message = "DeltaFetch cannot use its files (%s): the next run may fetch pages again"
            logger.error(message, error)
        self._has_failed = True

    def _save(self) -> None:
        # Before the snapshot, which replaces the log.
        self._commit_exact()
        self._log.rotate(self._filter.save)

    def _commit_exact(self) -> None:
        if self._exact is not None:
            self._exact.commit()

    def close(self) -> None:
        """Saves the pages and unlocks the folder."""
        try:
            self._save()
        except (OSError, sqlite3.Error) as error:
            self._report(error)
        self._log.close()
        if self._exact is not None:
            self._exact.close()
        self._lock.close()


def _short(key: bytes | str) -> bytes:
    if isinstance(key, str):
        key = key.encode()
    return key if len(key) <= MAX_KEY_SIZE else hashlib.blake2b(key).digest()
