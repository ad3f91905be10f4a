"""The laboratory: ways to remember which URLs were seen."""

from __future__ import annotations

import math
from pathlib import Path

from .rows import Plot, read, significant, size, source

# The ways of `cargo x lab`.
WAYS = [
    "PostgreSQL, 1 row a statement",
    "PostgreSQL, 1,024 rows a statement",
    "SQLite, 1 row a transaction",
    "SQLite, 1,024 rows a transaction",
    "`HashSet<String>`",
    "set of SHA-1 digests",
    "set of MD5 digests",
    "hash table of 8-byte fingerprints",
    "bitmap, one hash",
    "classic Bloom filter, k = 7",
    "petal's default",
    "petal's default, in batches",
    "petal's static filter",
    "the Java sample",
]
MILLION = 1_000_000


def measured_percent(part: float, queried: float) -> str:
    """Returns a measured part with the digits that its number of events supports: fewer than ten are counted.

    The standard error of n events is their square root.
    """
    events = round(part * queried)
    if 0 < events < 10:
        return f"{events} of {round(queried):,}"
    return part_in(1 if events < 100 else 2 if events < 10_000 else 3, part)


def part_in(digits: int, part: float) -> str:
    """Returns a part of all, in percent with this number of digits."""
    if part < 1e-8:
        return "< 0.000001 %" if part else "0"
    return f"{part * 100:.{significant(part * 100, digits, 6)}f} %"


