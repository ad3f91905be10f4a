# RedisBloom in a real redis-server, as server.py starts it.
#
# A file is the chunks of BF.SCANDUMP, one after the other; they are restored with BF.LOADCHUNK.
# Variants: scandump (BF.RESERVE with nothing more), nonscaling (NONSCALING), expansion-4 (EXPANSION 4).

import struct
import sys

from server import redis
from words import choose, lines, obey

VARIANTS = {"scandump": [], "nonscaling": ["NONSCALING"], "expansion-4": ["EXPANSION", 4]}
KEY = "filter"
CHUNK = 16 << 20
HEADER, LINK = struct.Struct("<QIII"), struct.Struct("<QQQddIQB")


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
