//! Filters in the server's files: RDB fields, commands of the append-only file, the digest of `DEBUG
//! DIGEST`, and payloads of `RESTORE`.
//!
//! Filters in petal's layout are written as a container, complete or partial; the others as
//! RedisBloom writes them.

mod aof;
mod dump;
mod rdb;

pub(crate) use aof::rewrite;
pub(crate) use dump::payload;
pub(crate) use rdb::{DigestWriter, load, save};

/// Maximum length of a chunk: of an RDB field, or of a command that loads a part of a filter.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
