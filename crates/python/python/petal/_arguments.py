"""Reads the arguments of the functions on files: checks their types, and names them in errors."""

import inspect
import io
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypedDict, TypeVar, cast, get_args

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Path | Iterable[Path]
Progress = Callable[[str, int, int | None], object] | bool
Columns = str | int | Iterable[str | int]


class Writer(Protocol):
    """An object that lines are written to, such as a file opened in binary mode."""

    def write(self, data: bytes, /) -> object:
        """Writes bytes, which may begin or end within a line, at most 64 KiB at a time."""


Out = Path | Writer


class ReadOptions(TypedDict, total=False):
    """How files are read, and what is compared of a record; `common` has the meanings."""

    jobs: int | None
    delimiter: bytes
    text: bool
    column: Columns | None
    separator: str | bytes | None
    quote: str | bytes | None
    escape: str | bytes | None
    header: bool
    json_key: str | Iterable[str] | None
    key_transform: Iterable[str] | None
    bad_records: str | Path
    nulls: str
    empty: str
    comment: str | bytes | None
    skip_lines: int
    progress: Progress | None


class JobOptions(ReadOptions, total=False):
    """Also the resources of a job."""

    memory_limit: int | str | None
    temp_dir: Path | None


class PrintOptions(JobOptions, total=False):
    """Also how rows are printed."""

    keys_only: bool


class SetOptions(PrintOptions, total=False):
    """Also what lets a job continue."""

    work_dir: Path | None
    resume: bool


DEFAULT_DELIMITER = b"\n"

#: The defaults of options that are not `None`.
DEFAULTS = {
    "delimiter": DEFAULT_DELIMITER,
    "text": False,
    "header": False,
    "resume": False,
    "keys_only": False,
    "bad_records": "stop",
    "nulls": "one",
    "empty": "one",
    "skip_lines": 0,
}

Job = TypeVar("Job", bound=Callable[..., object])


def lists_options(defaults: Mapping[str, object]) -> Callable[[Job], Job]:
    """Lists the keywords of `**options` in the signature of a job, for `help` and completion."""

    def decorate(job: Job) -> Job:
        signature = inspect.signature(job)
        *arguments, options = signature.parameters.values()
        (kind,) = get_args(options.annotation)
        for name, annotation in kind.__annotations__.items():
            arguments.append(options.replace(
                name=name, kind=options.KEYWORD_ONLY, default=defaults.get(name), annotation=annotation
            ))
        job.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
        return job

    return decorate


def refuse_unknown(job: str, kind: type, given: Mapping[str, object]) -> None:
    """Raises `TypeError` for a keyword that is no option of `kind`."""
    for name in given:
        if name not in kind.__annotations__:
            raise TypeError(f"{job}() got an unexpected keyword argument {name!r}")


def read_paths(paths: Paths) -> list[str]:
    """Reads one path or several."""
    if isinstance(paths, (str, bytes, os.PathLike)) or hasattr(paths, "read"):
        return [read_path(paths)]
    if not isinstance(paths, Iterable):
        raise TypeError(f"expected a path or several, found {_name(paths)}")
    names = read_path_list(paths)
    if not names:
        raise ValueError("expected at least one path, found an empty list")
    return names


def read_path_list(paths: Iterable[Path]) -> list[str]:
    return [read_path(path) for path in paths]


