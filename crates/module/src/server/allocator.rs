//! The global allocator: all memory of the module comes from the server, so that `maxmemory`,
//! `used_memory` and `MEMORY USAGE` include it. Before the module is loaded, and in tests, it comes
//! from the system.
//!
//! A failed allocation returns null and never aborts, also on Redis 7.0, which has no `TryCalloc`.
//! There, the pages of large zeroed blocks are returned to the system, which supplies zero pages on
//! access: creating a filter of 600 MB takes as long as a small one.
//!
//! The server's allocator guarantees an alignment of 8 bytes (jemalloc: 16). jemalloc aligns small
//! sizes that are a multiple of an alignment naturally, which is tested when the module is loaded.
//! Other blocks are allocated with padding, and the original pointer is stored before the block.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::{Api, loaded};

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// Allocated bytes, by requested size.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
/// Whether small blocks are naturally aligned.
static NATURALLY_ALIGNED: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
thread_local! {
    /// Number of allocations of a thread.
    static ALLOCATIONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns the number of allocations of a function on this thread, and its result.
#[cfg(test)]
pub(crate) fn count_allocations<T>(run: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATIONS.get();
    let result = run();
    (ALLOCATIONS.get() - before, result)
}

/// Minimum alignment of every server's allocator.
const MIN_ALIGN: usize = 8;
/// Maximum size of jemalloc's small classes, which are naturally aligned.
const SMALL: usize = 14 << 10;
/// Minimum size for which zeros are untouched pages.
const LARGE_ZEROED: usize = 256 << 10;

/// The server's allocator.
struct ServerAllocator;

/// Where a block is in the server's allocation; the same for its whole lifetime.
enum Placement {
    /// At the beginning.
    Plain,
    /// After padding; the original pointer is stored before the block.
    Padded,
}

fn placement(layout: Layout) -> Placement {
    let natural = layout.size() <= SMALL && NATURALLY_ALIGNED.load(Relaxed);
    if layout.align() <= MIN_ALIGN || natural { Placement::Plain } else { Placement::Padded }
}

/// Returns whether a block of this layout is allocated without padding.
pub(crate) fn is_plain(layout: Layout) -> bool {
    matches!(placement(layout), Placement::Plain)
}

/// Returns a size whose blocks are naturally aligned, if any are.
fn rounded(layout: Layout) -> usize {
    layout.size().max(1).next_multiple_of(layout.align().max(MIN_ALIGN))
}

/// Allocates a block with a function of the server.
fn allocate_with(layout: Layout, allocate: impl Fn(usize) -> *mut c_void) -> *mut u8 {
    match placement(layout) {
        Placement::Plain => {
            let block = allocate(rounded(layout)).cast::<u8>();
            debug_assert!(block.addr().is_multiple_of(layout.align()));
            block
        }
        Placement::Padded => {
            let Some(padded) = layout.size().checked_add(layout.align() + MIN_ALIGN) else {
                return null_mut();
            };
            let block = allocate(padded).cast::<u8>();
            if block.is_null() {
                return block;
            }
            let at = (block.addr() + MIN_ALIGN).next_multiple_of(layout.align()) - block.addr();
            // SAFETY: `at` is from 8 to align + 8, and the padding has that many bytes; the word
            // before `at` is within the block, and aligned to 8 as `at` and `block` are.
            unsafe {
                let used = block.add(at);
                used.cast::<*mut u8>().sub(1).write(block);
                used
            }
        }
    }
}

// SAFETY: blocks have the size and the alignment of their layout, by `allocate_with`. They are
// freed with the same placement, because the layout is the same and `NATURALLY_ALIGNED` is set
// before the first allocation from the server. `System` is used until the module is loaded; nothing
// is allocated before that and freed after it, as there are no threads and no statics with
// destructors.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        #[cfg(test)]
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        let Some(api) = loaded() else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: a function of the server that accepts any size.
        count(layout, allocate_with(layout, |size| unsafe { (api.try_alloc)(size) }))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        #[cfg(test)]
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        let Some(api) = loaded() else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc_zeroed(layout) };
        };
        if let Some(try_calloc) = api.try_calloc {
            // SAFETY: as above.
            return count(layout, allocate_with(layout, |size| unsafe { try_calloc(1, size) }));
        }
        // SAFETY: as above; the block is as large as the layout.
        unsafe {
            let memory = allocate_with(layout, |size| (api.try_alloc)(size));
            if !memory.is_null() {
                zero(memory, layout.size());
            }
            count(layout, memory)
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(api) = loaded() else {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(memory, layout) };
        };
        ALLOCATED.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: allocated by `allocate_with` with this placement.
        unsafe {
            match placement(layout) {
                Placement::Plain => (api.free)(memory.cast()),
                Placement::Padded => (api.free)(memory.cast::<*mut u8>().sub(1).read().cast()),
            }
        }
    }
}

