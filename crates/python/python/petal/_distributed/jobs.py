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

import inspect
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar, Unpack, cast

from petal import _petal
from petal._arguments import (
    lists_options,
    read_flag,
    read_pointers,
    read_transforms,
    refuse_unknown,
)
from petal._distributed import tasks
from petal._distributed.arguments import (
    Folder,
    Paths,
    read_int,
    read_inputs,
    read_memory_limit,
    read_path,
    read_paths,
    refuse_options,
)
from petal._distributed.folders import (
    Output,
    make_folder,
    open_output,
    sync_folder,
    temporary_folder,
)
from petal._distributed.options import DEFAULTS, ExactOptions, Options
from petal._distributed.stages import (
    TASKS_PER_SLOT,
    ByteRange,
    Engine,
    FilterPair,
    FilterSize,
    Job,
    Report,
    Settings,
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

P = ParamSpec("P")
Cluster = TypeVar("Cluster")


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
    #: The byte ranges of each input, if several inputs have this one filter.
    inputs: list[list[ByteRange]] = field(default_factory=list)

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


# ---- Starting a job -----------------------------------------------------------------------------


def for_cluster(
    operation: Callable[Concatenate[Engine, P], Report],
    make_engine: Callable[[Cluster], Engine],
    name: str,
) -> Callable[Concatenate[Cluster, P], Report]:
    """Returns the operation with a cluster, called `name`, as its first argument."""

    def run(cluster: Cluster, /, *args: P.args, **options: P.kwargs) -> Report:
        refuse_options(options)
        return operation(make_engine(cluster), *args, **options)

    run.__name__ = run.__qualname__ = operation.__name__
    run.__doc__ = operation.__doc__
    signature = inspect.signature(operation)
    first, *others = signature.parameters.values()
    first = inspect.Parameter(name, first.POSITIONAL_ONLY)
    run.__signature__ = signature.replace(parameters=[first, *others])  # type: ignore[attr-defined]
    return run


class _Options(NamedTuple):
    """The options of a job after their checks."""

    settings: Settings
    work: Folder | None
    slots: int | None
    range_bytes: int | None
    partitions: int | None
    shards: int | None


def _read(job: str, kind: type, given: Options) -> _Options:
    """Reads the options of a job, which are those of `kind`."""
    refuse_unknown(job, kind, given)
    options = cast(ExactOptions, {**DEFAULTS, **given})
    delimiter, json_key = options["delimiter"], options.get("json_key")
    if not isinstance(delimiter, bytes) or len(delimiter) != 1:
        raise ValueError(f"delimiter=: expected one byte, such as b'\\n', found {delimiter!r}")
    if json_key is not None and delimiter != b"\n":
        raise ValueError("json_key=: records of JSON end with LF; leave out delimiter=")
    return _Options(
        settings=(
            read_memory_limit(options["memory_limit"]), read_int("jobs", options["jobs"], 1),
            options.get("temp_dir"), delimiter[0], read_transforms(options.get("key_transform")),
            read_pointers(json_key),
        ),
        work=options.get("work"),
        slots=_read_optional("slots", options.get("slots"), 1),
        range_bytes=_read_optional("range_bytes", options.get("range_bytes"), 1),
        partitions=_read_optional("partitions", options.get("partitions"), 1, _MAX_PARTITIONS),
        shards=_read_optional("shards", options.get("shards"), 0, _MAX_SHARDS),
    )


def _read_optional(
    name: str, number: int | None, minimum: int, maximum: int | None = None
) -> int | None:
    return None if number is None else read_int(name, number, minimum, maximum)


@contextmanager
def _start(
    engine: Engine, visible: Path | None, parent: Path | None, options: _Options
) -> Iterator[Job]:
    """Starts a job with a new work folder in `work`, or else in `parent`.

    Workers must see the work folder, and `visible`, the folder of the output.

    The work folder has the permissions of any new folder: users who may read it can read
    fingerprints of lines, but not the keys of these fingerprints.
    """
    work = options.work
    if work is not None:
        option, place = "work", make_folder(work, "work")
    elif parent is not None:
        option, place = "out", make_folder(parent, "out")
    else:
        raise ValueError("work=: required without out=; set it to a folder that all workers share")
    start, slots = time.monotonic(), options.slots or engine.slots
    with temporary_folder(place) as folder:
        folders = [(str(folder), option)]
        if visible is not None:
            folders.append((str(visible), "out"))
        job = Job(engine, folder, folders, options.settings, slots)
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
    options: _Options,
    at_least: int | None = None,
) -> Report:
    # Before any folder is created, and only once: the paths may be an iterator.
    a_names = read_paths(a)
    others = None if b is None else read_inputs(b)
    if at_least is not None and others is not None:
        at_least = read_int("at_least", at_least, 1, 126)
        if at_least > len(others):
            raise ValueError(
                f"at_least=: {at_least} is more than the number of inputs in b, {len(others)}; "
                "lower it"
            )
    with open_output(out) as output:
        if operation != "symdiff" or others is None:
            return _run_steps(operation, engine, a_names, others, output, options, at_least)
        b_names = [name for names in others for name in names]
        first = _run_steps("diff", engine, a_names, [b_names], output, options)
        output.first = len(output.names)
        second = _run_steps("diff", engine, b_names, [a_names], output, options)
        return first.plus(second)


