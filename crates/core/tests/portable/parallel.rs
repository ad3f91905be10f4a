//! Several threads fill a filter as a single thread does: the same bits and the same number of new
//! keys.

use std::num::NonZeroUsize;

use petal::{BatchResults, BlockedLayout, BloomFilter, HashSpec, Membership as _, Persist as _};
use petal_testkit::rng::Rng;

use crate::naive::{HeaderFields, Naive};

/// Minimum number of keys per thread, as in the library.
const WORTH: usize = 1 << 16;
const THREADS: [usize; 6] = [1, 2, 3, 5, 8, 1000];

fn threads(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// Returns an empty filter of any layout, including layouts that no constructor returns.
fn empty(shape: BlockedLayout) -> BloomFilter {
    let (lanes, probes) = (shape.lanes().into(), shape.probes().into());
    let naive = Naive::blocked(shape.blocks(), lanes, probes);
    BloomFilter::read_from(&naive.to_file(&HeaderFields::none())[..]).unwrap().0
}

/// Returns hashes, some of them repeated at short and long distances.
fn hashes(len: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let mut hashes: Vec<u64> = Vec::with_capacity(len);
    for at in 0..len {
        let fresh = rng.next_u64();
        let old = hashes.get(fresh as usize % (at + 1)).copied();
        hashes.push(old.filter(|_| fresh >> 62 == 0).unwrap_or(fresh));
    }
    hashes
}

fn same(many: &BloomFilter, one: &BloomFilter, context: &str) {
    assert!(many == one, "other bits: {context}");
    assert_eq!(many.inserted(), one.inserted(), "{context}");
}

/// Compares both parallel insertions with a batch on one thread, in a filter with earlier keys.
fn as_one_thread(shape: BlockedLayout, keys: &[u64], before: &[u64]) {
    let mut new = BatchResults::new();
    let (mut start, mut by_hash, mut by_key) = (empty(shape), empty(shape), empty(shape));
    for filter in [&mut start, &mut by_hash, &mut by_key] {
        filter.insert_mixed_hashes(before, &mut new);
    }
    by_hash.insert_mixed_hashes(keys, &mut new);
    by_key.insert_batch(keys, &mut new);
    let texts: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    for number in THREADS {
        let context = format!("{shape:?}, {} keys, {number} threads", keys.len());
        let mut many = start.try_clone().unwrap();
        many.insert_mixed_hashes_parallel(keys, threads(number)).unwrap();
        same(&many, &by_hash, &context);
        let mut many = start.try_clone().unwrap();
        many.insert_parallel(keys, threads(number)).unwrap();
        same(&many, &by_key, &context);
        // Keys as bytes, which are sorted for filters of any size.
        let mut many = start.try_clone().unwrap();
        many.insert_parallel(&texts, threads(number)).unwrap();
        same(&many, &by_key, &context);
    }
}

#[test]
fn every_layout_equals_a_single_thread() {
    for (round, (blocks, lanes, probes)) in [
        (1, 8, 1),
        (2, 8, 8),
        (5, 16, 16),
        (1000, 8, 6),
        (9_999, 16, 10),
        // Just below and above the size from which hashes are sorted: 4 MiB.
        (65_535, 8, 8),
        (65_536, 8, 8),
        (140_001, 8, 6),
        (70_001, 16, 12),
    ]
    .into_iter()
    .enumerate()
    {
        let shape = BlockedLayout::new(blocks, lanes, probes).unwrap();
        as_one_thread(shape, &hashes(3 * WORTH + 77, round as u64), &hashes(500, 99));
    }
}

#[test]
fn any_number_of_keys_equals_a_single_thread() {
    let shape = BlockedLayout::new(140_001, 8, 7).unwrap();
    for len in [0, 1, 63, WORTH, 2 * WORTH - 1, 2 * WORTH, 2 * WORTH + 1, 8 * WORTH + 5] {
        as_one_thread(shape, &hashes(len, len as u64), &[]);
    }
}

/// Hashes that are all in one run, or in few.
#[test]
fn clustered_hashes_equal_a_single_thread() {
    let shape = BlockedLayout::new(200_000, 8, 6).unwrap();
    let good = hashes(4 * WORTH, 1);
    let crowds: [fn(u64) -> u64; 4] =
        [|hash| hash >> 40, |hash| !(hash >> 40), |_| 7, |hash| hash & (1 << 63 | 0xfff)];
    for crowd in crowds {
        let crowded: Vec<u64> = good.iter().copied().map(crowd).collect();
        as_one_thread(shape, &crowded, &[]);
    }
}

#[test]
fn several_rounds_equal_a_single_thread() {
    // More than two threads sort in a round.
    let keys = hashes((2 << 22) + 12_345, 3);
    let shape = BlockedLayout::new(200_000, 8, 6).unwrap();
    let (mut one, mut two) = (empty(shape), empty(shape));
    one.insert_mixed_hashes(&keys, &mut BatchResults::new());
    two.insert_mixed_hashes_parallel(&keys, threads(2)).unwrap();
    same(&two, &one, "two rounds");
}

#[test]
fn keyed_hashes_of_strings_equal_a_single_thread() {
    let hash = HashSpec::keyed(*b"sixteen secrets!");
    let keys: Vec<String> = (0..3 * WORTH).map(|key| format!("key {}", key / 2)).collect();
    let filter = || BloomFilter::builder().capacity(100_000).fpr(0.001).hash(hash).build().unwrap();
    let mut one = filter();
    one.insert_batch(&keys, &mut BatchResults::new());
    for number in THREADS {
        let mut many = filter();
        many.insert_parallel(&keys, threads(number)).unwrap();
        same(&many, &one, &format!("{number} threads"));
    }
}
