//! All memory of the module is the server's, so that `maxmemory`, `used_memory` and `MEMORY USAGE`
//! are true. Until the module is loaded, and in tests, it is the system's.
//!
//! Memory that is refused is null, never an abort: also on Redis 7.0, which has no `TryCalloc`.
//! There large zeros are fresh memory whose pages are given back to the system, which has zeros in
//! their place when they are touched: making a filter of 600 MB takes as long as making a small
//! one.
//!
//! The server's allocator promises 8 bytes of alignment (jemalloc 16). Where it is jemalloc, small
//! sizes that are a multiple of an alignment have it; that is tried out when the module is loaded.
//! For all others a little more is taken, and what was given is written before what is used.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::{Api, loaded};

#[global_allocator]
static MEMORY: ServerMemory = ServerMemory;

/// Bytes that the module holds, as it asked for them.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Whether small sizes are aligned by nature.
static NATURAL: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
thread_local! {
    /// Blocks that a thread allocated.
    static ALLOCATIONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Blocks that something allocates on this thread.
#[cfg(test)]
pub(crate) fn allocations<T>(run: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATIONS.get();
    let result = run();
    (ALLOCATIONS.get() - before, result)
}

/// What every allocator of a server has.
const ALWAYS: usize = 8;
/// Below, jemalloc has classes of sizes; above, it begins anywhere in a page.
const SMALL: usize = 14 << 10;
/// From here on zeros are pages that nobody has touched.
const MANY_ZEROS: usize = 256 << 10;

/// The server's memory, as Rust wants it.
struct ServerMemory;

/// How a layout is allocated: the same answer when it is freed.
enum Manner {
    /// What the server gives.
    Plain,
    /// What the server gives is behind, and is written down before what is used.
    Padded,
}

fn manner(layout: Layout) -> Manner {
    let natural = layout.size() <= SMALL && NATURAL.load(Relaxed);
    if layout.align() <= ALWAYS || natural { Manner::Plain } else { Manner::Padded }
}

/// Whether a block of this layout is what the server gave, and nothing before it.
pub(crate) fn is_plain(layout: Layout) -> bool {
    matches!(manner(layout), Manner::Plain)
}

/// A size that is naturally aligned where anything is.
fn rounded(layout: Layout) -> usize {
    layout.size().max(1).next_multiple_of(layout.align().max(ALWAYS))
}

/// Memory of a layout from a function of the server, and where what was given begins.
fn place(layout: Layout, take: impl Fn(usize) -> *mut c_void) -> *mut u8 {
    match manner(layout) {
        Manner::Plain => {
            let given = take(rounded(layout)).cast::<u8>();
            debug_assert!(given.addr().is_multiple_of(layout.align()));
            given
        }
        Manner::Padded => {
            let Some(more) = layout.size().checked_add(layout.align() + ALWAYS) else {
                return null_mut();
            };
            let given = take(more).cast::<u8>();
            if given.is_null() {
                return given;
            }
            let at = (given.addr() + ALWAYS).next_multiple_of(layout.align()) - given.addr();
            // SAFETY: `at` is at least 8 and at most align + 8, and so many bytes more were
            // taken; the word before it is within, and aligned to 8 as `at` and `given` are.
            unsafe {
                let used = given.add(at);
                used.cast::<*mut u8>().sub(1).write(given);
                used
            }
        }
    }
}

// SAFETY: what is given out is as large and as aligned as its layout says, by `place`; it is freed
// with the same manner, for the layout is the same and `NATURAL` is set before anything is
// allocated from the server. `System` serves until the module is loaded; nothing is allocated
// before that and freed after it, as there are no threads and no statics with destructors.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        #[cfg(test)]
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        let Some(api) = loaded() else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: a function of the server, of any size.
        count(layout, place(layout, |size| unsafe { (api.try_alloc)(size) }))
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
            return count(layout, place(layout, |size| unsafe { try_calloc(1, size) }));
        }
        // SAFETY: as above; what was given is as large as the layout.
        unsafe {
            let memory = place(layout, |size| (api.try_alloc)(size));
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
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: `place` made it so.
        unsafe {
            match manner(layout) {
                Manner::Plain => (api.free)(memory.cast()),
                Manner::Padded => (api.free)(memory.cast::<*mut u8>().sub(1).read().cast()),
            }
        }
    }
}

fn count(layout: Layout, memory: *mut u8) -> *mut u8 {
    if !memory.is_null() {
        HELD.fetch_add(layout.size() as u64, Relaxed);
    }
    memory
}

/// Bytes that the module holds.
pub(crate) fn held() -> u64 {
    HELD.load(Relaxed)
}

/// Fills memory that was just allocated with zeros.
///
/// # Safety
/// So many bytes are the caller's alone, and come of the allocator.
unsafe fn zero(memory: *mut u8, size: usize) {
    const PAGE: usize = 4096;
    // SAFETY: within the bytes. Pages that lie wholly within them are private and anonymous, as
    // all memory of an allocator is: dropped, they are zero when they are next looked at. Where
    // the system refuses (locked or huge pages), they are written.
    unsafe {
        if size >= MANY_ZEROS {
            let begin = memory.addr().next_multiple_of(PAGE) - memory.addr();
            let pages = (size - begin) / PAGE * PAGE;
            let at = memory.add(begin);
            if libc::madvise(at.cast(), pages, libc::MADV_DONTNEED) == 0 {
                memory.write_bytes(0, begin);
                at.add(pages).write_bytes(0, size - begin - pages);
                return;
            }
        }
        memory.write_bytes(0, size);
    }
}

/// Tries out whether small sizes are aligned by nature. To be called before anything is allocated.
pub(crate) fn try_alignment(api: &Api) {
    let mut given = [null_mut(); 64];
    let mut natural = true;
    for (at, given) in given.iter_mut().enumerate() {
        let size = [64, 128, 192, 256, 384, 512, 640, 1024][at % 8];
        // SAFETY: functions of the server; what they give is freed below.
        *given = unsafe { (api.try_alloc)(size) };
        let align = 1 << size.trailing_zeros().min(7);
        natural &= !given.is_null() && given.addr().is_multiple_of(align);
    }
    for given in given {
        if !given.is_null() {
            // SAFETY: given above, and freed once.
            unsafe { (api.free)(given) };
        }
    }
    NATURAL.store(natural, Relaxed);
}

/// The same bytes; none if the memory is refused.
pub(crate) fn copied_bytes(bytes: &[u8]) -> Option<Box<[u8]>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy.into_boxed_slice())
}

/// So many zero bytes; none if the memory is refused. Large ones are pages that nobody touched.
pub(crate) fn zeroed_bytes(length: usize) -> Option<Box<[u8]>> {
    if length == 0 {
        return Some(Box::default());
    }
    let layout = Layout::array::<u8>(length).ok()?;
    // SAFETY: the layout is not empty; what comes is so many bytes of zeros of the global
    // allocator, as a box of them is.
    unsafe {
        let memory = std::alloc::alloc_zeroed(layout);
        (!memory.is_null())
            .then(|| Box::from_raw(std::ptr::slice_from_raw_parts_mut(memory, length)))
    }
}
