"""`issubset`, `<=`, `isdisjoint`, and filters whose keys were changed in different ways."""

import math
import operator
from pathlib import Path

import petal
import pytest

BLOOM = [petal.BloomFilter, petal.ClassicBloomFilter]


def filled(kind: type, keys: range, **arguments: object) -> petal.Filter:
    filter = kind(10_000, 0.001, **arguments)
    filter.update(map(str, keys))
    return filter


@pytest.mark.parametrize("kind", BLOOM)
def test_subset_of_keys_is_a_subset(kind: type, tmp_path: Path) -> None:
    small, large = filled(kind, range(300)), filled(kind, range(5000))
    assert small.issubset(large) and large.issuperset(small) and small <= large and large >= small
    assert small < large and large > small and not small > large and not small >= large
    assert not large.issubset(small) and not large <= small
    assert small <= small and small >= small and not small < small and not small > small
    assert small.issubset(small) and kind(10_000, 0.001) <= small
    # One key that the other lacks is almost always noticed.
    small.add("another")
    assert not small.issubset(large) and not small < large
    large.save(tmp_path / "f")
    assert filled(kind, range(300)) <= petal.open(tmp_path / "f")


@pytest.mark.parametrize("kind", BLOOM)
def test_incomparable_filters_are_refused(kind: type) -> None:
    one = filled(kind, range(10))
    with pytest.raises(petal.IncompatibleError):
        one.issubset(kind(10_000, 0.001, seed=1))
    with pytest.raises(petal.IncompatibleError):
        _ = one <= kind(90_000, 0.001)
    for other in (petal.ScalableBloomFilter(10), petal.QuotientFilter(10), petal.ForeignFilter("guava", 10)):
        with pytest.raises(petal.IncompatibleError):
            one.issubset(other)
        for compare in (operator.le, operator.lt, operator.ge, operator.gt):
            with pytest.raises(TypeError, match="not supported between"):
                compare(one, other)
    with pytest.raises(TypeError):
        _ = one <= {"1"}
    assert one != {"1"} and one == one.copy()


@pytest.mark.parametrize("kind", BLOOM[:2])
def test_full_filter_is_not_disjoint_from_itself(kind: type) -> None:
    full = kind(100, 0.01)
    full.update(range(20_000))
    assert not full.isdisjoint(full) and math.isnan(full.jaccard(full))
    assert full.isdisjoint(kind(100, 0.01))


@pytest.mark.parametrize("kind", BLOOM[:2])
def test_disjoint_is_an_estimate(kind: type) -> None:
    one = filled(kind, range(3000))
    assert one.isdisjoint(kind(10_000, 0.001))
    assert not one.isdisjoint(filled(kind, range(2000, 5000))) and not one.isdisjoint(one)
    # Without common keys, about one pair in 700 seems to have some.
    others = (filled(kind, range(start, start + 3000)) for start in range(10_000, 310_000, 3000))
    assert sum(not one.isdisjoint(other) for other in others) <= 4
    value, error = one.compare(filled(kind, range(2999, 6000)))["intersection"]
    assert one.isdisjoint(filled(kind, range(2999, 6000))) == (value <= 3 * error)


def test_filters_of_keys_changed_in_other_ways_are_refused(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("http://a.example/\n")
    made = {}
    for name, changes in {"surt": ["url-surt"], "two": ["trim", "url-surt"], "plain": None}.items():
        petal.build(lines, tmp_path / name, capacity=100, key_transform=changes)
        made[name] = petal.load(tmp_path / name)
    assert made["surt"].key_transform == ["url-surt"] and made["two"].key_transform == ["trim", "url-surt"]
    assert made["plain"].key_transform == [] and petal.BloomFilter(100).key_transform is None
    surt, plain, own = made["surt"], made["plain"], petal.BloomFilter(100)
    for one, other in [(surt, plain), (plain, surt), (surt, made["two"]), (surt, own), (own, surt)]:
        for combine in (operator.or_, operator.and_, operator.ior, operator.iand, operator.le, operator.gt):
            with pytest.raises(petal.IncompatibleError, match="changed by '.*url-surt', those of the other|not changed"):
                combine(one.copy(), other)
        for name in ("union", "intersection", "compare", "jaccard", "issubset", "isdisjoint"):
            with pytest.raises(petal.IncompatibleError, match="build both with the same key_transform="):
                getattr(one, name)(other)
    both = surt | petal.load(tmp_path / "surt")
    assert both == surt and both.key_transform == ["url-surt"]
    assert (plain | own) == plain and own <= plain
    # Keys that the caller changed.
    own.metadata = surt.metadata
    own.add(petal.transform_key("HTTP://A.example", ["url-surt"]))
    assert (surt | own) == surt
    surt.metadata = surt.metadata.replace("url-surt", "url-new")
    with pytest.raises(petal.IncompatibleError, match="'url-new', which this version of petal does not know"):
        _ = surt | own
    with pytest.raises(petal.IncompatibleError, match="url-new"):
        _ = surt.key_transform
