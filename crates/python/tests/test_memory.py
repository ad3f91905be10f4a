"""If the system refuses memory, every call raises `MemoryError`: the process neither ends nor panics."""

import resource
import subprocess
import sys

import pytest

#: Runs an expression with a limit of the address space: MEBIBYTES more than now. Names of SETUP are made before.
SCRIPT = """
import pickle, resource, sys
import numpy as np, pandas as pd, pyarrow as pa, petal
from petal import _petal

setup, use, mebibytes = sys.argv[1:]
exec(setup)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (int(mebibytes) << 20),) * 2)
try:
    eval(use)
except MemoryError as error:
    print(type(error).__name__)
else:
    print("no error")
"""

BLOOM = "one = petal.BloomFilter(bits=8 * 100_000_000, probes=4)"
BATCH = "one = petal.BloomFilter(10); one.add(5)"
NUMBERS = BATCH + "; keys = np.zeros(30_000_000, 'u8')"

CASES = {
    "to_bytes": (BLOOM, "one.to_bytes()", 40),
    "to_bytes without a second copy": (BLOOM, "one.to_bytes()", 140),
    "pickle": (BLOOM, "pickle.dumps(one)", 40),
    "pickle without a second copy": (BLOOM, "pickle.dumps(one)", 140),
    "copy": (BLOOM, "one.copy()", 40),
    "to_bytes of another program's filter": ("one = petal.ForeignFilter('guava', 80_000_000)", "one.to_bytes()", 40),
    "copy of another program's filter": ("one = petal.ForeignFilter('guava', 80_000_000)", "one.copy()", 40),
    "constructor": ("", "petal.BloomFilter(bits=8 * 100_000_000, probes=4)", 40),
    "static": ("", "petal.StaticFilter(range(10**8))", 40),
    "static, sort": ("", "petal.StaticFilter(range(10**7))", 140),
    "static fuse": ("", "petal.StaticFilter(range(10**7), fuse=True)", 140),
    "cascade members": ("", "petal.FilterCascade(range(10**8), [])", 40),
    "cascade others": ("", "petal.FilterCascade(['a'], range(10**8))", 40),
    "cascade with equal keys": ("", "petal.FilterCascade(range(5_000_000), range(5_000_000))", 140),
    "results as a list": (BATCH, "one.contains_batch(range(20_000_000))", 40),
    "results of NumPy": (NUMBERS, "one.contains_batch(keys)", 10),
    "results of Arrow": (NUMBERS + "; keys = pa.array(keys)", "one.contains_batch(keys)", 1),
    "results of pandas": (NUMBERS + "; keys = pd.Series(keys)", "one.contains_batch(keys)", 10),
    "bits": (BATCH, "one.contains_batch(iter(lambda: 5, 0))", 8),
    "list of a mask": (NUMBERS + "; mask = one.contains_batch(pa.table({'k': keys}).__arrow_c_stream__ and "
                       "type('S', (), {'__arrow_c_array__': lambda self, s=None: pa.array(keys).__arrow_c_array__()})())",
                       "list(mask)", 40),
    "bytes of a buffer": ("data = bytearray(100_000_000)", "petal.from_bytes(data)", 40),
    "a key": (BATCH + "; key = bytearray(100_000_000)", "one.add(key)", 40),
    "a tuple": (BATCH + "; key = b'a' * 60_000_000", "one.add((key, key))", 40),
    "a call": (BATCH + "; key = b'a' * 60_000_000; call = petal.seen_before(one)(len)", "call(key)", 40),
    "fingerprints": ("keys = pa.array(np.zeros(10_000_000, 'i8'))", "_petal.fingerprints([keys], b'0' * 16)", 40),
    "hashes of Spark": ("", "_petal.spark_xxhash64(range(10**8))", 40),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("name", CASES)
def test_refused_memory_is_an_error(name: str) -> None:
    setup, use, mebibytes = CASES[name]
    run = [sys.executable, "-c", SCRIPT, setup, use, str(mebibytes)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout in ("MemoryLimitError\n", "MemoryError\n") and done.stderr == "", (done.stdout, done.stderr[-500:])
    assert done.returncode == 0


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
