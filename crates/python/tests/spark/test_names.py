"""Arguments of data frame operations and jobs: column names, and errors on the driver."""

import pytest

pytest.importorskip("pyspark")

import petal  # noqa: E402
import petal.spark  # noqa: E402


@pytest.fixture
def dotted(spark):
    """A frame whose column names have a dot, a space, a backtick, and upper-case letters."""
    rows = [(f"u{n % 40}", n, f"v{n % 40}") for n in range(60)] + [(None, 60, None)]
    return spark.createDataFrame(rows, "`site.url` string, `Row Nr` int, `a``b` string")


@pytest.mark.parametrize("name", ["site.url", "SITE.URL", "a`b"])
def test_key_columns_may_have_any_name(spark, dotted, name):
    other = spark.createDataFrame(
        [(f"u{n}", f"v{n}") for n in range(10)], "`Site.Url` string, `A``b` string"
    )
    answer = petal.spark.common(dotted, other, name)
    assert answer.schema == dotted.schema and answer.count() == 20
    answer.unpersist()
    only = dotted.select("`" + name.replace("`", "``") + "`")
    answer = petal.spark.common(only, other, name)
    assert answer.count() == 20
    answer.unpersist()
    assert petal.spark.dedup(dotted, name).count() == 41
    filter = petal.BloomFilter(100, 1e-9)
    filter.update([f"{letter}{n}" for n in range(10) for letter in "uv"])
    assert petal.spark.contains(dotted, name, filter).count() == 20


def test_fields_and_quoted_names_are_resolved_by_spark(spark):
    frame = spark.createDataFrame([(("a", 1),), (("b", 2),)], "s struct<url: string, n: int>")
    filter = petal.BloomFilter(100, 1e-9)
    filter.update(["a", 2])
    assert petal.spark.contains(frame, "s.url", filter).count() == 1
    assert petal.spark.contains(frame, "`s`.`n`", filter).count() == 1


def test_case_sensitive_names_follow_sparks_setting(spark, dotted):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(ValueError, match="no column 'SITE.URL', expected one of site.url, Row Nr"):
            petal.spark.dedup(dotted, "SITE.URL")
        both = dotted.selectExpr("`site.url` url", "`a``b` URL")
        assert petal.spark.dedup(both, "URL").count() == 41
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    with pytest.raises(ValueError, match="'Url' names 2 columns"):
        petal.spark.dedup(both, "Url")


def test_invalid_keys_are_refused_on_the_driver(spark):
    frame = spark.createDataFrame([(1.5, True)], "x double, b boolean")
    filter = petal.BloomFilter(10)
    for column in "x", frame["x"], "X":
        with pytest.raises(TypeError, match="is double, expected string, binary or integers"):
            petal.spark.contains(frame, column, filter)
    with pytest.raises(TypeError, match="is boolean, expected"):
        petal.spark.contains(frame, "b", filter)
    with pytest.raises(TypeError, match="filter: expected a filter or the path of its file, found list"):
        petal.spark.contains(frame.selectExpr("cast(x as string) x"), "x", ["a"])


def test_mixed_frames_and_files_are_errors(spark, tmp_path):
    frame = spark.createDataFrame([("a",)], "url string")
    (tmp_path / "a").write_text("a\n")
    for call in [
        lambda: petal.spark.common(frame, str(tmp_path / "a"), "url"),
        lambda: petal.spark.common(frame, tmp_path / "a", on="url"),
    ]:
        with pytest.raises(TypeError, match="expected data frames on both sides, found .*; for files"):
            call()
    with pytest.raises(TypeError, match="expected a path or several, found DataFrame"):
        petal.spark.common(spark, frame, tmp_path / "a", tmp_path / "out")
    with pytest.raises(TypeError, match="expected a SparkSession, SparkContext or DataFrame first, f"):
        petal.spark.dedup(str(tmp_path / "a"), tmp_path / "out")
    with pytest.raises(TypeError, match="names of key columns, found Column"):
        petal.spark.dedup(frame, [frame["url"]])
    assert not (tmp_path / "out").exists()


def test_output_folder_and_uri_are_inputs_and_memory_limit_has_units(spark, tmp_path):
    (tmp_path / "a").write_text("b\na\nb\n")
    petal.spark.dedup(spark, f"file://{tmp_path}/a", tmp_path / "one", memory_limit="16M")
    report = petal.spark.common(
        spark, tmp_path / "one", tmp_path / "a", tmp_path / "two", memory_limit="16M"
    )
    assert (report.lines, report.kept) == (2, 2)
    with pytest.raises(petal.MissingFileError, match="gone: cannot read"):
        petal.spark.check(spark, tmp_path / "a", tmp_path / "gone", tmp_path / "out")


def test_contains_is_lazy(spark):
    frame = spark.range(3).selectExpr("cast(raise_error('a row was read') as string) url")
    filter = petal.BloomFilter(10)
    for column in None, "found":
        queried = petal.spark.contains(frame, "url", filter, column=column)
        with pytest.raises(Exception, match="a row was read"):
            queried.collect()
