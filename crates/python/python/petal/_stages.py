"""The stages that jobs past one machine are made of, each of them tasks for an engine.

An engine is asked for little:

* `slots`: how many tasks it runs at a time, as far as it knows now;
* `map(function, items)`: applies a function of one item to each, on any worker, again where one
  was lost; the results as a list, in the order of the items;
* `fetch(path)`: on a worker, a file near it with what is in that file of the work folder.

Everything else goes through files in the work folder, which all workers see.

Work is cut finer than there are slots, so that little is lost with a worker and a slow one delays
little: ranges go to tasks some at a time, but to `build`, in which every task makes a filter of the
full size, as many at a time as one slot has to do.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from petal import _tasks
from petal._petal import ranges
from petal._tasks import Item, Numbers, Row

Range = tuple[int, str, int, int, tuple[int, int, int]]
Size = tuple[int, int, float | None]
Partial = tuple[str, str | None]
T = TypeVar("T")

#: Partial filters that one task unites.
_FAN_IN = 8
#: Tasks for each slot, in stages whose tasks need no filter of their own.
TASKS = 4


class Engine(Protocol):
    """What runs tasks."""

    @property
    def slots(self) -> int: ...
    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]: ...
    @property
    def fetch(self) -> Callable[[str], str]: ...


@dataclass
class Report:
    """What a job did. Sizes are in bytes, times in seconds of wall clock."""

    lines: int = 0
    """Lines of A, or of all files."""
    kept: int = 0
    """Lines of the answer; of `build`, distinct lines by the filter's estimate."""
    candidates: int = 0
    """Lines of A that filters could not rule out."""
    false_found: int | None = None
    """Of the candidates, those that the exact decision says they should have."""
    filter_bytes: int = 0
    """Of the largest filter."""
    shards: int = 0
    """Hash ranges that each filter was cut into; 0 if none was."""
    bytes_read: int = 0
    """Read by all tasks: of inputs, and of what went through the work folder."""
    bytes_through_work: int = 0
    """Written to the work folder: filters, hashes, survivors."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By stage."""


