"""Distributed jobs, with engines that run on this machine."""

import contextlib
import gzip
import os
import pathlib
import pickle
import random
import shutil
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from filter_files import assert_equal_except_inserted

import petal
from petal._distributed import folders, jobs, stages, tasks
from petal._petal import ranges


class LocalEngine:
    """Runs one task after the other, each of them twice."""

    slots = 3
    fetch = staticmethod(jobs.same_path)

    def map(self, function, items):
        items = list(items)
        once = [function(item) for item in items]
        assert [function(item) for item in items] == once
        return once


class ProcessEngine:
    """Runs tasks in `slots` processes of this machine."""

    fetch = staticmethod(jobs.same_path)

    def __init__(self, slots):
        self.slots = slots

    def map(self, function, items):
        with ProcessPoolExecutor(self.slots, mp_context=get_context("spawn")) as pool:
            return list(pool.map(function, items))


def distinct(lines):
    return list(dict.fromkeys(lines))


def read_output(folder):
    assert (folder / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))


def to_bytes(lines):
    return b"".join(line.encode() + b"\n" for line in lines)


@pytest.fixture
def files(tmp_path):
    rng = random.Random(7)
    made = []
    for name, count in ("a1", 700), ("a2", 300), ("b1", 500), ("b2", 400):
        lines = [f"line {rng.randrange(900)}" * rng.randrange(1, 4) for _ in range(count)]
        path = tmp_path / name
        end = "\n" if rng.random() < 0.5 else ""
        path.write_text("\n".join(lines) + end)
        made.append((path, lines))
    return made


def leftovers(folder):
    """Returns temporary files and work folders."""
    return list(folder.glob(".petal-*"))


MEMORY = 16 << 20


@pytest.mark.parametrize("shards", [None, 0, 1, 4])
@pytest.mark.parametrize(("size", "partitions"), [(300, None), (4000, 5), (None, 1)])
def test_operations_equal_pythons_sets(files, tmp_path, size, partitions, shards):
    (a1, x1), (a2, x2), (b1, y1), (b2, y2) = files
    options = {"memory_limit": MEMORY, "range_bytes": size, "partitions": partitions, "shards": shards}
    a, b = x1 + x2, set(y1 + y2)
    expected = {
        "common": [line for line in distinct(a) if line in b],
        "diff": [line for line in distinct(a) if line not in b],
        "dedup": distinct(a),
    }
    for operation, kept in expected.items():
        out = tmp_path / operation
        others = [] if operation == "dedup" else [[b1, str(b2)]]
        report = getattr(jobs, operation)(LocalEngine(), [a1, a2], *others, out, **options)
        assert read_output(out) == to_bytes(kept), operation
        assert (report.lines, report.kept) == (len(a), len(kept))
        assert report.candidates >= len(kept) if operation == "common" else report.candidates
        assert report.bytes_through_work > 0 and report.filter_bytes > 0
        assert report.shards == (shards or 0)
        counted = getattr(jobs, operation)(
            LocalEngine(), [a1, a2], *others, None, work=tmp_path / "work", **options
        )
        assert (counted.kept, counted.candidates > 0) == (len(kept), True)
        assert "take" not in counted.seconds
    assert not leftovers(tmp_path) and not leftovers(tmp_path / "work")


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("seed", range(3))
def test_selections_equal_those_of_one_machine(tmp_path, seed, shards):
    rng = random.Random(seed)
    paths = [tmp_path / str(number) for number in range(5)]
    for path in paths:
        kinds = rng.choice([3, 60, 600])
        lines = [f"line {rng.randrange(kinds)}\n" * rng.choice([1, 1, 3]) for _ in range(rng.choice([0, 1, 400]))]
        path.write_text("".join(lines))
    a, *others = paths
    options = {"memory_limit": MEMORY, "range_bytes": 500, "shards": shards}
    for operation, files, more in [
        *(("common", [a, others], {"at_least": number}) for number in range(1, 5)),
        ("symdiff", [a, others[0]], {}),
        ("symdiff", [paths[:2], paths[2:]], {}),
        ("dedup", [paths], {"only_duplicates": True}),
        ("dedup", [paths], {"only_unique": True}),
    ]:
        one, out = tmp_path / "one", tmp_path / "out"
        flat = [a, *others] if operation == "common" else files
        expected = getattr(petal, operation)(*flat, out=one, **more)
        report = getattr(jobs, operation)(LocalEngine(), *files, out, **options, **more)
        assert read_output(out) == one.read_bytes(), (operation, more)
        assert report.kept == expected.kept
        counted = getattr(jobs, operation)(LocalEngine(), *files, None, work=tmp_path, **options, **more)
        assert (counted.kept, counted.lines) == (expected.kept, report.lines)
        shutil.rmtree(out)
    assert not leftovers(tmp_path)


