"""The numbers on the pages and where each comes from: `docs/numbers.toml`.

The list has a table for each page. A key is a quotation from the page, its value a source, or one source for each
number of the quotation:

| source | checked |
|---|---|
| an expression of result files, such as `engines.wall_s(work='wc') / 2` | its value rounds to the number, in the unit that the page prints |
| an expression of mathematics, such as `10 * ln(2)` | the same |
| a comparison, such as `lab('bitmap', 'memory') < 100` | it is true |
| `console` | a block of code on the page has the number |
| `given` | nothing: the reader, a command or a definition in the text chooses it, such as a rate of 1 % |
| `PATH: TEXT` | the file has the text, which defines a limit, a default or the size of a thing |
| `https://…` | nothing: another project states the number there |

The table `files` names the result files of the expressions. A name with `*` is the newest of these files. The
quotations in `everywhere` may be on any page.

Numbers are those with a unit or with decimals, and all in tables. Code has none: the tests of the pages run it. The
tables and plots between markers have none: they are written from the rows. The pages of the reference define formats,
limits and defaults, which the tests of the program and of the readers check; of them only times, ratios and speeds are
numbers. A Chinese page has the numbers of its English counterpart.
"""

from __future__ import annotations

import math
import re
import statistics
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import rows
from .page import Number, Page, key

LIST = "docs/numbers.toml"
# Pages that only link others, and pages that include a file of another folder.
WITHOUT = {"docs/SUMMARY.md", "docs/changelog.md", "docs/contributing.md", "docs/design/architecture.md"}
# The counterparts of the first two may repeat what is on any of them, as in crates/cli/tests/counterparts.rs.
ENTRANCES = ["README.md", "docs/introduction.md", "docs/two-huge-files.md"]


class Column:
    """A column of a result file: called with conditions, the median of the matching rows."""

    def __init__(self, file: ResultFile, name: str) -> None:
        self.file = file
        self.name = name

    def all(self, **wanted: object) -> list[float]:
        found = [row[self.name] for row in self.file.rows if all(same(row[name], is_) for name, is_ in wanted.items())]
        if not found:
            raise ValueError(f"{self.file.path.name} has no row with {wanted}")
        return [float(value) for value in found]

    def __call__(self, **wanted: object) -> float:
        return statistics.median(self.all(**wanted))


