"""`merge`: the same bytes as the program, and one exception for each reason that filters have no union."""

import io
import random
import subprocess
from pathlib import Path

import petal
import pytest


def run(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([program, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("type", ["bloom", "classic", "counting", "counting-classic", "quotient", "vector-quotient"])
def test_union_equals_that_of_the_program(tmp_path: Path, program: Path, type: str) -> None:
    rng = random.Random(type)
    paths, texts = [], []
    for number in range(4):
        texts.append([str(n) for n in rng.choices(range(5000), k=1000)])
        (tmp_path / "lines").write_text("\n".join(texts[-1]))
        paths.append(tmp_path / str(number))
        petal.build(tmp_path / "lines", paths[-1], type=type, capacity=10_000)
    report = petal.merge(*paths, out=tmp_path / "out")
    assert run(program, "merge", "-o", tmp_path / "shown", *paths).returncode == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "shown").read_bytes()
    union = petal.load(tmp_path / "out")
    assert all(all(union.contains_batch(text)) for text in texts)
    assert (report.strategy, report.kept) == ("merge", union.inserted)
    buffer = io.BytesIO()
    petal.merge(paths, out=buffer, progress=lambda *_: None)
    assert buffer.getvalue() == (tmp_path / "out").read_bytes()


@pytest.mark.parametrize("type", ["bloom", "classic"])
def test_filters_of_other_sizes_are_folded(tmp_path: Path, program: Path, type: str) -> None:
    a, b, c = paths = [tmp_path / name for name in "abc"]
    for path, bits in [(a, 1 << 16), (b, 1 << 17), (c, 3 << 15)]:
        (tmp_path / "lines").write_text(path.name)
        petal.build(tmp_path / "lines", path, type=type, bits=bits, probes=4)
    with pytest.warns(UserWarning, match="^folded from 16 KiB to 8 KiB"):
        petal.merge(b, a, out=tmp_path / "out")
    assert petal.load(tmp_path / "out").contains_batch(["a", "b"]) == [True, True]
    with pytest.raises(petal.IncompatibleError, match=r"c: the filters would be folded to 4 KiB.*fold=True"):
        petal.merge(a, c, out=tmp_path / "small")
    with pytest.warns(UserWarning, match="folded"):
        petal.merge(*paths, out=tmp_path / "small", fold=True)
    assert run(program, "merge", "-q", "--fold", "-o", tmp_path / "shown", *paths).returncode == 0
    assert (tmp_path / "small").read_bytes() == (tmp_path / "shown").read_bytes()


def test_filters_of_other_programs_are_merged(tmp_path: Path, program: Path) -> None:
    for name in "ab":
        filter = petal.ForeignFilter("guava", 1000)
        filter.add(name)
        filter.save(tmp_path / name)
    petal.merge(tmp_path / "a", tmp_path / "b", out=tmp_path / "out")
    assert run(program, "merge", "-o", tmp_path / "shown", tmp_path / "a", tmp_path / "b").returncode == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "shown").read_bytes()
    assert petal.load(tmp_path / "out").contains_batch(["a", "b", "c"]) == [True, True, False]
    with pytest.raises(ValueError, match="fold=: only petal's own filters"):
        petal.merge(tmp_path / "a", tmp_path / "b", out=tmp_path / "out", fold=True)
    petal.BloomFilter(1000).save(tmp_path / "own")
    with pytest.raises(petal.IncompatibleError, match="own: "):
        petal.merge(tmp_path / "a", tmp_path / "own", out=tmp_path / "out")


def test_filters_without_a_union_are_refused(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("1\n2\n")
    make = {
        "bloom": {}, "classic": {"type": "classic"}, "seed": {"seed": 1}, "changed": {"key_transform": ["trim"]},
        "windowed": {"type": "windowed", "last": 100, "capacity": None},
    }
    for name, options in make.items():
        petal.build(lines, tmp_path / name, **{"capacity": 1000, **options})
    (tmp_path / "damaged").write_bytes(b"\0" * 300 + (tmp_path / "bloom").read_bytes()[300:])
    bits = bytearray((tmp_path / "bloom").read_bytes())
    bits[-70] ^= 1
    (tmp_path / "flipped").write_bytes(bits)
    for name, error, text in [
        ("classic", petal.IncompatibleError, "classic: "),
        ("seed", petal.IncompatibleError, "seed: "),
        ("changed", petal.IncompatibleError, "changed: .*changed by 'trim'"),
        ("flipped", petal.FormatError, "flipped: "),
        ("damaged", petal.FormatError, "damaged: "),
        ("lines", petal.FormatError, "lines: "),
        ("none", petal.MissingFileError, "none: "),
        (".", petal.InputError, "is a directory"),
    ]:
        with pytest.raises(error, match=text):
            petal.merge(tmp_path / "bloom", tmp_path / name, out=tmp_path / "out")
    with pytest.raises((petal.UnsupportedError, petal.IncompatibleError), match="windowed: "):
        petal.merge(tmp_path / "windowed", tmp_path / "windowed", out=tmp_path / "out")
    with pytest.raises(petal.MemoryLimitError, match="raise memory_limit="):
        petal.merge(tmp_path / "bloom", tmp_path / "bloom", out=tmp_path / "out", memory_limit=1000)
    with pytest.raises(ValueError, match="is the same file as the input"):
        petal.merge(tmp_path / "bloom", tmp_path / "seed", out=tmp_path / "bloom")
    with pytest.raises(TypeError, match="merge: expected at least one filter file"):
        petal.merge(out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_overfull_union_is_a_warning(tmp_path: Path) -> None:
    for name, first in [("a", 0), ("b", 1000)]:
        (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(first, first + 1000)))
        petal.build(tmp_path / "lines", tmp_path / name, capacity=1000)
    with pytest.warns(UserWarning, match="planned for 1,000 keys and has about"):
        petal.merge(tmp_path / "a", tmp_path / "b", out=tmp_path / "out")
