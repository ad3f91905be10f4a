"""Spark's own Bloom filters, bit for bit: `org.apache.spark.util.sketch.BloomFilter`, which its SQL
has inside under the names `bloom_filter_agg` and `might_contain`.

A cluster without petal can so ask a filter that petal made, and petal one that Spark made.
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

_FORMATS = ["spark-v1", "spark-v2"]


def to_spark_bloom(
    keys: Iterable[Any], capacity: int, rate: float = 0.01, *, hashed: bool = True, version: int = 2
) -> bytes:
    """The bytes of Spark's Bloom filter of `keys`, as Spark itself would write them.

    With `hashed`, what goes in is `xxhash64(key)`, as SQL asks for it: `might_contain(filter,
    xxhash64(column))`, for `might_contain` takes nothing but `bigint`. Without, the keys as they
    are: for `might_contain(filter, column)` of `bigint`s from 0, and for the JVM's
    `mightContainString` and `mightContainBinary`.

    `keys` are what `Filter.update` takes, and `capacity` and `rate` what Spark's `create` takes.
    Version 2 is what Spark 4.1 and newer write; version 1 is what older ones read, up to 2^31
    bits. ValueError of another version. Cost: a hash of each key, or two, and some seven bits.
    """
    if version not in (1, 2):
        raise ValueError(f"version {version}: Spark's Bloom filters are of version 1 or 2")
    filter = _petal.ForeignFilter(_FORMATS[version - 1], capacity, rate)
    filter.update(xxhash64(keys) if hashed else keys)
    return filter.to_bytes()


def from_spark_bloom(data: bytes) -> _petal.ForeignFilter:
    """The filter in the bytes that Spark's `bloom_filter_agg` or `writeTo` gave, of version 1 or 2,
    to be asked and filled. FormatError if they are none.

    What `bloom_filter_agg(xxhash64(column), ...)` made is asked with
    `filter.contains_batch(xxhash64(keys))`.
    """
    filter = _petal.Filter.from_bytes(data)
    if not isinstance(filter, _petal.ForeignFilter) or filter.format not in _FORMATS:
        raise _petal.FormatError(
            f"expected a Bloom filter of Spark, found {filter!r}; petal.from_bytes opens it"
        )
    return filter


def xxhash64(keys: Iterable[Any]) -> pa.UInt64Array:
    """What `xxhash64(column)` gives in SQL for these keys, as unsigned numbers; SQL shows the same
    64 bits with a sign. Text and binary as they are, whole numbers as `bigint`s. Nulls, which SQL
    gives 42, are left out, as no keys."""
    hashes = _petal.spark_xxhash64(keys)
    return pa.Array.from_buffers(pa.uint64(), len(hashes) // 8, [None, pa.py_buffer(hashes)])


def sql_extension(folder: str | os.PathLike[str]) -> Path:
    """Compiles the extension that adds `might_contain` and `bloom_filter_agg` to Spark's SQL, and
    tells the path of its jar in `folder`:

        SparkSession.builder
            .config("spark.jars", petal.spark.sql_extension("/some/folder"))
            .config("spark.sql.extensions", "petal.spark.BloomFunctions")

    Both are internal to Spark, which promises nothing of them: compile anew for each version.
    Needs a JDK (`javac`, on the PATH or in JAVA_HOME) and takes some seconds. OSError without one,
    or with what the compiler says.
    """
    import pyspark

    java_home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=f"{java_home}/bin" if java_home else None)
    if javac is None:
        raise FileNotFoundError(
            "no javac on the PATH or in JAVA_HOME; install a JDK 17 or newer to compile with"
        )
    home = Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0])
    jar = Path(folder).resolve() / "petal-spark.jar"
    source = Path(__file__).with_name("BloomFunctions.java")
    with tempfile.TemporaryDirectory() as classes:
        _run(javac, "--release", "17", "-nowarn", "-cp", f"{home}/jars/*", "-d", classes, source)
        # A jar is a zip, and needs nothing else in it.
        made = shutil.make_archive(f"{classes}/petal-spark", "zip", classes, "petal")
        jar.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, jar)
    return jar


def _run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{words[0]} failed: {done.stderr.strip()}")
