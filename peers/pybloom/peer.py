# pybloom-live's filters, by tofile and fromfile.
# Variants: plain (BloomFilter of N at RATE), scalable (ScalableBloomFilter that starts with N; it may grow).

from pybloom_live import BloomFilter, ScalableBloomFilter
from words import choose, lines, obey

KINDS = {"plain": BloomFilter, "scalable": ScalableBloomFilter}


def write(variant, n, rate, members, out):
    bloom = choose(KINDS, variant)(n, rate)
    for key in lines(members):
        bloom.add(key)
    with open(out, "wb") as file:
        bloom.tofile(file)


def check(variant, file, keys):
    with open(file, "rb") as opened:
        bloom = choose(KINDS, variant).fromfile(opened)
    return [key in bloom for key in lines(keys)]


obey("pybloom-live", write, check)
