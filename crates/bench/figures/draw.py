"""Plots as SVG: the same data give the same bytes.

A plot is a picture of its own, so it takes its colors from the scheme of the page that shows it. Its width is that of a
phone; a wider window shows it a quarter larger.
"""

from __future__ import annotations

import math
import re
from html import escape
from statistics import mean
from unicodedata import east_asian_width

from .rows import Plot, short, size

WIDTH, MARGIN, ZOOM = 420, 4, 1.25
# The sizes of titles, names and values, and of notes, and the mean width of a letter of size 1 in wide fonts.
TITLE, TEXT, NOTE, LETTER = 15, 13, 12, 0.6
STYLE = """
svg{--ink:#1f2328;--soft:#5f5c55;--line:#8885;--petal:#0b62a8;--limit:#15803d;--wrong:#b91c1c;
--other:#8c877c;--other1:#b4410e;--other2:#7e22ce;font:13px system-ui,sans-serif}
@media (prefers-color-scheme:dark){svg{--ink:#dfe3ea;--soft:#b8b5ad;--petal:#6cb6ff;--limit:#7ee2a0;--wrong:#ff9492;
--other:#8e8b85;--other1:#ff9e64;--other2:#d2a8ff}}
text{fill:var(--ink)}.title{font-size:15px;font-weight:700}.note{font-size:12px;fill:var(--soft)}
.petal{--color:var(--petal)}.limit{--color:var(--limit)}.wrong{--color:var(--wrong)}
.other{--color:var(--other)}.other1{--color:var(--other1)}.other2{--color:var(--other2)}
.fill{fill:var(--color)}.stroke{fill:none;stroke:var(--color);stroke-width:1.5}.petal.stroke{stroke-width:2.5}
.limit.stroke{stroke-dasharray:5 3}.lead{fill:none;stroke:var(--line)}.bold{font-weight:700}
text:is(.petal,.limit,.wrong,.other1,.other2){fill:var(--color)}
"""


