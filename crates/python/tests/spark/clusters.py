"""Starts Spark clusters and kills executors."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Each query of a test runs once: the optimizing compiler would cost more than it saves.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def standalone(folder: Path, memory: str = "1g") -> Iterator[str]:
    """Starts a master and two workers with one core each; yields the address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[f"{deploy}.master.Master", *common, "--port", str(port)]]
    for number in (1, 2):
        at = ["--cores", "1", "--memory", memory, "--work-dir", str(folder / f"worker-{number}")]
        commands.append([f"{deploy}.worker.Worker", *common, *at, address])
    options = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false", "SPARK_DAEMON_JAVA_OPTS": JVM_OPTIONS}
    started: list[subprocess.Popen] = []
    try:
        for number, line in enumerate(commands):
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
    """Returns a function for `mapInArrow` that passes batches on, and kills its executor once."""

    def task(batches):
        import os
        import signal

        for batch in batches:
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            # The executor is an ancestor of the Python worker.
            process = os.getpid()
            while process > 1:
                with open(f"/proc/{process}/cmdline", "rb") as command:
                    if b"CoarseGrainedExecutorBackend" in command.read():
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
