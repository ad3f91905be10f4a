"""The options of jobs on files, each declared once; `jobs.common` has their meanings."""

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


class ExactOptions(Options, total=False):
    """Also the options of jobs that decide exactly."""

    partitions: int | None
    shards: int | None
    temp_dir: str | None


#: The defaults of options that are not `None`.
DEFAULTS = {"memory_limit": "1G", "jobs": 1, "delimiter": b"\n"}