def test_an_input_of_at_least_may_be_the_output_of_a_job(tmp_path):
    (tmp_path / "a").write_text("1\n2\n3\n4\n")
    (tmp_path / "b").write_text("1\n2\n1\n")
    jobs.dedup(LocalEngine(), tmp_path / "b", tmp_path / "c", memory_limit=MEMORY, range_bytes=2)
    options = {"memory_limit": MEMORY, "range_bytes": 3}
    jobs.common(LocalEngine(), tmp_path / "a", [tmp_path / "b", tmp_path / "c"], tmp_path / "out", at_least=2, **options)
    assert read_output(tmp_path / "out") == b"1\n2\n"
    for number, text in [(3, "3 is more than the number of inputs in b, 2"), (0, "from 1 to 126"), (127, "126")]:
        with pytest.raises(ValueError, match=f"at_least=: .*{text}"):
            jobs.common(LocalEngine(), tmp_path / "a", [tmp_path / "b", tmp_path / "c"], tmp_path / "no", at_least=number)
    with pytest.raises(ValueError, match="no line is both"):
        jobs.dedup(LocalEngine(), tmp_path / "a", tmp_path / "no", only_duplicates=True, only_unique=True)
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("shards", [None, 2])
def test_json_records_are_compared_by_their_values(tmp_path, shards):
    rng = random.Random(5)
    for name in "ab":
        records = [f'{{"n":{n},"u":{{"url":"http://e{rng.randrange(200)}.Example/"}}}}' for n in range(600)]
        (tmp_path / name).write_text("\n".join(records))
    inputs = [tmp_path / "a", tmp_path / "b"]
    for operation, key in [("common", "/u/url"), ("diff", ["/u/url"]), ("symdiff", "/u/url"), ("dedup", ["/u/url", "/x"])]:
        files = inputs[:1] if operation == "dedup" else inputs
        options = {"json_key": key, "key_transform": ["lowercase"]}
        with pytest.warns(UserWarning, match="/x") if operation == "dedup" else contextlib.nullcontext():
            expected = getattr(petal, operation)(*files, **options)
        out = tmp_path / f"{operation}-{shards}"
        options |= {"memory_limit": MEMORY, "range_bytes": 999, "shards": shards}
        report = getattr(jobs, operation)(LocalEngine(), *files, out, **options)
        assert read_output(out) == b"".join(record + b"\n" for record in expected) and report.kept == expected.kept
    options = {"memory_limit": MEMORY, "range_bytes": 999, "json_key": "/u/url"}
    jobs.build(LocalEngine(), inputs[0], tmp_path / "f", capacity=600, **options)
    petal.build(inputs[0], tmp_path / "one", capacity=600, json_key="/u/url")
    assert_equal_except_inserted(tmp_path / "one", tmp_path / "f")
    found = jobs.check(LocalEngine(), inputs[1], tmp_path / "f", None, work=tmp_path, **options)
    assert found.kept == petal.check(tmp_path / "one", inputs[1], json_key="/u/url").kept > 0
    for wrong, text in [({"json_key": "u"}, "json_key=: "), ({"delimiter": b"\0"}, "json_key=: records of JSON end with LF")]:
        with pytest.raises(ValueError, match=text):
            jobs.dedup(LocalEngine(), inputs[0], tmp_path / "no", **(options | wrong))
    (tmp_path / "bad").write_text('{"u":{"url":1}}\n{"u":\n')
    with pytest.raises(petal.InputError, match="bad"):
        jobs.dedup(LocalEngine(), tmp_path / "bad", tmp_path / "no", **options)


@pytest.mark.parametrize("operation", ["common", "diff", "dedup"])
def test_filters_that_are_too_large_are_split_into_shards(files, tmp_path, monkeypatch, operation):
    (a1, x1), _, (b1, _), _ = files
    others = [] if operation == "dedup" else [b1]
    expected = tmp_path / "one"
    getattr(petal, operation)(a1, *others, out=expected)
    names = set()

    class RecordingEngine(LocalEngine):
        def map(self, function, items):
            names.add(function.func.__name__)
            return super().map(function, items)

    for bits, sharded in (6, False), (1 << 40, True):
        monkeypatch.setattr(jobs, "MIN_BITS_PER_LINE", bits)
        out = tmp_path / f"{operation}-{bits}"
        report = getattr(jobs, operation)(RecordingEngine(), a1, *others, out, memory_limit=MEMORY)
        assert read_output(out) == expected.read_bytes()
        assert report.shards == (LocalEngine.slots if sharded else 0)
        assert ("probe_shard" in names, "build_from_candidates" in names) == (
            sharded,
            not sharded and operation != "dedup",
        )
        names.clear()


