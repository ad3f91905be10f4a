"""What a job or a filter will take, and how a filter answers a query."""

import json
from typing import Any, Literal, Unpack, cast

from petal._arguments import (
    DEFAULTS,
    JobOptions,
    Path,
    Paths,
    lists_options,
    read_flag,
    read_integer,
    read_memory,
    read_number,
    read_options,
    read_path,
    read_paths,
    refuse_unknown,
)
from petal._names import FilterType
from petal._petal import Filter, _explain, _plan_filter, _plan_job
from petal._petal import open as _open
from petal._set_operations import transform_key

#: The operations whose first input is compared with others.
_COMPARING = ("common", "diff", "symdiff")


@lists_options(DEFAULTS)
def plan(
    operation: Literal["common", "diff", "symdiff", "dedup", "last", "duplicates", "unique"] | None = None,
    *inputs: Paths,
    at_least: int | None = None,
    count: bool = False,
    full_scan: bool | None = None,
    type: FilterType = "bloom",
    capacity: int | None = None,
    fpr: float | None = None,
    size: int | str | None = None,
    bits: int | None = None,
    probes: int | None = None,
    least_space: bool = False,
    **options: Unpack[JobOptions],
) -> dict[str, Any]:
    """Returns what a filter will be, or what a set operation will take, without making it: the figures of
    `petal plan --json`.

        >>> petal.plan(capacity=1_000_000, fpr=0.01)["size_bytes"]
        1262592
        >>> petal.plan("common", "a.txt", "b.txt")["seconds"]                 # doctest: +SKIP
        [0.8, 2.1]

    - `operation`: the operation to estimate; `last`, `duplicates` and `unique` are those of `dedup` [a
      filter is planned].
    - `inputs`: its inputs, in the order of its function; petal samples them.
    - `at_least`: as in `common`.
    - `count`: the operation only counts lines.
    - `full_scan`: read all lines, or only samples [all lines if that takes little time].
    - `type`, `capacity`, `fpr`, `size`, `bits`, `probes`, `least_space`: of the filter, as in `build`:
      `capacity`, or two or three of `capacity`, `fpr`, `probes` and `size` or `bits`.
    - Other arguments are those of `common`, and only for operations.

    Raises the errors of `common`, `MemoryLimitError` if the filter exceeds `size`.
    """
    if operation is None:
        if inputs or options or at_least is not None or count or full_scan is not None:
            raise ValueError("plan: these arguments are of an operation; name one, such as 'dedup'")
        figures = {
            "type": type,
            "capacity": read_integer("capacity", capacity, 1),
            "fpr": read_number("fpr", fpr),
            "size": read_memory(size, "size"),
            "bits": read_integer("bits", bits, 1),
            "probes": read_integer("probes", probes, 1, 64),
            "least_space": read_flag("least_space", least_space),
        }
        return cast(dict[str, Any], _plan_filter(figures))
    if (capacity, fpr, size, bits, probes, least_space, type) != (*[None] * 5, False, "bloom"):
        raise ValueError("plan: type=, capacity= and other settings of filters need no operation; leave it out")
    if operation not in (*_COMPARING, "dedup", "last", "duplicates", "unique"):
        raise ValueError(f"plan: expected an operation such as 'common', found {operation!r}")
    refuse_unknown("plan", JobOptions, options)
    if options.get("bad_records", "stop") not in ("stop", "skip"):
        raise ValueError("bad_records=: plan writes no records; use 'skip'")
    files = [read_paths(paths) for paths in inputs]
    first, others = files[:1], files[1:]
    if operation not in _COMPARING:
        first, others = files, []
    least = 1 if operation not in _COMPARING else 2
    if len(files) < least or operation == "symdiff" and len(files) > 2:
        expected = "two inputs" if operation == "symdiff" else f"at least {least}"
        raise TypeError(f"plan: expected {expected} for {operation!r}, found {len(files)}")
    number = read_integer("at_least", at_least, 1, 126)
    if number is not None and (operation != "common" or number > len(others)):
        raise ValueError(f"at_least=: expected at most the number of other inputs of 'common', found {number}")
    settings = read_options("plan", JobOptions, options)
    compared = [path for paths in others for path in paths]
    names = ([path for paths in first for path in paths], compared)
    estimate = _plan_job(operation, names, number, read_flag("count", count), full_scan, settings)
    return cast(dict[str, Any], json.loads(estimate))


def explain(filter: Filter | Path, key: str | bytes, *, secret: bytes | None = None) -> dict[str, Any]:
    """Returns how a filter answers a query of one key: its hash, and the bits or slots that are read, as
    `petal explain --json` prints it.

        >>> seen = petal.BloomFilter(1000)
        >>> petal.explain(seen, "https://example.com/")["contains"]
        False

    - `filter`: a filter of petal's own, or the path of its file, which is mapped.
    - `key`: a line; it is changed as `check` changes lines, by `filter.query_transform`.
    - `secret`: of a filter file, as in `open`.

    Cost: a query, and a read of the whole filter if it contains the key. Raises `UnsupportedError` for
    filters of other programs.
    """
    if isinstance(filter, Filter):
        if secret is not None:
            raise ValueError("secret=: pass it to open(), not with a filter object")
        opened = filter
    else:
        opened = _open(read_path(filter, expected="a filter or its path"), secret=secret)
    if not isinstance(key, (str, bytes)):
        raise TypeError(f"explain: expected bytes or text, found {key!r}")
    names = opened.query_transform or []
    line = key.encode() if isinstance(key, str) else key
    changed = transform_key(line, names) if names else line
    answer = {"key": changed.decode(errors="replace"), "key_transform": ",".join(names)}
    return answer | cast(dict[str, Any], _explain(opened, changed))
