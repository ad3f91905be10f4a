//! A memory-mapped file; its pages are loaded on first access.

use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;
use std::fs::File;

use memmap2::Mmap;

use super::cache_line::{CacheLine, bytes_as_lines};
use super::traits::{Sealed, SliceStore, Store};
use crate::error::{Error, Result};

/// A read-only memory-mapped file, or the cache lines of a part of it. Clones share the map.
#[derive(Clone)]
pub struct Mapped {
    map: Arc<Mmap>,
    /// The range of the lines in the map, in bytes.
    start: usize,
    end: usize,
}

impl Mapped {
    /// Maps a whole file without reading it, for
    /// [`AnyFilter::open_mapped`](crate::AnyFilter::open_mapped).
    ///
    /// # Errors
    /// If the file cannot be mapped.
    ///
    /// # Safety
    /// While the map exists, no process may modify the file: Rust does not allow a shared slice to
    /// change, and if the file is truncated, an access ends the process with a signal.
    pub unsafe fn open(file: &File) -> Result<Self> {
        // SAFETY: the caller guarantees that the file does not change.
        let map = unsafe { Mmap::map(file) }?;
        let end = map.len();
        Ok(Self { map: Arc::new(map), start: 0, end })
    }

    /// Returns the cache lines of the file from byte `start`.
    pub(crate) fn lines_from(&self, start: usize) -> Result<Self> {
        let lines = Self { map: Arc::clone(&self.map), start, end: self.map.len() };
        lines.bytes().and_then(bytes_as_lines).ok_or_else(Error::unaligned)?;
        Ok(lines)
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.map.get(self.start..self.end)
    }

    /// Returns all bytes of the file.
    pub(crate) fn file(&self) -> &[u8] {
        &self.map
    }
}

/// The bytes of the file, or of the part of it in a filter; for formats of other programs.
impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.bytes().unwrap_or_default()
    }
}

impl Sealed for Mapped {}

impl Store for Mapped {
    #[inline]
    fn lines(&self) -> &[CacheLine] {
        // Checked by the constructors, so the default is never used.
        self.bytes().and_then(bytes_as_lines).unwrap_or_default()
    }

    fn memory_usage(&self) -> u64 {
        0
    }
}

impl SliceStore for Mapped {
    fn slice_lines(&self, lines: Range<usize>) -> Self {
        let start = self.start + lines.start * CacheLine::BYTES;
        let end = self.start + lines.end * CacheLine::BYTES;
        debug_assert!(start <= end && end <= self.end);
        Self { map: Arc::clone(&self.map), start, end }
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} lines)", (self.end - self.start) / CacheLine::BYTES)
    }
}
