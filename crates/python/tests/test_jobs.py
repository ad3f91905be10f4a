"""Jobs past one machine, on an engine of processes."""

import gzip
import random

import pytest

import petal
from petal import _jobs
from petal._petal import ranges


class Here:
    """An engine that does one task after the other, each of them twice."""

    slots = 3
    fetch = staticmethod(_jobs.same)

    def map(self, function, items):
        items = list(items)
        once = [function(item) for item in items]
        assert [function(item) for item in items] == once
        return once

    def publish(self, path):
        return path


def lines(text):
    return text.decode().split("\n")[:-1] if text.endswith(b"\n") else text.decode().split("\n")


def distinct(lines):
    return list(dict.fromkeys(lines))


def answer(folder):
    assert (folder / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))


def joined(lines):
    return b"".join(line.encode() + b"\n" for line in lines)


@pytest.fixture
def files(tmp_path):
    rng = random.Random(7)
    made = []
    for name, count in ("a1", 700), ("a2", 300), ("b1", 500), ("b2", 400):
        words = [f"line {rng.randrange(900)}" * rng.randrange(1, 4) for _ in range(count)]
        path = tmp_path / name
        end = "\n" if rng.random() < 0.5 else ""
        path.write_text("\n".join(words) + end)
        made.append((path, words))
    return made


MEMORY = 16 << 20


@pytest.mark.parametrize("partitions", [None, 1, 5])
@pytest.mark.parametrize("size", [50, 4000, 1 << 20])
def test_every_verb_is_what_python_says(files, tmp_path, size, partitions):
    (a1, x1), (a2, x2), (b1, y1), (b2, y2) = files
    given = {"memory": MEMORY, "range_bytes": size, "partitions": partitions}
    a, b = x1 + x2, set(y1 + y2)
    expected = {
        "common": [line for line in distinct(a) if line in b],
        "diff": [line for line in distinct(a) if line not in b],
        "dedup": distinct(a),
    }
    for verb, kept in expected.items():
        out = tmp_path / verb
        others = [] if verb == "dedup" else [[b1, str(b2)]]
        report = getattr(_jobs, verb)(Here(), [a1, a2], *others, out, **given)
        assert answer(out) == joined(kept), verb
        assert (report.lines, report.kept) == (len(a), len(kept))
        assert report.candidates >= len(kept) if verb == "common" else report.candidates
        assert report.bytes_through_work > 0 and report.filter_bytes > 0
    assert not list(tmp_path.glob(".petal-work-*"))


def test_processes_do_it_too_and_packed_files_are_whole(files, tmp_path):
    (a1, x1), _, (b1, y1), _ = files
    packed = tmp_path / "b1.gz"
    packed.write_bytes(gzip.compress(b1.read_bytes()))
    engine = _jobs.Processes(2)
    _jobs.common(engine, a1, packed, tmp_path / "out", memory=MEMORY, range_bytes=3000)
    assert answer(tmp_path / "out") == joined(line for line in distinct(x1) if line in set(y1))


def test_an_answer_is_not_written_over(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000").touch()
    with pytest.raises(FileExistsError, match="new or empty folder"):
        _jobs.dedup(Here(), files[0][0], tmp_path / "out")


def test_a_job_that_fails_leaves_no_success_and_no_work(files, tmp_path):
    class Broken(Here):
        def map(self, function, items):
            if function.__name__ == "exact":
                raise RuntimeError("no workers left")
            return super().map(function, items)

    with pytest.raises(RuntimeError):
        _jobs.dedup(Broken(), files[0][0], tmp_path / "out", memory=MEMORY)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert not list(tmp_path.glob(".petal-work-*"))


def test_empty_inputs(files, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    a, words = files[0]
    for verb, kept in ("common", []), ("diff", distinct(words)):
        getattr(_jobs, verb)(Here(), a, empty, tmp_path / verb, memory=MEMORY)
        assert answer(tmp_path / verb) == joined(kept)
    assert _jobs.common(Here(), empty, a, tmp_path / "none", memory=MEMORY).lines == 0
    assert answer(tmp_path / "none") == b""


def test_a_filter_built_by_many_is_asked_by_many(files, tmp_path):
    (a1, x1), (a2, x2), *_ = files
    report = _jobs.build(Here(), [a1], tmp_path / "a.petal", memory=MEMORY, range_bytes=999)
    built = petal.load(str(tmp_path / "a.petal"))
    assert all(line in built for line in x1) and report.filter_bytes > 0
    out = tmp_path / "checked"
    done = _jobs.check(Here(), a2, tmp_path / "a.petal", out, memory=MEMORY, range_bytes=500)
    assert answer(out) == joined(line for line in x2 if line in built)
    assert done.lines == len(x2)
    _jobs.check(Here(), a2, tmp_path / "a.petal", tmp_path / "not", invert=True, memory=MEMORY)
    assert answer(tmp_path / "not") == joined(line for line in x2 if line not in built)


def test_errors_are_of_petals_tree(tmp_path):
    settings = (MEMORY, 1, None, 10)
    with pytest.raises(petal.InputError, match="missing"):
        ranges.split([str(tmp_path / "missing")], 100)
    with pytest.raises(ValueError, match="24 bytes"):
        ranges.build(settings, b"short", [], (100, 1), (str(tmp_path / "f"), None))
    with pytest.raises(petal.MemoryCapError):
        ranges.build(settings, bytes(24), [], (1 << 40, 1), (str(tmp_path / "f"), None))
