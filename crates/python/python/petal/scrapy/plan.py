"""The settings of the duplicate filter, read once and checked.

A setting that is misspelt, out of range, or at odds with another is a `ValueError` of one line
before the crawl begins.
"""

import re
from dataclasses import dataclass
from typing import Any

from scrapy.settings import BaseSettings

import petal

PREFIX = "PETAL_DUPEFILTER_"
NAMES = ("CAPACITY", "RATE", "MEMORY", "GROW", "WINDOW", "EXACT", "PENDING", "REDIS_URL", "KEY")

CAPACITY = 4_000_000
RATE = 0.0001
KEY = "{spider}:dupefilter"

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the settings ask for.

    `capacity` is in requests (`None`: as many as fit `memory` bytes), `window` in seconds.
    """

    capacity: int | None
    rate: float
    memory: int | None
    grow: bool
    window: int | None
    exact: bool
    pending: bool
    redis_url: str | None
    key: str

    @property
    def kind(self) -> str:
        """What happens when more requests come than planned: `grow`, `fixed` or `window`."""
        if self.window is not None:
            return "window"
        return "grow" if self.grow else "fixed"

    @property
    def lasting(self) -> dict[str, Any]:
        """What of the settings lasts, in a JOBDIR. Of a filter on a server that knows the rest."""
        if self.redis_url is not None:
            return {"server": True}
        return {
            "server": False,
            "kind": self.kind,
            "window": self.window,
            "exact": self.exact,
            "capacity": self.capacity,
            "rate": self.rate,
            "memory": self.memory,
        }

    def agree(self, made: dict[str, Any]) -> None:
        """Raises `petal.IncompatibleError` if a JOBDIR made for other settings cannot be used."""
        asked = self.lasting
        # The oldest do not say it.
        made = {"server": False} | made
        for name in ("server", "kind", "window", "exact"):
            if made.get(name) != asked.get(name):
                raise petal.IncompatibleError(
                    f"JOBDIR has a duplicate filter made with {name} {made.get(name)!r}, the"
                    f" settings say {asked.get(name)!r}: set {PREFIX}* as they were, or take another"
                    " JOBDIR"
                )


def read(settings: BaseSettings) -> Plan:
    """The plan that a crawler's settings make.

    Raises `ValueError`, naming the setting, what it must be and what it is.
    """
    for name in settings:
        if str(name).startswith(PREFIX) and str(name)[len(PREFIX) :] not in NAMES:
            known = ", ".join(NAMES)
            raise ValueError(f"{name}: there is no such setting; behind {PREFIX} come {known}")
    memory = _memory(settings)
    capacity = _whole(settings, "CAPACITY")
    window = _whole(settings, "WINDOW")
    if memory is not None and capacity is not None:
        raise _at_odds("MEMORY", "CAPACITY", "one follows from the other")
    if memory is None and capacity is None:
        capacity = CAPACITY
    for name, value in (("MEMORY", memory), ("WINDOW", window)):
        if value is not None and settings.getbool(PREFIX + "GROW", False):
            raise _at_odds("GROW", name, "such a filter does not grow")
    grow = memory is None and window is None and settings.getbool(PREFIX + "GROW", True)
    exact = settings.getbool(PREFIX + "EXACT", False)
    redis_url = settings.get(PREFIX + "REDIS_URL") or None
    for name, value in (("WINDOW", window), ("REDIS_URL", redis_url)):
        if exact and value is not None:
            raise _at_odds("EXACT", name, "these do not go together")
    if redis_url is not None and memory is not None:
        raise _at_odds("MEMORY", "REDIS_URL", "a filter on a server has a capacity")
    return Plan(
        capacity=capacity,
        rate=_rate(settings),
        memory=memory,
        grow=grow,
        window=window,
        exact=exact,
        pending=settings.getbool(PREFIX + "PENDING", True),
        redis_url=redis_url,
        key=settings.get(PREFIX + "KEY") or KEY,
    )


def _at_odds(one: str, other: str, why: str) -> ValueError:
    return ValueError(f"{PREFIX}{one} and {PREFIX}{other}: {why}; drop one")


def _whole(settings: BaseSettings, name: str) -> int | None:
    """A whole number above 0, or `None` if it is not set."""
    value = settings.get(PREFIX + name)
    if value is None:
        return None
    try:
        number = int(str(value).replace("_", ""))
    except ValueError:
        number = 0
    if not 0 < number < 1 << 63:
        raise ValueError(f"{PREFIX}{name}: expected a whole number above 0, found {value!r}")
    return number


def _rate(settings: BaseSettings) -> float:
    value = settings.get(PREFIX + "RATE", RATE)
    try:
        rate = float(value)
    except (TypeError, ValueError):
        rate = 0.0
    if not 0 < rate < 1:
        raise ValueError(f"{PREFIX}RATE: expected a number above 0 and below 1, found {value!r}")
    return rate


def _memory(settings: BaseSettings) -> int | None:
    """Bytes; `64M` and the like are understood."""
    value = settings.get(PREFIX + "MEMORY")
    if value is None:
        return None
    parts = re.fullmatch(r"([0-9_]+) *([KMG]?)(?:i?B)?", str(value).strip(), re.IGNORECASE)
    size = int(parts[1].replace("_", "")) * _UNITS[parts[2].upper()] if parts else 0
    if not 64 <= size < 1 << 63:
        raise ValueError(f"{PREFIX}MEMORY: expected bytes, 67108864 or '64M', found {value!r}")
    return size
