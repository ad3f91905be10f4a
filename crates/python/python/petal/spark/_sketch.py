"""Bloom filters in the format of Spark's `org.apache.spark.util.sketch.BloomFilter`.

Spark's SQL uses them in its internal functions `bloom_filter_agg` and `might_contain`. A cluster
without petal can look up keys in a filter of petal, and petal in a filter of Spark.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from petal import _petal
from petal._names import Format

_FORMATS: list[Format] = ["spark-v1", "spark-v2"]


def to_spark_bloom(
    keys: Iterable[Any], capacity: int, fpr: float = 0.01, *, hashed: bool = True, version: int = 2
) -> bytes:
    """Returns the bytes of Spark's Bloom filter of `keys`, as Spark itself writes them.

    - `keys`: the keys that `Filter.update` accepts.
    - `capacity`, `fpr`: the arguments of Spark's `BloomFilter.create`.
    - `hashed`: insert `xxhash64(key)`, for `might_contain(filter, xxhash64(column))` in SQL, because
      `might_contain` accepts only `bigint`. Otherwise insert the keys, for `might_contain(filter,
      column)` of `bigint`s from 0, and for the JVM's `mightContainString` and
      `mightContainBinary`.
    - `version`: 2 is written by Spark 4.1 and newer; 1 is read by older versions, up to 2^31 bits.

    Cost: one or two hashes per key. Raises `ValueError` for another version.
    """
    if version not in (1, 2):
        raise ValueError(f"version=: expected 1 or 2, found {version}")
    filter = _petal.ForeignFilter(_FORMATS[version - 1], capacity, fpr)
    filter.update(xxhash64(keys) if hashed else keys)
    return filter.to_bytes()


def from_spark_bloom(data: bytes) -> _petal.ForeignFilter:
    """Returns the filter in the bytes of Spark's `bloom_filter_agg` or `writeTo`, version 1 or 2.

    Look up keys in the result of `bloom_filter_agg(xxhash64(column), ...)` with
    `filter.contains_batch(xxhash64(keys))`.

    Raises `FormatError` if the bytes are of another format.
    """
    filter = _petal.from_bytes(data)
    if not isinstance(filter, _petal.ForeignFilter) or filter.format not in _FORMATS:
        raise _petal.FormatError(
            f"expected a Bloom filter of Spark, found {filter!r}; petal.from_bytes opens it"
        )
    return filter


def xxhash64(keys: Iterable[Any]) -> pa.UInt64Array:
    """Returns the hashes that `xxhash64(column)` in SQL returns, as unsigned integers.

    SQL shows the same 64 bits as signed integers. Integers are hashed as `bigint`s. Nulls are left
    out (SQL returns 42 for them).
    """
    hashes = _petal.spark_xxhash64(keys)
    return pa.Array.from_buffers(pa.uint64(), len(hashes) // 8, [None, pa.py_buffer(hashes)])


def sql_extension(folder: str | os.PathLike[str]) -> Path:
    """Compiles the extension that adds `might_contain` and `bloom_filter_agg` to Spark's SQL.

    Returns the path of its jar in `folder`:

        SparkSession.builder
            .config("spark.jars", petal.spark.sql_extension("/some/folder"))
            .config("spark.sql.extensions", "petal.spark.BloomFunctions")

    Both functions are internal to Spark and may change: compile again for each version of Spark.
    Needs a JDK (`javac`, on the PATH or in JAVA_HOME) and takes some seconds.

    Raises `FileNotFoundError` without a JDK, `OSError` with the compiler's messages if it fails.
    """
    import pyspark

    java_home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=f"{java_home}/bin" if java_home else None)
    if javac is None:
        raise FileNotFoundError(
            "no javac on the PATH or in JAVA_HOME; install JDK 17 or newer"
        )
    home = Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0])
    jar = Path(folder).resolve() / "petal-spark.jar"
    source = Path(__file__).with_name("BloomFunctions.java")
    with tempfile.TemporaryDirectory() as classes:
        _run(javac, "--release", "17", "-nowarn", "-cp", f"{home}/jars/*", "-d", classes, source)
        # A jar is a zip file and needs no manifest.
        archive = shutil.make_archive(f"{classes}/petal-spark", "zip", classes, "petal")
        jar.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(archive, jar)
    return jar


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{command[0]} failed: {done.stderr.strip()}")
