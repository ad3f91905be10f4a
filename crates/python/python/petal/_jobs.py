"""The driver of jobs past one machine, for any engine.

An engine is asked for little:

* ``slots``: how many tasks it runs at a time;
* ``map(function, items)``: applies a function of one item to each, on any worker, again where one
  was lost; the results as a list, in the order of the items;
* ``publish(path)``: hands a large file round, and gives a token that can be carried with an item;
* ``fetch``: a function from such a token to the path of a local file, which can be carried too.

Everything else goes through files in ``work``, a folder that all workers see, as they see the
inputs and the output.

The answer is a folder: ``part-00000`` and so on, one for each range of A in order, and at last
``_SUCCESS``. One behind the other they are what ``petal common`` (``diff``, ``dedup``) prints.
"""

import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

from petal import _tasks
from petal._petal import ranges

Paths = str | Path | Sequence[str | Path]
Range = tuple[int, str, int, int]
T = TypeVar("T")

#: Partial filters that one task unites.
_FAN_IN = 8
#: Bytes of a range, unless said otherwise.
RANGE_BYTES = 128 << 20


class Engine(Protocol):
    """What runs tasks."""

    slots: int

    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]: ...
    def publish(self, path: str) -> Any: ...
    @property
    def fetch(self) -> Callable[[Any], str]: ...


def same(path: str) -> str:
    """The fetch of engines whose workers see every file."""
    return path


class Processes:
    """An engine of processes on this machine, ``slots`` of them."""

    fetch = staticmethod(same)

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """Applies the function to each item; the first exception of a task is raised here."""
        with ProcessPoolExecutor(self.slots, mp_context=get_context("spawn")) as pool:
            return list(pool.map(function, items))

    def publish(self, path: str) -> str:
        return path


