"""Set operations past one machine, on any engine: the driver of the stages in `petal._stages`.

The answer is a folder: `part-00000` and so on, one for each range of A in order, and at last
`_SUCCESS`. One behind the other they are what `petal common` (`diff`, `dedup`) prints.

A filter that a task has no room for is cut by hash range into shards: each side's hashes are
written once, by shard; each shard's filter is made of its hashes and asked with them; a bit comes
back for each. For `diff` and `dedup` a line that came twice is told likewise: all its hashes are in
one shard, whose filter knew the second when it came. This costs 8 bytes a line through the work
folder, against a filter for each slot; it is done when whole filters would have less than
`LEAST_BITS` a line.
"""

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from petal import _tasks
from petal._petal import InputError, ranges
from petal._stages import TASKS, Engine, Job, Range, Report, Size
from petal._tasks import Item, Row

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Folder = str | os.PathLike[str]
T = TypeVar("T")

#: Bytes of a range of large inputs; of small ones they are fewer, for every slot to have some.
RANGE_BYTES = 128 << 20
_LEAST_RANGE = 1 << 20
#: Bits a line of a filter for which there is room, and the fewest that pay: with six, one line in
#: twenty survives that should not. Fewer would cost more than what shards do.
BITS = 14
LEAST_BITS = 6
#: The most that a filter is cut into: each file of bits is open at once where they are read.
_MOST_SHARDS = 256
_MOST_PARTITIONS = 1024


def same(path: str) -> str:
    """The fetch of engines whose workers read every file where it lies."""
    return path


class Processes:
    """An engine of processes on this machine, `slots` of them."""

    fetch = staticmethod(same)

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """Applies the function to each item; the first exception of a task is raised here."""
        with ProcessPoolExecutor(self.slots, mp_context=get_context("spawn")) as pool:
            return list(pool.map(function, items))


@dataclass
class _Side:
    """An input: its ranges, what is thought of its lines, and how its filter shall be."""

    name: str
    ranges: list[Range]
    plan: dict[str, int]
    #: Whether lines that come twice in it matter.
    twice: bool

    def whole(self) -> Size:
        """The undivided filter: three are in memory where those of lines seen twice are united."""
        return self._size(1, 3 if self.twice else 2)

    def shard(self, shards: int) -> Size:
        return self._size(shards, 2 if self.twice else 1)

    def _size(self, shards: int, held: int) -> Size:
        wanted = max(self.plan["wanted_bytes"] // shards, 128)
        return min(wanted, self.plan["room"] // held), max(self.plan["lines"] // shards, 1), None

    def is_too_large(self) -> bool:
        """Whether the undivided filter would have too few bits."""
        bytes, lines, _ = self.whole()
        return bytes * 8 < lines * LEAST_BITS

    def shards(self) -> int:
        """How many shards the memory of a task asks for."""
        return -(-self.plan["wanted_bytes"] * (2 if self.twice else 1) // self.plan["room"])


def _paths(paths: Paths) -> list[str]:
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.path.abspath(path) for path in several]


def _cut(paths: Paths, size: int | None, slots: int) -> list[Range]:
    """Ranges of a size, or of one of which every slot gets some."""
    names = _paths(paths)
    cut = ranges.split(names, size or RANGE_BYTES)
    if size is None and len(cut) < slots * TASKS:
        each = -(-sum(end - start for _, _, start, end, _ in cut) // (slots * TASKS))
        cut = ranges.split(names, max(each, _LEAST_RANGE))
    # Paths are larger than their names where they travel.
    return [(number, os.fspath(path), start, end, of) for number, path, start, end, of in cut]


def _folder(path: Folder, option: str) -> Path:
    """A folder that is made if need be, and that can be written to."""
    folder = Path(path).absolute()
    hint = f"name with {option}= a folder on storage that all workers share"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}; {hint}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: cannot be written to; {hint}")
    return folder


@contextmanager
def _answer(out: Folder | None) -> Iterator[Path | None]:
    """The folder of an answer: `_SUCCESS` at the end; of a job that fails, nothing is left."""
    if out is None:
        yield None
        return
    folder = Path(out).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder}: is there already, expected a new or empty folder for the answer; "
            "name another with out=, or remove it"
        )
    new = not folder.exists()
    folder = _folder(folder, "out")
    try:
        yield folder
        (folder / "_SUCCESS").touch()
    except BaseException:
        for part in folder.glob("part-*"):
            part.unlink(missing_ok=True)
        if new and not any(folder.iterdir()):
            folder.rmdir()
        raise


