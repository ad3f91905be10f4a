"""Results of a batch have the type of the keys' library, in several versions of the libraries."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import petal
import pyarrow as pa
import pytest
from environments import python_with

SCRIPT = Path(__file__).with_name("masks.py")

#: Versions beside the newest ones, which this environment has.
OTHERS = {
    "pandas 2, NumPy 1": (["pandas==2.2.3", "numpy==1.26.4", "pyarrow==17.0.0"], "pyarrow"),
    "pandas 3, NumPy 2, no pyarrow": (["pandas==3.0.0", "numpy==2.0.2"], None),
}


def check(python, *libraries):
    command = [python, SCRIPT, *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_results_have_the_librarys_type(library):
    check(sys.executable, library)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("versions", OTHERS)
def test_results_with_other_library_versions(versions):
    packages, arrow = OTHERS[versions]
    check(python_with(*packages), "numpy", "pandas", *filter(None, [arrow]))


def test_mask_inverts_and_converts():
    class OnlyArrow:
        def __arrow_c_array__(self, requested_schema=None):
            return pa.array(["a", "b", None]).__arrow_c_array__(requested_schema)

    one = petal.BloomFilter(100, 1e-9)
    one.add("a")
    mask = one.contains_batch(OnlyArrow())
    assert isinstance(mask, petal.Mask)
    assert list(~mask) == [False, True, True] and ~~mask == mask
    assert np.asarray(mask).tolist() == [True, False, False] and np.asarray(mask).dtype == bool
    assert np.array(mask, "u1").tolist() == [1, 0, 0]
    assert np.arange(3)[np.asarray(~mask)].tolist() == [1, 2]
    with pytest.raises(ValueError, match="copy=True"):
        np.array(mask, copy=False)

    import pandas as pd

    df = pd.DataFrame({"n": [0, 1, 2]})
    assert df.assign(seen=mask)["seen"].tolist() == [True, False, False]
    assert df[np.asarray(mask)]["n"].tolist() == [0]
