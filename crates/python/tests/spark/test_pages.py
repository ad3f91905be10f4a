"""The code of docs/guides/spark.md runs with only the packages that it installs."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from page_code import run_all

PAGE = Path(__file__).resolve().parents[4] / "docs/guides/spark.md"
#: Packages that these tests need, and those of `python -m venv`.
TEST_PACKAGES = ["pytest", "pytest-timeout", "pip", "setuptools"]
LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1"}


def closure(name, extras=()):
    """Returns the names of a package and all its dependencies."""
    found = {re.sub(r"[-_.]+", "-", name).lower()}
    for line in metadata.requires(name) or []:
        of_extra = re.search(r"extra == [\"']([^\"']+)", line)
        if (of_extra is None or of_extra[1] in extras) and "sys_platform" not in line:
            wanted = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", line)
            try:
                found |= closure(wanted[1], (wanted[2] or "").split(","))
            except metadata.PackageNotFoundError:
                assert ";" in line, f"{name} needs {line}"
    return found


def test_only_the_packages_of_the_page_are_installed():
    extra = re.search(r"pip install \"\./crates/python\[(\w+)\]\"$", PAGE.read_text(), re.M)[1]
    expected = closure("petal-filters", [extra, "connect"]).union(*map(closure, TEST_PACKAGES))
    names = (package.metadata["Name"] for package in metadata.distributions())
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in names} <= expected


@pytest.mark.timeout(600)
def test_code_of_the_page_runs(tmp_path):
    """Only the environment variable that the page sets is set."""
    assert "export PYSPARK_PYTHON=$PWD/env/bin/python" in PAGE.read_text()
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    run_all(sys.executable, PAGE, tmp_path, PYSPARK_PYTHON=sys.executable, **LOCAL, **java)
    assert (tmp_path / "extension/petal-spark.jar").exists()


@pytest.mark.timeout(300)
def test_executors_need_pyarrow_for_data_frames_only(tmp_path):
    """If data frames succeed without pyarrow one day, the page need not require it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    with pytest.raises(AssertionError, match="No module named 'pyarrow'"):
        run_all(sys.executable, PAGE, tmp_path, PYSPARK_PYTHON=str(tmp_path / "bare/bin/python"), **LOCAL)
    assert (tmp_path / "both/part-00000000").read_text() == "cherry\napple\n"
