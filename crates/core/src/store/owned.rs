//! Memory of our own: zeroed, aligned to pages, refused rather than aborted.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

use super::{Line, Store, StoreMut};
use crate::error::{Error, Result};

/// Lines are aligned to pages, so that a pair of them lies in one 128-byte unit and huge pages
/// can be used.
const ALIGN: usize = 4096;

/// Lines in memory of our own.
pub struct Owned {
    lines: NonNull<Line>,
    len: usize,
}

// SAFETY: `Owned` owns its memory alone, as a `Box<[Line]>` would, and `Line` is plain data.
unsafe impl Send for Owned {}
// SAFETY: as above; `&Owned` gives only `&[Line]`.
unsafe impl Sync for Owned {}

impl Owned {
    /// So many lines of zeros. The system gives the pages when they are first touched.
    ///
    /// # Errors
    /// If the memory is refused.
    pub(crate) fn zeroed(len: u64) -> Result<Self> {
        let refused = || Error::alloc(len.saturating_mul(Line::BYTES as u64));
        let len = usize::try_from(len).map_err(|_| refused())?;
        if len == 0 {
            return Ok(Self { lines: NonNull::dangling(), len });
        }
        let layout = Self::layout(len).ok_or_else(refused)?;
        // SAFETY: the layout is not empty: `len` is at least 1.
        let memory = unsafe { alloc_zeroed(layout) };
        let lines = NonNull::new(memory.cast()).ok_or_else(refused)?;
        Ok(Self { lines, len })
    }

    /// A copy of lines.
    pub(crate) fn copy_of(lines: &[Line]) -> Result<Self> {
        let mut copy = Self::zeroed(lines.len() as u64)?;
        copy.lines_mut().copy_from_slice(lines);
        Ok(copy)
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_mul(Line::BYTES)?, ALIGN).ok()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len).filter(|layout| layout.size() > 0) {
            // SAFETY: `lines` came from `alloc_zeroed` with this very layout, in `zeroed`, for
            // any length above 0; nobody else frees it.
            unsafe { dealloc(self.lines.as_ptr().cast(), layout) }
        }
    }
}

impl Store for Owned {
    #[inline]
    fn lines(&self) -> &[Line] {
        // SAFETY: `lines` points to `len` initialised lines (zeroed is initialised), aligned, or
        // is dangling and aligned with `len` 0; they live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr(), self.len) }
    }
}

impl StoreMut for Owned {
    #[inline]
    fn lines_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `lines`; `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({} lines)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_aligned_and_refused() {
        for len in [0, 1, 7, 1000] {
            let store = Owned::zeroed(len).unwrap();
            assert_eq!(store.lines().len() as u64, len);
            assert!(store.lines().iter().all(|line| *line == Line::ZERO));
            assert!(len == 0 || store.lines().as_ptr().addr().is_multiple_of(ALIGN));
        }
        // More than the address space: refused by arithmetic.
        assert!(Owned::zeroed(u64::MAX).unwrap_err().is_alloc());
        assert!(Owned::zeroed(1 << 57).unwrap_err().is_alloc());
        // More than any machine has: refused by the system.
        assert!(Owned::zeroed(1 << 45).unwrap_err().is_alloc());
    }
}
