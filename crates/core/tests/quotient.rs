//! The quotient filter: against its model, its rates, hostile bytes, large sizes, its file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod models {
    pub(crate) mod quotient;
}
mod naive;

use petal::{Answers, HashSpec, Lent, QuotientFilter, QuotientShape};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::keys::Keys;
use petal_testkit::rng::Rng;

use models::quotient::drive;
use naive::mend;

// ---- Model --------------------------------------------------------------------------------------

#[test]
fn any_series_of_operations_equals_the_model() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let length = rng.below(4000);
        drive(&rng.bytes(length));
    }
}

/// One key thousands of times: its run is longer than any offset that a byte holds.
#[test]
fn many_copies_of_one_key() {
    let mut filter = QuotientFilter::with_slots(6000, 5).unwrap();
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
    filter.grow_past_rate().unwrap();
    assert_eq!(filter.count("often"), often);
    for left in (0..4000).rev() {
        assert!(filter.remove("often"));
        assert_eq!(filter.len(), 1000 + left);
    }
    assert!(others.iter().all(|key| filter.contains(key)));
    assert!(others.iter().all(|key| filter.remove(key)) && filter.is_empty());
}

#[test]
fn batches_of_keys_are_as_one_by_one() {
    let keys: Vec<u64> = (0..5000).map(|at| at * 7 % 4000).collect();
    let texts: Vec<String> = keys.iter().map(u64::to_string).collect();
    let build = || QuotientFilter::with_growth(300, 0.01, 5000).unwrap();
    let (mut single, mut batch, mut answers) = (build(), build(), Answers::new());
    let new: Vec<bool> = keys.iter().map(|key| single.insert(key).unwrap()).collect();
    batch.insert_batch(&keys, &mut answers).unwrap();
    assert!(single == batch && single.shape().slots() > 4000);
    assert!(new.iter().enumerate().all(|(at, new)| answers.get(at) == *new));
    batch.contains_batch(&texts, &mut answers);
    assert!(texts.iter().enumerate().all(|(at, key)| answers.get(at) == single.contains(key)));
    batch.remove_batch(&keys[..100], &mut answers);
    for key in &keys[..100] {
        single.remove(key);
    }
    assert!(single == batch);
    batch.clear();
    assert!(batch.is_empty() && batch.fingerprints().count() == 0 && batch.shrink().unwrap());
}

#[test]
fn what_is_full_says_so_and_loses_nothing() {
    let mut filter = QuotientFilter::with_rate(1000, 0.01).unwrap();
    let mut rng = Rng::new(5);
    let mut members = Vec::new();
    let error = loop {
        let hash = rng.next_u64();
        match filter.add_mixed_hash(hash) {
            Ok(_) => members.push(hash),
            Err(error) => break error,
        }
    };
    assert!(error.is_full() && error.to_string().contains("max_keys"), "{error}");
    assert!(members.len() > 1020 && members.iter().all(|hash| filter.contains_mixed_hash(*hash)));
    // Growing would break the promise, and is refused unless that is meant.
    assert!(filter.is_overfull() || filter.expected_rate(2000) > 0.01);
    assert!(filter.grow().unwrap_err().is_full());
    filter.grow_past_rate().unwrap();
    members.iter().for_each(|hash| assert!(filter.remove_mixed_hash(*hash)));
    assert!(filter.is_empty());
    assert!(QuotientFilter::with_slots(8, 1).unwrap().grow_past_rate().unwrap_err().is_full());
    // A batch stops at the key that was refused.
    let hashes: Vec<u64> = (0..200).map(|at| u64::MAX - (at << 50)).collect();
    let (mut small, mut answers) = (QuotientFilter::with_slots(60, 8).unwrap(), Answers::new());
    assert!(small.insert_mixed_hashes(&hashes, &mut answers).unwrap_err().is_full());
    assert_eq!((answers.count_ones(), answers.len()), (small.len(), 200));
    assert!(answers.iter().all(|at| small.contains_mixed_hash(hashes[at])));
}

