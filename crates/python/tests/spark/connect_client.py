"""What a client of Spark Connect does: `connect_client.py ADDRESS FOLDER`. Run by test_connect.py."""

import sys
from pathlib import Path

import petal
import petal.spark
from pyspark.sql import SparkSession

address, folder = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.remote(address).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect."), type(spark)

a = spark.range(0, 3000).selectExpr("case when id % 7 = 3 then null else concat('key ', id - id % 2) end k", "id n")
b = spark.range(2700, 6000).selectExpr("concat('key ', id - id % 2) k", "id m")


def rows_of(frame):
    return sorted(map(repr, frame.collect()))


for operation, join in [("common", "left_semi"), ("diff", "left_anti")]:
    found = getattr(petal.spark, operation)(a, b, "k")
    assert rows_of(found) == rows_of(a.join(b, "k", join)), operation
    assert found.count() > 100
    found.unpersist()
single = a.where("n % 2 = 0 and k is not null")
for frame in a, single.union(single.where("n < 50")):
    once = petal.spark.dedup(frame, "k")
    assert rows_of(once.select("k")) == rows_of(frame.select("k").distinct())

members = petal.spark.build(b, "k", fpr=1e-6)
assert abs(members.estimated_len - 1650) < 20 and "key 2700" in members
assert "key 1" not in members and len(petal.spark.build(b.where("false"), "k").to_bytes()) > 0
looked_up = petal.spark.contains(a, "k", members)
assert rows_of(looked_up) == rows_of(a.join(b, "k", "left_semi"))
members.save(folder / "members.petal")
petal.spark.register(spark, "is_member", folder / "members.petal")
a.createOrReplaceTempView("a")
assert spark.sql("SELECT count(*) FROM a WHERE is_member(k)").first()[0] == looked_up.count()
frame = spark.createDataFrame([("http://www.Example.com/1",)], "url string")
changed = frame.withColumn("key", petal.spark.transform_key("url", ["url-surt"]))
assert changed.first()["key"] == "com,example)/1"

(folder / "a.txt").write_text("".join(f"{n % 900}\n" for n in range(2000)))
(folder / "b.txt").write_text("".join(f"{n}\n" for n in range(800, 1500)))
for operation, files in [("common", ["a.txt", "b.txt"]), ("symdiff", ["a.txt", "b.txt"]), ("dedup", ["a.txt"])]:
    paths = [folder / name for name in files]
    report = getattr(petal.spark, operation)(spark, *paths, folder / operation, range_bytes=999)
    parts = b"".join(part.read_bytes() for part in sorted((folder / operation).glob("part-*")))
    expected = getattr(petal, operation)(*paths)
    assert parts.splitlines() == list(expected) and report.kept == expected.kept
try:
    petal.spark.dedup(spark, folder / "none.txt", folder / "no")
except petal.InputError as error:
    assert "none.txt" in str(error) and "\n" not in str(error)
else:
    raise AssertionError("no error of a missing file")
spark.stop()
print("all right")
