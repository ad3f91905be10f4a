# Writes the states of RedisBloom's cuckoo filters after random commands to testdata/redisbloom/cuckoo-traces.json:
#
#     PETAL_REDISBLOOM=/path/redisbloom.so PATH=target/peers/bin:$PATH python3 peers/redisbloom/cuckoo.py
#
# A trace has the parameters of CF.RESERVE and the seed of its commands, see `commands` below; then, for each phase, the
# header of CF.SCANDUMP in hex (empty if the filter is empty, because there is no dump then), and checksums (FNV-1a, 64
# bits) of the arrays and of the replies so far.
#
# With --many NUMBER the parameters are random, too, from wider ranges, and the traces go to standard output, for a
# one-time comparison.

import json
import pathlib
import sys

from server import redis

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata/redisbloom/cuckoo-traces.json"
PHASES = 4
MASK = (1 << 64) - 1
# Cumulative percentages of these commands; filling and emptying phases alternate.
COMMANDS = ["CF.ADD", "CF.ADDNX", "CF.DEL", "CF.COUNT", "CF.EXISTS"]
UP_TO = [[70, 80, 90, 95], [15, 20, 90, 95]]


def random(seed):
    """SplitMix64: returns a function that returns numbers below its argument."""

    def below(end):
        nonlocal seed
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        return (z ^ (z >> 31)) * end >> 64

    return below


def fnv(data, checksum=0xCBF29CE484222325):
    for byte in data:
        checksum = (checksum ^ byte) * 0x100000001B3 & MASK
    return checksum


def commands(trace, below, phase):
    for _ in range(trace["steps"]):
        drawn = below(1000)
        command = COMMANDS[sum(drawn // 10 >= end for end in UP_TO[phase % 2])]
        key = b"item:%d" % below(trace["keys"])
        # One in a thousand compacts the filter.
        yield ("CF.COMPACT", "f") if drawn == 999 else (command, "f", key)


def states(call, trace):
    yield call("CF.RESERVE", "f", trace["capacity"], "BUCKETSIZE", trace["bucket_size"], "MAXITERATIONS",
              trace["iterations"], "EXPANSION", trace["expansion"])
    below, replies = random(trace["seed"]), fnv(b"")
    for phase in range(PHASES):
        sent = 0
        for command in commands(trace, below, phase):
            call.send(*command)
            sent += 1
        for _ in range(sent):
            replies = fnv(str(shown(call.read())).encode(), replies)
        chunks, at = [], 0
        while True:
            at, chunk = call("CF.SCANDUMP", "f", at)
            if not at:
                break
            chunks.append(chunk)
        header = chunks[0].hex() if chunks else ""
        yield [header, fnv(b"".join(chunks[1:])), replies]
    call("DEL", "f")


def shown(reply):
    """Shortens a reply."""
    if isinstance(reply, ValueError):
        return {"Filter is full": "F", "Maximum expansions reached": "M"}[str(reply).removeprefix("ERR ")]
    return "+" if reply == b"OK" else reply


def golden():
    seed = 0
    for bucket_size in range(1, 6):
        for expansion in range(5):
            for iterations in (1, 7, 50):
                seed += 1
                capacity = 2 * bucket_size if seed % 2 else 8 * bucket_size + 5 * seed
                yield {"capacity": capacity, "bucket_size": bucket_size, "iterations": iterations,
                       "expansion": expansion, "seed": seed, "keys": 150 + 10 * seed, "steps": 500 + 10 * seed}


def many(count):
    below = random(count)
    for seed in range(count):
        bucket_size = [1 + below(5), 1 + below(16), 1 + below(255)][below(3)]
        yield {"capacity": 2 * bucket_size + below(1 << below(10)), "bucket_size": bucket_size,
               "iterations": 1 + below(1 << below(9)), "expansion": below(6),
               "seed": seed, "keys": 1 + below(1 << below(13)), "steps": 1 + below(1 << below(12))}


traces = many(int(sys.argv[2])) if sys.argv[1:2] == ["--many"] else golden()
out = sys.stdout if sys.argv[1:] else GOLDEN.open("w")
with redis() as call, out:
    before = "[\n"
    for trace in traces:
        reserved, *phases = states(call, trace)
        assert reserved == b"OK", reserved
        print(before + json.dumps({**trace, "phases": phases}), end="", file=out, flush=True)
        before = ",\n"
    print("\n]", file=out)
