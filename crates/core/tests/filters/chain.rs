//! Chains of quotient filters, as in a server that grows a filter without rebuilding it: each newer
//! filter has 2, 4, 8, … times the fingerprints of the previous one, and all use the same hash.
//!
//! A key is removed from the newest filter that contains it, and no present key is ever reported as
//! absent. Proof: at all times there is an assignment of slots to present keys in which each key has
//! a slot with its fingerprint; an added key gets its new slot. Let x be removed, with its slot in
//! filter A, and let N be the newest filter with its fingerprint, which is not older than A. If the
//! removed slot of N is assigned to another key y, then x and y have the same fingerprint in N, so
//! also in A, which uses its leading bits: assign the slot of x to y.

use petal::{BatchResults, HashSpec, Membership as _, QuotientFilter};
use petal_testkit::rng::Rng;

fn layer(slots: u64, bits: u32) -> QuotientFilter {
    let builder = QuotientFilter::builder().table_size(slots).slot_bits(bits);
    builder.hash(HashSpec::keyed([5; 16])).build().unwrap()
}

/// Adds and removes keys at random. Returns how often a present key was reported as absent.
fn denied(seed: u64, slots: u64, newest_first: bool) -> u64 {
    let mut rng = Rng::new(seed);
    // Few fingerprints, then twice and 16 times as many.
    let mut layers = [layer(slots, 2), layer(2 * slots, 2), layer(4 * slots, 4)];
    let mut there: Vec<u64> = Vec::new();
    let mut denied = 0;
    for _ in 0..3000 {
        if rng.one_in(2) && !there.is_empty() {
            let key = there.swap_remove(rng.below(there.len()));
            let mut order: Vec<usize> = (0..layers.len()).collect();
            if newest_first {
                order.reverse();
            }
            let removed = order.into_iter().any(|at| layers[at].remove_mixed_hash(key));
            denied += u64::from(!removed);
        } else {
            // Repeated keys, keys that differ in bits that only newer filters use, and others.
            let key = match (rng.below(3), there.len()) {
                (0, 1..) => there[rng.below(there.len())],
                (1, 1..) => there[rng.below(there.len())] ^ rng.next_u64() >> 8,
                _ => rng.next_u64(),
            };
            // Into any filter, since the proof needs no order; a full filter returns an error.
            let at = rng.below(layers.len());
            let before = layers[at].len();
            match layers[at].add_mixed_hash(key) {
                Ok(_) => there.push(key),
                Err(error) => assert!(error.is_full() && layers[at].len() == before),
            }
        }
        let copies: u64 = layers.iter().map(QuotientFilter::len).sum();
        assert!(!newest_first || copies == there.len() as u64);
        for &key in &there {
            denied += u64::from(!layers.iter().any(|layer| layer.contains_mixed_hash(key)));
        }
    }
    // Each copy counts, and batches return the same results.
    let mut found = vec![false; there.len()];
    for layer in &layers {
        let mut results = BatchResults::new();
        layer.contains_mixed_hashes(&there, &mut results);
        results.iter().for_each(|at| found[at] = true);
        assert!(layer.try_clone().unwrap() == *layer);
        assert!(layer.layout().capacity() > 0 && layer.memory_usage() > layer.size_bytes());
    }
    denied += found.into_iter().filter(|found| !found).count() as u64;
    for &key in &there {
        let copies = there.iter().filter(|&&other| other == key).count() as u64;
        let counted: u64 = layers.iter().map(|layer| layer.count_mixed_hash(key)).sum();
        assert!(!newest_first || counted >= copies);
    }
    // All present keys can be removed, and then the chain is empty.
    if newest_first {
        for key in there {
            assert!(layers.iter_mut().rev().any(|layer| layer.remove_mixed_hash(key)));
        }
        assert!(layers.iter().all(QuotientFilter::is_empty));
    }
    denied
}

#[test]
fn removal_from_the_newest_filter_loses_no_key() {
    for seed in 0..60 {
        assert_eq!(denied(seed, 10 + seed % 7 * 5, true), 0, "seed {seed}");
    }
}

/// In the other order keys are lost, which shows that the test detects it.
#[test]
fn removal_from_the_oldest_filter_loses_keys() {
    assert!((0..10).any(|seed| denied(seed, 20, false) > 0));
}

/// A fingerprint of a newer filter starts with that of an older one.
#[test]
fn fingerprints_nest() {
    let mut rng = Rng::new(1);
    for (slots, bits) in [(1, 1), (7, 3), (1000, 8), (123_457, 20)] {
        let (old, new) = (layer(slots, bits), layer(slots * 4, bits + 3));
        for _ in 0..1000 {
            let hash = rng.next_u64();
            assert_eq!(new.fingerprint_of(hash) >> 5, old.fingerprint_of(hash));
        }
    }
}
