//! Compares `memory_usage` with the memory of the process, and checks that no operation needs a
//! second copy.
//!
//! Small filters are on the heap, which an allocator counts for each thread; large ones are maps, whose
//! resident pages the system counts for the whole process, so there is one test.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::alloc::{GlobalAlloc, Layout as AllocLayout, System};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use petal::embed::Layout;
use petal::{
    AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, Filter, FilterCascade, Membership as _, QuotientFilter,
    ScalableBloomFilter, StaticFilter, VectorQuotientFilter, WindowedBloomFilter,
};

// ---- Counting -----------------------------------------------------------------------------------

/// The system allocator, with counters of current and peak bytes.
struct Counted;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn more(size: usize) {
    let allocated = ALLOCATED.get() + size;
    ALLOCATED.set(allocated);
    PEAK.set(PEAK.get().max(allocated));
}

#[expect(unsafe_code, reason = "an allocator that counts is an unsafe trait's implementation")]
// SAFETY: every call is forwarded to the system allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: AllocLayout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller fulfils the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: AllocLayout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: AllocLayout) {
        // Another thread may have allocated it.
        ALLOCATED.set(ALLOCATED.get().saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Returns the bytes that `work` leaves on the heap, and its peak.
fn heap<T>(work: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = ALLOCATED.get();
    PEAK.set(before);
    let result = work();
    let (after, peak) = (ALLOCATED.get(), PEAK.get());
    (result, after.saturating_sub(before), peak - before)
}

/// Returns the resident memory of this process in bytes; 0 if the system has no such value, or if it includes the memory
/// of a sanitizer.
fn resident() -> usize {
    if cfg!(asan) {
        return 0;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    number.unwrap_or(0usize) * 1024
}

/// A stream that samples the resident memory while it is read or written.
struct Watching<S> {
    stream: S,
    peak: usize,
    bytes: usize,
}

impl<S> Watching<S> {
    fn new(stream: S) -> Self {
        Self { stream, peak: resident(), bytes: 0 }
    }

    fn sample(&mut self, bytes: usize) {
        // Every four megabytes.
        if (self.bytes + bytes) >> 22 != self.bytes >> 22 {
            self.peak = self.peak.max(resident());
        }
        self.bytes += bytes;
    }
}

impl<R: Read> Read for Watching<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1 << 20);
        let got = self.stream.read(&mut buffer[..length])?;
        self.sample(got);
        Ok(got)
    }
}

impl<W: Write> Write for Watching<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let put = self.stream.write(&buffer[..buffer.len().min(1 << 20)])?;
        self.sample(put);
        Ok(put)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

// ---- One test -----------------------------------------------------------------------------------

fn within(found: usize, expect: u64, part: f64, what: &str) {
    let off = (found as f64 - expect as f64).abs() / expect as f64;
    assert!(off <= part, "{what}: {found} bytes, expected {expect}");
}

#[test]
fn memory_usage_is_exact_and_peaks_have_no_second_copy() {
    small(|| BloomFilter::with_bits(3124 * 512, 8).unwrap());
    small(|| BloomFilter::with_bits(1200 * 1024, 11).unwrap());
    small(|| ClassicBloomFilter::with_bits(200_000 * 8, 7).unwrap());
    family();
    large(|seed| BloomFilter::builder().bits(64 << 23).probes(8).seed(seed).build().unwrap());
    large(|seed| {
        ClassicBloomFilter::builder().bits(64 << 23).probes(3).seed(seed).build().unwrap()
    });
}

/// All other types on the heap: full filters, and filters read from a file.
fn family() {
    let keys: Vec<u64> = (0..60_000).collect();
    let others: Vec<u64> = (60_000..90_000).collect();
    let n = keys.len() as u64 / 2;
    let filled = |mut filter: AnyFilter| {
        let mut hashes = Vec::new();
        let spec = filter.as_dyn().hash_spec();
        spec.hash_all(keys[..n as usize].iter().map(|key| key.to_le_bytes()), &mut hashes);
        if let Ok(dynamic) = filter.as_dyn_mut() {
            dynamic.insert_mixed_hashes(&hashes, &mut BatchResults::new()).unwrap();
        }
        filter
    };
    let types: [&dyn Fn() -> AnyFilter; 9] = [
        &|| CountingBloomFilter::with_fpr(n / 2, 0.01).unwrap().into(),
        &|| ClassicCountingBloomFilter::with_fpr(n / 2, 0.01).unwrap().into(),
        &|| QuotientFilter::with_fpr(2 * n, 0.01).unwrap().into(),
        &|| QuotientFilter::with_growth(n / 8, 0.01, 2 * n).unwrap().into(),
        &|| VectorQuotientFilter::with_fpr(2 * n, 0.01).unwrap().into(),
        &|| ScalableBloomFilter::with_fpr(n / 8, 0.01).unwrap().into(),
        &|| WindowedBloomFilter::with_fpr(n, 0.01).unwrap().into(),
        &|| StaticFilter::build(&keys, 0.01).unwrap().into(),
        &|| FilterCascade::build(&keys, &others, 0.01).unwrap().into(),
    ];
    for make in types {
        let (filter, allocated, _) = heap(|| filled(make()));
        let reported = filter.as_dyn().memory_usage();
        let what = filter.as_dyn().filter_type().name();
        // `memory_usage` includes the struct, which is not on the heap.
        within(allocated + 300, reported, 0.01, what);
        let mut file = Vec::new();
        filter.write_to(&mut file, "").unwrap();
        let ((again, _), allocated, peak) = heap(|| AnyFilter::read_from(&file[..]).unwrap());
        let reported = again.as_dyn().memory_usage();
        within(allocated + 300, reported, 0.01, what);
        assert!(
            peak <= allocated + allocated / 10 + (16 << 10),
            "{what}: {peak} while reading {allocated}"
        );
    }
}

