# Writes RedisBloom's replies to the commands of testdata/redisbloom/commands.txt, in both protocols, to replies-resp2.json
# and replies-resp3.json in that folder:
#
#     PETAL_REDISBLOOM=/path/redisbloom.so PATH=target/peers/bin:$PATH python3 peers/redisbloom/replies.py
#
# An argument of a command is its bytes, with the escapes \xHH, \r and \n; quotes around it are removed (a space is \x20);
# x*300 is 300 times x. In the JSON files a character is a byte, and a reply has the bytes that the server sent.

import json
import pathlib
import re

from server import redis

FOLDER = pathlib.Path(__file__).parents[2] / "testdata/redisbloom"


def argument(text):
    """Returns the bytes of an argument."""
    if many := re.fullmatch(r"(.)\*(\d+)", text):
        return many[1].encode() * int(many[2])
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return text.encode().decode("unicode_escape").encode("latin-1")


def commands():
    for line in (FOLDER / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line, [argument(text) for text in line.split()]


def replies(protocol):
    with redis() as call:
        call.send("HELLO", protocol)
        call.raw()
        for line, args in commands():
            call.send(*args)
            yield {"command": [shown(arg) for arg in args], "reply": call.raw().decode("latin-1")}


def shown(arg):
    """Returns an argument for JSON; long ones, which repeat a byte, as that byte and its count."""
    text = arg.decode("latin-1")
    return {"byte": text[0], "times": len(text)} if len(text) > 1000 else text


for protocol in (2, 3):
    rows = ",\n".join(json.dumps(row) for row in replies(protocol))
    (FOLDER / f"replies-resp{protocol}.json").write_text(f"[\n{rows}\n]\n")
