"""Real Spark clusters on the loopback: in one process, in several that Spark starts itself, and a
standalone master with two workers. One session of each for all tests.

Their executors have a Python of their own in which there is pyarrow and nothing else: no petal.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

MODES = ["local", "local-cluster", "standalone"]


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


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each; its address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    words = [[f"{deploy}.master.Master", *common, "--port", str(port)]]
    for number in (1, 2):
        at = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}")]
        words.append([f"{deploy}.worker.Worker", *common, *at, address])
    options = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
    started: list[subprocess.Popen] = []
    try:
        for number, line in enumerate(words):
            log = folder / f"log-{number}"
            with log.open("w") as out:
                started.append(
                    subprocess.Popen(
                        [spark_home() / "bin/spark-class", *line],
                        stdout=out,
                        stderr=out,
                        env=os.environ | options,
                    )
                )
            if number == 0:
                _until(lambda: "I have been elected leader" in log.read_text(), log)
        for number in (1, 2):
            log = folder / f"log-{number}"
            _until(lambda log=log: "Successfully registered" in log.read_text(), log)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


def _until(done: Callable[[], bool], log: Path) -> None:
    for _ in range(1200):
        if done():
            return
        time.sleep(0.1)
    raise AssertionError(f"Spark did not start: {log.read_text()[-2000:]}")


def kill_executor_once(flag: Path) -> Callable:
    """A function for `mapInArrow` that gives what it gets, and the first time that it has got
    something kills the executor that it runs in."""

    def task(batches):
        import os
        import signal

        for batch in batches:
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            # Its worker's parent's parent, or so.
            process = os.getpid()
            while process > 1:
                with open(f"/proc/{process}/cmdline", "rb") as words:
                    if b"CoarseGrainedExecutorBackend" in words.read():
                        os.kill(process, signal.SIGKILL)
                with open(f"/proc/{process}/stat") as stat:
                    process = int(stat.read().rpartition(")")[2].split()[1])
            os._exit(1)

    return task


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__path__[0])


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _find_java() -> None:
    """That of the PATH or JAVA_HOME, or what install.sh put beside this Python."""
    own = Path(sys.prefix) / "jdk"
    if own.exists() and "JAVA_HOME" not in os.environ:
        os.environ["JAVA_HOME"] = str(own.resolve())
