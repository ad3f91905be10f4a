"""The tasks of a job past one machine: one function for each step, of plain data alone.

An engine carries a function and one item to a worker and brings back what it returns. So each
function here takes what all tasks of the job are told, and one item, both dicts, and returns a
dict of numbers; whatever is large goes through files in a folder that all workers see. Each may
run twice, even at once: files appear whole, under names that the item gives.

Files of one kind are a row: `(prefix, begin, end)` are `prefix0`, `prefix1` and so on, from
`begin` up to `end`. So what is told of ten thousand files is as short as what is told of one.

Workers need this module and the extension, no more: where only the extension's one file was sent
to them it is imported as `_petal`.
"""

import fcntl
import os
import shutil
import socket
from contextlib import suppress
from glob import glob
from typing import Any

Job = dict[str, Any]
Item = dict[str, Any]
Numbers = dict[str, int]
Row = tuple[str, int, int]


def _extension() -> Any:
    """The extension, looked for where the task runs: an engine that carries this module to its
    workers by value must not carry a module with it. What was shipped comes first: the worker may
    have a package of another version."""
    try:
        import _petal  # type: ignore[import-not-found]
    except ImportError:
        from petal import _petal
    return _petal


def _ranges() -> Any:
    return _extension().ranges


def _told(job: Job) -> tuple[Any, bytes]:
    """What the functions of the extension take first, if the worker sees what the driver sees."""
    for folder, option in job["folders"]:
        if not os.path.isdir(folder):
            raise _extension().InputError(
                f"{folder}: not there for the worker on {socket.gethostname()}, expected the "
                f"folder that the driver sees; name with {option}= one that all workers share"
            )
    return job["settings"], job["keys"]


def files(row: Row) -> list[str]:
    """The names of a row of files."""
    prefix, begin, end = row
    return [f"{prefix}{number}" for number in range(begin, end)]


def copied(path: str, folder: str) -> str:
    """A copy of a file of a work folder in a folder of this machine, made once however many tasks
    want it at a time. Copies of jobs whose work folder is gone are removed."""
    work, name = os.path.split(path)
    ours = os.path.join(folder, os.path.basename(work))
    copy = os.path.join(ours, name)
    if os.path.exists(copy):
        return copy
    for link in glob(os.path.join(folder, ".petal-work-*.of")):
        if not os.path.exists(link):
            shutil.rmtree(link.removesuffix(".of"), ignore_errors=True)
            with suppress(FileNotFoundError):
                os.unlink(link)
    try:
        # Before the folder: whoever sees that knows whose it is.
        with suppress(FileExistsError):
            os.symlink(work, ours + ".of")
        os.makedirs(ours, exist_ok=True)
        with open(copy + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(copy):
                _copy(path, copy)
    except OSError as error:
        raise _extension().InputError(
            f"{path}: cannot be copied to {folder} on {socket.gethostname()}: {error.strerror}; "
            "every executor needs room for the filters of a job there"
        ) from error
    return copy


def _copy(path: str, copy: str) -> None:
    """Copies a file; the copy has its name when all of it is there."""
    aside = copy + ".part"
    try:
        shutil.copyfile(path, aside)
        os.replace(aside, copy)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside)
        raise


def _filters(job: Job, item: Item) -> list[str]:
    """The filters of an item as files that are near: `fetch` makes such a path of any."""
    return [job["fetch"](path) for path in item["filters"]]


def count(job: Job, item: Item) -> Numbers:
    """Counts the lines of ranges."""
    return _ranges().count(*_told(job), item["ranges"])


def build(job: Job, item: Item) -> Numbers:
    """Fills one partial filter with the lines of the ranges of one slot."""
    return _ranges().build(*_told(job), item["ranges"], item["size"], item["out"])


def union(job: Job, item: Item) -> Numbers:
    """Unites partial filters."""
    return _ranges().union(*_told(job), item["partials"], item["out"])


def publish(job: Job, item: Item) -> Numbers:
    """Makes a filter file for others of a partial."""
    return _ranges().publish(*_told(job), item["partial"], item["out"])


def build_back(job: Job, item: Item) -> Numbers:
    """Fills one partial filter with the keys of survivors."""
    return _ranges().build_back(*_told(job), files(item["survivors"]), item["size"], item["out"])


def narrow(job: Job, item: Item) -> Numbers:
    """Makes records of the lines that filters, or bits told by filters, cannot rule out."""
    told = _told(job)
    by: dict[str, list[str]]
    by = {"bits": files(item["bits"])} if "bits" in item else {"filters": _filters(job, item)}
    return _ranges().filter(
        *told, item["ranges"], item["first"], item["partitions"], item["out"], **by
    )


def exact(job: Job, item: Item) -> Numbers:
    """Decides one partition."""
    first, *others = [(files(row), ranges) for row, ranges in [item["first"], *item["others"]]]
    return _ranges().exact(
        *_told(job), item["verb"], item["partition"], first, others, item["out"]
    )


def take(job: Job, item: Item) -> Numbers:
    """Writes the lines of the answer that start in ranges, which follow each other."""
    return _ranges().take(*_told(job), item["takes"], files(item["answers"]), job["work"])


def check(job: Job, item: Item) -> Numbers:
    """Writes the lines of one range that a filter may hold, or inverted those that it does not."""
    told, path = _told(job), _filters(job, item)[0]
    out = item["out"] and (item["out"], job["work"])
    return _ranges().check(*told, item["range"], path, item["invert"], out)


def keys(job: Job, item: Item) -> Numbers:
    """Deals the hashes of the lines of ranges to shards."""
    return _ranges().keys(
        *_told(job), item["ranges"], item["first"], item["shards"], item["out"]
    )


def build_shard(job: Job, item: Item) -> Numbers:
    """Fills the filter of one shard with its hashes."""
    return _ranges().build_shard(
        *_told(job), item["shard"], item["size"], files(item["hashes"]), item["out"]
    )


def probe(job: Job, item: Item) -> Numbers:
    """Asks the filters of one shard for its hashes."""
    told, filters = _told(job), _filters(job, item)
    return _ranges().probe(
        *told, item["shard"], item["first"], filters, files(item["hashes"]), item["out"]
    )
