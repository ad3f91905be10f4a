"""What every filter does."""

import petal


def test_a_key_that_was_added_is_in_it():
    seen = petal.BloomFilter(1000, rate=0.001)
    assert seen.add("one")
    assert not seen.add(b"one")
    assert "one" in seen and "two" not in seen
    assert round(seen.estimated_len) == 1