def _run_steps(
    operation: str,
    engine: Engine,
    a_names: list[str],
    others: list[list[str]] | None,
    output: Output,
    options: _Options,
    at_least: int | None = None,
) -> Report:
    with _start(engine, output.folder, output.parent, options) as job:
        finds_repeated = operation != "common"
        in_memory = 2 if finds_repeated else 1
        with job.timed("plan"):
            split = _split(a_names, options.range_bytes, job.slots)
            plan = ranges.plan(job.settings, split)
            first = _Side("a", split, plan, finds_repeated, in_memory)
            other = None
            if others is not None:
                b_names = [name for names in others for name in names]
                split = _split(b_names, options.range_bytes, job.slots)
                other = _Side("b", split, ranges.plan(job.settings, split), False, in_memory)
                if at_least is not None:
                    other.inputs = [
                        _split(names, options.range_bytes, job.slots) for names in others
                    ]
        if not first.ranges:
            return job.report
        # Few partitions, because each file of candidates and each answer is opened by many tasks. A
        # partition that exceeds the memory limit is split again where it is decided.
        maximum = min(job.slots * TASKS_PER_SLOT, _MAX_PARTITIONS)
        partitions = max(job.slots, min(first.estimate["partitions"], maximum))
        partitions = options.partitions or partitions
        return _decide(
            job, operation, first, other, partitions, options.shards, output, at_least
        )


def _choose_shards(job: Job, filtered: Sequence[_Side], shards: int | None) -> int:
    """Returns the number of shards; 0 if filters are not split."""
    if not shards and not any(side.is_too_large() for side in filtered):
        return 0
    needed = max(job.slots, *(side.shards() for side in filtered))
    return shards or min(needed, _MAX_SHARDS)


@dataclass
class _Shards:
    """Filters that are split by hash range."""

    count: int
    #: The hashes of each side, by shard.
    hashes: dict[str, FileSeries]
    #: The filters of A, one for each shard, if its repeated lines are needed.
    first: list[FilterPair] | None


def _decide(
    job: Job,
    operation: str,
    first: _Side,
    other: _Side | None,
    partitions: int,
    shards: int | None,
    output: Output,
    at_least: int | None,
) -> Report:
    report = job.report
    # Filters of B's lines and of A's repeated lines exclude lines of A.
    filtered = [side for side in (first, other) if side and (side is other or side.repeated)]
    report.shards = count = _choose_shards(job, filtered, shards)
    split = None
    if count:
        split, by = _build_shards(job, first, other, filtered, count)
    else:
        by = _build_whole_filters(job, filtered)
    candidates, results = job.select("first", first.ranges, by, partitions, True)
    report.lines = sum(numbers["lines"] for numbers in results)
    report.candidates = sum(numbers["candidates"] for numbers in results)
    others = _select_others(job, first, other, candidates, split, partitions) if other else []
    all_of_first = (candidates, len(first.ranges))
    answers, listed, refused = job.decide(operation, all_of_first, others, partitions, at_least)
    if output.folder:
        _write_parts(job, first, output, answers)
    lists_kept = operation in ("common", "duplicates")
    report.kept = listed if lists_kept else report.lines - listed
    if operation in ("diff", "dedup"):
        report.false_found = report.candidates - listed
    elif operation == "common" and at_least is None:
        report.false_found = refused
    return report


def _build_whole_filters(job: Job, filtered: Sequence[_Side]) -> Item:
    """Builds the filters that exclude lines of A. Returns how a task selects the candidates."""
    pairs = [
        job.build_filter(side.name, side.ranges, side.whole_size(), side.repeated)
        for side in filtered
    ]
    return {"filters": [repeated or seen for seen, repeated in pairs]}


