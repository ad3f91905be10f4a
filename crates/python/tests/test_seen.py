"""`seen`: the lines of a set that grows, the same files as the program's, and nothing lost if a job fails."""

import io
import json
import random
import subprocess
from pathlib import Path

import petal
import pytest


def run(program: Path, *arguments: str | Path, **options) -> bytes:
    return subprocess.run([program, *arguments], capture_output=True, check=True, **options).stdout


@pytest.mark.filterwarnings("ignore:.*results stay exact")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("memory_limit", ["8M", None])
def test_exact_jobs_return_what_a_set_does_not_have(tmp_path: Path, seed: int, memory_limit: str | None) -> None:
    rng, known = random.Random(seed), set()
    store = tmp_path / "seen.petal"
    for number in range(4):
        lines = [b"\xff%d" % n for n in rng.choices(range(rng.choice([5, 20_000, 500_000])), k=rng.choice([0, 200, 90_000]))]
        (tmp_path / "in").write_bytes(b"".join(line + b"\n" for line in lines))
        expected = [line for line in dict.fromkeys(lines) if line not in known]
        # A rate of one half: without the fingerprints, half of the lines would be missing.
        first = {"capacity": 1000, "fpr": 0.5, "exact": True} if number == 0 else {}
        tries = petal.seen(store, tmp_path / "in", dry_run=True, memory_limit=memory_limit, **first)
        assert list(tries) == expected and store.exists() == (number > 0)
        report = petal.seen(store, tmp_path / "in", memory_limit=memory_limit, **first)
        assert list(report) == expected
        assert (report.kept, report.first_lines, report.strategy) == (len(expected), len(lines), "seen")
        known.update(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "seen.petal", "seen.petal.exact"]


@pytest.mark.parametrize("exact", [False, True])
def test_the_program_continues_the_files_and_the_reverse(tmp_path: Path, program: Path, exact: bool) -> None:
    store = tmp_path / "seen.petal"
    days = [[b"%d" % n for n in range(day * 1000, day * 1000 + 1500)] for day in range(4)]
    known = set()
    for day, lines in enumerate(days):
        path = tmp_path / str(day)
        path.write_bytes(b"\n".join(lines))
        expected = [line for line in lines if line not in known]
        known.update(lines)
        if day % 2:
            found = run(program, "seen", store, path).splitlines()
        else:
            first = {"capacity": 100_000, "fpr": 1e-9, "exact": exact} if day == 0 else {}
            found = list(petal.seen(store, path, **first))
        assert found == expected
    # The same lines again: none is new for either.
    assert petal.seen(store, [tmp_path / "0", tmp_path / "1"], tmp_path / "3", count=True).kept == 0
    assert run(program, "seen", "-c", store, tmp_path / "2") == b"0\n"
    assert (tmp_path / "seen.petal.exact").exists() == exact


def test_fields_transforms_and_delimiters_are_those_of_the_program(tmp_path: Path, program: Path) -> None:
    (tmp_path / "a.csv").write_text("id,url\n1,http://a.example/\n2,http://A.example\n3,http://b.example/\n")
    (tmp_path / "b.jsonl").write_text('{"u":"http://b.example"}\n{"u":"http://c.example/"}\n')
    store = tmp_path / "urls.petal"
    report = petal.seen(store, tmp_path / "a.csv", capacity=100, column="url", key_transform=["url"])
    assert list(report) == [b"1,http://a.example/", b"3,http://b.example/"] and report.header == b"id,url"
    assert json.loads(petal.open(store).metadata)["key_transform"] == "url"
    # The names are those of the first job, and others are refused.
    assert run(program, "seen", "--dry-run", "--json-key", "/u", store, tmp_path / "b.jsonl") == b'{"u":"http://c.example/"}\n'
    assert list(petal.seen(store, tmp_path / "b.jsonl", json_key="/u")) == [b'{"u":"http://c.example/"}']
    with pytest.raises(petal.IncompatibleError, match="key_transform="):
        petal.seen(store, tmp_path / "b.jsonl", json_key="/u", key_transform=["trim"])
    keys = json.loads(petal.open(store).metadata)["keys"]
    assert len(keys) == 2 and "url" in keys[0] and "/u" in keys[1]
    (tmp_path / "z").write_bytes(b"x\0y\nz\0x")
    assert list(petal.seen(tmp_path / "z.petal", tmp_path / "z", capacity=9, delimiter=b"\0")) == [b"x", b"y\nz"]


def test_lines_are_forgotten_by_number_and_by_time(tmp_path: Path, program: Path) -> None:
    for name, lines in [("a", range(100)), ("b", range(1000, 2000))]:
        (tmp_path / name).write_text("".join(f"{n}\n" for n in lines))
    last = tmp_path / "last.petal"
    assert petal.seen(last, tmp_path / "a", last=100, fpr=1e-9).kept == 100
    assert petal.seen(last, tmp_path / "a").kept == 0
    petal.seen(last, tmp_path / "b", count=True)
    assert petal.seen(last, tmp_path / "a", last=100).kept == 100
    # The program's clock is set to the year 1970; this job uses today's.
    window = tmp_path / "window.petal"
    first = ["seen", "-c", "--window", "1h", "-n", "1000", "-p", "1e-9", "--now", "1000", window]
    assert run(program, *first, tmp_path / "a") == b"100\n"
    assert run(program, "seen", "-c", "--now", "1001", window, tmp_path / "a") == b"0\n"
    assert petal.seen(window, tmp_path / "a", window=3600).kept == 100
    assert petal.seen(window, tmp_path / "a").kept == 0


