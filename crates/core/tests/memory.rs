//! Memory: what a filter says it takes is what was asked for, and nothing takes it twice.
//!
//! Small filters are on the heap, which an allocator counts; large ones have pages, of which the
//! system tells how many are there. One test, for both are counted for the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use petal::{
    Answers, AnyFilter, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, Filter, FilterCascade, Geometry, QuotientFilter, ScalableBloomFilter,
    StaticFilter, WideBloomFilter, WindowedBloomFilter,
};

// ---- Counting -----------------------------------------------------------------------------------

/// The system's allocator, counting what is held and the most that ever was.
struct Counted;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(size: usize) {
    let held = HELD.fetch_add(size, Ordering::Relaxed) + size;
    MOST.fetch_max(held, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "an allocator that counts is an unsafe trait's implementation")]
// SAFETY: every call goes to the system's allocator unchanged, under the caller's own promises.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// What `work` leaves on the heap, and the most it held there meanwhile, in bytes.
fn heap<T>(work: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let result = work();
    let (after, most) = (HELD.load(Ordering::Relaxed), MOST.load(Ordering::Relaxed));
    (result, after.saturating_sub(before), most - before)
}

/// Bytes of memory that are there: the resident pages of this process; 0 where the system does
/// not tell.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    number.unwrap_or(0usize) * 1024
}

/// A stream on both sides, that looks at the pages there are as bytes go by.
struct Watching<S> {
    stream: S,
    most: usize,
    bytes: usize,
}

impl<S> Watching<S> {
    fn new(stream: S) -> Self {
        Self { stream, most: resident(), bytes: 0 }
    }

    fn look(&mut self, bytes: usize) {
        // Every four megabytes.
        if (self.bytes + bytes) >> 22 != self.bytes >> 22 {
            self.most = self.most.max(resident());
        }
        self.bytes += bytes;
    }
}

impl<R: Read> Read for Watching<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(1 << 20);
        let got = self.stream.read(&mut buffer[..most])?;
        self.look(got);
        Ok(got)
    }
}

impl<W: Write> Write for Watching<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let put = self.stream.write(&buffer[..buffer.len().min(1 << 20)])?;
        self.look(put);
        Ok(put)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

// ---- One test -----------------------------------------------------------------------------------

fn within(found: usize, expect: u64, part: f64, what: &str) {
    let off = (found as f64 - expect as f64).abs() / expect as f64;
    assert!(off <= part, "{what}: {found} where {expect} were expected");
}

#[test]
fn memory_is_what_is_said_and_never_twice() {
    small(|| BloomFilter::with_bits(3124 * 512, 8).unwrap());
    small(|| BloomFilter::with_bits(1200 * 1024, 11).unwrap());
    small(|| ClassicBloomFilter::with_bits(200_000 * 8, 7).unwrap());
    wide();
    family();
    large(|seed| BloomFilter::builder().bits(64 << 23).probes(8).seed(seed).build().unwrap());
    large(|seed| {
        ClassicBloomFilter::builder().bits(64 << 23).probes(3).seed(seed).build().unwrap()
    });
}

/// Every other type, on the heap: what it holds is what it says, once it is full and once it is
/// read from a file.
fn family() {
    let keys: Vec<u64> = (0..60_000).collect();
    let others: Vec<u64> = (60_000..90_000).collect();
    let n = keys.len() as u64 / 2;
    let filled = |mut filter: AnyFilter| {
        let mut hashes = Vec::new();
        let spec = filter.face().hash_spec();
        spec.hash_all(keys[..n as usize].iter().map(|key| key.to_le_bytes()), &mut hashes);
        if let Ok(face) = filter.face_mut() {
            face.insert_mixed_hashes(&hashes, &mut Answers::new()).unwrap();
        }
        filter
    };
    let types: [&dyn Fn() -> AnyFilter; 8] = [
        &|| CountingBloomFilter::with_rate(n / 2, 0.01).unwrap().into(),
        &|| ClassicCountingBloomFilter::with_rate(n / 2, 0.01).unwrap().into(),
        &|| QuotientFilter::with_rate(2 * n, 0.01).unwrap().into(),
        &|| QuotientFilter::with_growth(n / 8, 0.01, 2 * n).unwrap().into(),
        &|| ScalableBloomFilter::with_rate(n / 8, 0.01).unwrap().into(),
        &|| WindowedBloomFilter::with_rate(n, 0.01).unwrap().into(),
        &|| StaticFilter::build(&keys, 0.01).unwrap().into(),
        &|| FilterCascade::build(&keys, &others, 0.01).unwrap().into(),
    ];
    for make in types {
        let (filter, held, _) = heap(|| filled(make()));
        let said = filter.face().memory_usage();
        let what = filter.face().filter_type().name();
        // What a filter is itself is part of what it says, and not on the heap.
        within(held + 300, said, 0.01, what);
        let mut file = Vec::new();
        filter.write_to(&mut file, "").unwrap();
        let ((again, _), held, most) = heap(|| AnyFilter::read_from(&file[..]).unwrap());
        let said = again.face().memory_usage();
        within(held + 300, said, 0.01, what);
        assert!(most <= held + held / 10 + (16 << 10), "{what}: {most} while reading {held}");
    }
}