def _build_shards(
    job: Job, first: _Side, other: _Side | None, filtered: Sequence[_Side], count: int
) -> tuple[_Shards, Item]:
    """Builds the filters that exclude lines of A, split by hash range; returns them and how tasks select lines."""
    hashes = {
        side.name: job.hash_lines(side.name, side.ranges, count, side is first)
        for side in (first, other)
        if side
    }
    built = [
        job.build_shards(
            side.name, hashes[side.name], count, side.shard_size(count), side.repeated
        )
        for side in filtered
    ]
    filters = [[repeated or seen for seen, repeated in shard] for shard in zip(*built)]
    by: Item = {"bits": job.probe_shards("a", filters, hashes["a"], True)}
    return _Shards(count, hashes, built[0] if first.repeated else None), by


def _select_others(
    job: Job,
    first: _Side,
    other: _Side,
    candidates: FileSeries,
    split: _Shards | None,
    partitions: int,
) -> list[tuple[FileSeries, int]]:
    """Selects the lines of B that may equal a candidate of A, for each input of B."""
    inputs = other.inputs or [other.ranges]
    count = job.report.candidates
    if not count:
        # Without candidates B is not read again.
        nothing = job.select("other", [], {"filters": []}, partitions, False)[0]
        return [(nothing, 0) for _ in inputs]
    available = other.estimate["filter_memory"] // 2
    by: Item
    if split and available * 8 < count * MIN_BITS_PER_LINE and not other.inputs:
        # A filter of A's candidates would be too small: use the filter of all of A.
        shards = split.first or job.build_shards(
            "a", split.hashes["a"], split.count, first.shard_size(split.count)
        )
        paths = [[seen] for seen, _ in shards]
        by = {"bits": job.probe_shards("b", paths, split.hashes["b"], False)}
    else:
        size = (min(max(count * BITS_PER_LINE // 8, 128), available), max(count, 1), None)
        by = {"filters": [job.build_filter_of_candidates(candidates, size)]}
    return [
        (job.select(f"other-{number}", of_input, by, partitions, False)[0], len(of_input))
        for number, of_input in enumerate(inputs)
    ]


def _write_parts(job: Job, first: _Side, output: Output, answers: FileSeries) -> None:
    """Writes the lines of A that the answers select, one file for each byte range."""
    items: list[Item] = [
        {"parts": [(one, output.part(one)) for one in group], "answers": answers}
        for group in split_evenly(first.ranges, job.slots * TASKS_PER_SLOT)
    ]
    job.run("take", tasks.write_lines, items)


@lists_options(DEFAULTS)
def common(
    engine: Engine,
    a: Paths,
    b: Paths,
    out: Folder | None,
    *,
    at_least: int | None = None,
    **given: Unpack[ExactOptions],
) -> Report:
    """Writes the distinct lines of `a` that are in `b` to the folder `out`, in the order of `a`.

    - `a`, `b`: a file, or an iterable of files that are read as one input. The output folder of
      another job stands for its parts, a `file:` URI for its path. All workers must see these
      files, `out` and `work` under the same paths as the driver. A compressed file (gzip, zstd)
      is read by one task.
    - `out`: a new or empty folder, used by one job at a time. With `None` lines are only counted.
    - `at_least`: each path in `b` is an input of its own, and a line must be in at least this number
      of them, at most 126.
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
    - `json_key`: compare lines of JSON by the value at this JSON pointer, or by those at several.
    - `key_transform`: names of changes to the lines, or to the values, before they are compared, as in
      `petal.common`.

    Records of CSV are no byte ranges, because quoted fields may have line ends: `column` and the other
    arguments of CSV raise `UnsupportedError`, and so do `rest` and `approx`.

    Cost: reads `b` twice and `a` once (twice with shards), and again those parts of `a` that have
    lines of the result. Each slot holds a filter of 14 bits per line of `b`, or fewer if they
    exceed `memory_limit`.

    Raises `FileExistsError` if `out` is not empty, `InputError` if a file cannot be read or
    written, `MemoryLimitError` if `memory_limit` is too small. A job that fails leaves no files.
    """
    options = _read("common", ExactOptions, given)
    return _run("common", engine, a, b, out, options, at_least)


@lists_options(DEFAULTS)
def diff(
    engine: Engine,
    a: Paths,
    b: Paths,
    out: Folder | None,
    **given: Unpack[ExactOptions],
) -> Report:
    """Writes the distinct lines of `a` that are not in `b` to the folder `out`, in a's order.

    Arguments and errors are those of `common`. Cost: reads `a` twice; a task that builds a
    union holds three filters of `a`.
    """
    options = _read("diff", ExactOptions, given)
    return _run("diff", engine, a, b, out, options)


@lists_options(DEFAULTS)
def symdiff(
    engine: Engine,
    a: Paths,
    b: Paths,
    out: Folder | None,
    **given: Unpack[ExactOptions],
) -> Report:
    """Writes the distinct lines that are in only one of `a` and `b` to the folder `out`: those of `a`,
    then those of `b`.

    Arguments and errors are those of `common`. Cost: that of `diff(a, b)` and `diff(b, a)`.
    """
    options = _read("symdiff", ExactOptions, given)
    return _run("symdiff", engine, a, b, out, options)


@lists_options(DEFAULTS)
def dedup(
    engine: Engine,
    a: Paths,
    out: Folder | None,
    *,
    only_duplicates: bool = False,
    only_unique: bool = False,
    **given: Unpack[ExactOptions],
) -> Report:
    """Writes the distinct lines of `a` to the folder `out`, in the order of `a`.

    - `only_duplicates`: write each line that occurs at least twice, once.
    - `only_unique`: write the lines that occur exactly once.

    Other arguments, errors and cost are those of `diff`.
    """
    operation = "dedup"
    if read_flag("only_duplicates", only_duplicates):
        operation = "duplicates"
    if read_flag("only_unique", only_unique):
        if only_duplicates:
            raise ValueError(
                "only_duplicates=, only_unique=: no line is both; leave out one of them"
            )
        operation = "unique"
    options = _read("dedup", ExactOptions, given)
    return _run(operation, engine, a, None, out, options)


# ---- Filters -------------------------------------------------------------------------------------


@lists_options(DEFAULTS)
def build(
    engine: Engine,
    paths: Paths,
    out: Folder,
    *,
    capacity: int | None = None,
    fpr: float = 0.01,
    **given: Unpack[Options],
) -> Report:
    """Writes a Bloom filter of all lines of files to the file `out`.

    The file equals that of `petal.build` for the same files, `capacity` and `fpr`, except for two
    fields of its header: the number of inserted keys is an estimate, as in every union, and the
    checksum includes it. The layout and the bits are the same, so the two files have a union.

    - `paths`, `out`: files of lines; the filter file.
    - `capacity`: number of lines that the filter is planned for [they are counted first].
    - `fpr`: false-positive rate.
    - `memory_limit`: memory of each task; twice the size of the filter must fit [1 GiB].
    - `json_key`, `key_transform`: as in `common`; the filter's file records them.
    - Other arguments are those of `common`.

    Cost: reads the files once, or twice if lines are counted; each slot holds a filter.
    """
    options = _read("build", Options, given)
    target = Path(os.path.realpath(read_path(out, "out=: ")))
    # Checked before the work, because an invalid rate would show only at the end.
    ranges.size_for(1, fpr)
    ranges.refuse_compressed(target)
    if target.is_dir():
        raise InputError(f"{target}: is a folder, expected the name of a file for the filter")
    names = read_paths(paths)
    with (
        _start(engine, target.parent, target.parent, options) as job,
        temporary_folder(target.parent) as folder,
    ):
        job.keys = ranges.public_keys()
        byte_ranges = _split(names, options.range_bytes, job.slots)
        lines = job.count(byte_ranges) if capacity is None else capacity
        size = ranges.size_for(max(lines, 1), fpr)
        partial = job.build_filter("filter", byte_ranges, size, False)[0]
        items: list[Item] = [{"partial": partial, "out": str(folder / "filter")}]
        (published,) = job.run("publish", tasks.publish, items)
        os.replace(folder / "filter", target)
        sync_folder(target.parent)
        job.report.lines, job.report.kept = lines, published["lines"]
    return job.report


@lists_options(DEFAULTS)
def check(
    engine: Engine,
    paths: Paths,
    filter: Folder,
    out: Folder | None,
    *,
    invert: bool = False,
    **given: Unpack[Options],
) -> Report:
    """Writes the lines of files that a filter contains to the folder `out`, in order, with repeats.

    - `paths`, `filter`: files of lines; the path of a filter file.
    - `invert`: write the lines that the filter does not contain.
    - `key_transform`: as in `common` [those that the filter records; others raise
      `IncompatibleError`].
    - Other arguments and errors are those of `common`.

    Cost: reads the files once. The driver reads the filter twice, to verify it and to copy it to
    the work folder, where workers map it.
    """
    refuse_unknown("check", Options, given)
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
    transforms = _petal._adopted_transforms(opened, read_transforms(given.get("key_transform")))
    names = read_paths(paths)
    given["key_transform"] = transforms.split(",") if transforms else None
    options = _read("check", Options, given)
    with (
        open_output(out) as output,
        _start(engine, output.folder, output.parent, options) as job,
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
            for one in _split(names, options.range_bytes, job.slots)
        ]
        results = job.run("check", tasks.check, items)
        job.report.lines = sum(numbers["lines"] for numbers in results)
        job.report.kept = sum(numbers["found"] for numbers in results)
    return job.report
