"""A Spark cluster on the loopback interface: standalone, with two workers.

All tests share one session. Executors have a Python environment with only pyarrow. The tests of the page and of Spark
Connect use local mode.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import JVM_OPTIONS, standalone

# Without Spark no test is collected. `cargo x python --engines` installs it.
collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engines)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python environment with only pyarrow."""
    import pyarrow

    home = tmp_path_factory.mktemp("executors")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = home.glob("lib/python3*/site-packages")
    for found in Path(pyarrow.__file__).parents[1].glob("pyarrow*"):
        (packages / found.name).symlink_to(found)
    return home / "bin/python"


@pytest.fixture(scope="session")
def bloom_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of the SQL extension."""
    import petal.spark

    _find_java()
    return petal.spark.sql_extension(tmp_path_factory.mktemp("jar"))


@pytest.fixture(scope="session")
def spark(bare_python: Path, bloom_jar: Path, tmp_path_factory) -> Iterator:
    """The session on the cluster."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("cluster")
    os.environ["PYSPARK_PYTHON"] = str(bare_python)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with standalone(folder) as master:
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": JVM_OPTIONS,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.extraJavaOptions": JVM_OPTIONS,
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


def _find_java() -> None:
    """Sets JAVA_HOME to the JDK that install.sh has installed, unless it is set."""
    own = Path(sys.prefix) / "jdk"
    if own.exists() and "JAVA_HOME" not in os.environ:
        os.environ["JAVA_HOME"] = str(own.resolve())
