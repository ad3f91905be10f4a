//! Bytes of another owner.

use core::ops::Range;

use super::cache_line::{CacheLine, bytes_as_lines};
use super::traits::{Sealed, SliceStore, Store};
use crate::error::{Error, Result};

/// Cache lines in memory of another owner.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'a>(&'a [CacheLine]);

impl<'a> Borrowed<'a> {
    pub(crate) fn from_lines(lines: &'a [CacheLine]) -> Self {
        Self(lines)
    }

    /// Borrows bytes as cache lines.
    ///
    /// # Errors
    /// If the address is not a multiple of 64.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        bytes_as_lines(bytes).map(Self).ok_or_else(Error::unaligned)
    }
}

impl Sealed for Borrowed<'_> {}

impl Store for Borrowed<'_> {
    #[inline]
    fn lines(&self) -> &[CacheLine] {
        self.0
    }

    fn memory_usage(&self) -> u64 {
        0
    }
}

impl SliceStore for Borrowed<'_> {
    fn slice_lines(&self, lines: Range<usize>) -> Self {
        Self(&self.0[lines])
    }
}
