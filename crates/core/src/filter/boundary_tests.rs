//! Filters around 2³² bits and 2³² bytes: no number on the way from a hash to a bit is truncated to
//! 32 bits. Few pages of their memory are accessed, so that most are never allocated.

use super::*;
use crate::kernel::scale;
use crate::membership::Membership as _;

/// Returns the smallest hash at position `at` of `extent`.
fn hash_at(at: u64, extent: u64) -> u64 {
    (u128::from(at) << 64).div_ceil(u128::from(extent)) as u64
}

/// Returns positions at both ends, and on both sides of the border if it is within.
fn places(extent: u64, border: u64) -> Vec<u64> {
    let mut places = vec![0, 1, extent - 2, extent - 1];
    places.extend([border - 1, border, border + 1].iter().filter(|at| **at < extent));
    places.sort_unstable();
    places.dedup();
    places
}

/// Inserts a hash at each position, singly and in batches, and checks the line of each.
fn check<L: Layout>(layout: L, extent: u64, border: u64, line_of: impl Fn(u64) -> u64) {
    let empty = || Filter::<L>::empty(layout, HashSpec::default(), FilterInfo::default()).unwrap();
    let places = places(extent, border);
    let hashes: Vec<u64> = places.iter().map(|&at| hash_at(at, extent)).collect();
    let (mut single, mut batch) = (empty(), empty());
    let mut answers = BatchResults::new();
    batch.insert_mixed_hashes(&hashes, &mut answers);
    assert_eq!(answers.count_ones(), hashes.len() as u64, "{layout:?}");
    for (&at, &hash) in places.iter().zip(&hashes) {
        assert_eq!(scale(hash, extent), at, "{layout:?}");
        // New, although others are at its position modulo 2^32.
        assert!(
            !single.contains_mixed_hash(hash) && single.insert_mixed_hash(hash),
            "{layout:?} {at}"
        );
        let line = line_of(at) as usize;
        assert!(single.store.lines()[line] != CacheLine::ZERO, "{layout:?} {at}");
        assert!(batch.store.lines()[line] != CacheLine::ZERO, "{layout:?} {at}");
    }
    let lines = |filter: &Filter<L>| {
        let line = |at: &u64| filter.store.lines()[line_of(*at) as usize];
        places.iter().map(line).collect::<Vec<_>>()
    };
    assert!(lines(&single) == lines(&batch), "{layout:?}");
    // Singly and in batches, the same hashes are found.
    let queries: Vec<u64> = hashes.iter().flat_map(|hash| [*hash, hash ^ 1 << 20]).collect();
    single.contains_mixed_hashes(&queries, &mut answers);
    let found: Vec<bool> = queries.iter().map(|&hash| batch.contains_mixed_hash(hash)).collect();
    assert!(found.iter().step_by(2).all(|found| *found), "{layout:?}");
    assert!((0..queries.len()).all(|at| answers.get(at) == found[at]), "{layout:?}");
    assert_eq!(single.inserted(), hashes.len() as u64);
}

#[test]
fn blocked_filters_around_32_bits() {
    for (lanes, probes) in [(8u32, 8), (8, 5), (16, 16), (16, 11)] {
        let lines = u64::from(lanes / 8);
        for border in [(1u64 << 32) / 512 / lines, (1 << 32) / 64 / lines] {
            for blocks in [border - 1, border, border + 1] {
                let layout = BlockedLayout::new(blocks, lanes, probes).unwrap();
                // Some of 11 neighbouring lanes of 16 are always in the first line of a pair.
                check(layout, blocks, border, |block| block * lines);
            }
        }
    }
}

#[test]
fn classic_filters_around_32_bits() {
    for border in [1u64 << 32, 1 << 35] {
        for bits in [border - 1, border, border + 1, border + 513] {
            let layout = ClassicLayout::for_bits(bits, 7).unwrap();
            check(layout, bits, border, |bit| bit / 512);
        }
    }
}
