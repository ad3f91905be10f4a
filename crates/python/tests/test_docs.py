"""Every block of Python in the pages runs, in a folder of its own, one after the other."""

import doctest
import re
from pathlib import Path

import petal
import pytest

ROOT = Path(__file__).resolve().parents[3]
# docs/python-files.md has a test of its own, which knows what else it wants.
PAGES = ["README.md", "docs/python.md"]


@pytest.mark.parametrize("page", PAGES)
def test_what_pages_show_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S))
    assert blocks, f"{page} shows no Python"
    names = {"__name__": "page"}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block.group(1), page, "exec")
        exec(code, names)


def test_the_packages_example_is_true():
    assert doctest.testmod(petal).attempted and not doctest.testmod(petal).failed
