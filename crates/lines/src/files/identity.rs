//! Detects changes of an input during a job.
//!
//! An input is the bytes that its file had when it was opened. The file may grow, be renamed, or get
//! other times or permissions while a job reads it. Rewriting or truncating those bytes is an
//! error.
//!
//! The metadata of a file is compared before and after each pass. If it has changed, the bytes are
//! read once more and their checksum is compared with that of the first pass. So the bytes of
//! all passes are equal after each successful pass.
//!
//! * The checksum is that of the first complete pass, whose chunks are hashed as they are read. The
//!   hash of a chunk depends on its position; the sum of the hashes does not depend on their order.
//! * Before the first pass only the first 64 KiB can be compared. Later bytes that were rewritten
//!   between opening and the first pass are read as they are then.
//! * A pass that ends early has no checksum; its bytes were read only once.
//!
//! An object of a store cannot change unnoticed: every request demands the version that was opened.
//!
//! Cost: one hash of each byte in one pass; if the metadata has changed, one more read per pass.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use petal::HashSpec;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::ByteRange;
use super::input_file::{FileStat, InputFile};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The checksum of the bytes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Checksum {
    /// The sum of the rapidhashes of blocks of this size, each seeded with its number.
    Blocks { size: u64, sum: u64 },
    /// The XXH3 of all bytes in order.
    Stream { hash: u64 },
}

/// Maximum block size of a checksum.
const MAX_BLOCK: u64 = 1 << 26;

/// Bytes read at a time for the hash of a stream.
const STEP: usize = 256 << 10;

impl Checksum {
    /// Returns whether the bytes of a range have this checksum; false if they cannot be read.
    fn matches(self, file: &InputFile, range: ByteRange, progress: &dyn Progress) -> Result<bool> {
        let step = match self {
            Self::Blocks { size, .. } if size == 0 || size > MAX_BLOCK => return Ok(false),
            Self::Blocks { size, .. } => size as usize,
            Self::Stream { .. } => STEP,
        };
        let (mut sum, mut stream) = (0u64, Xxh3::new());
        let mut buffer = vec![0; step.min((range.end - range.start) as usize)];
        let (mut at, mut number) = (range.start, 0);
        while at < range.end {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let bytes = &mut buffer[..((range.end - at) as usize).min(step)];
            if file.read_exact_at(bytes, at).is_err() {
                return Ok(false);
            }
            match self {
                Self::Blocks { .. } => sum = sum.wrapping_add(block_hash(number, bytes)),
                Self::Stream { .. } => stream.update(bytes),
            }
            at += bytes.len() as u64;
            number += 1;
        }
        Ok(match self {
            Self::Blocks { sum: expected, .. } => sum == expected,
            Self::Stream { hash } => stream.digest() == hash,
        })
    }
}

/// Returns the hash of a block, seeded with its number. It detects accidental changes; it need not
/// resist adversaries.
///
/// Cost: one pass over the block while it is in the cache, because workers hash a block right after
/// reading it.
fn block_hash(number: u64, block: &[u8]) -> u64 {
    HashSpec::rapid(number).hash(block)
}

/// The checksum of the blocks of an input, computed by many threads.
pub(crate) struct BlockSum {
    size: u64,
    sum: AtomicU64,
    bytes: AtomicU64,
}

impl BlockSum {
    pub(crate) fn new(size: u64) -> Self {
        Self { size, sum: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Adds the block at a position of the input.
    pub(crate) fn add(&self, position: u64, block: &[u8]) {
        let hash = block_hash(position / self.size, block);
        self.sum.fetch_add(hash, Ordering::Relaxed);
        self.bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
    }

    /// Returns the checksum of an input of `length` bytes; `None` if blocks are missing.
    pub(crate) fn finish(&self, length: u64) -> Option<Checksum> {
        let Self { size, sum, bytes } = self;
        let whole = bytes.load(Ordering::Relaxed) == length;
        whole.then(|| Checksum::Blocks { size: *size, sum: sum.load(Ordering::Relaxed) })
    }
}

/// The state of a file at opening, and the last verified state.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    /// Metadata at opening.
    opened: FileStat,
    /// Number and hash of the first bytes at opening.
    begin: (u64, u64),
    known: Mutex<Known>,
    /// Whether the growth of the file was reported.
    grown: AtomicBool,
}

#[derive(Debug)]
struct Known {
    /// Metadata when the bytes were last known to be unchanged.
    mark: FileStat,
    checksum: Option<Checksum>,
}

/// When a file is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckTime {
    /// Before a pass. A file that has only grown is compared after the pass.
    Before,
    After,
}

