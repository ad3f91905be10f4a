//! Quotient filters: comparison with a model, measured rates, corrupted files, large sizes, file
//! format.

use petal::embed::QuotientLayout;
use petal::{
    BatchResults, Borrowed, HashSpec, Membership as _, QuotientFilter, VectorQuotientFilter,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::keys::Keys;
use petal_testkit::rng::Rng;

use crate::models::quotient::drive;
use crate::naive::update_checksums;

// ---- Model --------------------------------------------------------------------------------------

#[test]
fn random_operations_equal_the_model() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let length = rng.below(4000);
        drive(&rng.bytes(length));
    }
}

/// The run of the key is longer than 255 slots, the maximum of an offset byte.
#[test]
fn thousands_of_copies_of_one_key() {
    let mut filter = QuotientFilter::builder().table_size(6000).slot_bits(5).build().unwrap();
    let mut others = Vec::new();
    for round in 0..4000u64 {
        filter.add("often").unwrap();
        if round % 4 == 0 {
            filter.add(&round).unwrap();
            others.push(round);
        }
    }
    let often = filter.count("often");
    assert!(often >= 4000 && filter.len() == 5000);
    assert!(others.iter().all(|key| filter.contains(key)));
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert!(QuotientFilter::read_from(&file[..]).unwrap().0 == filter);
    filter.grow_past_fpr().unwrap();
    assert_eq!(filter.count("often"), often);
    for left in (0..4000).rev() {
        assert!(filter.remove("often"));
        assert_eq!(filter.len(), 1000 + left);
    }
    assert!(others.iter().all(|key| filter.contains(key)));
    assert!(others.iter().all(|key| filter.remove(key)) && filter.is_empty());
}

#[test]
fn batches_equal_single_operations() {
    let keys: Vec<u64> = (0..5000).map(|at| at * 7 % 4000).collect();
    let texts: Vec<String> = keys.iter().map(u64::to_string).collect();
    let build = || QuotientFilter::with_growth(300, 0.01, 5000).unwrap();
    let (mut single, mut batch, mut results) = (build(), build(), BatchResults::new());
    let new: Vec<bool> = keys.iter().map(|key| single.insert(key).unwrap()).collect();
    batch.insert_batch(&keys, &mut results).unwrap();
    assert!(single == batch && single.layout().slots() > 4000);
    assert!(new.iter().enumerate().all(|(at, new)| results.get(at) == *new));
    batch.contains_batch(&texts, &mut results);
    assert!(texts.iter().enumerate().all(|(at, key)| results.get(at) == single.contains(key)));
    batch.remove_batch(&keys[..100], &mut results);
    for key in &keys[..100] {
        single.remove(key);
    }
    assert!(single == batch);
    batch.clear();
    assert!(batch.is_empty() && batch.fingerprints().count() == 0 && batch.shrink().unwrap());
}

#[test]
fn full_filter_returns_an_error_and_keeps_its_keys() {
    let mut filter = QuotientFilter::with_fpr(1000, 0.01).unwrap();
    let mut rng = Rng::new(5);
    let mut members = Vec::new();
    let error = loop {
        let hash = rng.next_u64();
        match filter.add_mixed_hash(hash) {
            Ok(_) => members.push(hash),
            Err(error) => break error,
        }
    };
    assert!(error.is_full() && error.to_string().contains("maximum capacity"), "{error}");
    assert!(members.len() > 1020 && members.iter().all(|hash| filter.contains_mixed_hash(*hash)));
    // Growth that exceeds the target fpr is an error unless it is allowed.
    assert!(filter.stats().is_overfull || filter.expected_fpr(2000) > 0.01);
    assert!(filter.grow().unwrap_err().is_full());
    filter.grow_past_fpr().unwrap();
    members.iter().for_each(|hash| assert!(filter.remove_mixed_hash(*hash)));
    assert!(filter.is_empty());
    assert!(
        QuotientFilter::builder()
            .table_size(8)
            .slot_bits(1)
            .build()
            .unwrap()
            .grow_past_fpr()
            .unwrap_err()
            .is_full()
    );
    // A batch stops at the first key that does not fit.
    let hashes: Vec<u64> = (0..200).map(|at| u64::MAX - (at << 50)).collect();
    let (mut small, mut results) = (
        QuotientFilter::builder().table_size(60).slot_bits(8).build().unwrap(),
        BatchResults::new(),
    );
    assert!(small.insert_mixed_hashes(&hashes, &mut results).unwrap_err().is_full());
    assert_eq!((results.count_ones(), results.len()), (small.len(), 200));
    assert!(results.iter().all(|at| small.contains_mixed_hash(hashes[at])));
}