@dataclass
class Report:
    """What a job did. Sizes are in bytes, times in seconds of wall clock."""

    #: Lines of A, and lines of the answer.
    lines: int = 0
    kept: int = 0
    #: Lines of A that filters could not rule out, and those of them that the exact decision says
    #: they should have: `None` if all lines were decided.
    candidates: int = 0
    false_found: int | None = None
    #: Of the largest filter.
    filter_bytes: int = 0
    bytes_read: int = 0
    #: Written to the work folder: filters and survivors.
    bytes_through_work: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class _Job:
    engine: Engine
    work: Path
    settings: tuple[int, int, str | None, int]
    report: Report
    keys: bytes = field(default_factory=ranges.job_keys)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.report.seconds[name] = self.report.seconds.get(name, 0) + time.monotonic() - begun

    def file(self, *name: object) -> str:
        return str(self.work / "-".join(map(str, name)))

    def each(
        self, task: Callable[[Any], dict[str, int]], items: Sequence[dict[str, Any]]
    ) -> list[dict[str, int]]:
        """Runs a task for each item."""
        given = {"settings": self.settings, "keys": self.keys, "fetch": self.engine.fetch}
        done = self.engine.map(task, [given | item for item in items])
        self.report.bytes_read += sum(numbers.get("bytes", 0) for numbers in done)
        return done

    def through_work(self, done: list[dict[str, int]]) -> list[dict[str, int]]:
        self.report.bytes_through_work += sum(numbers["written"] for numbers in done)
        return done

    def slots(self, of: Sequence[T]) -> list[Sequence[T]]:
        """Neighbours together, one group for each slot."""
        count = min(self.engine.slots, len(of)) or 1
        ends = [len(of) * at // count for at in range(count + 1)]
        return [of[begin:end] for begin, end in zip(ends, ends[1:])]

    def filter_of(
        self, name: str, of: Sequence[Range], size: tuple[int, int], twice: bool
    ) -> tuple[str, str | None]:
        """The filter of all lines of ranges, and of those that came twice."""
        with self.stage("build"):
            items = [
                {"ranges": some, "size": size, "out": self.partial(name, slot, twice)}
                for slot, some in enumerate(self.slots(of))
            ]
            self.through_work(self.each(_tasks.build, items))
        return self.united(name, [item["out"] for item in items], twice)

    def partial(self, name: str, number: object, twice: bool) -> tuple[str, str | None]:
        seen = self.file(name, number)
        return seen, seen + "-twice" if twice else None

    def united(
        self, name: str, partials: list[tuple[str, str | None]], twice: bool
    ) -> tuple[str, str | None]:
        level = 0
        with self.stage("union"):
            while len(partials) > 1:
                level += 1
                some = [partials[at : at + _FAN_IN] for at in range(0, len(partials), _FAN_IN)]
                items = [
                    {"partials": few, "out": self.partial(name, f"{level}.{at}", twice)}
                    for at, few in enumerate(some)
                ]
                self.through_work(self.each(_tasks.union, items))
                for path in (path for partial in partials for path in partial if path):
                    Path(path).unlink(missing_ok=True)
                partials = [item["out"] for item in items]
        size = Path(partials[0][0]).stat().st_size
        self.report.filter_bytes = max(self.report.filter_bytes, size)
        return partials[0]

    def survivors(
        self,
        name: str,
        of: Sequence[Range],
        filters: list[str] | None,
        partitions: int,
        first: bool,
    ) -> tuple[list[str], list[dict[str, int]]]:
        """The lines of ranges that filters cannot rule out, in files, with their numbers."""
        with self.stage("filter"):
            tokens = None if filters is None else [self.engine.publish(path) for path in filters]
            items = [
                {
                    "ranges": some,
                    "first": first,
                    "partitions": partitions,
                    "filters": tokens,
                    "out": self.file(name, slot),
                }
                for slot, some in enumerate(self.slots(of))
            ]
            done = self.through_work(self.each(_tasks.narrow, items))
        return [item["out"] for item in items], done

    def back(self, survivors: list[str], count: int) -> str:
        """The filter of the survivors of one side, to narrow the other with."""
        size = (max(count * 14 // 8, 128), max(count, 1))
        with self.stage("build"):
            items = [
                {"survivors": some, "size": size, "out": self.file("back", slot)}
                for slot, some in enumerate(self.slots(survivors))
            ]
            self.through_work(self.each(_tasks.build_back, items))
        return self.united("back", [(item["out"], None) for item in items], False)[0]

    def answer(
        self, verb: str, a: Sequence[Range], first: list[str], others: list[list[str]],
        partitions: int, out: Path,
    ) -> tuple[int, int]:
        """Decides, and writes the parts; how many lines are listed, and how many refused."""
        with self.stage("exact"):
            items = [
                {
                    "verb": verb,
                    "partition": number,
                    "first": first,
                    "others": others,
                    "out": self.file("answer", number),
                }
                for number in range(partitions)
            ]
            done = self.through_work(self.each(_tasks.exact, items))
        with self.stage("take"):
            answers = [item["out"] for item in items]
            takes = [{"range": one, "answers": answers, "out": _part(out, one)} for one in a]
            self.each(_tasks.take, takes)
        return sum(d["listed"] for d in done), sum(d["refused"] for d in done)


def _part(out: Path, one: Range) -> str:
    return str(out / f"part-{one[0]:05}")


def _paths(paths: Paths) -> list[str]:
    several = [paths] if isinstance(paths, str | Path) else paths
    return [str(Path(path).absolute()) for path in several]


def _work_folder(within: str | Path) -> Path:
    """A new folder in one that all workers see, with the rights of any new folder: whoever may
    read it may see fingerprints of lines, and not the keys that they are made with."""
    folder = Path(within).absolute() / f".petal-work-{uuid.uuid4().hex}"
    folder.mkdir()
    return folder


@contextmanager
def _begun(
    engine: Engine, out: str | Path, work: str | Path | None, memory: int, jobs: int,
    temp_dir: str | None, delimiter: bytes,
) -> Iterator[tuple[_Job, Path]]:
    """A job in a work folder of its own, and the folder of its answer; `_SUCCESS` at the end."""
    folder = Path(out).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder}: is there already, expected a new or empty folder for the answer; "
            "name another, or remove it"
        )
    if len(delimiter) != 1:
        raise ValueError(f"delimiter: expected one byte, found {delimiter!r}")
    folder.mkdir(parents=True, exist_ok=True)
    inside = _work_folder(work or folder.parent)
    settings = (memory, jobs, temp_dir, delimiter[0])
    job = _Job(engine, inside, settings, Report())
    begun = time.monotonic()
    try:
        yield job, folder
        (folder / "_SUCCESS").touch()
    finally:
        shutil.rmtree(inside, ignore_errors=True)
    job.report.seconds["all"] = time.monotonic() - begun


def _size(plan: dict[str, int]) -> tuple[int, int]:
    return plan["filter_bytes"], plan["filter_keys"]


def _run(
    verb: str, engine: Engine, a: Paths, b: Paths | None, out: str | Path, *,
    work: str | Path | None, memory: int, jobs: int, range_bytes: int, partitions: int | None,
    temp_dir: str | None, delimiter: bytes,
) -> Report:
    with _begun(engine, out, work, memory, jobs, temp_dir, delimiter) as (job, folder):
        report = job.report
        with job.stage("plan"):
            first = ranges.split(_paths(a), range_bytes)
            other = ranges.split(_paths(b), range_bytes) if b is not None else []
            plan_a = ranges.plan(job.settings, first, None)
            plan_b = ranges.plan(job.settings, other, None) if other else None
        parts = partitions or max(engine.slots, min(plan_a["partitions"], 1024))
        if not first:
            return report
        filters = []
        if plan_b:
            filters.append(job.filter_of("b", other, _size(plan_b), False)[0])
        elif verb == "common":
            return _nothing(job, first, folder)
        if verb != "common":
            twice = job.filter_of("a", first, _size(plan_a), True)[1]
            filters.append(twice or "")
        files, done = job.survivors("first", first, filters, parts, True)
        report.lines = sum(numbers["lines"] for numbers in done)
        report.candidates = sum(numbers["survivors"] for numbers in done)
        others = []
        if other:
            back = job.back(files, report.candidates)
            others.append(job.survivors("other", other, [back], parts, False)[0])
        listed, refused = job.answer(verb, first, files, others, parts, folder)
        report.kept = listed if verb == "common" else report.lines - listed
        report.false_found = refused if verb == "common" else report.candidates - listed
    return report


def _nothing(job: _Job, first: Sequence[Range], folder: Path) -> Report:
    """The empty answer: nothing is common with an input that has no line."""
    for one in first:
        Path(_part(folder, one)).touch()
    return job.report


def common(
    engine: Engine, a: Paths, b: Paths, out: str | Path, *, work: str | Path | None = None,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int = RANGE_BYTES,
    partitions: int | None = None, temp_dir: str | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of ``a`` that are in ``b`` to the folder ``out``, in a's order.

    ``a`` and ``b`` are a file or several, each taken as one input; all workers must see them,
    ``out`` and ``work`` (a folder for what goes from task to task; beside ``out`` by default)
    under the same names. ``memory`` is the cap of each task in bytes, ``jobs`` its threads.
    Packed files (gzip, zstd) are one range each.

    Cost: ``b`` is read twice, ``a`` twice and where it has lines of the answer; one filter of 14
    bits a line of ``b`` in each slot, if the memory has room for it.

    Raises ``FileExistsError`` if ``out`` is not empty, ``InputError`` and ``MemoryCapError``.
    """
    return _run(
        "common", engine, a, b, out, work=work, memory=memory, jobs=jobs, range_bytes=range_bytes,
        partitions=partitions, temp_dir=temp_dir, delimiter=delimiter,
    )


def diff(
    engine: Engine, a: Paths, b: Paths, out: str | Path, *, work: str | Path | None = None,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int = RANGE_BYTES,
    partitions: int | None = None, temp_dir: str | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of ``a`` that are not in ``b``. All else as :func:`common`; three
    filters at a time in a slot that unites them."""
    return _run(
        "diff", engine, a, b, out, work=work, memory=memory, jobs=jobs, range_bytes=range_bytes,
        partitions=partitions, temp_dir=temp_dir, delimiter=delimiter,
    )


def dedup(
    engine: Engine, a: Paths, out: str | Path, *, work: str | Path | None = None,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int = RANGE_BYTES,
    partitions: int | None = None, temp_dir: str | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of ``a``, in its order. All else as :func:`diff`."""
    return _run(
        "dedup", engine, a, None, out, work=work, memory=memory, jobs=jobs,
        range_bytes=range_bytes, partitions=partitions, temp_dir=temp_dir, delimiter=delimiter,
    )


def build(
    engine: Engine, paths: Paths, out: str | Path, *, rate: float = 0.01,
    work: str | Path | None = None, memory: int = 1 << 30, jobs: int = 1,
    range_bytes: int = RANGE_BYTES, delimiter: bytes = b"\n",
) -> Report:
    """Writes the filter of all lines of files to the file ``out``, which any petal reads.

    It is planned for ``rate`` and for as many lines as a sample says there are.
    """
    target = Path(out).absolute()
    inside = _work_folder(work or target.parent)
    job = _Job(engine, inside, (memory, jobs, None, delimiter[0]), Report())
    begun = time.monotonic()
    try:
        of = ranges.split(_paths(paths), range_bytes)
        plan = ranges.plan(job.settings, of, rate)
        seen = job.filter_of("seen", of, _size(plan), False)[0]
        aside = target.with_name(target.name + ".new")
        shutil.copyfile(seen, aside)
        aside.replace(target)
        job.report.lines = plan["lines"]
    finally:
        shutil.rmtree(inside, ignore_errors=True)
    job.report.seconds["all"] = time.monotonic() - begun
    return job.report


def check(
    engine: Engine, paths: Paths, filter: str | Path, out: str | Path, *, invert: bool = False,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int = RANGE_BYTES,
    delimiter: bytes = b"\n",
) -> Report:
    """Writes the lines of files that a filter file may hold, or inverted those that it does not."""
    with _begun(engine, out, None, memory, jobs, None, delimiter) as (job, folder):
        token = engine.publish(str(Path(filter).absolute()))
        of = ranges.split(_paths(paths), range_bytes)
        items = [
            {"range": one, "filters": [token], "invert": invert, "out": _part(folder, one)}
            for one in of
        ]
        with job.stage("check"):
            done = job.each(_tasks.check, items)
        job.report.lines = sum(numbers["lines"] for numbers in done)
        job.report.kept = sum(numbers["found"] for numbers in done)
    return job.report
