"""Set operations on line files by the workers of a Dask cluster.

The workers read the files themselves, range by range; Dask schedules, and runs again what a lost
worker had. So every worker must see the inputs and the output directory under the same paths.
The answers are those of one machine, byte for byte: `petal.common`, `petal.diff`, `petal.dedup`.

    >>> from distributed import Client
    >>> import petal.dask
    >>> client = Client()                                                     # doctest: +SKIP
    >>> petal.dask.common(client, "a.txt", "b.txt", out="common")             # doctest: +SKIP
"""

from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec

import cloudpickle
from distributed import Client

from petal import _jobs, _tasks

# Workers need the extension module and nothing else of the package.
cloudpickle.register_pickle_by_value(_tasks)


class _Engine:
    """Dask, as far as a job needs it: a place to run functions."""

    fetch = staticmethod(str)  # The file itself: all workers see it.

    def __init__(self, client: Client):
        self._client = client
        self.slots = sum(client.nthreads().values())

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        futures = self._client.map(function, list(items), pure=False)
        return self._client.gather(futures)

    def publish(self, path: str) -> str:
        return path


P = ParamSpec("P")


def _verb(
    verb: Callable[Concatenate[_jobs.Engine, P], _jobs.Report],
) -> Callable[Concatenate[Client, P], _jobs.Report]:
    """The same job, with Dask as the engine."""

    def run(client: Client, *args: P.args, **options: P.kwargs) -> _jobs.Report:
        return verb(_Engine(client), *args, **options)

    run.__name__ = run.__qualname__ = verb.__name__
    run.__doc__ = verb.__doc__
    return run


common = _verb(_jobs.common)
diff = _verb(_jobs.diff)
dedup = _verb(_jobs.dedup)
build = _verb(_jobs.build)
check = _verb(_jobs.check)
