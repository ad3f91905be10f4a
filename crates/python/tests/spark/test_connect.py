"""Spark Connect: a server in a process of its own, and a client without a `SparkContext`."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import JVM_OPTIONS, free_port, spark_home

pytest.importorskip("grpc")


@pytest.fixture
def server(tmp_path: Path, bare_python: Path, bloom_jar: Path) -> Iterator[str]:
    """A server with two slots, whose Python has only pyarrow; its address.

    `bloom_jar` sets JAVA_HOME.
    """
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": tmp_path / "local",
        "spark.sql.shuffle.partitions": 3,
        "spark.sql.warehouse.dir": tmp_path / "warehouse",
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    environment = os.environ | {"PYSPARK_PYTHON": str(bare_python), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [spark_home() / "bin/spark-submit", "--class", name, "--master", "local[2]", *options],
            stdout=out, stderr=out, env=environment, cwd=tmp_path,
        )
    try:
        for _ in range(1200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.timeout(600)
def test_a_client_of_spark_connect_gets_the_same_results(server: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    client = [sys.executable, Path(__file__).with_name("connect_client.py"), server, tmp_path / "files"]
    done = subprocess.run([str(word) for word in client], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("all right\n"), done.stdout + done.stderr
