//! Files and objects that are read by position, the files that replace others, links and locks.

pub mod atomic_file;
mod attributes;
mod descriptor;
mod identity;
mod input_file;
mod links;
mod lock;

use serde::{Deserialize, Serialize};

pub(crate) use descriptor::check_readable;
pub(crate) use identity::{BlockSum, CheckTime, Checksum, FileIdentity, StreamSum};
pub(crate) use input_file::{FileStat, InputFile, read_at};
pub use lock::Lock;

/// A range of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}
