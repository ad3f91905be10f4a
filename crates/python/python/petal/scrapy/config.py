"""Reads and checks the settings of the duplicate filter.

A setting that is misspelt, out of range or in conflict with another one raises a `ValueError` of
one line before the crawl begins.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from scrapy.settings import BaseSettings

import petal
from petal._arguments import read_transforms
from petal.scrapy.keys import fingerprinter

PREFIX = "PETAL_DUPEFILTER_"
NAMES = (
    "CAPACITY",
    "FPR",
    "MEMORY_LIMIT",
    "GROW",
    "WINDOW",
    "EXACT",
    "PENDING",
    "REDIS_URL",
    "KEY",
    "KEY_TRANSFORM",
)

DEFAULT_CAPACITY = 4_000_000
DEFAULT_FPR = 0.0001
DEFAULT_KEY = "{spider}:dupefilter"

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

# Names of the settings in `made.json`, where they differ from those of `Config`.
_SAVED_FPR, _SAVED_MEMORY = "rate", "memory"


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one crawl.

    `capacity` is in requests (`None`: as many as fit in `memory_limit` bytes), `window` in seconds;
    `key_transform` has the names of changes to URLs, separated by commas. With `shared_queue` the
    scheduler is that of scrapy-redis, and the filter is on the same server unless there is a
    `redis_url`. `key` may contain `{spider}`.
    """

    capacity: int | None
    fpr: float
    memory_limit: int | None
    grow: bool
    window: int | None
    exact: bool
    pending: bool
    redis_url: str | None
    key: str
    key_transform: str
    shared_queue: bool = False

    @property
    def on_server(self) -> bool:
        """Whether the filter is on a server."""
        return self.redis_url is not None or self.shared_queue

    @property
    def kind(self) -> str:
        """The kind of filter: `grow`, `fixed` or `window`."""
        if self.window is not None:
            return "window"
        return "grow" if self.grow else "fixed"

    def to_saved(self) -> dict[str, Any]:
        """The settings that a JOBDIR keeps, as written to `made.json`.

        For a filter on a server only that fact: the server has the other settings.
        """
        if self.on_server:
            return {"server": True, "key_transform": self.key_transform}
        return {
            "server": False,
            "kind": self.kind,
            "window": self.window,
            "exact": self.exact,
            "key_transform": self.key_transform,
            "capacity": self.capacity,
            _SAVED_FPR: self.fpr,
            _SAVED_MEMORY: self.memory_limit,
        }

    def check_compatible(self, saved: dict[str, Any]) -> None:
        """Raises `petal.IncompatibleError` if a JOBDIR with these settings cannot be used."""
        current = self.to_saved()
        # The first versions did not write these.
        saved = {"server": False, "key_transform": ""} | saved
        for name in ("server", "kind", "window", "exact", "key_transform"):
            if saved.get(name) != current.get(name):
                raise petal.IncompatibleError(
                    f"JOBDIR has a duplicate filter with {name} {saved.get(name)!r}, but the"
                    f" settings have {current.get(name)!r}: restore the {PREFIX}* settings, or use"
                    " another JOBDIR"
                )

    def differences(self, saved: dict[str, Any]) -> tuple[list[Any], list[Any]] | None:
        """Capacity, fpr and memory limit, saved and current; `None` if they are the same."""
        current = self.to_saved()
        names = ("capacity", _SAVED_FPR, _SAVED_MEMORY)
        old, new = ([values.get(name) for name in names] for values in (saved, current))
        return None if old == new else (old, new)


def read_config(settings: BaseSettings, shared_queue: bool = False) -> Config:
    """Reads the configuration from a crawler's settings; `shared_queue` as in `Config`.

    Raises `ValueError` with the name of the setting, the expected value and the one found.
    """
    check_names(settings, PREFIX, NAMES)
    memory_limit = _memory_limit(settings)
    capacity = read_positive_int(settings, PREFIX + "CAPACITY")
    window = read_positive_int(settings, PREFIX + "WINDOW")
    if memory_limit is not None and capacity is not None:
        raise _conflict("MEMORY_LIMIT", PREFIX + "CAPACITY", "each determines the other")
    if memory_limit is None and capacity is None:
        capacity = DEFAULT_CAPACITY
    for name, value in (("MEMORY_LIMIT", memory_limit), ("WINDOW", window)):
        if value is not None and read_flag(settings, PREFIX + "GROW", False):
            raise _conflict("GROW", PREFIX + name, "such a filter does not grow")
    grow = memory_limit is None and window is None and read_flag(settings, PREFIX + "GROW", True)
    exact = read_flag(settings, PREFIX + "EXACT", False)
    redis_url = settings.get(PREFIX + "REDIS_URL") or None
    server = PREFIX + "REDIS_URL" if redis_url is not None else None
    if shared_queue and server is None:
        server = "the scheduler of scrapy-redis"
    for other in (PREFIX + "WINDOW" if window is not None else None, server):
        if exact and other is not None:
            raise _conflict("EXACT", other, "they cannot be combined")
    if server is not None and memory_limit is not None:
        raise _conflict("MEMORY_LIMIT", server, "a filter on a server needs a capacity")
    return Config(
        capacity=capacity,
        fpr=read_fpr(settings, PREFIX + "FPR", DEFAULT_FPR),
        memory_limit=memory_limit,
        grow=grow,
        window=window,
        exact=exact,
        pending=read_flag(settings, PREFIX + "PENDING", True),
        redis_url=redis_url,
        key=_key(settings, shared_queue),
        key_transform=_key_transform(settings),
        shared_queue=shared_queue,
    )


