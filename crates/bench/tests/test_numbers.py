"""Every number on the pages has a source, and the list of the sources on invented pages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import numbers, rows
from figures.page import Page

PAGE = """# Title

It takes 2.4 s, a third of the time, and 300 MiB
for 20 million keys: see `-m 128M` and 7.5 bits.

| way | ns | bytes |
|---|--:|--:|
| petal | 12 | 1,234 |

```console
$ petal plan -n 2e7    # 99 s
```

<!-- figures: x -->
| y | 5 s |
<!-- /figures -->
"""
ROWS = """tool,case,figure,wall_s,value
petal,a,bytes,2.3,1234
petal,a,bytes,2.43,1234
petal,b,ns,9,12.3
wc,b,ns,7.3,
"""
SOURCES = {
    "2.4 s": "\"times.wall_s(tool='petal', case='a')\"",
    "a third of": "\"times.wall_s(case='a') / times.wall_s(tool='wc')\"",
    "300 MiB": '"limit.rs: MAX: u64 = 300 << 20"',
    "20 million": '"console"',
    "7.5 bits": '"10 * ln(2) / ln(2.52)"',
    "| 12 | 1,234 |": """["times('b', 'ns', tool='petal')", "times('a', 'bytes') > 1000"]""",
}


@pytest.fixture(autouse=True)
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an invented repository, except for the tests of the real one."""
    if "real" in request.node.name:
        return
    results = tmp_path / "results/machine"
    results.mkdir(parents=True)
    (results / "2026-01-01-times.csv").write_text(ROWS.replace("2.4", "9.9"))
    (results / "2026-01-02-times.csv").write_text(ROWS)
    (tmp_path / "limit.rs").write_text("const MAX: u64 = 300 << 20;\n")
    monkeypatch.setattr(rows, "ROOT", tmp_path)


def problems(sources: dict[str, str], page: str = PAGE) -> list[str]:
    lines = "\n".join(f"'{quotation}' = {source}" for quotation, source in sources.items())
    files = "[files]\ntimes = 'results/*/????-??-??-times.csv'\n[everywhere]\n"
    return list(numbers.List(f"{files}['p.md']\n{lines}").problems(Page("p.md", page)))


def test_real_pages_have_no_number_without_a_source():
    assert numbers.problems() == []


def test_numbers_have_sources():
    assert problems(SOURCES) == []


@pytest.mark.parametrize("quotation", SOURCES)
def test_number_without_an_entry_is_found(quotation: str):
    found = problems({text: source for text, source in SOURCES.items() if text != quotation})
    assert found and all("not in docs/numbers.toml" in problem for problem in found)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("2.4 s", "2.5 s", "no longer has this text, or no number in it: 2.4 s"),
        ("300 MiB", "many", "no longer has this text, or no number in it: 300 MiB"),
        ("-n 2e7", "-n 3e7", "p.md:4: 20 million: no block of code on the page has it"),
        ("7.5 bits", "7.5 bits or 7.5 bytes", "p.md:4: 7.5 bytes: not in docs/numbers.toml"),
    ],
)
def test_changed_page_is_found(old: str, new: str, problem: str):
    assert any(problem in found for found in problems(SOURCES, PAGE.replace(old, new)))


@pytest.mark.parametrize(
    ("quotation", "source", "problem"),
    [
        ("2.4 s", '"times.wall_s(tool=\'wc\')"', "p.md:3: 2.4 s: `times.wall_s(tool='wc')` is 7.3"),
        ("2.4 s", '"times.wall_s(tool=\'zet\')"', "has no row with {'tool': 'zet'}"),
        ("2.4 s", '"times.walls(tool=\'wc\')"', "KeyError('walls')"),
        ("2.4 s", '"__import__(\'os\')"', "NameError"),
        ("300 MiB", '"limit.rs: 301"', "limit.rs has no `301`"),
        ("7.5 bits", '"7.56"', "7.5 bits: `7.56` is 7.56"),
        ("| 12 | 1,234 |", '["12", "times(\'a\', \'bytes\') > 2000"]', "is false"),
        ("| 12 | 1,234 |", '["12"]', "1 sources for the numbers 12, 1,234"),
    ],
)
def test_wrong_source_is_found(quotation: str, source: str, problem: str):
    assert any(problem in found for found in problems(SOURCES | {quotation: source}))


def found(text: str, path: str = "p.md") -> list[str]:
    return [number.text for number in Page(path, text).numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 to 9 % of 64-bit keys, 1.5 × or 3 times", ["5", "9 %", "64-bit", "1.5 ×", "3 times"]),
        ("version 9.22.0 of x86-64 on 2026-11-28, UTF-8, k = 7, 400 files", []),
        ("1 in 128, 20.9 million lines, 5·10⁻¹⁵ s, 1e-4 %", ["128", "20.9 million", "5·10⁻¹⁵ s", "1e-4 %"]),
        ("two thirds, twice the time, half of them, five billion", ["two thirds", "twice", "five billion"]),
        ("| 1/16 | `8` | 2⁶⁴ | $1,024.5 |", ["16", "2⁶⁴", "1,024.5"]),
        ("50 亿行，1.3 GB，3.2 倍，16 字节，7 位", ["50 亿", "1.3 GB", "3.2 倍", "16 字节", "7 位"]),
        ("3 lines per second, [5 s](a-6-s.md), <code>7 s</code>", ["3", "5 s"]),
        ("takes 4.4, with Rust 1.89, glibc 2.17, [Scrapy](x) 2.11 or later", ["4.4"]),
    ],
)
def test_numbers_with_a_unit_or_decimals_and_in_tables_are_found(text: str, expected: list[str]):
    assert found(text) == expected


def test_numbers_of_the_reference_are_speeds():
    assert found("| 4096 | 16 bytes | 2.5 ms | twice the time |", "docs/reference/x.md") == ["2.5 ms"]


@pytest.mark.parametrize(
    ("text", "value", "is_near"),
    [("2.4 s", 2.449, True), ("2.4 s", 2.46, False), ("40 s", 40.4, True), ("40 s", 41, False)]
    + [("5,300 s", 5349, True), ("5,300 s", 5351, False), ("3·10⁶ s", 3.4e6, True), ("3·10⁶ s", 3.6e6, False)]
    + [("a third", 0.3, True), ("a third", 0.4, False), ("twice the time", 2.2, True), ("twice the time", 2.5, False)],
)
def test_values_round_to_the_number(text: str, value: float, is_near: bool):
    (number,) = Page("p.md", text).numbers
    assert number.is_near(value) == is_near


@pytest.mark.parametrize(
    ("chinese", "problem"),
    [
        ("耗时 2.4 秒，2000 万个键，7.5 位", None),
        ("耗时 2.5 秒", "2.5 秒: not in p.md"),
        ("| petal | 12 | 1,234 |", None),
        ("| petal | 12 | 7.5 |", "no row of p.md has these numbers"),
        ("2 倍", "2 倍: not in p.md"),
    ],
)
def test_chinese_page_has_the_numbers_of_the_english_one(chinese: str, problem: str | None):
    problems = list(numbers.unknown(Page("zh.md", chinese), [Page("p.md", PAGE)]))
    assert problems == [] if problem is None else problem in problems[0]
