"""A real Redis server for tests.

`PETAL_PEERS` names the folder that `cargo x peers` fills. The module is `PETAL_MODULE`, or the one
that `cargo build -p petal-redis` builds.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

import redis

PEERS = os.environ.get("PETAL_PEERS")
ROOT = Path(__file__).parents[4]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MODULE = os.environ.get("PETAL_MODULE", TARGET / "debug/deps/libpetal_redis.so")


class Server:
    """A Redis server on a free port, without automatic persistence."""

    def __init__(self, folder: Path, *options: str, program: str = "redis-server") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        plain = ["--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        port = ["--port", str(self.port)]
        self.command = [f"{PEERS}/bin/{program}", *port, *plain, *options]
        self.client = redis.Redis.from_url(self.url)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        for _ in range(1000):
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.01)
        raise AssertionError("the server did not start")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def calls(self, command: str) -> int:
        return self.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)
