//! A file queried where it lies: pages come into memory as they are touched.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use super::{Line, Pieces, Store, lines_of};
use crate::error::{Error, Result};

/// A file in memory, read only; within a filter, the lines of a part of it. Copies share the map.
#[derive(Clone)]
pub struct Mapped {
    map: Arc<Mmap>,
    /// Where the lines begin and end in the map.
    start: usize,
    end: usize,
}

impl Mapped {
    /// Maps a whole file; nothing of it is read yet. Give it to
    /// [`Filter::open_mapped`](crate::Filter::open_mapped).
    ///
    /// # Errors
    /// If the file cannot be mapped.
    ///
    /// # Safety
    /// While the map lives, no process may change the file: what is read would change underfoot,
    /// which Rust does not allow of a shared slice, and a file cut short ends the process with a
    /// signal.
    pub unsafe fn open(file: &File) -> Result<Self> {
        // SAFETY: the caller promises that the file does not change.
        let map = unsafe { Mmap::map(file) }?;
        let end = map.len();
        Ok(Self { map: Arc::new(map), start: 0, end })
    }

    /// The lines of the file from this byte on.
    pub(crate) fn lines_from(&self, start: usize) -> Result<Self> {
        let lines = Self { map: Arc::clone(&self.map), start, end: self.map.len() };
        lines.bytes().and_then(lines_of).ok_or_else(Error::unaligned)?;
        Ok(lines)
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.map.get(self.start..self.end)
    }

    /// All bytes of the file.
    pub(crate) fn file(&self) -> &[u8] {
        &self.map
    }
}

/// The bytes of the file, or of the part of it that a filter has: for formats that are not
/// petal's own.
impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.bytes().unwrap_or_default()
    }
}

impl Store for Mapped {
    #[inline]
    fn lines(&self) -> &[Line] {
        // Checked when it was made; an empty slice could only come of a bug here.
        self.bytes().and_then(lines_of).unwrap_or_default()
    }

    fn memory_usage(&self) -> u64 {
        0
    }
}

impl Pieces for Mapped {
    fn piece(&self, lines: Range<usize>) -> Self {
        let start = self.start + lines.start * Line::BYTES;
        let end = self.start + lines.end * Line::BYTES;
        debug_assert!(start <= end && end <= self.end);
        Self { map: Arc::clone(&self.map), start, end }
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} lines)", (self.end - self.start) / Line::BYTES)
    }
}