def test_filter_that_fits_in_memory_is_not_split():
    estimate = {"wanted_bytes": 14 << 20, "lines": 8 << 20, "filter_memory": 100 << 20}
    side = jobs._Side("b", [], estimate, False, 1)
    assert side.whole_size()[0] == 14 << 20 and not side.is_too_large()
    estimate["filter_memory"] = 15 << 20  # two of them: 7.5 bits per line
    assert side.whole_size()[0] == 15 << 19 and not side.is_too_large()
    assert jobs._Side("a", [], estimate, True, 2).is_too_large()  # three of them: 5 bits per line
    estimate["filter_memory"] = 3 << 20
    assert side.is_too_large() and side.shards() == 5 and side.shard_size(5)[0] <= 3 << 20
    side = jobs._Side("b", [], estimate, False, 2)
    assert side.shards() == 10 and side.shard_size(5)[0] == 3 << 19


@pytest.mark.parametrize("operation", ["common", "diff", "dedup"])
def test_shards_that_fill_the_memory_fit_together(files, tmp_path, monkeypatch, operation):
    real = ranges.plan

    def more_than_fits(*args):
        return real(*args) | {"wanted_bytes": 1 << 30}

    monkeypatch.setattr(ranges, "plan", more_than_fits)
    others = [] if operation == "dedup" else [files[2][0]]
    getattr(petal, operation)(files[0][0], *others, out=tmp_path / "one")
    out = tmp_path / "out"
    report = getattr(
        jobs, operation)(LocalEngine(), files[0][0], *others, out, memory_limit=MEMORY, shards=1
    )
    assert read_output(out) == (tmp_path / "one").read_bytes()
    assert report.filter_bytes > MEMORY // (3 if operation == "common" else 6)


def test_part_names_sort_in_order():
    numbers = 0, 9, 99_999, 100_000, 16_777_215
    output = folders.Output(pathlib.Path("out"))
    parts = [output.part((number,)) for number in numbers]
    assert sorted(parts) == parts and parts[0] == "out/part-00000000"


def test_without_candidates_the_other_side_is_read_once(files, tmp_path):
    # One line, so that its filter has no false positives.
    (tmp_path / "other").write_text("other\n")
    read = []

    class RecordingEngine(LocalEngine):
        def map(self, function, items):
            read.extend(one[1] for item in items for one in item.get("ranges", []))
            return [function(item) for item in items]

    options = {"memory_limit": MEMORY, "range_bytes": 999, "slots": 1}
    for shards in None, 2:
        read.clear()
        a, b, out = files[0][0], tmp_path / "other", tmp_path / f"{shards}"
        report = jobs.common(RecordingEngine(), a, b, out, shards=shards, **options)
        assert (report.candidates, report.kept, report.lines) == (0, 0, 700)
        assert read_output(out) == b"" and len(list(out.glob("part-*"))) > 1
        assert read.count(str(b)) == 1


def test_slots_argument_sets_the_number_of_tasks(files, tmp_path):
    class EngineWithoutSlots(LocalEngine):
        @property
        def slots(self):
            raise ValueError("no workers")

        def map(self, function, items):
            counts.append(len(items))
            return super().map(function, items)

    counts = []
    a, b = files[0][0], files[2][0]
    options = {"memory_limit": MEMORY, "range_bytes": 100}
    for slots in 2, 5:
        counts.clear()
        jobs.common(EngineWithoutSlots(), a, b, tmp_path / f"{slots}", slots=slots, **options)
        assert max(counts) == slots * stages.TASKS_PER_SLOT
    for slots in 0, -1:
        with pytest.raises(ValueError, match="slots=: expected an integer of at least 1, found"):
            jobs.common(EngineWithoutSlots(), a, b, tmp_path / "out", slots=slots, **options)
    with pytest.raises(ValueError, match="no workers"):
        jobs.build(EngineWithoutSlots(), a, tmp_path / "out", memory_limit=MEMORY)
    assert not (tmp_path / "out").exists() and not leftovers(tmp_path)


def test_small_inputs_are_split_for_every_slot(tmp_path):
    path = tmp_path / "lines"
    with path.open("wb") as file:
        file.truncate(40 << 20)
    assert len(jobs._split([str(path)], None, 3)) == 12
    assert len(jobs._split([str(path)], None, 100)) == 40  # of one megabyte, the minimum
    assert len(jobs._split([str(path)], 20 << 20, 100)) == 2


def test_groups_are_consecutive_and_complete():
    for count in range(9):
        for maximum in range(1, 11):
            groups = stages.split_evenly(range(count), maximum)
            assert [one for group in groups for one in group] == list(range(count))
            assert len(groups) == (min(count, maximum) or 1) and (all(groups) or not count)


def test_process_pool_and_compressed_file_give_the_same_lines(files, tmp_path):
    (a1, x1), _, (b1, y1), _ = files
    compressed = tmp_path / "b1.gz"
    compressed.write_bytes(gzip.compress(b1.read_bytes()))
    engine = ProcessEngine(2)
    jobs.common(engine, a1, compressed, tmp_path / "out", memory_limit=MEMORY, range_bytes=3000)
    assert read_output(tmp_path / "out") == to_bytes(line for line in distinct(x1) if line in set(y1))


