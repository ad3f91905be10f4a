//! Reads corrupted and hostile files: every truncation, every flipped bit and every hostile number
//! in a small file. No reader panics or allocates much memory, and readers of all bytes detect all
//! corruption.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;

use petal::{
    AnyFilter, BloomFilter, Borrowed, ClassicBloomFilter, CountingBloomFilter, Error, Mapped,
    Membership as _, verify_bytes,
};
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::scratch::Scratch;

use crate::naive::{self, HeaderFields, Naive, update_checksums};

// ---- Allocations ---------------------------------------------------------------------------

/// The system allocator, with a record of the largest single allocation of each thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    // A terminating thread has no cell any more.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

#[expect(unsafe_code, reason = "an allocator that counts is an unsafe trait's implementation")]
// SAFETY: every call is forwarded to the system allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller fulfils the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Returns the largest single allocation of `work` on this thread.
fn largest_request<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.with(|largest| largest.set(0));
    let result = work();
    (result, LARGEST.with(Cell::get))
}

/// Maximum allocation of a reader before it has read the bytes: 16,384 cache lines.
const MOST_AHEAD: usize = 1 << 20;

// ---- Small files --------------------------------------------------------------------------------

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let blocked = |blocks, lanes, probes| Naive::blocked(blocks, lanes, probes);
    let classic = |bits, probes| Naive::classic(bits, probes);
    let with = |metadata: &str| HeaderFields {
        planned: 20,
        target: 0.01,
        metadata: metadata.to_owned(),
        ..HeaderFields::none()
    };
    let keyed = |fields| HeaderFields { hash: 2, seed: [7; 16], ..fields };
    let json = "{\"what\":\"G\u{e4}ste\"}";
    let file = |mut naive: Naive, mut fields: HeaderFields| {
        for key in 0..20u64 {
            let hash = naive::hash::hash(&fields, &key.to_le_bytes());
            fields.inserted += u64::from(naive.insert(hash));
        }
        let file = naive.to_file(&fields);
        verify_bytes(&file).unwrap();
        file
    };
    vec![
        ("line", file(blocked(1, 8, 5), with(""))),
        ("line with metadata", file(blocked(2, 8, 8), with(json))),
        ("pair", file(blocked(1, 16, 11), keyed(with("")))),
        (
            "line of another key",
            file(blocked(1, 8, 4), HeaderFields { hash: 5, ..keyed(with("")) }),
        ),
        ("classic", file(classic(500, 7), with(""))),
        ("classic with metadata", file(classic(1000, 3), keyed(with(json)))),
    ]
}

/// Bytes aligned to a cache line.
struct Aligned {
    buffer: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut buffer = vec![0; bytes.len() + 64];
        let start = buffer.as_ptr().align_offset(64);
        buffer[start..start + bytes.len()].copy_from_slice(bytes);
        Self { buffer, start, length: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.length]
    }
}

/// The results of all ways to read some bytes.
struct Outcome {
    /// Ways that read only the header before queries.
    opened: Vec<Result<(), Error>>,
    /// Ways that read every byte.
    examined: Vec<Result<(), Error>>,
}

fn try_all(bytes: &[u8]) -> Outcome {
    let file = Aligned::new(bytes);
    let file = file.bytes();
    let blocked = BloomFilter::<Borrowed<'_>>::from_bytes(file);
    let classic = ClassicBloomFilter::<Borrowed<'_>>::from_bytes(file);
    // Opened filters can be queried, whatever their bits are.
    for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
        let _ = blocked.as_ref().is_ok_and(|filter| filter.contains_mixed_hash(hash));
        let _ = classic.as_ref().is_ok_and(|filter| filter.contains_mixed_hash(hash));
    }
    if let Ok(filter) = &blocked {
        let _ = (
            filter.stats().estimated_len,
            filter.stats().estimated_fpr,
            filter.expected_fpr(1 << 40),
        );
    }
    if let Ok(filter) = &classic {
        let _ = (
            filter.stats().estimated_len,
            filter.stats().estimated_fpr,
            filter.expected_fpr(1 << 40),
        );
    }
    let opened = vec![blocked.map(drop), classic.map(drop)];
    let examined = vec![
        verify_bytes(file),
        AnyFilter::read_from(file).map(drop),
        BloomFilter::read_from(file).map(drop),
        ClassicBloomFilter::read_from(file).map(drop),
    ];
    Outcome { opened, examined }
}

