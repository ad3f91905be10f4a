"""What jobs past one machine would take: the tables of docs/spark.md.

`python plan.py TERMS.csv` with rows of `terms.py`. A model, not a measurement: processor time is
lines times measured nanoseconds, bytes follow from what the functions read and write. It knows
nothing of disks, networks, or stragglers.
"""

import csv
import sys
from dataclasses import dataclass

LINE = 65
"""Bytes of a line: a URL of 64, and LF."""
BITS = 14
"""Bits a line of a filter that has room."""
RATE = 0.0019
"""False-positive rate of that."""
SPARK_ROW = 34.3
"""Bytes a row that Spark's own semi join shuffles, compressed, of such lines (measured)."""


@dataclass
class Job:
    """A job: `lines` on each side, a share of them in common, and what runs it."""

    lines: float
    common: float
    workers: int
    slots: int
    """Tasks at a time, in all."""
    memory: float
    """Bytes of a task."""


def terms(path: str) -> dict[str, float]:
    """Nanoseconds by term; of a term that is there twice, the mean."""
    found: dict[str, list[float]] = {}
    with open(path, newline="") as rows:
        for row in csv.DictReader(rows):
            found.setdefault(row["term"], []).append(float(row["value"]))
    return {term: sum(values) / len(values) for term, values in found.items()}


def plan(job: Job, ns: dict[str, float]) -> list[str]:
    """A row of the table."""
    text = job.lines * LINE
    whole = job.lines * BITS / 8
    # As petal._jobs decides: two filters are held where partials are united, in what the cap
    # leaves beside buffers, long lines and records; and there are 256 shards at most.
    room = job.memory * 0.7
    sharded = whole * 6 / BITS > room / 2
    survivors = job.lines * (2 * job.common + RATE)
    records = survivors * ns["survivors"]
    answer = 8 * job.lines * job.common
    seconds = job.lines * (ns["build"] + 2 * ns["filter"]) + survivors * ns["exact"]
    seconds += text * ns["take"]
    read = 4 * text
    if sharded:
        shards = min(max(job.slots, -(-whole // room)), 256)
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
    # Each partition opens all survivors of both sides, for what they say of themselves and for what
    # they have for it; each task that takes lines opens all answers.
    tasks = 4 * job.slots
    records = -(-job.lines * 19 // (room * 3 / 4 * 0.9))
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
    """Like 3.2 TB."""
    units = ["B", "KB", "MB", "GB", "TB", "PB"]
    while bytes >= 999.5 and len(units) > 1:
        bytes /= 1000
        units.pop(0)
    return f"{bytes:.3g} {units[0]}"


def main(path: str) -> None:
    ns = terms(path)
    head = [
        "lines a side", "in common", "cluster", "ranges a side", "filter of B", "read of inputs",
        "through the work folder", "files opened there", "processor time",
        "Spark's own semi join shuffles",
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
