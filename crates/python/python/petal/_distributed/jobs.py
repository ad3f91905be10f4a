"""The set operations and filters of a distributed job, on any engine. Runs on the driver.

The output is a folder with the files `part-00000000` and so on, one for each byte range of A in
order, and finally `_SUCCESS`. The concatenated parts are the output of the same operation on one
machine.

A filter that exceeds the memory limit of a task is split into shards by hash range: the hashes of
each side are written once, by shard; the filter of each shard is built from its hashes and probed
with them, and the result is one bit per hash. Repeated lines are found in the same way, because all
their hashes are in one shard. This writes 8 bytes per line to the work folder, and needs no filter
in each slot. It is done if a whole filter would have fewer than `MIN_BITS_PER_LINE`.
"""

import errno
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from petal import _petal
from petal._arguments import read_transforms
from petal._distributed import tasks
from petal._distributed.arguments import (
    CLAIM,
    Folder,
    Paths,
    read_int,
    read_memory_limit,
    read_path,
    read_paths,
)
from petal._distributed.stages import (
    TASKS_PER_SLOT,
    ByteRange,
    Engine,
    FilterSize,
    Job,
    Report,
    split_evenly,
)
from petal._distributed.tasks import FileSeries, Item
from petal._petal import InputError, ranges

#: Bytes of a range of large inputs; small inputs have smaller ranges, so that each slot gets some.
RANGE_BYTES = 128 << 20
_MIN_RANGE_BYTES = 1 << 20
#: Bits per line of a filter if the memory limit allows it, and the minimum. With six bits, one line
#: in twenty is a false positive; with fewer, false positives cost more than shards.
BITS_PER_LINE = 14
MIN_BITS_PER_LINE = 6
#: A task opens the bits of all shards at once.
_MAX_SHARDS = 256
_MAX_PARTITIONS = 1024
#: Temporary files that a killed worker leaves beside the parts.
_TEMPORARY = ".petal-*"


def same_path(path: str) -> str:
    """The `fetch` of engines whose workers read files where they are."""
    return path