/// Maps a file on disk, and verifies it if that succeeds.
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn map(scratch: &Scratch, bytes: &[u8]) -> (Result<(), Error>, Result<(), Error>) {
    let file = File::open(scratch.write("f.petal", bytes)).unwrap();
    // SAFETY: no other process uses this file, and it is rewritten only after the map is dropped.
    let mapped = unsafe { Mapped::open(&file) };
    match mapped.and_then(AnyFilter::open_mapped) {
        Err(error) => (Err(error), Ok(())),
        Ok(filter) => {
            let _ = (
                filter.metadata().len(),
                filter.as_dyn().stats().estimated_fpr,
                filter.as_dyn().stats().estimated_len,
            );
            (Ok(()), filter.verify())
        }
    }
}

/// Checks that the message is one non-empty line.
fn check_text(error: &Error) {
    let text = error.to_string();
    assert!(text.len() > 20 && !text.contains('\n') && text.len() < 300, "{text:?}");
}

fn refused(what: &str, bytes: &[u8]) -> Vec<Error> {
    let (outcome, largest) = largest_request(|| try_all(bytes));
    assert!(largest <= MOST_AHEAD + bytes.len(), "{what}: one allocation of {largest} bytes");
    let mut errors: Vec<Error> = outcome.opened.into_iter().filter_map(Result::err).collect();
    for (way, result) in outcome.examined.into_iter().enumerate() {
        match result {
            Ok(()) => panic!("{what}: way {way} took it"),
            Err(error) => errors.push(error),
        }
    }
    errors.iter().for_each(check_text);
    errors
}

// ---- Corruption -------------------------------------------------------------------------------------

