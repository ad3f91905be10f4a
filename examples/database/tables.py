"""The table of short links in SQLite and in PostgreSQL, and a PostgreSQL server of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import support

BATCH = 50_000
NO_RIGHTS = 65534  # the identifier of the user without rights, on all Linux systems


class SqliteTable:
    """A table in an SQLite file, with a connection for writes and one for each thread that reads."""

    name = "SQLite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._all: list[sqlite3.Connection] = []
        self._local = threading.local()
        self._writer = self._connect()
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = NORMAL")
        self._writer.execute("CREATE TABLE IF NOT EXISTS link (slug TEXT PRIMARY KEY, url TEXT NOT NULL) WITHOUT ROWID")
        self._version = self._data_version()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._all.append(connection)
        return connection

    def _reader(self) -> sqlite3.Connection:
        if not hasattr(self._local, "reader"):
            self._local.reader = self._connect()
        return self._local.reader

    def _data_version(self) -> int:
        return self._writer.execute("PRAGMA data_version").fetchone()[0]

    def load(self, rows: Iterable[tuple[str, str]]) -> None:
        """Inserts many new rows."""
        with self.transaction():
            self._writer.executemany("INSERT INTO link VALUES (?, ?)", rows)

    def get(self, key: str) -> str | None:
        row = self._reader().execute("SELECT url FROM link WHERE slug = ?", (key,)).fetchone()
        return row[0] if row else None

    def count(self) -> int:
        return self._reader().execute("SELECT count(*) FROM link").fetchone()[0]

    def keys(self) -> Iterator[list[str]]:
        reader = sqlite3.connect(self.path)
        try:
            cursor = reader.execute("SELECT slug FROM link")
            while rows := cursor.fetchmany(BATCH):
                yield [slug for (slug,) in rows]
        finally:
            reader.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def insert(self, key: str, value: str) -> bool:
        done = self._writer.execute("INSERT INTO link VALUES (?, ?) ON CONFLICT DO NOTHING", (key, value))
        return done.rowcount == 1

    def delete(self, key: str) -> bool:
        return self._writer.execute("DELETE FROM link WHERE slug = ?", (key,)).rowcount == 1

    def changed_elsewhere(self) -> bool:
        # SQLite counts the commits of other connections. Those of this class do not write.
        before, self._version = self._version, self._data_version()
        return before != self._version

    def close(self) -> None:
        for connection in self._all:
            connection.close()


class PostgresTable:
    """A table in PostgreSQL, with a connection for writes and one for each thread that reads."""

    name = "PostgreSQL"
    SCHEMA = """
        CREATE TABLE IF NOT EXISTS link (slug text PRIMARY KEY, url text NOT NULL);
        CREATE OR REPLACE FUNCTION link_inserted() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN NOTIFY link_inserted; RETURN NULL; END';
        CREATE OR REPLACE TRIGGER link_inserted AFTER INSERT ON link
            FOR EACH STATEMENT EXECUTE FUNCTION link_inserted();
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._all: list[psycopg.Connection] = []
        self._local = threading.local()
        self._writer = self._connect()
        self._writer.execute(self.SCHEMA)
        self._listener = self._connect()
        self._listener.execute("LISTEN link_inserted")

    def _connect(self) -> psycopg.Connection:
        connection = psycopg.connect(self.address, autocommit=True)
        self._all.append(connection)
        return connection

    def _reader(self) -> psycopg.Connection:
        if not hasattr(self._local, "reader"):
            self._local.reader = self._connect()
        return self._local.reader

    def load(self, rows: Iterable[tuple[str, str]]) -> None:
        """Inserts many new rows."""
        with self._writer.cursor().copy("COPY link FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        self._writer.execute("VACUUM ANALYZE link")

    def get(self, key: str) -> str | None:
        row = self._reader().execute("SELECT url FROM link WHERE slug = %s", (key,)).fetchone()
        return row[0] if row else None

    def count(self) -> int:
        return self._reader().execute("SELECT count(*) FROM link").fetchone()[0]

    def keys(self) -> Iterator[list[str]]:
        with psycopg.connect(self.address) as reader, reader.cursor("keys") as cursor:
            cursor.execute("SELECT slug FROM link")
            while rows := cursor.fetchmany(BATCH):
                yield [slug for (slug,) in rows]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._writer.transaction():
            yield

    def insert(self, key: str, value: str) -> bool:
        done = self._writer.execute("INSERT INTO link VALUES (%s, %s) ON CONFLICT DO NOTHING", (key, value))
        return done.rowcount == 1

    def delete(self, key: str) -> bool:
        return self._writer.execute("DELETE FROM link WHERE slug = %s", (key,)).rowcount == 1

    def changed_elsewhere(self) -> bool:
        # PostgreSQL notifies of each commit that inserted rows, with the process that did it.
        own = self._writer.info.backend_pid
        return any([notice.pid != own for notice in self._listener.notifies(timeout=0)])

    def close(self) -> None:
        for connection in self._all:
            connection.close()


def postgres_programs() -> Path:
    """Returns the folder of PostgreSQL's programs: that of install.sh, or one of the system."""
    for root in (support.peers() / "debian/postgresql", Path("/")):
        found = sorted((root / "usr/lib/postgresql").glob("*/bin/postgres"))
        if found:
            return found[-1].parent
    raise FileNotFoundError("no PostgreSQL: run `cargo x example database` once, which installs it into target/peers")


def accepts_queries(address: str) -> bool:
    """Returns false while the server starts or recovers."""
    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def postgres() -> Iterator[str]:
    """Starts an empty PostgreSQL server. Yields the address to connect to; removes all data at the end.

    PostgreSQL refuses to run as root: root runs it as the user that has no rights.
    """
    programs, prefix = postgres_programs(), []
    folder = Path(tempfile.mkdtemp(prefix="petal-database-"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwuid(NO_RIGHTS)
            prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            os.chown(folder, user.pw_uid, user.pw_gid)
        libraries = programs.parents[2] / f"{os.uname().machine}-linux-gnu"
        environment = os.environ | {"LD_LIBRARY_PATH": str(libraries), "LC_ALL": "C"}
        options = {"cwd": folder, "env": environment}
        initdb = [*prefix, programs / "initdb", "-D", folder / "data", "-U", "petal", "-A", "trust", "-E", "UTF8"]
        made = subprocess.run([*initdb, "--no-sync"], capture_output=True, text=True, **options)
        if made.returncode:
            raise RuntimeError(f"initdb failed; all users must be able to read {programs}:\n{made.stderr}")
        port = support.free_port()
        settings = ["listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "jit=off"]
        settings = [word for setting in settings for word in ("-c", setting)]
        command = [*prefix, programs / "postgres", "-D", folder / "data", "-p", str(port), *settings]
        with support.server(command, port, folder / "log", **options):
            address = f"host={folder} port={port} user=petal dbname=postgres"
            support.wait_until(lambda: accepts_queries(address), "PostgreSQL accepts queries")
            yield address
    finally:
        shutil.rmtree(folder, ignore_errors=True)
