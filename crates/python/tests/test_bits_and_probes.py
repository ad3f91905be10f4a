"""`bits=`, `probes=` and `least_space=`: how the size and the number of probes are chosen."""

import petal
import pytest

CLASSES = [
    (petal.BloomFilter, 20_480),
    (petal.ClassicBloomFilter, 20_001),
    (petal.CountingBloomFilter, 20_480),
    (petal.ClassicCountingBloomFilter, 20_001),
]


@pytest.mark.parametrize(("cls", "_bits"), CLASSES)
def test_bits_and_probes_alone_are_no_plan(cls, _bits, tmp_path):
    made = cls(bits=20_001, probes=7)
    assert (made.capacity, made.target_fpr, made.is_overfull) == (0, 0.0, False)
    made.update(map(str, range(1000)))
    assert all(str(n) in made for n in range(1000))
    made.save(tmp_path / "f")
    again = petal.open(tmp_path / "f")
    assert again == made and again.capacity == 0
    planned = cls(1500, bits=20_001, probes=7)
    assert planned.capacity == 1500 and 0 < planned.target_fpr < 0.02
    rated = cls(fpr=0.02, bits=20_001, probes=7)
    assert rated.capacity > 1500 and rated.target_fpr == 0.02
    best = cls(1500, bits=20_001)
    assert best.target_fpr <= planned.target_fpr
    fitted = cls(1500, 0.02, probes=7)
    assert fitted.capacity == 1500 and fitted.size_bytes <= made.size_bytes


def test_the_same_filter_as_the_program(tmp_path):
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1000)))
    petal.build([tmp_path / "a"], tmp_path / "f", type="classic", bits=20_001, probes=10)
    made = petal.ClassicBloomFilter(bits=20_001, probes=10)
    made.update(str(n) for n in range(1000))
    assert petal.open(tmp_path / "f") == made
    with pytest.raises(ValueError, match="bits=: a static filter"):
        petal.build([tmp_path / "a"], tmp_path / "f", type="static", bits=20_001)
    with pytest.raises(ValueError, match="probes=: a bloom filter"):
        petal.build([tmp_path / "a"], tmp_path / "f", bits=20_001, probes=17)


@pytest.mark.parametrize(("cls", "_bits"), CLASSES)
def test_impossible_sizes_are_errors(cls, _bits):
    with pytest.raises(TypeError, match="capacity="):
        cls()
    with pytest.raises(TypeError, match="capacity="):
        cls(fpr=0.01)
    with pytest.raises(ValueError, match="probes"):
        cls(bits=1000)
    with pytest.raises(ValueError, match="probes"):
        cls(bits=1000, probes=65)
    with pytest.raises(ValueError, match="bits|blocks"):
        cls(bits=0, probes=3)
    with pytest.raises(ValueError, match="rate"):
        cls(1000, 0.01, bits=1000, probes=3)
    with pytest.raises(petal.MemoryLimitError, match="lower bits="):
        cls(bits=1_000_000, probes=3, memory_limit=1000)


@pytest.mark.parametrize(("cls", "_bits"), CLASSES)
def test_least_space_keeps_the_rate_and_is_never_larger(cls, _bits, tmp_path):
    least, default = cls(100_000, 0.001, least_space=True), cls(100_000, 0.001, least_space=False)
    assert default.info()["layout"] == cls(100_000, 0.001).info()["layout"]
    assert least.expected_fpr(100_000) <= 0.001
    if cls in (petal.BloomFilter, petal.CountingBloomFilter):
        assert least.size_bytes < default.size_bytes
        cls(100_000, 0.001, least_space=True, memory_limit=least.size_bytes)
        with pytest.raises(petal.MemoryLimitError):
            cls(100_000, 0.001, memory_limit=least.size_bytes)
    else:
        assert least.size_bytes == default.size_bytes
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1000)))
    least.update(str(n) for n in range(1000))
    arguments = {"type": least.type, "capacity": 100_000, "fpr": 0.001, "least_space": True}
    petal.build([tmp_path / "a"], tmp_path / "f", **arguments)
    assert petal.open(tmp_path / "f") == least
    assert cls(1000, least_space=True).target_fpr == 0.01


@pytest.mark.parametrize(("cls", "_bits"), CLASSES)
def test_least_space_excludes_other_sizes(cls, _bits, tmp_path):
    for arguments in ({"bits": 9999}, {"probes": 3}, {"memory_limit": 9999}):
        with pytest.raises(ValueError, match="least space"):
            cls(1000, least_space=True, **arguments)
    (tmp_path / "a").write_text("a\n")
    with pytest.raises(ValueError, match="least_space=True: .*leave out probes="):
        petal.build([tmp_path / "a"], tmp_path / "f", probes=3, least_space=True)
    with pytest.raises(ValueError, match="least_space=True: a static filter"):
        petal.build([tmp_path / "a"], tmp_path / "f", type="static", least_space=True)