#[test]
fn every_truncation_is_an_error() {
    for (name, file) in files() {
        for short in truncations(&file) {
            let what = format!("{name} cut to {} of {}", short.len(), file.len());
            let outcome = try_all(short);
            assert!(outcome.opened.iter().all(Result::is_err), "{what}: opened");
            for error in refused(&what, short) {
                // An empty file is foreign; all other prefixes start with the magic bytes. The wrong
                // layout is an error of its own.
                let right = if short.is_empty() { error.is_foreign() } else { error.is_corrupt() };
                assert!(right || error.is_invalid(), "{what}: {error}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    for (name, file) in files() {
        for (bit, damaged) in bit_flips(&file) {
            let what = format!("{name} with bit {} of byte {} flipped", bit % 8, bit / 8);
            let errors = refused(&what, &damaged);
            match bit / 8 {
                0..8 => assert!(errors.iter().all(Error::is_foreign), "{what}"),
                8..10 => assert!(errors.iter().all(Error::is_unsupported_version), "{what}"),
                // The layout field: another or an unknown layout.
                10..12 => {}
                _ => assert!(errors.iter().any(|e| e.is_corrupt() || e.is_invalid()), "{what}"),
            }
            // Corrupted headers and metadata are detected on opening.
            let metadata = Naive::from_file(&file).1.metadata.len();
            if bit / 8 < 256 + metadata {
                assert!(try_all(&damaged).opened.iter().all(Result::is_err), "{what}: opened");
            }
        }
    }
}

#[test]
fn trailing_bytes_are_an_error() {
    for (name, file) in files() {
        for longer in extensions(&file) {
            let errors = refused(&format!("{name} with more at the end"), &longer);
            assert!(errors.iter().any(Error::is_corrupt));
        }
    }
}

/// Mapping makes the same checks; tested with a sample of the corruptions.
#[test]
fn corrupted_mapped_files_are_errors() {
    let scratch = Scratch::new();
    for (name, file) in files() {
        let (opened, verified) = map(&scratch, &file);
        assert!(opened.is_ok() && verified.is_ok(), "{name}");
        for short in truncations(&file).step_by(61).chain([&file[..file.len() - 1]]) {
            assert!(map(&scratch, short).0.is_err(), "{name} cut to {}", short.len());
        }
        for (bit, damaged) in bit_flips(&file) {
            // All bits of the header, and every 64th bit after it.
            if bit < 2048 || bit % 64 == 5 {
                let (opened, verified) = map(&scratch, &damaged);
                assert!(opened.is_err() || verified.is_err(), "{name} with bit {bit} flipped");
            }
        }
    }
}

/// Types with several parts can be mapped too.
#[test]
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn mapped_counting_filter_is_queried_and_verified() {
    let scratch = Scratch::new();
    let mut filter = CountingBloomFilter::with_fpr(100, 0.01).unwrap();
    (0..150u64).for_each(|key| _ = filter.insert(&(key / 3)));
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes, "{}").unwrap();
    let map = |bytes: &[u8]| {
        let file = File::open(scratch.write("c.petal", bytes)).unwrap();
        // SAFETY: as in `map`.
        unsafe { Mapped::open(&file) }.unwrap()
    };
    let open = |bytes: &[u8]| CountingBloomFilter::open_mapped(map(bytes));
    let file = map(&bytes);
    file.verify().unwrap();
    assert_eq!(file.metadata(), "{}");
    let mapped = open(&bytes).unwrap();
    assert!(mapped == filter && mapped.count(&3u64) == 3);
    assert_eq!(mapped.memory_usage(), size_of_val(&mapped) as u64);
    drop(mapped);
    for at in [4096, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(open(&damaged).is_ok() && map(&damaged).verify().unwrap_err().is_corrupt());
    }
    assert!(open(&bytes[..bytes.len() - 64]).unwrap_err().is_corrupt());
}

#[test]
fn files_of_other_programs_are_foreign() {
    let page = vec![b'x'; 5000];
    for bytes in [&b""[..], b"\n", b"PETAL\r\n", b"\x89PNG\r\n\x1a\n and more", &[0; 300], &page] {
        let outcome = try_all(bytes);
        for error in outcome.opened.into_iter().chain(outcome.examined).map(Result::unwrap_err) {
            assert!(error.is_foreign(), "{error}");
            check_text(&error);
        }
    }
    // A line ending converted by a transfer.
    let mut file = files().swap_remove(0).1;
    file.remove(6);
    assert!(verify_bytes(&file).unwrap_err().is_foreign());
}

// ---- Hostile values with valid checksums -----------------------------------------------------------------

/// The check that detects a hostile value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Corrupt,
    Invalid,
    Version,
}

#[test]
fn hostile_fields_with_valid_checksums_are_errors() {
    use By::{Corrupt, Invalid, Version};
    let long = |number: u64| number.to_le_bytes().to_vec();
    let short = |number: u16| number.to_le_bytes().to_vec();
    let nan = f64::NAN.to_bits();
    // Offset, bytes and check, for every layout.
    let common: Vec<(usize, Vec<u8>, By)> = vec![
        (8, short(0), Version),
        (8, short(2), Version),
        (8, short(u16::MAX), Version),
        (10, short(0), Version),
        (10, short(13), Version),
        (12, vec![1], Corrupt),
        (15, vec![0x80], Corrupt),
        (16, long(0), Corrupt),
        (16, long(256), Corrupt),
        (16, long(8192), Corrupt),
        (16, long(u64::MAX), Corrupt),
        (24, long(0), Corrupt),
        (24, long(63), Corrupt),
        (24, long(1 << 40), Corrupt),
        (24, long(1 << 63), Corrupt),
        (24, long(u64::MAX), Corrupt),
        (24, long(u64::MAX - 4095), Corrupt),
        (32, u32::MAX.to_le_bytes().to_vec(), Corrupt),
        (32, (1u32 << 20 | 1).to_le_bytes().to_vec(), Corrupt),
        (32, (1u32 << 20).to_le_bytes().to_vec(), Corrupt),
        (36, short(0), Invalid),
        (36, short(9), Invalid),
        (38, short(0), Invalid),
        (38, short(255), Invalid),
        (38, short(u16::MAX), Invalid),
        (40, short(7), Invalid),
        (40, short(u16::MAX), Invalid),
        (42, vec![1], Corrupt),
        (47, vec![1], Corrupt),
        (64, long(0), Invalid),
        (64, long(1 << 20), Corrupt),
        (64, long(1 << 50), Corrupt),
        (64, long(1 << 63), Invalid),
        (64, long(u64::MAX), Invalid),
        (80, long(nan), Corrupt),
        (80, long((-0.1f64).to_bits()), Corrupt),
        (80, long(1.0f64.to_bits()), Corrupt),
        (80, long(f64::INFINITY.to_bits()), Corrupt),
        (96, vec![1], Corrupt),
        (239, vec![1], Corrupt),
        (4095, vec![1], Corrupt),
    ];
    for (name, file) in files() {
        let kind = file[10];
        let mut changes = common.clone();
        match (kind, file[40]) {
            (1, 8) => changes.push((38, short(9), Invalid)),
            (1, _) => changes.push((38, short(17), Invalid)),
            _ => changes.extend([(38, short(65), Invalid), (40, short(8), Invalid)]),
        }
        if file[36] == 1 {
            changes.push((56, vec![1], Invalid)); // rapidhash has 8 bytes of seed
        }
        for (at, value, by) in changes {
            let mut bytes = file.clone();
            bytes[at..at + value.len()].copy_from_slice(&value);
            update_checksums(&mut bytes);
            let what = format!("{name}: {value:02x?} at byte {at}");
            refused(&what, &bytes);
            for error in
                [verify_bytes(&bytes).unwrap_err(), AnyFilter::read_from(&bytes[..]).unwrap_err()]
            {
                let is = match by {
                    Corrupt => error.is_corrupt(),
                    Invalid => error.is_invalid() || error.is_corrupt(),
                    Version => error.is_unsupported_version(),
                };
                assert!(is, "{what}: {error}");
            }
        }
    }
}

/// The checksum is valid.
#[test]
fn metadata_that_is_not_utf8_is_an_error() {
    for (name, file) in files().into_iter().filter(|(name, _)| name.contains("metadata")) {
        let mut bytes = file.clone();
        bytes[260] = 0xff;
        update_checksums(&mut bytes);
        assert!(refused(name, &bytes).iter().any(|e| e.is_corrupt()), "{name}");
    }
}

/// Bits after the last bit of a classic filter must be clear.
#[test]
fn set_bits_after_the_last_are_an_error() {
    let (_, file) = files().into_iter().find(|(name, _)| *name == "classic").unwrap();
    let mut bytes = file.clone();
    *bytes.last_mut().unwrap() |= 0x80; // bit 511 of 500
    update_checksums(&mut bytes);
    assert!(refused("bit 511 of 500", &bytes).iter().any(Error::is_corrupt));
}

/// The header declares a petabyte, and the stream does not end: memory grows with the data received.
#[test]
fn memory_grows_with_the_data_received() {
    let mut file = Naive::blocked(1, 8, 8).to_file(&HeaderFields::none());
    let blocks = 1u64 << 44;
    file[24..32].copy_from_slice(&(blocks * 64).to_le_bytes());
    file[64..72].copy_from_slice(&blocks.to_le_bytes());
    update_checksums(&mut file);
    let received = vec![0; 10 << 20];
    let stream = std::io::Read::chain(&file[..], &received[..]);
    let (result, largest) = largest_request(|| BloomFilter::read_from(stream));
    assert!(result.unwrap_err().is_corrupt());
    assert!(largest <= 4 * received.len(), "one allocation of {largest} bytes");
}

/// Bytes that are not aligned to a cache line cannot be borrowed.
#[test]
fn unaligned_bytes_are_an_error() {
    let (_, file) = files().swap_remove(0);
    let shifted = Aligned::new(&[&[0], &file[..]].concat());
    let error = BloomFilter::from_bytes(&shifted.bytes()[1..]).unwrap_err();
    assert!(!error.is_corrupt() && error.to_string().contains("multiple of 64"), "{error}");
    check_text(&error);
    BloomFilter::read_from(&shifted.bytes()[1..]).unwrap();
}
