//! A filter filled by several threads is the one that a single thread fills: the same bits, the
//! same count of new keys.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod naive;

use std::num::NonZeroUsize;

use naive::{Facts, Naive};
use petal::{Answers, BloomFilter, HashSpec, Shape};
use petal_testkit::rng::Rng;

/// Fewer keys than this for each thread are not worth the thread; as in the library.
const WORTH: usize = 1 << 16;
const THREADS: [usize; 6] = [1, 2, 3, 5, 8, 1000];

fn threads(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// An empty filter of any shape, also one that no constructor gives.
fn empty(shape: Shape) -> BloomFilter {
    let (lanes, probes) = (shape.lanes().into(), shape.probes().into());
    let naive = Naive::blocked(shape.blocks(), lanes, probes);
    BloomFilter::read_from(&naive.to_file(&Facts::none())[..]).unwrap().0
}

/// Hashes of which some come up again, near and far.
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

fn same(many: &BloomFilter, one: &BloomFilter, told: &str) {
    assert!(many == one, "other bits: {told}");
    assert_eq!(many.inserted(), one.inserted(), "{told}");
}

/// Both ways to insert, of all threads, against a batch on one; behind what is there already.
fn as_one_thread(shape: Shape, keys: &[u64], before: &[u64]) {
    let mut new = Answers::new();
    let (mut start, mut by_hash, mut by_key) = (empty(shape), empty(shape), empty(shape));
    for filter in [&mut start, &mut by_hash, &mut by_key] {
        filter.insert_mixed_hashes(before, &mut new);
    }
    by_hash.insert_mixed_hashes(keys, &mut new);
    by_key.insert_batch(keys, &mut new);
    let texts: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    for number in THREADS {
        let told = format!("{shape:?}, {} keys, {number} threads", keys.len());
        let mut many = start.to_owned_filter().unwrap();
        many.insert_mixed_hashes_parallel(keys, threads(number)).unwrap();
        same(&many, &by_hash, &told);
        let mut many = start.to_owned_filter().unwrap();
        many.insert_parallel(keys, threads(number)).unwrap();
        same(&many, &by_key, &told);
        // Bytes, not words: sorted into filters of any size.
        let mut many = start.to_owned_filter().unwrap();
        many.insert_parallel(&texts, threads(number)).unwrap();
        same(&many, &by_key, &told);
    }
}

#[test]
fn any_shape_is_filled_as_by_one_thread() {
    for (round, (blocks, lanes, probes)) in [
        (1, 8, 1),
        (2, 8, 8),
        (5, 16, 16),
        (1000, 8, 6),
        (9_999, 16, 10),
        // Just too small for hashes to be sorted, and large enough: 4 MiB.
        (65_535, 8, 8),
        (65_536, 8, 8),
        (140_001, 8, 6),
        (70_001, 16, 12),
    ]
    .into_iter()
    .enumerate()
    {
        let shape = Shape::new(blocks, lanes, probes).unwrap();
        as_one_thread(shape, &hashes(3 * WORTH + 77, round as u64), &hashes(500, 99));
    }
}

#[test]
fn any_number_of_keys_is_inserted() {
    let shape = Shape::new(140_001, 8, 7).unwrap();
    for len in [0, 1, 63, WORTH, 2 * WORTH - 1, 2 * WORTH, 2 * WORTH + 1, 8 * WORTH + 5] {
        as_one_thread(shape, &hashes(len, len as u64), &[]);
    }
}

/// All in one run, or in few: hashes that nobody calls good.
#[test]
fn hashes_may_crowd() {
    let shape = Shape::new(200_000, 8, 6).unwrap();
    let good = hashes(4 * WORTH, 1);
    let crowds: [fn(u64) -> u64; 4] =
        [|hash| hash >> 40, |hash| !(hash >> 40), |_| 7, |hash| hash & (1 << 63 | 0xfff)];
    for crowd in crowds {
        let crowded: Vec<u64> = good.iter().copied().map(crowd).collect();
        as_one_thread(shape, &crowded, &[]);
    }
}

#[test]
fn rounds_follow_one_another() {
    // More than two threads sort in a round.
    let keys = hashes((2 << 22) + 12_345, 3);
    let shape = Shape::new(200_000, 8, 6).unwrap();
    let (mut one, mut two) = (empty(shape), empty(shape));
    one.insert_mixed_hashes(&keys, &mut Answers::new());
    two.insert_mixed_hashes_parallel(&keys, threads(2)).unwrap();
    same(&two, &one, "two rounds");
}

#[test]
fn texts_with_a_secret_seed() {
    let hash = HashSpec::keyed(*b"sixteen secrets!");
    let keys: Vec<String> = (0..3 * WORTH).map(|key| format!("key {}", key / 2)).collect();
    let filter = || BloomFilter::builder().keys(100_000).rate(0.001).hash(hash).build().unwrap();
    let mut one = filter();
    one.insert_batch(&keys, &mut Answers::new());
    for number in THREADS {
        let mut many = filter();
        many.insert_parallel(&keys, threads(number)).unwrap();
        same(&many, &one, &format!("{number} threads"));
    }
}
