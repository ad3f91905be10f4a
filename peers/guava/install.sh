# Guava's BloomFilter. Variants: in Guava.java.
. "$ROOT/peers/java.sh"
java_peer guava Guava
