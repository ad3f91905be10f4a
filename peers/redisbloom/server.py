# A real redis-server with RedisBloom, on a socket of its own and without files. PETAL_REDISBLOOM names the module.

import contextlib
import os
import socket
import subprocess
import tempfile
import time

PATIENCE = 20


class Redis:
    """A connection that sends commands and reads their answers."""

    def __init__(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self.stream = connection.makefile("rwb")

    def __call__(self, *words):
        self.send(*words)
        answer = self.read()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self.stream.flush()

    def raw(self):
        """The bytes of the next answer, of either protocol."""
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=" and int(rest) >= 0:
            return line + self.stream.read(int(rest) + 2)
        count = int(rest) * (2 if kind == b"%" else 1) if kind in b"*%~>" else 0
        return line + b"".join(self.raw() for _ in range(count))

    def read(self):
        line = self.stream.readline()
        if not line:
            raise ConnectionError("redis-server is gone")
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"+":
                return rest
            case b"-":
                return ValueError(rest.decode())
            case b":":
                return int(rest)
            case b"$":
                return self.stream.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
            case b"*":
                return [self.read() for _ in range(int(rest))]
        raise ValueError(f"an answer that begins with {line[:20]}")


@contextlib.contextmanager
def redis():
    """A running redis-server with the module, and nothing in it."""
    module = os.environ.get("PETAL_REDISBLOOM")
    if not module:
        raise ValueError("PETAL_REDISBLOOM does not name the module")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        log = open(os.path.join(folder, "log"), "w+b")
        server = subprocess.Popen([*command, "--loadmodule", module], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while True:
                if server.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise ChildProcessError(f"redis-server did not start: {log.read()[-300:].decode()}")
                with contextlib.suppress(OSError):
                    connection = Redis(path)
                    break
                time.sleep(0.05)
            yield connection
        finally:
            server.kill()
            server.wait()
            log.close()
