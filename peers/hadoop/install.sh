# Hadoop's BloomFilter. Variants: in Hadoop.java.
. "$ROOT/peers/java.sh"
java_peer hadoop Hadoop
