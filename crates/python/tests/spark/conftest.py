"""Real Spark clusters on the loopback: in one process, in several that Spark starts itself, and a
standalone master with two workers. One session of each for all tests.

Their executors have a Python of their own in which there is pyarrow and nothing else: no petal.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clusters import spark_home, standalone

MODES = ["local", "local-cluster", "standalone"]

# Without Spark there is nothing to collect: `cargo x python --engines` installs it.
collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engines)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with pyarrow alone."""
    import pyarrow

    home = tmp_path_factory.mktemp("executors")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = home.glob("lib/python3*/site-packages")
    for found in Path(pyarrow.__file__).parents[1].glob("pyarrow*"):
        (packages / found.name).symlink_to(found)
    return home / "bin/python"


@pytest.fixture(scope="session")
def bloom_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension of Spark's SQL."""
    import petal.spark

    _find_java()
    return petal.spark.sql_extension(tmp_path_factory.mktemp("jar"))


@pytest.fixture(scope="session", params=MODES)
def spark(request, bare_python: Path, bloom_jar: Path, tmp_path_factory) -> Iterator:
    """A session on a cluster, one kind of cluster after the other."""
    from pyspark.sql import SparkSession

    mode, folder = request.param, tmp_path_factory.mktemp(request.param)
    os.environ["PYSPARK_PYTHON"] = str(bare_python)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with ExitStack() as stack:
        if mode == "standalone":
            master = stack.enter_context(standalone(folder))
        else:
            master = {"local": "local[2]", "local-cluster": "local-cluster[2,1,1024]"}[mode]
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "1g",
            "spark.jars": bloom_jar,
            "spark.local.dir": folder / "local",
            "spark.sql.extensions": "petal.spark.BloomFunctions",
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.warehouse.dir": folder / "warehouse",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master(master).appName("petal's tests")
        for name, value in settings.items():
            builder = builder.config(name, str(value))
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()
            if mode == "local-cluster":
                # It works inside of the package's own folder.
                shutil.rmtree(spark_home() / "work", ignore_errors=True)


def _find_java() -> None:
    """That of the PATH or JAVA_HOME, or what install.sh put beside this Python."""
    own = Path(sys.prefix) / "jdk"
    if own.exists() and "JAVA_HOME" not in os.environ:
        os.environ["JAVA_HOME"] = str(own.resolve())
