//! Owned memory: zeroed and aligned; a failed allocation is an error, not an abort.
//!
//! Small filters are on the heap. Large filters are anonymous maps: the system provides zeroed
//! pages and gets them back when the filter is dropped, independently of the allocator. From
//! 8 MiB on a page is provided on its first access, so an empty filter takes no memory. Pages of
//! smaller maps are provided at once when the filter is made (Linux 5.14 or newer): one call takes
//! less time than a fault for each page during the first inserts.
//!
//! The largest use huge pages, because small pages overflow the processor's translation cache
//! (TLB). From 25 MB on this saves a fifth to a third of the time per key
//! (`docs/design/filters.md`). Sizes are not rounded up to huge pages; the rest consists of
//! small pages.
//!
//! A server that counts its memory can use the allocator only: see [`use_global_allocator`] and
//! [`Relocator`]. Platforms without anonymous maps (WebAssembly) use the heap.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "mmap")]
use memmap2::MmapMut;

use super::cache_line::{CacheLine, lines_as_words, lines_as_words_mut};
use super::traits::{Sealed, Store, StoreMut};
use crate::error::{Error, Result};

/// Minimum size of an anonymous map, in bytes.
#[cfg(feature = "mmap")]
const MIN_MAP_BYTES: usize = 256 << 10;
/// Minimum size for huge pages, in bytes: what a current TLB covers with small pages (2048 of
/// 4 KiB). Below it, huge pages made no difference, and all pages are provided at once.
const MIN_HUGE_BYTES: usize = 8 << 20;
/// Size of the smallest page.
const PAGE_BYTES: u64 = 4096;
/// Keeps a pair of cache lines in one 128-byte unit.
const ALIGN: usize = 128;

static GLOBAL_ALLOCATOR_ONLY: AtomicBool = AtomicBool::new(false);

/// Makes all new filters of the process use the global allocator, whatever their size: for
/// programs whose allocator counts or limits memory, such as servers.
///
/// This cannot be undone. Existing filters keep their memory. Without it, filters of 256 KiB and
/// more are anonymous maps, which the allocator does not count.
pub fn use_global_allocator() {
    // Relaxed: concurrent allocations may use either.
    GLOBAL_ALLOCATOR_ONLY.store(true, Ordering::Relaxed);
}

/// Moves blocks of the global allocator, for servers with active defragmentation.
pub struct Relocator<'a>(MoveBlock<'a>);

type MoveBlock<'a> = &'a mut dyn FnMut(NonNull<u8>, Layout) -> Option<NonNull<u8>>;

impl<'a> Relocator<'a> {
    /// Creates a relocator that calls `move_block` for each block.
    ///
    /// # Safety
    /// `move_block` is called with a block of the global allocator and its layout. It must return
    /// `None` and leave the block unchanged, or free the block and return another block of the
    /// global allocator with this layout and the same bytes.
    #[must_use]
    pub unsafe fn new(move_block: MoveBlock<'a>) -> Self {
        Self(move_block)
    }
}

impl fmt::Debug for Relocator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relocator")
    }
}

/// Cache lines in owned memory.
pub struct Owned {
    lines: NonNull<CacheLine>,
    len: usize,
    /// The map that contains the lines; without a map they are on the heap. Boxed to keep small
    /// filters small.
    map: Option<Box<Map>>,
}

// SAFETY: `Owned` is the only owner of its memory, as a `Box<[CacheLine]>` is, and `CacheLine` is
// plain data.
unsafe impl Send for Owned {}
// SAFETY: as above; `&Owned` gives only `&[CacheLine]`, and `raw` to this module's `Shared`.
unsafe impl Sync for Owned {}

