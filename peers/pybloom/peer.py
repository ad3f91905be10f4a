# pybloom-live's filters, by tofile and fromfile.
# Variants: plain (BloomFilter of N at RATE), scalable (ScalableBloomFilter that starts with N; it may grow), bytes and
# bytes-scalable (the same, with lines as bytes objects).

from pybloom_live import BloomFilter, ScalableBloomFilter
from common import lines, lookup, run

KINDS = {
    "plain": (BloomFilter, str),
    "scalable": (ScalableBloomFilter, str),
    "bytes": (BloomFilter, str.encode),
    "bytes-scalable": (ScalableBloomFilter, str.encode),
}


def write(variant, n, rate, members, out):
    kind, key_of = lookup(KINDS, variant)
    bloom = kind(n, rate)
    for line in lines(members):
        bloom.add(key_of(line))
    with open(out, "wb") as file:
        bloom.tofile(file)


def check(variant, file, keys):
    kind, key_of = lookup(KINDS, variant)
    with open(file, "rb") as opened:
        bloom = kind.fromfile(opened)
    return [key_of(line) in bloom for line in lines(keys)]


run("pybloom-live", write, check)
