"""Set operations on files of lines.

A line is the bytes up to the delimiter, which is not part of it. Inputs are files, plain or
compressed with gzip, zstd, xz, bzip2 or lz4, or pipes. Data that exceeds `memory_limit` goes to
an unnamed spill file in `temp_dir`.

These functions check their arguments and call the extension module, which releases the
interpreter's lock and uses `jobs` threads. Ctrl-C ends a job; no output file is left incomplete.
"""

from collections.abc import Iterable
from typing import Literal, TypeVar, Unpack

from petal._arguments import (
    DEFAULTS,
    Out,
    Path,
    Paths,
    PrintOptions,
    SetOptions,
    lists_options,
    read_flag,
    read_integer,
    read_options,
    read_out,
    read_outputs,
    read_path_list,
    read_paths,
    read_transforms,
)
from petal._petal import _count_job, _set_operation_job, _transform_key
from petal._report import CountReport, Phase, Report, read_result

__all__ = [
    "CountReport",
    "Phase",
    "Report",
    "common",
    "count",
    "dedup",
    "diff",
    "symdiff",
    "transform_key",
]

Key = TypeVar("Key", bytes, str)


@lists_options(DEFAULTS)
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
    **options: Unpack[SetOptions],
) -> Report:
    """Returns the distinct lines of `a` that are in every other file, in the order of `a`.

    The result is exact unless `approx` is set.

        >>> petal.common("a.txt", "b.txt", out="both.txt").kept               # doctest: +SKIP
        2

    - `a`: a path, or several that are read as one file.
    - `others`: one path per file. What follows the last `#` of a path says what its key is, whatever
      `column` and `json_key` say: `"a.csv#url"`, `"b.csv#2&separator=;&header=no"`, `"c.jsonl#/user/id"`,
      or the whole line after `"d.txt#"`. A file that exists under the whole name is that file.
    - `at_least`: return the lines that are in at least this number of the others, at most 126 [all].
    - `out`: destination of the result: a path, which is replaced when the job is complete, and
      compressed if it ends in `.gz`, `.zst` or `.lz4`; or an object with `write(bytes)` [the report
      has the lines].
    - `rest`: destination of the lines of `a` that are not in the result.
    - `count`: only count the lines.
    - `approx`: read each file once and decide with filters only.
    - `capacity`, `fpr`: with `approx`, the number of lines to plan for [estimated], and the
      false-positive rate [the lowest that fits in memory].
    - `memory_limit`: memory that the job may add to the process, in bytes or like `"4G"`, `"512M"`,
      `"25%"` [half of the available memory].
    - `jobs`: threads [all processors].
    - `temp_dir`: folder for spill files [the system's].
    - `work_dir`: folder that keeps finished phases until the job is complete.
    - `resume`: continue a job from there.
    - `delimiter`: the byte that ends a line.
    - `text`: read files as lines that look like compressed, binary or UTF-16 files, instead of
      raising `InputError`, and issue no `UserWarning` about byte order marks or mixed line ends.
    - `column`: read CSV, Parquet or Arrow and compare records by these columns: a name (`str`), a number
      counted from 1 (`int`), or a list. The result has whole records. A name needs a header, the first record of
      each file; the first one is written to `out`, and is the `header` of the report.
      Rows of Parquet and Arrow need `out`, which gets a file of their format, or `keys_only`.
    - `keys_only`: return only the key of each record, one line for each: one field as it is, several
      as CSV.
    - `separator`: the byte between columns [a tab in files named `.tsv` or `.tab`, a comma in those
      named `.csv`; in others what divides the first two lines: a tab, `|`, `;` or comma; an error
      if several do].
    - `quote`: the byte around columns that contain separators or line ends, or `"none"` [`'"'`, but
      none if tabs separate the columns].
    - `escape`: the byte after this one has no special meaning [none].
    - `header`: the first record of each file is a header [if `column` has a name].
    - `json_key`: compare lines of JSON by the value at this JSON pointer, such as `"/url"`, or by
      those at several.
    - `key_transform`: names of changes to the lines, or to the columns or values, before they are
      compared, in order, such as `["trim", "url-surt"]` or `"trim,url-surt"`; those of `petal common --key-transform`.
      The result has the lines as they are.
    - `bad_records`: what happens with records without a key, such as invalid JSON: `"stop"` raises
      `InputError`, `"skip"` leaves them out, and a path also writes them to that file [`"stop"`].
      Records that are left out are counted in a `UserWarning`.
    - `nulls`: how keys with a null or missing value of JSON or Parquet compare: as `"one"` key, each
      `"distinct"` from all others, or `"drop"` their records [`"one"`].
    - `empty`: how empty keys compare, as for `nulls` [`"one"`].
    - `comment`: leave out lines that begin with this text, also before the header [none].
    - `skip_lines`: number of lines to leave out at the start of each file, before the header [0].
    - `progress`: `True` shows the phase, its bytes and the time left of the job in one line of
      `sys.stderr`, in a terminal or a notebook. A function is called as `progress(phase, done, total)`
      some ten times a second and at the start and end of each phase, with bytes of input; `total` is
      `None` if unknown. Its exceptions end the job.

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
    settings = read_options("common", SetOptions, options)
    result = _set_operation_job("common", read_paths(a), read_path_list(others), outputs, settings)
    return Report(**read_result(result, options))


@lists_options(DEFAULTS)
def diff(
    a: Paths,
    *others: Paths,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    **options: Unpack[SetOptions],
) -> Report:
    """Returns the distinct lines of `a` that are in no other file, in the order of `a`.

    Arguments, cost and errors are those of `common`; each of `others` may be several paths.
    """
    if not others:
        raise TypeError("diff: expected at least two files, found one; dedup takes one")
    outputs = read_outputs(out, rest, count, approx, capacity, fpr)
    settings = read_options("diff", SetOptions, options)
    compared = [path for other in others for path in read_paths(other)]
    result = _set_operation_job("diff", read_paths(a), compared, outputs, settings)
    return Report(**read_result(result, options))


@lists_options(DEFAULTS)
def symdiff(
    a: Paths,
    b: Paths,
    *,
    out: Out | None = None,
    count: bool = False,
    **options: Unpack[SetOptions],
) -> Report:
    """Returns the distinct lines that are in only one of `a` and `b`: those of `a`, then those of `b`.

    Each of `a` and `b` is a path, or several that are read as one file. Other arguments, cost and
    errors are those of `common`.
    """
    outputs = read_outputs(out, None, count)
    settings = read_options("symdiff", SetOptions, options)
    result = _set_operation_job("symdiff", read_paths(a), read_paths(b), outputs, settings)
    return Report(**read_result(result, options))


@lists_options(DEFAULTS)
def dedup(
    *inputs: Paths,
    keep: Literal["first", "last"] = "first",
    only_duplicates: bool = False,
    only_unique: bool = False,
    out: Out | None = None,
    rest: Out | None = None,
    count: bool = False,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    **options: Unpack[SetOptions],
) -> Report:
    """Returns the distinct lines of all inputs, in the order of their first or last occurrence.

    - `inputs`: paths.
    - `keep`: which of equal lines is kept, the `"first"` or the `"last"`.
    - `only_duplicates`: return each line that occurs at least twice, once.
    - `only_unique`: return the lines that occur exactly once.
    - `rest`: destination of the repeated lines.

    Other arguments, cost and errors are those of `common`. `keep="last"`, `only_duplicates` and
    `only_unique` are exact and exclude one another; the latter two have no `rest`.
    """
    first = [path for paths in inputs for path in read_paths(paths)]
    if not first:
        raise TypeError("dedup: expected at least one file, found none")
    operation = _dedup_operation(keep, only_duplicates, only_unique, approx, rest)
    outputs = read_outputs(out, rest, count, approx, capacity, fpr)
    settings = read_options("dedup", SetOptions, options)
    result = _set_operation_job(operation, first, [], outputs, settings)
    return Report(**read_result(result, options))


def _dedup_operation(
    keep: str, only_duplicates: bool, only_unique: bool, approx: bool, rest: object
) -> str:
    """Returns the name of the operation. Raises `ValueError` if the arguments conflict."""
    if keep not in ("first", "last"):
        raise ValueError(f'keep=: expected "first" or "last", found {keep!r}')
    chosen = {
        "keep": keep == "last",
        "only_duplicates": read_flag("only_duplicates", only_duplicates),
        "only_unique": read_flag("only_unique", only_unique),
    }
    names = [name for name, is_set in chosen.items() if is_set]
    if len(names) > 1:
        raise ValueError(f"{names[0]}=, {names[1]}=: cannot be combined; leave out one of them")
    if not names:
        return "dedup"
    if approx or rest is not None and names != ["keep"]:
        other = "approx=" if approx else "rest="
        raise ValueError(f"{names[0]}=: cannot be combined with {other}; leave out one of them")
    return "last" if names == ["keep"] else names[0].removeprefix("only_")


@lists_options(DEFAULTS)
def count(
    *inputs: Paths,
    sort: Literal["appearance", "count"] = "appearance",
    top: int | None = None,
    min_count: int = 1,
    out: Out | None = None,
    **options: Unpack[PrintOptions],
) -> CountReport:
    """Counts how often each distinct line occurs in all inputs together.

        >>> for line, count in petal.count("access.log", top=10):            # doctest: +SKIP
        ...     print(count, line.decode())

    - `inputs`: paths.
    - `sort`: `"appearance"`: in the order in which the lines occur first; `"count"`: the most
      frequent line first, equal ones by their first appearance.
    - `top`: only this number of lines, the most frequent ones; implies `sort="count"`.
    - `min_count`: only lines that occur at least this number of times.
    - `out`: destination of the result, the number, a tab and the line for each, as `petal count`
      writes it [the report has pairs of lines and counts].

    Other arguments and errors are those of `common`. Cost: at most two passes over the
    files; if the lines that occur more than once do not fit into `memory_limit`, also 24 bytes of
    temporary data per line and 16 per distinct line.
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
    settings = read_options("count", PrintOptions, options)
    result = _count_job(files, arguments, settings)
    return CountReport(**read_result(result, options, counted=True))


def transform_key(key: Key, key_transform: Iterable[str]) -> Key:
    """Returns `key`, bytes or text, after changes: the same bytes as in jobs with `key_transform`.

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
