"""Types of the options of jobs on files, for functions that pass them on; `jobs` has their meanings and defaults."""

from collections.abc import Iterable
from typing import TypedDict

from petal._distributed.arguments import Folder


class Options(TypedDict, total=False):
    """Options of every job."""

    work: Folder | None
    memory_limit: int | str
    jobs: int
    slots: int | None
    range_bytes: int | None
    delimiter: bytes
    json_key: str | Iterable[str] | None
    key_transform: Iterable[str] | None


class BuildOptions(Options, total=False):
    """Options of `build`."""

    capacity: int | None
    fpr: float


class CheckOptions(Options, total=False):
    """Options of `check`."""

    invert: bool


class ExactOptions(Options, total=False):
    """Options of `diff` and `symdiff`."""

    partitions: int | None
    shards: int | None
    temp_dir: str | None


class CommonOptions(ExactOptions, total=False):
    """Options of `common`."""

    at_least: int | None


class DedupOptions(ExactOptions, total=False):
    """Options of `dedup`."""

    only_duplicates: bool
    only_unique: bool