#[test]
fn union_takes_maximum_counts_and_merge_sums() {
    let mut ours = QuotientFilter::with_growth(100, 0.001, 1600).unwrap();
    // Equal numbers of fingerprints, twice the slots.
    let mut theirs = QuotientFilter::with_growth(100, 0.001, 1600).unwrap();
    theirs.grow().unwrap();
    for key in 0..90u64 {
        ours.add(&key).unwrap();
        for _ in 0..3 {
            theirs.add(&(key + 60)).unwrap();
        }
    }
    let mut both = ours.try_clone().unwrap();
    both.union(&theirs).unwrap();
    assert_eq!((both.count(&5u64), both.count(&70u64), both.count(&100u64)), (1, 3, 3));
    assert!(both.len() == 330 && both.layout().capacity() >= 330);
    ours.merge(&theirs).unwrap();
    assert_eq!((ours.count(&5u64), ours.count(&70u64), ours.count(&100u64)), (1, 4, 3));
    let other = QuotientFilter::builder().table_size(100).slot_bits(9).seed(8).build().unwrap();
    assert!(ours.union(&other).unwrap_err().is_incompatible());
}

// ---- Rates --------------------------------------------------------------------------------------

/// Returns hashes of another generator than the inserted ones.
fn non_members(seed: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(seed ^ (0x5eed << 40));
    std::iter::repeat_with(move || rng.next_u64())
}

#[test]
fn measured_rate_equals_prediction_at_any_fill() {
    const CELLS: f64 = 20.0;
    const TRIES: usize = 1_000_000;
    for (seed, rate) in [0.2, 0.01, 0.0074, 1e-3, 1e-4].into_iter().enumerate() {
        let planned = 60_000;
        let mut filter = QuotientFilter::with_fpr(planned, rate).unwrap();
        let (mut rng, mut keys) = (Rng::new(seed as u64), 0);
        // The last number exceeds the capacity.
        for part in [0.25, 0.5, 1.0, 1.02] {
            while keys < (planned as f64 * part) as u64 {
                filter.insert_mixed_hash(rng.next_u64()).unwrap();
                keys += 1;
            }
            let queries = non_members(seed as u64).take(TRIES);
            let found = queries.filter(|hash| filter.contains_mixed_hash(*hash)).count() as u64;
            for predicted in [filter.expected_fpr(keys), filter.stats().estimated_fpr] {
                let confidence = 1.0 - 0.001 / (2.0 * CELLS);
                let (low, high) = binomial_range(TRIES as u64, predicted, confidence);
                assert!((low..=high).contains(&found), "{rate} {part}: {found} of {low}..={high}");
            }
            assert!(part > 1.0 || filter.expected_fpr(keys) <= rate);
            assert!((filter.stats().estimated_len / keys as f64 - 1.0).abs() < 0.01);
        }
    }
}

#[test]
fn growing_filter_keeps_its_target_fpr() {
    const TRIES: u64 = 300_000;
    let (keys, max, rate) = (Keys::new(3), 40_000, 0.01);
    for first in [1, 100, 3000] {
        let mut filter = QuotientFilter::with_growth(first, rate, max).unwrap();
        let small = filter.size_bytes();
        assert!(filter.stats().capacity_left >= Some(max));
        for (at, key) in keys.members(max).enumerate() {
            filter.insert(&key).unwrap();
            if at.is_power_of_two() {
                assert!(keys.members(at as u64 + 1).all(|key| filter.contains(&key)));
                // Explained by the bits for later doublings and the slots at the end.
                assert!(filter.size_bytes() <= 12 * at as u64 + 2 * small, "{at}");
            }
        }
        assert!(filter.stats().estimated_fpr <= rate && !filter.stats().is_overfull);
        assert!(filter.grow().unwrap_err().is_full());
        let found = keys.non_members(TRIES).filter(|key| filter.contains(key)).count() as u64;
        let (low, high) = binomial_range(TRIES, filter.stats().estimated_fpr, 0.999);
        assert!((low..=high).contains(&found), "{found} of {low}..={high}");
    }
}

// ---- Corrupted files ------------------------------------------------------------------------------

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

