"""Plots as SVG, by matplotlib: the same data give the same bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from .rows import Plot, short, size


def digest(plot: Plot) -> str:
    """Returns a number that changes with the data of a plot."""
    return hashlib.sha256(json.dumps(plot).encode()).hexdigest()[:16]


# Shades of blue for petal; the other colors of Okabe & Ito, which differ in all kinds of color vision, for others.
OURS = ["#003b73", "#0072b2", "#56b4e9", "#7d8fc9"]
OTHERS = ["#d55e00", "#009e73", "#cc79a7", "#e69f00", "#777777"]
GRAY, MARKERS = "#5f5f5f", "o^xsD"


def draw(plot: Plot, path: Path) -> None:
    """Draws a plot of lines or points, or of commands."""
    import matplotlib

    matplotlib.use("svg")
    spines = {"axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GRAY}
    matplotlib.rcParams.update({"svg.hashsalt": "petal", "svg.fonttype": "none", "font.size": 9} | spines)
    from matplotlib import pyplot

    draw_content = draw_lines if "series" in plot else draw_commands
    figure = draw_content(pyplot, plot)
    figure.suptitle(f"{plot['title']}\n", x=0.02, ha="left", fontsize=12, fontweight="bold")
    figure.text(0.02, 1 - 0.42 / figure.get_figheight(), plot["subtitle"], color=GRAY, va="center")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Description": f"data {digest(plot)}"})
    pyplot.close(figure)


def draw_lines(pyplot, plot: Plot):
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure, axes = pyplot.subplots(figsize=(9.6, 6), layout="constrained")
    counts, drawn = {True: 0, False: 0}, []
    for name, points in plot["series"]:
        ours = name.startswith("petal")
        colors = OURS if ours else OTHERS
        # Each pair of color and marker is used once.
        marker, color = divmod(counts[ours], len(colors))
        counts[ours] += 1
        style = {"color": colors[color], "marker": MARKERS[marker], "linewidth": 2 if ours else 1.3, "zorder": 3 + ours}
        if len(points) == 1:
            style["linestyle"] = "none"
        drawn.append((points[-1][1], axes.plot(*zip(*points, strict=True), label=name, markersize=5, **style)[0]))
    if "curve" in plot:
        name, points = plot["curve"]
        drawn.append((points[-1][1], axes.plot(*zip(*points, strict=True), label=name, color=GRAY, linewidth=1)[0]))
    axes.set(xscale="log", yscale="log", xlabel=plot["x"], ylabel=plot["y"])
    axes.grid(color="#e3e3e3")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if "ticks" in plot:
        axes.set_xticks(plot["ticks"], [size(n) for n in plot["ticks"]])
    # The legend has the order of the ends of the lines.
    drawn.sort(key=lambda pair: -pair[0])
    figure.legend(handles=[line for _, line in drawn], loc="outside right center", frameon=False)
    return figure


def draw_commands(pyplot, plot: Plot):
    """Draws two columns of horizontal bars that share the names of their rows."""
    commands = plot["commands"]
    height = 0.9 + 0.34 * len(commands)
    figure, columns = pyplot.subplots(1, 2, sharey=True, figsize=(9.6, height), layout="constrained")
    for number, (axes, (title, unit, places)) in enumerate(zip(columns, plot["columns"], strict=True)):
        values = [0 if trouble else measured[number] for _, measured, trouble, _ in commands]
        bars = axes.barh(range(len(commands)), values, color=[OURS[1] if ours else OTHERS[4] for *_, ours in commands])
        labels = [f"{value:,.{places}f} {unit}" if value else "" for value in values]
        axes.bar_label(bars, labels, padding=4)
        for row, (_, _, trouble, _) in enumerate(commands):
            if trouble and number == 0:
                axes.text(0, row, trouble, color=OTHERS[0], va="center")
        axes.set_title(f"{title}, {unit}", loc="left", fontsize=9, color=GRAY)
        axes.set(xticks=[], xlim=(0, max(values) * 1.3))
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(left=False)
    columns[0].set_yticks(range(len(commands)), [name for name, *_ in commands])
    columns[0].invert_yaxis()
    for label, (*_, ours) in zip(columns[0].get_yticklabels(), commands, strict=True):
        label.set(fontweight="bold" if ours else "normal", fontsize=10)
    return figure
