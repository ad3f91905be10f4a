# Mozilla's filter cascade, format version 2.
#
# A cascade answers rightly for two known sets, so `write` has a seventh word: OTHERS, a file with the known non-members.
# Without it they are the lines of the .asked beside MEMBERS that are no members, or where there is none, the members
# with `-` behind them. N is the least number of keys any layer is sized for, RATE the error rate of the first layer; all
# others have one half.
#
# Variants: murmur3 and sha256, the latter with a fixed salt or with none (sha256-bare); each also -inverted: the first
# layer holds OTHERS, of which there are no more than members (further lines are left out).

from pathlib import Path

from filtercascade import FilterCascade
from filtercascade.fileformats import HashAlgorithm
from words import choose, lines, obey

SALT = b"petal's golden salt"
HASHES = {
    "murmur3": (HashAlgorithm.MURMUR3, None),
    "sha256": (HashAlgorithm.SHA256, SALT),
    "sha256-bare": (HashAlgorithm.SHA256, None),
}


def non_members(members, keys):
    asked = Path(members).with_suffix(".asked")
    held = set(keys)
    if asked.exists():
        return [key for key in lines(asked) if key not in held]
    return [key + "-" for key in keys]


def write(variant, n, rate, members, out, others=None):
    hash_name = variant.removesuffix("-inverted")
    algorithm, salt = choose(HASHES, hash_name)
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


obey("filtercascade", write, check)
