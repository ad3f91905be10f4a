"""Data frames: results equal those of Spark's own joins."""

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

import petal  # noqa: E402
import petal.spark  # noqa: E402
from petal.spark import _frames  # noqa: E402
from clusters import kill_executor_once  # noqa: E402

ROWS = 3000


def rows_of(frame):
    """Returns the rows in a fixed order."""
    return sorted(map(repr, frame.collect()))


def frame(spark, kind, start, rows=ROWS, partitions=3):
    """Returns a frame with keys of one type, some repeated or null, and other columns."""
    key = {
        "string": "concat('https://example.com/ü/', n)",
        "binary": "cast(concat('key ', n) as binary)",
        "bigint": "n - 1000",
        "int": "cast(n - 1000 as int)",
    }[kind]
    numbers = spark.range(start, start + rows, 1, partitions).selectExpr("id", "id - id % 2 n")
    key = f"case when id % 7 = 3 then null else {key} end `the key`"
    return numbers.selectExpr(key, "id", "array(id, null) list", "cast(id as decimal(20, 2)) d")


@pytest.mark.parametrize("kind", ["string", "binary", "bigint", "int"])
def test_common_equals_left_semi_join(spark, kind):
    whole, b = frame(spark, kind, 0), frame(spark, kind, ROWS * 9 // 10)
    # With other columns, and with the key column only.
    for a in whole, whole.select("the key"):
        answer = petal.spark.common(a, b, "the key")
        expected = a.join(b, "the key", "left_semi")
        assert answer.schema == a.schema
        assert rows_of(answer) == rows_of(expected)
        assert answer.count() > 100
        answer.unpersist()


def test_common_with_several_key_columns(spark):
    a = spark.createDataFrame([("a", 1), ("ab", 1), ("b", None), (None, 2)], "k string, n int")
    b = spark.createDataFrame([("a", 1), ("a", 2), ("b", None), (None, 2)], "k string, n bigint")
    answer = petal.spark.common(a, b, ["k", "n"])
    assert [tuple(row) for row in answer.collect()] == [("a", 1)]
    answer.unpersist()


def test_common_is_exact_with_a_high_fpr(spark):
    a, b = frame(spark, "string", 0), frame(spark, "string", ROWS - 100)
    answer = petal.spark.common(a, b, "the key", fpr=0.9)
    assert rows_of(answer) == rows_of(a.join(b, "the key", "left_semi"))
    answer.unpersist()


def test_failed_result_is_not_persisted(spark, monkeypatch):
    a = frame(spark, "string", 0)
    kind, cache = type(a), spark._jsparkSession.sharedState().cacheManager()
    real = kind.count

    def fails_at_last(frame):
        if "__petal_fingerprint" not in frame.columns:
            raise RuntimeError("no executors left")
        return real(frame)

    spark.catalog.clearCache()
    monkeypatch.setattr(kind, "count", fails_at_last)
    with pytest.raises(RuntimeError, match="no executors"):
        petal.spark.common(a, a, "the key")
    assert cache.isEmpty()


def test_concurrent_threads_restore_the_session_setting():
    settings = {}
    session = SimpleNamespace(conf=SimpleNamespace(get=settings.get, set=settings.__setitem__))
    entered, left = threading.Event(), threading.Event()

    def second():
        with _frames._shuffle_partitions(session, 7):
            entered.set()
            assert left.wait(60)

    other = threading.Thread(target=second)
    with _frames._shuffle_partitions(session, 5):
        other.start()
        entered.wait(0.5)
        assert settings == {"spark.sql.shuffle.partitions": "5"}
    left.set()
    other.join()
    assert settings == {"spark.sql.shuffle.partitions": "200"}


@pytest.mark.parametrize("kind", ["string", "bigint"])
@pytest.mark.parametrize("repeats", [0.02, 0.5])
def test_dedup_returns_one_row_per_key(spark, kind, repeats):
    a = frame(spark, kind, 0, partitions=2)
    single = a.where("id % 2 = 0 and `the key` is not null")
    df = single.union(a.where(f"id < {int(ROWS * repeats)}")) if repeats < 0.5 else a
    answer = petal.spark.dedup(df, "the key")
    assert answer.schema == df.schema
    found = answer.collect()
    keys = [row["the key"] for row in found]
    assert len(set(keys)) == len(keys) == df.dropDuplicates(["the key"]).count()
    # Rows of the frame, not combinations of several rows.
    assert set(map(repr, found)) <= set(map(repr, df.collect()))


def test_empty_frames_give_empty_results(spark):
    a, none = frame(spark, "string", 0), frame(spark, "string", 0).where("false")
    for left, right in [(a, none), (none, a), (none, none)]:
        answer = petal.spark.common(left, right, "the key")
        assert answer.collect() == []
        answer.unpersist()
    assert petal.spark.dedup(none, "the key").collect() == []


def test_contains_returns_rows_or_a_column(spark, tmp_path):
    a = frame(spark, "string", 0)
    filter = petal.BloomFilter(1000, 1e-9)
    members = {f"https://example.com/ü/{n}" for n in range(500)}
    filter.update(members)
    expected = [row for row in a.collect() if row["the key"] in members]
    assert sorted(petal.spark.contains(a, "`the key`", filter).collect()) == sorted(expected)
    filter.save(tmp_path / "f.petal")
    queried = petal.spark.contains(a, a["the key"], tmp_path / "f.petal", column="found")
    answers = {(row["id"], row["found"]) for row in queried.collect()}
    ids = {row["id"] for row in expected}
    assert answers == {(n, n in ids) for n in range(ROWS)}


def test_columns_of_other_types_are_refused(spark):
    a = spark.createDataFrame([(1.0, "a", 1)], "x double, k string, n int")
    with pytest.raises(TypeError, match="column 'x' is double, expected string"):
        petal.spark.dedup(a, "x")
    with pytest.raises(ValueError, match="no column 'z', expected one of x, k, n"):
        petal.spark.dedup(a, ["k", "z"])
    with pytest.raises(ValueError, match="found none"):
        petal.spark.common(a, a, [])
    with pytest.raises(TypeError, match="integers in one frame and text"):
        petal.spark.common(a.select("n"), a.selectExpr("k n"), "n")


def test_executors_do_not_have_petal(spark):
    def task(batches):
        import importlib.util

        import pyarrow as pa

        for _ in batches:
            found = importlib.util.find_spec("petal") is not None
            yield pa.record_batch({"found": [found]})

    found = spark.range(0, 4, 1, 2).mapInArrow(task, "found boolean").collect()
    assert {row["found"] for row in found} == {False}


@pytest.mark.parametrize("where", ["a", "b"])
def test_killed_executor_does_not_change_the_rows(spark, tmp_path, where):
    a, b = frame(spark, "string", 0), frame(spark, "string", ROWS * 9 // 10)
    expected = rows_of(a.join(b, "the key", "left_semi"))
    flag = tmp_path / "killed"
    killer = kill_executor_once(flag)
    if where == "a":
        a = a.mapInArrow(killer, a.schema)
    else:
        b = b.mapInArrow(killer, b.schema)
    answer = petal.spark.common(a, b, "the key")
    assert flag.exists()
    assert rows_of(answer) == expected
    answer.unpersist()


@pytest.mark.parametrize("kind", ["string", "binary", "int"])
@pytest.mark.parametrize("fpr", [0.01, 0.9])
def test_diff_equals_left_anti_join(spark, kind, fpr):
    whole, b = frame(spark, kind, 0), frame(spark, kind, ROWS * 3 // 4)
    # With other columns, and with the key column only.
    for a in whole, whole.select("the key"):
        answer = petal.spark.diff(a, b, "the key", fpr=fpr)
        assert answer.schema == a.schema
        assert rows_of(answer) == rows_of(a.join(b, "the key", "left_anti"))
        # The nulls, too.
        assert answer.where("`the key` is null").count() == a.where("`the key` is null").count() > 100
        answer.unpersist()


def test_diff_with_empty_frames(spark):
    a, none = frame(spark, "string", 0), frame(spark, "string", 0).where("false")
    for left, right in [(a, none), (none, a), (none, none), (a, a)]:
        answer = petal.spark.diff(left, right, "the key")
        assert rows_of(answer) == rows_of(left.join(right, "the key", "left_anti"))
        answer.unpersist()


@pytest.mark.parametrize("kind", ["string", "binary", "bigint"])
def test_filter_of_a_column_equals_one_of_its_keys(spark, kind):
    a = frame(spark, kind, 1000)
    keys = [row["the key"] for row in a.collect() if row["the key"] is not None]
    built = petal.spark.build(a, "the key", capacity=ROWS, fpr=0.001)
    expected = petal.BloomFilter(ROWS, 0.001)
    expected.update(map(bytes, keys) if kind == "binary" else keys)
    assert built == expected and built.key_transform is None
    assert petal.spark.build(a, a["the key"]).capacity == len(keys)
    assert petal.spark.build(a.where("false"), "the key").inserted == 0
    with pytest.raises(TypeError, match="col: 'd' is decimal"):
        petal.spark.build(a, "d")


def test_keys_of_columns_are_changed(spark):
    urls = ["http://www.Example.com/?b=1&a=2", "https://example.com/?a=2&b=1#top", "http://other.org/", None]
    a = spark.createDataFrame([(url, bytearray(url, "utf-8") if url else None) for url in urls], "u string, b binary")
    changed = [row[0] for row in a.select(petal.spark.transform_key("u", ["url-surt"])).collect()]
    assert changed == [url and petal.transform_key(url, ["url-surt"]) for url in urls]
    with pytest.raises(ValueError, match="'urls': unknown transform"):
        petal.spark.transform_key("u", ["urls"])
    filter = petal.spark.build(a.where(a.u == urls[0]), "u", key_transform=["url-surt"], fpr=1e-9)
    assert filter.key_transform == ["url-surt"] and "com,example)/?a=2&b=1" in filter
    for column in "u", "b":
        found = petal.spark.contains(a, column, filter, key_transform=["url-surt"])
        assert [row["u"] for row in found.collect()] == urls[:2]
        with pytest.raises(petal.IncompatibleError, match="changed by 'url-surt', not by 'trim'"):
            petal.spark.contains(a, column, filter, key_transform=["trim"])


def test_registered_filter_is_an_sql_function(spark, tmp_path):
    filter = petal.BloomFilter(100, 1e-9)
    filter.update(["a", "c"])
    filter.save(tmp_path / "f")
    for name, given in {"in_object": filter, "in_file": tmp_path / "f"}.items():
        petal.spark.register(spark, name, given)
        spark.createDataFrame([("a",), ("b",), (None,)], "k string").createOrReplaceTempView("t")
        found = spark.sql(f"SELECT k FROM t WHERE {name}(k)").collect()
        assert [row["k"] for row in found] == ["a"]
        # NULL for NULL, as functions of SQL do.
        found = spark.sql(f"SELECT k, {name}(k) FROM t WHERE {name}(k) IS NOT TRUE ORDER BY k").collect()
        assert [tuple(row) for row in found] == [(None, None), ("b", False)]
        # Another one replaces it.
        petal.spark.register(spark, name, petal.BloomFilter(10))
        assert spark.sql(f"SELECT k FROM t WHERE {name}(k)").count() == 0
    with pytest.raises(ValueError, match="expected the name of an SQL function"):
        petal.spark.register(spark, "a b", filter)
    for name in "isnotnull", "IsNotNull", "if", "upper":
        with pytest.raises(ValueError, match=f"Spark has a function '{name}', which SQL would call; choose another"):
            petal.spark.register(spark, name, filter)


def test_plans_name_the_steps_of_filters(spark, capsys):
    a, b = frame(spark, "string", 0), frame(spark, "string", ROWS - 100)
    members = petal.spark.build(b, "the key")
    petal.spark.register(spark, "is_member", members)
    a.createOrReplaceTempView("a")
    for result, name in [
        (petal.spark.contains(a, "the key", members), "petal_contains("),
        (spark.sql("SELECT * FROM a WHERE is_member(`the key`)"), "is_member("),
        (petal.spark.dedup(a.where("id % 2 = 0"), "the key"), "petal_candidates("),
        (petal.spark.common(a, b, "the key"), "petal_candidates("),
        (petal.spark.diff(a, b, "the key"), "petal_candidates("),
        (a.select(petal.spark.transform_key("`the key`", ["trim"])), "petal_transform_key("),
    ]:
        result.explain()
        assert name in capsys.readouterr().out, name
        result.unpersist()


def test_filters_and_frames_are_read_through_hadoop(spark, tmp_path):
    """`viewfs:` with a link to a local folder: a file system that only Hadoop can read."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    root = f"viewfs://{tmp_path.name.lower().replace('_', '-')}"
    configuration.set(f"fs.viewfs.mounttable.{root.removeprefix('viewfs://')}.link./data", f"file://{tmp_path}")
    (tmp_path / "a.txt").write_text("cherry\napple\nplum\n")
    petal.build(tmp_path / "a.txt", tmp_path / "a b.petal", capacity=100, fpr=1e-6)
    frame = spark.createDataFrame([("plum",), ("fig",)], "k string")
    for filter in f"{root}/data/a b.petal", f"file://{tmp_path}/a%20b.petal", tmp_path / "a b.petal":
        assert [row["k"] for row in petal.spark.contains(frame, "k", filter).collect()] == ["plum"]
        found = petal.spark.check(spark, tmp_path / "a.txt", filter, None, work=tmp_path / "work")
        assert found.kept == 3
    with pytest.raises(petal.MissingFileError, match="/data/none.petal: cannot read: ") as raised:
        petal.spark.contains(frame, "k", f"{root}/data/none.petal")
    assert "\n" not in str(raised.value)
    with pytest.raises(petal.InputError, match="nothing://x/y: cannot read: "):
        petal.spark.register(spark, "f", "nothing://x/y")
    lines = spark.read.text(f"{root}/data/a.txt")
    both = petal.spark.common(lines, frame.toDF("value"), "value")
    assert [row["value"] for row in both.collect()] == ["plum"]
    both.unpersist()


@pytest.fixture
def tables(spark):
    """Two Parquet tables of Spark's catalog, one of them partitioned by day, with a null in each seventh row.

    zstd, because the library of Snappy, Spark's default, cannot be loaded where Debian's `musl` is installed:
    https://github.com/xerial/snappy-java/issues/692
    """
    key = "if(id % 7 = 3, null, concat('https://example.com/', id)) url"
    frames = {
        "petal_pages": spark.range(ROWS).selectExpr(key, "id", "cast(id % 3 as int) day"),
        "petal_new": spark.range(ROWS - 300, ROWS + 100).selectExpr(key, "id * 2 again"),
    }
    for name, frame in frames.items():
        writer = frame.write.option("compression", "zstd").format("parquet")
        (writer.partitionBy("day") if "day" in frame.columns else writer).saveAsTable(name)
    yield [spark.table(name) for name in frames]
    for name in frames:
        spark.sql(f"DROP TABLE {name}")


def test_partitioned_table_of_the_catalog(spark, tables, capsys):
    pages, new = tables[0].where("day = 1"), tables[1]
    for answer, left, right, how in [
        (petal.spark.common, pages, new, "left_semi"),
        (petal.spark.diff, new, pages, "left_anti"),
    ]:
        found = answer(left, right, "url")
        assert found.schema == left.schema
        assert rows_of(found) == rows_of(left.join(right, "url", how).select(*left.columns))
        found.unpersist()
    single = petal.spark.dedup(pages.union(pages.where("id % 50 = 0")), "url")
    assert rows_of(single.select("url")) == rows_of(pages.select("url").distinct())

    members = petal.spark.build(pages, "url", capacity=ROWS, fpr=1e-9)
    expected = {row["url"] for row in pages.collect()} & {row["url"] for row in new.collect()} - {None}
    assert len(expected) > 80
    petal.spark.register(spark, "in_pages", members)
    found = petal.spark.contains(tables[1], "url", members).collect()
    found += spark.sql("SELECT url FROM petal_new WHERE in_pages(url)").collect()
    assert sorted(row["url"] for row in found) == sorted([*expected, *expected])

    # A condition on the partitions beside a look-up still leaves out the other partitions.
    petal.spark.contains(pages, "url", members).explain()
    plan = capsys.readouterr().out
    assert "petal_contains(" in plan
    (read,) = [line for line in plan.splitlines() if "PartitionFilters" in line]
    assert "day#" in read.split("PartitionFilters:")[1].split("]")[0]