#[test]
fn union_takes_the_most_and_merge_the_sum() {
    let mut ours = QuotientFilter::with_growth(100, 0.001, 1600).unwrap();
    // As many fingerprints, in twice the slots.
    let mut theirs = QuotientFilter::with_growth(100, 0.001, 1600).unwrap();
    theirs.grow().unwrap();
    for key in 0..90u64 {
        ours.add(&key).unwrap();
        for _ in 0..3 {
            theirs.add(&(key + 60)).unwrap();
        }
    }
    let mut both = ours.to_owned_filter().unwrap();
    both.union(&theirs).unwrap();
    assert_eq!((both.count(&5u64), both.count(&70u64), both.count(&100u64)), (1, 3, 3));
    assert!(both.len() == 330 && both.shape().capacity() >= 330);
    ours.merge(&theirs).unwrap();
    assert_eq!((ours.count(&5u64), ours.count(&70u64), ours.count(&100u64)), (1, 4, 3));
    let other = QuotientFilter::builder().slots(100).remainder_bits(9).seed(8).build().unwrap();
    assert!(ours.union(&other).unwrap_err().is_incompatible());
}

// ---- Rates --------------------------------------------------------------------------------------

/// Hashes of another generator than any that is put in.
fn strangers(seed: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(seed ^ (0x5eed << 40));
    std::iter::repeat_with(move || rng.next_u64())
}

#[test]
fn the_rate_is_what_is_predicted_at_any_fill() {
    const CELLS: f64 = 20.0;
    const TRIES: usize = 1_000_000;
    for (seed, rate) in [0.2, 0.01, 0.0074, 1e-3, 1e-4].into_iter().enumerate() {
        let planned = 60_000;
        let mut filter = QuotientFilter::with_rate(planned, rate).unwrap();
        let (mut rng, mut keys) = (Rng::new(seed as u64), 0);
        // The last one is more than was planned.
        for part in [0.25, 0.5, 1.0, 1.02] {
            while keys < (planned as f64 * part) as u64 {
                filter.insert_mixed_hash(rng.next_u64()).unwrap();
                keys += 1;
            }
            let queries = strangers(seed as u64).take(TRIES);
            let found = queries.filter(|hash| filter.contains_mixed_hash(*hash)).count() as u64;
            for predicted in [filter.expected_rate(keys), filter.estimated_rate()] {
                let confidence = 1.0 - 0.001 / (2.0 * CELLS);
                let (low, high) = binomial_range(TRIES as u64, predicted, confidence);
                assert!((low..=high).contains(&found), "{rate} {part}: {found} of {low}..={high}");
            }
            assert!(part > 1.0 || filter.expected_rate(keys) <= rate);
            assert!((filter.estimated_len() / keys as f64 - 1.0).abs() < 0.01);
        }
    }
}

#[test]
fn a_filter_that_grows_keeps_its_rate() {
    const TRIES: u64 = 300_000;
    let (keys, most, rate) = (Keys::new(3), 40_000, 0.01);
    for first in [1, 100, 3000] {
        let mut filter = QuotientFilter::with_growth(first, rate, most).unwrap();
        let small = filter.size_bytes();
        assert!(filter.capacity_left() >= Some(most));
        for (at, key) in keys.members(most).enumerate() {
            filter.insert(&key).unwrap();
            if at.is_power_of_two() {
                assert!(keys.members(at as u64 + 1).all(|key| filter.contains(&key)));
                // No more than the bits of the spare doublings, and slots behind, explain.
                assert!(filter.size_bytes() <= 12 * at as u64 + 2 * small, "{at}");
            }
        }
        assert!(filter.estimated_rate() <= rate && !filter.is_overfull());
        assert!(filter.grow().unwrap_err().is_full());
        let found = keys.strangers(TRIES).filter(|key| filter.contains(key)).count() as u64;
        let (low, high) = binomial_range(TRIES, filter.estimated_rate(), 0.999);
        assert!((low..=high).contains(&found), "{found} of {low}..={high}");
    }
}

