//! The reader accepts every file that the writer writes, whatever the counters of the original file.
//!
//! Counters in a file are data: anyone can change them and update the checksums. A file that opens
//! must still open after insertions, removals and unions, and after it was written again.

use petal::{
    AnyFilter, BatchResults, BloomFilter, ByteSize, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, FilterType, Membership as _, QuotientFilter, ScalableBloomFilter,
    VectorQuotientFilter, WindowedBloomFilter, verify_bytes,
};

use crate::naive::update_checksums;

/// The header fields with numbers of keys, rates and parameters.
const FIELDS: std::ops::Range<usize> = 72..240;
const PLANNED: usize = 72;
const INSERTED: usize = 88;
const PARAMETERS: usize = 96;
/// The offset of the data.
const DATA: usize = 4096;

const KEYS: u64 = 60;

/// Returns one filter of each mutable type, with keys.
fn family() -> Vec<AnyFilter> {
    let rate = 0.01;
    let timed = WindowedBloomFilter::builder().capacity(KEYS).fpr(rate).window(1000);
    let family: Vec<AnyFilter> = vec![
        BloomFilter::with_fpr(KEYS, rate).unwrap().into(),
        ClassicBloomFilter::with_fpr(KEYS, rate).unwrap().into(),
        CountingBloomFilter::with_fpr(KEYS, rate).unwrap().into(),
        ClassicCountingBloomFilter::with_fpr(KEYS, rate).unwrap().into(),
        QuotientFilter::with_fpr(4 * KEYS, rate).unwrap().into(),
        VectorQuotientFilter::with_fpr(4 * KEYS, rate).unwrap().into(),
        ScalableBloomFilter::with_fpr(10, rate).unwrap().into(),
        ScalableBloomFilter::with_fpr(10 * KEYS, rate).unwrap().into(),
        WindowedBloomFilter::with_fpr(KEYS / 3, rate).unwrap().into(),
        WindowedBloomFilter::with_fpr(KEYS * 3, rate).unwrap().into(),
        timed.build().unwrap().into(),
    ];
    family.into_iter().map(|filter| with_keys(filter, 0..KEYS)).collect()
}

fn hashes(filter: &AnyFilter, keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut hashes = Vec::new();
    filter.as_dyn().hash_spec().hash_all(keys.map(u64::to_le_bytes), &mut hashes);
    hashes
}

fn with_keys(mut filter: AnyFilter, keys: std::ops::Range<u64>) -> AnyFilter {
    let hashes = hashes(&filter, keys);
    // A full filter returns errors and stays valid.
    let _ = filter.as_dyn_mut().unwrap().insert_mixed_hashes(&hashes, &mut BatchResults::new());
    filter
}

fn file_of(filter: &AnyFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    file
}

fn read(file: &[u8]) -> petal::Result<AnyFilter> {
    AnyFilter::read_from(file).map(|(filter, _)| filter)
}

