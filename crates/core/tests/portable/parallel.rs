//! Several threads fill a filter as a single thread does: the same bits and the same number of new
//! keys.

use std::num::NonZeroUsize;

use petal::embed::BlockedLayout;
use petal::{BatchResults, BloomFilter, HashSpec, Membership as _};
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

/// Returns keys, some of them repeated at short and long distances.
fn keys(len: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let mut keys: Vec<u64> = Vec::with_capacity(len);
    for at in 0..len {
        let fresh = rng.next_u64();
        let old = keys.get(fresh as usize % (at + 1)).copied();
        keys.push(old.filter(|_| fresh >> 62 == 0).unwrap_or(fresh));
    }
    keys
}

fn same(many: &BloomFilter, one: &BloomFilter, context: &str) {
    assert!(many == one, "other bits: {context}");
    assert_eq!(many.inserted(), one.inserted(), "{context}");
}

/// Compares a fill on several threads with a batch on one thread, in a filter with earlier keys.
fn as_one_thread(shape: BlockedLayout, keys: &[u64], before: &[u64]) {
    let mut new = BatchResults::new();
    let mut start = empty(shape);
    start.insert_mixed_hashes(before, &mut new);
    let mut one = start.try_clone().unwrap();
    one.insert_batch(keys, &mut new);
    let texts: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    for number in THREADS {
        let context = format!("{shape:?}, {} keys, {number} threads", keys.len());
        let mut many = start.try_clone().unwrap();
        many.put_batch_on(keys, threads(number)).unwrap();
        same(&many, &one, &context);
        // Keys as bytes, which are sorted for filters of any size.
        let mut many = start.try_clone().unwrap();
        many.put_batch_on(&texts, threads(number)).unwrap();
        same(&many, &one, &context);
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
        // Just below and above the size from which integers are sorted: 4 MiB.
        (65_535, 8, 8),
        (65_536, 8, 8),
        (140_001, 8, 6),
        (70_001, 16, 12),
    ]
    .into_iter()
    .enumerate()
    {
        let shape = BlockedLayout::new(blocks, lanes, probes).unwrap();
        as_one_thread(shape, &keys(3 * WORTH + 77, round as u64), &keys(500, 99));
    }
}

#[test]
fn any_number_of_keys_equals_a_single_thread() {
    let shape = BlockedLayout::new(140_001, 8, 7).unwrap();
    for len in [0, 1, 63, WORTH, 2 * WORTH - 1, 2 * WORTH, 2 * WORTH + 1, 8 * WORTH + 5] {
        as_one_thread(shape, &keys(len, len as u64), &[]);
    }
}

#[test]
fn several_rounds_equal_a_single_thread() {
    // More than two threads sort in a round.
    let keys = keys((2 << 22) + 12_345, 3);
    let shape = BlockedLayout::new(200_000, 8, 6).unwrap();
    let (mut one, mut two) = (empty(shape), empty(shape));
    one.insert_batch(&keys, &mut BatchResults::new());
    two.put_batch_on(&keys, threads(2)).unwrap();
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
        many.put_batch_on(&keys, threads(number)).unwrap();
        same(&many, &one, &format!("{number} threads"));
    }
}
