"""Distributed jobs on a Dask cluster with two worker processes."""

import os
import random
import signal

import pytest
from distributed import Client, LocalCluster

from filter_files import assert_equal_except_inserted

import petal
import petal.dask
from petal._distributed import tasks

MEMORY = 16 << 20


@pytest.fixture(scope="module")
def client():
    settings = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(2, **settings) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rng = random.Random(11)
    for name in "a", "b":
        lines = [f"https://example.com/{rng.randrange(20_000)}" for _ in range(15_000)]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder / "a", folder / "b"


def read_output(folder):
    assert (folder / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))


@pytest.mark.parametrize("shards", [None, 3])
def test_operations_equal_those_of_one_machine(client, inputs, tmp_path, shards):
    for operation in "common", "diff", "dedup":
        files = inputs[:1] if operation == "dedup" else inputs
        one = tmp_path / f"{operation}.one"
        expected = getattr(petal, operation)(*files, out=one)
        out = tmp_path / operation
        options = {"memory_limit": MEMORY, "range_bytes": 60_000, "shards": shards}
        report = getattr(petal.dask, operation)(client, *files, out, **options)
        assert read_output(out) == one.read_bytes(), operation
        assert (report.kept, report.lines) == (expected.kept, 15_000)


def test_filter_equals_that_of_one_machine_except_inserted(client, inputs, tmp_path):
    a, b = inputs
    petal.build(a, tmp_path / "one", fpr=0.02)
    petal.dask.build(
        client, a, tmp_path / "many", fpr=0.02, memory_limit=MEMORY, range_bytes=60_000
    )
    assert_equal_except_inserted(tmp_path / "one", tmp_path / "many")
    for invert in False, True:
        expected = tmp_path / f"expected-{invert}"
        petal.check(tmp_path / "one", b, out=expected, invert=invert)
        out = tmp_path / f"out-{invert}"
        options = {"memory_limit": MEMORY, "range_bytes": 60_000, "invert": invert}
        petal.dask.check(client, b, tmp_path / "many", out, **options)
        assert read_output(out) == expected.read_bytes()


def test_error_of_a_task_is_raised_on_the_driver(client, inputs, tmp_path):
    a, b = inputs
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(petal.InputError, match="broken.gz") as raised:
        petal.dask.build(client, broken, tmp_path / "out", memory_limit=MEMORY)
    assert "\n" not in str(raised.value)
    with pytest.raises(petal.MemoryLimitError, match="memory_limit="):
        petal.dask.build(client, a, tmp_path / "out", capacity=10**9, memory_limit=MEMORY)
    assert not list(tmp_path.glob(".petal-*")) and not (tmp_path / "out").exists()


def test_killed_worker_does_not_change_the_output(client, inputs, tmp_path, monkeypatch):
    a, b = inputs
    flag, select = tmp_path / "killed", tasks.select

    def kill_once(job, item):
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return select(job, item)
        # The files are already written.
        select(job, item)
        return os.kill(os.getpid(), signal.SIGKILL)

    before = set(client.scheduler_info()["workers"])
    monkeypatch.setattr(tasks, "select", kill_once)
    petal.common(a, b, out=tmp_path / "one")
    options = {"memory_limit": MEMORY, "range_bytes": 60_000}
    petal.dask.common(client, a, b, tmp_path / "out", **options)
    assert read_output(tmp_path / "out") == (tmp_path / "one").read_bytes()
    assert flag.exists()
    assert set(client.scheduler_info()["workers"]) != before


def test_cluster_without_workers_needs_slots(inputs, tmp_path):
    a, b = inputs
    settings = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        with pytest.raises(ValueError, match="slots=: .*wait_for_workers"):
            petal.dask.common(client, a, b, tmp_path / "out", memory_limit=MEMORY)
        assert not list(tmp_path.iterdir())
        cluster.adapt(minimum=0, maximum=2, interval="100ms")
        options = {"memory_limit": MEMORY, "range_bytes": 60_000, "slots": 2}
        petal.dask.common(client, a, b, tmp_path / "out", **options)
    petal.common(a, b, out=tmp_path / "one")
    assert read_output(tmp_path / "out") == (tmp_path / "one").read_bytes()


def test_lines_are_compared_after_changes(client, tmp_path):
    (tmp_path / "a").write_text("http://www.Example.com/\nhttp://other.org/\n")
    (tmp_path / "b").write_text("https://example.com/#top\n")
    options = {"memory_limit": MEMORY, "key_transform": ["url-surt"]}
    petal.dask.common(client, tmp_path / "a", tmp_path / "b", tmp_path / "out", **options)
    assert read_output(tmp_path / "out") == b"http://www.Example.com/\n"
    petal.dask.build(client, tmp_path / "a", tmp_path / "f", **options)
    assert petal.load(tmp_path / "f").key_transform == ["url-surt"]
    done = petal.dask.check(client, tmp_path / "b", tmp_path / "f", None, work=tmp_path, memory_limit=MEMORY)
    assert done.kept == 1


def test_selections_and_values_of_json_equal_those_of_one_machine(client, inputs, tmp_path):
    a, b = inputs
    first, c = [a], tmp_path / "c"
    c.write_text("https://example.com/7\nhttps://example.com/8\n")
    for operation, files, flat, more in [
        ("common", [first, [b, c]], [first, b, c], {"at_least": 1}),
        ("symdiff", [first, b], [first, b], {}),
        ("dedup", [[*first, b]], [first, b], {"only_duplicates": True}),
        ("dedup", [[*first, b]], [first, b], {"only_unique": True}),
    ]:
        out = tmp_path / "-".join([operation, *more])
        options = {"memory_limit": MEMORY, "range_bytes": 60_000}
        report = getattr(petal.dask, operation)(client, *files, out, **options, **more)
        expected = getattr(petal, operation)(*flat, out=tmp_path / "one", **more)
        assert read_output(out) == (tmp_path / "one").read_bytes(), operation
        assert report.kept == expected.kept
    (tmp_path / "records").write_text('{"n":1,"u":"x"}\n{"n":2,"u":"y"}\n{"n":3,"u":"x"}\n')
    petal.dask.dedup(client, tmp_path / "records", tmp_path / "values", json_key="/u", memory_limit=MEMORY)
    assert read_output(tmp_path / "values") == b'{"n":1,"u":"x"}\n{"n":2,"u":"y"}\n'


def test_arguments_of_one_machine_are_refused_with_the_reason(client, inputs, tmp_path):
    for arguments, text in [
        ({"column": "url"}, "column=: records of CSV may have line ends in quotes"),
        ({"rest": tmp_path / "rest"}, "rest=: jobs on several machines have one output"),
        ({"approx": True}, "approx=: jobs on several machines are exact"),
    ]:
        with pytest.raises(petal.UnsupportedError, match=text):
            petal.dask.common(client, *inputs, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
