"""Filters move between Python and a real Redis server with petal's module.

`PETAL_PEERS` names the folder that `cargo x peers` fills. The module is `PETAL_MODULE`, or the one
that `cargo build -p petal-redis` builds.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

import petal
import pytest
import redis

PEERS = os.environ.get("PETAL_PEERS")
ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MODULE = os.environ.get("PETAL_MODULE", TARGET / "debug/deps/libpetal_redis.so")

pytestmark = pytest.mark.foreign


@pytest.fixture
def server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    run = [f"{PEERS}/bin/redis-server", *options, "--loadmodule", str(MODULE)]
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    for _ in range(1000):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.01)
    yield client
    process.kill()
    process.wait()


def test_server_and_python_filters_are_equal(server):
    ours = petal.BloomFilter(10_000, 0.01)
    ours.update([f"key-{number}" for number in range(5000)], range(5000), [b"\xff\n\0"])
    server.execute_command("PETAL.IMPORT", "seen", 0, ours.to_bytes())
    keys = [f"other-{number}" for number in range(5000)] + ["key-1", b"\xff\n\0"]
    keys += [number.to_bytes(8, "little") for number in range(4000, 9000)]
    replies = server.execute_command("BF.MEXISTS", "seen", *keys)
    assert [bool(reply) for reply in replies] == ours.contains_batch(keys)

    server.execute_command("BF.ADD", "seen", "from the server")
    offset, file = 0, b""
    while not file or offset:
        offset, chunk = server.execute_command("PETAL.EXPORT", "seen", offset)
        file += chunk
    theirs = petal.from_bytes(file)
    assert theirs != ours and "from the server" in theirs
    ours.add("from the server")
    assert theirs == ours
