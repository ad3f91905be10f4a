"""Pages and the numbers on them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

# Of these pages only numbers with a unit of time or ratio count.
REFERENCE = "docs/reference/"

WORDS = ["a", "an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty"]
VALUES = dict(zip(WORDS, [1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 20], strict=True))
PARTS = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
PARTS |= {"twelfth": 12, "fifteenth": 15, "twentieth": 20, "hundredth": 100}
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "万": 1e4, "亿": 1e8}
# Units of time and ratio, also on the pages of the reference; and the others.
SPEEDS = {"秒": "s", "毫秒": "ms", "微秒": "µs", "纳秒": "ns", "分钟": "minutes", "倍": "times", "小时": "hours"}
SPEEDS |= {name: name for name in ("s", "ms", "µs", "ns", "minutes", "hours", "times")}
SPEEDS |= {"seconds": "s", "second": "s", "minute": "minutes", "hour": "hours", "×": "times", "fold": "times"}
OTHERS = {"字节": "bytes", "位": "bits", "bit": "bits", "byte": "bytes", "percent": "%"}
OTHERS |= {name: name for name in ("%", "bits", "bytes", "kB", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")}
UNITS = SPEEDS | OTHERS

ONE_OF = "|".join
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
# Not `86` of `x86`, `64` of `x86-64`, the `1` of `1/8` and of `1 in 8`.
START = r"(?<![A-Za-z0-9_.,^])(?<![A-Za-z0-9]-)(?!1/\d|1 in (?:\d|a ))"
DIGITS = START + r"(?P<digits>(?>\d{1,3}(?:,\d{3})+|\d+)(?:\.\d++)?+)"
POWER = r"(?: ?· ?10(?P<tens>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<power>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|e(?P<e>-?\d+)|\^(?P<hat>\d+))?"
UNIT = ONE_OF(sorted(UNITS, key=len, reverse=True))
SCALED = rf"(?:[ -]?(?P<scale>{ONE_OF(SCALES)}))?(?:[ -]?(?P<unit>{UNIT})(?![A-Za-z]))?"
IN_DIGITS = rf"{DIGITS}{POWER}(?!\.\d|,\d{{3}}){SCALED}(?![A-Za-z0-9_]*[A-Za-z_])"
IN_WORDS = (
    rf"\b(?:(?i:(?P<word>{ONE_OF(WORDS[3:])}))(?:-| )(?:(?P<word_scale>million|billion)|(?P<word_unit>{UNIT})\b)"
    rf"|(?i:(?P<count>an?|one|two|three|four)) (?P<part>{ONE_OF(PARTS)})s?\b"
    r"|(?i:(?P<twice>twice|half))(?= (?:of )?(?:the|its|that|as|more|less)\b))"
)
NUMBER = re.compile(f"{IN_DIGITS}|{IN_WORDS}")
# Between two numbers with one unit.
JOINED = re.compile(r" to | or | and |, | / |–|-|至|到|～|、")
# After a number: `lines per second`.
SPEED = re.compile(r" [a-z]+ (?:per|a) second")
# Before and after the version of a program.
VERSION_OF, VERSION = re.compile(r"(?:[A-Z][\w']*\S*|rustc|glibc) \Z"), re.compile(r" (?:or|and) later")


def key(value: float) -> float:
    return float(f"{value:.7e}")


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

    def has_unit(self) -> bool:
        return self.unit != "" or self.scale != 1

    def is_near(self, value: float) -> bool:
        """Whether a value in the unit of the page rounds to this number."""
        if self.step is None:
            return abs(value / self.value - 1) <= 0.15
        return abs(value - self.value) <= self.step / 2 * (1 + 1e-9)

    def key(self) -> float:
        """Returns the value to compare with that of another number."""
        return key(self.value * self.scale)


def number_of(found: re.Match[str]) -> Number:
    """Returns the number of a match of `NUMBER`."""
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


COMMENT, BLOCK = r"<!--.*?-->", r"^ *(?P<fence>```+).*?^ *(?P=fence) *$"
# What has no numbers.
HIDDEN = [
    r"<!-- figures:.*?<!-- /figures -->",
    COMMENT,
    BLOCK,
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
        # The lines of the page, without the space around them; and where each starts.
        self.text, self.visible = "", ""
        self.starts: list[int] = []
        # Whether each line is a row of a table.
        self.is_row: list[bool] = []
        for line, seen in zip(text.split("\n"), visible.split("\n"), strict=True):
            first, last = len(line) - len(line.lstrip()), len(line.rstrip())
            self.starts.append(len(self.text))
            self.is_row.append(line.startswith("|", first))
            self.text += line[first:last] + " "
            self.visible += seen[first:last] + " "

    def line(self, start: int) -> int:
        """Returns the number of the line at an offset of the text."""
        return bisect_right(self.starts, start)

    def places(self, quotation: str) -> Iterator[list[Number]]:
        """Yields the numbers in each place of a text: `1 %` is not in `0.1 %`, and `5 s` not in `5 states`."""
        first = r"(?<![\d.,])" if quotation[0].isdigit() else ""
        last = r"(?![A-Za-z\d])" if quotation[-1].isalnum() else ""
        for found in re.finditer(first + re.escape(quotation) + last, self.text):
            yield [number for number in self.numbers if found.start() <= number.start < found.end()]

    @cached_property
    def numbers(self) -> list[Number]:
        """The numbers with a unit or decimals, and those in tables."""
        wanted: list[Number] = []
        for match in reversed(list(NUMBER.finditer(self.visible))):
            one = number_of(match)
            if wanted and not one.has_unit() and JOINED.fullmatch(self.visible, match.end(), wanted[-1].start):
                one.unit, one.scale = wanted[-1].unit, wanted[-1].scale
            if SPEED.match(self.visible, match.end()) or self.visible.endswith(" 1 in ", 0, match.start()):
                one.unit = one.unit or "times"
            if self.path.startswith(REFERENCE):
                is_wanted = one.unit in SPEEDS.values() and one.step is not None
            else:
                is_wanted = one.has_unit() or self.is_row[self.line(one.start) - 1] or self.has_decimals(match)
            if is_wanted:
                wanted.append(one)
        return wanted[::-1]

    def has_decimals(self, match: re.Match[str]) -> bool:
        """Whether a number without a unit has decimals, and is not a version."""
        before = self.visible[max(match.start() - 40, 0) : match.start()]
        is_version = VERSION_OF.search(before) or VERSION.match(self.visible, match.end())
        return "." in (match["digits"] or "") and not is_version

    @cached_property
    def all_numbers(self) -> list[Number]:
        """All numbers, also those in code and between markers."""
        return [number_of(match) for match in NUMBER.finditer(self.text)]

    def rows(self, numbers: list[Number]) -> dict[int, Counter[float]]:
        """Returns the numbers of each row of a table by its line."""
        found: dict[int, Counter[float]] = {}
        for one in numbers:
            line = self.line(one.start)
            if self.is_row[line - 1]:
                found.setdefault(line, Counter())[one.key()] += 1
        return found

    @cached_property
    def in_code(self) -> set[float]:
        """The numbers in blocks of code and in the comments before them."""
        blocks = "\n".join(found[0] for found in re.finditer(f"{COMMENT}|{BLOCK}", self.source, re.S | re.M))
        digits = re.findall(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?(?:e-?\d+)?", blocks)
        return {key(float(text.replace(",", ""))) for text in digits}
