# Mozilla's filter cascade, format version 2.
#
# A cascade is exact for two known sets, so `write` has one more argument: OTHERS, a file with the known non-members. Its
# default are the lines of MEMBERS' .asked file that are not members; without that file, the members with the suffix `-`.
# N is the minimum number of keys that a layer is sized for, RATE the rate of the first layer; that of the others is 0.5.
#
# Variants: murmur3 and sha256, the latter with a fixed salt or with none (sha256-bare); each also -inverted: the first
# layer contains OTHERS, cut to the number of members.

from pathlib import Path

from filtercascade import FilterCascade
from filtercascade.fileformats import HashAlgorithm
from common import lines, lookup, run

SALT = b"petal's golden salt"
HASHES = {
    "murmur3": (HashAlgorithm.MURMUR3, None),
    "sha256": (HashAlgorithm.SHA256, SALT),
    "sha256-bare": (HashAlgorithm.SHA256, None),
}


def non_members(members, keys):
    path = Path(members).with_suffix(".asked")
    included = set(keys)
    if path.exists():
        return [key for key in lines(path) if key not in included]
    return [key + "-" for key in keys]


def write(variant, n, rate, members, out, others=None):
    hash_name = variant.removesuffix("-inverted")
    algorithm, salt = lookup(HASHES, hash_name)
    include = lines(members)
    exclude = lines(others) if others else non_members(members, include)
    inverted = hash_name != variant
    if inverted:
        exclude = exclude[: len(include)]
    cascade = FilterCascade(
        error_rates=[rate, 0.5],
        min_filter_length=n,
        defaultHashAlg=algorithm,
        salt=salt,
        invertedLogic=inverted,
    )
    cascade.initialize(include=set(include), exclude=set(exclude))
    cascade.verify(include=include, exclude=exclude)
    with open(out, "wb") as file:
        cascade.tofile(file)


def check(_variant, file, keys):
    cascade = FilterCascade.from_buf(Path(file).read_bytes())
    return [key in cascade for key in lines(keys)]


run("filtercascade", write, check)
