//! Bytes from outside are lies until a shape has validated them.
//!
//! Every truncation, every flipped bit and every hostile number in a small file: no reader
//! panics, no reader asks for much memory, and whoever looks at all bytes refuses all damage.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod naive;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;

use naive::{Facts, Naive, mend};
use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, CountingBloomFilter, Error, Lent, Mapped,
    verify_bytes,
};
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::scratch::Scratch;

// ---- Memory asked for ---------------------------------------------------------------------------

/// The system's allocator, remembering the largest single request of each thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    // A thread that is ending has no cell any more, and nothing to measure.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

#[expect(unsafe_code, reason = "an allocator that counts is an unsafe trait's implementation")]
// SAFETY: every call goes to the system's allocator unchanged, under the caller's own promises.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
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

/// The largest single request while `work` ran on this thread.
fn largest_request<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.with(|largest| largest.set(0));
    let result = work();
    (result, LARGEST.with(Cell::get))
}

/// What a reader may ask for at once without having seen the bytes: 16,384 lines.
const MOST_AHEAD: usize = 1 << 20;

// ---- Small files --------------------------------------------------------------------------------

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let blocked = |blocks, lanes, probes| Naive::blocked(blocks, lanes, probes);
    let classic = |bits, probes| Naive::classic(bits, probes);
    let with = |metadata: &str| Facts {
        planned: 20,
        target: 0.01,
        metadata: metadata.to_owned(),
        ..Facts::none()
    };
    let keyed = |facts| Facts { hash: 2, seed: [7; 16], ..facts };
    let json = "{\"what\":\"G\u{e4}ste\"}";
    let file = |mut naive: Naive, mut facts: Facts| {
        for key in 0..20u64 {
            let hash = naive::hash::hash(&facts, &key.to_le_bytes());
            facts.inserted += u64::from(naive.insert(hash));
        }
        let file = naive.to_file(&facts);
        verify_bytes(&file).unwrap();
        file
    };
    vec![
        ("line", file(blocked(1, 8, 5), with(""))),
        ("line with metadata", file(blocked(2, 8, 8), with(json))),
        ("pair", file(blocked(1, 16, 11), keyed(with("")))),
        ("line of another key", file(blocked(1, 8, 4), Facts { hash: 5, ..keyed(with("")) })),
        ("classic", file(classic(500, 7), with(""))),
        ("classic with metadata", file(classic(1000, 3), keyed(with(json)))),
    ]
}

/// Bytes in memory that begins at a cache line.
struct Aligned {
    room: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut room = vec![0; bytes.len() + 64];
        let start = room.as_ptr().align_offset(64);
        room[start..start + bytes.len()].copy_from_slice(bytes);
        Self { room, start, length: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.start + self.length]
    }
}

/// What every way into the library makes of some bytes.
struct Outcome {
    /// Ways that look at the header alone, and then answer.
    opened: Vec<Result<(), Error>>,
    /// Ways that look at every byte.
    examined: Vec<Result<(), Error>>,
}

