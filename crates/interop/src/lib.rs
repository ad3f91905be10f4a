//! Bloom filters in the file formats of other programs: read, queried in place, filled and written,
//! bit for bit as those programs do it.
//!
//! A filter cannot be converted to another format: its bits depend on the hash that set them, and a
//! filter does not contain its keys. So every format has its own hash, and [`ForeignFilter`]
//! queries each in its own way. `docs/reference/interop.md` has the table of formats, with limits and traps.
//!
//! Bytes from files are validated before use. Nothing is allocated from a length that a file claims
//! until the bytes exist.

#![forbid(unsafe_code)]

mod cascade_builder;
mod encoding;
mod error;
mod foreign_filter;
mod format;
mod formats;
mod gzip;
mod hashes;
mod key_type;
mod parquet;
mod stats;

pub use cascade_builder::{CascadeOptions, cascade};
pub use error::{Error, ErrorKind, Result};
pub use foreign_filter::{ForeignFilter, Hasher};
pub use format::Format;
pub use formats::CascadeHash;
pub use key_type::KeyType;
pub use parquet::{Answer as ParquetAnswer, ParquetFile, ParquetKeys, RowGroup as ParquetRowGroup};
pub use stats::FilterStats;

pub use gzip::{GZIP, read_decompressed};

/// RedisBloom's mathematics, for programs that keep its filters in memory.
pub mod redisbloom {
    pub use crate::formats::redisbloom::links::{
        CAPACITY_IS_BITS, FORCE64, Header, LinkFields, LinkPlan, MAX_LINKS, NO_ROUND, NO_SCALING,
        TIGHTENING, cuckoo_hash, hash,
    };
}

/// Tests the examples of docs/reference/interop.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
