//! Filters in the files of other programs: read, asked where they lie, filled and written, bit for
//! bit as those programs do it.
//!
//! A filter cannot be converted to another format: its bits depend on the hash that set them, and
//! the keys are gone. So every format brings its own hash, and [`Foreign`] asks each in its own
//! way. `docs/interop.md` has the table of formats, with their limits and traps.
//!
//! Bytes from outside are lies until validated: a header is believed only as far as the bytes
//! behind it are there, and nothing is allocated from a length that a file claims.

#![forbid(unsafe_code)]

mod bits;
mod bytes;
mod cascade;
mod detect;
mod error;
mod facts;
mod floor;
mod foreign;
mod format;
mod formats;
mod hashes;
mod keys;
mod parquet;
mod scheme;
mod thrift;

pub use cascade::{CascadeOptions, cascade};
pub use error::{Error, Result};
pub use facts::Facts;
pub use foreign::{Foreign, GZIP, Hasher, read_unpacked};
pub use format::Format;
pub use formats::CascadeHash;
pub use keys::KeyForm;
pub use parquet::{
    Answer as ParquetAnswer, ParquetFile, Probe as ParquetProbe, RowGroup as ParquetRowGroup,
};

/// RedisBloom's mathematics, for those that keep its filters in memory.
pub mod redisbloom {
    pub use crate::formats::redisbloom::links::{
        CAPACITY_IS_BITS, FORCE64, Header, LinkFields, LinkPlan, MOST_LINKS, NO_ROUND, NO_SCALING,
        TIGHTENING, cuckoo_hash, hash,
    };
}

/// The examples of the page about formats are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
