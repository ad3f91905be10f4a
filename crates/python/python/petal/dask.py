"""Set operations on line files by the workers of a Dask cluster.

The workers read byte ranges of the files; Dask schedules the tasks and repeats those of a lost
worker. Each worker must have petal installed, and must see inputs and outputs under the same paths.
The output is the same as on one machine, byte for byte (`petal.common`, `petal.diff`,
`petal.dedup`); a filter has the same bits and layout as that of `petal.build`.

    >>> from distributed import Client
    >>> import petal.dask
    >>> client = Client()                                                     # doctest: +SKIP
    >>> petal.dask.common(client, "a.txt", "b.txt", out="common")             # doctest: +SKIP
"""

from collections.abc import Callable, Iterable
from typing import Any

from distributed import Client

from petal._distributed import jobs


class _Engine:
    """Runs tasks on a Dask cluster."""

    fetch = staticmethod(jobs.same_path)

    def __init__(self, client: Client):
        if not isinstance(client, Client):
            raise TypeError(f"expected a distributed.Client first, found {type(client).__name__}")
        # Most of its methods have no types.
        self._client: Any = client

    @property
    def slots(self) -> int:
        threads: dict[str, int] = self._client.nthreads()
        if slots := sum(threads.values()):
            return slots
        raise ValueError(
            "slots=: required because the cluster has no workers yet; set it to the number of tasks "
            "that it will run at a time, or wait for workers: client.wait_for_workers(n)"
        )

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        futures = self._client.map(function, list(items), pure=False)
        try:
            results: list[Any] = self._client.gather(futures)
            return results
        except BaseException:
            self._client.cancel(futures)
            raise


common = jobs.for_cluster(jobs.common, _Engine, "client")
diff = jobs.for_cluster(jobs.diff, _Engine, "client")
symdiff = jobs.for_cluster(jobs.symdiff, _Engine, "client")
dedup = jobs.for_cluster(jobs.dedup, _Engine, "client")
build = jobs.for_cluster(jobs.build, _Engine, "client")
check = jobs.for_cluster(jobs.check, _Engine, "client")
