//! Filters in the server's files: RDB fields, commands of the append-only file, and the digest of
//! `DEBUG DIGEST`.
//!
//! Filters in petal's layout are written as a container, complete or partial; the others as
//! RedisBloom writes them.

mod aof;
mod rdb;

pub(crate) use aof::rewrite;
pub(crate) use rdb::{digest, load, save};

/// Maximum length of a chunk: of an RDB field, or of a command that loads a part of a filter.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
