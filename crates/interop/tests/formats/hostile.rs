//! Invalid files: every small damage and every extreme number is an error, or gives a filter that
//! can be queried and filled without a panic. Nothing is allocated that the file does not have
//! bytes for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Read;

use flate2::read::GzEncoder;
use petal_interop::redisbloom::{FORCE64, Header, LinkPlan, MAX_LINKS, NO_ROUND};
use petal_interop::{ForeignFilter, Format};
use petal_testkit::corrupt;
use petal_testkit::rng::Rng;

use crate::common::{Golden, manifest};

/// The system's allocator, which records the largest request of this thread.
struct Largest;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system's allocator with the same arguments.
#[allow(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Largest {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Largest = Largest;

/// Upper bound of the memory that a valid small golden file needs.
const MOST: usize = 4 << 20;

/// Opens a file in its stated format and in the detected one, and queries and fills the result.
fn survive(golden: &Golden, file: &[u8], what: &str) {
    LARGEST.set(0);
    for format in [golden.format(), None] {
        let Ok(filter) = ForeignFilter::from_bytes(file, format) else { continue };
        // Computing the floor of the rate takes a thousand times as long as the rest.
        if what.bytes().map(u32::from).sum::<u32>().is_multiple_of(32) {
            let stats = filter.stats();
            assert!(
                (0.0..=1.0).contains(&stats.estimated_fpr),
                "{}: {what}: {stats:?}",
                golden.file
            );
        }
        let sound = filter.verify().is_ok();
        for key in ["", "a", "7", "a key that is longer than any block of any hash: 0123456789"] {
            let _ = filter.contains(key.as_bytes());
        }
        let mut filled = ForeignFilter::from_bytes(file.to_vec(), Some(filter.format())).unwrap();
        for key in ["a", "another", "7", "8"] {
            if filled.insert(key.as_bytes()).is_ok() {
                assert!(filled.contains(key.as_bytes()).unwrap(), "{}: {what}", golden.file);
            }
        }
        let stays_sound = |written: &ForeignFilter, change: &str| {
            let read = ForeignFilter::from_bytes(written.as_bytes(), Some(written.format()));
            if let Err(error) = read.and_then(|read| read.verify()) {
                panic!("{}: {what}: unsound after {change}: {error}", golden.file);
            }
        };
        if sound {
            stays_sound(&filled, "keys were put in");
        }
        if filled.union(&filter).is_ok() && sound {
            stays_sound(&filled, "a union");
        }
    }
    let largest = LARGEST.get();
    assert!(largest <= MOST, "{}: {what}: {largest} bytes at once", golden.file);
}

/// Returns one small file per format and variant.
fn subjects() -> Vec<Golden> {
    let golden = manifest().into_iter();
    golden.filter(|golden| golden.format().is_some() && golden.bytes().len() < 6_000).collect()
}

#[test]
fn small_damage_is_an_error_or_harmless() {
    for golden in subjects() {
        let file = golden.filter().into_bytes();
        for cut in corrupt::truncations(&file).step_by(file.len() / 400 + 1) {
            survive(&golden, cut, "cut");
            if golden.format().is_some_and(tells_its_length) {
                assert!(
                    ForeignFilter::from_bytes(cut, golden.format()).is_err(),
                    "{}",
                    golden.file
                );
            }
        }
        for (bit, damaged) in corrupt::bit_flips(&file).take(8 * 192) {
            survive(&golden, &damaged, &format!("bit {bit} flipped"));
        }
        for more in corrupt::extensions(&file) {
            survive(&golden, &more, "extended");
        }
    }
}

/// Returns true if a format records the length of its files. rbloom's bits go to the end, and a
/// cascade truncated between two layers is a shorter cascade.
fn tells_its_length(format: Format) -> bool {
    !matches!(format, Format::Rbloom | Format::FilterCascade)
}

#[test]
fn extreme_numbers_are_errors_or_harmless() {
    let numbers = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    let large = [1 << 32, 1 << 61, i64::MAX as u64, 1 << 63, u64::MAX - 63, u64::MAX];
    for golden in subjects() {
        let file = golden.filter().into_bytes();
        for at in 0..file.len().min(160) {
            for number in numbers.iter().chain(&large) {
                let low = number.to_le_bytes();
                let mut high = low;
                high.reverse();
                for bytes in [&low[..], &low[..4], &high[..], &high[4..]] {
                    let mut lying = file.clone();
                    let end = (at + bytes.len()).min(lying.len());
                    lying[at..end].copy_from_slice(&bytes[..end - at]);
                    survive(&golden, &lying, &format!("{number} at byte {at}"));
                }
            }
        }
    }
}

