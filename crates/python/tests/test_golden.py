"""Golden files give the results in their manifests; filters equal those of the command line."""

import csv
import random
import re
import subprocess
import time
from pathlib import Path

import petal
import pytest

ROOT = Path(__file__).resolve().parents[3]
FOREIGN = ROOT / "testdata" / "foreign"
# Parquet files and JSON contain filters and are not filter files.
NOT_FILTERS = {"parquet-file", "go-bloom-json"}


def golden():
    with (FOREIGN / "manifest.tsv").open() as manifest:
        rows = csv.DictReader(manifest, delimiter="\t")
        return [row for row in rows if row["format"] not in NOT_FILTERS]


def lines(name):
    path = FOREIGN / "keys" / name
    # Read as bytes, because a CR is part of a line.
    return path.read_bytes().decode().split("\n")[:-1] if path.exists() else []


@pytest.mark.parametrize("row", golden(), ids=lambda row: row["file"])
def test_files_of_other_programs_give_their_results(row, tmp_path):
    path, options = FOREIGN / row["file"], {"key_type": row["keys"]}
    if row["format"] == "rbloom":
        with pytest.raises(petal.FormatError):
            petal.load(path)
        options["format"] = "rbloom"
    compressed = row["file"].endswith(".gz")
    made = [petal.load(path, **options), petal.from_bytes(path.read_bytes(), **options)]
    if compressed:
        with pytest.raises(petal.UnsupportedError, match="petal.load"):
            petal.open(path, **options)
    else:
        made.append(petal.open(path, **options))
    keys, results = lines(row["members"] + ".asked"), path.with_name(path.name + ".answers")
    for one in made:
        assert isinstance(one, petal.ForeignFilter) and one.type == "foreign"
        assert one.format == row["format"] and one.key_type == row["keys"]
        one.verify()
        # An inverted cascade contains the absent keys.
        if "inverted" not in row["file"]:
            assert all(one.contains_batch(lines(row["members"] + ".txt")))
        if results.exists():
            expect = [result == "1" for result in results.read_text().strip()]
            assert one.contains_batch(keys) == expect
            assert [key in one for key in keys] == expect
            if row["keys"] in ("int64", "int32"):
                numbers = [int(key) for key in keys if int(key) >= 0]
                some = [result for key, result in zip(keys, expect) if int(key) >= 0]
                assert one.contains_batch(numbers) == some
    if not compressed:
        assert made[0].to_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "testdata/native").iterdir()))
def test_files_of_version_1_are_read(name):
    path = ROOT / "testdata" / "native" / name
    for one in [petal.open(path), petal.load(path)]:
        one.verify()
        assert all(one.contains_batch([f"key-{number}" for number in range(40)]))
        assert one.to_bytes() == path.read_bytes()


# ---- Command line and Python ---------------------------------------------------------------------

TYPES = {
    "bloom": ([], lambda: petal.BloomFilter(5000, 0.001)),
    "classic": ([], lambda: petal.ClassicBloomFilter(5000, 0.001)),
    "counting": ([], lambda: petal.CountingBloomFilter(5000, 0.001)),
    "quotient": ([], lambda: petal.QuotientFilter(5000, 0.001)),
    "scalable": ([], lambda: petal.ScalableBloomFilter(5000, 0.001)),
    "windowed": (["--window", "1h"], lambda: petal.WindowedBloomFilter(5000, 0.001, window=3600)),
}


def random_lines(seed, count):
    rng = random.Random(seed)
    letters = [chr(c) for c in [*range(32, 127), 0xE4, 0x4E2D, 0x1F338]]
    made = {"".join(rng.choices(letters, k=rng.randrange(1, 90))) for _ in range(count)}
    return sorted(made)


@pytest.mark.parametrize("kind", TYPES)
def test_filters_equal_those_of_the_command_line(kind, program, tmp_path):
    flags, make = TYPES[kind]
    keys, others = random_lines(1, 3000), random_lines(2, 3000)
    numbers = [number for number in (random.Random(3).randrange(2**64) for _ in range(1000))
               if b"\n" not in number.to_bytes(8, "little")]
    file = b"".join(key.encode() + b"\n" for key in keys)
    file += b"".join(number.to_bytes(8, "little") + b"\n" for number in numbers)
    (tmp_path / "keys").write_bytes(file)
    built = tmp_path / "built.petal"
    build = [program, "build", "--type", kind, "-n", "5000", "-p", "0.001", *flags]
    subprocess.run([*build, tmp_path / "keys", "-o", built], check=True, capture_output=True)
    ours = make()
    ours.update(keys, numbers)
    theirs = petal.load(built)
    assert type(theirs) is type(ours)
    if kind != "windowed":  # The time is part of a windowed filter.
        assert theirs == ours
    for one in [ours, theirs, petal.open(built)]:
        assert all(one.contains_batch(keys)) and all(one.contains_batch(numbers))
        assert all(one.contains_batch([key.encode() for key in keys]))
        assert one.contains_batch(others) == ours.contains_batch(others)
    ours.save(tmp_path / "ours.petal")
    (tmp_path / "others").write_text("".join(other + "\n" for other in others))
    check = [program, "check", tmp_path / "ours.petal", tmp_path / "others"]
    passed = subprocess.run(check, check=False, capture_output=True).stdout.decode()
    assert passed.split("\n")[:-1] == [other for other in others if other in ours]
    assert abs(time.time() - ours.info().get("now", time.time())) < 3600


def test_example_of_the_static_layout_is_right():
    page = (ROOT / "docs/reference/format-static.md").read_text()
    filter = petal.StaticFilter(["one", "two", "three"], fpr=0.01)
    data, rows = filter.to_bytes()[4096:], re.findall(r"^0000(1...)  ([0-9a-f ]+)$", page, re.M)
    assert len(data) == 128 and len(rows) == 6
    for at, row in rows:
        assert data[int(at, 16) - 4096 :][:16] == bytes.fromhex(row), at
    for key in ["one", "two", "three", "four"]:
        found = petal.explain(filter, key)
        numbers = found["parts"][0]["numbers"]
        tail = f"{numbers['fingerprint']:07b} | {numbers['result']:07b}: {'present' if found['contains'] else 'absent'}"
        start = f"| {numbers['row']} | `{numbers['equation']:08x}` |"
        row = next(line for line in page.splitlines() if line.startswith(f"| `{key}` |"))
        assert f"`{found['hash'][2:]}`" in row and start in row and row.endswith(f"| {tail} |"), row
