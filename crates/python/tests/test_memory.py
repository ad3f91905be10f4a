"""If the system refuses memory, every call raises `MemoryError`: the process neither ends nor panics."""

import json
import os
import subprocess
import sys

import pytest

#: Runs expressions, each with a limit of the address space: MEBIBYTES more than at that time. Prints the name of each
#: before, and the result after it. SETUP makes the names that it uses.
SCRIPT = """
import json, pickle, resource, sys
import numpy as np, pandas as pd, pyarrow as pa, petal
from petal import _petal

def size():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

def run(setup, use, mebibytes):
    names = dict(globals())
    exec(setup, names)
    resource.setrlimit(resource.RLIMIT_AS, (size() + (mebibytes << 20), resource.RLIM_INFINITY))
    try:
        eval(use, names)
    except BaseException as error:
        return "MemoryError" if isinstance(error, MemoryError) else repr(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    return "no error"

for name, case in json.load(sys.stdin).items():
    print(name, end="\t", flush=True)
    print(run(*case), flush=True)
"""

BLOOM = "one = petal.BloomFilter(bits=8 * 40_000_000, probes=4)"
GUAVA = "one = petal.ForeignFilter('guava', 32_000_000)"
SMALL = "one = petal.BloomFilter(10); one.add(0)"
KEYS = SMALL + "; keys = np.arange(3_000_000, dtype='u8')"
ZEROS = SMALL + "; keys = np.zeros(3_000_000, 'u1')"
ARROW = SMALL + "; keys = pa.array(np.zeros(1_000_000, 'u1'))"
LONG = SMALL + "; key = bytearray(30_000_000)"
MASK = """
class Producer:
    def __arrow_c_array__(self, requested_schema=None):
        return keys.__arrow_c_array__()
mask = one.contains_batch(Producer())
"""

CASES = {
    "constructor": ("", "petal.BloomFilter(bits=8 * 40_000_000, probes=4)", 16),
    "to_bytes": (BLOOM, "one.to_bytes()", 16),
    "to_bytes, second copy": (BLOOM, "one.to_bytes()", 60),
    "pickle": (BLOOM, "pickle.dumps(one)", 16),
    "pickle, second copy": (BLOOM, "pickle.dumps(one)", 60),
    "copy": (BLOOM, "one.copy()", 16),
    "to_bytes of another program's filter": (GUAVA, "one.to_bytes()", 16),
    "copy of another program's filter": (GUAVA, "one.copy()", 16),
    "bytes of a filter": (BLOOM + "; data = one.to_bytes(); del one", "petal.from_bytes(data)", 16),
    "buffer of a filter": (BLOOM + "; data = bytearray(one.to_bytes()); del one", "petal.from_bytes(data)", 60),
    "static, hashes": (KEYS, "petal.StaticFilter(keys)", 16),
    "static, sorted": (KEYS, "petal.StaticFilter(keys)", 48),
    "static fuse": (KEYS, "petal.StaticFilter(keys, fuse=True)", 48),
    "cascade, members": (KEYS, "petal.FilterCascade(keys, [])", 16),
    "cascade, others": (KEYS, "petal.FilterCascade(['a'], keys)", 16),
    "cascade, equal keys": (KEYS, "petal.FilterCascade(keys, keys)", 64),
    "list": (SMALL, "one.contains_batch(range(1_500_000))", 4),
    "NumPy": (ZEROS, "one.contains_batch(keys)", 2),
    "pandas": (ZEROS + "; keys = pd.Series(keys)", "one.contains_batch(keys)", 2),
    "Arrow": (SMALL + "; keys = pa.nulls(20_000_000)", "one.contains_batch(keys)", 1),
    "mask": ("global keys\n" + ARROW + MASK, "list(mask)", 2),
    "key": (LONG, "one.add(key)", 16),
    "tuple": (LONG + "; key = (bytes(key), b'')", "one.add(key)", 16),
    "call": (LONG + "; call = petal.seen_before(one)(len)", "call(key)", 16),
    "fingerprints": ("keys = pa.array(np.zeros(2_000_000, 'i8'))", "_petal.fingerprints([keys], b'0' * 16)", 16),
    "hashes of Spark": (KEYS, "_petal.spark_xxhash64(keys)", 16),
    "hashes of Spark, second copy": (KEYS, "_petal.spark_xxhash64(keys)", 44),
}  # fmt: skip


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    run = [sys.executable, "-c", SCRIPT]
    # Freed memory returns to the system, so that a later case cannot use it.
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(run, input=json.dumps(CASES), env=env, capture_output=True, text=True, check=False)
    return {"": done.stderr} | dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("name", CASES)
def test_refused_memory_is_an_error(results: dict[str, str], name: str) -> None:
    assert results.get(name) == "MemoryError", results[""][-2000:]


def test_nothing_is_printed(results: dict[str, str]) -> None:
    assert results[""] == ""


def test_thread_that_cannot_start_is_an_error(tmp_path) -> None:
    (tmp_path / "a").write_text("a\n")
    # Root has no limit of processes.
    script = """
import os, resource, sys, petal
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    petal.dedup(sys.argv[1], count=True)
except MemoryError as error:
    print(error)
"""
    tmp_path.chmod(0o755)
    run = [sys.executable, "-c", script, str(tmp_path / "a")]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd="/")
    assert "cannot start a thread" in done.stdout and done.stderr == "", (done.stdout, done.stderr[-500:])
