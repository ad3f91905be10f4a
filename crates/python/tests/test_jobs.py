"""Jobs past one machine, on engines of this one."""

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

import petal
from petal import _jobs, _stages, _tasks
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


class Processes:
    """An engine of processes on this machine, `slots` of them."""

    fetch = staticmethod(_jobs.same)

    def __init__(self, slots):
        self.slots = slots

    def map(self, function, items):
        with ProcessPoolExecutor(self.slots, mp_context=get_context("spawn")) as pool:
            return list(pool.map(function, items))


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


def left(folder):
    """What is left of work folders."""
    return list(folder.glob(".petal-*"))


MEMORY = 16 << 20


@pytest.mark.parametrize("shards", [None, 0, 1, 4])
@pytest.mark.parametrize(("size", "partitions"), [(300, None), (4000, 5), (None, 1)])
def test_every_verb_is_what_python_says(files, tmp_path, size, partitions, shards):
    (a1, x1), (a2, x2), (b1, y1), (b2, y2) = files
    given = {"memory": MEMORY, "range_bytes": size, "partitions": partitions, "shards": shards}
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
        assert report.shards == (shards or 0)
        counted = getattr(_jobs, verb)(
            Here(), [a1, a2], *others, None, work=tmp_path / "work", **given
        )
        assert (counted.kept, counted.candidates > 0) == (len(kept), True)
        assert "take" not in counted.seconds
    assert not left(tmp_path) and not left(tmp_path / "work")


@pytest.mark.parametrize("verb", ["common", "diff", "dedup"])
def test_too_large_filters_are_sharded_there_and_back(files, tmp_path, monkeypatch, verb):
    (a1, x1), _, (b1, _), _ = files
    others = [] if verb == "dedup" else [b1]
    petal_says = tmp_path / "one"
    getattr(petal, verb)(a1, *others, out=petal_says)
    stages = set()

    class Told(Here):
        def map(self, function, items):
            stages.add(function.func.__name__)
            return super().map(function, items)

    for bits, sharded in (6, False), (1 << 40, True):
        monkeypatch.setattr(_jobs, "LEAST_BITS", bits)
        out = tmp_path / f"{verb}-{bits}"
        report = getattr(_jobs, verb)(Told(), a1, *others, out, memory=MEMORY)
        assert answer(out) == petal_says.read_bytes()
        assert report.shards == (Here.slots if sharded else 0)
        assert ("probe" in stages, "build_back" in stages) == (
            sharded,
            not sharded and verb != "dedup",
        )
        stages.clear()


def test_a_filter_that_has_room_is_not_cut():
    plan = {"wanted_bytes": 14 << 20, "lines": 8 << 20, "room": 100 << 20}
    side = _jobs._Side("b", [], plan, False, 1)
    assert side.whole()[0] == 14 << 20 and not side.is_too_large()
    plan["room"] = 15 << 20  # two of them are held: 7.5 bits a line
    assert side.whole()[0] == 15 << 19 and not side.is_too_large()
    assert _jobs._Side("a", [], plan, True, 2).is_too_large()  # three: 5 bits
    plan["room"] = 3 << 20
    assert side.is_too_large() and side.shards() == 5 and side.shard(5)[0] <= 3 << 20
    side = _jobs._Side("b", [], plan, False, 2)
    assert side.shards() == 10 and side.shard(5)[0] == 3 << 19


@pytest.mark.parametrize("verb", ["common", "diff", "dedup"])
def test_shards_that_fill_the_memory_have_room_together(files, tmp_path, monkeypatch, verb):
    real = ranges.plan

    def more_than_fits(*of):
        return real(*of) | {"wanted_bytes": 1 << 30}

    monkeypatch.setattr(ranges, "plan", more_than_fits)
    others = [] if verb == "dedup" else [files[2][0]]
    getattr(petal, verb)(files[0][0], *others, out=tmp_path / "one")
    out = tmp_path / "out"
    report = getattr(_jobs, verb)(Here(), files[0][0], *others, out, memory=MEMORY, shards=1)
    assert answer(out) == (tmp_path / "one").read_bytes()
    assert report.filter_bytes > MEMORY // (3 if verb == "common" else 6)