#[test]
fn random_bytes_are_errors_or_harmless() {
    let (golden, mut rng) = (subjects(), Rng::new(6));
    for _ in 0..3_000 {
        let subject = rng.pick(&golden).clone();
        let mut file = subject.filter().into_bytes();
        for _ in 0..=rng.below(8) {
            let at = rng.below(file.len().min(200));
            file[at] = rng.next_u64() as u8;
        }
        survive(&subject, &file, "random bytes");
        let length = rng.below(300);
        survive(&subject, &rng.bytes(length), "only random bytes");
    }
    for format in Format::ALL {
        assert!(ForeignFilter::from_bytes(&[][..], Some(format)).is_err(), "{format}");
    }
    assert!(ForeignFilter::from_bytes(&[][..], None).unwrap_err().is_unknown());
}

#[test]
fn gzip_bomb_stops_at_the_limit() {
    let mut compressed = Vec::new();
    GzEncoder::new(std::io::repeat(0).take(1 << 28), flate2::Compression::fast())
        .read_to_end(&mut compressed)
        .unwrap();
    LARGEST.set(0);
    let error = ForeignFilter::read_from(&compressed[..], Some(Format::Dcso), 1 << 20).unwrap_err();
    // The first bytes decide.
    assert!(error.is_malformed(), "{error}");
    assert!(LARGEST.get() <= MOST);
}

#[test]
fn claimed_growth_allocates_nothing() {
    let mut filter = ForeignFilter::with_fpr(Format::RedisBloom, 1, 0.01).unwrap();
    assert!(filter.insert(b"the one that fits").unwrap());
    let honest = filter.into_bytes();
    for growth in [1 << 20, 1 << 28, u32::MAX] {
        let mut lying = honest.clone();
        lying[16..20].copy_from_slice(&growth.to_le_bytes());
        for limit in [None, Some(1 << 20)] {
            let mut filter = match limit {
                None => ForeignFilter::from_bytes(lying.clone(), None).unwrap(),
                Some(limit) => ForeignFilter::read_from(&lying[..], None, limit).unwrap(),
            };
            LARGEST.set(0);
            let error = (0..9).find_map(|n: u8| filter.insert(&[n]).err()).unwrap();
            assert!(error.is_too_large(), "{growth}: {error}");
            assert!(LARGEST.get() <= MOST, "{growth}: {} bytes at once", LARGEST.get());
            assert!(filter.contains(b"the one that fits").unwrap());
        }
    }
}

/// petal adds no link to a file that already has the maximum number.
#[test]
fn writer_adds_no_link_that_readers_refuse() {
    let plan = LinkPlan::new(1, 0.01);
    let links = vec![(plan, 1); MAX_LINKS];
    let header = Header { size: MAX_LINKS as u64, options: NO_ROUND | FORCE64, growth: 1, links };
    let mut file = header.to_bytes();
    file.resize(file.len() + MAX_LINKS * plan.bytes() as usize, 0);
    let mut filter = ForeignFilter::from_bytes(file, Some(Format::RedisBloom)).unwrap();
    filter.verify().unwrap();
    assert!(filter.insert(b"one more").unwrap_err().is_full());
    ForeignFilter::from_bytes(filter.into_bytes(), Some(Format::RedisBloom))
        .unwrap()
        .verify()
        .unwrap();
}

#[test]
fn plans_beyond_every_format_are_errors() {
    for format in Format::ALL {
        for (keys, rate) in [(0, 0.01), (1, 0.0), (1, 1.0), (1, f64::NAN), (u64::MAX, 1e-300)] {
            let planned = ForeignFilter::with_fpr_within(format, keys, rate, 1 << 20);
            assert!(planned.is_err(), "{format}: {keys} at {rate}");
        }
        let large = ForeignFilter::with_fpr_within(format, 1 << 40, 1e-9, 1 << 20);
        assert!(large.is_err(), "{format}");
    }
}
