//! What identifies the contents of a file or an object at one moment.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

/// Identity, length and times of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStat {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) length: u64,
    /// Modification time and change time, in seconds and nanoseconds.
    pub(super) changed: [(i64, i64); 2],
}

impl FileStat {
    pub(super) fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            changed: [(data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec())],
        }
    }

    /// The version of an object: its length, the hash of its ETag, its time in seconds.
    #[cfg(feature = "object-store")]
    pub(super) fn of_object(length: u64, etag: u64, modified: i64) -> Self {
        Self { device: 0, inode: etag, length, changed: [(modified, 0); 2] }
    }
}
