"""Set operations on files of lines, and filters of lines.

A line is the bytes up to the delimiter, which is not part of it. Inputs are files, plain or
compressed with gzip, zstd, xz, bzip2 or lz4, or pipes. Data that exceeds `memory_limit` goes to
an unnamed spill file in `temp_dir`.

These functions check their arguments and call the extension module, which releases the
interpreter's lock and uses `jobs` threads. Ctrl-C ends a job; no output file is left incomplete.
"""

import time
from collections.abc import Iterable
from typing import TypeVar

from petal._arguments import (
    Columns,
    Out,
    Path,
    Paths,
    Progress,
    read_flag,
    read_integer,
    read_keys,
    read_memory,
    read_number,
    read_options,
    read_out,
    read_outputs,
    read_path,
    read_path_list,
    read_paths,
    read_transforms,
)
from petal._petal import (
    Filter,
    _build_job,
    _check_job,
    _count_job,
    _set_operation_job,
    _transform_key,
)
from petal._petal import open as _open
from petal._report import CountReport, Phase, Report, read_result

__all__ = [
    "CountReport",
    "Phase",
    "Report",
    "build",
    "check",
    "common",
    "count",
    "dedup",
    "diff",
    "symdiff",
    "transform_key",
]

Key = TypeVar("Key", bytes, str)


