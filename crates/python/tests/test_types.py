"""Every type of filter contains its keys: in memory, in a file and in a copy."""

import copy
import math
import pickle

import petal
import pytest

KEYS = [f"key-{number}" for number in range(500)]

MAKE = {
    "bloom": lambda: petal.BloomFilter(1000, 0.001),
    "classic": lambda: petal.ClassicBloomFilter(1000, 0.001),
    "counting": lambda: petal.CountingBloomFilter(1000, 0.001, width=4),
    "counting-classic": lambda: petal.ClassicCountingBloomFilter(1000, 0.001),
    "quotient": lambda: petal.QuotientFilter(1000, 0.001),
    "vector-quotient": lambda: petal.VectorQuotientFilter(1000, 0.001),
    "scalable": lambda: petal.ScalableBloomFilter(100, 0.001, growth=2),
    "windowed": lambda: petal.WindowedBloomFilter(3000, 0.001, window=3600),
    "static": lambda: petal.StaticFilter(KEYS, 0.001),
    "static-fuse": lambda: petal.StaticFilter(KEYS, 0.001, fuse=True),
    "cascade": lambda: petal.FilterCascade(KEYS, [f"other-{n}" for n in range(5000)], 0.001),
    "foreign": lambda: petal.ForeignFilter("guava", 1000, 0.001),
}
FIXED = {"static", "static-fuse", "cascade"}
CLASS = {
    "bloom": petal.BloomFilter,
    "classic": petal.ClassicBloomFilter,
    "counting": petal.CountingBloomFilter,
    "counting-classic": petal.ClassicCountingBloomFilter,
    "quotient": petal.QuotientFilter,
    "vector-quotient": petal.VectorQuotientFilter,
    "scalable": petal.ScalableBloomFilter,
    "windowed": petal.WindowedBloomFilter,
    "static": petal.StaticFilter,
    "static-fuse": petal.StaticFilter,
    "cascade": petal.FilterCascade,
    "foreign": petal.ForeignFilter,
}


def filled(kind):
    """Returns a filter of a type that contains KEYS."""
    made = MAKE[kind]()
    if kind not in FIXED:
        made.update(KEYS)
    return made


@pytest.fixture(params=MAKE)
def kind(request):
    return request.param


def assert_contains_keys(one):
    assert all(key in one for key in KEYS)
    assert one.contains_batch(KEYS) == [True] * len(KEYS)
    others = sum(f"absent-{number}" in one for number in range(2000))
    assert others <= 20, f"{others} of 2000 absent keys found at a rate of 0.001"


def test_added_keys_are_contained(kind):
    one = filled(kind)
    assert_contains_keys(one)
    assert type(one) is CLASS[kind] and isinstance(one, petal.Filter)
    assert one.type == kind
    assert math.isclose(one.estimated_len, len(KEYS), rel_tol=0.1)
    assert 0 < one.estimated_fpr < 0.01
    assert 0 < one.fill_ratio <= 1
    assert one.size_bytes > 0 and one.memory_bytes > 0
    assert not one.is_mapped and not one.is_overfull
    assert one.info()["type"] == kind
    assert CLASS[kind].__name__ in repr(one)


def test_saved_filter_equals_the_original(kind, tmp_path):
    one, path = filled(kind), tmp_path / "one.petal"
    if kind != "foreign":
        one.metadata = '{"what":"keys"}'
    one.save(path)
    for again in [petal.open(path), petal.load(path), petal.from_bytes(one.to_bytes())]:
        assert type(again) is CLASS[kind]
        assert again == one and not again != one
        assert again.metadata == one.metadata
        again.verify()
        assert_contains_keys(again)
    assert petal.open(path).is_mapped and petal.open(str(path)).is_mapped
    assert path.read_bytes() == one.to_bytes() == petal.open(path).to_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["one.petal"]


def test_copies_and_pickles_are_independent(kind, tmp_path):
    one = filled(kind)
    one.save(tmp_path / "one")
    mapped = petal.open(tmp_path / "one")
    made = [
        one.copy(), copy.copy(one), copy.deepcopy(one), mapped.copy(),
        pickle.loads(pickle.dumps(one)), pickle.loads(pickle.dumps(mapped)),
    ]
    for again in made:
        assert type(again) is CLASS[kind] and again == one and not again.is_mapped
        assert_contains_keys(again)
        if kind not in FIXED:
            again.add("another")
            assert "another" in again and again != one
    assert "another" not in one


def test_changing_a_read_only_filter_is_an_error(kind, tmp_path):
    one = filled(kind)
    one.save(tmp_path / "one")
    mapped = petal.open(tmp_path / "one")
    changes = [lambda f: f.add("a"), lambda f: f.update(["a"]), lambda f: f.clear()]
    for change in changes:
        with pytest.raises(petal.UnsupportedError):
            change(mapped)
        if kind in FIXED:
            with pytest.raises(petal.UnsupportedError, match="never changes"):
                change(one)
    with pytest.raises(petal.UnsupportedError):
        mapped.metadata = "{}"


def test_clear_removes_all_keys(kind):
    if kind in FIXED | {"foreign"}:
        return
    one = filled(kind)
    one.clear()
    assert not any(one.contains_batch(KEYS)) and one.estimated_len == 0
    assert one.add(KEYS[0]) and KEYS[0] in one


def test_update_returns_the_number_of_new_keys(kind):
    if kind in FIXED:
        return
    one = MAKE[kind]()
    new = one.update(KEYS[:300], iter(KEYS[200:400]), set(KEYS[300:]))
    assert 490 <= new <= 500
    assert one.update() == 0
    assert_contains_keys(one)