/// On the heap: within one percent, and without a copy in set operations and in saving.
fn small<L: Layout>(make: impl Fn() -> Filter<L>) {
    let (mut filter, allocated, peak) = heap(&make);
    let itself = size_of::<Filter<L>>();
    let reported = filter.memory_usage();
    within(allocated + itself, reported, 0.01, "after construction");
    within(peak + itself, reported, 0.01, "peak of construction");
    (0..1000u64).for_each(|key| _ = filter.insert(&key));
    let (copy, allocated, _) = heap(|| filter.try_clone().unwrap());
    within(allocated + itself, reported, 0.01, "copied");
    let ((), _, peak) = heap(|| filter.union(&copy).unwrap());
    assert!(peak < 4096, "union took {peak}");
    let (_, _, peak) = heap(|| filter.compare(&copy).unwrap());
    assert!(peak < 4096, "compare took {peak}");
    let ((), _, peak) = heap(|| filter.write_to(&mut io::sink(), "").unwrap());
    assert!(peak < 10_000, "save took {peak}");
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    // While lines arrive memory grows sixteenfold: at the last step a sixteenth is added.
    let ((again, _), allocated, peak) = heap(|| Filter::<L>::read_from(&file[..]).unwrap());
    within(allocated + itself, reported, 0.01, "read");
    assert!(peak as f64 <= reported as f64 * 1.07 + 10_000.0, "read took {peak}");
    assert!(again == filter);
    let (half, allocated, peak) = heap(|| filter.fold(2).unwrap());
    within(allocated + itself, half.memory_usage(), 0.01, "folded");
    within(peak + itself, half.memory_usage(), 0.02, "while folded");
}

/// In maps: with a file and a union.
fn large<L: Layout>(make: impl Fn(u64) -> Filter<L>) {
    if resident() == 0 {
        return;
    }
    let before = resident();
    let mut filter = make(0);
    // Pages are allocated on first access.
    assert!(
        resident() - before < 4 << 20,
        "{} bytes allocated for an empty filter",
        resident() - before
    );
    let mut state = 1u64;
    // Enough keys to access every page, huge or not.
    (0..2_000_000).for_each(|_| {
        state = state.wrapping_mul(0xf135_7aea_2e62_a9c5).wrapping_add(1);
        filter.insert_mixed_hash(state);
    });
    let reported = filter.memory_usage();
    within(resident() - before, reported, 0.03, "filled");

    // Saving needs a small buffer. The bytes go to a file, which uses no memory of the process.
    let path = std::env::temp_dir().join(format!("petal-memory-{}", std::process::id()));
    let mut out = Watching::new(std::fs::File::create(&path).unwrap());
    filter.write_to(&mut out, "").unwrap();
    assert!(out.peak - before < reported as usize + (4 << 20), "save took {}", out.peak - before);

    // Opening needs the filter once, and a sixteenth while it is read.
    let middle = resident();
    let mut from = Watching::new(std::fs::File::open(&path).unwrap());
    let (other, _) = Filter::<L>::read_from(&mut from).unwrap();
    std::fs::remove_file(&path).unwrap();
    let took = from.peak.saturating_sub(middle);
    assert!(took as f64 <= reported as f64 * 1.07 + 4e6, "open took {took} for {reported}");
    within(resident() - middle, reported, 0.05, "opened");

    // Union and comparison need no memory.
    let done = AtomicBool::new(false);
    let done = &done;
    let peak = std::thread::scope(|scope| {
        let work = scope.spawn(move || {
            filter.union(&other).unwrap();
            filter.compare(&other).unwrap();
            done.store(true, Ordering::Relaxed);
            (filter, other)
        });
        let mut peak = 0;
        while !done.load(Ordering::Relaxed) {
            peak = peak.max(resident());
        }
        drop(work.join().unwrap());
        peak
    });
    let allocated = 2 * reported as usize + (8 << 20);
    assert!(peak.saturating_sub(before) < allocated, "a union took {peak}");
}