impl FileIdentity {
    /// The identity of a file that begins with these bytes.
    pub(crate) fn new(opened: FileStat, begin: &[u8]) -> Arc<Self> {
        let begin = (begin.len() as u64, xxh3_64(begin));
        let known = Mutex::new(Known { mark: opened, checksum: None });
        Arc::new(Self { opened, begin, known, grown: AtomicBool::new(false) })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn opened(&self) -> FileStat {
        self.opened
    }

    pub(crate) fn checksum(&self) -> Option<Checksum> {
        self.known().checksum
    }

    pub(crate) fn set_checksum(&self, checksum: Option<Checksum>) {
        self.known().checksum = checksum;
    }

    /// Checks that the bytes of `range` are unchanged; the input begins at `start`.
    pub(crate) fn check(
        &self,
        name: &str,
        file: &InputFile,
        start: u64,
        range: ByteRange,
        moment: CheckTime,
        progress: &dyn Progress,
    ) -> Result<()> {
        let now = file.stat().map_err(|e| Error::read(name, e))?;
        let Known { mark, checksum } = *self.known();
        if now == mark {
            return Ok(());
        }
        if (now.device, now.inode) != (mark.device, mark.inode) {
            return Err(Error::changed(name, "another file has its name"));
        }
        if now.length < range.end {
            return Err(Error::changed(name, "it is shorter than it was when it was opened"));
        }
        let same = match checksum {
            Some(_) if moment == CheckTime::Before && now.length > mark.length => return Ok(()),
            Some(checksum) => checksum.matches(file, range, progress)?,
            None => self.begins_alike(file, start).map_err(|e| Error::read(name, e))?,
        };
        if !same {
            return Err(Error::changed(name, "its bytes are not what they were"));
        }
        self.known().mark = now;
        Ok(())
    }

    /// Returns the length of the file if it has grown since it was opened, according to the last
    /// check; once.
    pub(crate) fn take_growth(&self) -> Option<u64> {
        let length = self.known().mark.length;
        let new = length > self.opened.length && !self.grown.swap(true, Ordering::Relaxed);
        new.then_some(length)
    }

    /// Checks that size and modification time are unchanged, for tasks that read only a part of the
    /// file.
    pub(crate) fn check_strictly(&self, name: &str, file: &InputFile) -> Result<()> {
        let now = file.stat().map_err(|e| Error::read(name, e))?;
        let visible = |mark: FileStat| (mark.device, mark.inode, mark.length, mark.changed[0]);
        if visible(now) == visible(self.opened) {
            return Ok(());
        }
        Err(Error::changed(name, "its size, time or identity is not what it was"))
    }

    fn begins_alike(&self, file: &InputFile, start: u64) -> io::Result<bool> {
        let (length, hash) = self.begin;
        let mut begin = vec![0; length as usize];
        match file.read_exact_at(&mut begin, start) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            other => other.map(|()| xxh3_64(&begin) == hash),
        }
    }

    /// Continues with the input of an earlier run, given its metadata, range and checksum. Returns
    /// whether the bytes are unchanged. The range must lie within the file.
    pub(crate) fn resume(
        &self,
        file: &InputFile,
        range: ByteRange,
        then: FileStat,
        checksum: Option<Checksum>,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let same = match checksum {
            _ if then == self.opened => true,
            Some(_) if self.opened.length < then.length => false,
            Some(checksum) => checksum.matches(file, range, progress)?,
            None => false,
        };
        if same {
            self.set_checksum(checksum);
        }
        Ok(same)
    }
}

/// The checksum of bytes that are read in order.
pub(crate) struct StreamSum(Box<Xxh3>, Arc<FileIdentity>);

impl StreamSum {
    /// `None` if the checksum of the file is known.
    pub(crate) fn of(identity: Option<&Arc<FileIdentity>>) -> Option<Self> {
        let identity = identity.filter(|identity| identity.checksum().is_none())?;
        Some(Self(Box::new(Xxh3::new()), Arc::clone(identity)))
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Stores the checksum after the last byte.
    pub(crate) fn finish(self) {
        self.1.set_checksum(Some(Checksum::Stream { hash: self.0.digest() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sum_depends_on_bytes_and_positions_but_not_on_order() {
        let sum = |blocks: &[(u64, &[u8])]| {
            let sum = BlockSum::new(4);
            blocks.iter().for_each(|(at, block)| sum.add(*at, block));
            sum.finish(10)
        };
        let whole = sum(&[(0, b"abcd"), (4, b"efgh"), (8, b"ij")]);
        assert!(whole.is_some());
        assert_eq!(sum(&[(8, b"ij"), (0, b"abcd"), (4, b"efgh")]), whole);
        assert_ne!(sum(&[(0, b"efgh"), (4, b"abcd"), (8, b"ij")]), whole);
        assert_ne!(sum(&[(0, b"abcd"), (4, b"efgh"), (8, b"ik")]), whole);
        assert_eq!(sum(&[(0, b"abcd"), (4, b"efgh")]), None);
    }
}
