# Spark's BloomFilter, of its sketch library. Variants: in Spark.java.
. "$ROOT/peers/java.sh"
java_peer spark Spark
