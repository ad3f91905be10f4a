"""The filter benchmarks: targets, tables of every type of filter and its rivals, and plots."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .rows import RANDOM_READS, Plot, Query, Results, Row, figure, has, ns, paired, percent, size

PETAL, FINE, PAIRED_LINES = ("petal 1 %", 0.01), ("petal 0.1 %", 0.001), ("petal 0.1 % pairs", 0.001)
CLASSIC, SPLIT_BLOCKS, FASTBLOOM = ("petal classic 1 %", 0.01), ("sbbf-rs-safe", 0.01), ("fastbloom foldhash", 0.01)
LOOKUPS, ALL = ["absent", "present"], ["insert", "absent", "present"]


@dataclass
class Target:
    """A bound of the figures of some parts (operations, sizes, builds). It is met if every part is."""

    work: str
    wanted: str
    bound: float
    parts: list[tuple[str, float | None]]
    at_least: bool = False
    write: Callable[[float, float], str] = figure

    def verdict(self) -> str:
        def is_met(value: float | None) -> bool | None:
            if value is None:
                return None
            return value >= self.bound if self.at_least else value <= self.bound

        met_parts = [is_met(value) for _, value in self.parts]
        result = False if False in met_parts else True if met_parts and None not in met_parts else None
        word = {True: "met", False: "not met", None: "not in the CSV"}[result]
        names = [name for (name, _), met in zip(self.parts, met_parts, strict=True) if met is result]
        return word if len(names) == len(self.parts) else f"{word}: {', '.join(names)}"

    def measured(self) -> str:
        figures = [(name, self.write(value, self.bound)) for name, value in self.parts if value is not None]
        return ", ".join(f"{name}: {text}" if name else text for name, text in figures)


def query(name: tuple[str, float], n: int, keys: str = "hash", form: str = "batch") -> Query:
    return {"filter": name[0], "target_rate": name[1], "n": n, "keys": keys, "form": form, "threads": 1}


def upper_bound(rate: float, tries: int) -> float:
    """Returns the upper 99.9 % bound of a measured rate; normal approximation, valid for thousands of successes.

    The rate of a filter also depends on its keys: at 1 % and 10⁵ keys it varies by 0.006 points (one standard
    deviation), twice the 0.003 of 10⁷ lookups; at 10⁶ keys by 0.002. So this bound is for the mean of several filters.
    """
    return rate + 3.0902 * math.sqrt(rate * (1 - rate) / tries)


def targets(results: Results) -> list[Target]:
    def ratios(over: Query, under: Query, operations: list[str]) -> list[tuple[str, float | None]]:
        return [(name, results.ratio(over | {"operation": name}, under | {"operation": name})) for name in operations]

    def fastbloom(least: float, n: int, name: tuple[str, float], operations: list[str]) -> Target:
        rival = query(FASTBLOOM, n, "u64")
        del rival["form"]  # It has no batches.
        work = f"{'classic ' if name == CLASSIC else ''}1 %, n = {size(n)}, 64-bit keys, batch"
        wanted = f"at least {least:g} × faster than fastbloom with foldhash"
        return Target(work, wanted, least, ratios(rival, query(name, n, "u64"), operations), at_least=True)

    def bits(work: str, name: tuple[str, float], most: float, sizes: list[int]) -> Target:
        def first(n: int) -> float | None:
            rows = results.having(filter=name[0], target_rate=name[1], n=n, threads=1)
            return next((row.bits_per_key for row in rows if row.bits_per_key), None)

        parts = [(f"n = {size(n)}", first(n)) for n in sizes]
        return Target(f"{work}, space", f"at most {most} bits per key", most, parts)

    def rate(n: int) -> Target:
        rows = results.having(filter=PETAL[0], target_rate=PETAL[1], n=n)
        row = next((row for row in rows if row.measured_rate is not None and row.absent_keys), None)
        promise, bound = "the upper 99.9 % bound of 1 %", PETAL[1]
        if row:
            # Rounded as it is written: up to a thousandth of a percent.
            bound = math.ceil(upper_bound(bound, row.absent_keys) * 1e5) / 1e5
            promise = f"{percent(bound)}, {promise} for {size(row.absent_keys)} absent keys"
        parts = [("", row and row.measured_rate)]
        return Target(f"1 %, n = {size(n)}, measured rate", f"at most {promise}", bound, parts, write=percent)

    def sizes_of(name: tuple[str, float]) -> list[int]:
        return [n for n in results.sizes if any(results.having(filter=name[0], target_rate=name[1], n=n))]

    found = []
    for n in (100_000, 1_000_000):
        for form, most in (("batch", 0.75), ("single", 1.0)):
            parts = ratios(query(PETAL, n, form=form), query(SPLIT_BLOCKS, n, form="single"), ALL)
            wanted = f"at most {most:g} × the time of sbbf-rs-safe"
            found.append(Target(f"1 %, n = {size(n)}, mixed hashes, {form}", wanted, most, parts))
    found.append(bits("1 %", PETAL, 10.1, [100_000, 1_000_000]))
    found += [rate(n) for n in (100_000, 1_000_000)]
    for n in (1_000_000, 50_000_000):
        found += [fastbloom(4.5, n, PETAL, LOOKUPS), fastbloom(6, n, PETAL, ["insert"])]
    for n in (50_000_000, 400_000_000):
        parts = ratios(query(PETAL, n), {"filter": results.best_reads(n), "n": n, "threads": 1}, LOOKUPS)
        wanted = f"at most 1.05 × the time of {RANDOM_READS}"
        found.append(Target(f"1 %, n = {size(n)}, mixed hashes, batch", wanted, 1.05, parts))
    for n in sizes_of(FINE):
        parts = ratios(query(FINE, n), query(PETAL, n), ALL)
        found.append(Target(f"0.1 %, n = {size(n)}, mixed hashes, batch", "at most 1.3 × the time of 1 %", 1.3, parts))
    found.append(bits("0.1 %", FINE, 15.8, sizes_of(FINE)))
    found.append(bits("0.1 % in line pairs", PAIRED_LINES, 15.1, sizes_of(PAIRED_LINES)))
    found.append(fastbloom(2, 50_000_000, CLASSIC, ALL))
    # One thread builds smaller filters.
    builds = [row for row in results.having(operation="build", threads=2) if row.filter.startswith("petal")]
    parts = []
    for row in (row for row in builds if row.bits_per_key and row.bits_per_key * row.n / 8 >= 4 << 20):
        names = ("filter", "target_rate", "n", "keys", "form", "kernel", "operation")
        one, two = ({name: getattr(row, name) for name in names} | {"threads": threads} for threads in (1, 2))
        parts.append((f"{row.keys}, n = {size(row.n)}", results.ratio(one, two)))
    work, wanted = "build on two threads, filters of 4 MiB and more", "at least 1.85 × faster than on one"
    return [*found, Target(work, wanted, 1.85, parts, at_least=True)]


# Every type of filter and its rivals. At a rate, a filter is represented by its smallest row with this target rate or a
# lower one.

OPERATIONS = ["insert", "absent", "present", "remove"]
# Times are compared at the first.
RATES = [0.01, 0.001, 0.0001]


def smallest_at(results: Results, name: str, n: int, rate: float) -> Row | None:
    """Returns the row with the fewest bits among those with a target of at most the rate. Without any, and at the
    highest rate, that among all rows."""
    rows = list(results.having(filter=name, n=n))
    candidates = [row for row in rows if row.target_rate is not None and row.target_rate <= rate]
    candidates = candidates or (rows if rate == RATES[0] else [])
    return min(candidates, key=lambda row: math.inf if row.bits_per_key is None else row.bits_per_key, default=None)


def timed(results: Results, like: Row, form: str, operation: str) -> Row | None:
    """Returns the row of the same filter at an operation. A filter is filled by inserts or by a build."""
    same = {"n": like.n, "target_rate": like.target_rate, "filter": like.filter, "form": form, "threads": 1}
    names = ["insert", "build"] if operation == "insert" else [operation]
    return next((row for name in names for row in results.having(operation=name, **same)), None)


def compared_at(results: Results) -> int:
    """Returns the size at which space is compared: the nearest to a million keys."""
    return min(results.sizes, key=lambda n: abs(math.log(n / 1e6)))


def space_table(results: Results) -> str:
    """Returns the space and the measured rate of every filter. A rate significantly above the target, and above
    that of the column, is bold."""

    def cell(row: Row | None, rate: float) -> str:
        if row is None:
            return " | |"
        measured = "" if row.measured_rate is None else percent(row.measured_rate)
        allowed = max(row.target_rate or rate, rate)
        if measured and row.absent_keys and row.measured_rate > upper_bound(allowed, row.absent_keys):
            measured = f"**{measured}**"
        return f" {'' if row.bits_per_key is None else format(row.bits_per_key, '.2f')} | {measured} |"

    n = compared_at(results)
    heads = (f" {rate * 100:g} %: bits per key | measured |" for rate in RATES)
    text = f"**n = {size(n)}**\n\n| filter |" + "".join(heads)
    text += "\n|---|" + "--:|--:|" * len(RATES) + "\n| *no filter can be below* |"
    text += "".join(f" {-math.log2(rate):.2f} | |" for rate in RATES) + "\n"
    for name in results.filters:
        text += f"| {name} |" + "".join(cell(smallest_at(results, name, n, rate), rate) for rate in RATES) + "\n"
    return text


def speed_table(results: Results) -> str:
    """Returns the times in batches and, in parentheses, key by key; a table for each size."""
    text = ""
    for n in results.sizes:
        text += f"**n = {size(n)}**\n\n| filter | bits per key | fill | absent | present | delete |\n"
        text += "|---|--:|--:|--:|--:|--:|\n"
        for row in filter(None, (smallest_at(results, name, n, RATES[0]) for name in results.filters)):
            cells = ["nan" if row.bits_per_key is None else f"{row.bits_per_key:.2f}"]
            for operation in OPERATIONS:
                found = [timed(results, row, form, operation) for form in ("batch", "single")]
                cells.append(both(*(ns(one.ns_median) for one in found if one)))
            text += f"| {row.filter} | {' | '.join(cells)} |\n"
        text += "\n"
    return text


# The types of filters and the nearest filters of other libraries, by what they are for.
NAMES = {
    "petal bloom": "petal Bloom (default)",
    "petal classic": "petal classic Bloom",
    "fastbloom foldhash": "fastbloom",
    "petal static fuse": "petal static fuse",
    "xorf fuse": "xorf, binary fuse",
    "petal static": "petal static",
    "pleat": "pleat",
    "petal vector quotient": "petal vector quotient",
    "cuckoofilter": "cuckoofilter",
    "qfilter": "qfilter",
    "petal counting": "petal counting",
    "petal scalable grown": "petal scalable, grown",
    "petal quotient grown": "petal quotient, grown",
    "qfilter grown": "qfilter, grown",
    "petal windowed": "petal windowed",
}


def short_table(results: Results) -> str:
    """Returns space and times of these filters at the largest size, in batches if the filter has them."""
    n = max(results.sizes)
    text = "| filter | bits per key | fill | absent | present |\n|---|--:|--:|--:|--:|\n"
    for name, shown in NAMES.items():
        row = smallest_at(results, name, n, RATES[0])
        if row is None or row.bits_per_key is None:
            continue
        cells = [f"{row.bits_per_key:.2f}"]
        for operation in OPERATIONS[:3]:
            one = timed(results, row, "batch", operation) or timed(results, row, "single", operation)
            cells.append(ns(one.ns_median) if one else "")
        text += f"| {shown} | {' | '.join(cells)} |\n"
    return text


def ratio_text(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"


def both(first: str = "", second: str = "") -> str:
    return f"{first} ({second})" if second else first


# A rival, the filters that can replace it, and the rates at which space is compared.
PAIRS: list[tuple[str, list[str], list[float]]] = [
    ("fastbloom foldhash", ["petal bloom", "petal classic"], RATES),
    ("growable-bloom-filter", ["petal scalable"], RATES),
    ("growable-bloom-filter grown", ["petal scalable grown"], RATES),
    ("qfilter", ["petal vector quotient"], RATES),
    ("cuckoofilter", ["petal vector quotient"], RATES),
    ("cuckoofilter full", ["petal vector quotient 3 %"], [0.031]),
    ("scalable_cuckoo_filter", ["petal vector quotient"], RATES),
    ("qfilter grown", ["petal quotient grown"], RATES),
    ("scalable_cuckoo_filter grown", ["petal quotient grown"], RATES),
    ("xorf fuse", ["petal static fuse", "petal static"], RATES),
    ("pleat", ["petal static fuse", "petal static"], RATES),
]


def ratio_table(results: Results) -> str:
    """Returns petal's figures divided by those of its rivals, and names those of 1 and more."""
    text = "| other library | petal's | n | space | fill | absent | present | delete | not ahead in |\n"
    text += "|---|---|--:|--:|--:|--:|--:|--:|---|\n"
    pairs = ((rival, petal, rates, n) for rival, all_ours, rates in PAIRS for petal in all_ours for n in results.sizes)
    for rival, petal, rates, n in pairs:
        ours, theirs = smallest_at(results, petal, n, rates[0]), smallest_at(results, rival, n, rates[0])
        if ours is None or theirs is None:
            continue
        space = []
        for rate in rates:
            rows = [smallest_at(results, name, n, rate) for name in (petal, rival)]
            if all(row and row.bits_per_key for row in rows):
                space.append((f"space at {rate * 100:g} %", rows[0].bits_per_key / rows[1].bits_per_key))
        behind = [name for name, ratio in space if ratio >= 1]
        if len(behind) in (0, len(space)):
            behind = ["space"] if space and behind else []
        cells = [", ".join(ratio_text(ratio) for _, ratio in space)]
        for name, operation in zip(["fill", "absent", "present", "delete"], OPERATIONS, strict=True):
            ratios = []
            for form in ("batch", "single"):
                # A rival without batches is used key by key.
                other = timed(results, theirs, form, operation) or timed(results, theirs, "single", operation)
                ratios.append(paired(timed(results, ours, form, operation), other))
            batch, single = ratios
            found = [ratio for ratio in ratios if ratio is not None]
            cells.append(both(*map(ratio_text, found)))
            if found and found[0] >= 1:
                behind.append(name)
            elif batch is not None and single is not None and single >= 1:
                behind.append(f"{name} key by key")
        text += f"| {rival} | {petal} | {size(n)} | {' | '.join(cells)} | {', '.join(behind) or 'nothing'} |\n"
    return text