fn count(layout: Layout, memory: *mut u8) -> *mut u8 {
    if !memory.is_null() {
        ALLOCATED.fetch_add(layout.size() as u64, Relaxed);
    }
    memory
}

/// Returns the allocated bytes.
pub(crate) fn allocated_bytes() -> u64 {
    ALLOCATED.load(Relaxed)
}

/// Fills a new block with zeros.
///
/// # Safety
/// The caller must own `size` bytes at `memory`, just allocated.
unsafe fn zero(memory: *mut u8, size: usize) {
    const PAGE: usize = 4096;
    // SAFETY: within the block. Its whole pages are private and anonymous, as all memory of an
    // allocator is: after MADV_DONTNEED they read as zero. If the call fails (locked or huge
    // pages), they are written.
    unsafe {
        if size >= LARGE_ZEROED {
            let start = memory.addr().next_multiple_of(PAGE) - memory.addr();
            let pages = (size - start) / PAGE * PAGE;
            let at = memory.add(start);
            if libc::madvise(at.cast(), pages, libc::MADV_DONTNEED) == 0 {
                memory.write_bytes(0, start);
                at.add(pages).write_bytes(0, size - start - pages);
                return;
            }
        }
        memory.write_bytes(0, size);
    }
}

/// Tests whether small blocks are naturally aligned. Must be called before the first allocation.
pub(crate) fn detect_natural_alignment(api: &Api) {
    let mut block = [null_mut(); 64];
    let mut natural = true;
    for (at, block) in block.iter_mut().enumerate() {
        let size = [64, 128, 192, 256, 384, 512, 640, 1024][at % 8];
        // SAFETY: a function of the server; the block is freed below.
        *block = unsafe { (api.try_alloc)(size) };
        let align = 1 << size.trailing_zeros().min(7);
        natural &= !block.is_null() && block.addr().is_multiple_of(align);
    }
    for block in block {
        if !block.is_null() {
            // SAFETY: allocated above, freed once.
            unsafe { (api.free)(block) };
        }
    }
    NATURALLY_ALIGNED.store(natural, Relaxed);
}

/// Returns a copy; `None` if the allocation fails.
pub(crate) fn copied_bytes(bytes: &[u8]) -> Option<Box<[u8]>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy.into_boxed_slice())
}

/// Returns zeroed bytes; `None` if the allocation fails. Large blocks are untouched pages.
pub(crate) fn zeroed_bytes(length: usize) -> Option<Box<[u8]>> {
    if length == 0 {
        return Some(Box::default());
    }
    let layout = Layout::array::<u8>(length).ok()?;
    // SAFETY: the layout is not empty; the block is of the global allocator and has `length` zero
    // bytes, as the box requires.
    unsafe {
        let memory = std::alloc::alloc_zeroed(layout);
        (!memory.is_null())
            .then(|| Box::from_raw(std::ptr::slice_from_raw_parts_mut(memory, length)))
    }
}
