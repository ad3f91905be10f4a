"""The stubs match the extension module, and mypy accepts code that uses the package."""

import subprocess
import sys

USE = """
import petal

one = petal.BloomFilter(1000, memory_limit="1M")
new: bool = one.add("a")
one |= petal.BloomFilter(1000)
found: bool = 5 in one and b"a" in one
both: petal.BloomFilter = one | one.copy()
frozen: petal.BloomFilter = petal.CountingBloomFilter(10).freeze()
report: petal.Report = petal.common("a", "b", column=["url", 2], separator=";", at_least=1)
first: bytes = next(iter(report))
line, number = next(iter(petal.count("a", json_key="/url", top=3)))
top: tuple[bytes, int] = line, number
any_type: petal.Filter = petal.load("one.petal", format="guava", key_type="int64")
"""


def run_module(tmp_path, *args):
    run = [sys.executable, "-m", *args]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_match_the_extension(tmp_path):
    run_module(tmp_path, "mypy.stubtest", "petal._petal")


def test_code_using_the_package_passes_strict_mypy(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    run_module(tmp_path, "mypy", "--strict", "use.py")
