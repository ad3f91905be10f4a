"""The stages of a distributed job. Each stage is a list of tasks for an engine.

An engine has:

* `slots`: the number of tasks that it currently runs at a time;
* `map(function, items)`: applies a function to each item, on any worker, again if a worker was
  lost, and returns the list of results in the order of the items;
* `fetch(path)`: called on a worker; returns the path of a local file with the contents of `path`, a
  file of the work folder.

All other data goes through files in the work folder, which all workers share.

There are more tasks than slots, so that a lost worker loses little work and a slow one delays
little. In stages whose tasks each build a filter of full size, there is one task per slot.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from petal._distributed import tasks
from petal._distributed.tasks import FileSeries, Item, Numbers
from petal._petal import ranges

#: Number, path, start, end, and the identity of the file, which detects a change during the job.
ByteRange = tuple[int, str, int, int, tuple[int, int, int]]
#: Bytes, lines and false-positive rate (`None`: not specified) of a filter.
FilterSize = tuple[int, int, float | None]
#: Memory limit, threads, folder for spill files, delimiter, names of changes to keys, JSON pointers.
Settings = tuple[int, int, str | None, int, str, list[str]]
#: The paths of a filter of all lines and of a filter of the repeated lines.
FilterPair = tuple[str, str | None]
T = TypeVar("T")

#: Partial filters in one task of a union.
_FAN_IN = 8
#: Tasks per slot, in stages whose tasks build no filter.
TASKS_PER_SLOT = 4


class Engine(Protocol):
    """Runs tasks on workers."""

    @property
    def slots(self) -> int: ...
    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]: ...
    @property
    def fetch(self) -> Callable[[str], str]: ...


@dataclass
class Report:
    """The figures of a distributed job. Sizes are in bytes, times in seconds of wall clock."""

    lines: int = 0
    """Lines of A, or of all files."""
    kept: int = 0
    """Lines of the result; for `build` the estimated number of distinct lines."""
    candidates: int = 0
    """Lines of A that filters could not exclude."""
    false_found: int | None = None
    """Candidates that are false positives of the filters."""
    filter_bytes: int = 0
    """Size of the largest filter."""
    shards: int = 0
    """Hash ranges that each filter was split into; 0 if filters were not split."""
    bytes_read: int = 0
    """Bytes read by all tasks, from inputs and from the work folder."""
    bytes_through_work: int = 0
    """Bytes written to the work folder: filters, hashes, candidates."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Time of each stage."""

    def plus(self, other: "Report") -> "Report":
        """Returns the figures of two jobs that ran one after the other."""
        stages = [*self.seconds, *(stage for stage in other.seconds if stage not in self.seconds)]
        false_found = None
        if self.false_found is not None and other.false_found is not None:
            false_found = self.false_found + other.false_found
        return Report(
            lines=self.lines + other.lines,
            kept=self.kept + other.kept,
            candidates=self.candidates + other.candidates,
            false_found=false_found,
            filter_bytes=max(self.filter_bytes, other.filter_bytes),
            shards=max(self.shards, other.shards),
            bytes_read=self.bytes_read + other.bytes_read,
            bytes_through_work=self.bytes_through_work + other.bytes_through_work,
            seconds={s: self.seconds.get(s, 0) + other.seconds.get(s, 0) for s in stages},
        )


