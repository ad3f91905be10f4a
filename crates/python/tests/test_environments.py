"""Pages and extras work in environments with no other packages."""

import subprocess
from pathlib import Path

import pytest
from environments import python_with
from page_code import environment, run_all

ROOT = Path(__file__).resolve().parents[3]
#: Blocks of code with these lines need another library.
LIBRARIES = ["import numpy", "import pyarrow", "import pandas", "import tqdm", "from tqdm"]

DASK = """
from distributed import Client, LocalCluster
import petal.dask

if __name__ == "__main__":
    open("a.txt", "w").write("cherry\\napple\\nplum\\napple\\n")
    open("b.txt", "w").write("apple\\nfig\\ncherry\\n")
    with LocalCluster(2, dashboard_address=None) as cluster, Client(cluster) as client:
        report = petal.dask.common(client, "a.txt", "b.txt", out="both")
    assert (report.kept, report.lines) == (2, 4)
    assert open("both/part-00000000").read() == "cherry\\napple\\n"
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["README.md", "docs/guides/python.md", "docs/guides/python-files.md"])
def test_code_of_pages_runs_without_other_packages(page, tmp_path):
    run_all(python_with(), ROOT / page, tmp_path, *LIBRARIES)


@pytest.mark.timeout(900)
def test_dask_needs_only_the_extra_dask(tmp_path):
    (tmp_path / "job.py").write_text(DASK)
    done = subprocess.run(
        [python_with(extra="dask"), "job.py"],
        cwd=tmp_path, env=environment({}), capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_duckdb_needs_only_the_extra_duckdb(tmp_path):
    run_all(python_with(extra="duckdb"), ROOT / "docs/guides/duckdb.md", tmp_path)
