//! Tests the protocol in every interleaving of its threads, with loom: `cargo x loom`.
//!
//! Keys set two bits in a single block, so that few words are accessed; they are chosen by their
//! common bits.

use std::collections::HashSet;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::kernel::{Kernel, KernelHandle};
use crate::store::CacheLine;

const PARAMS: BlockParams<8> = BlockParams { blocks: 1, probes: 2 };

/// Returns the only kernel for the words of loom, which assembly cannot access.
fn portable() -> KernelHandle {
    Kernel::Portable.handle().unwrap()
}

/// A small filter with one stripe.
struct TestFilter {
    lines: Vec<AtomicCacheLine>,
    stripes: Stripes,
}

impl TestFilter {
    fn new() -> Arc<Self> {
        let line = AtomicCacheLine(core::array::from_fn(|_| AtomicU64::new(0)));
        Arc::new(Self { lines: vec![line], stripes: Stripes::new(PARAMS.blocks) })
    }

    fn blocks(&self) -> SharedBlocks<'_, 8> {
        SharedBlocks { params: PARAMS, lines: &self.lines, stripes: &self.stripes }
    }

    fn insert(&self, hash: u64) -> bool {
        let new = portable().shared_insert(self.blocks(), hash);
        assert!(self.contains(hash), "a thread sees its own insert");
        new
    }

    fn contains(&self, hash: u64) -> bool {
        portable().shared_contains(self.blocks(), hash)
    }
}

/// Returns the positions of the bits of a hash.
fn positions(hash: u64) -> HashSet<(usize, u64)> {
    (0..PARAMS.probes).map(|probe| KeyProbes::<8>::new(hash).get(probe)).collect()
}

/// Returns the first key with these numbers of bits in common with other keys.
fn key(common: &[(u64, usize)]) -> u64 {
    let fits = |hash: &u64| {
        let with = |other| positions(*hash).intersection(&positions(other)).count();
        common.iter().all(|&(other, count)| with(other) == count)
    };
    // All hashes are in the one block.
    (1..u64::MAX).map(|step| step.wrapping_mul(0x9e37_79b9)).find(fits).unwrap()
}

/// Returns all possible results of sequential inserts, in any order.
fn sequential_results(threads: &[Vec<u64>]) -> HashSet<Vec<Vec<bool>>> {
    fn extend(
        threads: &[Vec<u64>],
        line: [CacheLine; 1],
        results: &[Vec<bool>],
        all: &mut HashSet<Vec<Vec<bool>>>,
    ) {
        let mut finished = true;
        for (at, hashes) in threads.iter().enumerate() {
            if let Some(&hash) = hashes.get(results[at].len()) {
                finished = false;
                let (mut line, mut results) = (line, results.to_vec());
                let new = PARAMS.insert(&mut line, hash);
                results[at].push(new);
                extend(threads, line, &results, all);
            }
        }
        if finished {
            all.insert(results.to_vec());
        }
    }
    let mut all = HashSet::new();
    extend(threads, [CacheLine::ZERO], &vec![vec![]; threads.len()], &mut all);
    all
}

/// Explores all interleavings of two threads; of three threads those with at most two preemptions,
/// unless `LOOM_MAX_PREEMPTIONS` is set, which takes longer.
fn model(threads: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    if threads > 2 {
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
    }
    builder.check(run);
}

/// Inserts concurrently: in every interleaving the results are those of a sequential order, the
/// stripe counts the new inserts, and all keys are contained.
fn insert_concurrently(threads: &[Vec<u64>]) {
    let expected = sequential_results(threads);
    let threads = threads.to_vec();
    model(threads.len(), move || {
        let filter = TestFilter::new();
        let run = |hashes: &[u64], filter: &TestFilter| {
            let (mut new, mut found) = ([0], [0]);
            portable().shared_insert_batch(filter.blocks(), hashes, &mut new);
            portable().shared_contains_batch(filter.blocks(), hashes, &mut found);
            assert_eq!(
                found[0].count_ones() as usize,
                hashes.len(),
                "a thread sees its own inserts"
            );
            (0..hashes.len()).map(|at| new[0] >> at & 1 == 1).collect::<Vec<_>>()
        };
        let other = |hashes: &Vec<u64>| {
            let (hashes, filter) = (hashes.clone(), Arc::clone(&filter));
            thread::spawn(move || run(&hashes, &filter))
        };
        let others: Vec<_> = threads[1..].iter().map(other).collect();
        let mut results = vec![run(&threads[0], &filter)];
        results.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        assert!(expected.contains(&results), "{results:?} is not in {expected:?}");
        let new = results.iter().flatten().filter(|new| **new).count();
        assert_eq!(filter.stripes.inserted(), new as u64);
        assert!(threads.iter().flatten().all(|&hash| filter.contains(hash)));
    });
}

#[test]
fn loom_key_is_new_to_one_of_two_inserts() {
    let one = key(&[]);
    assert_eq!(sequential_results(&[vec![one], vec![one]]).len(), 2);
    insert_concurrently(&[vec![one], vec![one]]);
}

#[test]
fn loom_key_is_new_to_one_of_three_inserts() {
    let one = key(&[]);
    insert_concurrently(&[vec![one], vec![one], vec![one]]);
}

#[test]
fn loom_keys_with_a_distinct_bit_are_new() {
    let one = key(&[]);
    let two = key(&[(one, 1)]);
    assert_eq!(sequential_results(&[vec![one], vec![two]]).len(), 1);
    insert_concurrently(&[vec![one], vec![two]]);
    insert_concurrently(&[vec![one, two], vec![two, one]]);
}

/// Each bit of the third key is also a bit of another key, so the order decides whether it is new.
#[test]
fn loom_two_keys_cover_a_third() {
    let one = key(&[]);
    let three = key(&[(one, 1)]);
    let two = key(&[(one, 0), (three, 1)]);
    assert_eq!(sequential_results(&[vec![one], vec![two], vec![three]]).len(), 2);
    insert_concurrently(&[vec![one], vec![two], vec![three]]);
}

#[test]
fn loom_contained_key_is_not_new() {
    let one = key(&[]);
    let two = key(&[(one, 1)]);
    model(2, move || {
        let filter = TestFilter::new();
        assert!(filter.insert(one));
        let other = Arc::clone(&filter);
        let thread = thread::spawn(move || (other.insert(two), other.insert(one)));
        assert!(!filter.insert(one));
        assert_eq!(thread.join().unwrap(), (true, false));
        assert_eq!(filter.stripes.inserted(), 2);
    });
}

/// Holds whether the insert was new or not.
#[test]
fn loom_insert_is_visible_after_synchronisation() {
    let one = key(&[]);
    model(3, move || {
        let (filter, signal) = (TestFilter::new(), Arc::new(AtomicU64::new(0)));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (filter, signal) = (Arc::clone(&filter), Arc::clone(&signal));
                thread::spawn(move || {
                    filter.insert(one);
                    signal.store(1, Ordering::Release);
                })
            })
            .collect();
        if signal.load(Ordering::Acquire) == 1 {
            assert!(filter.contains(one));
            assert!(!filter.insert(one));
        }
        assert!(filter.stripes.inserted() <= 1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
