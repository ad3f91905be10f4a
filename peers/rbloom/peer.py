# rbloom's filter, saved and loaded. The caller provides the hash.
# Variants: sha256 (the hash in rbloom's documentation: the first 16 bytes of SHA-256 over UTF-8, big-endian, signed).

from hashlib import sha256

from rbloom import Bloom
from common import lines, lookup, run

HASHES = {"sha256": lambda key: int.from_bytes(sha256(key.encode()).digest()[:16], "big", signed=True)}


def write(variant, n, rate, members, out):
    bloom = Bloom(n, rate, lookup(HASHES, variant))
    bloom.update(lines(members))
    bloom.save(out)


def check(variant, file, keys):
    bloom = Bloom.load(file, lookup(HASHES, variant))
    return [key in bloom for key in lines(keys)]


run("rbloom", write, check)
