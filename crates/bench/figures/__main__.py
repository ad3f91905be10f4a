"""Writes the tables and plots. `--check` writes nothing and fails if one is not that of the rows; `--numbers` prints
the other numbers that have no source.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import filters, numbers, rows
from .chinese import in_chinese
from .draw import alt, svg
from .lab import Lab
from .line_files import common_plot, times_table
from .rows import Plot, Results

# Pages with the texts between their markers, and plots by path.
Generated = tuple[dict[str, dict[str, str]], dict[str, Plot]]
README, PERFORMANCE, LAB = "README.md", "docs/performance/README.md", "docs/uses/lab.md"
# The whole tables of the filter benchmarks, of which the page has a part.
FILTERS = "results/filters.md"
PLOTS = "docs/performance/plots"
CHINESE_README, CHINESE_LAB, CHINESE_PLOTS = "README.zh-CN.md", "docs/zh/uses/lab.md", "docs/zh/plots"


def picture(name: str, page: str, plot: Plot) -> str:
    """Returns the link from a page to a plot."""
    path = os.path.relpath(name, os.path.dirname(page))
    return f"![{alt(plot)}]({path})"


def of_filters(path: Path) -> Generated:
    results = Results(path)
    lines = [
        f"| {one.work} | {one.wanted} | {one.measured()} | {one.verdict()} |\n" for one in filters.targets(results)
    ]
    table = "| work | target | measured | |\n|---|---|---|---|\n" + "".join(lines) + "\n" + results.source
    plot, name = filters.time_plot(results, "absent", "Looking up absent keys"), f"{PLOTS}/filters-absent.svg"
    page = {"absent-plot": picture(name, PERFORMANCE, plot)}
    return {FILTERS: {"targets": table}, PERFORMANCE: page}, {name: plot}


def of_family(path: Path) -> Generated:
    results = Results(path)
    texts = {
        "space": filters.space_table(results),
        "speed": filters.speed_table(results),
        "ratios": filters.ratio_table(results),
        "source": results.source,
    }
    plot, name = filters.family_plot(results), f"{PLOTS}/family-space.svg"
    page = {"filters": filters.short_table(results), "space-plot": picture(name, PERFORMANCE, plot)}
    return {FILTERS: texts, PERFORMANCE: page}, {name: plot}


def of_family_avx2(path: Path) -> Generated:
    results = Results(path)
    return {FILTERS: {"avx2": filters.ratio_table(results) + "\n" + results.source}}, {}


def of_line_files(path: Path) -> Generated:
    plot, name = common_plot(path), f"{PLOTS}/common.svg"
    pages = {page: {"common-plot": picture(name, page, plot)} for page in (README, PERFORMANCE)}
    pages[PERFORMANCE]["line-files"] = times_table(path)
    other, other_name = in_chinese(plot), f"{CHINESE_PLOTS}/common.svg"
    pages[CHINESE_README] = {"common-plot": picture(other_name, CHINESE_README, other)}
    return pages, {name: plot, other_name: other}


def of_lab(path: Path) -> Generated:
    lab = Lab(path)
    texts = {"ways": lab.ways(), "sizes": lab.sizes(), "claims": lab.claims(), "sample": lab.sample()}
    plot, name = lab.plot(), "docs/uses/plots/lab.svg"
    pages = {LAB: texts | {"source": lab.source, "ways-plot": picture(name, LAB, plot)}}
    other, other_name = in_chinese(plot), f"{CHINESE_PLOTS}/lab.svg"
    pages[CHINESE_LAB] = {"ways-plot": picture(other_name, CHINESE_LAB, other)}
    return pages, {name: plot, other_name: other}


# The endings of the names of result files after the date.
BENCHMARKS = {
    "": of_filters,
    "-family": of_family,
    "-family-avx2": of_family_avx2,
    "-engines": of_line_files,
    "-lab": of_lab,
}


def newest(ending: str) -> Path:
    """Returns the newest result file of a benchmark."""
    return rows.newest(f"results/*/????-??-??{ending}.csv")


def filled(page: str, texts: dict[str, str]) -> str:
    """Returns a page with new texts between `<!-- figures: NAME -->` and the next `<!-- /figures -->`."""
    for name, text in texts.items():
        first, last = f"<!-- figures: {name} -->", "<!-- /figures -->"
        before, found, rest = page.partition(first)
        old, closed, after = rest.partition(last)
        if not found or not closed or "<!-- figures:" in old:
            raise ValueError(f"the marker `{first}` or the `{last}` after it is missing")
        # Without blank lines Markdown would take the markers as part of a table.
        page = f"{before}{first}\n\n{text.strip()}\n\n{last}{after}"
    return page


def update(sources: dict[str, Path], check: bool) -> list[str]:
    """Writes what has changed and returns its paths; or only returns them."""
    changed = []
    for ending, source in sources.items():
        try:
            pages, plots = BENCHMARKS[ending](source)
        except KeyError as error:
            raise ValueError(f"{source}: has no row {error}; measure it completely") from error
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        for page, texts in pages.items():
            old = (rows.ROOT / page).read_text()
            new = filled(old, texts)
            if new != old:
                changed.append(page)
                if not check:
                    (rows.ROOT / page).write_text(new)
        for name, plot in plots.items():
            path = rows.ROOT / name
            old = path.read_text() if path.exists() else ""
            new = svg(plot)
            if new != old:
                changed.append(name)
                if not check:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(new)
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(prog="cargo x figures", description="Updates the tables and plots of the docs.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the docs differ from the rows")
    parser.add_argument("--numbers", action="store_true", help=f"only print the numbers that {numbers.LIST} lacks")
    args = parser.parse_args()
    try:
        if args.numbers:
            problems = numbers.problems()
            print(*problems, sep="\n", end="\n" if problems else "")
            sys.exit(bool(problems))
        changed = update({ending: newest(ending) for ending in BENCHMARKS}, args.check)
    except (OSError, ValueError) as error:
        sys.exit(f"cargo x figures: {error}")
    for path in changed:
        print(f"{path}: {'differs from the rows; run `cargo x figures`' if args.check else 'written'}")
    sys.exit(1 if args.check and changed else 0)


if __name__ == "__main__":
    main()