def test_a_job_that_fails_changes_nothing(tmp_path: Path) -> None:
    store, out = tmp_path / "seen.petal", tmp_path / "out"
    (tmp_path / "a").write_bytes(b"".join(b"%d\n" % n for n in range(200_000)))
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b\x08\0" + b"\xff" * 50)
    petal.seen(store, tmp_path / "a", capacity=1_000_000, exact=True, count=True)
    (tmp_path / "b").write_bytes(b"".join(b"b%d\n" % n for n in range(200_000)))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def stop(phase, done, total):
        raise KeyError("stop")

    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    for options, error in [
        ({"out": out, "progress": stop}, KeyError),
        ({"out": Full()}, OSError),
        ({"out": tmp_path / "none" / "out"}, petal.MissingFileError),
        ({"out": store}, ValueError),
    ]:
        with pytest.raises(error):
            petal.seen(store, tmp_path / "b", memory_limit="16M", **options)
    with pytest.raises(petal.InputError, match="bad.gz"):
        petal.seen(store, tmp_path / "b", tmp_path / "bad.gz", out=out)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert petal.seen(store, tmp_path / "b", out=out).kept == 200_000
    assert out.read_bytes() == (tmp_path / "b").read_bytes()


def test_wrong_files_and_arguments_are_refused(tmp_path: Path) -> None:
    store, lines = tmp_path / "seen.petal", tmp_path / "lines"
    lines.write_text("1\n2\n")
    with pytest.raises(ValueError, match=r"seen.petal: does not exist yet; specify with capacity= .* in all jobs$"):
        petal.seen(store, lines)
    with pytest.raises(ValueError, match="in the window$"):
        petal.seen(store, lines, window=60)
    for options, text in [
        ({"last": 5, "capacity": 5}, "last=: cannot be combined with window= or capacity="),
        ({"last": 5, "exact": True}, "exact=: cannot be combined with last="),
        ({"window": 5, "capacity": 5, "exact": True}, "exact=: cannot be combined with window="),
        ({"capacity": 5, "count": True, "out": tmp_path / "out"}, "count=True: lines are only counted"),
        ({"capacity": 5, "fpr": 2.0}, "false-positive rate: expected"),
        ({"capacity": 0}, "capacity=: expected an integer"),
        ({"capacity": 5, "resume": True}, "resume"),
    ]:
        with pytest.raises(TypeError if "resume" in options else ValueError, match=text):
            petal.seen(store, lines, **options)
    with pytest.raises(TypeError, match="seen: expected at least one file"):
        petal.seen(store, capacity=5)
    with pytest.raises(petal.MemoryLimitError, match="memory_limit="):
        petal.seen(store, lines, capacity=10**9, memory_limit="64M")
    with pytest.raises(petal.MissingFileError):
        petal.seen(store, tmp_path / "none", capacity=5)
    assert [path.name for path in tmp_path.iterdir()] == ["lines"]
    petal.seen(store, lines, capacity=1000, fpr=0.001)
    for options, text in [
        ({"capacity": 2000, "fpr": 0.01}, r"for 1,000 lines at 0.1 %; leave out capacity= and fpr=, or use another file"),
        ({"window": 60}, "leave out window="),
        ({"last": 1000}, "leave out last="),
        ({"exact": True}, "was created without exact=True"),
    ]:
        with pytest.raises(ValueError, match=text):
            petal.seen(store, lines, **options)
    assert petal.seen(store, lines, capacity=1000, fpr=0.001, count=True).kept == 0
    store.write_bytes(store.read_bytes()[:-9])
    with pytest.raises(petal.FormatError, match="seen.petal: "):
        petal.seen(store, lines)


def test_a_lost_or_wrong_log_is_an_error(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("1\n2\n")
    for name in "ab":
        petal.seen(tmp_path / name, lines, capacity=1000, exact=True)
    log = tmp_path / "a.exact"
    kept = log.read_bytes()
    log.write_bytes((tmp_path / "b.exact").read_bytes())
    with pytest.raises(petal.InputError, match="a.exact: does not belong to"):
        petal.seen(tmp_path / "a", lines)
    log.write_bytes(kept[:-1])
    with pytest.raises(petal.InputError, match="a.exact: it is shorter than its header says"):
        petal.seen(tmp_path / "a", lines)
    log.unlink()
    with pytest.raises(petal.InputError, match="a.exact: is missing"):
        petal.seen(tmp_path / "a", lines)
    log.write_bytes(kept)
    (tmp_path / "a").unlink()
    with pytest.raises(petal.InputError, match="a.exact: has 2 fingerprints, but its filter"):
        petal.seen(tmp_path / "a", lines, capacity=1000, exact=True)


def test_only_one_job_uses_a_filter_at_a_time(tmp_path: Path, program: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("1\n")
    petal.seen(tmp_path / "f", lines, capacity=1000)
    lines.write_text("1\n2\n")
    written = []

    class Writer:
        """The job waits in `write`, so it has the lock."""

        def write(self, data: bytes) -> None:
            written.append(data)
            done = subprocess.run([program, "seen", tmp_path / "f", lines], capture_output=True)
            assert done.returncode == 2 and b"another run is using it" in done.stderr
            with pytest.raises(petal.InputError, match="another job is using it"):
                petal.seen(tmp_path / "f", lines)
            assert list(petal.seen(tmp_path / "f", lines, dry_run=True)) == [b"2"]

    petal.seen(tmp_path / "f", lines, out=Writer())
    assert written == [b"2\n"] and not (tmp_path / "f.lock").exists()
    assert petal.seen(tmp_path / "f", lines, count=True).kept == 0
