//! A file queried where it lies: pages come into memory as they are touched.

use std::fmt;
use std::fs::File;

use memmap2::Mmap;

use super::{Line, Store, lines_of};
use crate::error::{Error, Result};

/// A file in memory, read only; within a filter, its lines.
pub struct Mapped {
    map: Mmap,
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
        Ok(Self { map, start: 0, end })
    }

    /// The same map, of which the lines are those between two positions.
    pub(crate) fn between(self, start: usize, end: usize) -> Result<Self> {
        self.map.get(start..end).and_then(lines_of).ok_or_else(Error::unaligned)?;
        Ok(Self { start, end, ..self })
    }

    /// All bytes of the file.
    pub(crate) fn file(&self) -> &[u8] {
        &self.map
    }
}

impl Store for Mapped {
    #[inline]
    fn lines(&self) -> &[Line] {
        // Checked when it was made; an empty slice could only come of a bug here.
        self.map.get(self.start..self.end).and_then(lines_of).unwrap_or_default()
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} lines)", (self.end - self.start) / Line::BYTES)
    }
}
