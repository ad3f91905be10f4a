"""The tasks of a distributed job: functions of plain data, one for each step.

An engine sends a function and one item to a worker and returns the result to the driver. Each
function takes the job and an item, both dicts, and returns a dict of numbers. Large data is in
files in a folder that all workers share. A task may run twice, even at the same time: its files are
renamed into place when they are complete, under names in the item.

A *file series* `(prefix, begin, end)` stands for the files `prefix0`, `prefix1`, ... with the
numbers from `begin` up to `end`, so that ten thousand files are as short to send as one.

Workers need only this module and the extension. If only the file of the extension was sent to them,
it is imported as `_petal`.
"""

import fcntl
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from glob import glob
from typing import Any, Protocol

Job = dict[str, Any]
Item = dict[str, Any]
Numbers = dict[str, int]
FileSeries = tuple[str, int, int]


def _extension() -> Any:
    """Returns the extension module.

    It is imported by each task, because an engine that sends this module by value cannot send a
    module with it. A file that was sent comes first, because the worker may have a package of
    another version.
    """
    try:
        import _petal
    except ImportError:
        from petal import _petal
    return _petal


class _Ranges(Protocol):
    """The extension's functions on byte ranges."""

    def __getattr__(self, name: str) -> Callable[..., Numbers]: ...


# Quoted, so that the class is not sent with the tasks.
def _ranges() -> "_Ranges":
    ranges: _Ranges = _extension().ranges
    return ranges


def _job_args(job: Job) -> tuple[Any, bytes]:
    """Returns the first arguments of the extension's functions.

    Raises `InputError` if the worker does not see the folders of the job.
    """
    for folder, option in job["folders"]:
        if not os.path.isdir(folder):
            raise _extension().InputError(
                f"{folder}: not found by the worker on {socket.gethostname()}, expected the folder "
                f"that the driver sees; set {option}= to a folder that all workers share"
            )
    return job["settings"], job["keys"]


def files(series: FileSeries) -> list[str]:
    """Returns the names of a series of files."""
    prefix, begin, end = series
    return [f"{prefix}{number}" for number in range(begin, end)]


def local_copy(path: str, folder: str) -> str:
    """Copies a file of a work folder to a folder of this machine, and returns the copy's path.

    Concurrent tasks make one copy. Copies of jobs whose work folder is gone are removed.
    """
    work, name = os.path.split(path)
    copies = os.path.join(folder, os.path.basename(work))
    copy = os.path.join(copies, name)
    if os.path.exists(copy):
        return copy
    for link in glob(os.path.join(folder, ".petal-work-*.of")):
        if not os.path.exists(link):
            shutil.rmtree(link.removesuffix(".of"), ignore_errors=True)
            with suppress(FileNotFoundError):
                os.unlink(link)
    try:
        # The link is made before the folder, so that no folder is without one.
        with suppress(FileExistsError):
            os.symlink(work, copies + ".of")
        os.makedirs(copies, exist_ok=True)
        with open(copy + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(copy):
                _copy(path, copy)
    except OSError as error:
        raise _extension().InputError(
            f"{path}: cannot copy to {folder} on {socket.gethostname()}: {error.strerror}; each "
            "executor needs disk space for the filters of a job there"
        ) from error
    return copy


def _copy(path: str, copy: str) -> None:
    """Copies a file under a temporary name and renames it when it is complete."""
    part = copy + ".part"
    try:
        shutil.copyfile(path, part)
        os.replace(part, copy)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


def _filters(job: Job, item: Item) -> list[str]:
    """Returns the item's filters as paths that the engine's `fetch` has made local."""
    return [job["fetch"](path) for path in item["filters"]]


def count(job: Job, item: Item) -> Numbers:
    """Counts the lines of byte ranges."""
    return _ranges().count(*_job_args(job), item["ranges"])


def build(job: Job, item: Item) -> Numbers:
    """Builds a partial filter of the lines of byte ranges."""
    return _ranges().build(*_job_args(job), item["ranges"], item["size"], item["out"])


def union(job: Job, item: Item) -> Numbers:
    """Builds the union of partial filters."""
    return _ranges().union(*_job_args(job), item["partials"], item["out"])


def publish(job: Job, item: Item) -> Numbers:
    """Writes a partial filter as a filter file."""
    return _ranges().publish(*_job_args(job), item["partial"], item["out"])


def build_from_candidates(job: Job, item: Item) -> Numbers:
    """Builds a partial filter of the records of candidates."""
    return _ranges().build_from_candidates(
        *_job_args(job), files(item["candidates"]), item["size"], item["out"]
    )


def select(job: Job, item: Item) -> Numbers:
    """Writes records of the candidates: the lines that filters, or bits of filters, may contain."""
    args = _job_args(job)
    by: dict[str, list[str]]
    by = {"bits": files(item["bits"])} if "bits" in item else {"filters": _filters(job, item)}
    return _ranges().filter(
        *args, item["ranges"], item["first"], item["partitions"], item["out"], **by
    )


def decide(job: Job, item: Item) -> Numbers:
    """Decides the candidates of one partition exactly."""
    first, *others = [
        (files(series), ranges) for series, ranges in [item["first"], *item["others"]]
    ]
    return _ranges().exact(
        *_job_args(job), item["operation"], item["partition"], first, others, item["at_least"],
        item["out"],
    )


def write_lines(job: Job, item: Item) -> Numbers:
    """Writes the lines of the result that start in consecutive byte ranges."""
    return _ranges().write_lines(
        *_job_args(job), item["parts"], files(item["answers"]), job["work"]
    )


def check(job: Job, item: Item) -> Numbers:
    """Writes the lines of one byte range that a filter contains, or with `invert` the others."""
    args, path = _job_args(job), _filters(job, item)[0]
    out = item["out"] and (item["out"], job["work"])
    return _ranges().check(*args, item["range"], path, item["invert"], out)


def hash_lines(job: Job, item: Item) -> Numbers:
    """Writes the hashes of the lines of byte ranges, one file for each shard."""
    return _ranges().hash_lines(
        *_job_args(job), item["ranges"], item["first"], item["shards"], item["out"]
    )


def build_shard(job: Job, item: Item) -> Numbers:
    """Builds the filter of one shard from its hashes."""
    return _ranges().build_shard(
        *_job_args(job), item["shard"], item["size"], files(item["hashes"]), item["out"]
    )


def probe_shard(job: Job, item: Item) -> Numbers:
    """Looks up the hashes of one shard in its filters, and writes one bit for each."""
    args, filters = _job_args(job), _filters(job, item)
    return _ranges().probe(
        *args, item["shard"], item["first"], filters, files(item["hashes"]), item["out"]
    )
