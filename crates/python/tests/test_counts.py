"""`at_least`, `symdiff`, `only_duplicates`, `only_unique` and `count`: same results as a `Counter`, same bytes as the
program."""

import io
import json
import random
import subprocess
from collections import Counter
from pathlib import Path

import petal
import pytest


@pytest.fixture(params=range(4))
def files(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[list[Path], list[list[bytes]]]:
    """Five files of lines, and their lines."""
    rng = random.Random(request.param)
    paths, texts = [], []
    for number in range(5):
        kinds = rng.choice([3, 200, 4000])
        text = [b"\xff" * (n % 3) + b"%d" % n for n in rng.choices(range(kinds), k=rng.choice([1, 300, 5000]))]
        path = tmp_path / str(number)
        path.write_bytes(b"\n".join(text) + b"\n" * rng.randrange(2))
        paths.append(path)
        texts.append(text)
    return paths, texts


def test_at_least_equals_a_counter(files: tuple) -> None:
    paths, (first, *others) = files
    number_of = Counter(line for text in others for line in set(text))
    for at_least in range(1, 5):
        expected = [line for line in dict.fromkeys(first) if number_of[line] >= at_least]
        assert list(petal.common(*paths, at_least=at_least, memory_limit="8M")) == expected
    assert list(petal.common(*paths)) == list(petal.common(*paths, at_least=4))


def test_selections_equal_a_counter(files: tuple) -> None:
    paths, texts = files
    lines = [line for text in texts for line in text]
    counts, last = Counter(lines), list(dict.fromkeys(reversed(lines)))[::-1]
    for options, expected in [
        ({"only_duplicates": True}, [line for line, count in counts.items() if count > 1]),
        ({"only_unique": True}, [line for line, count in counts.items() if count == 1]),
        ({}, list(counts)),
        ({"keep": "last"}, last),
    ]:
        assert list(petal.dedup(*paths, **options)) == expected
    a, b = set(texts[0]), set(texts[1])
    expected = [line for text in texts[:2] for line in dict.fromkeys(text) if line in a ^ b]
    assert list(petal.symdiff(*paths[:2])) == expected
    assert petal.symdiff(paths[0], paths[1], count=True).kept == len(expected)
    a, b = set(texts[0] + texts[1]), set(texts[2] + texts[3])
    expected = [line for line in dict.fromkeys(sum(texts[:4], [])) if line in a ^ b]
    assert list(petal.symdiff(paths[:2], paths[2:4])) == expected


def test_count_equals_a_counter(files: tuple, tmp_path: Path, program: Path) -> None:
    paths, texts = files
    counts = Counter(line for text in texts for line in text)
    for options, flags, expected in [
        ({}, [], list(counts.items())),
        ({"sort": "count"}, ["--sort=count"], counts.most_common()),
        ({"top": 7}, ["--top=7"], counts.most_common(7)),
        ({"min_count": 3}, ["--min-count=3"], [pair for pair in counts.items() if pair[1] >= 3]),
    ]:
        report = petal.count(*paths, memory_limit="8M", **options)
        assert list(report) == list(report) == expected
        assert len(report) == report.kept == len(expected) and report.first_lines == counts.total()
        petal.count(paths, out=tmp_path / "out", **options)
        shown = subprocess.run([program, "count", *flags, *paths], capture_output=True, check=True).stdout
        assert (tmp_path / "out").read_bytes() == shown


def test_report_of_count_has_figures(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"b\0a\0b\0")
    report = petal.count(tmp_path / "a", delimiter=b"\0")
    assert dict(report) == {b"b": 2, b"a": 1}
    assert report.header is None and report.seconds > 0 and report.phases[0].what
    assert json.loads(json.dumps(report.as_dict()))["first_lines"] == 3
    buffer = io.BytesIO()
    written = petal.count(tmp_path / "a", delimiter=b"\0", out=buffer)
    assert buffer.getvalue() == b"2\tb\0" + b"1\ta\0" and len(written) == 2
    with pytest.raises(petal.UnsupportedError, match="out="):
        iter(written)


def test_conflicting_arguments_are_refused(tmp_path: Path) -> None:
    a = tmp_path / "a"
    a.write_bytes(b"1\n")
    for arguments, text in [
        ({"only_duplicates": True, "only_unique": True}, "only_duplicates=, only_unique=: cannot be combined"),
        ({"keep": "last", "only_unique": True}, "keep=, only_unique=: cannot be combined"),
        ({"keep": "last", "approx": True}, "keep=: cannot be combined with approx="),
        ({"keep": "newest"}, "keep=: expected \"first\" or \"last\", found 'newest'"),
        ({"only_duplicates": True, "rest": tmp_path / "rest"}, "only_duplicates=: cannot be combined with rest="),
        ({"only_unique": True, "approx": True}, "only_unique=: cannot be combined with approx="),
    ]:
        with pytest.raises(ValueError, match=text):
            petal.dedup(a, **arguments)
    for number, text in [(2, "2 is more than the number of other files, 1"), (0, "from 1 to 126"), (127, "126")]:
        with pytest.raises(ValueError, match=f"at_least=: .*{text}"):
            petal.common(a, a, at_least=number)
    with pytest.raises(ValueError, match="at_least=: only for exact jobs"):
        petal.common(a, a, at_least=1, approx=True)
    wrong = [({"sort": "line"}, "sort=: expected"), ({"top": 0}, "top="), ({"min_count": 0}, "min_count=")]
    for arguments, text in wrong:
        with pytest.raises(ValueError, match=text):
            petal.count(a, **arguments)
    with pytest.raises(TypeError, match="count: expected at least one file"):
        petal.count()