def test_parts_sort_in_their_order_however_many():
    numbers = 0, 9, 99_999, 100_000, 16_777_215
    answer = _jobs._Answer(pathlib.Path("out"))
    parts = [answer.part((number,)) for number in numbers]
    assert sorted(parts) == parts and parts[0] == "out/part-00000000"


def test_where_nothing_can_be_in_common_the_other_side_is_read_once(files, tmp_path):
    # So few that its filter finds nothing that is not there.
    (tmp_path / "other").write_text("other\n")
    read = []

    class Told(Here):
        def map(self, function, items):
            read.extend(one[1] for item in items for one in item.get("ranges", []))
            return [function(item) for item in items]

    given = {"memory": MEMORY, "range_bytes": 999, "slots": 1}
    for shards in None, 2:
        read.clear()
        a, b, out = files[0][0], tmp_path / "other", tmp_path / f"{shards}"
        report = _jobs.common(Told(), a, b, out, shards=shards, **given)
        assert (report.candidates, report.kept, report.lines) == (0, 0, 700)
        assert answer(out) == b"" and len(list(out.glob("part-*"))) > 1
        assert read.count(str(b)) == 1


def test_work_is_cut_for_the_slots_that_are_named(files, tmp_path):
    class Unknown(Here):
        @property
        def slots(self):
            raise ValueError("nobody knows")

        def map(self, function, items):
            most.append(len(items))
            return super().map(function, items)

    most = []
    a, b = files[0][0], files[2][0]
    given = {"memory": MEMORY, "range_bytes": 100}
    for slots in 2, 5:
        most.clear()
        _jobs.common(Unknown(), a, b, tmp_path / f"{slots}", slots=slots, **given)
        assert max(most) == slots * _stages.TASKS
    for slots in 0, -1:
        with pytest.raises(ValueError, match="slots=: expected a whole number of at least 1, found"):
            _jobs.common(Unknown(), a, b, tmp_path / "out", slots=slots, **given)
    with pytest.raises(ValueError, match="nobody knows"):
        _jobs.build(Unknown(), a, tmp_path / "out", memory=MEMORY)
    assert not (tmp_path / "out").exists() and not left(tmp_path)


def test_small_inputs_are_cut_so_that_every_slot_has_some(tmp_path):
    path = tmp_path / "lines"
    with path.open("wb") as file:
        file.truncate(40 << 20)
    assert len(_jobs._cut([str(path)], None, 3)) == 12
    assert len(_jobs._cut([str(path)], None, 100)) == 40  # of a megabyte, no less
    assert len(_jobs._cut([str(path)], 20 << 20, 100)) == 2


def test_groups_are_neighbours_and_all_there_is():
    for count in range(9):
        for most in range(1, 11):
            made = _stages.groups(range(count), most)
            assert [one for some in made for one in some] == list(range(count))
            assert len(made) == (min(count, most) or 1) and (all(made) or not count)


def test_processes_do_it_too_and_packed_files_are_whole(files, tmp_path):
    (a1, x1), _, (b1, y1), _ = files
    packed = tmp_path / "b1.gz"
    packed.write_bytes(gzip.compress(b1.read_bytes()))
    engine = Processes(2)
    _jobs.common(engine, a1, packed, tmp_path / "out", memory=MEMORY, range_bytes=3000)
    assert answer(tmp_path / "out") == joined(line for line in distinct(x1) if line in set(y1))


