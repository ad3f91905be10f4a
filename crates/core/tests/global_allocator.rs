//! After `use_global_allocator`, all memory of filters is from the global allocator and can be moved.
//!
//! A separate test program with one test, because the switch is for the whole process.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(unsafe_code, reason = "an allocator that counts, and one that moves blocks")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, Ordering};

use petal::embed::{Relocator, StreamDecoder, use_global_allocator};
use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, CountingBloomFilter, FilterCascade, FilterType,
    Membership as _, QuotientFilter, ScalableBloomFilter, StaticFilter, VectorQuotientFilter,
    WindowedBloomFilter,
};

/// The system allocator, with a counter of allocated bytes; fails for huge allocations.
struct Counting;

static OUT: AtomicIsize = AtomicIsize::new(0);
/// The peak since the last reset.
static PEAK: AtomicIsize = AtomicIsize::new(0);
const REFUSED: usize = 1 << 28;

fn count(bytes: isize) {
    let out = OUT.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(out, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged, under the caller's own promises, or
// is refused with a null pointer.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller fulfils the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= REFUSED {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn out() -> usize {
    OUT.load(Ordering::Relaxed) as usize
}

/// Returns the bytes allocated for the result of `make`, and the peak.
fn allocated_by<T>(make: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = out();
    PEAK.store(before as isize, Ordering::Relaxed);
    let made = make();
    (made, out() - before, PEAK.load(Ordering::Relaxed) as usize - before)
}

fn family(keys: u64) -> Vec<AnyFilter> {
    let members: Vec<u64> = (0..keys).collect();
    let others: Vec<u64> = (keys..2 * keys).collect();
    let mut scalable = ScalableBloomFilter::with_fpr(keys / 10, 0.01).unwrap();
    members.iter().for_each(|key| _ = scalable.insert(key).unwrap());
    let mut bloom = BloomFilter::with_fpr(keys, 0.01).unwrap();
    members.iter().for_each(|key| _ = bloom.insert(key));
    vec![
        bloom.into(),
        ClassicBloomFilter::with_fpr(keys, 0.01).unwrap().into(),
        CountingBloomFilter::with_fpr(keys, 0.01).unwrap().into(),
        QuotientFilter::with_fpr(keys, 0.01).unwrap().into(),
        scalable.into(),
        WindowedBloomFilter::with_fpr(keys, 0.01).unwrap().into(),
        StaticFilter::build(&members, 0.01).unwrap().into(),
        FilterCascade::build(&members, &others, 0.01).unwrap().into(),
        VectorQuotientFilter::with_fpr(keys, 0.01).unwrap().into(),
    ]
}

fn file_of(filter: &AnyFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    file
}

/// Offers the memory of a filter for relocation and moves every second block, or all. Returns the
/// number of bytes offered.
fn relocate(filter: &mut AnyFilter, all: bool) -> usize {
    let (mut offered, mut calls) = (0, 0);
    let mut move_block = |old: NonNull<u8>, layout: Layout| {
        offered += layout.size();
        calls += 1;
        if !all && calls % 2 == 1 {
            return None;
        }
        // SAFETY: no layout is empty; both blocks have its length, and the old one is the global
        // allocator's, with this layout.
        unsafe {
            let new = NonNull::new(std::alloc::alloc(layout))?;
            new.copy_from_nonoverlapping(old, layout.size());
            std::ptr::write_bytes(old.as_ptr(), 0xaa, layout.size());
            std::alloc::dealloc(old.as_ptr(), layout);
            Some(new)
        }
    };
    // SAFETY: the closure fulfils the contract: see above.
    filter.relocate(&mut unsafe { Relocator::new(&mut move_block) });
    offered
}

#[test]
fn memory_is_from_the_allocator_and_can_be_moved() {
    // 1.25 MB, which is in mapped pages before the switch.
    let (mut in_pages, allocated, _) =
        allocated_by(|| AnyFilter::from(BloomFilter::with_fpr(1_000_000, 0.01).unwrap()));
    assert!(
        allocated < 10_000,
        "the allocator returned {allocated} bytes of a filter in mapped pages"
    );
    use_global_allocator();
    assert_eq!(relocate(&mut in_pages, true), 0);

    for mut filter in family(1_000_000) {
        let kind = filter.as_dyn().filter_type();
        let size = filter.as_dyn().size_bytes() as usize;
        let (copy, allocated, _) = allocated_by(|| filter.try_clone().unwrap());
        // A layer's line in the file is longer than the layer in memory.
        let least = size - if kind == FilterType::Scalable { 1024 } else { 0 };
        assert!((least..size + 16_384).contains(&allocated), "{kind}: {allocated} of {size} bytes");
        drop(copy);
        let file = file_of(&filter);
        for all in [false, true] {
            let offered = relocate(&mut filter, all);
            assert!(offered.abs_diff(size) < 16_384, "{kind}: {offered} of {size} bytes");
            assert!(file_of(&filter) == file, "{kind}: the filter changed");
        }
        // A transfer needs only the memory of the filter.
        let (again, allocated, peak) = allocated_by(|| {
            let mut receiver = StreamDecoder::file(size as u64);
            file.chunks(64 << 10).for_each(|piece| receiver.push(piece).unwrap());
            receiver.finish().unwrap().0
        });
        assert!((least..size + 16_384).contains(&allocated), "{kind}: {allocated} of {size} bytes");
        assert!(peak < size + 65_536, "{kind}: up to {peak} for {size} bytes");
        assert!(file_of(&again) == file, "{kind}");
        // The size in a header does not exceed the memory limit.
        let (refused, _, peak) =
            allocated_by(|| StreamDecoder::file(size as u64 - 1).push(&file[..4096]));
        assert!(refused.unwrap_err().is_invalid() && peak < 16_384, "{kind}: {peak}");
    }

    let (large, allocated, _) = allocated_by(|| BloomFilter::with_bits(1 << 30, 7).unwrap());
    assert!(allocated >= 1 << 27 && large.memory_usage() >= 1 << 27);
    assert!(BloomFilter::with_bits(1 << 32, 7).unwrap_err().is_alloc());
}