@contextmanager
def _begun(
    engine: Engine, seen: Path | None, beside: Path | None, work: Folder | None,
    settings: tuple[int, int, str | None], delimiter: bytes,
) -> Iterator[Job]:
    """A job in a new work folder within `beside`, unless another place is named; workers must see
    it, and the folder `seen` for what comes of the job.

    The folder has the rights of any new one: whoever may read it may see fingerprints of lines,
    and not the keys that they are made with.
    """
    if len(delimiter) != 1:
        raise ValueError(f"delimiter=: expected one byte, found {delimiter!r}")
    if work is not None:
        option, place = "work", _folder(work, "work")
    elif beside is not None:
        option, place = "out", _folder(beside, "out")
    else:
        raise ValueError("work=: expected without out=, found None; name a folder for all workers")
    inside = place / f".petal-work-{uuid.uuid4().hex}"
    inside.mkdir()
    folders = [(str(inside), option)]
    if seen is not None:
        folders.append((str(seen), "out"))
    begun = time.monotonic()
    try:
        job = Job(engine, inside, folders, (*settings, delimiter[0]))
        yield job
        job.report.seconds["all"] = time.monotonic() - begun
    finally:
        # A task that is still at it may put a file there meanwhile. It makes no folder.
        for _ in range(5):
            shutil.rmtree(inside, ignore_errors=True)
            if not inside.exists():
                break


def _part(out: Path, one: Range) -> str:
    return str(out / f"part-{one[0]:05}")


def _run(
    verb: str, engine: Engine, a: Paths, b: Paths | None, out: Folder | None, *,
    work: Folder | None, memory: int, jobs: int, range_bytes: int | None,
    partitions: int | None, shards: int | None, temp_dir: str | None, delimiter: bytes,
) -> Report:
    settings = (memory, jobs, temp_dir)
    with (
        _answer(out) as folder,
        _begun(engine, folder, folder and folder.parent, work, settings, delimiter) as job,
    ):
        with job.stage("plan"):
            cut = _cut(a, range_bytes, engine.slots)
            first = _Side("a", cut, ranges.plan(job.settings, cut), verb != "common")
            other = None
            if b is not None:
                cut = _cut(b, range_bytes, engine.slots)
                other = _Side("b", cut, ranges.plan(job.settings, cut), False)
        if not first.ranges:
            return job.report
        if verb == "common" and other and not other.ranges:
            if folder:
                for one in first.ranges:
                    Path(_part(folder, one)).touch()
            return job.report
        parts = partitions or max(engine.slots, min(first.plan["partitions"], _MOST_PARTITIONS))
        return _decide(job, verb, first, other, parts, shards, folder)


def _shards(job: Job, filtered: Sequence[_Side], asked: int | None) -> int:
    """How many shards filters are cut into; 0 if they are not."""
    if asked is None and not any(side.is_too_large() for side in filtered):
        return 0
    needed = max(job.engine.slots, *(side.shards() for side in filtered))
    return asked or min(needed, _MOST_SHARDS)


