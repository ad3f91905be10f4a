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

Numbers are those with a unit, and all in tables. Code has none: the tests of the pages run it. The tables and plots
between markers have none: they are written from the rows. The pages of the reference define formats, limits and
defaults, which the tests of the program and of the readers check; of them only times, ratios and speeds are numbers.
A Chinese page has the numbers of its English counterpart.
"""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median, stdev
from typing import Any

from . import rows

LIST = "docs/numbers.toml"
# Pages that only link others, and pages that include a file of another folder.
WITHOUT = {"docs/SUMMARY.md", "docs/changelog.md", "docs/contributing.md", "docs/design/architecture.md"}
REFERENCE = "docs/reference/"
# The counterparts of the first two may repeat what is on any of them, as in crates/cli/tests/counterparts.rs.
ENTRANCES = ["README.md", "docs/introduction.md", "docs/two-huge-files.md"]

WORDS = ["a", "an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty"]
VALUES = dict(zip(WORDS, [1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 20], strict=True))
PARTS = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
PARTS |= {"twelfth": 12, "twentieth": 20, "hundredth": 100}
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "万": 1e4, "亿": 1e8}
# Units of time and ratio, also on the pages of the reference; and the others.
SPEEDS = {"秒": "s", "毫秒": "ms", "微秒": "µs", "纳秒": "ns", "分钟": "minutes", "倍": "times", "小时": "hours"}
SPEEDS |= {name: name for name in ("s", "ms", "µs", "ns", "minutes", "hours", "times")}
SPEEDS |= {"seconds": "s", "second": "s", "minute": "minutes", "hour": "hours", "×": "times", "fold": "times"}
OTHERS = {"字节": "bytes", "位": "bits", "bit": "bits", "byte": "bytes", "percent": "%"}
OTHERS |= {name: name for name in ("%", "bits", "bytes", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")}
UNITS = SPEEDS | OTHERS

ONE_OF = "|".join
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
DIGITS = r"(?<![A-Za-z0-9_.,^])(?<![A-Za-z0-9]-)(?!1/\d|1 in (?:\d|a ))(?P<digits>(?>\d{1,3}(?:,\d{3})+|\d+)(?:\.\d++)?+)"
POWER = r"(?: ?· ?10(?P<tens>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<power>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|e(?P<e>-?\d+)|\^(?P<hat>\d+))?"
UNIT = ONE_OF(sorted(UNITS, key=len, reverse=True))
SCALED = rf"(?:[ -]?(?P<scale>{ONE_OF(SCALES)}))?(?:[ -]?(?P<unit>{UNIT})(?![A-Za-z]))?"
IN_DIGITS = rf"{DIGITS}{POWER}(?!\.\d|,\d{{3}}){SCALED}(?![A-Za-z0-9_]*[A-Za-z_])"
IN_WORDS = (
    rf"\b(?:(?i:(?P<word>{ONE_OF(WORDS[3:])}))(?:-| )(?:(?P<word_scale>million|billion)|(?P<word_unit>{UNIT})\b)"
    rf"|(?i:(?P<count>an?|one|two|three|four)) (?P<part>{ONE_OF(PARTS)})s?\b|(?i:(?P<twice>twice|half))(?= (?:of )?(?:the|its|that|as|more|less)\b))"
)
NUMBER = re.compile(f"{IN_DIGITS}|{IN_WORDS}")
# Between two numbers with one unit.
JOINED = re.compile(r"(?: to | or | and |, | / |–|-|至|到|～|、)\Z")


@dataclass
class Number:
    """A number on a page, at an offset of its text without line breaks."""

    text: str
    start: int
    value: float
    # One unit of the last digit that counts; None for a word, such as `a third`.
    step: float | None
    scale: float
    unit: str

    def is_measured(self) -> bool:
        return self.unit != "" or self.scale != 1

    def is_near(self, value: float) -> bool:
        """Whether a value in the unit of the page rounds to this number."""
        if self.step is None:
            return abs(value / self.value - 1) <= 0.15
        return abs(value - self.value) <= self.step / 2 * (1 + 1e-9)

    def key(self) -> float:
        return float(f"{self.value * self.scale:.5e}")


def number(found: re.Match) -> Number:
    group = found.groupdict()
    start, text = found.start(), found.group()
    if group["digits"] is None:
        unit = UNITS.get(group["word_unit"] or "", "")
        scale = SCALES.get(group["word_scale"] or "", 1)
        if group["word"]:
            return Number(text, start, VALUES[group["word"].lower()], None, scale, unit)
        if group["twice"]:
            return Number(text, start, 2 if group["twice"].lower() == "twice" else 0.5, None, 1, "times")
        return Number(text, start, VALUES[group["count"].lower()] / PARTS[group["part"]], None, 1, "times")
    digits = group["digits"].replace(",", "")
    value = float(digits)
    if "." in digits:
        step = 10.0 ** -len(digits.split(".")[1])
    else:
        # Zeros at the end may be rounded, but two digits count.
        zeros = len(digits) - len(digits.rstrip("0")) if value else 0
        step = 10.0 ** max(min(zeros, len(digits) - 2), 0)
    if power := group["tens"] or group["e"]:
        factor = 10.0 ** int(power.translate(SUPERSCRIPTS))
        value, step = value * factor, step * factor
    elif power := group["power"] or group["hat"]:
        value = value ** int(power.translate(SUPERSCRIPTS))
        step = value / 1e6
    return Number(text, start, value, step, SCALES.get(group["scale"] or "", 1), UNITS.get(group["unit"] or "", ""))


HIDDEN = [
    r"<!-- figures:.*?<!-- /figures -->",
    r"<!--.*?-->",
    r"^ *(?P<fence>```+).*?^ *(?P=fence) *$",
    r"`[^`\n]+`",
    r"<code>.*?</code>",
    r"\]\([^)\s]*\)",
    r"<[a-z/][^>]*>",
    r"https?://[^\s)>]+",
]


class Page:
    """A page as one line, and its numbers outside code and markers."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.source = text
        visible = text
        for pattern in HIDDEN:
            visible = re.sub(pattern, lambda found: re.sub(r"\S| ", "\0", found[0]), visible, flags=re.S | re.M)
        # The start of each line of the page in the text without line breaks.
        self.starts: list[int] = []
        lines, shown, self.tables = [], [], []
        length = 0
        for line, seen in zip(text.split("\n"), visible.split("\n"), strict=True):
            indent = len(line) - len(line.lstrip())
            line, seen = line.strip() + " ", seen[indent : len(line.rstrip())] + " "
            self.starts.append(length)
            self.tables.append(line.startswith("|"))
            lines.append(line)
            shown.append(seen)
            length += len(line)
        self.text = "".join(lines)
        self.visible = "".join(shown)

    def line(self, start: int) -> int:
        return bisect_right(self.starts, start)

    def places(self, quotation: str) -> Iterator[int]:
        """Yields where a text is on the page: `1 %` is not within `0.1 %`, and `5 s` not within `5 states`."""
        first = r"(?<![\d.,])" if quotation[0].isdigit() else ""
        last = r"(?![A-Za-z\d])" if quotation[-1].isalnum() else ""
        return (found.start() for found in re.finditer(first + re.escape(quotation) + last, self.text))

    @cached_property
    def numbers(self) -> list[Number]:
        """The numbers with a unit, and those in tables."""
        found = [number(match) for match in NUMBER.finditer(self.visible)]
        measured: list[Number] = []
        for one in reversed(found):
            after = self.visible[one.start + len(one.text) :]
            if measured and not one.is_measured():
                follower = measured[-1]
                between = self.visible[one.start + len(one.text) : follower.start]
                if JOINED.fullmatch(between):
                    one.unit, one.scale = follower.unit, follower.scale
            speed = re.match(r" [a-z]+ (?:per|a) second", after) or re.search(r"\b1 in \Z", self.visible[: one.start])
            if speed:
                one.unit = one.unit or "times"
            if self.path.startswith(REFERENCE):
                is_wanted = one.unit in SPEEDS.values() and one.step is not None
            else:
                is_wanted = one.is_measured() or self.tables[self.line(one.start) - 1]
            if is_wanted:
                measured.append(one)
        return measured[::-1]

    @cached_property
    def in_code(self) -> set[float]:
        """The numbers in blocks of code and in the comments before them."""
        blocks = "\n".join(found[0] for found in re.finditer(f"{HIDDEN[1]}|{HIDDEN[2]}", self.source, re.S | re.M))
        digits = re.findall(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?(?:e-?\d+)?", blocks)
        return {float(f"{float(text.replace(',', '')):.5e}") for text in digits}


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
        return median(self.all(**wanted))


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


MATHEMATICS = {name: getattr(math, name) for name in ("log2", "log10", "exp", "expm1", "sqrt", "ceil", "comb")}
MATHEMATICS |= {"ln": math.log, "min": min, "max": max, "sum": sum, "median": median, "stdev": stdev, "zip": zip, "range": range, "round": round}
MATHEMATICS |= {"MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
DEFINITION = re.compile(r"(?P<path>[\w./-]+\.\w+): (?P<text>.+)")


class List:
    """The list of the numbers."""

    def __init__(self, path: Path) -> None:
        content = tomllib.loads(path.read_text())
        patterns = content.pop("files")
        self.everywhere: dict[str, str | list[str]] = content.pop("everywhere")
        self.sources: dict[str, dict[str, str | list[str]]] = content
        self.names: dict[str, Any] = MATHEMATICS | {name: ResultFile(newest(text)) for name, text in patterns.items()}

    def problem(self, page: Page, one: Number, source: str) -> str | None:
        """Returns why a number does not have this source."""
        if source == "given" or source.startswith("https://"):
            return None
        if source == "console":
            values = {one.key(), float(f"{one.key() / 100:.5e}")} if one.unit == "%" else {one.key()}
            return None if values & page.in_code else "no block of code on the page has it"
        if found := DEFINITION.fullmatch(source):
            path = rows.ROOT / found["path"]
            return None if found["text"] in path.read_text() else f"{found['path']} has no `{found['text']}`"
        try:
            value = eval(source, self.names | {"__builtins__": {}})
        except (ArithmeticError, KeyError, NameError, SyntaxError, TypeError, ValueError) as error:
            return f"`{source}`: {error!r}"
        if isinstance(value, bool):
            return None if value else f"`{source}` is false"
        return None if one.is_near(value) else f"`{source}` is {value:.6g}"

    def problems(self, page: Page) -> Iterator[str]:
        """Yields what is wrong with the entries of a page, and its numbers without one."""
        covered: set[int] = set()
        of_page = self.sources.get(page.path, {})
        for quotation, source in (self.everywhere | of_page).items():
            places = list(page.places(quotation))
            if not places and quotation in of_page:
                yield f"{page.path}: no longer has the text that {LIST} quotes: {quotation}"
            # A place in code or between markers has no numbers.
            insides = [[one for one in page.numbers if at <= one.start < at + len(quotation)] for at in places]
            for inside in list(filter(None, insides)) or insides[:1]:
                each = source if isinstance(source, list) else [source] * len(inside)
                if (not inside and quotation in of_page) or len(each) != len(inside):
                    texts = ", ".join(one.text for one in inside)
                    yield f"{page.path}: {quotation}: {len(each)} sources for {len(inside)} numbers ({texts})"
                for one, of_one in zip(inside, each, strict=False):
                    covered.add(one.start)
                    if problem := self.problem(page, one, of_one):
                        yield f"{page.path}:{page.line(one.start)}: {one.text}: {problem}"
        for one in page.numbers:
            if one.start not in covered:
                around = page.text[max(one.start - 40, 0) : one.start + len(one.text) + 40]
                yield f"{page.path}:{page.line(one.start)}: {one.text}: has no entry in {LIST}: …{around}…"


def newest(pattern: str) -> Path:
    found = sorted(rows.ROOT.glob(pattern), key=lambda path: path.name)
    if not found:
        raise ValueError(f"no {pattern}")
    return found[-1]


def page(path: str) -> Page:
    return Page(path, (rows.ROOT / path).read_text())


def pages() -> list[str]:
    docs = (path.relative_to(rows.ROOT).as_posix() for path in sorted((rows.ROOT / "docs").glob("**/*.md")))
    return ["README.md", "README.zh-CN.md", *(path for path in docs if path not in WITHOUT)]


def counterpart(path: str) -> str | None:
    """Returns the English page of a Chinese one."""
    if path == "README.zh-CN.md":
        return "README.md"
    return path.replace("docs/zh/", "docs/") if path.startswith("docs/zh/") else None


def unknown(chinese: Page, english: list[Page]) -> Iterator[str]:
    """Yields the numbers of a Chinese page that its English counterpart does not have."""
    texts = (" ".join(page.source.split()) for page in english)
    known = [number(found) for text in texts for found in NUMBER.finditer(text)]
    keys, with_unit = {one.key() for one in known}, {(one.key(), one.unit) for one in known}
    for one in chinese.numbers:
        # Small whole numbers are also in sentences that are not about them.
        is_plain = one.key() >= 10 or one.key() % 1 != 0 or one.unit == ""
        if one.key() not in keys if is_plain else (one.key(), one.unit) not in with_unit:
            yield f"{chinese.path}:{chinese.line(one.start)}: {one.text}: not in {english[0].path}"


def problems() -> list[str]:
    """Returns everything that is wrong with the list and the pages, each with its place."""
    the_list = List(rows.ROOT / LIST)
    paths = pages()
    found = [f"{LIST}: {path}: no such page" for path in the_list.sources if path not in paths]
    for path in paths:
        english = counterpart(path)
        if english is None:
            found += the_list.problems(page(path))
        elif (rows.ROOT / english).exists():
            others = ENTRANCES if english in ENTRANCES[:2] else []
            found += unknown(page(path), [page(name) for name in dict.fromkeys([english, *others])])
    return found
