//! Quotient filters in a row, as a server grows one that it must not rebuild: each newer one has
//! 2, 4, 8, … times the fingerprints of the one before it, and all have one hash.
//!
//! What is removed is taken from the newest filter that has it, and no key that is there is ever
//! denied. For at all times the slots can be dealt out so that each key that is there has one of
//! its own, with its fingerprint: an added key gets its new slot. Let x be removed, whose slot is
//! in filter A, and N be the newest filter that has its fingerprint, so not an older one than A.
//! If that slot is another key's, y, then x and y have one fingerprint in N, so in A too, which
//! has the leading bits of it: y gets the slot of x.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use petal::{Answers, HashSpec, QuotientFilter};
use petal_testkit::rng::Rng;

fn layer(slots: u64, bits: u32) -> QuotientFilter {
    let builder = QuotientFilter::builder().slots(slots).remainder_bits(bits);
    builder.hash(HashSpec::keyed([5; 16])).build().unwrap()
}

/// Adds and removes keys at random; how many times a key that is there was denied.
fn denied(seed: u64, slots: u64, newest_first: bool) -> u64 {
    let mut rng = Rng::new(seed);
    // Fingerprints of few bits, of which there are twice and 16 times as many later on.
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
            // Keys that come again, keys that differ in what only newer layers see, and others.
            let key = match (rng.below(3), there.len()) {
                (0, 1..) => there[rng.below(there.len())],
                (1, 1..) => there[rng.below(there.len())] ^ rng.next_u64() >> 8,
                _ => rng.next_u64(),
            };
            // Into any of them, for what is proven asks for no order; a full one refuses.
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
    // Each copy is counted, and asked in batches it is the same.
    let mut found = vec![false; there.len()];
    for layer in &layers {
        let mut answers = Answers::new();
        layer.contains_mixed_hashes(&there, &mut answers);
        answers.iter().for_each(|at| found[at] = true);
        assert!(layer.to_owned_filter().unwrap() == *layer);
        assert!(layer.shape().capacity() > 0 && layer.memory_usage() > layer.size_bytes());
    }
    denied += found.into_iter().filter(|found| !found).count() as u64;
    for &key in &there {
        let copies = there.iter().filter(|&&other| other == key).count() as u64;
        let counted: u64 = layers.iter().map(|layer| layer.count_mixed_hash(key)).sum();
        assert!(!newest_first || counted >= copies);
    }
    // All that is there can be removed, and then nothing is.
    if newest_first {
        for key in there {
            assert!(layers.iter_mut().rev().any(|layer| layer.remove_mixed_hash(key)));
        }
        assert!(layers.iter().all(QuotientFilter::is_empty));
    }
    denied
}

#[test]
fn a_chain_that_removes_from_its_newest_denies_nothing() {
    for seed in 0..60 {
        assert_eq!(denied(seed, 10 + seed % 7 * 5, true), 0, "seed {seed}");
    }
}

/// The other way round keys are lost: the test would see it.
#[test]
fn a_chain_that_removes_from_its_oldest_denies_some() {
    assert!((0..10).any(|seed| denied(seed, 20, false) > 0));
}

/// A fingerprint of a newer filter begins with that of an older one.
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