class ResultFile:
    """A result file; an attribute is a column. Called with a case and a figure, its `value`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = rows.read(path)[1]

    def __getattr__(self, name: str) -> Column:
        return Column(self, name)

    def __call__(self, case: str, figure: str, **wanted: object) -> float:
        return Column(self, "value")(case=case, figure=figure, **wanted)


def same(text: str, wanted: object) -> bool:
    return text == wanted if isinstance(wanted, str) else text != "" and float(text) == wanted


# The names of an expression besides the files. Python itself has no others in `eval`.
NAMES: dict[str, Any] = {name: getattr(math, name) for name in ("log2", "log10", "exp", "expm1", "sqrt", "comb")}
NAMES |= {"ln": math.log, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
NAMES |= {"median": statistics.median, "stdev": statistics.stdev, "__builtins__": {}}
NAMES |= {"min": min, "max": max, "sum": sum, "range": range, "round": round, "zip": zip}
# Quotations with one source for all of their numbers, or one for each.
Sources = dict[str, str | list[str]]
DEFINITION = re.compile(r"(?P<path>[\w./-]+\.\w+): (?P<text>.+)")


class List:
    """The list of the numbers. Its expressions are code, as the rest of the repository is."""

    def __init__(self, text: str) -> None:
        content = tomllib.loads(text)
        self.names = NAMES | {name: ResultFile(rows.newest(pattern)) for name, pattern in content.pop("files").items()}
        self.everywhere: Sources = content.pop("everywhere")
        self.pages: dict[str, Sources] = content

    def why_not(self, page: Page, number: Number, source: str) -> str | None:
        """Returns why a number cannot come from a source."""
        if source == "given" or source.startswith("https://"):
            return None
        if source == "console":
            is_shown = number.key() in page.in_code or (number.unit == "%" and key(number.value / 100) in page.in_code)
            return None if is_shown else "no block of code on the page has it"
        if found := DEFINITION.fullmatch(source):
            text = (rows.ROOT / found["path"]).read_text()
            return None if found["text"] in text else f"{found['path']} has no `{found['text']}`"
        try:
            value = eval(source, self.names)
        except (ArithmeticError, KeyError, NameError, SyntaxError, TypeError, ValueError) as error:
            return f"`{source}`: {error!r}"
        if isinstance(value, bool):
            return None if value else f"`{source}` is false"
        return None if number.is_near(value) else f"`{source}` is {value:.6g}"

    def problems(self, page: Page) -> Iterator[str]:
        """Yields what is wrong with the entries of a page, and its numbers without one."""
        covered: set[int] = set()
        of_page = self.pages.get(page.path, {})
        for quotation, source in (self.everywhere | of_page).items():
            # A place in code or between markers has no numbers.
            places = [found for found in page.places(quotation) if found]
            if not places and quotation in of_page:
                yield f"{page.path}: no longer has this text, or no number in it: {quotation}"
            for found in places:
                sources = source if isinstance(source, list) else [source] * len(found)
                if len(sources) != len(found):
                    texts = ", ".join(number.text for number in found)
                    yield f"{page.path}: {quotation}: {len(sources)} sources for the numbers {texts}"
                    continue
                for number, its_source in zip(found, sources, strict=True):
                    covered.add(number.start)
                    if problem := self.why_not(page, number, its_source):
                        yield f"{page.path}:{page.line(number.start)}: {number.text}: {problem}"
        for number in page.numbers:
            if number.start not in covered:
                around = page.text[max(number.start - 40, 0) : number.start + len(number.text) + 40]
                yield f"{page.path}:{page.line(number.start)}: {number.text}: not in {LIST}: {around.strip()}"


def read(path: str) -> Page:
    return Page(path, (rows.ROOT / path).read_text())


def paths() -> list[str]:
    docs = (path.relative_to(rows.ROOT).as_posix() for path in sorted((rows.ROOT / "docs").glob("**/*.md")))
    return ["README.md", "README.zh-CN.md", *(path for path in docs if path not in WITHOUT)]


def counterpart(path: str) -> str | None:
    """Returns the English page of a Chinese one."""
    if path == "README.zh-CN.md":
        return "README.md"
    return path.replace("docs/zh/", "docs/") if path.startswith("docs/zh/") else None


def unknown(chinese: Page, english: list[Page]) -> Iterator[str]:
    """Yields the numbers of a Chinese page that its English counterpart does not have, or not in one row."""
    known = [number for page in english for number in page.all_numbers]
    keys, with_unit = {number.key() for number in known}, {(number.key(), number.unit) for number in known}
    for number in chinese.numbers:
        # Small whole numbers are also in sentences that are not about them.
        is_small = number.key() < 10 and number.key() % 1 == 0 and number.unit != ""
        if (number.key(), number.unit) not in with_unit if is_small else number.key() not in keys:
            yield f"{chinese.path}:{chinese.line(number.start)}: {number.text}: not in {english[0].path}"
    known_rows = [row for page in english for row in page.rows(page.all_numbers).values()]
    for line, row in chinese.rows(chinese.numbers).items():
        if not any(row <= other for other in known_rows):
            yield f"{chinese.path}:{line}: no row of {english[0].path} has these numbers"


def problems() -> list[str]:
    """Returns everything that is wrong with the list and the pages, each with its place."""
    the_list = List((rows.ROOT / LIST).read_text())
    pages = {path: read(path) for path in paths()}
    found = [f"{LIST}: no page {path}" for path in the_list.pages if path not in pages]
    for quotation in the_list.everywhere:
        if not any(any(page.places(quotation)) for page in pages.values()):
            found.append(f"{LIST}: no page has this text and a number in it: {quotation}")
    for path, page in pages.items():
        english = counterpart(path)
        if english is None:
            found += the_list.problems(page)
        elif english in pages:
            others = ENTRANCES if english in ENTRANCES[:2] else []
            found += unknown(page, [pages[name] for name in dict.fromkeys([english, *others])])
    return found
