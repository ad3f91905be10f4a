"""The tasks of a job past one machine: one function for each step, of plain data alone.

An engine carries a function and one item to a worker and brings back what it returns. So each
function here takes one dict and returns one dict of numbers; whatever is large goes through files
in a folder that all workers see. Each may run twice, even at once: files appear whole, under names
that the item gives.

Workers need this module and the extension, no more: where only the extension's one file was sent
to them it is imported as ``_petal``.
"""

from collections.abc import Callable
from typing import Any


def _ranges() -> Any:
    """The extension, looked for where the task runs: an engine that carries this module to its
    workers by value must not carry a module with it."""
    try:
        from petal._petal import ranges
    except ImportError:  # only the extension was shipped
        from _petal import ranges  # type: ignore[import-not-found, no-redef]
    return ranges


Item = dict[str, Any]
Numbers = dict[str, int]


def _job(item: Item) -> tuple[Any, bytes]:
    return item["settings"], item["keys"]


def _local(item: Item) -> list[str]:
    """The filters of an item as local files: ``fetch`` makes a path of an engine's token."""
    fetch: Callable[[Any], str] = item["fetch"]
    return [fetch(token) for token in item["filters"]]


def build(item: Item) -> Numbers:
    """Fills one partial filter with the lines of the ranges of one slot."""
    return _ranges().build(*_job(item), item["ranges"], item["size"], item["out"])


def union(item: Item) -> Numbers:
    """Unites partial filters."""
    return _ranges().union(*_job(item), item["partials"], item["out"])


def build_back(item: Item) -> Numbers:
    """Fills one partial filter with the keys of survivors."""
    return _ranges().build_back(*_job(item), item["survivors"], item["size"], item["out"])


def narrow(item: Item) -> Numbers:
    """Makes records of the lines that filters cannot rule out; of all, if ``filters`` is None."""
    filters = None if item["filters"] is None else _local(item)
    return _ranges().filter(
        *_job(item), item["ranges"], item["first"], item["partitions"], item["out"], filters
    )


def exact(item: Item) -> Numbers:
    """Decides one partition."""
    return _ranges().exact(
        *_job(item), item["verb"], item["partition"], item["first"], item["others"], item["out"]
    )


def take(item: Item) -> Numbers:
    """Writes the lines of the answer that start in one range."""
    return _ranges().take(*_job(item), item["range"], item["answers"], item["out"])


def check(item: Item) -> Numbers:
    """Writes the lines of one range that a filter may hold, or inverted those that it does not."""
    path = _local(item)[0]
    return _ranges().check(*_job(item), item["range"], path, item["invert"], item["out"])