// ---- Hostile bytes ------------------------------------------------------------------------------

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

fn file_of(filter: &QuotientFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").unwrap();
    file
}

/// Runs that are pushed into the next block, copies, and a run at the very end.
fn small() -> QuotientFilter {
    let mut filter = QuotientFilter::with_slots(70, 5).unwrap();
    let range = u128::from(filter.shape().fingerprints());
    for fingerprint in (0..30u128).map(|at| 50 * 32 + at * 11).chain([70 * 32 - 1; 3]) {
        filter.add_mixed_hash((fingerprint << 64).div_ceil(range) as u64).unwrap();
    }
    filter
}

/// Asks everything there is to ask; whether the bytes opened.
fn ask(bytes: &[u8], sound: &QuotientFilter) -> bool {
    let file = Aligned::new(bytes);
    let Ok(filter) = QuotientFilter::<Lent<'_>>::from_bytes(file.bytes()) else { return false };
    let hashes: Vec<u64> = (0..200).map(|at| at * (u64::MAX / 199)).collect();
    let mut answers = Answers::new();
    filter.contains_mixed_hashes(&hashes, &mut answers);
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(answers.get(at), filter.contains_mixed_hash(*hash));
        let _ = filter.count_mixed_hash(*hash);
    }
    assert!(filter.fingerprints().count() <= bytes.len() * 8);
    let _ = (filter.capacity_left(), filter.estimated_len(), filter.expected_rate(1 << 40));
    let mut other = sound.to_owned_filter().unwrap();
    if other.union(&filter).is_ok() {
        exercise(other);
    }
    if let Ok(copy) = filter.to_owned_filter() {
        exercise(copy);
    }
    true
}

