"""What docs/spark.md shows runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[4] / "docs/spark.md"


@pytest.mark.parametrize("spark", ["local"], indirect=True)
def test_what_the_page_shows_runs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    names = {"__name__": "page"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), str(PAGE), "exec"), names)
    assert "theirs" in names