@dataclass
class _Side:
    """One input: its byte ranges, its estimate, and the filter that is built of it."""

    name: str
    ranges: list[ByteRange]
    estimate: dict[str, int]
    #: Whether a filter of its repeated lines is needed.
    repeated: bool
    #: Filters of one shard in a task's memory: of all and of repeated lines, or of both sides.
    filters_in_memory: int

    def whole_size(self) -> FilterSize:
        """The size of the whole filter. Its union needs two or, for repeated lines, three filters."""
        return self._size(1, 3 if self.repeated else 2)

    def shard_size(self, shards: int) -> FilterSize:
        return self._size(shards, self.filters_in_memory)

    def _size(self, shards: int, in_memory: int) -> FilterSize:
        wanted = max(self.estimate["wanted_bytes"] // shards, 128)
        lines = max(self.estimate["lines"] // shards, 1)
        return min(wanted, self.estimate["filter_memory"] // in_memory), lines, None

    def is_too_large(self) -> bool:
        """Returns whether the whole filter would have too few bits per line."""
        bytes, lines, _ = self.whole_size()
        return bytes * 8 < lines * MIN_BITS_PER_LINE

    def shards(self) -> int:
        """Returns the number of shards that fit in the memory of a task."""
        needed = self.estimate["wanted_bytes"] * self.filters_in_memory
        return -(-needed // self.estimate["filter_memory"])


def _split(names: list[str], size: int | None, slots: int) -> list[ByteRange]:
    """Splits files into byte ranges of a size, or of one that gives each slot several."""
    split = ranges.split(names, size or RANGE_BYTES)
    if size is None and len(split) < slots * TASKS_PER_SLOT:
        total = sum(end - start for _, _, start, end, _ in split)
        each = -(-total // (slots * TASKS_PER_SLOT))
        split = ranges.split(names, max(each, _MIN_RANGE_BYTES))
    # A string takes fewer bytes than a path when it is sent to a worker.
    return [(number, os.fspath(path), start, end, of) for number, path, start, end, of in split]


def _make_folder(path: Folder, option: str) -> Path:
    """Creates a folder unless it exists. Raises `InputError` if it is not writable."""
    folder = Path(read_path(path, f"{option}=: "))
    hint = f"set {option}= to a folder on storage that all workers share"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot create the folder: {error.strerror}; {hint}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: the folder is not writable; {hint}")
    return folder


# ---- The output folder ---------------------------------------------------------------------------


@dataclass
class _Output:
    """The output folder, if any, and the names of its parts."""

    folder: Path | None
    names: set[str] = field(default_factory=set)

    @property
    def parent(self) -> Path | None:
        return self.folder and self.folder.parent

    def part(self, byte_range: ByteRange) -> str | None:
        """Returns the path of the part for a byte range."""
        if self.folder is None:
            return None
        name = f"part-{byte_range[0]:08}"
        self.names.add(name)
        return str(self.folder / name)


@contextmanager
def _open_output(out: Folder | None) -> Iterator[_Output]:
    """Reserves the output folder for one job.

    At the end it has all parts, `_SUCCESS` and nothing else. If the block raises, all of the job's
    files are removed.
    """
    if out is None:
        yield _Output(None)
        return
    folder = Path(read_path(out, "out=: "))
    is_new = not folder.exists()
    if not is_new:
        _check_contains_only(folder, set())
    folder = _make_folder(folder, "out")
    output = _Output(folder)
    claim, claim_text = folder / CLAIM, f"{uuid.uuid4().hex} on {socket.gethostname()}"
    try:
        with claim.open("x") as file:
            file.write(claim_text)
        # Another job may have used the folder since the first check, and may be finished.
        _check_contains_only(folder, {CLAIM})
    except FileExistsError:
        with suppress(InputError):
            _check_claim(claim, claim_text)
            claim.unlink()
        _check_contains_only(folder, set())
        raise
    except BaseException:
        # The claim may be incomplete, but it is this job's.
        claim.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise
    try:
        yield output
        _remove(folder, _TEMPORARY)
        _sync(folder)
        _check_claim(claim, claim_text)
        if (found := set(os.listdir(folder))) != output.names | {CLAIM}:
            different = ", ".join(sorted(found ^ (output.names | {CLAIM}))[:3])
            raise InputError(
                f"{folder}: expected the parts of this job and no other files, but {different} is "
                "missing or from another job; start again with an empty folder"
            )
        (folder / "_SUCCESS").touch()
        claim.unlink()
    except BaseException:
        with suppress(OSError):
            _check_claim(claim, claim_text)
            for names in "_SUCCESS", _TEMPORARY, "part-*":
                _remove(folder, names)
            claim.unlink()
            if is_new:
                folder.rmdir()
        raise


def _check_contains_only(folder: Path, names: set[str]) -> None:
    """Raises `FileExistsError` if an output path is no folder, or has other files."""
    found = set(os.listdir(folder)) if folder.is_dir() else {""}
    if CLAIM in found - names:
        claim = folder / CLAIM
        raise FileExistsError(
            f"{claim}: another job writes to this folder, or was killed; set out= to another "
            "folder, or, if no job is running, remove this file and the parts beside it"
        )
    if found - names:
        raise FileExistsError(
            f"{folder}: already exists, expected a new or empty folder; set out= to another one, "
            "or remove it"
        )


def _check_claim(claim: Path, claim_text: str) -> None:
    """Raises `InputError` if the claim was removed, and perhaps replaced by another job."""
    try:
        found = claim.read_text()
    except FileNotFoundError:
        found = "nothing"
    if found != claim_text:
        raise InputError(
            f"{claim}: removed while the job was running, expected {claim_text!r} in it, found "
            f"{found!r}; empty the folder when no job is running, and start again"
        )


def _remove(folder: Path, names: str) -> None:
    for path in folder.glob(names):
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Makes the names in a folder durable; the contents of the files already are."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


# ---- The work folder -----------------------------------------------------------------------------


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Creates a folder, and removes it at the end with all files of tasks still running."""
    folder = parent / f".petal-work-{uuid.uuid4().hex}"
    folder.mkdir()
    try:
        yield folder
    finally:
        # Repeated, because a running task may add a file. Tasks create no folders.
        for _ in range(5):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break


@contextmanager
def _start(
    engine: Engine,
    visible: Path | None,
    parent: Path | None,
    work: Folder | None,
    settings: tuple[int | str, int, str | None, str],
    delimiter: bytes,
    slots: int | None,
) -> Iterator[Job]:
    """Starts a job with a new work folder in `work`, or else in `parent`.

    Workers must see the work folder, and `visible`, the folder of the output.

    The work folder has the permissions of any new folder: users who may read it can read
    fingerprints of lines, but not the keys of these fingerprints.
    """
    if not isinstance(delimiter, bytes) or len(delimiter) != 1:
        raise ValueError(f"delimiter=: expected one byte, such as b'\\n', found {delimiter!r}")
    memory_limit, jobs, temp_dir, transforms = settings
    if slots is not None:
        slots = read_int("slots", slots, 1)
    plain = (
        read_memory_limit(memory_limit), read_int("jobs", jobs, 1), temp_dir, delimiter[0], transforms
    )
    if work is not None:
        option, place = "work", _make_folder(work, "work")
    elif parent is not None:
        option, place = "out", _make_folder(parent, "out")
    else:
        raise ValueError("work=: required without out=; set it to a folder that all workers share")
    start, slots = time.monotonic(), slots or engine.slots
    with _temporary_folder(place) as folder:
        folders = [(str(folder), option)]
        if visible is not None:
            folders.append((str(visible), "out"))
        job = Job(engine, folder, folders, plain, slots)
        try:
            yield job
        except _petal.PetalError as error:
            if (renamed := _without_work_folder(error, folder)) is error:
                raise
            raise renamed from error
        job.report.seconds["all"] = time.monotonic() - start


def _without_work_folder(error: _petal.PetalError, folder: Path) -> _petal.PetalError:
    """Replaces the work folder in an error by its parent, because the folder is removed."""
    text = str(error)
    if str(folder) not in text:
        return error
    text = text.replace(f"{folder}/", f"{folder.parent}: work file ").replace(
        str(folder), str(folder.parent)
    )
    if isinstance(error, OSError) and error.errno is not None:
        return type(error)(error.errno, text, str(folder.parent))
    return type(error)(text)


# ---- Set operations ------------------------------------------------------------------------------


def _run(
    operation: str,
    engine: Engine,
    a: Paths,
    b: Paths | None,
    out: Folder | None,
    *,
    work: Folder | None,
    memory_limit: int | str,
    jobs: int,
    slots: int | None,
    range_bytes: int | None,
    partitions: int | None,
    shards: int | None,
    temp_dir: str | None,
    delimiter: bytes,
    key_transform: Iterable[str] | None,
) -> Report:
    settings = (memory_limit, jobs, temp_dir, read_transforms(key_transform))
    if range_bytes is not None:
        range_bytes = read_int("range_bytes", range_bytes, 1)
    if partitions is not None:
        partitions = read_int("partitions", partitions, 1, _MAX_PARTITIONS)
    if shards is not None:
        shards = read_int("shards", shards, 0, _MAX_SHARDS)
    # Before any folder is created, and only once: the paths may be an iterator.
    a_names, b_names = read_paths(a), None if b is None else read_paths(b)
    with (
        _open_output(out) as output,
        _start(engine, output.folder, output.parent, work, settings, delimiter, slots) as job,
    ):
        finds_repeated = operation != "common"
        in_memory = 2 if finds_repeated else 1
        with job.timed("plan"):
            split = _split(a_names, range_bytes, job.slots)
            plan = ranges.plan(job.settings, split)
            first = _Side("a", split, plan, finds_repeated, in_memory)
            other = None
            if b_names is not None:
                split = _split(b_names, range_bytes, job.slots)
                other = _Side("b", split, ranges.plan(job.settings, split), False, in_memory)
        if not first.ranges:
            return job.report
        # Few partitions, because each file of candidates and each answer is opened by many tasks. A
        # partition that exceeds the memory limit is split again where it is decided.
        maximum = min(job.slots * TASKS_PER_SLOT, _MAX_PARTITIONS)
        partitions = partitions or max(job.slots, min(first.estimate["partitions"], maximum))
        return _decide(job, operation, first, other, partitions, shards, output)


def _choose_shards(job: Job, filtered: Sequence[_Side], shards: int | None) -> int:
    """Returns the number of shards; 0 if filters are not split."""
    if not shards and not any(side.is_too_large() for side in filtered):
        return 0
    needed = max(job.slots, *(side.shards() for side in filtered))
    return shards or min(needed, _MAX_SHARDS)


def _decide(
    job: Job,
    operation: str,
    first: _Side,
    other: _Side | None,
    partitions: int,
    shards: int | None,
    output: _Output,
) -> Report:
    report = job.report
    filtered = [side for side in (first, other) if side and (side is other or side.repeated)]
    report.shards = shards = _choose_shards(job, filtered, shards)
    # Filters of B's lines and of A's repeated lines exclude lines of A.
    hashes: dict[str, FileSeries] = {}
    by: Item
    if shards:
        sides = [side for side in (first, other) if side]
        hashes = {
            side.name: job.hash_lines(side.name, side.ranges, shards, side is first)
            for side in sides
        }
        built = [
            job.build_shards(
                side.name, hashes[side.name], shards, side.shard_size(shards), side.repeated
            )
            for side in filtered
        ]
        filters = [[repeated or seen for seen, repeated in shard] for shard in zip(*built)]
        by = {"bits": job.probe_shards("a", filters, hashes["a"], True)}
    else:
        pairs = [
            job.build_filter(side.name, side.ranges, side.whole_size(), side.repeated)
            for side in filtered
        ]
        by = {"filters": [repeated or seen for seen, repeated in pairs]}
    candidates, results = job.select("first", first.ranges, by, partitions, True)
    report.lines = sum(numbers["lines"] for numbers in results)
    report.candidates = count = sum(numbers["candidates"] for numbers in results)
    others = []
    if other and not count:
        # Without candidates B is not read again.
        others.append((job.select("other", [], {"filters": []}, partitions, False)[0], 0))
    elif other:
        available = other.estimate["filter_memory"] // 2
        if shards and available * 8 < count * MIN_BITS_PER_LINE:
            # A filter of A's candidates would be too small: use the filter of all of A.
            first_shards = built[0] if first.repeated else job.build_shards(
                "a", hashes["a"], shards, first.shard_size(shards)
            )
            paths = [[seen] for seen, _ in first_shards]
            by = {"bits": job.probe_shards("b", paths, hashes["b"], False)}
        else:
            size = (min(max(count * BITS_PER_LINE // 8, 128), available), max(count, 1), None)
            by = {"filters": [job.build_filter_of_candidates(candidates, size)]}
        series, _ = job.select("other", other.ranges, by, partitions, False)
        others.append((series, len(other.ranges)))
    all_of_first = (candidates, len(first.ranges))
    answers, listed, refused = job.decide(operation, all_of_first, others, partitions)
    if output.folder:
        items: list[Item] = [
            {"parts": [(one, output.part(one)) for one in group], "answers": answers}
            for group in split_evenly(first.ranges, job.slots * TASKS_PER_SLOT)
        ]
        job.run("take", tasks.write_lines, items)
    report.kept = listed if operation == "common" else report.lines - listed
    report.false_found = refused if operation == "common" else count - listed
    return report


def common(
    engine: Engine,
    a: Paths,
    b: Paths,
    out: Folder | None,
    *,
    work: Folder | None = None,
    memory_limit: int | str = 1 << 30,
    jobs: int = 1,
    slots: int | None = None,
    range_bytes: int | None = None,
    partitions: int | None = None,
    shards: int | None = None,
    temp_dir: str | None = None,
    delimiter: bytes = b"\n",
    key_transform: Iterable[str] | None = None,
) -> Report:
    """Writes the distinct lines of `a` that are in `b` to the folder `out`, in the order of `a`.

    - `a`, `b`: a file, or an iterable of files that are read as one input. The output folder of
      another job stands for its parts, a `file:` URI for its path. All workers must see these
      files, `out` and `work` under the same paths as the driver. A compressed file (gzip, zstd)
      is read by one task.
    - `out`: a new or empty folder, used by one job at a time. With `None` lines are only counted.
    - `work`: folder for temporary data that tasks exchange [the parent of `out`].
    - `memory_limit`: memory of each task, in bytes or like `"1G"` [1 GiB].
    - `jobs`: threads of a task that reads lines [1]; unions and exact decisions use one.
    - `temp_dir`: folder for spill files of a worker [the system's].
    - `slots`: number of tasks at a time that the job is split for [the slots of the cluster at the
      start]; needed if workers are added on demand.
    - `range_bytes`: bytes of a task's input [128 MiB, less for small inputs].
    - `partitions`: tasks of the exact decision.
    - `shards`: hash ranges that filters are split into [none, unless a filter exceeds
      `memory_limit`].
    - `delimiter`: the byte that ends a line.
    - `key_transform`: names of changes to the lines before they are compared, as in `petal.common`.

    Cost: reads `b` twice and `a` once (twice with shards), and again those parts of `a` that have
    lines of the result. Each slot holds a filter of 14 bits per line of `b`, or fewer if they
    exceed `memory_limit`.

    Raises `FileExistsError` if `out` is not empty, `InputError` if a file cannot be read or
    written, `MemoryLimitError` if `memory_limit` is too small. A job that fails leaves no files.
    """
    return _run(
        "common", engine, a, b, out, work=work, memory_limit=memory_limit, jobs=jobs, slots=slots,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter, key_transform=key_transform,
    )


def diff(
    engine: Engine,
    a: Paths,
    b: Paths,
    out: Folder | None,
    *,
    work: Folder | None = None,
    memory_limit: int | str = 1 << 30,
    jobs: int = 1,
    slots: int | None = None,
    range_bytes: int | None = None,
    partitions: int | None = None,
    shards: int | None = None,
    temp_dir: str | None = None,
    delimiter: bytes = b"\n",
    key_transform: Iterable[str] | None = None,
) -> Report:
    """Writes the distinct lines of `a` that are not in `b` to the folder `out`, in a's order.

    Arguments and errors are those of :func:`common`. Cost: reads `a` twice; a task that builds a
    union holds three filters of `a`.
    """
    return _run(
        "diff", engine, a, b, out, work=work, memory_limit=memory_limit, jobs=jobs, slots=slots,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter, key_transform=key_transform,
    )


def dedup(
    engine: Engine,
    a: Paths,
    out: Folder | None,
    *,
    work: Folder | None = None,
    memory_limit: int | str = 1 << 30,
    jobs: int = 1,
    slots: int | None = None,
    range_bytes: int | None = None,
    partitions: int | None = None,
    shards: int | None = None,
    temp_dir: str | None = None,
    delimiter: bytes = b"\n",
    key_transform: Iterable[str] | None = None,
) -> Report:
    """Writes the distinct lines of `a` to the folder `out`, in the order of `a`.

    Arguments, errors and cost are those of :func:`diff`.
    """
    return _run(
        "dedup", engine, a, None, out, work=work, memory_limit=memory_limit, jobs=jobs, slots=slots,
        range_bytes=range_bytes, partitions=partitions, shards=shards, temp_dir=temp_dir,
        delimiter=delimiter, key_transform=key_transform,
    )


# ---- Filters -------------------------------------------------------------------------------------


def build(
    engine: Engine,
    paths: Paths,
    out: Folder,
    *,
    capacity: int | None = None,
    fpr: float = 0.01,
    work: Folder | None = None,
    memory_limit: int | str = 1 << 30,
    jobs: int = 1,
    slots: int | None = None,
    range_bytes: int | None = None,
    delimiter: bytes = b"\n",
    key_transform: Iterable[str] | None = None,
) -> Report:
    """Writes a Bloom filter of all lines of files to the file `out`.

    The file equals that of `petal.build` for the same files, `capacity` and `fpr`, except for two
    fields of its header: the number of inserted keys is an estimate, as in every union, and the
    checksum includes it. The layout and the bits are the same, so the two files have a union.

    - `capacity`: number of lines that the filter is planned for [they are counted first].
    - `fpr`: false-positive rate [0.01].
    - `memory_limit`: memory of each task; twice the size of the filter must fit [1 GiB].
    - `key_transform`: as in :func:`common`; the filter's file records the names.
    - Other arguments are those of :func:`common`.

    Cost: reads the files once, or twice if lines are counted; each slot holds a filter.
    """
    target = Path(os.path.realpath(read_path(out, "out=: ")))
    # Checked before the work, because an invalid rate would show only at the end.
    ranges.size_for(1, fpr)
    if target.is_dir():
        raise InputError(f"{target}: is a folder, expected the name of a file for the filter")
    names = read_paths(paths)
    settings = (memory_limit, jobs, None, read_transforms(key_transform))
    with (
        _start(engine, target.parent, target.parent, work, settings, delimiter, slots) as job,
        _temporary_folder(target.parent) as folder,
    ):
        job.keys = ranges.public_keys()
        byte_ranges = _split(names, range_bytes, job.slots)
        lines = job.count(byte_ranges) if capacity is None else capacity
        size = ranges.size_for(max(lines, 1), fpr)
        partial = job.build_filter("filter", byte_ranges, size, False)[0]
        items: list[Item] = [{"partial": partial, "out": str(folder / "filter")}]
        (published,) = job.run("publish", tasks.publish, items)
        os.replace(folder / "filter", target)
        _sync(target.parent)
        job.report.lines, job.report.kept = lines, published["lines"]
    return job.report


def check(
    engine: Engine,
    paths: Paths,
    filter: Folder,
    out: Folder | None,
    *,
    invert: bool = False,
    work: Folder | None = None,
    memory_limit: int | str = 1 << 30,
    jobs: int = 1,
    slots: int | None = None,
    range_bytes: int | None = None,
    delimiter: bytes = b"\n",
    key_transform: Iterable[str] | None = None,
) -> Report:
    """Writes the lines of files that a filter contains to the folder `out`, in order, with repeats.

    - `filter`: the path of a filter file.
    - `invert`: write the lines that the filter does not contain.
    - `key_transform`: as in :func:`common` [those that the filter records; others raise
      `IncompatibleError`].
    - Other arguments and errors are those of :func:`common`.

    Cost: reads the files once. The driver reads the filter twice, to verify it and to copy it to
    the work folder, where workers map it.
    """
    if not isinstance(filter, str | bytes | os.PathLike):
        kind = type(filter).__name__
        raise TypeError(f"filter: expected a path of a filter file, found {kind}; save() it first")
    filter = read_path(filter, "filter: ")
    # Checked on the driver, so that an error has the caller's path.
    opened = _petal.open(filter)
    try:
        opened.verify()
    except _petal.FormatError as error:
        raise _petal.FormatError(f"{filter}: {error}") from None
    if isinstance(opened, _petal.ForeignFilter):
        raise _petal.UnsupportedError(
            f"{filter}: a filter of {opened.format}, expected one of petal; use petal.check to look "
            "up lines in it on one machine"
        )
    transforms = _petal._adopted_transforms(opened.metadata, read_transforms(key_transform))
    names = read_paths(paths)
    settings = (memory_limit, jobs, None, transforms)
    with (
        _open_output(out) as output,
        _start(engine, output.folder, output.parent, work, settings, delimiter, slots) as job,
    ):
        # A copy in the work folder is visible to all workers and does not change.
        copy = job.file("filter")
        try:
            shutil.copyfile(filter, copy)
        except OSError as error:
            text = f"{filter}: cannot read: {error.strerror}"
            raise InputError(error.errno, text, filter) from error
        items: list[Item] = [
            {"range": one, "filters": [copy], "invert": invert, "out": output.part(one)}
            for one in _split(names, range_bytes, job.slots)
        ]
        results = job.run("check", tasks.check, items)
        job.report.lines = sum(numbers["lines"] for numbers in results)
        job.report.kept = sum(numbers["found"] for numbers in results)
    return job.report
