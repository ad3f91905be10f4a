"""Filter files compared byte by byte."""

from pathlib import Path

import petal

#: docs/format.md: the number of inserts that were new, and the checksum of the header.
INSERTED = slice(88, 96)
HEADER_CHECKSUM = slice(248, 256)


def assert_same_but_inserted(one: Path, many: Path) -> None:
    """`many`, made by a cluster, has the bytes of `one`, made by `petal build`, but for the count
    of inserts, which is the estimate that its bits give, and the checksum over it."""
    of_one, of_many = (bytearray(path.read_bytes()) for path in (one, many))
    inserted = int.from_bytes(of_many[INSERTED], "little")
    for field in INSERTED, HEADER_CHECKSUM:
        of_one[field] = of_many[field] = bytes(8)
    assert of_one == of_many
    one_filter, many_filter = petal.load(one), petal.load(many)
    many_filter.verify()
    assert inserted == many_filter.inserted == round(many_filter.estimated_len)
    assert abs(inserted - one_filter.inserted) < 0.01 * inserted
