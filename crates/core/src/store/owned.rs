//! Memory of our own: zeroed, aligned, refused rather than aborted.
//!
//! Small filters live on the heap. Large ones get pages of their own from the system: they are
//! zero without being written to, come into memory as they are touched, and go back to the
//! system the moment the filter is dropped, whatever the allocator likes to keep.
//!
//! The largest ask for huge pages: a key then finds the address of its line in the processor's
//! table of pages, which small pages overflow. From 25 MB on that saves a fifth to a third of the
//! time of a key (`docs/design.md`, "Kernels"). Nothing is rounded up: where the memory does not
//! begin or end with a huge page, small ones make up the rest.
//!
//! A server that keeps accounts of its memory takes none of this: see [`use_allocator_only`] and
//! [`Mover`]. Where the system has no pages to give (WebAssembly), everything is on the heap.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::MmapMut;

use super::{Line, Store, StoreMut};
use crate::error::{Error, Result};

/// From this many bytes on, memory is pages of its own.
const PAGES_FROM: usize = 256 << 10;
/// From this many bytes on, they are asked to be huge ones: what a processor of today remembers of
/// small pages (2048 of 4 KiB). Below, huge pages made no difference.
const HUGE_FROM: usize = 8 << 20;
/// The least that the system gives.
const PAGE: u64 = 4096;
/// A pair of lines lies in one 128-byte unit.
const ALIGN: usize = 128;

/// Whether the system maps anonymous pages: elsewhere memory comes from the allocator.
const HAS_PAGES: bool = cfg!(any(unix, windows));

/// Whether pages are out of the question.
static ALLOCATOR_ONLY: AtomicBool = AtomicBool::new(false);

/// From now on all memory of new filters comes from the global allocator, however large: for a
/// program whose allocator keeps the accounts, as a server's does that has a limit on memory.
///
/// For the whole process, and for good. Filters that are there keep what they have. Without it,
/// filters of 256 KiB and more have pages of their own from the system, which no allocator knows
/// of.
pub fn use_allocator_only() {
    // Nothing else is told through it: whoever allocates meanwhile takes either.
    ALLOCATOR_ONLY.store(true, Ordering::Relaxed);
}

/// Moves blocks of the global allocator: for a server that moves blocks together to be rid of the
/// gaps between them ("active defragmentation").
pub struct Mover<'a>(MoveBlock<'a>);

type MoveBlock<'a> = &'a mut dyn FnMut(NonNull<u8>, Layout) -> Option<NonNull<u8>>;

impl<'a> Mover<'a> {
    /// Moves them so.
    ///
    /// # Safety
    /// `move_block` is called with a block of the global allocator and its layout. It returns
    /// either `None`, and the block is as it was; or another block that the global allocator would
    /// have given for this layout, with the same bytes in it, the old one having been freed.
    #[must_use]
    pub unsafe fn new(move_block: MoveBlock<'a>) -> Self {
        Self(move_block)
    }
}

impl fmt::Debug for Mover<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mover")
    }
}

/// Lines in memory of our own.
pub struct Owned {
    lines: NonNull<Line>,
    len: usize,
    /// The pages that the lines lie in; without them, they are on the heap. Boxed, for small filters
    /// are many.
    pages: Option<Box<MmapMut>>,
}

// SAFETY: `Owned` owns its memory alone, as a `Box<[Line]>` would, and `Line` is plain data.
unsafe impl Send for Owned {}
// SAFETY: as above; `&Owned` gives only `&[Line]`, and `raw` to this room's `Shared`.
unsafe impl Sync for Owned {}

impl Owned {
    /// So many lines of zeros.
    ///
    /// # Errors
    /// If the memory is refused.
    pub(crate) fn zeroed(len: u64) -> Result<Self> {
        let refused = || Error::alloc(len.saturating_mul(Line::BYTES as u64));
        let len = usize::try_from(len).map_err(|_| refused())?;
        if len == 0 {
            return Ok(Self { lines: NonNull::dangling(), len, pages: None });
        }
        let layout = Self::layout(len).ok_or_else(refused)?;
        if HAS_PAGES && layout.size() >= PAGES_FROM && !ALLOCATOR_ONLY.load(Ordering::Relaxed) {
            let mut pages = MmapMut::map_anon(layout.size()).map_err(|_| refused())?;
            if layout.size() >= HUGE_FROM {
                ask_for_huge_pages(&pages);
            }
            let lines = NonNull::new(pages.as_mut_ptr().cast()).ok_or_else(refused)?;
            return Ok(Self { lines, len, pages: Some(Box::new(pages)) });
        }
        // SAFETY: the layout is not empty: `len` is at least 1.
        let memory = unsafe { alloc_zeroed(layout) };
        let lines = NonNull::new(memory.cast()).ok_or_else(refused)?;
        Ok(Self { lines, len, pages: None })
    }