fn file_of(filter: &QuotientFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").unwrap();
    file
}

/// Returns a filter with runs that continue in the next block, copies, and a run at the end.
fn small() -> QuotientFilter {
    let mut filter = QuotientFilter::builder().table_size(70).slot_bits(5).build().unwrap();
    let range = u128::from(filter.layout().fingerprints());
    for fingerprint in (0..30u128).map(|at| 50 * 32 + at * 11).chain([70 * 32 - 1; 3]) {
        filter.add_mixed_hash((fingerprint << 64).div_ceil(range) as u64).unwrap();
    }
    filter
}

/// Opens the bytes and calls every query. Returns whether opening succeeded.
fn open_and_query(bytes: &[u8], valid: &QuotientFilter) -> bool {
    let file = Aligned::new(bytes);
    let Ok(filter) = QuotientFilter::<Borrowed<'_>>::from_bytes(file.bytes()) else { return false };
    let hashes: Vec<u64> = (0..200).map(|at| at * (u64::MAX / 199)).collect();
    let mut results = BatchResults::new();
    filter.contains_mixed_hashes(&hashes, &mut results);
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(results.get(at), filter.contains_mixed_hash(*hash));
        let _ = filter.count_mixed_hash(*hash);
    }
    assert!(filter.fingerprints().count() <= bytes.len() * 8);
    let _ =
        (filter.stats().capacity_left, filter.stats().estimated_len, filter.expected_fpr(1 << 40));
    let mut other = valid.try_clone().unwrap();
    if other.union(&filter).is_ok() {
        exercise(other);
    }
    if let Ok(copy) = filter.try_clone() {
        exercise(copy);
    }
    true
}

/// Checks that an opened filter is consistent and can be modified.
fn exercise(mut filter: QuotientFilter) {
    let list: Vec<u64> = filter.fingerprints().collect();
    assert!(list.is_sorted() && list.len() as u64 == filter.len());
    let range = u128::from(filter.layout().fingerprints());
    let hash = |fingerprint: u64| (u128::from(fingerprint) << 64).div_ceil(range) as u64;
    for fingerprint in &list {
        assert!(filter.contains_mixed_hash(hash(*fingerprint)));
    }
    for fingerprint in list {
        assert!(filter.remove_mixed_hash(hash(fingerprint)));
    }
    assert!(filter.is_empty() && filter.distinct() == 0);
}

#[test]
fn every_truncation_and_bit_flip_is_an_error() {
    let (filter, file) = (small(), file_of(&small()));
    assert!(open_and_query(&file, &filter));
    for short in
        truncations(&file).chain(extensions(&file).collect::<Vec<_>>().iter().map(|long| &long[..]))
    {
        assert!(QuotientFilter::read_from(short).is_err() && !open_and_query(short, &filter));
    }
    for (bit, bytes) in bit_flips(&file) {
        assert!(QuotientFilter::read_from(&bytes[..]).is_err(), "bit {bit}");
        // Opening does not read padding and data.
        assert!(bit / 8 >= 258 || !open_and_query(&bytes, &filter));
        if bit / 8 >= 4096 {
            assert!(open_and_query(&bytes, &filter));
        }
    }
}

#[test]
fn bit_flips_with_valid_checksums_are_errors_or_valid() {
    let (filter, file) = (small(), file_of(&small()));
    let places = (0..256 * 8).chain(4096 * 8..file.len() * 8);
    let mut accepted = 0;
    for bit in places {
        let mut bytes = file.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        update_checksums(&mut bytes);
        let _ = open_and_query(&bytes, &filter);
        if let Ok((read, metadata)) = QuotientFilter::read_from(&bytes[..]) {
            accepted += 1;
            // Each filter has exactly one file.
            let mut again = Vec::new();
            read.write_to(&mut again, &metadata).unwrap();
            assert!(again == bytes, "bit {bit}");
            exercise(read);
        }
    }
    // Seed, capacity, and remainders that stay in order.
    assert!((64..800).contains(&accepted), "{accepted}");
}

