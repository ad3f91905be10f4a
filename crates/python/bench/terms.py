"""Measures the terms of the cost model of `plan.py`: `python terms.py A B`.

A and B are line files. The functions on byte ranges run one after the other in this process, on one
thread, like the tasks of a job. Prints CSV rows: the term, its value and unit, and the amount.
"""

import csv
import os
import platform
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable

from petal._petal import ranges

SETTINGS = (1 << 30, 1, None, ord("\n"))


def cpu(work: Callable[[], dict[str, int]]) -> tuple[float, dict[str, int]]:
    """Returns seconds of CPU time, user and system, and the result."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    done = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def main(a: str, b: str) -> None:
    folder = tempfile.mkdtemp(prefix="terms-", dir=os.path.dirname(os.path.abspath(a)))
    try:
        rows(a, b, folder)
    finally:
        shutil.rmtree(folder)


def rows(a: str, b: str, folder: str) -> None:
    out = csv.writer(sys.stdout)
    out.writerow(["term", "value", "unit", "of", "machine"])
    with open("/proc/cpuinfo") as info:
        names = [line.split(": ")[1].strip() for line in info if line.startswith("model name")]
    machine = f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"

    def row(term: str, value: float, unit: str, of: object) -> None:
        out.writerow([term, f"{value:.4g}", unit, of, machine])

    def file(name: str) -> str:
        return os.path.join(folder, name)

    keys = ranges.job_keys()
    first, other = ranges.split([a], 128 << 20), ranges.split([b], 128 << 20)
    plan = ranges.plan(SETTINGS, other)
    size = (plan["wanted_bytes"], plan["lines"], None)
    halves = [other[: len(other) // 2], other[len(other) // 2 :]]
    lines = seconds = 0.0
    for at, half in enumerate(halves):
        spent, done = cpu(
            lambda at=at, half=half: ranges.build(
                SETTINGS, keys, half, size, (file(f"half-{at}"), None)
            )
        )
        seconds, lines = seconds + spent, lines + done["lines"]
    row("build", seconds / lines * 1e9, "ns per line", int(lines))
    partials = [(file(f"half-{at}"), None) for at in range(2)]
    spent, _ = cpu(lambda: ranges.union(SETTINGS, keys, partials, (file("b"), None)))
    row("union", spent / size[0] / 2 * 1e9, "ns per byte of a partial filter", size[0])
    spent, done = cpu(
        lambda: ranges.filter(SETTINGS, keys, first, True, 2, file("first"), [file("b")])
    )
    row("filter", spent / done["lines"] * 1e9, "ns per line", done["lines"])
    candidates, written = done["candidates"], done["written"]
    back = (max(candidates * 14 // 8, 128), candidates, None)
    spent, _ = cpu(
        lambda: ranges.build_from_candidates(SETTINGS, keys, [file("first")], back, file("back"))
    )
    row("filter back", spent / candidates * 1e9, "ns per candidate", candidates)
    spent, done = cpu(
        lambda: ranges.filter(SETTINGS, keys, other, False, 2, file("other"), [file("back")])
    )
    records = candidates + done["candidates"]
    row("survivors", (written + done["written"]) / records, "bytes per candidate", records)
    row("filter", spent / done["lines"] * 1e9, "ns per line", done["lines"])
    seconds, kept = 0.0, 0
    for part in range(2):
        spent, done = cpu(
            lambda part=part: ranges.exact(
                SETTINGS, keys, "common", part, ([file("first")], len(first)),
                [([file("other")], len(other))], file(f"answer-{part}"),
            )
        )
        seconds, kept = seconds + spent, kept + done["listed"]
    row("exact", seconds / records * 1e9, "ns per candidate", records)
    answers = [file(f"answer-{part}") for part in range(2)]
    seconds = 0.0
    for one in first:
        seconds += cpu(
            lambda one=one: ranges.write_lines(
                SETTINGS, keys, [(one, file("part"))], answers, folder
            )
        )[0]
    row("take", seconds / first[-1][3] * 1e9, "ns per byte", f"{kept} lines kept")


if __name__ == "__main__":
    main(*sys.argv[1:])