def read_path(path: object, prefix: str = "", expected: str = "a path") -> str:
    """Returns an absolute path, which stays valid if the process changes its directory."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        hint = "; pass the path of the file" if hasattr(path, "read") else ""
        raise TypeError(f"{prefix}expected {expected}, found {_name(path)}{hint}")
    name = os.fsdecode(path)
    if not name:
        raise ValueError(f"{prefix}expected {expected}, found an empty one")
    return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)


def _name(value: object) -> str:
    return value.__class__.__name__


def read_out(name: str, out: Out | None) -> str | Writer | None:
    """Reads the destination of lines."""
    if out is None:
        return None
    if isinstance(out, io.TextIOBase):
        raise TypeError(f"{name}=: the file is opened in text mode; open it with 'wb'")
    if not isinstance(out, (str, bytes, os.PathLike)) and hasattr(out, "write"):
        return out
    return read_path(out, f"{name}=: ", "a path or a file open for writing bytes")


def read_number(name: str, number: float | None) -> float | None:
    if number is None:
        return None
    if isinstance(number, numbers.Real) and not isinstance(number, bool):
        return float(number)
    raise TypeError(f"{name}=: expected a number, found {number!r}")


def read_integer(
    name: str, number: int | None, minimum: int, maximum: int = 2**64 - 1
) -> int | None:
    if number is None:
        return None
    if hasattr(number, "__index__") and not isinstance(number, bool):
        value = operator.index(number)
        if minimum <= value <= maximum:
            return value
    raise ValueError(f"{name}=: expected an integer from {minimum} to {maximum}, found {number!r}")


def read_flag(name: str, flag: object) -> bool:
    if isinstance(flag, bool) or type(flag).__name__ in ("bool", "bool_"):
        return bool(flag)
    raise TypeError(f"{name}=: expected True or False, found {flag!r}")


def read_memory(memory: int | str | None, name: str = "memory_limit") -> int | str | None:
    return memory if isinstance(memory, str) else read_integer(name, memory, 0)


def read_outputs(
    out: Out | None,
    rest: Out | None,
    count: bool,
    approx: bool = False,
    capacity: int | None = None,
    fpr: float | None = None,
    at_least: int | None = None,
) -> dict[str, object]:
    """Reads the destinations of lines, and how the result is computed."""
    if not approx and (capacity is not None or fpr is not None):
        raise ValueError("capacity=, fpr=: only for approximate jobs; add approx=True")
    if out is not None and out is rest and not isinstance(out, (str, bytes, os.PathLike)):
        raise ValueError("out=, rest=: the same file for two outputs; use another one for rest=")
    return {
        "out": read_out("out", out),
        "rest": read_out("rest", rest),
        "count": read_flag("count", count),
        "approx": read_flag("approx", approx),
        "capacity": read_integer("capacity", capacity, 1),
        "fpr": read_number("fpr", fpr),
        "at_least": at_least,
    }


def read_options(job: str, kind: type, given: ReadOptions) -> dict[str, object]:
    """Reads the options of a job, which are those of `kind`."""
    refuse_unknown(job, kind, given)
    # All options of `kind` are among these.
    options = cast(SetOptions, given)
    delimiter = options.get("delimiter", DEFAULT_DELIMITER)
    temp_dir, work_dir = options.get("temp_dir"), options.get("work_dir")
    resume = read_flag("resume", options.get("resume", False))
    if resume and work_dir is None:
        raise ValueError("resume=True: set work_dir= to the folder of the job to resume")
    if not isinstance(delimiter, (bytes, bytearray)):
        raise TypeError(f"delimiter=: expected one byte, such as b'\\n', found {delimiter!r}")
    return {
        "memory_limit": read_memory(options.get("memory_limit")),
        "jobs": read_integer("jobs", options.get("jobs"), 1),
        "temp_dir": None if temp_dir is None else read_path(temp_dir, "temp_dir=: "),
        "work_dir": None if work_dir is None else read_path(work_dir, "work_dir=: "),
        "resume": resume,
        "delimiter": bytes(delimiter),
        "text": bool(options.get("text", False)),
        "keys": _keys(options),
        "keys_only": read_flag("keys_only", options.get("keys_only", False)),
        "progress": options.get("progress"),
    }


def _keys(options: ReadOptions) -> dict[str, object]:
    """Reads what the keys of records are."""
    column, json_key = options.get("column"), options.get("json_key")
    separator, quote, escape = (
        options.get("separator"), options.get("quote"), options.get("escape")
    )
    header = read_flag("header", options.get("header", False))
    if column is not None and json_key is not None:
        raise ValueError("column=, json_key=: inputs are CSV or JSON; leave out one of them")
    delimiter = options.get("delimiter", DEFAULT_DELIMITER)
    if (column is not None or json_key is not None) and delimiter != b"\n":
        name = "column=" if json_key is None else "json_key="
        raise ValueError(f"{name}: records of CSV and of JSON end with LF; leave out delimiter=")
    return {
        "column": _columns(column),
        "separator": None if separator is None else _byte("separator", separator),
        "quote": None if quote is None else _quote(quote),
        "escape": None if escape is None else _byte("escape", escape),
        "header": header,
        "json_key": read_pointers(json_key),
        "key_transform": read_transforms(options.get("key_transform")),
        **_rules(options),
    }


def _rules(options: ReadOptions) -> dict[str, object]:
    """Reads which records are compared."""
    bad = options.get("bad_records", "stop")
    comment = options.get("comment")
    if comment is not None and (not isinstance(comment, (str, bytes)) or not comment):
        raise TypeError(f"comment=: expected the start of a line, such as '#', found {comment!r}")
    skip_lines = options.get("skip_lines", 0)
    return {
        "skip_bad": bad != "stop",
        "bad_file": None if bad in ("stop", "skip") else read_path(bad, "bad_records=: "),
        "nulls": _alike("nulls", options.get("nulls", "one")),
        "empty": _alike("empty", options.get("empty", "one")),
        "comment": comment.encode() if isinstance(comment, str) else comment,
        "skip_lines": read_integer("skip_lines", skip_lines, 0) or 0,
    }


def _alike(name: str, value: str) -> int:
    """Reads how keys without a value compare."""
    values = ("one", "distinct", "drop")
    if value not in values:
        raise ValueError(f"{name}=: expected 'one', 'distinct' or 'drop', found {value!r}")
    return values.index(value)


def _columns(column: Columns | None) -> list[str | int]:
    """Reads names and numbers of columns."""
    if column is None:
        return []
    expected = "expected names or numbers of columns"
    if isinstance(column, (bytes, bool)):
        raise TypeError(f"column=: {expected}, found {column!r}")
    if isinstance(column, str) or not isinstance(column, Iterable):
        column = [column]
    columns: list[str | int] = []
    for one in column:
        if isinstance(one, str):
            if not one:
                raise ValueError("column=: expected a name, found an empty one; give its number")
            columns.append(one)
        elif hasattr(one, "__index__") and not isinstance(one, bool):
            if not 1 <= operator.index(one) < 2**31:
                raise ValueError(f"column=: columns are counted from 1, found {one!r}")
            columns.append(operator.index(one))
        else:
            raise TypeError(f"column=: {expected}, found {one!r}")
    if not columns:
        raise ValueError("column=: expected at least one column, found an empty list")
    return columns


def _quote(quote: str | bytes) -> int:
    """Reads the byte around columns: -1 for none."""
    return -1 if quote == "none" else _byte("quote", quote)


def _byte(name: str, value: str | bytes) -> int:
    """Reads the byte between, around or within columns."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name}=: expected one byte, such as ';', found {value!r}")
    byte = value.encode(errors="replace") if isinstance(value, str) else value
    if len(byte) != 1 or byte in b"\n\r":
        raise ValueError(f"{name}=: expected one byte that is no line end, found {value!r}")
    return byte[0]


