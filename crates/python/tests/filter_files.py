"""Compares filter files byte by byte."""

from pathlib import Path

import petal

#: Fields of the header in docs/reference/format.md: the number of inserted keys, and the checksum.
INSERTED = slice(88, 96)
HEADER_CHECKSUM = slice(248, 256)


def assert_equal_except_inserted(one: Path, many: Path) -> None:
    """Asserts that `many`, built by a cluster, equals `one`, built on one machine.

    Except for the number of inserted keys, which is the estimate from its bits, and the checksum.
    """
    of_one, of_many = (bytearray(path.read_bytes()) for path in (one, many))
    inserted = int.from_bytes(of_many[INSERTED], "little")
    for field in INSERTED, HEADER_CHECKSUM:
        of_one[field] = of_many[field] = bytes(8)
    assert of_one == of_many
    one_filter, many_filter = petal.load(one), petal.load(many)
    many_filter.verify()
    assert inserted == many_filter.inserted == round(many_filter.estimated_len)
    assert abs(inserted - one_filter.inserted) < 0.01 * inserted