impl Owned {
    /// Allocates `len` lines of zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(crate) fn zeroed(len: u64) -> Result<Self> {
        let error = || Error::alloc(len.saturating_mul(CacheLine::BYTES as u64));
        let len = usize::try_from(len).map_err(|_| error())?;
        if len == 0 {
            return Ok(Self { lines: NonNull::dangling(), len, map: None });
        }
        let layout = Self::layout(len).ok_or_else(error)?;
        #[cfg(feature = "mmap")]
        if let Some(map) = Map::new(layout.size()) {
            let mut map = map.map_err(|_| error())?;
            let lines = NonNull::new(map.0.as_mut_ptr().cast()).ok_or_else(error)?;
            return Ok(Self { lines, len, map: Some(map) });
        }
        // SAFETY: the layout is not empty: `len` is at least 1.
        let memory = unsafe { alloc_zeroed(layout) };
        let lines = NonNull::new(memory.cast()).ok_or_else(error)?;
        Ok(Self { lines, len, map: None })
    }

    /// Keeps the first `len` lines. Memory whose pages are provided on access keeps its address.
    ///
    /// # Errors
    /// If the memory of other lines cannot be allocated.
    pub(crate) fn shorten(&mut self, len: u64) -> Result<()> {
        let len = self.len.min(usize::try_from(len).unwrap_or(usize::MAX));
        if self.map.is_some() && len * CacheLine::BYTES >= MIN_HUGE_BYTES {
            self.len = len;
        } else if len < self.len {
            *self = Self::from_lines(&self.lines()[..len])?;
        }
        Ok(())
    }

    /// Copies lines to new memory.
    pub(crate) fn from_lines(lines: &[CacheLine]) -> Result<Self> {
        let mut copy = Self::zeroed(lines.len() as u64)?;
        copy.lines_mut().copy_from_slice(lines);
        Ok(copy)
    }

    /// Offers the memory to the relocator, if it is on the heap.
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        let layout = Self::layout(self.len).filter(|layout| layout.size() > 0);
        if let (None, Some(layout)) = (&self.map, layout)
            && let Some(moved) = relocator.0(self.lines.cast(), layout)
        {
            // By the contract of `Relocator::new` the lines are in the new block. The exclusive
            // borrow excludes references to the old one.
            self.lines = moved.cast();
        }
    }

    /// Returns the memory, which exists as long as `self`.
    #[cfg(not(all(loom, test)))]
    #[inline]
    pub(super) fn raw(&self) -> NonNull<[CacheLine]> {
        NonNull::slice_from_raw_parts(self.lines, self.len)
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_mul(CacheLine::BYTES)?, ALIGN).ok()
    }
}

/// Words of zeros in the memory of a filter, for tables beside filters.
#[derive(Debug)]
pub struct Words(Owned);

impl Words {
    /// Allocates at least `len` words of zeros, rounded up to whole cache lines.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn zeroed(len: u64) -> Result<Self> {
        Owned::zeroed(len.div_ceil(8)).map(Self)
    }

    /// Returns the words.
    #[must_use]
    #[inline]
    pub fn get(&self) -> &[u64] {
        lines_as_words(self.0.lines())
    }

    /// Returns the words.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self) -> &mut [u64] {
        lines_as_words_mut(self.0.lines_mut())
    }
}

/// An anonymous map.
#[cfg(feature = "mmap")]
struct Map(MmapMut);

/// Without the feature `mmap` there are none.
#[cfg(not(feature = "mmap"))]
enum Map {}

#[cfg(feature = "mmap")]
impl Map {
    /// Creates a map of `bytes` bytes; `None` if they are to be on the heap.
    fn new(bytes: usize) -> Option<std::io::Result<Box<Self>>> {
        let available = cfg!(any(unix, windows));
        if !available || bytes < MIN_MAP_BYTES || GLOBAL_ALLOCATOR_ONLY.load(Ordering::Relaxed) {
            return None;
        }
        Some(MmapMut::map_anon(bytes).map(|map| {
            advise(&map);
            Box::new(Self(map))
        }))
    }
}

/// Requests huge pages, or all pages of a small map. Failure is not an error: pages that are provided
/// later work, too.
#[cfg(feature = "mmap")]
fn advise(map: &MmapMut) {
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = map.advise(if map.len() >= MIN_HUGE_BYTES {
        memmap2::Advice::HugePage
    } else {
        memmap2::Advice::PopulateWrite
    });
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = map;
}

impl Drop for Owned {
    fn drop(&mut self) {
        let layout = Self::layout(self.len).filter(|layout| layout.size() > 0);
        if let (None, Some(layout)) = (&self.map, layout) {
            // SAFETY: without a map, `lines` came from `alloc_zeroed` with this layout, in `zeroed`,
            // for any length above 0, or a `Relocator` replaced it by such a block; nothing else
            // frees it.
            unsafe { dealloc(self.lines.as_ptr().cast(), layout) }
        }
    }
}

impl Clone for Owned {
    /// Copies the lines to new memory. If the allocation fails, it handles that as `Vec` does.
    fn clone(&self) -> Self {
        let layout = Self::layout(self.len).unwrap_or(Layout::new::<CacheLine>());
        Self::from_lines(self.lines()).unwrap_or_else(|_| handle_alloc_error(layout))
    }
}

impl Sealed for Owned {}