def read_pointers(json_key: str | Iterable[str] | None) -> list[str]:
    """Reads JSON pointers; the extension module checks them."""
    if json_key is None:
        return []
    pointers = [json_key] if isinstance(json_key, str) else json_key
    if isinstance(pointers, bytes) or not isinstance(pointers, Iterable):
        raise TypeError(f"json_key=: expected JSON pointers, such as '/url', found {json_key!r}")
    listed = list(pointers)
    for pointer in listed:
        if not isinstance(pointer, str):
            raise TypeError(f"json_key=: expected JSON pointers, found {pointer!r} in it")
    if not listed:
        raise ValueError("json_key=: expected at least one JSON pointer, found an empty list")
    return listed


def read_notes(notes: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """Reads notes for the metadata of a filter; the extension module checks the names."""
    if notes is None:
        return []
    if not isinstance(notes, Mapping):
        raise TypeError(f"metadata=: expected a dict of names and texts, found {notes!r}")
    for name, text in notes.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"metadata=: expected names and texts, found {name!r}: {text!r}")
    return list(notes.items())


def read_transforms(names: str | Iterable[str] | None, argument: str = "key_transform") -> str:
    """Reads the names of transforms, a list or a text with commas between them; the extension module
    checks them."""
    if names is None:
        return ""
    if isinstance(names, str):
        names = names.split(",") if names.strip() else []
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise TypeError(f"{argument}=: expected a list of names, found {names!r}")
    listed = []
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument}=: expected a list of names, found {name!r} in it")
        if not name.strip() or "," in name:
            raise ValueError(f"{argument}=: expected one name, found {name!r}")
        listed.append(name.strip())
    return ",".join(listed)
