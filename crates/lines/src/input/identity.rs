//! The bytes of a file at its opening, recognised again: what counts as a change of an input.
//!
//! An input is the bytes that its file had when it was opened. A file may grow, be touched, be
//! renamed, or get other permissions while a job reads it: those bytes are the same. Bytes that
//! are rewritten or cut off are an error.
//!
//! The metadata of a file is compared before and after each pass. If it is what it was, nothing
//! else is done. If it is not, the bytes are read once more, and their checksum is compared with
//! that of the first pass. So after each pass that ends well, the bytes of all passes were equal.
//!
//! * The checksum is that of the first complete pass, whose chunks are hashed as they are read.
//!   The hash of each chunk depends on its place, and their sum does not depend on their order.
//! * Before the first pass only the first 64 KiB can be compared. Bytes behind them that were
//!   rewritten between the opening and the first pass are read as they are then.
//! * A pass that ends early has no checksum. What it read was read once.
//!
//! Cost: one hash of each byte in one pass; if the metadata changed, one more read for each pass.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use petal::HashSpec;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::Range;
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The metadata of a file at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    device: u64,
    inode: u64,
    pub(super) length: u64,
    /// Modification time and change time, in seconds and nanoseconds.
    pub(super) changed: [(i64, i64); 2],
}

impl Mark {
    pub(super) fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            changed: [(data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec())],
        }
    }
}

/// The checksum of the bytes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Checksum {
    /// The sum of the rapidhashes of blocks of this size, each seeded with its number.
    Blocks { size: u64, sum: u64 },
    /// The XXH3 of all bytes in order.
    Stream { hash: u64 },
}

/// Blocks of a checksum are at most this large.
const MOST_BLOCK: u64 = 1 << 26;

/// Bytes that are read at a time for the hash of a stream.
const STEP: usize = 256 << 10;

impl Checksum {
    /// Whether the bytes of a range have this checksum; not if it cannot be read whole.
    fn matches(self, file: &File, range: Range, progress: &dyn Progress) -> Result<bool> {
        let step = match self {
            Self::Blocks { size, .. } if size == 0 || size > MOST_BLOCK => return Ok(false),
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

/// The hash of a block, seeded with its number. It finds accidents; it need not resist adversaries.
///
/// Cost: one pass over the block while it is in cache, for workers hash a block right after they
/// have read it.
fn block_hash(number: u64, block: &[u8]) -> u64 {
    HashSpec::rapid(number).hash(block)
}

/// The blocks of an input, hashed by many threads.
pub(crate) struct BlockSum {
    size: u64,
    sum: AtomicU64,
    bytes: AtomicU64,
}

impl BlockSum {
    pub(super) fn new(size: u64) -> Self {
        Self { size, sum: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Adds the block that begins at a position in the input.
    pub(crate) fn add(&self, position: u64, block: &[u8]) {
        let hash = block_hash(position / self.size, block);
        self.sum.fetch_add(hash, Ordering::Relaxed);
        self.bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
    }

    /// The checksum of an input of `length` bytes; `None` if not all of it was added.
    pub(super) fn finish(&self, length: u64) -> Option<Checksum> {
        let Self { size, sum, bytes } = self;
        let whole = bytes.load(Ordering::Relaxed) == length;
        whole.then(|| Checksum::Blocks { size: *size, sum: sum.load(Ordering::Relaxed) })
    }
}

/// What a file is recognised by.
#[derive(Debug)]
pub(crate) struct Identity {
    /// At the opening.
    opened: Mark,
    /// How many of the first bytes were hashed at the opening, and their hash.
    begin: (u64, u64),
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// The metadata with which the bytes were last known to be the same.
    mark: Mark,
    checksum: Option<Checksum>,
}

/// When a file is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before a pass: a file that has only grown is compared after it.
    Before,
    After,
}

impl Identity {
    /// Of a file that begins with these bytes.
    pub(super) fn new(opened: Mark, begin: &[u8]) -> Arc<Self> {
        let begin = (begin.len() as u64, xxh3_64(begin));
        let known = Mutex::new(Known { mark: opened, checksum: None });
        Arc::new(Self { opened, begin, known })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn opened(&self) -> Mark {
        self.opened
    }

    pub(crate) fn checksum(&self) -> Option<Checksum> {
        self.known().checksum
    }

    pub(super) fn set_checksum(&self, checksum: Option<Checksum>) {
        self.known().checksum = checksum;
    }

    /// Compares the bytes of `range`, of a file whose bytes begin to count at `start`.
    pub(super) fn check(
        &self,
        name: &str,
        file: &File,
        start: u64,
        range: Range,
        moment: Moment,
        progress: &dyn Progress,
    ) -> Result<()> {
        let now = Mark::of(&file.metadata().map_err(|e| Error::read(name, e))?);
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
            Some(_) if moment == Moment::Before && now.length > mark.length => return Ok(()),
            Some(checksum) => checksum.matches(file, range, progress)?,
            None => self.begins_alike(file, start).map_err(|e| Error::read(name, e))?,
        };
        if !same {
            return Err(Error::changed(name, "its bytes are not what they were"));
        }
        self.known().mark = now;
        Ok(())
    }

    /// Compares size and modification time alone: other tasks read other parts of the file.
    pub(super) fn check_strictly(&self, name: &str, file: &File) -> Result<()> {
        let now = Mark::of(&file.metadata().map_err(|e| Error::read(name, e))?);
        let visible = |mark: Mark| (mark.device, mark.inode, mark.length, mark.changed[0]);
        if visible(now) == visible(self.opened) {
            return Ok(());
        }
        Err(Error::changed(name, "its size, time or identity is not what it was"))
    }

    fn begins_alike(&self, file: &File, start: u64) -> io::Result<bool> {
        let (length, hash) = self.begin;
        let mut begin = vec![0; length as usize];
        match file.read_exact_at(&mut begin, start) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            other => other.map(|()| xxh3_64(&begin) == hash),
        }
    }

    /// Goes on with an input of an earlier run, which had this metadata, this range of bytes and
    /// this checksum, if the bytes are the same. The range must lie in the file as it is now.
    pub(super) fn resume(
        &self,
        file: &File,
        range: Range,
        then: Mark,
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

/// The hash of bytes that are read in order.
pub(super) struct StreamSum(Box<Xxh3>, Arc<Identity>);

impl StreamSum {
    /// For the first reading of a file; `None` if its checksum is known.
    pub(super) fn of(identity: Option<&Arc<Identity>>) -> Option<Self> {
        let identity = identity.filter(|identity| identity.checksum().is_none())?;
        Some(Self(Box::new(Xxh3::new()), Arc::clone(identity)))
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// All bytes were added.
    pub(super) fn finish(self) {
        self.1.set_checksum(Some(Checksum::Stream { hash: self.0.digest() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_sum_depends_on_bytes_and_places_but_not_on_the_order_of_adding() {
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
