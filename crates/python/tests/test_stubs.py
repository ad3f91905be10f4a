"""The stubs say what the extension module has, and type checkers accept its use."""

import subprocess
import sys

USE = """
import petal

one = petal.BloomFilter(1000, memory="1M")
new: bool = one.add("a")
one |= petal.BloomFilter(1000)
found: bool = 5 in one and b"a" in one
both: petal.BloomFilter = one | one.copy()
frozen: petal.BloomFilter = petal.CountingBloomFilter(10).freeze()
any_type: petal.Filter = petal.load("one.petal", format="guava", keys="int64")
"""


def mypy(tmp_path, *words):
    run = [sys.executable, "-m", *words]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_what_is_there(tmp_path):
    mypy(tmp_path, "mypy.stubtest", "petal._petal")


def test_code_that_uses_the_package_passes_strictly(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    mypy(tmp_path, "mypy", "--strict", "use.py")