fn patched(file: &[u8], patches: &[(usize, u64)]) -> Vec<u8> {
    let mut file = file.to_vec();
    for &(at, value) in patches {
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    update_checksums(&mut file);
    file
}

/// Modifies a filter in every way of its type, and reads its file after each.
fn assert_stays_readable(file: &[u8], what: &str) {
    let check = |filter: &AnyFilter, change: &str| {
        let file = file_of(filter);
        let result = verify_bytes(&file).and_then(|()| read(&file));
        let again = result.unwrap_or_else(|error| panic!("{what}: after {change}: {error}"));
        assert_eq!(file_of(&again), file, "{what}: after {change}: the file differs");
    };
    check(&read(file).unwrap(), "nothing");
    check(&with_keys(read(file).unwrap(), KEYS..KEYS + 1), "one key more");
    check(&with_keys(read(file).unwrap(), KEYS..3 * KEYS), "many keys");
    let mut removed = read(file).unwrap();
    let members = hashes(&removed, 0..KEYS);
    if removed.as_dyn_mut().unwrap().remove_mixed_hashes(&members, &mut BatchResults::new()).is_ok()
    {
        check(&removed, "removals");
    }
    let mut union = read(file).unwrap();
    if union.union(&read(file).unwrap()).is_ok() {
        check(&union, "a union");
    }
    if let AnyFilter::Windowed(mut window) = read(file).unwrap() {
        window.advance_to(u64::MAX);
        check(&with_keys(window.into(), KEYS..2 * KEYS), "the end of time");
    }
}

#[test]
fn any_file_that_opens_stays_readable() {
    let values = [
        0,
        1,
        2,
        u64::from(u32::MAX),
        (1 << 62) - 1,
        1 << 62,
        (1 << 63) - 2,
        (1 << 63) - 1,
        1 << 63,
        u64::MAX,
    ];
    let mut opened = vec![0; FilterType::ALL.len() + 1];
    for filter in family() {
        let (kind, file) = (filter.as_dyn().filter_type(), file_of(&filter));
        let directory = DATA..DATA + if kind == FilterType::Scalable { 64 } else { 0 };
        for at in FIELDS.chain(directory).step_by(8) {
            for value in values {
                let patches = [(at, value)];
                // The header has the sum of the counters of a directory or a window.
                let both = [(at, value), (INSERTED, value.min(u64::MAX >> 1))];
                for patches in [&patches[..], &both[..]] {
                    let file = patched(&file, patches);
                    if read(&file).is_ok() {
                        assert_stays_readable(&file, &format!("{kind} with {patches:x?}"));
                        opened[kind as usize] += 1;
                    }
                }
            }
        }
    }
    let few: Vec<_> = FilterType::ALL
        .into_iter()
        .filter(|kind| !kind.is_fixed())
        .filter(|kind| opened[*kind as usize] < 10)
        .collect();
    assert!(few.is_empty(), "too few files of {few:?} opened: {opened:?}");
}

#[test]
fn maximum_number_of_keys_in_a_file() {
    let max = u64::MAX >> 1;
    for filter in family() {
        let kind = filter.as_dyn().filter_type();
        if matches!(
            kind,
            FilterType::Quotient
                | FilterType::VectorQuotient
                | FilterType::Scalable
                | FilterType::Windowed
        ) {
            continue;
        }
        for less in 0..3 {
            let file = patched(&file_of(&filter), &[(INSERTED, max - less)]);
            assert_stays_readable(&file, &format!("{kind} with {} keys", max - less));
        }
        // It stays at the maximum.
        let file = patched(&file_of(&filter), &[(INSERTED, max)]);
        let more = file_of(&with_keys(read(&file).unwrap(), KEYS..2 * KEYS));
        assert_eq!(read(&more).unwrap().as_dyn().inserted(), max, "{kind}");
    }
}

#[test]
fn layer_with_the_maximum_number_of_keys() {
    let layers = with_keys(ScalableBloomFilter::with_fpr(1000, 0.01).unwrap().into(), 0..KEYS);
    let layer_inserted = DATA + 24;
    for planned in [1 << 63, u64::MAX] {
        for inserted in [(1 << 63) - 2, (1 << 63) - 1, 1 << 63, planned - 1, planned] {
            let header = inserted.min(u64::MAX >> 1);
            let patches = [(PLANNED, planned), (INSERTED, header), (layer_inserted, inserted)];
            let file = patched(&file_of(&layers), &patches);
            assert_stays_readable(&file, &format!("{inserted} of {planned} keys"));
        }
    }
}

#[test]
fn window_with_the_maximum_number_of_rotations() {
    const CLOCK: usize = PARAMETERS + 16;
    for keys in [1, 7, 30] {
        let window = WindowedBloomFilter::with_fpr(keys, 0.01).unwrap();
        let generations = u64::from(window.generations());
        let file = file_of(&with_keys(window.into(), 0..40 * keys));
        let clock = u64::from_le_bytes(file[CLOCK..CLOCK + 8].try_into().unwrap());
        assert!(clock >= generations, "{clock}");
        let last = (1u64 << 62) - ((1 << 62) - clock % generations) % generations;
        for clock in [last, last - generations] {
            let file = patched(&file, &[(CLOCK, clock)]);
            assert_stays_readable(&file, &format!("{keys} keys after {clock} rotations"));
            // Its results equal those of a window with a small clock.
            let small = patched(&file, &[(CLOCK, clock % generations + generations)]);
            let (mut ours, mut theirs) = (read(&file).unwrap(), read(&small).unwrap());
            for key in 0..100 * keys {
                let new = [&mut ours, &mut theirs].map(|filter| {
                    let (hashes, mut new) = (hashes(filter, key..key + 1), BatchResults::new());
                    filter.as_dyn_mut().unwrap().insert_mixed_hashes(&hashes, &mut new).unwrap();
                    new.get(0)
                });
                assert_eq!(new[0], new[1], "key {key}");
            }
            assert_eq!(ours.as_dyn().stats().estimated_len, theirs.as_dyn().stats().estimated_len);
        }
    }
}

/// Every filter that a builder makes can be read: a size at which the filter would contain nearly every
/// key is refused.
#[test]
fn every_filter_that_is_built_can_be_read() {
    let (mut built, mut refused) = (0, 0);
    let mut check = |filter: petal::Result<AnyFilter>, about: String| match filter {
        Ok(filter) => {
            let result = verify_bytes(&file_of(&filter)).and_then(|()| read(&file_of(&filter)));
            result.unwrap_or_else(|error| panic!("{about}: {error}"));
            built += 1;
        }
        Err(error) => {
            assert!(error.is_invalid() && !error.is_alloc(), "{about}: {error}");
            refused += 1;
        }
    };
    for keys in [0, 1, 100, 20_000, 1_000_000_000, 1 << 40, u64::MAX] {
        macro_rules! check {
            ($($builder:expr),*) => {
                $(check($builder.build().map(AnyFilter::from), stringify!($builder).to_owned() + &format!(" of {keys} keys"));)*
            };
        }
        for size in [64, 128, 1000] {
            let memory = ByteSize::bytes(size);
            check!(
                BloomFilter::builder().capacity(keys).memory(memory),
                BloomFilter::builder().capacity(keys).memory(memory).probes(5),
                BloomFilter::builder().capacity(keys).bits(size),
                BloomFilter::builder().capacity(keys).bits(size).probes(8),
                ClassicBloomFilter::builder().capacity(keys).memory(memory),
                ClassicBloomFilter::builder().capacity(keys).bits(size),
                ClassicBloomFilter::builder().capacity(keys).bits(size / 64).probes(3),
                CountingBloomFilter::builder().capacity(keys).memory(memory),
                ClassicCountingBloomFilter::builder().capacity(keys).memory(memory),
                ClassicCountingBloomFilter::builder().capacity(keys).bits(size).probes(2),
                QuotientFilter::builder().capacity(keys).table_size(size).slot_bits(1),
                QuotientFilter::builder().max_capacity(keys).table_size(size).slot_bits(3),
                VectorQuotientFilter::builder().capacity(keys).table_size(size).slot_bits(6)
            );
        }
    }
    assert!(built > 100 && refused > 100, "{built} {refused}");
    let error = BloomFilter::with_memory(20_000, ByteSize::bytes(64)).unwrap_err().to_string();
    let expected = "capacity: expected fewer keys, or more memory or bits, found 20,000, at which";
    assert!(error.starts_with(expected), "{error}");
    // A rate that is high but useful to someone.
    assert!(BloomFilter::with_memory(1000, ByteSize::bytes(64)).unwrap().target_fpr() > 0.8);
}