    /// A copy of lines.
    pub(crate) fn copy_of(lines: &[Line]) -> Result<Self> {
        let mut copy = Self::zeroed(lines.len() as u64)?;
        copy.lines_mut().copy_from_slice(lines);
        Ok(copy)
    }

    /// Offers the memory to be moved, if it is of the allocator.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        let layout = Self::layout(self.len).filter(|layout| layout.size() > 0);
        if let (None, Some(layout)) = (&self.pages, layout)
            && let Some(moved) = mover.0(self.lines.cast(), layout)
        {
            // Whoever made the mover promised that the lines are there now, and nowhere else. The
            // exclusive borrow means that nobody looks at the old ones.
            self.lines = moved.cast();
        }
    }

    /// The memory itself, for as long as this lives.
    #[cfg(not(all(loom, test)))]
    #[inline]
    pub(super) fn raw(&self) -> NonNull<[Line]> {
        NonNull::slice_from_raw_parts(self.lines, self.len)
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_mul(Line::BYTES)?, ALIGN).ok()
    }
}

/// Where the system has no huge pages, small ones do: a refusal is no error.
fn ask_for_huge_pages(pages: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = pages;
}

impl Drop for Owned {
    fn drop(&mut self) {
        let layout = Self::layout(self.len).filter(|layout| layout.size() > 0);
        if let (None, Some(layout)) = (&self.pages, layout) {
            // SAFETY: without pages, `lines` came from `alloc_zeroed` with this very layout, in
            // `zeroed`, for any length above 0, or a `Mover` gave it in the place of such a block;
            // nobody else frees it.
            unsafe { dealloc(self.lines.as_ptr().cast(), layout) }
        }
    }
}

impl Store for Owned {
    #[inline]
    fn lines(&self) -> &[Line] {
        // SAFETY: `lines` points to `len` initialised lines (zeroed is initialised, and a `Mover`
        // moves the bytes), aligned to 128 on the heap and to a page in pages, or is dangling and aligned with `len` 0; heap
        // and pages live as long as `self`. Nobody writes to them meanwhile: `Shared`, who would, owns
        // its `Owned` and lends no lines of it but as atomic ones.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr(), self.len) }
    }

    /// Pages are counted whole, and whether or not they have been touched.
    fn memory_usage(&self) -> u64 {
        let bytes = (self.len * Line::BYTES) as u64;
        if self.pages.is_some() { bytes.next_multiple_of(PAGE) } else { bytes }
    }
}

impl StoreMut for Owned {
    #[inline]
    fn lines_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `lines`; `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr(), self.len) }
    }

    fn of_zeros(lines: u64) -> Result<Self> {
        Self::zeroed(lines)
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
        for len in [0, 1, 7, 1000, 10_000] {
            let mut store = Owned::zeroed(len).unwrap();
            assert_eq!(store.lines().len() as u64, len);
            assert!(store.lines().iter().all(|line| *line == Line::ZERO));
            assert!(len == 0 || store.lines().as_ptr().addr().is_multiple_of(ALIGN));
            store.lines_mut().fill(Line([7; 8]));
            assert!(store.lines().iter().all(|line| line.0 == [7; 8]));
        }
        // More than the address space: refused by arithmetic.
        assert!(Owned::zeroed(u64::MAX).unwrap_err().is_alloc());
        assert!(Owned::zeroed(1 << 57).unwrap_err().is_alloc());
        // More than any machine has: refused by the system.
        assert!(Owned::zeroed(1 << 45).unwrap_err().is_alloc());
    }

    #[test]
    fn moved_on_the_heap_and_left_alone_in_pages() {
        for (len, moves) in [(0, 0), (1, 1), (100, 1), (10_000, usize::from(!HAS_PAGES))] {
            let mut store = Owned::zeroed(len).unwrap();
            store.lines_mut().fill(Line([5; 8]));
            let mut moved = 0;
            let mut move_block = |old: NonNull<u8>, layout: Layout| {
                // SAFETY: the layout is not empty; both blocks have its length, and the old one
                // came of the same allocator with the same layout.
                unsafe {
                    let new = NonNull::new(std::alloc::alloc(layout))?;
                    new.copy_from_nonoverlapping(old, layout.size());
                    dealloc(old.as_ptr(), layout);
                    moved += 1;
                    Some(new)
                }
            };
            // SAFETY: it does as it must.
            store.relocate(&mut unsafe { Mover::new(&mut move_block) });
            let mut stay = |_: NonNull<u8>, _: Layout| None;
            // SAFETY: to move nothing is allowed.
            store.relocate(&mut unsafe { Mover::new(&mut stay) });
            assert_eq!(moved, moves);
            assert!(store.lines().iter().all(|line| line.0 == [5; 8]));
        }
    }
}
