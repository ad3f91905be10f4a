"""The decorator `seen_before`, which skips calls with arguments that a filter contains."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from petal._petal import BloomFilter, Filter, _key_of_call

P = ParamSpec("P")
R = TypeVar("R")


class OnlyNew(Protocol[P, R]):
    """A function that is called only with arguments that are new to a filter."""

    filter: Filter
    __wrapped__: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...


def seen_before(
    filter: Filter | int,
    fpr: float = 0.01,
    *,
    key: Callable[..., Any] | None = None,
    default: Any = None,
) -> Callable[[Callable[P, R]], OnlyNew[P, R]]:
    """Decorates a function so that calls with arguments seen before return `default` at once.

        >>> @petal.seen_before(1_000_000, fpr=0.001)
        ... def visit(url):
        ...     return "visited " + url
        >>> visit("https://example.com/"), visit("https://example.com/")
        ('visited https://example.com/', None)

    - `filter`, `fpr`: a filter, or the capacity of a new `BloomFilter`, whose rate is `fpr`. It is
      the attribute `filter` of the function, to be saved or cleared.
    - `key`: a function of the same arguments that returns the key [a text that is the only argument, or
      else bytes that differ for different arguments; an argument passed by name differs from one
      without]. For a method, the first argument is the object, so a `key` is needed:
      `key=lambda self, url: url`.
    - `default`: what a repeated call returns. Of an `async` function, it is awaited.

    Arguments are added before the call, and stay if it raises: `visit.__wrapped__(url)` calls again.
    Some new calls, a share `fpr` of a full filter's, are skipped by mistake. Threads may call the
    function at the same time; only one of them gets through with the same arguments. A windowed
    filter forgets; a filter that takes no keys raises `UnsupportedError`.

    Cost: the key, and one look-up. Raises `TypeError` if the arguments are not a key.
    """
    if not isinstance(filter, Filter):
        filter = BloomFilter(filter, fpr)
    add, key_of = filter.add, key or _key_of_call

    def decorate(function: Callable[P, R]) -> OnlyNew[P, R]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def only_new(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await function(*args, **kwargs) if add(key_of(*args, **kwargs)) else default

        else:

            @functools.wraps(function)
            def only_new(*args: P.args, **kwargs: P.kwargs) -> Any:
                return function(*args, **kwargs) if add(key_of(*args, **kwargs)) else default

        only_new.filter = filter  # type: ignore[attr-defined]
        return cast(OnlyNew[P, R], only_new)

    return decorate
