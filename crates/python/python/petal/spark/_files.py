"""Set operations on line files, as plain RDD tasks: Spark schedules, the extension reads.

Executors need one file, the extension module, which is shipped to them; and they must see the
inputs and the output under the same paths as the driver. Filters are copied from the work folder to
a disk of each executor and mapped there. (Not by `addFile`: whatever was added once, every executor
to come must fetch, for as long as the session lasts.)
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec

from pyspark import SparkContext, SparkFiles, cloudpickle
from pyspark.sql import SparkSession

import petal
from petal import _jobs, _petal, _stages, _tasks
from petal._tasks import copied

# Executors need the extension module and nothing else of the package.
cloudpickle.register_pickle_by_value(_tasks)


class Engine:
    """Spark, as far as a job needs it: a place to run functions."""

    def __init__(self, spark: SparkSession | SparkContext):
        if not isinstance(spark, SparkSession | SparkContext):
            kind = type(spark).__name__
            raise TypeError(f"expected a SparkSession, SparkContext or DataFrame first, found {kind}")
        self._context = spark.sparkContext if isinstance(spark, SparkSession) else spark
        self.slots = self._context.defaultParallelism
        self._context.addFile(_petal.__file__)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Each item is a task of its own; the results are in the order of the items."""
        items = list(items)
        if not items:
            return []
        try:
            return self._context.parallelize(items, len(items)).map(function).collect()
        except Exception as error:
            told = _told(str(error))
            if told is None:
                raise
            raise told from error

    @property
    def fetch(self) -> Callable[[str], str]:
        """Each executor copies a file once, to a disk of its own."""
        return lambda path: copied(path, SparkFiles.getRootDirectory())


def _told(trace: str) -> Exception | None:
    """What petal raised in a task, out of Spark's account of it."""
    found = re.search(r"^petal\.(\w+): (.*)$", trace, re.MULTILINE)
    kind = getattr(petal, found[1], None) if found else None
    return kind(found[2]) if found and isinstance(kind, type) else None


P = ParamSpec("P")


def _verb(
    verb: Callable[Concatenate[_stages.Engine, P], _stages.Report],
) -> Callable[Concatenate[SparkSession | SparkContext, P], _stages.Report]:
    """The same job, with Spark as the engine."""

    def run(
        spark: SparkSession | SparkContext, *args: P.args, **options: P.kwargs
    ) -> _stages.Report:
        return verb(Engine(spark), *args, **options)

    run.__name__ = run.__qualname__ = verb.__name__
    run.__doc__ = verb.__doc__
    return run


common = _verb(_jobs.common)
diff = _verb(_jobs.diff)
dedup = _verb(_jobs.dedup)
build = _verb(_jobs.build)
check = _verb(_jobs.check)
