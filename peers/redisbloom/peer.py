# RedisBloom in a real redis-server, on a socket of its own and without files. PETAL_REDISBLOOM names the module.
#
# A file is the chunks of BF.SCANDUMP, one after the other; they are restored with BF.LOADCHUNK.
# Variants: scandump (BF.RESERVE with nothing more), nonscaling (NONSCALING), expansion-4 (EXPANSION 4).

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

from words import choose, lines, obey

VARIANTS = {"scandump": [], "nonscaling": ["NONSCALING"], "expansion-4": ["EXPANSION", 4]}
KEY = "filter"
PATIENCE = 20
CHUNK = 16 << 20
HEADER, LINK = struct.Struct("<QIII"), struct.Struct("<QQQddIQB")


class Redis:
    """A connection that sends commands and reads their answers."""

    def __init__(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self.stream = connection.makefile("rwb")

    def __call__(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self.stream.flush()
        answer = self.read()
        if isinstance(answer, Exception):
            raise answer
        return answer

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


def chunks(file):
    """Numbers and chunks, as BF.SCANDUMP would give them."""
    _, count, _, _ = HEADER.unpack_from(file)
    place = HEADER.size + count * LINK.size
    yield 1, file[:place]
    reached = 1
    for link in range(count):
        left = LINK.unpack_from(file, HEADER.size + link * LINK.size)[0]
        while left > 0:
            chunk = file[place : place + min(left, CHUNK)]
            place, left, reached = place + len(chunk), left - len(chunk), reached + len(chunk)
            yield reached, chunk


def write(variant, n, rate, members, out):
    with redis() as ask, open(out, "wb") as file:
        ask("BF.RESERVE", KEY, rate, n, *choose(VARIANTS, variant))
        for member in lines(members):
            ask("BF.ADD", KEY, member)
        number, chunk = ask("BF.SCANDUMP", KEY, 0)
        while number:
            file.write(chunk)
            number, chunk = ask("BF.SCANDUMP", KEY, number)


def check(variant, file, keys):
    choose(VARIANTS, variant)
    with open(file, "rb") as opened, redis() as ask:
        for number, chunk in chunks(opened.read()):
            ask("BF.LOADCHUNK", KEY, number, chunk)
        asked = lines(keys)
        return [answer for at in range(0, len(asked), 1000) for answer in ask("BF.MEXISTS", KEY, *asked[at : at + 1000])]


def version():
    with redis() as ask:
        modules = [dict(zip(module[::2], module[1::2])) for module in ask("MODULE", "LIST")]
        number = next(module[b"ver"] for module in modules if module[b"name"] == b"bf")
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


if sys.argv[1:] == ["version"]:
    try:
        print("RedisBloom", version())
    except Exception as error:
        sys.exit(f"RedisBloom: {error}")
else:
    obey("RedisBloom", write, check, "")
