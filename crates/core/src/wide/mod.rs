//! Filters on 128-bit hashes, for rates that 64 bits cannot promise.
