"""Spark's own Bloom filters: bytes and look-ups equal those of the JVM."""

import pytest

pytest.importorskip("pyspark")

import petal  # noqa: E402
import petal.spark  # noqa: E402

KEYS = [f"https://example.com/{'ä' * (n % 5)}{n}" for n in range(2000)]
OTHERS = [f"https://example.org/{n}" for n in range(2000)]


@pytest.fixture(scope="module")
def keys(spark):
    frame = spark.createDataFrame([(key,) for key in KEYS], "key string")
    return frame.selectExpr("key", "cast(key as binary) bytes", "xxhash64(key) hash").cache()


def jvm_filter(spark, frame, column, version=2):
    """Returns the JVM's filter and its bytes."""
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
def test_bytes_equal_those_of_the_jvm(spark, keys, version):
    _, bytes_of_jvm = jvm_filter(spark, keys, "hash", version)
    assert petal.spark.to_spark_bloom(KEYS, len(KEYS), version=version) == bytes_of_jvm
    _, bytes_of_jvm = jvm_filter(spark, keys, "key", version)
    own = petal.spark.to_spark_bloom(KEYS, len(KEYS), hashed=False, version=version)
    assert own == bytes_of_jvm


def test_hashes_equal_those_of_sql(spark, keys):
    expected = [row.hash % 2**64 for row in keys.select("hash").collect()]
    assert petal.spark.xxhash64(KEYS).to_pylist() == expected
    numbers = [0, 1, 255, 2**31, 2**63 - 1]
    frame = spark.createDataFrame([(n,) for n in numbers], "n bigint").selectExpr("xxhash64(n) h")
    assert petal.spark.xxhash64(numbers).to_pylist() == [row.h % 2**64 for row in frame.collect()]


def test_sql_queries_a_filter_of_petal(spark, keys):
    own = petal.spark.to_spark_bloom(KEYS, len(KEYS), 1e-6)
    others = spark.createDataFrame([(key,) for key in OTHERS], "key string")
    condition = f"might_contain(X'{own.hex()}', xxhash64(key))"
    assert keys.where(condition).count() == len(KEYS)
    assert others.where(condition).count() == 0


def test_petal_queries_a_filter_of_sql(spark, keys):
    keys.createOrReplaceTempView("keys")
    (made,) = spark.sql("select bloom_filter_agg(xxhash64(key), 2000L, 20000L) from keys").first()
    filter = petal.spark.from_spark_bloom(bytes(made))
    assert all(filter.contains_batch(petal.spark.xxhash64(KEYS)).to_pylist())
    found = filter.contains_batch(petal.spark.xxhash64(OTHERS)).to_pylist()
    others = spark.createDataFrame([(key,) for key in OTHERS], "key string")
    condition = f"might_contain(X'{bytes(made).hex()}', xxhash64(key)) m"
    assert found == [row.m for row in others.selectExpr(condition).collect()]
    assert sum(found) < 200


def test_look_ups_equal_those_of_the_jvm(spark, keys):
    made, data = jvm_filter(spark, keys, "key")
    filter = petal.spark.from_spark_bloom(data)
    for key in KEYS[:100] + OTHERS[:300]:
        assert (key in filter) == made.mightContainString(key)


def test_wrong_number_of_arguments_is_an_error(spark):
    with pytest.raises(Exception, match="might_contain: expected 2 arguments, found 1"):
        spark.sql("select might_contain(1)").collect()


def test_other_bytes_are_refused():
    with pytest.raises(petal.FormatError):
        petal.spark.from_spark_bloom(petal.BloomFilter(10).to_bytes())
    with pytest.raises(petal.FormatError):
        petal.spark.from_spark_bloom(petal.spark.to_spark_bloom(KEYS, 2000)[:-1])
    with pytest.raises(ValueError, match="expected 1 or 2, found 3"):
        petal.spark.to_spark_bloom(KEYS, 2000, version=3)
