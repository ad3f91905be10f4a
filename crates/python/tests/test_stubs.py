"""The stubs match the extension module, and mypy accepts code that uses the package."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import petal
import pytest
from petal import _names

ROOT = Path(__file__).resolve().parents[3]

USE = """
import datetime
import decimal
import uuid

import duckdb
import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import petal
import petal.duckdb
import polars as pl

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
answers: list[bool] = one.contains_batch(["a", 5, b"c"]) + one.contains_batch(key for key in "abc")
answers += one.contains_batch({"a"}) + one.contains_batch(("a", "b"))
new_ones: list[bool] = one.add_batch(["a", 5, b"c"])
new_array: np.ndarray = one.add_batch(np.array(["a"]))
array: np.ndarray = one.contains_batch(np.array(["a"]))
pandas_answers: pd.Series = one.contains_batch(pd.Series(["a"]))
polars_answers: pl.Series = one.contains_batch(pl.Series(["a"]))
subset: bool = one <= both and one.issubset(both) and one.isdisjoint(both)
one.update([("a", 1), uuid.uuid4(), datetime.date.today(), decimal.Decimal(1)])

@petal.seen_before(1000)
def visit(url: str, depth: int = 0) -> int:
    return depth

visited = visit("a", depth=2)
seen: petal.Filter = visit.filter
any_type: petal.Filter = petal.load("one.petal", format="guava", key_type="int64")
petal.duckdb.register(duckdb.connect(), "is_known", any_type, column_type="BIGINT")
petal.build("a", "f", type="static-fuse")


class PyarrowArray:
    # What the stubs of pyarrow have of `pyarrow.Array`.
    def to_pylist(self) -> list[str]:
        return []

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return 1, 2


whatever: int = one.contains_batch(PyarrowArray())
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


WRONG = """
import petal

one = petal.BloomFilter(10)
numbers: list[int] = one.contains_batch(["a"])
text: str = one.issubset(one)
one.add(1.5)
petal.dedup("a", column=1.5)

@petal.seen_before(10)
def visit(url: str) -> int:
    return 1

visit(5)
petal.build("a", "f", type="blooom")
petal.open("f", format="gvava")
petal.load("f", key_type="int63")
petal.check("f", "a", format="gvava")
petal.ForeignFilter("gvava", 10)
petal.count("a", sort="counts")
"""


def test_wrong_types_are_found(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    run = [sys.executable, "-m", "mypy", "--strict", "wrong.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line}
    assert lines == {"5", "6", "7", "8", *(str(line) for line in range(14, 21))}, done.stdout


@pytest.mark.parametrize(("use", "names"), [
    (lambda name: petal.build("a", "f", type=name), get_args(_names.FilterType)),
    (lambda name: petal.load("f", format=name), get_args(_names.Format)),
    (lambda name: petal.load("f", key_type=name), get_args(_names.KeyType)),
])  # fmt: skip
def test_names_for_type_checkers_are_those_of_the_library(use, names):
    with pytest.raises(ValueError, match="expected one of") as error:
        use("?")
    listed = re.search("expected one of (.*), found", str(error.value))[1]
    assert sorted(listed.split(", ")) == sorted(names)


def test_the_package_passes_strict_mypy(tmp_path):
    package = ROOT / "crates/python/python/petal"
    run_module(tmp_path, "mypy", "--config-file", str(ROOT / "crates/python/pyproject.toml"), str(package))