class Lab:
    """The figures of a result file. If a figure was measured more than once, the last row counts."""

    def __init__(self, path: Path) -> None:
        rows = read(path)[1]
        self.values = {(row["case"], int(row["size"]), row["figure"]): float(row["value"]) for row in rows}
        commits = ", ".join(dict.fromkeys(row["commit"] for row in rows))
        self.source = source(path) + f"({rows[-1]['machine']}; {rows[-1]['date']}; commits {commits})."
        if "+" in commits:
            self.source += "\nA + after a commit: files of its work tree were changed."

    def way(self, name: str, urls: int) -> dict[str, float]:
        """Returns the figures of a way; empty if it was left out."""
        return {figure: value for (case, n, figure), value in self.values.items() if (case, n) == (name, urls)}

    def rate(self, case: str, urls: int = MILLION, figure: str = "rate") -> float:
        return self.values[case, urls, figure]

    def ways(self) -> str:
        text = "| way | bytes per URL | at most, while filled | ns per insert | ns per query | wrong answers "
        text += "| survives a restart | deletes |\n|---|--:|--:|--:|--:|--:|---|---|\n"
        for name in WAYS:
            if not (way := self.way(name, MILLION)):
                continue
            survives, deletes = way["survives a restart"] == 1, "yes" if way["deletes"] == 1 else "no"
            space, peak, persists = of_memory(way["memory"]), of_memory(way["peak memory"]), "as a file"
            if is_database(name):
                space, peak, persists = f"{way['disk']:.0f} on disk", "", "yes"
            cells = [name, space, peak, time_of(way["insert"]), time_of(way["query"]), wrong(way)]
            text += f"| {' | '.join(cells)} | {persists if survives else 'no'} | {deletes} |\n"
        return text

    def sizes(self) -> str:
        urls = 100 * MILLION
        text = f"| way | {size(urls)} URLs: MB | ns per insert | ns per query | wrong answers |\n|---|--:|--:|--:|--:|\n"
        for name in WAYS:
            if not (way := self.way(name, urls)):
                continue
            megabytes = way["disk" if is_database(name) else "memory"] * urls / 1e6
            space = f"{megabytes:,.0f}" if megabytes >= 20 else f"{megabytes:.1f}"
            text += f"| {name} | {space} | {time_of(way['insert'])} | {time_of(way['query'])} | {wrong(way)} |\n"
        return text

    def claims(self) -> str:
        def rate(bits: float, k: int) -> float:
            return self.rate(f"{bits:g} bits per URL, k = {k}")

        def shown(bits: float, k: int) -> str:
            return measured_percent(rate(bits, k), 4 * MILLION)

        names = ("hash table of 8-byte fingerprints", "petal's default", "petal's static filter")
        table, petal, static = (self.values[name, MILLION, "memory"] for name in names)
        best, formula = min(range(1, 15), key=lambda k: rate(10, k)), 10 * math.log(2)
        quarter = shown(32, 22) if rate(32, 22) else "none wrong"
        claims = [
            (
                "A bitmap with one hash needs about 100 bits per URL for 1 %.",
                f"100 bits: {shown(100, 1)}; 90 bits: {shown(90, 1)}",
                "true" if rate(100, 1) <= 0.01 < rate(90, 1) else "false",
            ),
            (
                "A hash table of fingerprints takes 1.6 GB for 10⁸ addresses.",
                f"{table:.1f} bytes per URL: {table / 10:.2f} GB for 10⁸",
                "true" if abs(table / 16 - 1) < 0.02 else "false",
            ),
            (
                "A filter needs 1/8 to 1/4 of the hash table.",
                f"1/8: {shown(16, 11)}; 1/4: {quarter}. For 1 %, petal's default takes 1/{table / petal:.1f}, the "
                f"static filter 1/{table / static:.1f}",
                "true" if table / petal < 8 else "inexact: less is enough",
            ),
            (
                "The best k is ln 2 · m/n.",
                f"m/n = 10, formula {formula:.2f}: k = {best} is the best of 1 to 14, {shown(10, best)}; "
                f"k = {best - 1}: {shown(10, best - 1)}; k = {best + 1}: {shown(10, best + 1)}",
                "true" if abs(best - formula) < 1 else "false",
            ),
            (
                "E = 0.001 needs m = 13 n bits and k = 8.",
                f"13 n, k = 8: {shown(13, 8)}, {rate(13, 8) / 0.001:.1f} times E; k = 9: {shown(13, 9)}. "
                f"14.4 n, k = 10: {shown(14.4, 10)}; k = 8: {shown(14.4, 8)}",
                "true" if rate(13, 8) <= 0.001 else "false: 14.4 n and k = 10",
            ),
        ]
        rows = (f"| {says} | {measured} | **{verdict}** |\n" for says, measured, verdict in claims)
        return "| the article says | measured | verdict |\n|---|---|---|\n" + "".join(rows)

    def sample(self) -> str:
        text = "| URLs in the filter | bits | formula | random URLs | sequential URLs |\n|--:|---|--:|--:|--:|\n"
        for urls in (MILLION, 2 * MILLION, 4 * MILLION):
            for power in (25, 24):
                name = f"the Java sample, 2^{power} bits,"
                random, sequential = f"{name} random URLs", f"{name} sequential URLs"
                formula = part_in(3, self.rate(random, urls, "rate by the formula"))
                rates = (measured_percent(self.rate(case, urls), urls) for case in (random, sequential))
                text += f"| {urls // MILLION} · 10⁶ | 2^{power} | {formula} | {' | '.join(rates)} |\n"
        case = "the Java sample, 2^25 bits, sequential URLs"
        hits = ((seed, self.rate(case, figure=f"bit of seed {seed} is set")) for seed in (5, 7, 11, 13, 31, 37, 61))
        text += "\nNew sequential URLs whose bit of one seed was set already, 10⁶ URLs in 2^25 bits:\n"
        return text + "; ".join(f"seed {seed}: {part_in(3, hit)}" for seed, hit in hits) + ".\n"

    def plot(self) -> Plot:
        """Returns bytes per URL and ns per query. The Java sample, whose size is fixed, is left out."""
        rows = []
        for name in WAYS:
            if (way := self.way(name, MILLION)) and name != "the Java sample":
                space = way["disk" if is_database(name) else "memory"]
                rows.append((name.replace("`", ""), [space, way["query"]], "", name.startswith("petal")))
        rows.sort(key=lambda row: not row[3])
        return {
            "title": "Remembering a million URLs: space and time",
            "subtitle": "Less is better. Log scales. Bytes in memory, of databases on disk. No filter for 1 % is smaller "
            "than the limit.",
            "columns": [
                {"title": "bytes per URL", "log": True, "write": of_memory, "limit": (-math.log2(0.01) / 8, "limit")},
                {"title": "ns per query", "log": True, "write": time_of},
            ],
            "rows": rows,
        }


def is_database(name: str) -> bool:
    return name.startswith(("PostgreSQL", "SQLite"))


def of_memory(value: float) -> str:
    return f"{value:.2f}" if value < 20 else f"{value:.0f}"


def time_of(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}"


def wrong(way: dict[str, float]) -> str:
    """Returns the wrong answers of a way: of new URLs, because no seen one is denied."""
    return measured_percent(way["false positives"] / way["new URLs"], way["new URLs"])