#[test]
fn random_data_with_valid_checksums_terminates() {
    let mut rng = Rng::new(9);
    for round in 0..400 {
        let shape = [(200, 3), (64, 1), (1000, 12), (3, 40)][round % 4];
        let filter =
            QuotientFilter::builder().table_size(shape.0).slot_bits(shape.1).build().unwrap();
        let mut file = file_of(&filter);
        let far = rng.one_in(3);
        let dense = 1 + rng.below(12);
        for (at, byte) in file.iter_mut().enumerate().skip(4096) {
            let head = (at - 4096).is_multiple_of(17 + 8 * shape.1 as usize);
            *byte = if far && head {
                255
            } else if rng.one_in(dense) {
                rng.next_u64() as u8
            } else {
                0
            };
        }
        file[88..96].copy_from_slice(&7u64.to_le_bytes());
        file[104..112].copy_from_slice(&5u64.to_le_bytes());
        update_checksums(&mut file);
        assert!(QuotientFilter::read_from(&file[..]).is_err() && open_and_query(&file, &filter));
    }
}

#[test]
fn hostile_numbers_are_errors() {
    let file = file_of(&small());
    let max = u64::MAX.to_le_bytes();
    for (at, number) in [(38, 1u64), (40, 8), (64, 0), (64, 69), (64, 1 << 51), (64, 1 << 50)]
        .into_iter()
        .chain([(96, 0), (96, 57), (96, 6), (96, 1 << 32 | 5), (104, 34), (104, 0), (112, 2)])
        .chain([(88, 0), (88, 129), (88, 34), (88, 1 << 63), (120, 1)])
    {
        let mut bytes = file.clone();
        let length = if at < 48 { 2 } else { 8 };
        bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
        update_checksums(&mut bytes);
        assert!(QuotientFilter::read_from(&bytes[..]).is_err(), "{number} at {at}");
        bytes[at..at + length].copy_from_slice(&max[..length]);
        update_checksums(&mut bytes);
        assert!(QuotientFilter::read_from(&bytes[..]).is_err(), "maximum at {at}");
    }
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Uses sparse memory: filters around 2^32 slots of which only a few pages are allocated.
#[test]
fn large_filters_work_at_both_ends() {
    for (bytes, width) in [(1u64 << 29, 7), (1 << 32, 7), (1 << 32, 1), (1 << 32, 31)] {
        let block = 17 + 8 * u64::from(width);
        for blocks in [bytes / block - 6, bytes / block + 6] {
            let slots = (blocks - 5) * 64;
            let mut filter =
                QuotientFilter::builder().table_size(slots).slot_bits(width).build().unwrap();
            assert_eq!(filter.size_bytes() < bytes, blocks * block < bytes);
            let hashes = [0, 1 << 34, u64::MAX / 2, u64::MAX - (1 << 40), u64::MAX];
            for hash in hashes {
                assert!(filter.insert_mixed_hash(hash).unwrap());
                filter.add_mixed_hash(hash).unwrap();
                assert_eq!(filter.count_mixed_hash(hash), 2);
                assert!(!filter.contains_mixed_hash(hash ^ 1 << 36));
            }
            assert!(hashes.iter().all(|hash| filter.contains_mixed_hash(*hash)));
            assert!(hashes.iter().all(|hash| filter.remove_mixed_hash(*hash)));
            assert_eq!((filter.len(), filter.distinct()), (5, 5));
            let usage = filter.memory_usage();
            assert!(usage >= filter.size_bytes() && usage < filter.size_bytes() + 8192);
        }
    }
    for keys in [1, 1 << 32, 10_000_000_000] {
        let shape = QuotientLayout::for_fpr(keys, 0.01).unwrap();
        assert!(shape.capacity() >= keys && shape.fpr(keys) <= 0.01);
    }
    assert!(
        QuotientFilter::builder().table_size(1 << 48).slot_bits(15).build().unwrap_err().is_alloc()
    );
}

// ---- File ---------------------------------------------------------------------------------------

/// Returns the data of docs/reference/format-quotient.md by the simplest algorithm.
fn naive_data(slots: u64, width: u64, list: &[u64]) -> Vec<u8> {
    let blocks = (slots + slots.min(320)).div_ceil(64);
    let block_bytes = 17 + 8 * width;
    let mut data = vec![0u8; ((blocks * block_bytes + 8).div_ceil(64) * 64) as usize];
    let mut set = |bit: u64| data[(bit / 8) as usize] |= 1 << (bit % 8);
    let start = |slot: u64| slot / 64 * block_bytes * 8;
    let mut next = 0;
    // The end of the runs of all quotients before each block.
    let mut behind = vec![0; blocks as usize];
    for (at, fingerprint) in list.iter().enumerate() {
        let (quotient, remainder) =
            (fingerprint / 2u64.pow(width as u32), fingerprint % 2u64.pow(width as u32));
        let slot = quotient.max(next);
        set(start(quotient) + 8 + quotient % 64);
        if list.get(at + 1).is_none_or(|next| next / 2u64.pow(width as u32) != quotient) {
            set(start(slot) + 72 + slot % 64);
        }
        let bits = (0..width).filter(|bit| remainder >> bit & 1 == 1);
        bits.for_each(|bit| set(start(slot) + 136 + slot % 64 * width + bit));
        next = slot + 1;
        behind[(quotient / 64 + 1) as usize..].fill(next);
    }
    for (block, behind) in behind.into_iter().enumerate() {
        let offset = behind.saturating_sub(block as u64 * 64).min(255);
        data[block * block_bytes as usize] = offset as u8;
    }
    data
}

#[test]
fn reference_implementation_writes_the_same_bytes() {
    let mut rng = Rng::new(11);
    for (slots, width) in [(1, 9), (64, 4), (65, 13), (700, 7), (3000, 56 - 12), (3000, 1)] {
        let mut filter =
            QuotientFilter::builder().table_size(slots).slot_bits(width).build().unwrap();
        let few = rng.next_u64();
        let mut list = Vec::new();
        for _ in 0..slots {
            let hash = if rng.one_in(3) { few } else { rng.next_u64() };
            if filter.add_mixed_hash(hash).is_ok() {
                list.push(((u128::from(hash) * (u128::from(slots) << width)) >> 64) as u64);
            }
        }
        list.sort_unstable();
        let file = file_of(&filter);
        assert!(file[4096..] == naive_data(slots, width.into(), &list), "{slots} {width}");
        assert_eq!(file[64..72], slots.to_le_bytes());
        assert_eq!(file[88..96], (list.len() as u64).to_le_bytes());
        assert_eq!(file[96..104], u64::from(width).to_le_bytes());
        list.dedup();
        assert_eq!(file[104..112], (list.len() as u64).to_le_bytes());
    }
}

/// The example of docs/reference/format-quotient.md.
#[test]
fn documented_example_is_correct() {
    let page = include_str!("../../../../docs/reference/format-quotient.md");
    let section = page.split("## Layout 5").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("000010") && line.len() > 58);
    let hex = rows.flat_map(|row| row[10..58].split_whitespace());
    let data: Vec<u8> = hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let mut filter = QuotientFilter::builder().table_size(20).slot_bits(4).build().unwrap();
    for key in ["one", "two", "three", "three"] {
        filter.add(key).unwrap();
    }
    for key in ["one", "two", "three"] {
        let fingerprint = filter.fingerprint_of(HashSpec::default().hash(key.as_bytes()));
        let row =
            format!("| `{key}` | {fingerprint} | {} | {} |", fingerprint >> 4, fingerprint % 16);
        assert!(section.contains(&row), "{row}");
    }
    assert_eq!(file_of(&filter)[4096..], data);
}

