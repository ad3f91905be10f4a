"""Jobs on files by real Spark clusters: their executors have no petal but what is shipped."""

import gzip
import os
import random
import signal

import pytest

from filter_files import assert_same_but_inserted

import petal
import petal.spark
from petal import _tasks

MEMORY = 16 << 20


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A in two files, one of them packed, and B."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = random.Random(13)
    texts = []
    for _ in range(3):
        lines = [f"https://example.com/{rng.randrange(15_000)}" for _ in range(6_000)]
        texts.append("".join(line + "\n" for line in lines).encode())
    (folder / "a1").write_bytes(texts[0])
    (folder / "a2.gz").write_bytes(gzip.compress(texts[1]))
    (folder / "b").write_bytes(texts[2])
    return [folder / "a1", folder / "a2.gz"], folder / "b"


def answer(folder):
    assert (folder / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))


@pytest.mark.parametrize("shards", [None, 2])
def test_every_verb_is_that_of_one_machine(spark, inputs, tmp_path, shards):
    for verb in "common", "diff", "dedup":
        files = inputs[:1] if verb == "dedup" else inputs
        one = tmp_path / f"{verb}.one"
        says = getattr(petal, verb)(*files, out=one)
        out = tmp_path / verb
        given = {"memory": MEMORY, "range_bytes": 60_000, "shards": shards}
        report = getattr(petal.spark, verb)(spark, *files, out, **given)
        assert answer(out) == one.read_bytes(), verb
        assert (report.kept, report.lines) == (says.kept, 12_000)
    assert not list(tmp_path.glob(".petal-*"))


def test_a_filter_is_that_of_one_machine_but_for_the_count_of_inserts(spark, inputs, tmp_path):
    a, b = inputs
    petal.build(a, tmp_path / "one", rate=0.02)
    context = spark.sparkContext
    given = {"memory": MEMORY, "range_bytes": 60_000}
    petal.spark.build(context, a, tmp_path / "many", rate=0.02, **given)
    assert_same_but_inserted(tmp_path / "one", tmp_path / "many")
    for invert in False, True:
        says = tmp_path / f"says-{invert}"
        petal.check(tmp_path / "one", b, out=says, invert=invert)
        out = tmp_path / f"out-{invert}"
        petal.spark.check(context, b, tmp_path / "many", out, invert=invert, **given)
        assert answer(out) == says.read_bytes()


def test_what_a_task_raises_is_raised_here(spark, tmp_path):
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(petal.InputError, match="broken.gz") as raised:
        petal.spark.build(spark, broken, tmp_path / "out", memory=MEMORY)
    assert "\n" not in str(raised.value)
    with pytest.raises(petal.InputError, match="gone: cannot read"):
        petal.spark.dedup(spark, tmp_path / "gone", tmp_path / "out")
    assert not list(tmp_path.glob(".petal-*")) and not (tmp_path / "out").exists()


def test_an_executor_is_killed_and_the_answer_is_right(spark, inputs, tmp_path, monkeypatch):
    if spark.sparkContext.master.startswith("local["):
        pytest.skip("its executor is the driver")
    a, b = inputs
    flag, narrow = str(tmp_path / "killed"), _tasks.narrow

    def dies_once(job, item):
        done = narrow(job, item)
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return done
        process = os.getpid()
        while process > 1:
            with open(f"/proc/{process}/cmdline", "rb") as words:
                if b"CoarseGrainedExecutorBackend" in words.read():
                    os.kill(process, signal.SIGKILL)
            with open(f"/proc/{process}/stat") as stat:
                process = int(stat.read().rpartition(")")[2].split()[1])
        os._exit(1)

    monkeypatch.setattr(_tasks, "narrow", dies_once)
    petal.common(a, b, out=tmp_path / "one")
    given = {"memory": MEMORY, "range_bytes": 60_000}
    petal.spark.common(spark, a, b, tmp_path / "out", **given)
    assert answer(tmp_path / "out") == (tmp_path / "one").read_bytes()
    assert os.path.exists(flag)


def test_nothing_of_a_job_stays_on_executors_beyond_the_next(spark, inputs, tmp_path):
    """Nor is anything of it looked for by those that come later."""
    a, _ = inputs

    def copies(_):
        from pyspark import SparkFiles

        return [n for n in os.listdir(SparkFiles.getRootDirectory()) if n.endswith(".of")]

    for number in range(3):
        petal.spark.dedup(spark, a, tmp_path / f"{number}", memory=MEMORY)
    context = spark.sparkContext
    listed = context.parallelize(range(2), 2).map(copies).collect()
    assert all(len(names) <= 2 for names in listed)
    files = context._jsc.sc().listFiles()
    names = [files.apply(number).rsplit("/")[-1] for number in range(files.size())]
    assert names.count("_petal.abi3.so") == 1
