"""Spark's own Bloom filters: the JVM's bytes are petal's, and either asks the other's."""

import pytest

pytest.importorskip("pyspark")

import petal  # noqa: E402
import petal.spark  # noqa: E402

KEYS = [f"https://example.com/{'ä' * (n % 5)}{n}" for n in range(2000)]
OTHERS = [f"https://example.org/{n}" for n in range(2000)]


@pytest.fixture(scope="module")
def words(spark):
    frame = spark.createDataFrame([(key,) for key in KEYS], "key string")
    return frame.selectExpr("key", "cast(key as binary) bytes", "xxhash64(key) hash").cache()


def of_jvm(spark, frame, column, version=2):
    """The JVM's filter, and its bytes."""
    jvm = spark.sparkContext._jvm
    sketch = jvm.org.apache.spark.util.sketch
    made = frame._jdf.stat().bloomFilter(column, len(KEYS), 0.01)
    if version == 1:
        v1 = getattr(sketch, "BloomFilter$Version").V1
        made = sketch.BloomFilter.create(v1, len(KEYS), made.bitSize(), 0)
        for row in frame.select(column).collect():
            made.put(row[0])
    out = jvm.java.io.ByteArrayOutputStream()
    made.writeTo(out)
    return made, bytes(out.toByteArray())


@pytest.mark.parametrize("version", [1, 2])
def test_the_bytes_are_the_jvms(spark, words, version):
    _, bytes_of_jvm = of_jvm(spark, words, "hash", version)
    assert petal.spark.to_spark_bloom(KEYS, len(KEYS), version=version) == bytes_of_jvm
    _, bytes_of_jvm = of_jvm(spark, words, "key", version)
    own = petal.spark.to_spark_bloom(KEYS, len(KEYS), hashed=False, version=version)
    assert own == bytes_of_jvm


def test_hashes_are_those_of_sql(spark, words):
    expected = [row.hash % 2**64 for row in words.select("hash").collect()]
    assert petal.spark.xxhash64(KEYS).to_pylist() == expected
    numbers = [0, 1, 255, 2**31, 2**63 - 1]
    frame = spark.createDataFrame([(n,) for n in numbers], "n bigint").selectExpr("xxhash64(n) h")
    assert petal.spark.xxhash64(numbers).to_pylist() == [row.h % 2**64 for row in frame.collect()]


def test_petals_filter_in_sql(spark, words):
    own = petal.spark.to_spark_bloom(KEYS, len(KEYS), 1e-6)
    others = spark.createDataFrame([(key,) for key in OTHERS], "key string")
    asked = f"might_contain(X'{own.hex()}', xxhash64(key))"
    assert words.where(asked).count() == len(KEYS)
    assert others.where(asked).count() == 0


def test_sqls_filter_in_petal(spark, words):
    words.createOrReplaceTempView("words")
    (made,) = spark.sql("select bloom_filter_agg(xxhash64(key), 2000L, 20000L) from words").first()
    filter = petal.spark.from_spark_bloom(bytes(made))
    assert all(filter.contains_batch(petal.spark.xxhash64(KEYS)).to_pylist())
    found = filter.contains_batch(petal.spark.xxhash64(OTHERS)).to_pylist()
    others = spark.createDataFrame([(key,) for key in OTHERS], "key string")
    asked = f"might_contain(X'{bytes(made).hex()}', xxhash64(key)) m"
    assert found == [row.m for row in others.selectExpr(asked).collect()]
    assert sum(found) < 200


def test_the_jvms_answers_are_petals(spark, words):
    made, data = of_jvm(spark, words, "key")
    filter = petal.spark.from_spark_bloom(data)
    for key in KEYS[:100] + OTHERS[:300]:
        assert (key in filter) == made.mightContainString(key)


def test_a_number_of_arguments_that_is_not_theirs(spark):
    with pytest.raises(Exception, match="might_contain: expected 2 arguments, found 1"):
        spark.sql("select might_contain(1)").collect()


def test_bytes_of_others_are_refused():
    with pytest.raises(petal.FormatError):
        petal.spark.from_spark_bloom(petal.BloomFilter(10).to_bytes())
    with pytest.raises(petal.FormatError):
        petal.spark.from_spark_bloom(petal.spark.to_spark_bloom(KEYS, 2000)[:-1])
    with pytest.raises(ValueError, match="version 3"):
        petal.spark.to_spark_bloom(KEYS, 2000, version=3)