def common(
    a: Paths,
    *others: Path,
    at_least: int | None = None,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines of `a` that are in every other file, in the order of `a`.

    With `at_least`, those that are in at least this number of the others, at most 126. The result is
    exact unless `approx` is set.

        >>> petal.common("a.txt", "b.txt", out="both.txt").kept               # doctest: +SKIP
        2

    - `a`: a path, or several that are read as one file. `others`: one path per file.
    - `out`: destination of the result: a path, which is replaced when the job is complete; or an
      object with `write(bytes)` [the report has the lines].
    - `rest`: destination of the lines of `a` that are not in the result.
    - `count`: only count the lines.
    - `approx`: read each file once and decide with filters only. Then `capacity` is the number of
      lines to plan for if it cannot be estimated, and `fpr` the false-positive rate [the lowest
      that fits in memory].
    - `memory_limit`: memory of the job, in bytes or like `"4G"`, `"512M"`, `"25%"` [half of the
      available memory].
    - `jobs`: threads [all processors].
    - `temp_dir`: folder for spill files [the system's].
    - `work_dir`: folder that keeps finished phases until the job is complete. `resume`: continue a
      job from there.
    - `delimiter`: the byte that ends a line.
    - `text`: read files as lines that look like compressed, binary or UTF-16 files, instead of
      raising `InputError`, and issue no `UserWarning` about byte order marks or mixed line ends.
    - `column`: read CSV and compare records by these columns: a name (`str`), a number counted from
      1 (`int`), or a list. The result has whole records. A name needs a header, the first record of
      each file; the first one is written to `out`, and is the `header` of the report.
    - `separator`: the byte between columns [a tab in files named `.tsv` or `.tab`, else a comma].
    - `header`: the first record of each file is a header [if `column` has a name].
    - `json_key`: compare lines of JSON by the value at this JSON pointer, such as `"/url"`, or by
      those at several.
    - `key_transform`: names of changes to the lines, or to the columns or values, before they are
      compared, in order, such as `["trim", "url-surt"]`; those of `petal common --key-transform`.
      The result has the lines as they are.
    - `progress(phase, done, total)`: called some ten times a second and at the start and end of
      each phase, with bytes of input; `total` is `None` if unknown. Its exceptions end the job.

    Cost: two or three passes over the files, and about one hash per line.

    Raises `InputError` if a file cannot be read or written or a record has no such column or is no
    JSON, `MemoryLimitError` if `memory_limit` is too small, `ValueError` or `TypeError` if an
    argument is invalid.
    """
    if not others:
        raise TypeError("common: expected at least two files, found one; dedup takes one")
    number = read_integer("at_least", at_least, 1, 126)
    if number is not None and number > len(others):
        raise ValueError(
            f"at_least=: {number} is more than the number of other files, {len(others)}; lower it"
        )
    if number is not None and approx:
        raise ValueError("at_least=: only for exact jobs; leave out approx=")
    outputs = read_outputs(out, rest, count, approx, capacity, fpr, number)
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(
        memory_limit, jobs, temp_dir, delimiter, text, keys, progress, work_dir, resume
    )
    result = _set_operation_job("common", read_paths(a), read_path_list(others), outputs, options)
    return Report(**read_result(result, delimiter))


def diff(
    a: Paths,
    *others: Paths,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines of `a` that are in no other file, in the order of `a`.

    Arguments, cost and errors are those of `common`; each of `others` may be several paths.
    """
    if not others:
        raise TypeError("diff: expected at least two files, found one; dedup takes one")
    outputs = read_outputs(out, rest, count, approx, capacity, fpr)
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(
        memory_limit, jobs, temp_dir, delimiter, text, keys, progress, work_dir, resume
    )
    compared = [path for other in others for path in read_paths(other)]
    result = _set_operation_job("diff", read_paths(a), compared, outputs, options)
    return Report(**read_result(result, delimiter))


def symdiff(
    a: Paths,
    b: Paths,
    *,
    out: Out | None = None,
    count: bool = False,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines that are in only one of `a` and `b`: those of `a`, then those of `b`.

    Each of `a` and `b` is a path, or several that are read as one file. Other arguments, cost and
    errors are those of `common`.
    """
    outputs = read_outputs(out, None, count)
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(
        memory_limit, jobs, temp_dir, delimiter, text, keys, progress, work_dir, resume
    )
    result = _set_operation_job("symdiff", read_paths(a), read_paths(b), outputs, options)
    return Report(**read_result(result, delimiter))


def dedup(
    *inputs: Paths,
    only_duplicates: bool = False,
    only_unique: bool = False,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    work_dir: Path | None = None,
    resume: bool = False,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the distinct lines of all inputs, in the order of their first occurrence.

    - `only_duplicates`: return each line that occurs at least twice, once.
    - `only_unique`: return the lines that occur exactly once.
    - `rest`: destination of the repeated lines.

    Other arguments, cost and errors are those of `common`. `only_duplicates` and `only_unique` are
    exact and have no `rest`.
    """
    first = [path for paths in inputs for path in read_paths(paths)]
    if not first:
        raise TypeError("dedup: expected at least one file, found none")
    operation = _dedup_operation(only_duplicates, only_unique, approx, rest)
    outputs = read_outputs(out, rest, count, approx, capacity, fpr)
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(
        memory_limit, jobs, temp_dir, delimiter, text, keys, progress, work_dir, resume
    )
    result = _set_operation_job(operation, first, [], outputs, options)
    return Report(**read_result(result, delimiter))


def _dedup_operation(only_duplicates: bool, only_unique: bool, approx: bool, rest: object) -> str:
    """Returns the name of the operation. Raises `ValueError` if the arguments conflict."""
    chosen = {
        "only_duplicates": read_flag("only_duplicates", only_duplicates),
        "only_unique": read_flag("only_unique", only_unique),
    }
    names = [name for name, is_set in chosen.items() if is_set]
    if len(names) == 2:
        raise ValueError("only_duplicates=, only_unique=: no line is both; leave out one of them")
    if not names:
        return "dedup"
    if approx or rest is not None:
        other = "approx=" if approx else "rest="
        raise ValueError(f"{names[0]}=: cannot be combined with {other}; leave out one of them")
    return names[0].removeprefix("only_")


def count(
    *inputs: Paths,
    sort: str = "appearance",
    top: int | None = None,
    min_count: int = 1,
    out: Out | None = None,
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> CountReport:
    """Counts how often each distinct line occurs in all inputs together.

        >>> for line, count in petal.count("access.log", top=10):            # doctest: +SKIP
        ...     print(count, line.decode())

    - `sort`: `"appearance"`: in the order in which the lines occur first; `"count"`: the most
      frequent line first, equal ones by their first appearance.
    - `top`: only this number of lines, the most frequent ones; implies `sort="count"`.
    - `min_count`: only lines that occur at least this number of times.
    - `out`: destination of the result, the number, a tab and the line for each, as `petal count`
      writes it [the report has pairs of lines and counts].

    Other arguments and errors are those of `common`. Cost: two passes over the files; if the
    distinct lines do not fit into `memory_limit`, also 24 bytes of temporary data per line and 16
    per distinct line.
    """
    if sort not in ("appearance", "count"):
        raise ValueError(f"sort=: expected 'appearance' or 'count', found {sort!r}")
    files = [path for paths in inputs for path in read_paths(paths)]
    if not files:
        raise TypeError("count: expected at least one file, found none")
    arguments = {
        "out": read_out("out", out),
        "by_count": sort == "count",
        "top": read_integer("top", top, 1),
        "min_count": read_integer("min_count", min_count, 1),
    }
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(memory_limit, jobs, temp_dir, delimiter, text, keys, progress)
    result = _count_job(files, arguments, options)
    return CountReport(**read_result(result, delimiter, counted=True))


def build(
    inputs: Paths,
    out: Out,
    *,
    type: str = "bloom",
    capacity: int | None = None,
    fpr: float | None = None,
    memory_limit: int | str | None = None,
    bits: int | None = None,
    probes: int | None = None,
    seed: int = 0,
    width: int | None = None,
    max_capacity: int | None = None,
    window: int | None = None,
    last: int | None = None,
    not_in: Paths | None = None,
    jobs: int | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Builds a filter file of all lines of the inputs, the same bytes as `petal build`.

    - `type`: `bloom`, `classic`, `counting`, `counting-classic`, `quotient`, `scalable`,
      `windowed`, `static`, `cascade` or `wide`.
    - `capacity`: number of lines to plan for [they are counted first].
    - `fpr`: target false-positive rate [0.01; with only `memory_limit` the lowest that fits].
    - `memory_limit`: maximum size, in bytes or like `"512M"` [half of the available memory].
    - `bits`, `probes`: bits of the filter, and bits that each line sets, for `bloom`, `classic` and
      counting types [as `capacity` and `fpr` need]. With both and without `capacity` and `fpr`,
      the filter has no plan: its `capacity` and `target_fpr` are 0.
    - `seed`: seed of the hash [0].
    - `width`: bits of a counter, for counting types [4].
    - `max_capacity`: the capacity up to which a quotient filter grows.
    - `window`: seconds after which a windowed filter drops lines; or `last`: number of lines after
      which it does.
    - `not_in`: lines that a cascade must report as absent.
    - `column`, `separator`, `header`, `json_key`: as in `common`; the filter contains the columns or
      values. A filter of one column can be queried with plain lines, and with other files' columns.
    - `key_transform`: as in `common`; the filter's file records the names, and `check` uses them.
    - `jobs`, `delimiter`, `text`, `progress`: as in `common`.

    Cost: one pass over the inputs, and another to count lines if `capacity` is not given. Memory:
    the filter, and up to 24 bytes per line for static filters and cascades.

    Raises the errors of `common`, `MemoryLimitError` if the filter exceeds `memory_limit`,
    `FullError` if it accepts no more lines.
    """
    filter_spec = {
        "type": type,
        "capacity": read_integer("capacity", capacity, 1),
        "fpr": read_number("fpr", fpr),
        "memory_limit": read_memory(memory_limit),
        "seed": read_integer("seed", seed, 0),
        "bits": read_integer("bits", bits, 1),
        "probes": read_integer("probes", probes, 1, 64),
        "width": read_integer("width", width, 2, 8),
        "max_capacity": read_integer("max_capacity", max_capacity, 1),
        "window": read_integer("window", window, 1),
        "last": read_integer("last", last, 1),
        "now": int(time.time()),
    }
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(None, jobs, None, delimiter, text, keys, progress)
    others = [] if not_in is None else read_paths(not_in)
    result = _build_job(read_paths(inputs), read_out("out", out), others, filter_spec, options)
    return Report(**read_result(result, delimiter))


def check(
    filter: Filter | Path,
    inputs: Paths,
    *,
    out: Out | None = None,
    invert: bool = False,
    count: bool = False,
    allow: Paths | None = None,
    format: str | None = None,
    key_type: str = "text",
    memory_limit: int | str | None = None,
    jobs: int | None = None,
    temp_dir: Path | None = None,
    delimiter: bytes = b"\n",
    text: bool = False,
    column: Columns | None = None,
    separator: str | bytes | None = None,
    header: bool = False,
    json_key: str | Iterable[str] | None = None,
    key_transform: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Returns the lines of the inputs that a filter contains, in order, with repeats.

    - `filter`: a filter, which other threads may use and change at the same time; or the path of a
      filter file, which is mapped.
    - `invert`: return the lines that the filter does not contain.
    - `allow`: files of keys, one per line, that are treated as absent.
    - `format`, `key_type`: of another program's filter file, as in `open`.
    - `key_transform`: as in `common` [those that the filter records; others raise
      `IncompatibleError`].
    - `out`, `count`, `memory_limit`, `jobs`, `temp_dir`, `delimiter`, `text`, `column`, `separator`,
      `header`, `json_key`, `progress`: as in `common`.

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
        if format is not None or key_type != "text":
            raise ValueError("format=, key_type=: pass them to open(), not with a filter object")
        opened = filter
    else:
        opened = _open(filter, format=format, key_type=key_type)
    keys = read_keys(column, separator, header, json_key, key_transform, delimiter)
    options = read_options(memory_limit, jobs, temp_dir, delimiter, text, keys, progress)
    result = _check_job(opened, read_paths(inputs), check_options, options)
    return Report(**read_result(result, delimiter))


def transform_key(key: Key, key_transform: Iterable[str]) -> Key:
    """Returns a key after changes, the same bytes as in jobs with `key_transform`.

    Methods of filters take keys as they are. For a filter that records changes, pass its keys
    through this function.

        >>> petal.transform_key("http://www.Example.com/?b=1&a=2", ["url-surt"])
        'com,example)/?a=2&b=1'

    Raises `ValueError` if a name is unknown.
    """
    names = read_transforms(key_transform)
    if isinstance(key, str):
        return _transform_key(key.encode(), names).decode()
    if isinstance(key, bytes):
        return _transform_key(key, names)
    raise TypeError(f"transform_key: expected bytes or text, found {key!r}")
