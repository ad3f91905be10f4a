# RedisBloom in a redis-server that server.py starts.
#
# A file is the chunks of BF.SCANDUMP, one after the other; they are restored with BF.LOADCHUNK.
# Variants: scandump (BF.RESERVE without options), nonscaling (NONSCALING), expansion-4 (EXPANSION 4).

import struct
import sys

from server import redis
from common import lines, lookup, run

VARIANTS = {"scandump": [], "nonscaling": ["NONSCALING"], "expansion-4": ["EXPANSION", 4]}
KEY = "filter"
CHUNK = 16 << 20
HEADER, LINK = struct.Struct("<QIII"), struct.Struct("<QQQddIQB")


def chunks(file):
    """Yields numbers and chunks as BF.SCANDUMP returns them."""
    _, count, _, _ = HEADER.unpack_from(file)
    offset = HEADER.size + count * LINK.size
    yield 1, file[:offset]
    reached = 1
    for link in range(count):
        left = LINK.unpack_from(file, HEADER.size + link * LINK.size)[0]
        while left > 0:
            chunk = file[offset : offset + min(left, CHUNK)]
            offset, left, reached = offset + len(chunk), left - len(chunk), reached + len(chunk)
            yield reached, chunk


def write(variant, n, rate, members, out):
    with redis() as call, open(out, "wb") as file:
        call("BF.RESERVE", KEY, rate, n, *lookup(VARIANTS, variant))
        for member in lines(members):
            call("BF.ADD", KEY, member)
        number, chunk = call("BF.SCANDUMP", KEY, 0)
        while number:
            file.write(chunk)
            number, chunk = call("BF.SCANDUMP", KEY, number)


def check(variant, file, keys):
    lookup(VARIANTS, variant)
    with open(file, "rb") as opened, redis() as call:
        for number, chunk in chunks(opened.read()):
            call("BF.LOADCHUNK", KEY, number, chunk)
        queries = lines(keys)
        return [found for at in range(0, len(queries), 1000) for found in call("BF.MEXISTS", KEY, *queries[at : at + 1000])]


def version():
    with redis() as call:
        modules = [dict(zip(module[::2], module[1::2])) for module in call("MODULE", "LIST")]
        number = next(module[b"ver"] for module in modules if module[b"name"] == b"bf")
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


if sys.argv[1:] == ["version"]:
    try:
        print("RedisBloom", version())
    except Exception as error:
        sys.exit(f"RedisBloom: {error}")
else:
    run("RedisBloom", write, check, "")