/// A filter that was accepted holds what it says and can be changed.
fn exercise(mut filter: QuotientFilter) {
    let list: Vec<u64> = filter.fingerprints().collect();
    assert!(list.is_sorted() && list.len() as u64 == filter.len());
    let range = u128::from(filter.shape().fingerprints());
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
fn every_truncation_and_flip_is_refused() {
    let (filter, file) = (small(), file_of(&small()));
    assert!(ask(&file, &filter));
    for short in
        truncations(&file).chain(extensions(&file).collect::<Vec<_>>().iter().map(|long| &long[..]))
    {
        assert!(QuotientFilter::read_from(short).is_err() && !ask(short, &filter));
    }
    for (bit, bytes) in bit_flips(&file) {
        assert!(QuotientFilter::read_from(&bytes[..]).is_err(), "bit {bit}");
        // Padding and data are not looked at.
        assert!(bit / 8 >= 258 || !ask(&bytes, &filter));
        if bit / 8 >= 4096 {
            assert!(ask(&bytes, &filter));
        }
    }
}

#[test]
fn every_flip_with_right_checksums_is_refused_or_a_filter() {
    let (filter, file) = (small(), file_of(&small()));
    let places = (0..256 * 8).chain(4096 * 8..file.len() * 8);
    let mut accepted = 0;
    for bit in places {
        let mut bytes = file.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        mend(&mut bytes);
        let _ = ask(&bytes, &filter);
        if let Ok((read, metadata)) = QuotientFilter::read_from(&bytes[..]) {
            accepted += 1;
            // There is one file for one filter.
            let mut again = Vec::new();
            read.write_to(&mut again, &metadata).unwrap();
            assert!(again == bytes, "bit {bit}");
            exercise(read);
        }
    }
    // Seed, plan, and remainders that stay in order.
    assert!((64..800).contains(&accepted), "{accepted}");
}

#[test]
fn noise_with_right_checksums_ends() {
    let mut rng = Rng::new(9);
    for round in 0..400 {
        let shape = [(200, 3), (64, 1), (1000, 12), (3, 40)][round % 4];
        let filter = QuotientFilter::with_slots(shape.0, shape.1).unwrap();
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
        mend(&mut file);
        assert!(QuotientFilter::read_from(&file[..]).is_err() && ask(&file, &filter));
    }
}

#[test]
fn hostile_numbers_are_refused() {
    let file = file_of(&small());
    let most = u64::MAX.to_le_bytes();
    for (at, number) in [(38, 1u64), (40, 8), (64, 0), (64, 69), (64, 1 << 51), (64, 1 << 50)]
        .into_iter()
        .chain([(96, 0), (96, 57), (96, 6), (96, 1 << 32 | 5), (104, 34), (104, 0), (112, 2)])
        .chain([(88, 0), (88, 129), (88, 34), (88, 1 << 63), (120, 1)])
    {
        let mut bytes = file.clone();
        let length = if at < 48 { 2 } else { 8 };
        bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
        mend(&mut bytes);
        assert!(QuotientFilter::read_from(&bytes[..]).is_err(), "{number} at {at}");
        bytes[at..at + length].copy_from_slice(&most[..length]);
        mend(&mut bytes);
        assert!(QuotientFilter::read_from(&bytes[..]).is_err(), "most at {at}");
    }
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Memory that nobody has touched is not there: filters at the borders of 32 bits are empty but
/// for a few pages.
#[test]
fn both_ends_of_large_filters() {
    for (bytes, width) in [(1u64 << 29, 7), (1 << 32, 7), (1 << 32, 1), (1 << 32, 31)] {
        let block = 17 + 8 * u64::from(width);
        for blocks in [bytes / block - 6, bytes / block + 6] {
            let slots = (blocks - 5) * 64;
            let mut filter = QuotientFilter::with_slots(slots, width).unwrap();
            assert_eq!(filter.size_bytes() < bytes, blocks * block < bytes);
            let hashes = [0, 1 << 34, u64::MAX / 2, u64::MAX - (1 << 40), u64::MAX];
            for hash in hashes {
                assert!(
                    filter.add_mixed_hash(hash).unwrap() && !filter.add_mixed_hash(hash).unwrap()
                );
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
        let shape = QuotientShape::for_rate(keys, 0.01).unwrap();
        assert!(shape.capacity() >= keys && shape.rate(keys) <= 0.01);
    }
    assert!(QuotientFilter::with_slots(1 << 48, 15).unwrap_err().is_alloc());
}

// ---- File ---------------------------------------------------------------------------------------

/// The data of docs/format.md, the slow and obvious way.
fn naive_data(slots: u64, width: u64, list: &[u64]) -> Vec<u8> {
    let blocks = (slots + slots.min(320)).div_ceil(64);
    let block_bytes = 17 + 8 * width;
    let mut data = vec![0u8; ((blocks * block_bytes + 8).div_ceil(64) * 64) as usize];
    let mut set = |bit: u64| data[(bit / 8) as usize] |= 1 << (bit % 8);
    let start = |slot: u64| slot / 64 * block_bytes * 8;
    let mut next = 0;
    // Where the runs of all quotients below each block's first end.
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
fn a_second_implementation_writes_the_same_bytes() {
    let mut rng = Rng::new(11);
    for (slots, width) in [(1, 9), (64, 4), (65, 13), (700, 7), (3000, 56 - 12), (3000, 1)] {
        let mut filter = QuotientFilter::with_slots(slots, width).unwrap();
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

/// The example of docs/format.md.
#[test]
fn the_example_in_the_docs() {
    let page = include_str!("../../../docs/format.md");
    let section = page.split("### Layout 5").nth(1).unwrap().split("### Layout 6").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("000010") && line.len() > 58);
    let hex = rows.flat_map(|row| row[10..58].split_whitespace());
    let data: Vec<u8> = hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let mut filter = QuotientFilter::with_slots(20, 4).unwrap();
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