def _key(settings: BaseSettings, shared_queue: bool) -> str:
    """The filter's key on a server; with scrapy-redis also its own name of that setting."""
    key = settings.get(PREFIX + "KEY")
    if not key and shared_queue:
        key = (settings.get("SCHEDULER_DUPEFILTER_KEY") or "").replace("%(spider)s", "{spider}")
    return key or DEFAULT_KEY


def _conflict(one: str, other: str, reason: str) -> ValueError:
    return ValueError(f"{PREFIX}{one} and {other}: {reason}; remove one of them")


def check_names(settings: BaseSettings, prefix: str, names: Sequence[str]) -> None:
    """Raises `ValueError` for a setting with the prefix that is none of `names`."""
    for setting in map(str, settings):
        given = setting.removeprefix(prefix)
        if given != setting and given not in names:
            near = get_close_matches(given, names, n=1)
            hint = f"did you mean {prefix}{near[0]}? " if near and len(names) > 1 else ""
            listed = f"{prefix} and one of {', '.join(names)}" if len(names) > 1 else prefix + names[0]
            raise ValueError(f"{setting}: unknown setting; {hint}expected {listed}")


@contextmanager
def naming_settings(prefix: str, *names: str) -> Iterator[None]:
    """Puts the names of settings before the text of an error that they cause."""
    try:
        yield
    except (ValueError, petal.MemoryLimitError) as error:
        raise type(error)(f"{' and '.join(prefix + name for name in names)}: {error}") from None


def is_true(value: object) -> bool:
    """Returns whether a setting or an argument of a spider, which may be a text, is on."""
    return str(value).strip().lower() not in ("", "0", "false", "no", "none")


def read_flag(settings: BaseSettings, name: str, default: bool) -> bool:
    """Returns a setting that is on or off, in any form that Scrapy knows.

    Raises `ValueError` if it is something else.
    """
    try:
        return settings.getbool(name, default)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected True or False, found {settings.get(name)!r}") from None


def read_positive_int(settings: BaseSettings, name: str) -> int | None:
    """Returns a setting that is an integer above 0; `None` if it is absent.

    Raises `ValueError` if it is something else.
    """
    value = settings.get(name)
    if value is None:
        return None
    try:
        number = int(str(value).replace("_", ""))
    except ValueError:
        number = 0
    if not 0 < number < 1 << 63:
        raise ValueError(f"{name}: expected an integer above 0, found {value!r}")
    return number


def _key_transform(settings: BaseSettings) -> str:
    """Names of changes to URLs: a list, or a text with commas between them."""
    try:
        names = read_transforms(settings.get(PREFIX + "KEY_TRANSFORM"))
        fingerprinter(names)
    except (TypeError, ValueError) as error:
        problem = str(error).removeprefix("key_transform=: ")
        raise ValueError(f"{PREFIX}KEY_TRANSFORM: {problem}") from None
    return names


def read_fpr(settings: BaseSettings, name: str, default: float) -> float:
    """Returns a setting that is a false-positive rate.

    Raises `ValueError` if it is something else.
    """
    value = settings.get(name, default)
    try:
        fpr = float(value)
    except (TypeError, ValueError):
        fpr = 0.0
    if not 0 < fpr < 1:
        raise ValueError(f"{name}: expected a number above 0 and below 1, found {value!r}")
    return fpr


def _memory_limit(settings: BaseSettings) -> int | None:
    """Bytes, with an optional unit such as in `64M`; `None` if the setting is absent."""
    value = settings.get(PREFIX + "MEMORY_LIMIT")
    if value is None:
        return None
    parts = re.fullmatch(r"([0-9_]+) *([KMG]?)(?:i?B)?", str(value).strip(), re.IGNORECASE)
    size = int(parts[1].replace("_", "")) * _UNITS[parts[2].upper()] if parts else 0
    if not 64 <= size < 1 << 63:
        raise ValueError(
            f"{PREFIX}MEMORY_LIMIT: expected bytes, 67108864 or '64M', found {value!r}"
        )
    return size
