"""What operations need of a session, classic or of Spark Connect.

A classic session has a `SparkContext`, which sends files to executors, knows the slots of the
cluster, and reduces filters on it. A client of Spark Connect has none: files are its artifacts, and
the driver of the session reduces nothing, so partial filters go to the client.
"""

import pickle
import re
import secrets
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from petal import _petal
from petal._distributed.arguments import Folder, read_path
from petal.spark import _frame_tasks as _tasks

#: The folder with the filters of each session or context, and the names of sent files.
_folders: weakref.WeakKeyDictionary[Any, Path] = weakref.WeakKeyDictionary()
_sent: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
_slots: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def is_connect(session: object) -> bool:
    """Returns whether an object is a session or a frame of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


class Session:
    """A session, by what operations need of it."""

    def __init__(self, session: SparkSession | SparkContext):
        self._is_connect = is_connect(session)
        #: The session of Spark Connect, or else the context.
        self._owner: Any = session
        if isinstance(session, SparkSession) and not self._is_connect:
            self._owner = session.sparkContext
        self._send(_petal.__file__)

    def _send(self, path: str) -> None:
        """Sends a file to every executor, also to later ones."""
        if not self._is_connect:
            self._owner.addFile(path)
            return
        sent = _sent.setdefault(self._owner, set())
        if path not in sent:
            self._owner.addArtifact(path, file=True)
            sent.add(path)

    def publish(self, filter: bytes | Path) -> str:
        """Sends a filter to every executor as a file, once, and returns the name of the file."""
        folder = _folders.get(self._owner)
        if folder is None:
            folder = _folders[self._owner] = Path(tempfile.mkdtemp(prefix="petal-spark-"))
            # Kept until the session ends, because later executors fetch it too.
            weakref.finalize(self._owner, shutil.rmtree, folder, ignore_errors=True)
        name = f"{secrets.token_hex(8)}.petal"
        if isinstance(filter, bytes):
            (folder / name).write_bytes(filter)
        else:
            shutil.copyfile(filter, folder / name)
        self._send(str(folder / name))
        if self._is_connect:
            # The server has it now.
            (folder / name).unlink()
        return name

    @contextmanager
    def local_file(self, path: Folder) -> Iterator[Folder]:
        """Yields a path on this machine: of a copy, for a URI such as `hdfs:` or `s3a:`.

        The driver's JVM copies the file with Hadoop's file system, whose settings are those of the
        session. Raises `InputError`, or `UnsupportedError` in Spark Connect.
        """
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", path) if isinstance(path, str) else None
        if scheme is None or not isinstance(path, str):
            yield path
            return
        if scheme[1] == "file":
            yield read_path(path, "filter: ")
            return
        if self._is_connect:
            raise _petal.UnsupportedError(
                f"{path}: a client of Spark Connect has no JVM, which reads {scheme[1]}: files; copy "
                "the file to the client"
            )
        with tempfile.TemporaryDirectory(prefix="petal-spark-") as folder:
            copy = f"{folder}/filter"
            self._copy_from_hadoop(path, copy)
            yield copy

    def _copy_from_hadoop(self, uri: str, copy: str) -> None:
        files = self._owner._jvm.org.apache.hadoop.fs
        try:
            path = files.Path(uri)
            system = path.getFileSystem(self._owner._jsc.hadoopConfiguration())
            # Without the checksum file that Hadoop's local file system writes.
            system.copyToLocalFile(False, path, files.Path(f"file://{copy}"), True)
        except Py4JJavaError as error:
            exception = error.java_exception
            name = exception.getClass().getSimpleName()
            reason = (exception.getMessage() or name).splitlines()[0]
            is_missing = name == "FileNotFoundException"
            kind = _petal.MissingFileError if is_missing else _petal.InputError
            raise kind(f"{uri}: cannot read: {reason}") from error

    @property
    def slots(self) -> int:
        """The number of tasks that the cluster runs at a time."""
        if not self._is_connect:
            slots: int = self._owner.defaultParallelism
            return slots
        if self._owner not in _slots:
            # A range has one partition for each slot, unless the number is set.
            ids = self._owner.range(1 << 16).select(F.spark_partition_id())
            _slots[self._owner] = max(ids.distinct().count(), 1)
        return _slots[self._owner]

    def union(self, slots: DataFrame) -> tuple[bytes, ...] | None:
        """Returns the union of partial filters, one row each, or of pairs; `None` of no rows.

        A classic session computes it on the cluster as a tree, a client of Spark Connect in this
        process, one partial filter after the other.
        """
        if not self._is_connect:
            parts = slots.rdd.map(tuple)
            if parts.isEmpty():
                return None
            union: tuple[bytes, ...] = parts.treeReduce(_tasks.union)
            return union
        whole: tuple[bytes, ...] | None = None
        # The functions of tasks import the extension under this name.
        sys.modules.setdefault("_petal", _petal)
        for row in slots.toLocalIterator():
            part = tuple(bytes(value) for value in row)
            whole = part if whole is None else _tasks.union(whole, part)
        return whole

    def map(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """Runs one task per item on the executors, and returns the results in order."""
        if not self._is_connect:
            tasks = self._owner.parallelize(items, len(items)).map(function)
            results: list[Any] = tasks.collect()
            return results
        data = [pickle.dumps(item) for item in items]
        numbers = self._owner.range(0, len(items), 1, len(items))
        rows = numbers.mapInArrow(_tasks.run_items(function, data), "id bigint, data binary")
        found = {row["id"]: pickle.loads(row["data"]) for row in rows.collect()}
        return [found[number] for number in range(len(items))]


def is_session(session: object) -> bool:
    """Returns whether an object is a context or a session, classic or of Spark Connect."""
    if is_connect(session):
        return type(session).__name__ == "SparkSession"
    return isinstance(session, SparkSession | SparkContext)


def of_frame(frame: DataFrame) -> Session:
    return Session(frame.sparkSession)


def active_session(what: str) -> Session:
    """Returns the active session. Raises `ValueError` if there is none."""
    session: Any = SparkSession.getActiveSession()
    if session is None and (connect := sys.modules.get("pyspark.sql.connect.session")):
        session = connect.SparkSession.getActiveSession()
    if session is None:
        raise ValueError(f"{what}: there is no active SparkSession; create one first")
    return Session(session)
