"""Jobs past one machine on Dask, with worker processes of its own."""

import os
import random
import signal

import pytest
from distributed import Client, LocalCluster

from filter_files import assert_same_but_inserted

import petal
import petal.dask
from petal import _tasks

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


def answer(folder):
    assert (folder / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))


@pytest.mark.parametrize("shards", [None, 3])
def test_every_verb_is_that_of_one_machine(client, inputs, tmp_path, shards):
    for verb in "common", "diff", "dedup":
        files = inputs[:1] if verb == "dedup" else inputs
        one = tmp_path / f"{verb}.one"
        says = getattr(petal, verb)(*files, out=one)
        out = tmp_path / verb
        given = {"memory": MEMORY, "range_bytes": 60_000, "shards": shards}
        report = getattr(petal.dask, verb)(client, *files, out, **given)
        assert answer(out) == one.read_bytes(), verb
        assert (report.kept, report.lines) == (says.kept, 15_000)


def test_a_filter_is_that_of_one_machine_but_for_the_count_of_inserts(client, inputs, tmp_path):
    a, b = inputs
    petal.build(a, tmp_path / "one", rate=0.02)
    petal.dask.build(client, a, tmp_path / "many", rate=0.02, memory=MEMORY, range_bytes=60_000)
    assert_same_but_inserted(tmp_path / "one", tmp_path / "many")
    for invert in False, True:
        says = tmp_path / f"says-{invert}"
        petal.check(tmp_path / "one", b, out=says, invert=invert)
        out = tmp_path / f"out-{invert}"
        given = {"memory": MEMORY, "range_bytes": 60_000, "invert": invert}
        petal.dask.check(client, b, tmp_path / "many", out, **given)
        assert answer(out) == says.read_bytes()


def test_what_a_task_raises_is_raised_here(client, inputs, tmp_path):
    a, b = inputs
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(petal.InputError, match="broken.gz") as raised:
        petal.dask.build(client, broken, tmp_path / "out", memory=MEMORY)
    assert "\n" not in str(raised.value)
    with pytest.raises(petal.MemoryCapError, match="memory="):
        petal.dask.build(client, a, tmp_path / "out", capacity=10**9, memory=MEMORY)
    assert not list(tmp_path.glob(".petal-*")) and not (tmp_path / "out").exists()


def test_a_worker_is_killed_and_the_answer_is_right(client, inputs, tmp_path, monkeypatch):
    a, b = inputs
    flag, narrow = tmp_path / "killed", _tasks.narrow

    def dies_once(job, item):
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return narrow(job, item)
        # Half of it is done already.
        narrow(job, item)
        return os.kill(os.getpid(), signal.SIGKILL)

    before = set(client.scheduler_info()["workers"])
    monkeypatch.setattr(_tasks, "narrow", dies_once)
    petal.common(a, b, out=tmp_path / "one")
    given = {"memory": MEMORY, "range_bytes": 60_000}
    petal.dask.common(client, a, b, tmp_path / "out", **given)
    assert answer(tmp_path / "out") == (tmp_path / "one").read_bytes()
    assert flag.exists()
    assert set(client.scheduler_info()["workers"]) != before


def test_a_cluster_without_workers_is_told_of(inputs, tmp_path):
    a, b = inputs
    settings = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        with pytest.raises(ValueError, match="slots=: .*wait_for_workers"):
            petal.dask.common(client, a, b, tmp_path / "out", memory=MEMORY)
        assert not list(tmp_path.iterdir())
        cluster.adapt(minimum=0, maximum=2, interval="100ms")
        given = {"memory": MEMORY, "range_bytes": 60_000, "slots": 2}
        petal.dask.common(client, a, b, tmp_path / "out", **given)
    petal.common(a, b, out=tmp_path / "one")
    assert answer(tmp_path / "out") == (tmp_path / "one").read_bytes()