/// The rate does not depend on chance: one key above the rate is one too many, however small the filter.
#[test]
fn filters_above_their_rate_are_overfull() {
    let mut overfull = 0;
    for (keys, rate) in [(10, 0.01), (100, 0.01), (100, 0.005), (1000, 1e-4), (1000, 0.1)] {
        let mut filter = QuotientFilter::with_fpr(keys, rate).unwrap();
        let limit = filter.layout().capacity_at_fpr(rate);
        let mut hash = 0u64;
        let mut insert = |filter: &mut QuotientFilter| {
            hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
            filter.insert_mixed_hash(hash)
        };
        while filter.distinct() < limit {
            assert!(!filter.stats().is_overfull, "{keys} {rate}: {} keys", filter.distinct());
            if insert(&mut filter).is_err() {
                break;
            }
        }
        // No slots are left, or the filter says that its rate is too high.
        while filter.distinct() <= limit && insert(&mut filter).is_ok() {}
        assert_eq!(filter.stats().is_overfull, filter.distinct() > limit, "{keys} {rate}");
        overfull += u32::from(filter.stats().is_overfull);
    }
    assert_eq!(overfull, 2);
    let mut filter = VectorQuotientFilter::with_fpr(10, 0.01).unwrap();
    while filter.add(&filter.len()).is_ok() {}
    let limit = filter.layout().capacity_at_fpr(0.01);
    assert_eq!((filter.len(), filter.stats().is_overfull), (24, 24 > limit));
}