def svg(plot: Plot) -> str:
    """Returns a plot of rows or of lines."""
    parts: list[str] = []
    y = -2.0
    for css, letters, text in (("title", TITLE, plot["title"]), ("note", NOTE, plot["subtitle"])):
        for line in wrap(text, (WIDTH - 2 * MARGIN) / letters):
            y += letters * 1.35
            parts.append(label(MARGIN, y, line, css))
        y += 3
    height = (draw_lines if "series" in plot else draw_rows)(parts, plot, y + 10) + MARGIN
    shown = f'width="{WIDTH * ZOOM:g}" height="{height * ZOOM:g}" viewBox="0 0 {WIDTH} {height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {shown}>\n<style>{STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def wrap(text: str, width: float) -> list[str]:
    """Returns the lines of a text; the unit is the size of its letters. Chinese has no spaces."""
    lines = [""]
    for word in re.findall(r"(?:[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+(?: %)?)[，。；：）]*\s*", text):
        if length(lines[-1] + word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def length(text: str) -> float:
    return sum(1 if east_asian_width(letter) in "WF" else LETTER for letter in text)


# Marks around the columns, between name and value, rows, and values.
MARKS = (" (", "). ", ": ", "; ", ", ")


def alt(plot: Plot) -> str:
    """Returns a plot as a text in Markdown with its numbers."""
    before, after, colon, semicolon, comma = plot.get("marks", MARKS)
    if "series" in plot:
        columns = ["at the most keys"]
        rows = [(name, f"{points[-1][1]:.1f} at {size(points[-1][0])}") for name, points, _ in plot["series"]]
    else:
        columns = [column["title"] for column in plot["columns"]]
        writers = [column["write"] for column in plot["columns"]]
        rows = [
            (name, trouble or comma.join(write(value) for write, value in zip(writers, values, strict=True)))
            for name, values, trouble, _ in plot["rows"]
        ]
        limits = (column for column in plot["columns"] if "limit" in column)
        rows += [(column["limit"][1], column["write"](column["limit"][0])) for column in limits]
    text = semicolon.join(f"{name}{colon}{values}" for name, values in rows)
    return f"{plot['title']}{before}{comma.join(columns)}{after}{text}".replace("<", "\\<")


def label(x: float, y: float, text: str, css: str = "", anchor: str = "") -> str:
    marks = (f' class="{css}"' if css else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{marks}>{escape(text)}</text>'


def draw_rows(parts: list[str], plot: Plot, top: float) -> float:
    """Draws the names of the rows, above their values or beside them, and the columns. Returns the height."""
    rows, columns = plot["rows"], plot["columns"]
    beside = plot.get("names") == "beside"
    left = MARGIN if not beside else MARGIN + 10 + NOTE * 0.9 * max(length(name) for name, *_ in rows)
    width = (WIDTH - MARGIN - left + 12) / len(columns) - 12
    step, name_at, value_at = (21, 15, 15) if beside else (42, 13, 30)
    first = top + 20 + (16 if any("limit" in column for column in columns) else 0)
    for row, (name, _, _, ours) in enumerate(rows):
        css = " ".join((["note"] if beside else []) + (["petal", "bold"] if ours else []))
        parts.append(label(MARGIN, first + step * row + name_at, name, css))
    colon = plot.get("marks", MARKS)[2]
    heights = [first + step * row + value_at for row in range(len(rows))]
    for number, column in enumerate(columns):
        values = [
            (y, None if trouble else measured[number], "petal" if ours else "other")
            for y, (_, measured, trouble, ours) in zip(heights, rows, strict=True)
        ]
        draw_column(parts, column, values, (left + number * (width + 12), width, top), beside, colon)
    for y, (_, _, trouble, _) in zip(heights, rows, strict=True):
        if trouble:
            parts.append(label(left, y, trouble, "note wrong"))
    return first + step * len(rows)


def draw_column(parts: list[str], column: Plot, values: list, area: tuple[float, float, float], beside: bool, colon: str) -> None:
    """Draws the values of the rows that have one: bars, or points on a log scale; and their limit."""
    left, width, top = area
    values = [(y, value, css) for y, value, css in values if value is not None]
    numbers, write = [value for _, value, _ in values], column["write"]
    limit, name = column.get("limit", (None, ""))
    low, high = min(numbers if limit is None else [*numbers, limit]), max(numbers)
    room = NOTE * max(length(write(value)) for value in numbers) + 8

    def place(value: float) -> float:
        if column.get("log"):
            return left + 5 + math.log(value / low) / math.log(high / low) * (width - 10)
        return left + value / high * (width - room)

    parts.append(label(left, top + 12, column["title"], "note"))
    for y, value, css in values:
        x = place(value)
        if column.get("log"):
            before = x + room > left + width
            parts.append(f'<path class="lead" d="M{left:.1f} {y - 4:.1f}H{x - before * room:.1f}"/>')
            parts.append(f'<circle class="{css} fill" cx="{x:.1f}" cy="{y - 4:.1f}" r="5"/>')
            parts.append(label(x + (-8 if before else 8), y, write(value), "note", "end" if before else ""))
        else:
            parts.append(f'<path class="{css} fill" d="M{left:.1f} {y - 11:.1f}H{x:.1f}v13H{left:.1f}z"/>')
            parts.append(label(x + 5, y, write(value), "note"))
    if limit is not None:
        x, half = place(limit), 10.5 if beside else 9  # not through names above the values
        path = "".join(f"M{x:.1f} {y - 4 - half:.1f}v{2 * half:g}" for y, *_ in values)
        parts.append(f'<path class="limit stroke" d="{path}"/>')
        parts.append(label(max(x - 5, left), top + 28, f"{name}{colon}{write(limit)}", "note limit"))


def draw_lines(parts: list[str], plot: Plot, top: float) -> float:
    """Draws lines on log scales with their names at the right. Returns the height."""
    series, ticks = plot["series"], plot["ticks"]
    names = max(length(name) for name, *_ in series) * NOTE
    left, right, bottom = 34.0, WIDTH - MARGIN - names - 16, top + 330
    values = [value for _, points, *_ in series for _, value in points]
    low, high = min(values) * 0.85, max(values) * 1.1

    def x_of(n: float) -> float:
        return left + 8 + math.log(n / ticks[0]) / math.log(ticks[-1] / ticks[0]) * (right - left - 8)

    def y_of(value: float) -> float:
        return bottom - math.log(value / low) / math.log(high / low) * (bottom - top)

    steps = [digit * 10**power for power in range(-3, 7) for digit in (1, 2, 5)]
    for value in (one for one in steps if low <= one <= high):
        parts.append(f'<path class="lead" d="M{left:.1f} {y_of(value):.1f}H{right:.1f}"/>')
        parts.append(label(left - 5, y_of(value) + 4, short(value), "note", "end"))
    for n in ticks:
        parts.append(f'<path class="lead" d="M{x_of(n):.1f} {top:.1f}V{bottom:.1f}"/>')
        parts.append(label(x_of(n), bottom + 16, size(n), "note", "middle"))
    parts.append(label(left, bottom + 34, f"{plot['y']}, by {plot['x']}", "note"))
    ordered = sorted(series, key=lambda one: -one[1][-1][1])
    names_at = spread([y_of(points[-1][1]) for _, points, _ in ordered], NOTE * 1.3)
    for (name, points, kind), at in zip(ordered, names_at, strict=True):
        path = " ".join(f"{x_of(n):.1f} {y_of(value):.1f}" for n, value in points)
        parts.append(f'<path class="{kind} stroke" d="M{path}"/>')
        parts += [
            f'<circle class="{kind} fill" cx="{x_of(n):.1f}" cy="{y_of(value):.1f}" r="2.5"/>' for n, value in points
        ]
        x, y = x_of(points[-1][0]), y_of(points[-1][1])
        parts.append(f'<path class="lead" d="M{x + 4:.1f} {y:.1f}L{right + 3:.1f} {at:.1f}h8"/>')
        parts.append(label(right + 14, at + 4, name, f"note {kind}"))
    return bottom + 38


def spread(wanted: list[float], gap: float) -> list[float]:
    """Returns the places nearest to the wanted ones, which are in order, that are a gap apart (isotonic regression)."""
    blocks: list[list[float]] = []
    for number, place in enumerate(wanted):
        blocks.append([place - number * gap])
        while len(blocks) > 1 and mean(blocks[-2]) > mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    places = [mean(block) for block in blocks for _ in block]
    return [place + number * gap for number, place in enumerate(places)]
