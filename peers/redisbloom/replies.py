# Writes what RedisBloom answers to testdata/redisbloom/commands.txt, in both protocols, as replies-resp2.json and
# replies-resp3.json beside it:
#
#     PETAL_REDISBLOOM=/path/redisbloom.so PATH=target/peers/bin:$PATH python3 peers/redisbloom/replies.py
#
# A word of a command is bytes as written, with \xHH, \r and \n for those that cannot be; "..." is the same with nothing
# else in it than what stands between the quotes (no blank: write \x20); x*300 is 300 times x. In the JSON files a
# character is a byte, and a reply is the bytes that the server sent.

import json
import pathlib
import re

from server import redis

FOLDER = pathlib.Path(__file__).parents[2] / "testdata/redisbloom"


def word(text):
    """The bytes that a word of the list stands for."""
    if many := re.fullmatch(r"(.)\*(\d+)", text):
        return many[1].encode() * int(many[2])
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return text.encode().decode("unicode_escape").encode("latin-1")


def commands():
    for line in (FOLDER / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line, [word(text) for text in line.split()]


def replies(protocol):
    with redis() as ask:
        ask.send("HELLO", protocol)
        ask.raw()
        for line, words in commands():
            ask.send(*words)
            yield {"command": [shown(part) for part in words], "reply": ask.raw().decode("latin-1")}


def shown(part):
    """A word as JSON has it; a long one, all of the same byte, as that byte and how many."""
    text = part.decode("latin-1")
    return {"byte": text[0], "times": len(text)} if len(text) > 1000 else text


for protocol in (2, 3):
    rows = ",\n".join(json.dumps(row) for row in replies(protocol))
    (FOLDER / f"replies-resp{protocol}.json").write_text(f"[\n{rows}\n]\n")
