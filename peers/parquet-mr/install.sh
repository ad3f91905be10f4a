# The split-block filter of Parquet's Java library. Variants: in ParquetMr.java.
. "$ROOT/peers/java.sh"
java_peer parquet-mr ParquetMr