def test_an_answer_is_not_written_over(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000000").touch()
    with pytest.raises(FileExistsError, match="new or empty folder"):
        _jobs.dedup(Here(), files[0][0], tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["part-00000000"]
    with pytest.raises(FileExistsError, match="new or empty folder"):
        _jobs.dedup(Here(), files[0][0], tmp_path / "out" / "part-00000000")


def test_of_two_jobs_with_one_folder_the_second_is_refused_and_harms_nothing(files, tmp_path):
    """A scheduler tries again while the first driver still lives."""
    a, words = files[0]
    out = tmp_path / "out"

    class Second(Here):
        def map(self, function, items):
            with pytest.raises(FileExistsError, match="_CLAIMED: a job writes to this folder"):
                _jobs.common(Here(), a, a, out, memory=MEMORY)
            return super().map(function, items)

    _jobs.dedup(Second(), a, out, memory=MEMORY, range_bytes=3000)
    assert answer(out) == joined(distinct(words))
    assert not (out / "_CLAIMED").exists()


def test_two_jobs_that_begin_at_once_do_not_both_write(files, tmp_path, monkeypatch):
    """Both see an empty folder; the other one is done before this one has its claim."""
    out, real = tmp_path / "out", _jobs._folder

    def meanwhile(path, option):
        monkeypatch.setattr(_jobs, "_folder", real)
        _jobs.dedup(Here(), files[0][0], out, memory=MEMORY)
        return real(path, option)

    monkeypatch.setattr(_jobs, "_folder", meanwhile)
    with pytest.raises(FileExistsError, match="new or empty folder"):
        _jobs.common(Here(), files[0][0], files[2][0], out, memory=MEMORY)
    assert answer(out) == joined(distinct(files[0][1]))


def test_a_claim_of_the_same_moment_is_another_s(files, tmp_path, monkeypatch):
    out, real = tmp_path / "out", _jobs._folder

    def meanwhile(path, option):
        made = real(path, option)
        (out / "_CLAIMED").write_text("another")
        return made

    monkeypatch.setattr(_jobs, "_folder", meanwhile)
    with pytest.raises(FileExistsError, match="_CLAIMED: a job writes to this folder"):
        _jobs.dedup(Here(), files[0][0], out, memory=MEMORY)
    assert (out / "_CLAIMED").read_text() == "another"


def test_a_claim_that_was_taken_away_is_no_answer(files, tmp_path):
    """Somebody thought the job dead; what is there now is another's."""
    out = tmp_path / "out"

    class Robbed(Here):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ == "take":
                (out / "_CLAIMED").write_text("another")
            return done

    with pytest.raises(petal.InputError, match="_CLAIMED: was removed"):
        _jobs.dedup(Robbed(), files[0][0], out, memory=MEMORY)
    assert not (out / "_SUCCESS").exists() and list(out.glob("part-*"))
    assert (out / "_CLAIMED").read_text() == "another" and not left(tmp_path)


@pytest.mark.parametrize("stray", ["part-00000099", "another"])
def test_a_part_of_another_job_is_no_part_of_the_answer(files, tmp_path, stray):
    """Of a job that failed here before: its task was still at it."""
    out = tmp_path / "out"

    class Late(Here):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ == "take":
                (out / stray).write_text("another's")
            return done

    with pytest.raises(petal.InputError, match=f"{stray} is missing or another's"):
        _jobs.dedup(Late(), files[0][0], out, memory=MEMORY)
    assert not (out / "_SUCCESS").exists() and not left(tmp_path)

    class Lossy(Here):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ == "take":
                (lossy / "part-00000000").unlink()
            return done

    lossy = tmp_path / "lossy"
    with pytest.raises(petal.InputError, match="part-00000000 is missing"):
        _jobs.dedup(Lossy(), files[0][0], lossy, memory=MEMORY)
    assert not lossy.exists()


def test_a_claim_that_cannot_be_written_is_none(files, tmp_path, monkeypatch):
    monkeypatch.setattr(_jobs.socket, "gethostname", lambda: "\udc80")
    with pytest.raises(UnicodeEncodeError):
        _jobs.dedup(Here(), files[0][0], tmp_path / "out", memory=MEMORY)
    assert not (tmp_path / "out").exists()


def test_an_answer_is_there_or_not_whenever_ctrl_c_comes(files, tmp_path, monkeypatch):
    real = pathlib.Path.touch

    def interrupted(path, *given):
        real(path, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(pathlib.Path, "touch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _jobs.dedup(Here(), files[0][0], tmp_path / "out", memory=MEMORY)
    assert not (tmp_path / "out").exists()


def test_the_names_of_parts_are_durable_before_the_answer_is_there(files, tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def sync(file):
        synced.append(sorted(os.listdir(f"/proc/self/fd/{file}")))
        real(file)

    monkeypatch.setattr(os, "fsync", sync)
    _jobs.dedup(Here(), files[0][0], tmp_path / "out", memory=MEMORY, range_bytes=9999)
    parts = sorted(path.name for path in (tmp_path / "out").glob("part-*"))
    assert synced == [["_CLAIMED", *parts]]


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_what_a_killed_worker_left_beside_the_parts_goes(files, tmp_path, error):
    (tmp_path / "out").mkdir()

    class Killed(Here):
        def map(self, function, items):
            done = super().map(function, items)
            if function.func.__name__ in ("take", "publish"):
                item = items[0]
                out = item["takes"][0][1] if "takes" in item else item["out"]
                for name in ".petal-a1B2c3", ".petal-12-0.tmp":
                    with open(os.path.join(os.path.dirname(out), name), "w") as file:
                        file.write("half")
                if error:
                    raise error("killed too often")
            return done

    def job():
        _jobs.dedup(Killed(), files[0][0], tmp_path / "out", memory=MEMORY)

    def build():
        _jobs.build(Killed(), files[0][0], tmp_path / "filter", memory=MEMORY)

    for one in job, build:
        if error:
            with pytest.raises(error):
                one()
        else:
            one()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == (set() if error else {"part-00000000", "_SUCCESS"})
    assert (tmp_path / "filter").exists() == (not error) and not left(tmp_path)


def test_of_a_filter_what_is_wrong_is_told_before_the_work(files, tmp_path):
    class Idle(Here):
        def map(self, function, items):
            raise AssertionError("no work is to be done")

    with pytest.raises(ValueError, match="rate"):
        _jobs.build(Idle(), files[0][0], tmp_path / "out", rate=2)
    with pytest.raises(petal.InputError, match="is a folder"):
        _jobs.build(Idle(), files[0][0], tmp_path)
    assert not left(tmp_path)


def test_a_filter_appears_behind_a_link(files, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/filter")
    _jobs.build(Here(), files[0][0], tmp_path / "link", memory=MEMORY)
    assert (tmp_path / "link").is_symlink() and petal.load(tmp_path / "there/filter")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("at", ["exact", "take"])
def test_a_job_that_fails_leaves_nothing(files, tmp_path, error, at):
    class Broken(Here):
        def map(self, function, items):
            if function.func.__name__ != at:
                return super().map(function, items)
            function(items[0])
            raise error("no workers left")

    with pytest.raises(error):
        _jobs.dedup(Broken(), files[0][0], tmp_path / "new", memory=MEMORY, range_bytes=3000)
    assert not (tmp_path / "new").exists() and not left(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(error):
        _jobs.dedup(Broken(), files[0][0], tmp_path / "empty", memory=MEMORY, range_bytes=3000)
    assert not list((tmp_path / "empty").iterdir()) and not left(tmp_path)


def test_a_generator_of_paths_is_an_input(files, tmp_path):
    (a1, x1), (a2, x2), (b1, y1), (b2, y2) = files
    kept = [line for line in distinct(x1 + x2) if line in set(y1 + y2)]
    paths = (path for path in (a1, a2)), (path for path in (b1, b2))
    report = _jobs.common(Here(), *paths, tmp_path / "common", memory=MEMORY)
    assert report.kept == len(kept) and answer(tmp_path / "common") == joined(kept)
    filter = tmp_path / "a.petal"
    built = _jobs.build(Here(), (path for path in (a1, a2)), filter, memory=MEMORY)
    assert built.lines == len(x1 + x2)
    paths = (path for path in (a1, a2))
    checked = _jobs.check(Here(), paths, filter, tmp_path / "checked", memory=MEMORY)
    assert checked.kept == len(x1 + x2)


def test_empty_inputs(files, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    a, words = files[0]
    for shards in None, 3:
        for verb, kept in ("common", []), ("diff", distinct(words)):
            out = tmp_path / f"{verb}-{shards}"
            report = getattr(_jobs, verb)(Here(), a, empty, out, memory=MEMORY, shards=shards)
            assert answer(out) == joined(kept) and report.lines == len(words)
    assert _jobs.common(Here(), empty, a, tmp_path / "none", memory=MEMORY).lines == 0
    assert answer(tmp_path / "none") == b""


def facts(path):
    """All that a filter file says, but for its estimate of inserts."""
    filter = petal.load(path)
    info = filter.info()
    return filter, {name: info[name] for name in info if name != "inserted"}, filter.metadata


@pytest.mark.parametrize("capacity", [None, 5000])
def test_a_filter_is_that_of_one_machine_however_it_was_made(files, tmp_path, capacity):
    inputs = [path for path, _ in files]
    given = {"capacity": capacity, "rate": 0.003}
    petal.build(inputs, tmp_path / "one", **given)
    made = []
    for size, slots in (100, 7), (999, 2), (None, 1):
        engine = Here()
        engine.slots = slots
        out = tmp_path / f"{slots}"
        report = _jobs.build(engine, inputs, out, memory=MEMORY, range_bytes=size, **given)
        assert facts(out) == facts(tmp_path / "one")
        assert report.lines == (capacity or sum(len(words) for _, words in files))
        made.append(out.read_bytes())
    assert made[0] == made[1] == made[2]
    united = petal.load(out) | petal.load(tmp_path / "one")
    assert united == petal.load(tmp_path / "one")
    assert not left(tmp_path)


def test_a_filter_built_by_many_is_asked_by_many(files, tmp_path):
    (a1, x1), (a2, x2), *_ = files
    _jobs.build(Here(), [a1], tmp_path / "a.petal", memory=MEMORY, range_bytes=999)
    built = petal.load(tmp_path / "a.petal")
    assert all(line in built for line in x1)
    for invert in False, True:
        out = tmp_path / f"checked-{invert}"
        given = {"memory": MEMORY, "range_bytes": 500, "invert": invert}
        done = _jobs.check(Here(), a2, tmp_path / "a.petal", out, **given)
        kept = [line for line in x2 if (line in built) != invert]
        assert answer(out) == joined(kept)
        assert (done.lines, done.kept) == (len(x2), len(kept))
        work = tmp_path / "work"
        counted = _jobs.check(Here(), a2, tmp_path / "a.petal", None, work=work, **given)
        assert (counted.lines, counted.kept) == (len(x2), len(kept))


def test_errors_are_of_petals_tree(tmp_path):
    settings = (MEMORY, 1, None, 10)
    with pytest.raises(petal.InputError, match="missing"):
        ranges.split([str(tmp_path / "missing")], 100)
    with pytest.raises(ValueError, match="24 bytes"):
        ranges.build(settings, b"short", [], (100, 1, None), (str(tmp_path / "f"), None))
    with pytest.raises(petal.MemoryCapError):
        ranges.build(settings, bytes(24), [], (1 << 40, 1, None), (str(tmp_path / "f"), None))


def test_a_signal_ends_a_task_and_nothing_is_left(tmp_path):
    class Enough(Exception):
        pass

    def enough(*_):
        raise Enough

    settings, out = (MEMORY, 1, None, 10), tmp_path / "partial"
    (tmp_path / "lines").write_bytes(b"%098d\n" % 1 * 10_000)
    # More than is read before the signal comes: a partial would be there if all of it were.
    cut = ranges.split([str(tmp_path / "lines")], 1 << 20) * 5000
    before = signal.signal(signal.SIGALRM, enough)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Enough):
            ranges.build(settings, bytes(24), cut, (1 << 20, 1, None), (str(out), None))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not out.exists()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(ranges.count, settings, bytes(24), cut[:3]).result()
    assert done["lines"] == 30_000


def test_a_filter_counts_against_the_memory_and_is_examined_when_it_changed(tmp_path):
    settings, keys = (MEMORY, 1, None, 10), ranges.public_keys()
    (tmp_path / "lines").write_bytes(b"a\nb\n")
    (one,) = ranges.split([str(tmp_path / "lines")], 100)
    path = tmp_path / "filter"

    def ask():
        return ranges.check(settings, keys, one, str(path), False, None)

    petal.BloomFilter(1000, 0.01).save(path)
    assert ask()["lines"] == ask()["lines"] == 2
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    with pytest.raises(petal.FormatError, match="filter"):
        ask()
    petal.BloomFilter(MEMORY, 0.01).save(path)
    with pytest.raises(petal.MemoryCapError):
        ask()


def test_an_input_that_changed_between_tasks_is_an_error(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    cut = ranges.split([str(path)], 100)
    path.write_bytes(b"a\nb\nc\n")
    with pytest.raises(petal.InputError, match="changed"):
        ranges.count((MEMORY, 1, None, 10), bytes(24), cut)


def test_errors_travel_between_processes():
    names = ["Petal", "Format", "Incompatible", "Full", "Unsupported", "MemoryCap", "Input"]
    for name in names:
        kind = getattr(petal, f"{name}Error")
        back = pickle.loads(pickle.dumps(kind("one line")))
        assert (type(back), str(back)) == (kind, "one line")
        # As Dask does it.
        assert isinstance(kind.__new__(kind, "one line"), petal.PetalError)


def test_what_is_wrong_is_told_in_a_line(files, tmp_path):
    a = files[0][0]
    a.parent.joinpath("file").touch()

    def says(kind, words, verb, *args, **options):
        with pytest.raises(kind, match=words) as raised:
            verb(Here(), *args, memory=MEMORY, **options)
        assert "\n" not in str(raised.value)
        assert not left(tmp_path)

    gone, out = tmp_path / "gone", tmp_path / "out"
    says(petal.InputError, "gone: cannot read", _jobs.dedup, gone, out)
    says(petal.InputError, "gone: cannot read", _jobs.common, a, gone, out)
    says(petal.MissingFileError, "gone: cannot read", _jobs.check, a, gone, out)
    says(petal.FormatError, f"{a}: not a petal file", _jobs.check, a, a, out)
    says(TypeError, "the path of a filter file, found BloomF", _jobs.check, a, petal.BloomFilter(9), out)
    says(petal.InputError, r"cannot be made.*out=", _jobs.dedup, a, tmp_path / "file" / "out")
    says(petal.InputError, r"cannot be made.*work=", _jobs.dedup, a, out, work=tmp_path / "file")
    says(ValueError, "work=: ", _jobs.dedup, a, None)
    says(ValueError, "delimiter=: ", _jobs.dedup, a, out, delimiter=b"\r\n")
    says(petal.MemoryCapError, "memory=", _jobs.build, a, out, capacity=10**9)
    with pytest.raises(petal.MemoryCapError, match="memory="):
        _jobs.dedup(Here(), a, out, memory=1000)
    assert not out.exists()


@pytest.mark.parametrize("shards", [None, 2])
def test_damaged_work_is_an_error_and_never_an_answer(files, tmp_path, shards):
    """Whatever one task left for the next: a byte is changed in the middle of one file."""
    (a1, _), _, (b1, _), _ = files
    damaged = []

    class Damages(Here):
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
            _jobs.diff(
                Damages(number), a1, b1, tmp_path / "out", memory=MEMORY, range_bytes=900,
                shards=shards,
            )
        assert "\n" not in str(raised.value) and f"{tmp_path}: work file " in str(raised.value)
        if damaged[-1] == "exact":
            break
    first = ["keys", "keys", "build_shard", "build_shard", "probe"]
    there = first if shards else ["build", "union"] * 2
    assert damaged == [*there, "narrow", "build_back", "union", "narrow", "exact"]


def test_a_worker_that_does_not_see_the_folders_says_so(files, tmp_path):
    class Elsewhere(Here):
        def map(self, function, items):
            os.rename(tmp_path / "out", tmp_path / "hidden")
            try:
                return super().map(function, items)
            finally:
                os.rename(tmp_path / "hidden", tmp_path / "out")

    with pytest.raises(petal.InputError, match=r"out: not there for the worker on .* out= "):
        _jobs.dedup(Elsewhere(), files[0][0], tmp_path / "out", memory=MEMORY)


@pytest.mark.parametrize("stage", ["check", "narrow", "probe"])
def test_it_says_so_too_where_filters_are_copied(files, tmp_path, stage):
    near = tmp_path / "near"
    near.mkdir()

    class Copies(Here):
        fetch = staticmethod(lambda path: _tasks.copied(path, str(near)))

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
    given = {"memory": MEMORY, "work": tmp_path / "work"}
    with pytest.raises(petal.InputError, match=r"not there for the worker on .* work= "):
        if stage == "check":
            _jobs.check(Copies(), a, tmp_path / "filter", tmp_path / "out", **given)
        else:
            shards = 2 if stage == "probe" else None
            _jobs.common(Copies(), a, b, tmp_path / "out", shards=shards, **given)


def test_a_copy_that_has_no_room_is_told_in_a_line_and_leaves_nothing(tmp_path, monkeypatch):
    work, near = tmp_path / ".petal-work-1", tmp_path / "near"
    work.mkdir()
    near.mkdir()
    (work / "f").write_text("filter")

    def full(path, aside):
        with open(aside, "w") as file:
            file.write("fil")
        raise OSError(28, "No space left on device", aside)

    monkeypatch.setattr(shutil, "copyfile", full)
    for _ in range(3):
        with pytest.raises(petal.InputError, match="f: cannot be copied .* No space left") as raised:
            _tasks.copied(str(work / "f"), str(near))
        assert "\n" not in str(raised.value)
    assert os.listdir(near / ".petal-work-1") == ["f.lock"]


def test_tasks_that_want_a_copy_at_once_make_one(tmp_path, monkeypatch):
    work, near = tmp_path / ".petal-work-1", tmp_path / "near"
    work.mkdir()
    near.mkdir()
    (work / "f").write_text("filter")
    made, real, all_in = [], shutil.copyfile, threading.Barrier(8)

    def slowly(path, aside):
        made.append(aside)
        threading.Event().wait(0.2)
        real(path, aside)

    def want(_):
        all_in.wait()
        return _tasks.copied(str(work / "f"), str(near))

    monkeypatch.setattr(shutil, "copyfile", slowly)
    with ThreadPoolExecutor(8) as pool:
        (copy,) = set(pool.map(want, range(8)))
    assert len(made) == 1 and open(copy).read() == "filter"


def test_copies_are_made_once_and_go_when_their_job_is_over(tmp_path):
    near = tmp_path / "near"
    near.mkdir()
    work = [tmp_path / f".petal-work-{number}" for number in range(2)]
    for number, folder in enumerate(work):
        folder.mkdir()
        (folder / "f").write_text(f"{number}")
    copies = [_tasks.copied(str(folder / "f"), str(near)) for folder in work]
    assert [open(copy).read() for copy in copies] == ["0", "1"]
    (work[0] / "f").write_text("changed")
    assert _tasks.copied(str(work[0] / "f"), str(near)) == copies[0]
    assert open(copies[0]).read() == "0"
    (work[0] / "f").unlink()
    work[0].rmdir()
    (work[1] / "g").touch()
    assert os.path.exists(_tasks.copied(str(work[1] / "g"), str(near)))
    assert [os.path.exists(copy) for copy in copies] == [False, True]
    assert len(list(near.glob(".petal-work-*"))) == 2