impl Store for Owned {
    #[inline]
    fn lines(&self) -> &[CacheLine] {
        // SAFETY: `lines` points to `len` initialised lines (zeroed is initialised, and a
        // `Relocator` copies the bytes), aligned to 128 on the heap and to a page in a map, or is
        // dangling and aligned with `len` 0; heap and map live as long as `self`. Nothing writes to
        // them meanwhile: `Shared` owns its `Owned` and gives out its lines only as atomic lines.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr(), self.len) }
    }

    /// Counts whole pages of maps, accessed or not.
    fn memory_usage(&self) -> u64 {
        let bytes = (self.len * CacheLine::BYTES) as u64;
        if self.map.is_some() { bytes.next_multiple_of(PAGE_BYTES) } else { bytes }
    }
}

impl StoreMut for Owned {
    #[inline]
    fn lines_mut(&mut self) -> &mut [CacheLine] {
        // SAFETY: as in `lines`; `&mut self` makes the borrow exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.lines.as_ptr(), self.len) }
    }

    fn new_zeroed(lines: u64) -> Result<Self> {
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
    fn memory_is_zeroed_and_aligned_and_too_much_is_an_error() {
        for len in [0, 1, 7, 1000, 10_000] {
            let mut store = Owned::zeroed(len).unwrap();
            assert_eq!(store.lines().len() as u64, len);
            assert!(store.lines().iter().all(|line| *line == CacheLine::ZERO));
            assert!(len == 0 || store.lines().as_ptr().addr().is_multiple_of(ALIGN));
            store.lines_mut().fill(CacheLine([7; 8]));
            assert!(store.lines().iter().all(|line| line.0 == [7; 8]));
        }
        // Larger than the address space.
        assert!(Owned::zeroed(u64::MAX).unwrap_err().is_alloc());
        assert!(Owned::zeroed(1 << 57).unwrap_err().is_alloc());
        // Larger than the memory of any machine. Miri stops instead of returning an error.
        assert!(cfg!(miri) || Owned::zeroed(1 << 45).unwrap_err().is_alloc());
    }

    #[cfg(all(feature = "mmap", target_os = "linux", not(miri)))]
    #[test]
    fn small_maps_have_their_pages_at_once_and_large_maps_on_access() {
        use std::os::unix::fs::FileExt as _;

        const PAGE: usize = PAGE_BYTES as usize;
        // One word for each page, whose highest bit is set if the page is in memory.
        let pages = std::fs::File::open("/proc/self/pagemap").unwrap();
        let present = |store: &Owned| {
            let lines = store.lines();
            let mut words = vec![0; size_of_val(lines) / PAGE * 8];
            let at = lines.as_ptr().addr() / PAGE * 8;
            pages.read_exact_at(&mut words, at as u64).unwrap();
            words.chunks_exact(8).filter(|word| word[7] >> 7 != 0).count()
        };
        let lines = |bytes: usize| (bytes / CacheLine::BYTES) as u64;
        let large = Owned::zeroed(lines(64 << 20)).unwrap();
        assert_eq!(present(&large), 0);
        let one_page = MmapMut::map_anon(PAGE).unwrap();
        if one_page.advise(memmap2::Advice::PopulateWrite).is_ok() {
            let small = Owned::zeroed(lines(1 << 20)).unwrap();
            assert_eq!(present(&small), (1 << 20) / PAGE);
        }
    }

    #[test]
    fn only_heap_memory_is_relocated() {
        for (len, moves) in
            [(0, 0), (1, 1), (100, 1), (10_000, usize::from(cfg!(not(feature = "mmap"))))]
        {
            let mut store = Owned::zeroed(len).unwrap();
            store.lines_mut().fill(CacheLine([5; 8]));
            let mut moved = 0;
            let mut move_block = |old: NonNull<u8>, layout: Layout| {
                // SAFETY: the layout is not empty; both blocks have its length, and the old one
                // came from the same allocator with the same layout.
                unsafe {
                    let new = NonNull::new(alloc::alloc::alloc(layout))?;
                    new.copy_from_nonoverlapping(old, layout.size());
                    dealloc(old.as_ptr(), layout);
                    moved += 1;
                    Some(new)
                }
            };
            // SAFETY: `move_block` fulfils the contract.
            store.relocate(&mut unsafe { Relocator::new(&mut move_block) });
            let mut keep_block = |_: NonNull<u8>, _: Layout| None;
            // SAFETY: a block may stay where it is.
            store.relocate(&mut unsafe { Relocator::new(&mut keep_block) });
            assert_eq!(moved, moves);
            assert!(store.lines().iter().all(|line| line.0 == [5; 8]));
        }
    }
}