def _decide(
    job: Job, verb: str, first: _Side, other: _Side | None, parts: int, asked: int | None,
    folder: Path | None,
) -> Report:
    report = job.report
    filtered = [side for side in (first, other) if side and (side is other or side.twice)]
    report.shards = shards = _shards(job, filtered, asked)
    # What rules lines of A out: filters of B's lines, and of A's lines that came twice.
    hashes: dict[str, Row] = {}
    by: Item
    if shards:
        sides = [side for side in (first, other) if side]
        hashes = {side.name: job.dealt(side.name, side.ranges, shards) for side in sides}
        made = [
            job.shards_of(side.name, hashes[side.name], shards, side.shard(shards), side.twice)
            for side in filtered
        ]
        filters = [[twice or seen for seen, twice in shard] for shard in zip(*made)]
        by = {"bits": job.told("a", filters, hashes["a"])}
    else:
        united = [
            job.filter_of(side.name, side.ranges, side.whole(), side.twice) for side in filtered
        ]
        by = {"filters": [twice or seen for seen, twice in united]}
    survivors, done = job.survivors("first", first.ranges, by, parts, True)
    report.lines = sum(numbers["lines"] for numbers in done)
    report.candidates = count = sum(numbers["survivors"] for numbers in done)
    others = []
    if other:
        room = other.plan["room"] // 2
        if shards and room * 8 < count * LEAST_BITS:
            # The filter of all of A rules out of B what that of A's survivors does.
            again = made[0] if first.twice else job.shards_of(
                "a", hashes["a"], shards, first.shard(shards)
            )
            by = {"bits": job.told("b", [[seen] for seen, _ in again], hashes["b"])}
        else:
            size = (min(max(count * BITS // 8, 128), room), max(count, 1), None)
            by = {"filters": [job.filter_of_survivors(survivors, size)]}
        row, _ = job.survivors("other", other.ranges, by, parts, False)
        others.append((row, len(other.ranges)))
    all_of_first = (survivors, len(first.ranges))
    answers, listed, refused = job.decided(verb, all_of_first, others, parts)
    if folder:
        takes = [
            {"range": one, "answers": answers, "out": _part(folder, one)} for one in first.ranges
        ]
        job.each("take", _tasks.take, takes)
    report.kept = listed if verb == "common" else report.lines - listed
    report.false_found = refused if verb == "common" else count - listed
    return report


def common(
    engine: Engine, a: Paths, b: Paths, out: Folder | None, *, work: Folder | None = None,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int | None = None,
    partitions: int | None = None, shards: int | None = None, temp_dir: str | None = None,
    delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of `a` that are in `b` to the folder `out`, in a's order.

    - `a`, `b`: a file or several, each taken as one input. All workers must see them, `out` and
      `work` under the names that they have here. Packed files (gzip, zstd) are one range each.
    - `out`: a new or empty folder; or None, then lines are only counted.
    - `work`: a folder for what goes from task to task [that of `out`].
    - `memory`: cap of each task in bytes; `jobs`: its threads. `temp_dir`: for what does not fit
      [the system's].
    - `range_bytes`: what one task reads at a time [128 MiB, less of small inputs]; `partitions`:
      tasks of the exact decision; `shards`: hash ranges that filters are cut into [none, unless
      they are too large for `memory`].
    - `delimiter`: the byte that ends a line.

    Cost: `b` is read twice, `a` twice and where it has lines of the answer; one filter of 14
    bits a line of `b` in each slot, if the memory has room for it.

    Raises `FileExistsError` if `out` is not empty, `InputError` if something cannot be read or
    written, `MemoryCapError` if the memory is too little. Nothing is left of a job that fails.
    """
    return _run(
        "common", engine, a, b, out, work=work, memory=memory, jobs=jobs, range_bytes=range_bytes,
        partitions=partitions, shards=shards, temp_dir=temp_dir, delimiter=delimiter,
    )


def diff(
    engine: Engine, a: Paths, b: Paths, out: Folder | None, *, work: Folder | None = None,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int | None = None,
    partitions: int | None = None, shards: int | None = None, temp_dir: str | None = None,
    delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of `a` that are not in `b`. All else as :func:`common`; three
    filters of `a` at a time in a slot that unites them."""
    return _run(
        "diff", engine, a, b, out, work=work, memory=memory, jobs=jobs, range_bytes=range_bytes,
        partitions=partitions, shards=shards, temp_dir=temp_dir, delimiter=delimiter,
    )


def dedup(
    engine: Engine, a: Paths, out: Folder | None, *, work: Folder | None = None,
    memory: int = 1 << 30, jobs: int = 1, range_bytes: int | None = None,
    partitions: int | None = None, shards: int | None = None, temp_dir: str | None = None,
    delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of `a`, in its order. All else as :func:`diff`."""
    return _run(
        "dedup", engine, a, None, out, work=work, memory=memory, jobs=jobs,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter,
    )


def build(
    engine: Engine, paths: Paths, out: Folder, *, capacity: int | None = None, rate: float = 0.01,
    work: Folder | None = None, memory: int = 1 << 30, jobs: int = 1,
    range_bytes: int | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the filter of all lines of files to the file `out`, which any petal reads.

    It is the filter that `petal.build` makes of the same files, `capacity` and `rate`, bit for bit,
    and can be united with it. (Only its count of inserts is an estimate, as of any union.)

    - `capacity`: lines to plan for [they are counted first]; `rate`: the false-positive rate.
    - `memory`: cap of each task in bytes: twice the filter must fit.
    - All else as :func:`common`.

    Cost: the files are read once, or twice if their lines are counted; a filter in each slot.
    """
    target = Path(os.path.abspath(out))
    settings = (memory, jobs, None)
    with _begun(engine, target.parent, target.parent, work, settings, delimiter) as job:
        job.keys = ranges.public_keys()
        of = _cut(paths, range_bytes, engine.slots)
        lines = job.count(of) if capacity is None else capacity
        size = ranges.size_for(max(lines, 1), rate)
        partial = job.filter_of("filter", of, size, False)[0]
        made = job.each("publish", _tasks.publish, [{"partial": partial, "out": str(target)}])
        job.report.lines, job.report.kept = lines, made[0]["lines"]
    return job.report


def check(
    engine: Engine, paths: Paths, filter: Folder, out: Folder | None, *, invert: bool = False,
    work: Folder | None = None, memory: int = 1 << 30, jobs: int = 1,
    range_bytes: int | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the lines of files that a filter file may hold, or inverted those that it does not, to
    the folder `out`, in their order, repeated ones too.

    All else as :func:`common`. Cost: the files are read once.
    """
    settings = (memory, jobs, None)
    with (
        _answer(out) as folder,
        _begun(engine, folder, folder and folder.parent, work, settings, delimiter) as job,
    ):
        # All workers see it there, and it stays as it is.
        asked = job.file("filter")
        try:
            shutil.copyfile(filter, asked)
        except OSError as error:
            raise InputError(f"{filter}: cannot be read: {error.strerror}") from error
        items = [
            {
                "range": one,
                "filters": [asked],
                "invert": invert,
                "out": _part(folder, one) if folder else None,
            }
            for one in _cut(paths, range_bytes, engine.slots)
        ]
        done = job.each("check", _tasks.check, items)
        job.report.lines = sum(numbers["lines"] for numbers in done)
        job.report.kept = sum(numbers["found"] for numbers in done)
    return job.report
