# Hadoop's BloomFilter. Variants: in Hadoop.java.
. "$ROOT/peers/java.sh"
# Its log has nowhere to go, and need not say so.
java_peer hadoop Hadoop -Dslf4j.internal.verbosity=ERROR
