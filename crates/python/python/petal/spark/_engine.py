"""Set operations on line files by Spark executors, as tasks of an RDD.

Executors need only the extension module, which is sent to them, and must see inputs and outputs
under the same paths as the driver, or as the client of Spark Connect. Each executor copies filters
from the work folder to a local disk and maps them. (`addFile` is not used for filters: each later
executor would fetch all files that were ever added in the session.)
"""

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Unpack

from pyspark import SparkContext, SparkFiles, cloudpickle
from pyspark.sql import SparkSession

import petal
from petal._distributed import jobs, stages, tasks
from petal._distributed.arguments import Folder, Paths
from petal._distributed.options import Options
from petal._distributed.tasks import local_copy
from petal.spark._session import Session, is_session

# Sent by value, because executors do not have the package.
cloudpickle.register_pickle_by_value(tasks)


class Engine:
    """Runs tasks on a Spark cluster."""

    def __init__(self, spark: SparkSession | SparkContext):
        if not is_session(spark):
            kind = type(spark).__name__
            raise TypeError(f"expected a SparkSession, SparkContext or DataFrame first, found {kind}")
        self._session = Session(spark)
        self.slots = self._session.slots

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Runs one task per item."""
        items = list(items)
        if not items:
            return []
        try:
            return self._session.map(function, items)
        except Exception as error:
            petal_error = _find_petal_error(str(error))
            if petal_error is None:
                raise
            raise petal_error from error

    @property
    def fetch(self) -> Callable[[str], str]:
        """Copies a file once to a local disk of each executor."""
        return lambda path: local_copy(path, SparkFiles.getRootDirectory())


def _find_petal_error(trace: str) -> Exception | None:
    """Returns the exception of petal in the text of a Spark error."""
    found = re.search(r"^petal\.(\w+): (.*)$", trace, re.MULTILINE)
    kind = getattr(petal, found[1], None) if found else None
    return kind(found[2]) if found and isinstance(kind, type) else None


common = jobs.for_cluster(jobs.common, Engine, "spark")
diff = jobs.for_cluster(jobs.diff, Engine, "spark")
symdiff = jobs.for_cluster(jobs.symdiff, Engine, "spark")
dedup = jobs.for_cluster(jobs.dedup, Engine, "spark")
build = jobs.for_cluster(jobs.build, Engine, "spark")
_check = jobs.for_cluster(jobs.check, Engine, "spark")


@functools.wraps(_check)
def check(
    spark: SparkSession | SparkContext,
    /,
    paths: Paths,
    filter: Folder,
    out: Folder | None,
    *,
    invert: bool = False,
    **options: Unpack[Options],
) -> stages.Report:
    if not is_session(spark):
        return _check(spark, paths, filter, out, invert=invert, **options)
    with Session(spark).local_file(filter) as path:
        return _check(spark, paths, path, out, invert=invert, **options)