def test_existing_output_is_not_overwritten(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000000").touch()
    with pytest.raises(FileExistsError, match="new or empty folder"):
        jobs.dedup(LocalEngine(), files[0][0], tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["part-00000000"]
    with pytest.raises(FileExistsError, match="new or empty folder"):
        jobs.dedup(LocalEngine(), files[0][0], tmp_path / "out" / "part-00000000")


def test_second_job_with_the_same_output_folder_is_refused(files, tmp_path):
    """A scheduler may retry while the first driver is still running."""
    a, lines = files[0]
    out = tmp_path / "out"

    class EngineStartingAnotherJob(LocalEngine):
        def map(self, function, items):
            with pytest.raises(FileExistsError, match="_CLAIMED: another job writes to this folder"):
                jobs.common(LocalEngine(), a, a, out, memory_limit=MEMORY)
            return super().map(function, items)

    jobs.dedup(EngineStartingAnotherJob(), a, out, memory_limit=MEMORY, range_bytes=3000)
    assert read_output(out) == to_bytes(distinct(lines))
    assert not (out / "_CLAIMED").exists()


def test_only_one_of_two_concurrent_jobs_writes(files, tmp_path, monkeypatch):
    """The other job finishes after this one has seen an empty folder, before it has its claim."""
    out, real = tmp_path / "out", folders.make_folder

    def meanwhile(path, option):
        monkeypatch.setattr(folders, "make_folder", real)
        jobs.dedup(LocalEngine(), files[0][0], out, memory_limit=MEMORY)
        return real(path, option)

    monkeypatch.setattr(folders, "make_folder", meanwhile)
    with pytest.raises(FileExistsError, match="new or empty folder"):
        jobs.common(LocalEngine(), files[0][0], files[2][0], out, memory_limit=MEMORY)
    assert read_output(out) == to_bytes(distinct(files[0][1]))


def test_concurrent_claim_of_another_job_is_kept(files, tmp_path, monkeypatch):
    out, real = tmp_path / "out", folders.make_folder

    def meanwhile(path, option):
        made = real(path, option)
        (out / "_CLAIMED").write_text("another")
        return made

    monkeypatch.setattr(folders, "make_folder", meanwhile)
    with pytest.raises(FileExistsError, match="_CLAIMED: another job writes to this folder"):
        jobs.dedup(LocalEngine(), files[0][0], out, memory_limit=MEMORY)
    assert (out / "_CLAIMED").read_text() == "another"


def test_replaced_claim_is_an_error(files, tmp_path):
    """Another job has taken the folder, because this one was thought dead."""
    out = tmp_path / "out"

    class EngineReplacingTheClaim(LocalEngine):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ == "write_lines":
                (out / "_CLAIMED").write_text("another")
            return done

    with pytest.raises(petal.InputError, match="_CLAIMED: removed while"):
        jobs.dedup(EngineReplacingTheClaim(), files[0][0], out, memory_limit=MEMORY)
    assert not (out / "_SUCCESS").exists() and list(out.glob("part-*"))
    assert (out / "_CLAIMED").read_text() == "another" and not leftovers(tmp_path)


@pytest.mark.parametrize("stray", ["part-00000099", "another"])
def test_unexpected_or_missing_part_is_an_error(files, tmp_path, stray):
    """A task of an earlier failed job may still write a part."""
    out = tmp_path / "out"

    class EngineAddingAFile(LocalEngine):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ == "write_lines":
                (out / stray).write_text("another")
            return done

    with pytest.raises(petal.InputError, match=f"{stray} is missing or from another"):
        jobs.dedup(EngineAddingAFile(), files[0][0], out, memory_limit=MEMORY)
    assert not (out / "_SUCCESS").exists() and not leftovers(tmp_path)

    class EngineLosingAPart(LocalEngine):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ == "write_lines":
                (lossy / "part-00000000").unlink()
            return done

    lossy = tmp_path / "lossy"
    with pytest.raises(petal.InputError, match="part-00000000 is missing"):
        jobs.dedup(EngineLosingAPart(), files[0][0], lossy, memory_limit=MEMORY)
    assert not lossy.exists()


def test_claim_that_cannot_be_written_is_removed(files, tmp_path, monkeypatch):
    monkeypatch.setattr(folders.socket, "gethostname", lambda: "\udc80")
    with pytest.raises(UnicodeEncodeError):
        jobs.dedup(LocalEngine(), files[0][0], tmp_path / "out", memory_limit=MEMORY)
    assert not (tmp_path / "out").exists()


def test_interrupt_at_the_end_leaves_no_output(files, tmp_path, monkeypatch):
    real = pathlib.Path.touch

    def interrupted(path, *args):
        real(path, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(pathlib.Path, "touch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jobs.dedup(LocalEngine(), files[0][0], tmp_path / "out", memory_limit=MEMORY)
    assert not (tmp_path / "out").exists()


def test_part_names_are_synced_before_success(files, tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def sync(file):
        synced.append(sorted(os.listdir(f"/proc/self/fd/{file}")))
        real(file)

    monkeypatch.setattr(os, "fsync", sync)
    jobs.dedup(LocalEngine(), files[0][0], tmp_path / "out", memory_limit=MEMORY, range_bytes=9999)
    parts = sorted(path.name for path in (tmp_path / "out").glob("part-*"))
    assert synced == [["_CLAIMED", *parts]]


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_temporary_files_of_a_killed_worker_are_removed(files, tmp_path, error):
    (tmp_path / "out").mkdir()

    class EngineWithKilledWorker(LocalEngine):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ in ("write_lines", "publish"):
                item = items[0]
                out = item["parts"][0][1] if "parts" in item else item["out"]
                for name in ".petal-a1B2c3", ".petal-12-0.tmp":
                    with open(os.path.join(os.path.dirname(out), name), "w") as file:
                        file.write("half")
                if error:
                    raise error("killed too often")
            return done

    def job():
        jobs.dedup(EngineWithKilledWorker(), files[0][0], tmp_path / "out", memory_limit=MEMORY)

    def build():
        jobs.build(EngineWithKilledWorker(), files[0][0], tmp_path / "filter", memory_limit=MEMORY)

    for one in job, build:
        if error:
            with pytest.raises(error):
                one()
        else:
            one()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == (set() if error else {"part-00000000", "_SUCCESS"})
    assert (tmp_path / "filter").exists() == (not error) and not leftovers(tmp_path)


def test_invalid_build_arguments_are_errors_before_the_work(files, tmp_path):
    class UnusedEngine(LocalEngine):
        def map(self, function, items):
            raise AssertionError("no task may run")

    with pytest.raises(ValueError, match="rate"):
        jobs.build(UnusedEngine(), files[0][0], tmp_path / "out", fpr=2)
    with pytest.raises(petal.InputError, match="is a folder"):
        jobs.build(UnusedEngine(), files[0][0], tmp_path)
    with pytest.raises(petal.InputError, match="filter.gz: the output is not compressed"):
        jobs.build(UnusedEngine(), files[0][0], tmp_path / "filter.gz")
    assert not leftovers(tmp_path)


def test_filter_is_written_through_a_symbolic_link(files, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/filter")
    jobs.build(LocalEngine(), files[0][0], tmp_path / "link", memory_limit=MEMORY)
    assert (tmp_path / "link").is_symlink() and petal.load(tmp_path / "there/filter")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("at", ["decide", "write_lines"])
def test_failed_job_leaves_no_files(files, tmp_path, error, at):
    class FailingEngine(LocalEngine):
        def map(self, function, items):
            if function.func.__name__ != at:
                return super().map(function, items)
            function(items[0])
            raise error("no workers left")

    with pytest.raises(error):
        jobs.dedup(
            FailingEngine(), files[0][0], tmp_path / "new", memory_limit=MEMORY, range_bytes=3000
        )
    assert not (tmp_path / "new").exists() and not leftovers(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(error):
        jobs.dedup(
            FailingEngine(), files[0][0], tmp_path / "empty", memory_limit=MEMORY, range_bytes=3000
        )
    assert not list((tmp_path / "empty").iterdir()) and not leftovers(tmp_path)


def test_generator_of_paths_is_accepted(files, tmp_path):
    (a1, x1), (a2, x2), (b1, y1), (b2, y2) = files
    kept = [line for line in distinct(x1 + x2) if line in set(y1 + y2)]
    paths = (path for path in (a1, a2)), (path for path in (b1, b2))
    report = jobs.common(LocalEngine(), *paths, tmp_path / "common", memory_limit=MEMORY)
    assert report.kept == len(kept) and read_output(tmp_path / "common") == to_bytes(kept)
    filter = tmp_path / "a.petal"
    built = jobs.build(LocalEngine(), (path for path in (a1, a2)), filter, memory_limit=MEMORY)
    assert built.lines == len(x1 + x2)
    paths = (path for path in (a1, a2))
    checked = jobs.check(LocalEngine(), paths, filter, tmp_path / "checked", memory_limit=MEMORY)
    assert checked.kept == len(x1 + x2)


def test_empty_inputs_give_empty_or_complete_results(files, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    a, lines = files[0]
    for shards in None, 3:
        for operation, kept in ("common", []), ("diff", distinct(lines)):
            out = tmp_path / f"{operation}-{shards}"
            report = getattr(
                jobs, operation)(LocalEngine(), a, empty, out, memory_limit=MEMORY, shards=shards
            )
            assert read_output(out) == to_bytes(kept) and report.lines == len(lines)
    assert jobs.common(LocalEngine(), empty, a, tmp_path / "none", memory_limit=MEMORY).lines == 0
    assert read_output(tmp_path / "none") == b""


def comparable(path):
    """Returns the filter of a file and its info, without the estimate of inserted keys."""
    filter = petal.load(path)
    info = filter.info()
    return filter, {name: info[name] for name in info if name != "inserted"}, filter.metadata


@pytest.mark.parametrize("capacity", [None, 5000])
def test_filter_equals_that_of_one_machine_for_any_split(files, tmp_path, capacity):
    inputs = [path for path, _ in files]
    options = {"capacity": capacity, "fpr": 0.003}
    petal.build(inputs, tmp_path / "one", **options)
    made = []
    for size, slots in (100, 7), (999, 2), (None, 1):
        engine = LocalEngine()
        engine.slots = slots
        out = tmp_path / f"{slots}"
        report = jobs.build(engine, inputs, out, memory_limit=MEMORY, range_bytes=size, **options)
        assert comparable(out) == comparable(tmp_path / "one")
        assert report.lines == (capacity or sum(len(lines) for _, lines in files))
        made.append(out.read_bytes())
    assert made[0] == made[1] == made[2]
    union = petal.load(out) | petal.load(tmp_path / "one")
    assert union == petal.load(tmp_path / "one")
    assert not leftovers(tmp_path)


def test_check_uses_a_filter_built_by_a_job(files, tmp_path):
    (a1, x1), (a2, x2), *_ = files
    jobs.build(LocalEngine(), [a1], tmp_path / "a.petal", memory_limit=MEMORY, range_bytes=999)
    built = petal.load(tmp_path / "a.petal")
    assert all(line in built for line in x1)
    for invert in False, True:
        out = tmp_path / f"checked-{invert}"
        options = {"memory_limit": MEMORY, "range_bytes": 500, "invert": invert}
        done = jobs.check(LocalEngine(), a2, tmp_path / "a.petal", out, **options)
        kept = [line for line in x2 if (line in built) != invert]
        assert read_output(out) == to_bytes(kept)
        assert (done.lines, done.kept) == (len(x2), len(kept))
        work = tmp_path / "work"
        counted = jobs.check(LocalEngine(), a2, tmp_path / "a.petal", None, work=work, **options)
        assert (counted.lines, counted.kept) == (len(x2), len(kept))


def test_errors_are_petal_errors(tmp_path):
    settings = (MEMORY, 1, None, 10, "", [])
    with pytest.raises(petal.InputError, match="missing"):
        ranges.split([str(tmp_path / "missing")], 100)
    with pytest.raises(ValueError, match="24 bytes"):
        ranges.build(settings, b"short", [], (100, 1, None), (str(tmp_path / "f"), None))
    with pytest.raises(petal.MemoryLimitError):
        ranges.build(settings, bytes(24), [], (1 << 40, 1, None), (str(tmp_path / "f"), None))


def test_signal_ends_a_task_and_leaves_no_file(tmp_path):
    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    settings, out = (MEMORY, 1, None, 10, "", []), tmp_path / "partial"
    (tmp_path / "lines").write_bytes(b"%098d\n" % 1 * 10_000)
    # More than can be read before the signal.
    cut = ranges.split([str(tmp_path / "lines")], 1 << 20) * 5000
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Interrupted):
            ranges.build(settings, bytes(24), cut, (1 << 20, 1, None), (str(out), None))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not out.exists()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(ranges.count, settings, bytes(24), cut[:3]).result()
    assert done["lines"] == 30_000


def test_filter_counts_against_the_memory_limit_and_is_verified_after_a_change(tmp_path):
    settings, keys = (MEMORY, 1, None, 10, "", []), ranges.public_keys()
    (tmp_path / "lines").write_bytes(b"a\nb\n")
    (one,) = ranges.split([str(tmp_path / "lines")], 100)
    path = tmp_path / "filter"

    def check():
        return ranges.check(settings, keys, one, str(path), False, None)

    petal.BloomFilter(1000, 0.01).save(path)
    assert check()["lines"] == check()["lines"] == 2
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    with pytest.raises(petal.FormatError, match="filter"):
        check()
    petal.BloomFilter(MEMORY, 0.01).save(path)
    with pytest.raises(petal.MemoryLimitError):
        check()


def test_input_that_changes_between_tasks_is_an_error(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    cut = ranges.split([str(path)], 100)
    path.write_bytes(b"a\nb\nc\n")
    with pytest.raises(petal.InputError, match="changed"):
        ranges.count((MEMORY, 1, None, 10, "", []), bytes(24), cut)


def test_errors_can_be_pickled():
    names = ["Petal", "Format", "Incompatible", "Full", "Unsupported", "MemoryLimit", "Input"]
    for name in names:
        kind = getattr(petal, f"{name}Error")
        back = pickle.loads(pickle.dumps(kind("one line")))
        assert (type(back), str(back)) == (kind, "one line")
        # Dask creates them in this way.
        assert isinstance(kind.__new__(kind, "one line"), petal.PetalError)


def test_each_error_is_one_line(files, tmp_path):
    a = files[0][0]
    a.parent.joinpath("file").touch()

    def check_error(kind, message, operation, *args, **options):
        with pytest.raises(kind, match=message) as raised:
            operation(LocalEngine(), *args, memory_limit=MEMORY, **options)
        assert "\n" not in str(raised.value)
        assert not leftovers(tmp_path)

    gone, out = tmp_path / "gone", tmp_path / "out"
    check_error(petal.InputError, "gone: cannot read", jobs.dedup, gone, out)
    check_error(petal.InputError, "gone: cannot read", jobs.common, a, gone, out)
    check_error(petal.MissingFileError, "gone: cannot read", jobs.check, a, gone, out)
    check_error(petal.FormatError, f"{a}: not a petal file", jobs.check, a, a, out)
    check_error(
        TypeError, "a path of a filter file, found BloomF", jobs.check, a, petal.BloomFilter(9), out
    )
    check_error(petal.InputError, r"cannot create the folder.*out=", jobs.dedup, a, tmp_path / "file" / "out")
    check_error(petal.InputError, r"cannot create the folder.*work=", jobs.dedup, a, out, work=tmp_path / "file")
    check_error(ValueError, "work=: ", jobs.dedup, a, None)
    check_error(ValueError, "delimiter=: ", jobs.dedup, a, out, delimiter=b"\r\n")
    check_error(petal.MemoryLimitError, "memory_limit=", jobs.build, a, out, capacity=10**9)
    with pytest.raises(petal.MemoryLimitError, match="memory_limit="):
        jobs.dedup(LocalEngine(), a, out, memory_limit=1000)
    assert not out.exists()


@pytest.mark.parametrize("shards", [None, 2])
def test_damaged_work_file_is_an_error(files, tmp_path, shards):
    """A byte is changed in the middle of one file that a task has written."""
    (a1, _), _, (b1, _), _ = files
    damaged = []

    class DamagingEngine(LocalEngine):
        def __init__(self, number):
            self.number = number

        def map(self, function, items):
            done = [function(item) for item in items]
            self.number -= 1
            if self.number == 0:
                out = items[0]["out"]
                path = out if isinstance(out, str) else out[-1] or out[0]
                with open(path, "r+b") as file:
                    at = os.path.getsize(path) // 2
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ 4]))
                damaged.append(function.func.__name__)
            return done

    for number in range(1, 20):
        with pytest.raises(petal.PetalError) as raised:
            jobs.diff(
                DamagingEngine(number), a1, b1, tmp_path / "out", memory_limit=MEMORY, range_bytes=900,
                shards=shards,
            )
        assert "\n" not in str(raised.value) and f"{tmp_path}: work file " in str(raised.value)
        if damaged[-1] == "decide":
            break
    sharded = ["hash_lines", "hash_lines", "build_shard", "build_shard", "probe_shard"]
    first = sharded if shards else ["build", "union"] * 2
    rest = ["select", "build_from_candidates", "union", "select", "decide"]
    assert damaged == first + rest


def test_worker_that_does_not_see_the_folders_is_an_error(files, tmp_path):
    class EngineWithHiddenFolder(LocalEngine):
        def map(self, function, items):
            os.rename(tmp_path / "out", tmp_path / "hidden")
            try:
                return super().map(function, items)
            finally:
                os.rename(tmp_path / "hidden", tmp_path / "out")

    with pytest.raises(petal.InputError, match=r"out: not found by the worker on .* out= "):
        jobs.dedup(EngineWithHiddenFolder(), files[0][0], tmp_path / "out", memory_limit=MEMORY)


@pytest.mark.parametrize("stage", ["check", "select", "probe_shard"])
def test_missing_work_folder_is_an_error_where_filters_are_copied(files, tmp_path, stage):
    near = tmp_path / "near"
    near.mkdir()

    class CopyingEngine(LocalEngine):
        fetch = staticmethod(lambda path: tasks.local_copy(path, str(near)))

        def map(self, function, items):
            if function.func.__name__ != stage:
                return super().map(function, items)
            (work,) = (tmp_path / "work").iterdir()
            os.rename(work, tmp_path / "hidden")
            try:
                return super().map(function, items)
            finally:
                os.rename(tmp_path / "hidden", work)

    a, b = files[0][0], files[2][0]
    petal.build(a, tmp_path / "filter")
    options = {"memory_limit": MEMORY, "work": tmp_path / "work"}
    with pytest.raises(petal.InputError, match=r"not found by the worker on .* work= "):
        if stage == "check":
            jobs.check(CopyingEngine(), a, tmp_path / "filter", tmp_path / "out", **options)
        else:
            shards = 2 if stage == "probe_shard" else None
            jobs.common(CopyingEngine(), a, b, tmp_path / "out", shards=shards, **options)


def test_failed_copy_is_an_error_and_leaves_no_file(tmp_path, monkeypatch):
    work, near = tmp_path / ".petal-work-1", tmp_path / "near"
    work.mkdir()
    near.mkdir()
    (work / "f").write_text("filter")

    def full(path, part):
        with open(part, "w") as file:
            file.write("fil")
        raise OSError(28, "No space left on device", part)

    monkeypatch.setattr(shutil, "copyfile", full)
    for _ in range(3):
        with pytest.raises(petal.InputError, match="f: cannot copy .* No space left") as raised:
            tasks.local_copy(str(work / "f"), str(near))
        assert "\n" not in str(raised.value)
    assert os.listdir(near / ".petal-work-1") == ["f.lock"]


def test_concurrent_tasks_make_one_copy(tmp_path, monkeypatch):
    work, near = tmp_path / ".petal-work-1", tmp_path / "near"
    work.mkdir()
    near.mkdir()
    (work / "f").write_text("filter")
    copies, real, barrier = [], shutil.copyfile, threading.Barrier(8)

    def slowly(path, part):
        copies.append(part)
        threading.Event().wait(0.2)
        real(path, part)

    def copy_file(_):
        barrier.wait()
        return tasks.local_copy(str(work / "f"), str(near))

    monkeypatch.setattr(shutil, "copyfile", slowly)
    with ThreadPoolExecutor(8) as pool:
        (copy,) = set(pool.map(copy_file, range(8)))
    assert len(copies) == 1 and open(copy).read() == "filter"


def test_copies_are_made_once_and_removed_after_their_job(tmp_path):
    near = tmp_path / "near"
    near.mkdir()
    work = [tmp_path / f".petal-work-{number}" for number in range(2)]
    for number, folder in enumerate(work):
        folder.mkdir()
        (folder / "f").write_text(f"{number}")
    copies = [tasks.local_copy(str(folder / "f"), str(near)) for folder in work]
    assert [open(copy).read() for copy in copies] == ["0", "1"]
    (work[0] / "f").write_text("changed")
    assert tasks.local_copy(str(work[0] / "f"), str(near)) == copies[0]
    assert open(copies[0]).read() == "0"
    (work[0] / "f").unlink()
    work[0].rmdir()
    (work[1] / "g").touch()
    assert os.path.exists(tasks.local_copy(str(work[1] / "g"), str(near)))
    assert [os.path.exists(copy) for copy in copies] == [False, True]
    assert len(list(near.glob(".petal-work-*"))) == 2


def test_operations_on_changed_lines_equal_those_of_one_machine(tmp_path):
    rng = random.Random(3)
    for name in "a", "b":
        starts = ["http://", "https://", "https://www."]
        hosts = [f"{rng.choice(starts)}Ex{rng.randrange(300)}.com/" for _ in range(900)]
        (tmp_path / name).write_text("".join(host + rng.choice(["\n", "\r\n"]) for host in hosts))
    inputs, changes = [tmp_path / "a", tmp_path / "b"], ["trim", "url-surt"]
    for shards in None, 2:
        for operation in "common", "diff", "dedup":
            files = inputs[:1] if operation == "dedup" else inputs
            options = {"memory_limit": MEMORY, "range_bytes": 999, "shards": shards, "key_transform": changes}
            out = tmp_path / f"{operation}-{shards}"
            done = getattr(jobs, operation)(LocalEngine(), *files, out, **options)
            expected = getattr(petal, operation)(*files, out=tmp_path / "one", key_transform=changes, text=True)
            assert read_output(out) == (tmp_path / "one").read_bytes(), operation
            assert done.kept == expected.kept and (tmp_path / "one").stat().st_size
    jobs.build(LocalEngine(), inputs[0], tmp_path / "f", memory_limit=MEMORY, key_transform=changes)
    petal.build(inputs[0], tmp_path / "one.petal", key_transform=changes, text=True)
    assert petal.load(tmp_path / "f") == petal.load(tmp_path / "one.petal")
    assert petal.load(tmp_path / "f").key_transform == changes
    # A check uses the list that the filter records, and refuses another.
    jobs.check(LocalEngine(), inputs[1], tmp_path / "f", tmp_path / "checked", memory_limit=MEMORY, range_bytes=999)
    petal.check(tmp_path / "f", inputs[1], out=tmp_path / "one", text=True)
    assert read_output(tmp_path / "checked") == (tmp_path / "one").read_bytes()
    with pytest.raises(petal.IncompatibleError, match="changed by 'trim,url-surt', not by 'trim'"):
        jobs.check(LocalEngine(), inputs[1], tmp_path / "f", None, work=tmp_path, key_transform=["trim"])
    with pytest.raises(ValueError, match="key_transform=: 'urls': unknown transform"):
        jobs.dedup(LocalEngine(), inputs[0], tmp_path / "none", key_transform=["urls"])
    assert not (tmp_path / "none").exists() and not leftovers(tmp_path)