def groups(of: Sequence[T], most: int) -> list[Sequence[T]]:
    """Neighbours together, in so many groups at most; one group of nothing."""
    count = min(most, len(of)) or 1
    ends = [len(of) * at // count for at in range(count + 1)]
    return [of[begin:end] for begin, end in zip(ends, ends[1:])]


@dataclass
class Job:
    """A job in its work folder."""

    engine: Engine
    work: Path
    #: Those that workers must see, with the names of the options that name them.
    folders: list[tuple[str, str]]
    settings: tuple[int, int, str | None, int]
    #: How many tasks at a time the work is cut for.
    slots: int
    report: Report = field(default_factory=Report)
    keys: bytes = field(default_factory=ranges.job_keys)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.report.seconds[name] = self.report.seconds.get(name, 0) + time.monotonic() - begun

    def file(self, name: str) -> str:
        return str(self.work / name)

    def row(self, name: str, count: int) -> Row:
        return (self.file(name + "-"), 0, count)

    def each(
        self, stage: str, task: Callable[[dict[str, Any], Item], Numbers], items: Sequence[Item]
    ) -> list[Numbers]:
        """Runs a task for each item."""
        told = {
            "settings": self.settings,
            "keys": self.keys,
            "fetch": self.engine.fetch,
            "work": str(self.work),
            "folders": self.folders,
        }
        with self.stage(stage):
            done = self.engine.map(partial(task, told), items)
        self.report.bytes_read += sum(numbers.get("bytes", 0) for numbers in done)
        return done

    def write(
        self, stage: str, task: Callable[[dict[str, Any], Item], Numbers], items: Sequence[Item]
    ) -> list[Numbers]:
        """The same for tasks that write to the work folder."""
        done = self.each(stage, task, items)
        self.report.bytes_through_work += sum(numbers["written"] for numbers in done)
        return done

    def _partial(self, name: str, number: object, twice: bool) -> Partial:
        seen = self.file(f"{name}-{number}")
        return seen, seen + "-twice" if twice else None

    def count(self, of: Sequence[Range]) -> int:
        """How many lines start in ranges."""
        items = [{"ranges": some} for some in groups(of, self.slots * TASKS)]
        return sum(numbers["lines"] for numbers in self.each("count", _tasks.count, items))

    # ---- Whole filters ---------------------------------------------------------------------------

    def filter_of(self, name: str, of: Sequence[Range], size: Size, twice: bool) -> Partial:
        """The filter of all lines of ranges, and if asked of those that came twice."""
        items: list[Item] = [
            {"ranges": some, "size": size, "out": self._partial(name, slot, twice)}
            for slot, some in enumerate(groups(of, self.slots))
        ]
        self.write("build", _tasks.build, items)
        return self._united(name, [item["out"] for item in items], twice)

    def filter_of_survivors(self, survivors: Row, size: Size) -> str:
        """The filter of the survivors of one side, to narrow the other with."""
        prefix, begin, end = survivors
        items: list[Item] = [
            {
                "survivors": (prefix, some[0], some[-1] + 1),
                "size": size,
                "out": self.file(f"back-{slot}"),
            }
            for slot, some in enumerate(groups(range(begin, end), self.slots))
        ]
        self.write("build", _tasks.build_back, items)
        return self._united("back", [(item["out"], None) for item in items], False)[0]

    def _united(self, name: str, partials: list[Partial], twice: bool) -> Partial:
        """The union of partials, as a tree."""
        level = 0
        while len(partials) > 1:
            level += 1
            some = [partials[at : at + _FAN_IN] for at in range(0, len(partials), _FAN_IN)]
            items: list[Item] = [
                {"partials": few, "out": self._partial(name, f"{level}.{at}", twice)}
                for at, few in enumerate(some)
            ]
            self.write("union", _tasks.union, items)
            for path in (path for made in partials for path in made if path):
                Path(path).unlink(missing_ok=True)
            partials = [item["out"] for item in items]
        self._sized(partials[0][0])
        return partials[0]

    def _sized(self, path: str) -> None:
        size = Path(path).stat().st_size
        self.report.filter_bytes = max(self.report.filter_bytes, size)

    # ---- Filters by hash range -------------------------------------------------------------------

    def dealt(self, name: str, of: Sequence[Range], shards: int, first: bool) -> Row:
        """The hashes of the lines of ranges, dealt to shards."""
        some = groups(of, self.slots * TASKS)
        hashes = self.row(f"{name}-hashes", len(some))
        items = [
            {"ranges": few, "first": first, "shards": shards, "out": out}
            for few, out in zip(some, _tasks.files(hashes))
        ]
        self.write("hash", _tasks.keys, items)
        return hashes

    def shards_of(
        self, name: str, hashes: Row, shards: int, size: Size, twice: bool = False
    ) -> list[Partial]:
        """The filter of each shard, and if asked of the lines that came twice."""
        items: list[Item] = [
            {
                "shard": shard,
                "size": size,
                "hashes": hashes,
                "out": self._partial(f"{name}-shard", shard, twice),
            }
            for shard in range(shards)
        ]
        self.write("build", _tasks.build_shard, items)
        self._sized(items[0]["out"][0])
        return [item["out"] for item in items]

    def told(self, name: str, filters: Sequence[Sequence[str]], hashes: Row, first: bool) -> Row:
        """A bit for each hash, whether any of the filters of its shard may hold it."""
        bits = self.row(f"{name}-bits", len(filters))
        items = [
            {"shard": shard, "first": first, "filters": few, "hashes": hashes, "out": out}
            for shard, (few, out) in enumerate(zip(filters, _tasks.files(bits)))
        ]
        self.write("probe", _tasks.probe, items)
        return bits

    # ---- The exact part --------------------------------------------------------------------------

    def survivors(
        self, name: str, of: Sequence[Range], by: Item, partitions: int, first: bool
    ) -> tuple[Row, list[Numbers]]:
        """The lines of ranges that filters, or bits, cannot rule out, in files; their numbers."""
        some = groups(of, self.slots * TASKS)
        row = self.row(name, len(some))
        items = [
            {"ranges": few, "first": first, "partitions": partitions, "out": out} | by
            for few, out in zip(some, _tasks.files(row))
        ]
        return row, self.write("filter", _tasks.narrow, items)

    def decided(
        self, verb: str, first: tuple[Row, int], others: list[tuple[Row, int]], partitions: int
    ) -> tuple[Row, int, int]:
        """The answer in files; how many lines it lists, and how many it refused. Inputs are the
        survivors of each, and how many ranges it has."""
        answers = self.row("answer", partitions)
        items = [
            {"verb": verb, "partition": number, "first": first, "others": others, "out": out}
            for number, out in enumerate(_tasks.files(answers))
        ]
        done = self.write("exact", _tasks.exact, items)
        listed, refused = (sum(numbers[of] for numbers in done) for of in ("listed", "refused"))
        return answers, listed, refused