/// On the heap: to within one percent, and no copy while filters are put together and saved.
fn small<G: Geometry>(make: impl Fn() -> Filter<G>) {
    let (mut filter, held, most) = heap(&make);
    let itself = size_of::<Filter<G>>();
    let said = filter.memory_usage();
    within(held + itself, said, 0.01, "made");
    within(most + itself, said, 0.01, "while made");
    (0..1000u64).for_each(|key| _ = filter.insert(&key));
    let (copy, held, _) = heap(|| filter.to_owned_filter().unwrap());
    within(held + itself, said, 0.01, "copied");
    let ((), _, most) = heap(|| filter.union(&copy).unwrap());
    assert!(most < 4096, "union took {most}");
    let (_, _, most) = heap(|| filter.compare(&copy).unwrap());
    assert!(most < 4096, "compare took {most}");
    let ((), _, most) = heap(|| filter.write_to(io::sink(), "").unwrap());
    assert!(most < 10_000, "save took {most}");
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    // As lines come memory grows sixteenfold: a sixteenth beside it at the last step.
    let ((again, _), held, most) = heap(|| Filter::<G>::read_from(&file[..]).unwrap());
    within(held + itself, said, 0.01, "read");
    assert!(most as f64 <= said as f64 * 1.07 + 10_000.0, "read took {most}");
    assert!(again == filter);
    let (half, held, most) = heap(|| filter.fold(2).unwrap());
    within(held + itself, half.memory_usage(), 0.01, "folded");
    within(most + itself, half.memory_usage(), 0.02, "while folded");
}

fn wide() {
    let make = || WideBloomFilter::with_memory(200_000, 5000).unwrap();
    // What sizing computes once for all filters stays.
    make();
    let (filter, held, _) = heap(make);
    within(held + size_of::<WideBloomFilter>(), filter.memory_usage(), 0.01, "wide");
    let ((), _, most) = heap(|| filter.write_to(io::sink(), "").unwrap());
    assert!(most < 10_000, "save took {most}");
}

/// In pages: what is there is what is said, through a file and a union.
fn large<G: Geometry>(make: impl Fn(u64) -> Filter<G>) {
    if resident() == 0 {
        return;
    }
    let before = resident();
    let mut filter = make(0);
    // Nothing is there before it is touched.
    assert!(resident() - before < 4 << 20, "{} came of nothing", resident() - before);
    let mut state = 1u64;
    // So many that no page is left out, huge or not.
    (0..2_000_000).for_each(|_| {
        state = state.wrapping_mul(0xf135_7aea_2e62_a9c5).wrapping_add(1);
        filter.insert_mixed_hash(state);
    });
    let said = filter.memory_usage();
    within(resident() - before, said, 0.03, "filled");

    // Saved: a small buffer. Its bytes go into a file, for there they take no memory of ours.
    let path = std::env::temp_dir().join(format!("petal-memory-{}", std::process::id()));
    let mut out = Watching::new(std::fs::File::create(&path).unwrap());
    filter.write_to(&mut out, "").unwrap();
    assert!(out.most - before < said as usize + (4 << 20), "save took {}", out.most - before);

    // Opened: once, and a sixteenth while it comes.
    let middle = resident();
    let mut from = Watching::new(std::fs::File::open(&path).unwrap());
    let (other, _) = Filter::<G>::read_from(&mut from).unwrap();
    std::fs::remove_file(&path).unwrap();
    let took = from.most.saturating_sub(middle);
    assert!(took as f64 <= said as f64 * 1.07 + 4e6, "open took {took} for {said}");
    within(resident() - middle, said, 0.05, "opened");

    // United and compared: nothing.
    let done = AtomicBool::new(false);
    let done = &done;
    let most = std::thread::scope(|scope| {
        let work = scope.spawn(move || {
            filter.union(&other).unwrap();
            filter.compare(&other).unwrap();
            done.store(true, Ordering::Relaxed);
            (filter, other)
        });
        let mut most = 0;
        while !done.load(Ordering::Relaxed) {
            most = most.max(resident());
        }
        drop(work.join().unwrap());
        most
    });
    let held = 2 * said as usize + (8 << 20);
    assert!(most.saturating_sub(before) < held, "a union took {most}");
}
