//! Zeroed lines for the prototypes, on small pages or on huge ones.

#![allow(unsafe_code, reason = "aligned memory and advice to the system about it")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// A cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// Pages that the system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    Small,
    Huge,
}

const HUGE: usize = 2 << 20;

/// Lines of our own.
pub(crate) struct Memory {
    start: *mut Line,
    len: usize,
}

impl Memory {
    pub(crate) fn zeroed(len: usize, pages: Pages) -> Self {
        assert!(len > 0);
        let layout = Self::layout(len);
        // SAFETY: the layout has at least one line.
        let start = unsafe { alloc(layout) }.cast::<Line>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range was just allocated and begins at a page; the advice changes no contents. The memory is
        // then written before anyone reads it.
        unsafe {
            libc::madvise(start.cast(), layout.size(), advice);
            start.write_bytes(0, len);
        }
        Self { start, len }
    }

    pub(crate) fn lines(&mut self) -> &mut [Line] {
        // SAFETY: allocated for `len` lines and zeroed in `zeroed`; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    fn layout(len: usize) -> Layout {
        let size = len * size_of::<Line>();
        Layout::from_size_align(size, HUGE).unwrap_or_else(|_| panic!("{size} bytes of lines"))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: from `alloc` with this very layout.
        unsafe { dealloc(self.start.cast(), Self::layout(self.len)) }
    }
}
