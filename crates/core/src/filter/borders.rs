//! Filters around 2³² bits and 2³² bytes: no number on the way from a hash to a bit is cut to 32
//! bits. Their memory is touched at a few places only, so that it is not there for the most part.

use super::*;
use crate::kernel::scale;

/// The least hash whose part of `extent` is `at`.
fn hash_at(at: u64, extent: u64) -> u64 {
    (u128::from(at) << 64).div_ceil(u128::from(extent)) as u64
}

/// Places at both ends, and on both sides of the border if it is within.
fn places(extent: u64, border: u64) -> Vec<u64> {
    let mut places = vec![0, 1, extent - 2, extent - 1];
    places.extend([border - 1, border, border + 1].iter().filter(|at| **at < extent));
    places.sort_unstable();
    places.dedup();
    places
}

/// Puts a hash in each place, one by one and in batches, and looks at the line of each.
fn check<G: Geometry>(shape: G, extent: u64, border: u64, line_of: impl Fn(u64) -> u64) {
    let empty = || Filter::<G>::empty(shape, HashSpec::default(), Facts::default()).unwrap();
    let places = places(extent, border);
    let hashes: Vec<u64> = places.iter().map(|&at| hash_at(at, extent)).collect();
    let (mut single, mut batch) = (empty(), empty());
    let mut answers = Answers::new();
    batch.insert_mixed_hashes(&hashes, &mut answers);
    assert_eq!(answers.count_ones(), hashes.len() as u64, "{shape:?}");
    for (&at, &hash) in places.iter().zip(&hashes) {
        assert_eq!(scale(hash, extent), at, "{shape:?}");
        // New, though others are at the places that it would have with 32 bits.
        assert!(
            !single.contains_mixed_hash(hash) && single.insert_mixed_hash(hash),
            "{shape:?} {at}"
        );
        let line = line_of(at) as usize;
        assert!(single.store.lines()[line] != Line::ZERO, "{shape:?} {at}");
        assert!(batch.store.lines()[line] != Line::ZERO, "{shape:?} {at}");
    }
    let lines = |filter: &Filter<G>| {
        let line = |at: &u64| filter.store.lines()[line_of(*at) as usize];
        places.iter().map(line).collect::<Vec<_>>()
    };
    assert!(lines(&single) == lines(&batch), "{shape:?}");
    // As many as were put in and no more, wherever they are looked for.
    let asked: Vec<u64> = hashes.iter().flat_map(|hash| [*hash, hash ^ 1 << 20]).collect();
    single.contains_mixed_hashes(&asked, &mut answers);
    let found: Vec<bool> = asked.iter().map(|&hash| batch.contains_mixed_hash(hash)).collect();
    assert!(found.iter().step_by(2).all(|found| *found), "{shape:?}");
    assert!((0..asked.len()).all(|at| answers.get(at) == found[at]), "{shape:?}");
    assert_eq!(single.inserted(), hashes.len() as u64);
}

#[test]
fn blocked_filters_around_32_bits() {
    for (lanes, probes) in [(8u32, 8), (8, 5), (16, 16), (16, 11)] {
        let lines = u64::from(lanes / 8);
        for border in [(1u64 << 32) / 512 / lines, (1 << 32) / 64 / lines] {
            for blocks in [border - 1, border, border + 1] {
                let shape = Shape::new(blocks, lanes, probes).unwrap();
                // Some of 11 neighbouring lanes of 16 are always in the first line of a pair.
                check(shape, blocks, border, |block| block * lines);
            }
        }
    }
}

#[test]
fn classic_filters_around_32_bits() {
    for border in [1u64 << 32, 1 << 35] {
        for bits in [border - 1, border, border + 1, border + 513] {
            let shape = ClassicShape::for_bits(bits, 7).unwrap();
            check(shape, bits, border, |bit| bit / 512);
        }
    }
}