fn try_all(bytes: &[u8]) -> Outcome {
    let file = Aligned::new(bytes);
    let file = file.bytes();
    let blocked = BloomFilter::<Lent<'_>>::from_bytes(file);
    let classic = ClassicBloomFilter::<Lent<'_>>::from_bytes(file);
    // What was opened answers, whatever its bits are.
    for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
        let _ = blocked.as_ref().is_ok_and(|filter| filter.contains_mixed_hash(hash));
        let _ = classic.as_ref().is_ok_and(|filter| filter.contains_mixed_hash(hash));
    }
    if let Ok(filter) = &blocked {
        let _ = (filter.estimated_len(), filter.estimated_rate(), filter.expected_rate(1 << 40));
    }
    if let Ok(filter) = &classic {
        let _ = (filter.estimated_len(), filter.estimated_rate(), filter.expected_rate(1 << 40));
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

/// Opens a file on disk by mapping it, and examines it if it opens.
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn map(scratch: &Scratch, bytes: &[u8]) -> (Result<(), Error>, Result<(), Error>) {
    let file = File::open(scratch.write("f.petal", bytes)).unwrap();
    // SAFETY: nobody else knows this file, and it is written anew only after the map is gone.
    let mapped = unsafe { Mapped::open(&file) };
    match mapped.and_then(AnyFilter::open_mapped) {
        Err(error) => (Err(error), Ok(())),
        Ok(filter) => {
            let _ = (
                filter.metadata().len(),
                filter.face().estimated_rate(),
                filter.face().estimated_len(),
            );
            (Ok(()), filter.verify())
        }
    }
}

/// One line that says something.
fn check_text(error: &Error) {
    let text = error.to_string();
    assert!(text.len() > 20 && !text.contains('\n') && text.len() < 300, "{text:?}");
}

fn refused(what: &str, bytes: &[u8]) -> Vec<Error> {
    let (outcome, largest) = largest_request(|| try_all(bytes));
    assert!(largest <= MOST_AHEAD + bytes.len(), "{what}: asked for {largest} bytes at once");
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

// ---- Damage -------------------------------------------------------------------------------------

#[test]
fn every_truncation_is_refused() {
    for (name, file) in files() {
        for short in truncations(&file) {
            let what = format!("{name} cut to {} of {}", short.len(), file.len());
            let outcome = try_all(short);
            assert!(outcome.opened.iter().all(Result::is_err), "{what}: opened");
            for error in refused(&what, short) {
                // Nothing at all is nobody's file; all else begins like one of ours. The wrong
                // one of two layouts is a matter of what was asked for.
                let right = if short.is_empty() { error.is_foreign() } else { error.is_corrupt() };
                assert!(right || error.is_invalid(), "{what}: {error}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for (name, file) in files() {
        for (bit, damaged) in bit_flips(&file) {
            let what = format!("{name} with bit {} of byte {} flipped", bit % 8, bit / 8);
            let errors = refused(&what, &damaged);
            match bit / 8 {
                0..8 => assert!(errors.iter().all(Error::is_foreign), "{what}"),
                8..10 => assert!(errors.iter().all(Error::is_unsupported_version), "{what}"),
                // Layout: another, or none that is known.
                10..12 => {}
                _ => assert!(errors.iter().any(|e| e.is_corrupt() || e.is_invalid()), "{what}"),
            }
            // A damaged header or metadata is found on opening already.
            let metadata = Naive::from_file(&file).1.metadata.len();
            if bit / 8 < 256 + metadata {
                assert!(try_all(&damaged).opened.iter().all(Result::is_err), "{what}: opened");
            }
        }
    }
}

#[test]
fn anything_added_is_refused() {
    for (name, file) in files() {
        for longer in extensions(&file) {
            let errors = refused(&format!("{name} with more at the end"), &longer);
            assert!(errors.iter().any(Error::is_corrupt));
        }
    }
}

/// Mapping goes through the same checks; a sample of the damage shows that it does.
#[test]
fn mapped_files_are_refused_alike() {
    let scratch = Scratch::new();
    for (name, file) in files() {
        let (opened, verified) = map(&scratch, &file);
        assert!(opened.is_ok() && verified.is_ok(), "{name}");
        for short in truncations(&file).step_by(61).chain([&file[..file.len() - 1]]) {
            assert!(map(&scratch, short).0.is_err(), "{name} cut to {}", short.len());
        }
        for (bit, damaged) in bit_flips(&file) {
            // All of the header, and every 64th bit behind it.
            if bit < 2048 || bit % 64 == 5 {
                let (opened, verified) = map(&scratch, &damaged);
                assert!(opened.is_err() || verified.is_err(), "{name} with bit {bit} flipped");
            }
        }
    }
}

/// Types that have several parts lie in a map as those of one part do.
#[test]
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn a_mapped_counting_filter_answers_and_is_examined() {
    let scratch = Scratch::new();
    let mut filter = CountingBloomFilter::with_rate(100, 0.01).unwrap();
    (0..150u64).for_each(|key| _ = filter.insert(&(key / 3)));
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes, "{}").unwrap();
    let open = |bytes: &[u8]| {
        let file = File::open(scratch.write("c.petal", bytes)).unwrap();
        // SAFETY: as in `map`.
        let mapped = unsafe { Mapped::open(&file) };
        CountingBloomFilter::open_mapped(mapped.unwrap())
    };
    let mapped = open(&bytes).unwrap();
    mapped.verify().unwrap();
    assert!(mapped == filter && mapped.metadata() == "{}" && mapped.count(&3u64) == 3);
    assert_eq!(mapped.memory_usage(), size_of_val(&mapped) as u64);
    drop(mapped);
    for at in [4096, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(open(&damaged).unwrap().verify().unwrap_err().is_corrupt());
    }
    assert!(open(&bytes[..bytes.len() - 64]).unwrap_err().is_corrupt());
}

#[test]
fn other_peoples_files_are_foreign() {
    let page = vec![b'x'; 5000];
    for bytes in [&b""[..], b"\n", b"PETAL\r\n", b"\x89PNG\r\n\x1a\n and more", &[0; 300], &page] {
        let outcome = try_all(bytes);
        for error in outcome.opened.into_iter().chain(outcome.examined).map(Result::unwrap_err) {
            assert!(error.is_foreign(), "{error}");
            check_text(&error);
        }
    }
    // A line end that a transfer changed.
    let mut file = files().swap_remove(0).1;
    file.remove(6);
    assert!(verify_bytes(&file).unwrap_err().is_foreign());
}

// ---- Lies with a right checksum -----------------------------------------------------------------

/// What refuses a lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Corrupt,
    Invalid,
    Version,
}

#[test]
fn every_hostile_field_is_refused_though_its_checksum_is_right() {
    use By::{Corrupt, Invalid, Version};
    let long = |number: u64| number.to_le_bytes().to_vec();
    let short = |number: u16| number.to_le_bytes().to_vec();
    let nan = f64::NAN.to_bits();
    // Offset, bytes, who refuses; for every layout.
    let common: Vec<(usize, Vec<u8>, By)> = vec![
        (8, short(0), Version),
        (8, short(2), Version),
        (8, short(u16::MAX), Version),
        (10, short(0), Version),
        (10, short(11), Version),
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
        let mut lies = common.clone();
        match (kind, file[40]) {
            (1, 8) => lies.push((38, short(9), Invalid)),
            (1, _) => lies.push((38, short(17), Invalid)),
            _ => lies.extend([(38, short(65), Invalid), (40, short(8), Invalid)]),
        }
        if file[36] == 1 {
            lies.push((56, vec![1], Invalid)); // rapidhash has 8 bytes of seed
        }
        for (at, lie, by) in lies {
            let mut bytes = file.clone();
            bytes[at..at + lie.len()].copy_from_slice(&lie);
            mend(&mut bytes);
            let what = format!("{name}: {lie:02x?} at byte {at}");
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

/// Metadata that is not UTF-8 is refused, its checksum being right.
#[test]
fn metadata_must_be_text() {
    for (name, file) in files().into_iter().filter(|(name, _)| name.contains("metadata")) {
        let mut bytes = file.clone();
        bytes[260] = 0xff;
        mend(&mut bytes);
        assert!(refused(name, &bytes).iter().any(|e| e.is_corrupt()), "{name}");
    }
}

/// Bits behind the last one of a classic filter are nobody's: a sound writer leaves them clear.
#[test]
fn bits_behind_the_last_one_are_refused() {
    let (_, file) = files().into_iter().find(|(name, _)| *name == "classic").unwrap();
    let mut bytes = file.clone();
    *bytes.last_mut().unwrap() |= 0x80; // bit 511 of 500
    mend(&mut bytes);
    assert!(refused("bit 511 of 500", &bytes).iter().any(Error::is_corrupt));
}

/// A header that promises a petabyte, and a stream that never ends: memory grows with what came.
#[test]
fn memory_grows_with_what_arrives() {
    let mut file = Naive::blocked(1, 8, 8).to_file(&Facts::none());
    let blocks = 1u64 << 44;
    file[24..32].copy_from_slice(&(blocks * 64).to_le_bytes());
    file[64..72].copy_from_slice(&blocks.to_le_bytes());
    mend(&mut file);
    let came = vec![0; 10 << 20];
    let stream = std::io::Read::chain(&file[..], &came[..]);
    let (result, largest) = largest_request(|| BloomFilter::read_from(stream));
    assert!(result.unwrap_err().is_corrupt());
    assert!(largest <= 4 * came.len(), "asked for {largest} bytes at once");
}

/// Bytes that begin elsewhere than at a cache line are refused in place, and said so.
#[test]
fn bytes_out_of_line_are_refused_in_place() {
    let (_, file) = files().swap_remove(0);
    let shifted = Aligned::new(&[&[0], &file[..]].concat());
    let error = BloomFilter::from_bytes(&shifted.bytes()[1..]).unwrap_err();
    assert!(!error.is_corrupt() && error.to_string().contains("multiple of 64"), "{error}");
    check_text(&error);
    BloomFilter::read_from(&shifted.bytes()[1..]).unwrap();
}
