# Apache DataSketches' BloomFilter. Variants: in DataSketches.java.
. "$ROOT/peers/java.sh"
java_peer datasketches DataSketches
