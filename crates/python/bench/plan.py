"""Calculates the cost of distributed jobs: `plan.py TERMS.csv`.

TERMS.csv has the rows of `terms.py`. This is a model, not a measurement: CPU time is the number of
lines times measured nanoseconds, and bytes follow from what the functions read and write. Disks,
networks and stragglers are not part of it.
"""

import csv
import sys
from dataclasses import dataclass

LINE = 65
"""Bytes of a line: a URL of 64 bytes, and LF."""
BITS = 14
"""Bits per line of a filter that fits in memory."""
FPR = 0.0019
"""False-positive rate of such a filter."""
SPARK_ROW = 34.3
"""Compressed bytes per row that Spark's own semi-join shuffles for these lines (measured)."""


@dataclass
class Job:
    """A job with `lines` on each side, a share of them in common, and its cluster."""

    lines: float
    common: float
    workers: int
    slots: int
    """Tasks at a time on all workers."""
    memory: float
    """Memory of a task in bytes."""


def terms(path: str) -> dict[str, float]:
    """Returns nanoseconds by term; the mean if a term has several rows."""
    found: dict[str, list[float]] = {}
    with open(path, newline="") as rows:
        for row in csv.DictReader(rows):
            found.setdefault(row["term"], []).append(float(row["value"]))
    return {term: sum(values) / len(values) for term, values in found.items()}


def plan(job: Job, ns: dict[str, float]) -> list[str]:
    """Returns a row of the table."""
    text = job.lines * LINE
    whole = job.lines * BITS / 8
    # As in petal._distributed.jobs: a union holds two filters, in the memory that buffers, long
    # lines and records leave; and there are at most 256 shards.
    available = job.memory * 0.7
    sharded = whole * 6 / BITS > available / 2
    candidates = job.lines * (2 * job.common + FPR)
    records = candidates * ns["survivors"]
    answer = 8 * job.lines * job.common
    seconds = job.lines * (ns["build"] + 2 * ns["filter"]) + candidates * ns["exact"]
    seconds += text * ns["take"]
    read = 4 * text
    if sharded:
        shards = min(max(job.slots, -(-whole // available)), 256)
        read += text
        seconds += job.lines * ns["filter"]
        through = 2 * 8 * job.lines + job.lines / 8 + whole + records + answer
        filter = f"{size(whole)} in {shards:.0f} shards"
    else:
        through = job.slots * whole + whole + records + answer
        seconds += job.slots * whole * ns["union"]
        through += job.workers * whole
        filter = f"{size(whole)}, whole"
    ranges = round(text / max(128 << 20, text / (1 << 24)))
    # Each partition opens all files of candidates of both sides, for their headers and for its
    # records; each task that writes lines opens all answers.
    tasks = 4 * job.slots
    records = -(-job.lines * 19 // (available * 3 / 4 * 0.9))
    partitions = max(job.slots, min(records, tasks, 1024))
    opened = 5 * partitions * min(tasks, ranges)
    return [
        f"{job.lines:.0e}".replace("e+", "e"),
        f"{job.common:.0%}",
        f"{job.workers} x {job.slots // job.workers} tasks of {size(job.memory)}",
        f"{ranges:,}",
        filter,
        size(read),
        size(through),
        f"{opened:.1e}".replace("e+0", "e").replace("e+", "e"),
        f"{seconds / 1e9 / 3600:,.1f} h",
        size(2 * job.lines * SPARK_ROW),
    ]


def size(bytes: float) -> str:
    """Formats a size, such as 3.2 TB."""
    units = ["B", "KB", "MB", "GB", "TB", "PB"]
    while bytes >= 999.5 and len(units) > 1:
        bytes /= 1000
        units.pop(0)
    return f"{bytes:.3g} {units[0]}"


def main(path: str) -> None:
    ns = terms(path)
    head = [
        "lines per side", "in common", "cluster", "ranges per side", "filter of B", "input read",
        "through the work folder", "files opened there", "CPU time",
        "shuffled by Spark's semi-join",
    ]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for job in (
        Job(5e9, 0.01, 1, 8, 4e9),
        Job(5e9, 0.01, 10, 10, 24e9),
        Job(5e9, 0.01, 10, 80, 3e9),
        Job(5e9, 0.10, 10, 80, 3e9),
        Job(1e12, 0.01, 200, 800, 12e9),
        Job(1e12, 0.10, 200, 800, 12e9),
    ):
        print("| " + " | ".join(plan(job, ns)) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
