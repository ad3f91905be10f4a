"""Pickles of earlier versions are read."""

import json
import pickle

import petal
import pytest
from pickles import FILE, KEYS, from_text, objects

RECORDED = [
    (version, name, protocol, text)
    for version, made in json.loads(FILE.read_text()).items()
    for name, texts in made.items()
    for protocol, text in texts.items()
]


@pytest.mark.parametrize(("version", "name", "protocol", "text"), RECORDED, ids=lambda part: str(part)[:30])
def test_recorded_pickle_equals_a_new_object(version: str, name: str, protocol: str, text: str) -> None:
    found, made = from_text(text), objects()[name]
    assert type(found) is type(made) and type(found).__name__ == name
    if isinstance(found, petal.Filter):
        assert all(found.contains_batch(KEYS)) and found.metadata == made.metadata
        assert found == made and (found.capacity, found.target_fpr) == (made.capacity, made.target_fpr)
        # It can be changed and saved again.
        assert pickle.loads(pickle.dumps(found)) == found
    elif isinstance(found, petal.PetalError):
        assert str(found) == "text"
    else:
        assert (found.kept, found.first_lines) == (2, 3) and found.phases[0].what == made.phases[0].what
        with pytest.raises(petal.UnsupportedError, match="only in the process that ran the job"):
            list(found)


def test_every_class_is_recorded() -> None:
    names = {name for _, name, _, _ in RECORDED}
    classes = {name for name in petal.__all__ if name.endswith(("Filter", "Cascade")) and name != "Filter"}
    assert classes | {"Report", "CountReport"} <= names


def test_pickle_of_a_newer_format_is_refused() -> None:
    data = bytearray(petal.BloomFilter(10).to_bytes())
    # The version of the format, after the magic number.
    data[8] += 1
    load, (_, *rest) = petal.BloomFilter(10).__reduce__()
    with pytest.raises(petal.FormatError, match="version"):
        load(bytes(data), *rest)
