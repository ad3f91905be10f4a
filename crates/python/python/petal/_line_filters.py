"""Filters of the lines of files: made, queried, merged, and remembered between jobs.

`_arguments` declares the options that all jobs have; `common` has their meanings.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Unpack

from petal._arguments import (
    DEFAULTS,
    JobOptions,
    Out,
    Path,
    Paths,
    PrintOptions,
    Progress,
    lists_options,
    read_flag,
    read_integer,
    read_memory,
    read_notes,
    read_number,
    read_options,
    read_out,
    read_path,
    read_paths,
    read_transforms,
)
from petal._names import FilterType, Format, KeyType
from petal._petal import Filter, _build_job, _check_job, _merge_job, _seen_job
from petal._petal import open as _open
from petal._report import Report, read_result


@lists_options(DEFAULTS)
def build(
    inputs: Paths,
    out: Out,
    *,
    type: FilterType = "bloom",
    capacity: int | None = None,
    fpr: float | None = None,
    size: int | str | None = None,
    bits: int | None = None,
    probes: int | None = None,
    least_space: bool = False,
    seed: int = 0,
    width: int | None = None,
    max_capacity: int | None = None,
    window: int | None = None,
    last: int | None = None,
    not_in: Paths | None = None,
    secret: bytes | None = None,
    secret_apart: bool = False,
    query_transform: str | Iterable[str] | None = None,
    metadata: Mapping[str, str] | None = None,
    **options: Unpack[JobOptions],
) -> Report:
    """Builds a filter file of all lines of the inputs, the same bytes as `petal build`.

    - `inputs`, `out`: paths of lines; the filter file.
    - `type`: `bloom`, `classic`, `counting`, `counting-classic`, `quotient`, `vector-quotient`,
      `scalable`, `windowed`, `static`, `static-fuse` or `cascade`.
    - `capacity`: number of lines to plan for [they are counted first].
    - `fpr`: target false-positive rate [0.01; with only `size` the lowest that fits].
    - `size`: maximum size of the filter, in bytes or like `"512M"` [what `memory_limit` leaves].
    - `bits`, `probes`, `least_space`: as for `BloomFilter`, for `bloom`, `classic` and counting types.
    - `seed`: seed of the hash.
    - `width`: bits of a counter, for counting types [4].
    - `max_capacity`: the capacity up to which a quotient filter grows.
    - `window`, `last`: seconds, or number of lines, after which a windowed filter drops lines.
    - `not_in`: lines that a cascade must report as absent.
    - `secret`, `secret_apart`: as for `BloomFilter`.
    - `query_transform`: changes to lines that are looked up, instead of `key_transform`, such as
      `sha1,uppercase` if the inputs are digests.
    - `metadata`: notes for the filter's file, such as `{"source": "https://example.com"}`.
    - `bad_records`, `nulls`, `empty`, `comment`, `skip_lines`: as in `common`; a filter has no
      distinct keys.
    - `column`, `separator`, `quote`, `escape`, `header`, `json_key`: as in `common`; the filter
      contains the columns or values. A filter of one column can be queried with plain lines, and
      with other files' columns.
    - `key_transform`: as in `common`; the filter's file records the names, and `check` uses them.
    - Other arguments are those of `common`.

    Cost: one pass over the inputs, and another to count lines if `capacity` is not given. Static
    filters keep 16 bytes per line in memory, cascades up to 80 per line of `inputs`; or 8 in `temp_dir`
    if `memory_limit` has no room for them.

    Raises the errors of `common`, `MemoryLimitError` if the filter exceeds `size` or what
    `memory_limit` leaves, `FullError` if it accepts no more lines.
    """
    filter_spec = {
        "type": type,
        "capacity": read_integer("capacity", capacity, 1),
        "fpr": read_number("fpr", fpr),
        "size": read_memory(size, "size"),
        "seed": read_integer("seed", seed, 0),
        "bits": read_integer("bits", bits, 1),
        "probes": read_integer("probes", probes, 1, 64),
        "least_space": least_space,
        "width": read_integer("width", width, 2, 8),
        "max_capacity": read_integer("max_capacity", max_capacity, 1),
        "window": read_integer("window", window, 1),
        "last": read_integer("last", last, 1),
        "now": int(time.time()),
        "secret": secret,
        "secret_apart": read_flag("secret_apart", secret_apart),
        "query_transform": read_transforms(query_transform, "query_transform"),
        "notes": read_notes(metadata),
    }
    settings = read_options("build", JobOptions, options)
    others = [] if not_in is None else read_paths(not_in)
    result = _build_job(read_paths(inputs), read_out("out", out), others, filter_spec, settings)
    return Report(**read_result(result, options))


@lists_options(DEFAULTS)
def check(
    filter: Filter | Path,
    inputs: Paths,
    *,
    out: Out | None = None,
    invert: bool = False,
    count: bool = False,
    allow: Paths | None = None,
    format: Format | None = None,
    key_type: KeyType = "text",
    secret: bytes | None = None,
    **options: Unpack[PrintOptions],
) -> Report:
    """Returns the lines of the inputs that a filter contains, in order, with repeats.

    - `filter`: a filter, which other threads may use and change at the same time; or the path of a
      filter file, which is mapped.
    - `inputs`: a path, or several.
    - `invert`: return the lines that the filter does not contain.
    - `allow`: files of keys, one per line, that are treated as absent.
    - `format`, `key_type`, `secret`: of a filter file, as in `open`.
    - `key_transform`: as in `common` [`filter.query_transform`; others raise `IncompatibleError`].
    - Other arguments are those of `common`.

    Cost: one pass over the inputs. Raises the errors of `common`.
    """
    filter_paths = []
    if not isinstance(filter, Filter):
        filter_paths = [read_path(filter, expected="a filter or its path")]
    check_options = {
        "out": read_out("out", out),
        "invert": read_flag("invert", invert),
        "count": read_flag("count", count),
        "allow": [] if allow is None else read_paths(allow),
        "filter_paths": filter_paths,
    }
    if isinstance(filter, Filter):
        if format is not None or key_type != "text" or secret is not None:
            raise ValueError("format=, key_type=, secret=: pass them to open(), not with a filter object")
        opened = filter
    else:
        opened = _open(filter, format=format, key_type=key_type, secret=secret)
    settings = read_options("check", PrintOptions, options)
    result = _check_job(opened, read_paths(inputs), check_options, settings)
    return Report(**read_result(result, options))


@lists_options(DEFAULTS)
def seen(
    filter: Path,
    *inputs: Paths,
    capacity: int | None = None,
    fpr: float | None = None,
    window: int | None = None,
    last: int | None = None,
    exact: bool = False,
    metadata: Mapping[str, str] | None = None,
    dry_run: bool = False,
    out: Out | None = None,
    count: bool = False,
    **options: Unpack[PrintOptions],
) -> Report:
    """Returns the lines that no earlier job with this filter file has returned, in order, each once.

    The file, and beside it `FILTER.exact` and `FILTER.lock`, are those of `petal seen`.

    - `filter`: the path of the filter file, which the first job creates.
    - `inputs`: paths of lines.
    - `capacity`: number of lines to plan for in all jobs together; the first job needs it.
    - `fpr`: share of new lines that are not returned at that number of lines [0.01].
    - `window`: forget lines after this number of seconds; `capacity` is then the number of lines in
      that time.
    - `last`: remember this number of lines, those that were returned last.
    - `exact`: return every new line: keep fingerprints in a file, 21 bytes per line [as in the first
      job].
    - `metadata`: as in `build`, beside the notes of earlier jobs.
    - `dry_run`: create and change no file.
    - `key_transform`: as in `common` [those of the first job; others raise `IncompatibleError`].
    - Other arguments are those of `common`.

    The files change only at the end, after `out` is complete: if a job fails or the process is
    killed, the next job returns the same lines again. Lines of a report without `out` are lost with
    the process.

    Cost: one pass over the inputs; the filter is read and written once, and so are the fingerprints.

    Raises the errors of `common`, `InputError` if another job uses the file, `ValueError` if
    `capacity` is missing in the first job, or an argument differs from those of the first job.
    """
    if last is not None and (window is not None or capacity is not None):
        raise ValueError("last=: cannot be combined with window= or capacity=; leave out one of them")
    if read_flag("exact", exact) and (window is not None or last is not None):
        name = "window=" if last is None else "last="
        raise ValueError(f"exact=: cannot be combined with {name}; leave out one of them")
    files = [path for paths in inputs for path in read_paths(paths)]
    if not files:
        raise TypeError("seen: expected at least one file of lines, found none")
    arguments = {
        "filter": read_path(filter, "filter: ", "the path of a filter file"),
        "out": read_out("out", out),
        "count": read_flag("count", count),
        "dry_run": read_flag("dry_run", dry_run),
        "plan": {
            "capacity": read_integer("capacity", capacity, 1),
            "fpr": read_number("fpr", fpr),
            "window": read_integer("window", window, 1),
            "last": read_integer("last", last, 1),
            "exact": exact,
            "notes": read_notes(metadata),
        },
    }
    settings = read_options("seen", PrintOptions, options)
    return Report(**read_result(_seen_job(files, arguments, settings), options))


def merge(
    *filters: Paths,
    out: Out,
    fold: bool = False,
    format: Format | None = None,
    secret: bytes | None = None,
    metadata: Mapping[str, str] | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Writes the union of filter files of one type, the same bytes as `petal merge`.

    The filters need the same hash, seed and number of probes, and changes to keys. For filters of one
    size, the union is that of all their lines. A filter whose size is a multiple of another's is
    folded to it, with a `UserWarning`.

    - `filters`, `out`: paths of filter files; the filter file to write.
    - `fold`: fold to the largest size that divides all sizes, even if it is very small.
    - `format`, `secret`: of all filter files, as in `open`.
    - `metadata`: as in `build`, beside the notes of the first filter.
    - `memory_limit`: maximum memory, as in `common`; the union and one mapped filter must fit.
    - `progress`: as in `common`.

    `report.kept` is the number of inserted keys of the union, an estimate; 0 for filters of other
    programs.

    Raises `IncompatibleError` if two filters have no union, `InputError` or `FormatError` if a file
    cannot be read, `MemoryLimitError` if `memory_limit` is too small, `UnsupportedError` for types
    without a union.
    """
    files = [path for paths in filters for path in read_paths(paths)]
    if not files:
        raise TypeError("merge: expected at least one filter file, found none")
    arguments = {
        "out": read_out("out", out),
        "fold": read_flag("fold", fold),
        "format": format,
        "memory_limit": read_memory(memory_limit),
        "secret": secret,
        "notes": read_notes(metadata),
        "progress": progress,
    }
    return Report(**read_result(_merge_job(files, arguments), {}))