KERNELS = {"portable": "portable", "simd128": "SSE2", "avx2": "AVX2", "avx512": "AVX-512", "neon": "NEON"}


def time_plot(results: Results, operation: str, what: str) -> Plot:
    """Returns ns per key by the number of keys: petal's 1 % filter by kernel, random reads of memory, the rivals."""

    def points(is_shown: Callable[[Row], bool]) -> list[tuple[float, float]]:
        found = []
        for n in results.sizes:
            # Those of the rivals' suite were measured in turns.
            for suite in ("rivals", "own"):
                rows = (row for row in results.having(n=n, suite=suite, threads=1) if row.operation != "build")
                times = [row.ns_median for row in rows if is_shown(row)]
                if times:
                    found.append((n, min(times)))
                    break
        return found

    series = []
    for kernel in ("avx512", "neon", "avx2", "simd128", "portable"):
        ours = {"filter": PETAL[0], "target_rate": PETAL[1], "form": "batch", "keys": "hash", "kernel": kernel}
        ours["operation"] = operation
        series.append((f"petal, {KERNELS[kernel]}", points(lambda row, ours=ours: has(row, ours)), "petal"))
    best = {n: results.best_reads(n) for n in results.sizes}
    series.append((f"limit: {RANDOM_READS}", points(lambda row: row.filter == best[row.n]), "limit"))
    for name in (name for name in results.filters if not name.startswith(("petal", RANDOM_READS))):
        rows = list(results.having(filter=name, operation=operation))
        # One kind of keys for a line: hashes, if the filter takes them. Some rivals do not support a rate of 1 %.
        kind = next((kind for kind in ("hash", "u64", "bytes", "-") if any(row.keys == kind for row in rows)), None)
        wanted = {"filter": name, "operation": operation, "keys": kind}
        if any(row.target_rate == RATES[0] for row in rows):
            wanted["target_rate"] = RATES[0]
        label = name + {"u64": "*", "bytes": "†"}.get(kind, "")
        color = ["other1", "other2", "other"][len(series) % 3]
        series.append((label, points(lambda row, wanted=wanted: has(row, wanted)), color))
    return {
        "title": f"{what}: ns per key",
        "subtitle": "Less is better. About 1 %, one thread, log scales; petal in batches, other libraries key by key. "
        "Keys are mixed hashes, * 64-bit numbers, † bytes.",
        "x": "keys in the filter",
        "y": "ns per key",
        "series": [one for one in series if one[1]],
        "ticks": results.sizes,
    }


def family_plot(results: Results) -> Plot:
    """Returns how much larger than the information limit of its measured rate each filter is at the highest rate."""
    n = compared_at(results)
    rows = []
    for name in results.filters:
        row = smallest_at(results, name, n, RATES[0])
        if row and row.measured_rate and row.bits_per_key:
            rows.append((name, [row.bits_per_key / -math.log2(row.measured_rate)], "", name.startswith("petal")))
    rows.sort(key=lambda row: (not row[3], row[1]))
    return {
        "title": "Bits per key over the information limit",
        "subtitle": f"Less is better. {size(n)} keys at a target of 1 % or the nearest that a filter has. The limit of a "
        "measured false-positive rate is log₂(1/rate) bits per key.",
        "columns": [{"title": "multiple", "log": True, "write": "{:.2f} ×".format, "limit": (1, "limit")}],
        "rows": rows,
        "names": "beside",
    }
