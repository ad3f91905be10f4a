"""Lines at URIs of Hadoop, and versions of a table, as data frames."""

import pytest

pytest.importorskip("pyspark")

import petal  # noqa: E402
import petal.spark  # noqa: E402

#: Lines that other line ends, a missing check of UTF-8 or `strip` would change.
LINES = [b"apple", b"", b"cherry\r", b"a\rb", b"\xff\xfe", "ü".encode(), b" plum ", b"apple"]


@pytest.fixture
def uri(spark, tmp_path):
    """A URI of `tmp_path` that only Hadoop can read: `viewfs:` with a link to the folder."""
    name = tmp_path.name.lower().replace("_", "-")
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{tmp_path}")
    return f"viewfs://{name}/data"


@pytest.mark.filterwarnings("ignore:.*CRLF")
@pytest.mark.parametrize("operation", ["common", "diff"])
def test_frames_of_lines_equal_jobs_on_files(spark, uri, tmp_path, operation):
    numbers = [str(n).encode() for n in range(900)]
    (tmp_path / "a").write_bytes(b"\n".join([*LINES, *numbers[:500]]) + b"\n")
    (tmp_path / "b").write_bytes(b"\n".join([*LINES[::2], *numbers[400:]]) + b"\n")
    getattr(petal, operation)(tmp_path / "a", tmp_path / "b", out=tmp_path / "expected")
    a, b = (spark.read.text(f"{uri}/{name}", lineSep="\n") for name in "ab")
    answer = getattr(petal.spark, operation)(a, b, "value")
    answer.distinct().write.text(f"{uri}/out", lineSep="\n")
    answer.unpersist()
    found = b"".join(part.read_bytes() for part in (tmp_path / "out").glob("part-*"))
    expected = (tmp_path / "expected").read_bytes()
    assert sorted(found.split(b"\n")) == sorted(expected.split(b"\n"))
    assert len(found.split(b"\n")) > 100


def test_jobs_on_files_refuse_a_uri_and_name_the_frame(spark, uri, tmp_path):
    (tmp_path / "a").write_text("apple\n")
    with pytest.raises(ValueError, match=r"in Spark, read data frames with spark\.read\.text") as raised:
        petal.spark.dedup(spark, f"{uri}/a", tmp_path / "out")
    assert f"{uri}/a: " in str(raised.value) and "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def versioned():
    """Returns a data source of version 2 (in Python), a table of pages with versions.

    A class of a function is sent to executors by value.
    """
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        def __init__(self, version):
            self.version = version

        def partitions(self):
            return [InputPartition(part) for part in range(3)]

        def read(self, partition):
            for n in range(partition.value, 300 * self.version, 3):
                yield (None if n % 50 == 7 else f"https://example.com/{n}", n)

    class Pages(DataSource):
        @classmethod
        def name(cls):
            return "pages"

        def schema(self):
            return "url string, n int"

        def reader(self, schema):
            return Reader(int(self.options.get("versionAsOf", "2")))

    return Pages


def test_versions_of_a_table_are_inputs(spark):
    spark.dataSource.register(versioned())
    new = spark.read.format("pages").load()
    old = spark.read.format("pages").option("versionAsOf", "1").load()
    for operation, join in [("common", "left_semi"), ("diff", "left_anti")]:
        answer = getattr(petal.spark, operation)(new, old, "url")
        # Without the order of columns: Spark's join puts the key first.
        found = sorted(map(repr, answer.select("url", "n").collect()))
        expected = new.join(old, "url", join).select("url", "n").collect()
        assert found == sorted(map(repr, expected)) and len(found) > 100
        answer.unpersist()
    members = petal.spark.build(old, "url", fpr=1e-6)
    assert petal.spark.contains(new, "url", members).count() >= 200
    single = petal.spark.dedup(new.unionAll(old.select(*new.columns)), "url")
    assert single.count() == new.select("url").distinct().count()
