"""The plot and the table of `cargo x bench files`."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from .rows import Plot, read


def common_plot(path: Path) -> Plot:
    """Returns time and memory of `common`, first of petal's first command, then of its rivals, the best first."""
    rows = [row for row in read(path)[1] if row["work"] == "common"]
    time_column: dict[str, Any] = {"title": "time", "write": "{:.1f} s".format}
    if reading := [float(row["wall_s"]) for row in rows if row["tool"] == "wc"]:
        time_column["limit"] = (median(reading), "wc -l, reading alone")
    rows = [row for row in rows if row["tool"] != "wc"]
    files = {(int(row["lines_per_file"]), int(row["lines_common"]), int(row["line_bytes"])) for row in rows}
    commands: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        commands.setdefault((row["tool"], row["config"]), []).append(row)
    petal = next((command for command in commands if command[0] == "petal"), None)
    if petal is None or len(files) != 1:
        raise ValueError("rows of `common` by petal on one pair of files are expected")

    def time(command: tuple[str, str]) -> float:
        return median(float(row["wall_s"]) for row in commands[command])

    def failed(command: tuple[str, str]) -> int:
        return sum(row["trouble"] != "" for row in commands[command])

    rivals = sorted((one for one in commands if one[0] != "petal"), key=lambda one: (failed(one) > 0, time(one)))
    tools = [tool for tool, _ in rivals]
    rivals.sort(key=lambda one: tools.index(one[0]))
    bars = []
    for tool, config in [petal, *rivals]:
        disk = "in memory" if config == "memory" else f"on disk above {config}"
        names = {
            "petal": "petal common" if config == "default" else f"petal common {config}",
            "duckdb": f"DuckDB, memory limit {config}",
            "clickhouse": f"ClickHouse, {disk}",
            "polars": f"polars, {disk}",
            "zet": "zet (all lines in memory)",
            "sort+comm": f"GNU sort {config}, and comm",
        }
        found = commands[tool, config]
        values = [time((tool, config)), median(float(row["peak_rss_bytes"]) for row in found) / 2**20]
        failure = failed((tool, config))
        trouble = failure and f"out of memory in {failure} of {len(found)} rounds"
        bars.append((names.get(tool, f"{tool} common {config}"), values, trouble or "", tool == "petal"))
    count, common, width = files.pop()
    least, rounds = (pick(map(len, commands.values())) for pick in (min, max))
    slow = "" if least == rounds else f", of slow programs {least}"
    files_text = f"{count / 1e6:g} million lines of {width - 1} bytes, {100 * common / count:.0f} % in common"
    return {
        "title": "Common lines of two files: time and memory",
        "subtitle": f"Less is better. Exact results. Two files of {files_text}, two cores, medians of {rounds} "
        f"rounds{slow}.",
        "columns": [time_column, {"title": "peak memory", "write": "{:,.0f} MiB".format}],
        "rows": bars,
    }


# Programs, and the configurations of each that a row of the table shows.
SHOWN = {
    "**petal, no options**": {"petal": "default"},
    "petal `-m 128M`": {"petal": "-m 128M"},
    "DuckDB, in memory": {"duckdb": "16GB"},
    "DuckDB, 256 MB": {"duckdb": "256MB"},
    "ClickHouse, in memory": {"clickhouse": "memory"},
    "polars, in memory": {"polars": "memory"},
    "GNU sort, 4 GB": {"sort+comm": "-S 4G", "sort": "-u -S 4G", "sort+uniq": "-S 4G"},
    "`wc -l`": {"wc": "-l"},
}


def times_table(path: Path) -> str:
    """Returns the median time and peak memory of each program at each work."""
    rows = read(path)[1]
    works = [work for work in ("common", "dedup", "count") if any(row["work"] == work for row in rows)]
    text = "| |" + "".join(f" `{work}` | memory |" for work in works) + "\n|---|" + "--:|--:|" * len(works) + "\n"
    for name, tools in SHOWN.items():
        cells = []
        for work in works:
            found = [row for row in rows if row["work"] == work and tools.get(row["tool"]) == row["config"]]
            if not found:
                cells += ["", ""]
            elif any(row["trouble"] for row in found):
                cells += ["out of memory", ""]
            else:
                time = median(float(row["wall_s"]) for row in found)
                memory = median(float(row["peak_rss_bytes"]) for row in found) / 2**20
                cells += [f"{time:.1f} s", f"{memory:,.0f} MiB"]
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text
