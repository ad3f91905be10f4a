"""Set operations on line files by the workers of a Dask cluster.

The workers read the files themselves, range by range; Dask schedules, and runs again what a lost
worker had. So every worker must have petal, and see the inputs and the output under the same
paths. The answers are those of one machine, byte for byte: `petal.common`, `petal.diff`,
`petal.dedup`; a filter has the bits and the plan of `petal.build`'s.

    >>> from distributed import Client
    >>> import petal.dask
    >>> client = Client()                                                     # doctest: +SKIP
    >>> petal.dask.common(client, "a.txt", "b.txt", out="common")             # doctest: +SKIP
"""

from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec

from distributed import Client

from petal import _jobs, _stages


class _Engine:
    """Dask, as far as a job needs it: a place to run functions."""

    fetch = staticmethod(_jobs.same)

    def __init__(self, client: Client):
        if not isinstance(client, Client):
            raise TypeError(f"expected a distributed.Client first, found {type(client).__name__}")
        self._client = client

    @property
    def slots(self) -> int:
        if slots := sum(self._client.nthreads().values()):
            return slots
        raise ValueError(
            "slots=: expected where the cluster has no workers at the moment, found None; say how "
            "many tasks it will run at a time, or wait for some: client.wait_for_workers(n)"
        )

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        futures = self._client.map(function, list(items), pure=False)
        try:
            return self._client.gather(futures)
        except BaseException:
            self._client.cancel(futures)
            raise


P = ParamSpec("P")


def _verb(
    verb: Callable[Concatenate[_stages.Engine, P], _stages.Report],
) -> Callable[Concatenate[Client, P], _stages.Report]:
    """The same job, with Dask as the engine."""

    def run(client: Client, *args: P.args, **options: P.kwargs) -> _stages.Report:
        return verb(_Engine(client), *args, **options)

    run.__name__ = run.__qualname__ = verb.__name__
    run.__doc__ = verb.__doc__
    return run


common = _verb(_jobs.common)
diff = _verb(_jobs.diff)
dedup = _verb(_jobs.dedup)
build = _verb(_jobs.build)
check = _verb(_jobs.check)
