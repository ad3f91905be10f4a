"""Result files, and numbers as text."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
Query = Plot = dict[str, Any]
# A filter at one operation, with the columns of its CSV. A column that does not apply is None or empty.
Row = SimpleNamespace
# Start of the names of the rows that read random cache lines.
RANDOM_READS = "random line reads"


def size(n: float) -> str:
    """Returns 10⁵, 5·10⁷; other numbers in digits."""
    digits = str(round(n))
    first = digits.rstrip("0")
    zeros = len(digits) - len(first)
    if zeros <= 3 or len(first) > 2:
        return digits
    power = "10" + str(zeros).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if first == "1" else f"{first}·{power}"


def distinct(value: float, bound: float | None, places: int) -> str:
    """Adds decimals until the text differs from that of the bound."""
    texts = (f"{value:.{p}f}" for p in range(places, 13) if bound is None or f"{value:.{p}f}" != f"{bound:.{p}f}")
    return next(texts, f"{value:.{places}f}")


def figure(value: float, bound: float) -> str:
    """Returns a ratio, or bits per key."""
    return distinct(value, bound, 3 if value < 2 else 2)


def significant(value: float, digits: int, most: int) -> int:
    """Returns the number of decimals that show `digits` digits of a positive number, at most `most`."""
    return min(max(digits - 1 - math.floor(math.log10(value)), 0), most)


def percent(rate: float, bound: float | None = None) -> str:
    """Returns a rate in percent, with four significant digits or as many as differ from the bound."""
    if rate <= 0:
        return "0 %"
    return distinct(rate * 100, None if bound is None else bound * 100, significant(rate * 100, 4, 12)) + " %"


def ns(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def short(value: float) -> str:
    """Returns the number of a tick in as few digits as it needs."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:.6g}"


NUMBERS = ["n", "target_rate", "bits_per_key", "measured_rate", "absent_keys", "threads", "ns_median"]


def row_of(fields: dict[str, str]) -> Row:
    numbers = {name: float(fields[name]) if fields[name] not in ("", "-") else None for name in NUMBERS}
    rounds = [float(time) for time in fields["ns_by_round"].split(";")]
    if not all(0 < time < math.inf for time in rounds):
        raise ValueError(f"not times: {fields['ns_by_round']}")
    return Row(**fields | numbers | {"ns_by_round": rounds})


def has(row: Row, wanted: Query) -> bool:
    return all(getattr(row, column) == value for column, value in wanted.items())


def source(path: Path) -> str:
    return f"Rows: `{path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name}`\n"


def read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Returns the notes of a result file, which are the lines that begin with `#`, and its rows."""
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    notes = [line[1:].strip() for line in lines if line.startswith("#")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    if not rows:
        raise ValueError("no rows")
    for number, row in enumerate(rows, 2 + len(notes)):
        if None in row or None in row.values():
            raise ValueError(f"line {number}: the number of fields differs from the header")
    return notes, rows


def newest(pattern: str) -> Path:
    """Returns the newest of the result files whose names have this pattern."""
    found = sorted(ROOT.glob(pattern), key=lambda path: path.name)
    if not found:
        raise ValueError(f"no {pattern}")
    if len(found) > 1 and found[-2].name == found[-1].name:
        raise ValueError(f"{found[-2]}, {found[-1]}: two files of one date")
    return found[-1]


class Results:
    """A result file of the filter benchmarks."""

    def __init__(self, path: Path) -> None:
        notes, rows = read(path)
        self.rows = [row_of(row) for row in rows]
        # Indented lines are code blocks, in which no character is special.
        self.source = source(path) + "\n" + "".join(f"    {note}\n" for note in notes)
        self.sizes = sorted({row.n for row in self.rows})
        self.filters = list(dict.fromkeys(row.filter for row in self.rows))

    def having(self, **wanted: object) -> Iterator[Row]:
        return (row for row in self.rows if has(row, wanted))

    def find(self, suite: str, wanted: Query) -> Row | None:
        """Returns the matching row; the fastest if there are several, as with several kernels."""
        return min(self.having(suite=suite, **wanted), key=lambda row: row.ns_median, default=None)

    def ratio(self, over: Query, under: Query) -> float | None:
        """Returns a time divided by another one, of rows of the same suite, paired by round."""
        ratios = (paired(self.find(suite, over), self.find(suite, under)) for suite in ("rivals", "own"))
        return next((ratio for ratio in ratios if ratio is not None), None)

    def best_reads(self, n: int) -> str | None:
        """Returns the name of the random reads with the best prefetch distance: the limit of the machine."""
        reads = (row for row in self.having(n=n) if row.filter.startswith(RANDOM_READS))
        best = min(reads, key=lambda row: row.ns_median, default=None)
        return best and best.filter


def paired(over: Row | None, under: Row | None) -> float | None:
    """Returns the median of the ratios of equal rounds; None if there are no such rounds."""
    if over is None or under is None or len(over.ns_by_round) != len(under.ns_by_round):
        return None
    return median(a / b for a, b in zip(over.ns_by_round, under.ns_by_round, strict=True))
