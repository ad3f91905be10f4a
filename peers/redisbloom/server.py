# A redis-server with RedisBloom, on a Unix socket and without persistence. PETAL_REDISBLOOM is the path of the module.

import contextlib
import os
import socket
import subprocess
import tempfile
import time

TIMEOUT = 20


class Redis:
    """A connection that sends commands and reads their replies."""

    def __init__(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self.stream = connection.makefile("rwb")

    def __call__(self, *args):
        self.send(*args)
        reply = self.read()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def send(self, *args):
        args = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
        self.stream.write(b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(arg), arg) for arg in args))
        self.stream.flush()

    def raw(self):
        """Returns the bytes of the next reply, of either protocol."""
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=" and int(rest) >= 0:
            return line + self.stream.read(int(rest) + 2)
        count = int(rest) * (2 if kind == b"%" else 1) if kind in b"*%~>" else 0
        return line + b"".join(self.raw() for _ in range(count))

    def read(self):
        line = self.stream.readline()
        if not line:
            raise ConnectionError("redis-server closed the connection")
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
        raise ValueError(f"unexpected reply: {line[:20]}")


@contextlib.contextmanager
def redis():
    """Starts an empty redis-server with the module, and yields a connection."""
    module = os.environ.get("PETAL_REDISBLOOM")
    if not module:
        raise ValueError("PETAL_REDISBLOOM is not set")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        log = open(os.path.join(folder, "log"), "w+b")
        server = subprocess.Popen([*command, "--loadmodule", module], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + TIMEOUT
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
