"""File jobs on Spark clusters whose executors do not have petal."""

import gzip
import os
import random
import signal

import pytest

from filter_files import assert_equal_except_inserted

import petal
import petal.spark
from petal._distributed import tasks

MEMORY = 16 << 20


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A in two files, one of them compressed, and B."""
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


def read_output(folder):
    assert (folder / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))


@pytest.mark.parametrize("shards", [None, 2])
def test_operations_equal_those_of_one_machine(spark, inputs, tmp_path, shards):
    for operation in "common", "diff", "dedup":
        files = inputs[:1] if operation == "dedup" else inputs
        one = tmp_path / f"{operation}.one"
        expected = getattr(petal, operation)(*files, out=one)
        out = tmp_path / operation
        options = {"memory_limit": MEMORY, "range_bytes": 60_000, "shards": shards}
        report = getattr(petal.spark, operation)(spark, *files, out, **options)
        assert read_output(out) == one.read_bytes(), operation
        assert (report.kept, report.lines) == (expected.kept, 12_000)
    assert not list(tmp_path.glob(".petal-*"))


def test_filter_equals_that_of_one_machine_except_inserted(spark, inputs, tmp_path):
    a, b = inputs
    petal.build(a, tmp_path / "one", fpr=0.02)
    context = spark.sparkContext
    options = {"memory_limit": MEMORY, "range_bytes": 60_000}
    petal.spark.build(context, a, tmp_path / "many", fpr=0.02, **options)
    assert_equal_except_inserted(tmp_path / "one", tmp_path / "many")
    for invert in False, True:
        expected = tmp_path / f"expected-{invert}"
        petal.check(tmp_path / "one", b, out=expected, invert=invert)
        out = tmp_path / f"out-{invert}"
        petal.spark.check(context, b, tmp_path / "many", out, invert=invert, **options)
        assert read_output(out) == expected.read_bytes()


def test_error_of_a_task_is_raised_on_the_driver(spark, tmp_path):
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(petal.InputError, match="broken.gz") as raised:
        petal.spark.build(spark, broken, tmp_path / "out", memory_limit=MEMORY)
    assert "\n" not in str(raised.value)
    with pytest.raises(petal.InputError, match="gone: cannot read"):
        petal.spark.dedup(spark, tmp_path / "gone", tmp_path / "out")
    assert not list(tmp_path.glob(".petal-*")) and not (tmp_path / "out").exists()


def test_killed_executor_does_not_change_the_output(spark, inputs, tmp_path, monkeypatch):
    a, b = inputs
    flag, select = str(tmp_path / "killed"), tasks.select

    def kill_once(job, item):
        done = select(job, item)
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return done
        process = os.getpid()
        while process > 1:
            with open(f"/proc/{process}/cmdline", "rb") as command:
                if b"CoarseGrainedExecutorBackend" in command.read():
                    os.kill(process, signal.SIGKILL)
            with open(f"/proc/{process}/stat") as stat:
                process = int(stat.read().rpartition(")")[2].split()[1])
        os._exit(1)

    monkeypatch.setattr(tasks, "select", kill_once)
    petal.common(a, b, out=tmp_path / "one")
    options = {"memory_limit": MEMORY, "range_bytes": 60_000}
    petal.spark.common(spark, a, b, tmp_path / "out", **options)
    assert read_output(tmp_path / "out") == (tmp_path / "one").read_bytes()
    assert os.path.exists(flag)


def test_executors_keep_no_files_of_earlier_jobs(spark, inputs, tmp_path):
    """And later executors fetch no files of earlier jobs."""
    a, _ = inputs

    def copies(_):
        from pyspark import SparkFiles

        return [n for n in os.listdir(SparkFiles.getRootDirectory()) if n.endswith(".of")]

    for number in range(3):
        petal.spark.dedup(spark, a, tmp_path / f"{number}", memory_limit=MEMORY)
    context = spark.sparkContext
    listed = context.parallelize(range(2), 2).map(copies).collect()
    assert all(len(names) <= 2 for names in listed)
    files = context._jsc.sc().listFiles()
    names = [files.apply(number).rsplit("/")[-1] for number in range(files.size())]
    assert names.count("_petal.abi3.so") == 1


def test_selections_and_values_of_json_equal_those_of_one_machine(spark, inputs, tmp_path):
    first, b = inputs
    c = tmp_path / "c"
    c.write_text("https://example.com/7\nhttps://example.com/8\n")
    for operation, files, flat, more in [
        ("common", [first, [b, c]], [first, b, c], {"at_least": 1}),
        ("symdiff", [first, b], [first, b], {}),
        ("dedup", [[*first, b]], [first, b], {"only_duplicates": True}),
        ("dedup", [[*first, b]], [first, b], {"only_unique": True}),
    ]:
        out = tmp_path / "-".join([operation, *more])
        options = {"memory_limit": MEMORY, "range_bytes": 60_000}
        report = getattr(petal.spark, operation)(spark, *files, out, **options, **more)
        expected = getattr(petal, operation)(*flat, out=tmp_path / "one", **more)
        assert read_output(out) == (tmp_path / "one").read_bytes(), operation
        assert report.kept == expected.kept
    (tmp_path / "records").write_text('{"n":1,"u":"x"}\n{"n":2,"u":"y"}\n{"n":3,"u":"x"}\n')
    petal.spark.dedup(spark, tmp_path / "records", tmp_path / "values", json_key="/u", memory_limit=MEMORY)
    assert read_output(tmp_path / "values") == b'{"n":1,"u":"x"}\n{"n":2,"u":"y"}\n'


def test_arguments_of_one_machine_are_refused_with_the_reason(spark, inputs, tmp_path):
    for arguments, text in [
        ({"column": "url"}, "column=: records of CSV may have line ends in quotes"),
        ({"rest": tmp_path / "rest"}, "rest=: jobs on several machines have one output"),
        ({"approx": True}, "approx=: jobs on several machines are exact"),
    ]:
        with pytest.raises(petal.UnsupportedError, match=text):
            petal.spark.common(spark, *inputs, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
