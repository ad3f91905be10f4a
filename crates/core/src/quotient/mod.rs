//! Filters that delete, count and grow: remainders in a hash table without keys.