def split_evenly(sequence: Sequence[T], max_groups: int) -> list[Sequence[T]]:
    """Splits a sequence into consecutive groups; an empty one into one empty group."""
    count = min(max_groups, len(sequence)) or 1
    ends = [len(sequence) * at // count for at in range(count + 1)]
    return [sequence[begin:end] for begin, end in zip(ends, ends[1:])]


@dataclass
class Job:
    """A job with its work folder."""

    engine: Engine
    work: Path
    #: Folders that workers must see, with the names of the arguments that set them.
    folders: list[tuple[str, str]]
    settings: Settings
    #: The number of tasks at a time that the job is split for.
    slots: int
    report: Report = field(default_factory=Report)
    keys: bytes = field(default_factory=ranges.job_keys)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the time of the block to the report."""
        start = time.monotonic()
        yield
        self.report.seconds[stage] = self.report.seconds.get(stage, 0) + time.monotonic() - start

    def file(self, name: str) -> str:
        return str(self.work / name)

    def file_series(self, name: str, count: int) -> FileSeries:
        return (self.file(name + "-"), 0, count)

    def run(
        self, stage: str, task: Callable[[dict[str, Any], Item], Numbers], items: Sequence[Item]
    ) -> list[Numbers]:
        """Runs a task for each item."""
        job = {
            "settings": self.settings,
            "keys": self.keys,
            "fetch": self.engine.fetch,
            "work": str(self.work),
            "folders": self.folders,
        }
        with self.timed(stage):
            results = self.engine.map(partial(task, job), items)
        self.report.bytes_read += sum(numbers.get("bytes", 0) for numbers in results)
        return results

    def run_writing(
        self, stage: str, task: Callable[[dict[str, Any], Item], Numbers], items: Sequence[Item]
    ) -> list[Numbers]:
        """The same for tasks that write to the work folder."""
        results = self.run(stage, task, items)
        self.report.bytes_through_work += sum(numbers["written"] for numbers in results)
        return results

    def _filter_pair(self, name: str, number: object, repeated: bool) -> FilterPair:
        path = self.file(f"{name}-{number}")
        return path, path + "-repeated" if repeated else None

    def count(self, byte_ranges: Sequence[ByteRange]) -> int:
        """Counts the lines that start in byte ranges."""
        groups = split_evenly(byte_ranges, self.slots * TASKS_PER_SLOT)
        items = [{"ranges": group} for group in groups]
        return sum(numbers["lines"] for numbers in self.run("count", tasks.count, items))

    # ---- Whole filters ---------------------------------------------------------------------------

    def build_filter(
        self, name: str, byte_ranges: Sequence[ByteRange], size: FilterSize, repeated: bool
    ) -> FilterPair:
        """Builds the filter of all lines, and with `repeated` also that of repeated lines."""
        items: list[Item] = [
            {"ranges": group, "size": size, "out": self._filter_pair(name, slot, repeated)}
            for slot, group in enumerate(split_evenly(byte_ranges, self.slots))
        ]
        self.run_writing("build", tasks.build, items)
        return self._union(name, [item["out"] for item in items], repeated)

    def build_filter_of_candidates(self, candidates: FileSeries, size: FilterSize) -> str:
        """Builds the filter of one side's candidates, which reduces the other side."""
        prefix, begin, end = candidates
        items: list[Item] = [
            {
                "candidates": (prefix, group[0], group[-1] + 1),
                "size": size,
                "out": self.file(f"candidates-filter-{slot}"),
            }
            for slot, group in enumerate(split_evenly(range(begin, end), self.slots))
        ]
        self.run_writing("build", tasks.build_from_candidates, items)
        partials: list[FilterPair] = [(item["out"], None) for item in items]
        return self._union("candidates-filter", partials, False)[0]

    def _union(self, name: str, partials: list[FilterPair], repeated: bool) -> FilterPair:
        """Builds the union of partial filters, as a tree."""
        level = 0
        while len(partials) > 1:
            level += 1
            groups = [partials[at : at + _FAN_IN] for at in range(0, len(partials), _FAN_IN)]
            items: list[Item] = [
                {"partials": group, "out": self._filter_pair(name, f"{level}.{at}", repeated)}
                for at, group in enumerate(groups)
            ]
            self.run_writing("union", tasks.union, items)
            for path in (path for pair in partials for path in pair if path):
                Path(path).unlink(missing_ok=True)
            partials = [item["out"] for item in items]
        self._record_size(partials[0][0])
        return partials[0]

    def _record_size(self, path: str) -> None:
        size = Path(path).stat().st_size
        self.report.filter_bytes = max(self.report.filter_bytes, size)

    # ---- Filters split by hash range -------------------------------------------------------------

    def hash_lines(
        self, name: str, byte_ranges: Sequence[ByteRange], shards: int, first: bool
    ) -> FileSeries:
        """Writes the hashes of the lines, by shard."""
        groups = split_evenly(byte_ranges, self.slots * TASKS_PER_SLOT)
        hashes = self.file_series(f"{name}-hashes", len(groups))
        items = [
            {"ranges": group, "first": first, "shards": shards, "out": out}
            for group, out in zip(groups, tasks.files(hashes))
        ]
        self.run_writing("hash", tasks.hash_lines, items)
        return hashes

    def build_shards(
        self, name: str, hashes: FileSeries, shards: int, size: FilterSize, repeated: bool = False
    ) -> list[FilterPair]:
        """Builds the filter of each shard, and with `repeated` also that of repeated lines."""
        items: list[Item] = [
            {
                "shard": shard,
                "size": size,
                "hashes": hashes,
                "out": self._filter_pair(f"{name}-shard", shard, repeated),
            }
            for shard in range(shards)
        ]
        self.run_writing("build", tasks.build_shard, items)
        self._record_size(items[0]["out"][0])
        return [item["out"] for item in items]

    def probe_shards(
        self, name: str, filters: Sequence[Sequence[str]], hashes: FileSeries, first: bool
    ) -> FileSeries:
        """Writes a bit for each hash: whether any filter of its shard may contain it."""
        bits = self.file_series(f"{name}-bits", len(filters))
        items = [
            {"shard": shard, "first": first, "filters": paths, "hashes": hashes, "out": out}
            for shard, (paths, out) in enumerate(zip(filters, tasks.files(bits)))
        ]
        self.run_writing("probe", tasks.probe_shard, items)
        return bits

    # ---- Exact decision --------------------------------------------------------------------------

    def select(
        self,
        name: str,
        byte_ranges: Sequence[ByteRange],
        by: Item,
        partitions: int,
        first: bool,
    ) -> tuple[FileSeries, list[Numbers]]:
        """Writes the candidates: the lines that filters, or their bits, cannot exclude."""
        groups = split_evenly(byte_ranges, self.slots * TASKS_PER_SLOT)
        series = self.file_series(name, len(groups))
        items = [
            {"ranges": group, "first": first, "partitions": partitions, "out": out} | by
            for group, out in zip(groups, tasks.files(series))
        ]
        return series, self.run_writing("filter", tasks.select, items)

    def decide(
        self,
        operation: str,
        first: tuple[FileSeries, int],
        others: list[tuple[FileSeries, int]],
        partitions: int,
        at_least: int | None,
    ) -> tuple[FileSeries, int, int]:
        """Decides the candidates of each input, given with its number of byte ranges.

        With `at_least`, a line of `common` must be in this number of `others`.

        Returns the answers, the number of lines that they list, and the number of those refused.
        """
        answers = self.file_series("answer", partitions)
        items = [
            {
                "operation": operation,
                "partition": number,
                "first": first,
                "others": others,
                "at_least": at_least,
                "out": out,
            }
            for number, out in enumerate(tasks.files(answers))
        ]
        results = self.run_writing("exact", tasks.decide, items)
        listed, refused = (sum(numbers[key] for numbers in results) for key in ("listed", "refused"))
        return answers, listed, refused
