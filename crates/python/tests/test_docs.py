"""The Python code of the pages runs, block after block, in a temporary folder."""

import doctest
import re
from pathlib import Path

import petal
import pytest

ROOT = Path(__file__).resolve().parents[3]
# docs/guides/python-files.md is tested in test_engine.py, because it needs tqdm.
PAGES = ["README.md", "docs/guides/python.md"]


@pytest.mark.parametrize("page", PAGES)
def test_code_of_pages_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    blocks = list(re.finditer(r"(?<! -->\n)^```python\n(.*?)^```$", text, re.M | re.S))
    assert blocks, f"{page} has no Python code"
    names = {"__name__": "page"}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block.group(1), page, "exec")
        exec(code, names)


def test_example_of_the_package_docstring_runs():
    assert doctest.testmod(petal).attempted and not doctest.testmod(petal).failed
