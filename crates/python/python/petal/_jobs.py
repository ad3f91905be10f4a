"""Set operations past one machine, on any engine: the driver of the stages in `petal._stages`.

The answer is a folder: `part-00000000` and so on, one for each range of A in order, and at last
`_SUCCESS`. One behind the other they are what `petal common` (`diff`, `dedup`) prints.

A filter that a task has no room for is cut by hash range into shards: each side's hashes are
written once, by shard; each shard's filter is made of its hashes and asked with them; a bit comes
back for each. For `diff` and `dedup` a line that came twice is told likewise: all its hashes are in
one shard, whose filter knew the second when it came. This costs 8 bytes a line through the work
folder, against a filter for each slot; it is done when whole filters would have less than
`LEAST_BITS` a line.
"""

import errno
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from petal import _petal, _tasks
from petal._arguments import CLAIM, Folder, Paths, memory_of, path_of, paths_of, whole
from petal._petal import InputError, ranges
from petal._stages import TASKS, Engine, Job, Range, Report, Size, groups
from petal._tasks import Item, Row

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
#: What a worker that was killed may have left beside the parts.
_ASIDE = ".petal-*"


def same(path: str) -> str:
    """The fetch of engines whose workers read every file where it lies."""
    return path


@dataclass
class _Side:
    """An input: its ranges, what is thought of its lines, and how its filter shall be."""

    name: str
    ranges: list[Range]
    plan: dict[str, int]
    #: Whether lines that come twice in it matter.
    twice: bool
    #: How many filters of one shard a task holds: those of lines seen once and twice, or one of
    #: each side.
    held: int

    def whole(self) -> Size:
        """The undivided filter: three are in memory where those of lines seen twice are united."""
        return self._size(1, 3 if self.twice else 2)

    def shard(self, shards: int) -> Size:
        return self._size(shards, self.held)

    def _size(self, shards: int, held: int) -> Size:
        wanted = max(self.plan["wanted_bytes"] // shards, 128)
        return min(wanted, self.plan["room"] // held), max(self.plan["lines"] // shards, 1), None

    def is_too_large(self) -> bool:
        """Whether the undivided filter would have too few bits."""
        bytes, lines, _ = self.whole()
        return bytes * 8 < lines * LEAST_BITS

    def shards(self) -> int:
        """How many shards the memory of a task asks for."""
        return -(-self.plan["wanted_bytes"] * self.held // self.plan["room"])


def _cut(names: list[str], size: int | None, slots: int) -> list[Range]:
    """Ranges of a size, or of one of which every slot gets some."""
    cut = ranges.split(names, size or RANGE_BYTES)
    if size is None and len(cut) < slots * TASKS:
        each = -(-sum(end - start for _, _, start, end, _ in cut) // (slots * TASKS))
        cut = ranges.split(names, max(each, _LEAST_RANGE))
    # Paths are larger than their names where they travel.
    return [(number, os.fspath(path), start, end, of) for number, path, start, end, of in cut]


def _folder(path: Folder, option: str) -> Path:
    """A folder that is made if need be, and that can be written to."""
    folder = Path(path_of(path, f"{option}=: "))
    hint = f"name with {option}= a folder on storage that all workers share"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}; {hint}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: cannot be written to; {hint}")
    return folder


@dataclass
class _Answer:
    """The folder that an answer goes to, if any, and the names of the parts that it shall have."""

    folder: Path | None
    names: set[str] = field(default_factory=set)

    @property
    def beside(self) -> Path | None:
        """Where that folder is."""
        return self.folder and self.folder.parent

    def part(self, one: Range) -> str | None:
        """The path of the part for a range."""
        if self.folder is None:
            return None
        name = f"part-{one[0]:08}"
        self.names.add(name)
        return str(self.folder / name)


@contextmanager
def _answer(out: Folder | None) -> Iterator[_Answer]:
    """An answer, whose folder is claimed for one job: `_SUCCESS` at the end, beside all parts and
    nothing else; of a job that fails, nothing is left."""
    if out is None:
        yield _Answer(None)
        return
    folder = Path(path_of(out, "out=: "))
    new = not folder.exists()
    if not new:
        _expect_only(folder, set())
    folder = _folder(folder, "out")
    answer = _Answer(folder)
    claim, ours = folder / CLAIM, f"{uuid.uuid4().hex} on {socket.gethostname()}"
    try:
        with claim.open("x") as file:
            file.write(ours)
        # What another job has done since the first look, and it may be done with it.
        _expect_only(folder, {CLAIM})
    except FileExistsError:
        with suppress(InputError):
            _expect_claim(claim, ours)
            claim.unlink()
        _expect_only(folder, set())
        raise
    except BaseException:
        # Perhaps not all of it could be written, but nobody else has made it.
        claim.unlink(missing_ok=True)
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise
    try:
        yield answer
        _remove(folder, _ASIDE)
        _sync(folder)
        _expect_claim(claim, ours)
        if (there := set(os.listdir(folder))) != answer.names | {CLAIM}:
            odd = ", ".join(sorted(there ^ (answer.names | {CLAIM}))[:3])
            raise InputError(
                f"{folder}: expected the parts of this job and no other files, but {odd} is missing "
                "or another's; begin anew with an empty folder"
            )
        (folder / "_SUCCESS").touch()
        claim.unlink()
    except BaseException:
        with suppress(OSError):
            _expect_claim(claim, ours)
            for names in "_SUCCESS", _ASIDE, "part-*":
                _remove(folder, names)
            claim.unlink()
            if new:
                folder.rmdir()
        raise


def _expect_only(folder: Path, names: set[str]) -> None:
    """An error if anything else is in the folder of an answer, or if it is no folder."""
    there = set(os.listdir(folder)) if folder.is_dir() else {""}
    if CLAIM in there - names:
        claim = folder / CLAIM
        raise FileExistsError(
            f"{claim}: a job writes to this folder, or was killed while it did; name another "
            "folder with out=, or, if no job is at it, remove this file and the parts beside it"
        )
    if there - names:
        raise FileExistsError(
            f"{folder}: is there already, expected a new or empty folder for the answer; "
            "name another with out=, or remove it"
        )


def _expect_claim(claim: Path, ours: str) -> None:
    """An error if somebody has removed the claim, and perhaps another job has made its own."""
    try:
        found = claim.read_text()
    except FileNotFoundError:
        found = "nothing"
    if found != ours:
        raise InputError(
            f"{claim}: was removed while the job ran, expected {ours!r} in it, found {found!r}; "
            "empty the folder when no job is at it, and begin anew"
        )


def _remove(folder: Path, names: str) -> None:
    for path in folder.glob(names):
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Makes the names in a folder durable; what is in the files is, since they have them."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some file systems of networks cannot do that with a folder.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


@contextmanager
def _passing(place: Path) -> Iterator[Path]:
    """A new folder, which is gone at the end with whatever tasks that are still at it put there."""
    inside = place / f".petal-work-{uuid.uuid4().hex}"
    inside.mkdir()
    try:
        yield inside
    finally:
        # Tasks make no folders.
        for _ in range(5):
            shutil.rmtree(inside, ignore_errors=True)
            if not inside.exists():
                break


@contextmanager
def _begun(
    engine: Engine, seen: Path | None, beside: Path | None, work: Folder | None,
    settings: tuple[int | str, int, str | None], delimiter: bytes, slots: int | None,
) -> Iterator[Job]:
    """A job in a new work folder within `beside`, unless another place is named; workers must see
    it, and the folder `seen` for what comes of the job.

    The folder has the rights of any new one: whoever may read it may see fingerprints of lines,
    and not the keys that they are made with.
    """
    if not isinstance(delimiter, bytes) or len(delimiter) != 1:
        raise ValueError(f"delimiter=: expected one byte, such as b'\\n', found {delimiter!r}")
    memory, jobs, temp_dir = settings
    if slots is not None:
        slots = whole("slots", slots, 1)
    settings = memory_of(memory), whole("jobs", jobs, 1), temp_dir
    if work is not None:
        option, place = "work", _folder(work, "work")
    elif beside is not None:
        option, place = "out", _folder(beside, "out")
    else:
        raise ValueError("work=: expected without out=, found None; name a folder for all workers")
    begun, slots = time.monotonic(), slots or engine.slots
    with _passing(place) as inside:
        folders = [(str(inside), option)]
        if seen is not None:
            folders.append((str(seen), "out"))
        job = Job(engine, inside, folders, (*settings, delimiter[0]), slots)
        try:
            yield job
        except _petal.PetalError as error:
            if (told := _outside(error, inside)) is error:
                raise
            raise told from error
        job.report.seconds["all"] = time.monotonic() - begun


def _outside(error: _petal.PetalError, inside: Path) -> _petal.PetalError:
    """An error that names a file of the work folder, which is gone when it is read, with the place
    of that folder instead."""
    text = str(error)
    if str(inside) not in text:
        return error
    text = text.replace(f"{inside}/", f"{inside.parent}: work file ").replace(
        str(inside), str(inside.parent)
    )
    if isinstance(error, OSError) and error.errno is not None:
        return type(error)(error.errno, text, str(inside.parent))
    return type(error)(text)


def _run(
    verb: str, engine: Engine, a: Paths, b: Paths | None, out: Folder | None, *,
    work: Folder | None, memory: int | str, jobs: int, slots: int | None, range_bytes: int | None,
    partitions: int | None, shards: int | None, temp_dir: str | None, delimiter: bytes,
) -> Report:
    settings = (memory, jobs, temp_dir)
    if range_bytes is not None:
        range_bytes = whole("range_bytes", range_bytes, 1)
    if partitions is not None:
        partitions = whole("partitions", partitions, 1, _MOST_PARTITIONS)
    if shards is not None:
        shards = whole("shards", shards, 0, _MOST_SHARDS)
    # Before the folders are made, and once: the paths may be an iterator.
    names, others = paths_of(a), None if b is None else paths_of(b)
    with (
        _answer(out) as answer,
        _begun(engine, answer.folder, answer.beside, work, settings, delimiter, slots) as job,
    ):
        held = 1 if verb == "common" else 2
        with job.stage("plan"):
            cut = _cut(names, range_bytes, job.slots)
            first = _Side("a", cut, ranges.plan(job.settings, cut), verb != "common", held)
            other = None
            if others is not None:
                cut = _cut(others, range_bytes, job.slots)
                other = _Side("b", cut, ranges.plan(job.settings, cut), False, held)
        if not first.ranges:
            return job.report
        # Few: each file of survivors and each answer is opened by many. What does not fit the
        # memory is cut further where it is decided.
        most = min(job.slots * TASKS, _MOST_PARTITIONS)
        parts = partitions or max(job.slots, min(first.plan["partitions"], most))
        return _decide(job, verb, first, other, parts, shards, answer)


def _shards(job: Job, filtered: Sequence[_Side], asked: int | None) -> int:
    """How many shards filters are cut into; 0 if they are not."""
    if not asked and not any(side.is_too_large() for side in filtered):
        return 0
    needed = max(job.slots, *(side.shards() for side in filtered))
    return asked or min(needed, _MOST_SHARDS)


def _decide(
    job: Job, verb: str, first: _Side, other: _Side | None, parts: int, asked: int | None,
    answer: _Answer,
) -> Report:
    report = job.report
    filtered = [side for side in (first, other) if side and (side is other or side.twice)]
    report.shards = shards = _shards(job, filtered, asked)
    # What rules lines of A out: filters of B's lines, and of A's lines that came twice.
    hashes: dict[str, Row] = {}
    by: Item
    if shards:
        sides = [side for side in (first, other) if side]
        hashes = {
            side.name: job.dealt(side.name, side.ranges, shards, side is first) for side in sides
        }
        made = [
            job.shards_of(side.name, hashes[side.name], shards, side.shard(shards), side.twice)
            for side in filtered
        ]
        filters = [[twice or seen for seen, twice in shard] for shard in zip(*made)]
        by = {"bits": job.told("a", filters, hashes["a"], True)}
    else:
        united = [
            job.filter_of(side.name, side.ranges, side.whole(), side.twice) for side in filtered
        ]
        by = {"filters": [twice or seen for seen, twice in united]}
    survivors, done = job.survivors("first", first.ranges, by, parts, True)
    report.lines = sum(numbers["lines"] for numbers in done)
    report.candidates = count = sum(numbers["survivors"] for numbers in done)
    others = []
    if other and not count:
        # Nothing is left to be looked for in B.
        others.append((job.survivors("other", [], {"filters": []}, parts, False)[0], 0))
    elif other:
        room = other.plan["room"] // 2
        if shards and room * 8 < count * LEAST_BITS:
            # The filter of all of A rules out of B what that of A's survivors does.
            again = made[0] if first.twice else job.shards_of(
                "a", hashes["a"], shards, first.shard(shards)
            )
            by = {"bits": job.told("b", [[seen] for seen, _ in again], hashes["b"], False)}
        else:
            size = (min(max(count * BITS // 8, 128), room), max(count, 1), None)
            by = {"filters": [job.filter_of_survivors(survivors, size)]}
        row, _ = job.survivors("other", other.ranges, by, parts, False)
        others.append((row, len(other.ranges)))
    all_of_first = (survivors, len(first.ranges))
    answers, listed, refused = job.decided(verb, all_of_first, others, parts)
    if answer.folder:
        items: list[Item] = [
            {"takes": [(one, answer.part(one)) for one in some], "answers": answers}
            for some in groups(first.ranges, job.slots * TASKS)
        ]
        job.each("take", _tasks.take, items)
    report.kept = listed if verb == "common" else report.lines - listed
    report.false_found = refused if verb == "common" else count - listed
    return report


def common(
    engine: Engine, a: Paths, b: Paths, out: Folder | None, *, work: Folder | None = None,
    memory: int | str = 1 << 30, jobs: int = 1, slots: int | None = None,
    range_bytes: int | None = None, partitions: int | None = None, shards: int | None = None,
    temp_dir: str | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of `a` that are in `b` to the folder `out`, in a's order.

    - `a`, `b`: a file or an iterable of several, each taken as one input; the folder of another job's answer is
      its parts, and a `file:` URI its path. All workers must see them, `out` and
      `work` under the names that they have here. Packed files (gzip, zstd) are one range each.
    - `out`: a new or empty folder, which is this job's alone while it runs; or None, then lines are
      only counted.
    - `work`: a folder for what goes from task to task [that of `out`].
    - `memory`: cap of each task in bytes, or like `"1G"`; `jobs`: its threads where lines are read (filters are
      united, and lines decided, in one). `temp_dir`: for what does not fit [the system's].
    - `slots`: tasks at a time that the work is cut for [those of the cluster as it is now]; to be
      said where workers come when there is work.
    - `range_bytes`: what one task reads at a time [128 MiB, less of small inputs]; `partitions`:
      tasks of the exact decision; `shards`: hash ranges that filters are cut into [none, unless
      they are too large for `memory`].
    - `delimiter`: the byte that ends a line.

    Cost: `b` is read twice, `a` once, or twice with shards, and where it has lines of the answer;
    one filter of 14 bits a line of `b` in each slot, if the memory has room for it.

    Raises `FileExistsError` if `out` is not empty, `InputError` if something cannot be read or
    written, `MemoryCapError` if the memory is too little. Nothing is left of a job that fails.
    """
    return _run(
        "common", engine, a, b, out, work=work, memory=memory, jobs=jobs, slots=slots,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter,
    )


def diff(
    engine: Engine, a: Paths, b: Paths, out: Folder | None, *, work: Folder | None = None,
    memory: int | str = 1 << 30, jobs: int = 1, slots: int | None = None,
    range_bytes: int | None = None, partitions: int | None = None, shards: int | None = None,
    temp_dir: str | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of `a` that are not in `b`. All else as :func:`common`; `a` is read
    twice always, and three filters of it are held at a time in a slot that unites them."""
    return _run(
        "diff", engine, a, b, out, work=work, memory=memory, jobs=jobs, slots=slots,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter,
    )


def dedup(
    engine: Engine, a: Paths, out: Folder | None, *, work: Folder | None = None,
    memory: int | str = 1 << 30, jobs: int = 1, slots: int | None = None,
    range_bytes: int | None = None, partitions: int | None = None, shards: int | None = None,
    temp_dir: str | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the distinct lines of `a`, in its order. All else as :func:`diff`."""
    return _run(
        "dedup", engine, a, None, out, work=work, memory=memory, jobs=jobs, slots=slots,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter,
    )


def build(
    engine: Engine, paths: Paths, out: Folder, *, capacity: int | None = None, rate: float = 0.01,
    work: Folder | None = None, memory: int | str = 1 << 30, jobs: int = 1, slots: int | None = None,
    range_bytes: int | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the filter of all lines of files to the file `out`, which any petal reads.

    The file is the one that `petal.build` makes of the same files, `capacity` and `rate`, but for
    two fields of its header: the count of inserts is an estimate, as of any union, and the
    checksum covers it. Bits and plan are the same, and either file can be united with the other.

    - `capacity`: lines to plan for [they are counted first]; `rate`: the false-positive rate.
    - `memory`: cap of each task in bytes: twice the filter must fit.
    - All else as :func:`common`.

    Cost: the files are read once, or twice if their lines are counted; a filter in each slot.
    """
    target = Path(os.path.realpath(path_of(out, "out=: ")))
    # Before the work: what is wrong with that shows at its end.
    ranges.size_for(1, rate)
    if target.is_dir():
        raise InputError(f"{target}: is a folder, expected the name of a file for the filter")
    names = paths_of(paths)
    settings = (memory, jobs, None)
    with (
        _begun(engine, target.parent, target.parent, work, settings, delimiter, slots) as job,
        _passing(target.parent) as aside,
    ):
        job.keys = ranges.public_keys()
        of = _cut(names, range_bytes, job.slots)
        lines = job.count(of) if capacity is None else capacity
        size = ranges.size_for(max(lines, 1), rate)
        partial = job.filter_of("filter", of, size, False)[0]
        made = job.each("publish", _tasks.publish, [{"partial": partial, "out": str(aside / "f")}])
        os.replace(aside / "f", target)
        _sync(target.parent)
        job.report.lines, job.report.kept = lines, made[0]["lines"]
    return job.report


def check(
    engine: Engine, paths: Paths, filter: Folder, out: Folder | None, *, invert: bool = False,
    work: Folder | None = None, memory: int | str = 1 << 30, jobs: int = 1, slots: int | None = None,
    range_bytes: int | None = None, delimiter: bytes = b"\n",
) -> Report:
    """Writes the lines of files that a filter file may hold, or inverted those that it does not, to
    the folder `out`, in their order, repeated ones too.

    All else as :func:`common`. Cost: the files are read once; the filter is read twice here, to be
    verified and to be copied to the work folder, where workers open it.
    """
    if not isinstance(filter, str | bytes | os.PathLike):
        kind = type(filter).__name__
        raise TypeError(f"filter: expected the path of a filter file, found {kind}; save() it to one")
    filter = path_of(filter, "filter: ")
    # What is wrong with it is told here, with the name that it has here.
    opened = _petal.open(filter)
    try:
        opened.verify()
    except _petal.FormatError as error:
        raise _petal.FormatError(f"{filter}: {error}") from None
    if isinstance(opened, _petal.ForeignFilter):
        raise _petal.UnsupportedError(
            f"{filter}: is a filter of {opened.format}, expected one of petal's own; petal.check "
            "queries it on one machine"
        )
    names = paths_of(paths)
    settings = (memory, jobs, None)
    with (
        _answer(out) as answer,
        _begun(engine, answer.folder, answer.beside, work, settings, delimiter, slots) as job,
    ):
        # All workers see it there, and it stays as it is.
        asked = job.file("filter")
        try:
            shutil.copyfile(filter, asked)
        except OSError as error:
            raise InputError(error.errno, f"{filter}: cannot be read: {error.strerror}", filter) from error
        items = [
            {
                "range": one,
                "filters": [asked],
                "invert": invert,
                "out": answer.part(one),
            }
            for one in _cut(names, range_bytes, job.slots)
        ]
        done = job.each("check", _tasks.check, items)
        job.report.lines = sum(numbers["lines"] for numbers in done)
        job.report.kept = sum(numbers["found"] for numbers in done)
    return job.report
