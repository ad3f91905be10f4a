"""The Python code of the pages runs, block after block, in a temporary folder.

`<!-- not run: REASON -->` before a block excludes it.
"""

import doctest
import re
import textwrap
from pathlib import Path

import petal
import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"(?<! -->\n)^( *)```python\n(.*?)^\1```$", re.M | re.S)
#: Pages whose code other tests run, with the packages that it needs.
ELSEWHERE = {
    "docs/guides/python-files.md": "test_engine.py",
    "docs/guides/spark.md": "spark/test_pages.py",
    "docs/guides/python-migration.md": "test_migration.py",
}


def pages_with_code():
    names = ["README.md", "README.zh-CN.md", "crates/python/README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
    paths = [ROOT / name for name in names if (ROOT / name).exists()]
    paths += sorted((ROOT / "docs").rglob("*.md"))
    pages = [str(path.relative_to(ROOT)) for path in paths if BLOCK.search(path.read_text())]
    return [page for page in pages if page not in ELSEWHERE]


@pytest.mark.parametrize("page", pages_with_code())
def test_code_of_pages_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    names = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2))
        code = compile("\n" * line + textwrap.dedent(block.group(2)), page, "exec")
        exec(code, names)


def test_pages_with_code_are_found():
    assert {"README.md", "docs/guides/python.md", "docs/guides/scrapy.md"} <= set(pages_with_code())


@pytest.mark.parametrize("page", ELSEWHERE)
def test_other_tests_name_their_pages(page):
    assert page in (Path(__file__).parent / ELSEWHERE[page]).read_text()


def test_example_of_the_package_docstring_runs():
    assert doctest.testmod(petal).attempted and not doctest.testmod(petal).failed
