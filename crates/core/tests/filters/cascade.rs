//! Filter cascades: exact results for the universe, the target rate outside it, corrupted files, and
//! contradictory keys.

use petal::{BatchResults, FilterCascade, Membership as _, verify_bytes};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;

use crate::models::cascade as model;
use crate::naive::update_checksums;

#[test]
fn random_universes_are_exact() {
    let mut rng = Rng::new(5);
    for size in [0, 1, 2, 3, 5, 20, 100, 400, 3000] {
        for _ in 0..24 {
            let pairs = rng.below(size + 1);
            let bytes = rng.bytes(2 + 2 * pairs);
            model::drive(&bytes);
        }
    }
}

/// Members, known non-members, and the target rate.
const UNIVERSES: [(u64, u64, f64); 6] = [
    (10_000, 200_000, 0.1),
    (10_000, 200_000, 0.01),
    (10_000, 5_000, 0.01),
    (30_000, 30_000, 0.001),
    (1000, 0, 0.05),
    (0, 1000, 0.05),
];

#[test]
fn rate_outside_the_universe_equals_prediction_and_target() {
    for (seed, (r, s, rate)) in (1..).zip(UNIVERSES) {
        let mut rng = Rng::new(seed);
        let mut hashes = |n| (0..n).map(|_| rng.next_u64()).collect::<Vec<_>>();
        let (members, others, queries) = (hashes(r), hashes(s), hashes(400_000));
        let cascade =
            FilterCascade::builder().fpr(rate).from_mixed_hashes(&members, &others).unwrap();
        let mut found = BatchResults::new();
        cascade.contains_mixed_hashes(&members, &mut found);
        assert_eq!(found.count_ones(), r);
        cascade.contains_mixed_hashes(&others, &mut found);
        assert_eq!(found.count_ones(), 0);
        cascade.contains_mixed_hashes(&queries, &mut found);
        let (tries, yes) = (queries.len() as u64, found.count_ones());
        let (low, high) = binomial_range(tries, cascade.stats().estimated_fpr, 0.999);
        assert!((low..=high).contains(&yes), "{r} {s} {rate}: {yes} not in {low}..={high}");
        assert!(yes <= binomial_range(tries, rate, 0.999).1);
        for (at, &hash) in queries.iter().enumerate().take(20_000) {
            assert_eq!(found.get(at), cascade.contains_mixed_hash(hash));
        }
    }
}

/// Members, known non-members for each of them, and the bits a member without the header.
#[test]
fn size_is_near_the_minimum_of_two_filters() {
    let mut rng = Rng::new(9);
    let mut hashes = |n| (0..n).map(|_| rng.next_u64()).collect::<Vec<_>>();
    let universes = [(1000, 100, 13.2), (1000, 1000, 18.3), (50_000, 100, 9.1), (200_000, 30, 7.2)];
    for (r, each, limit) in universes {
        let (members, others) = (hashes(r), hashes(r * each));
        let cascade =
            FilterCascade::builder().fpr(0.5).from_mixed_hashes(&members, &others).unwrap();
        let bits = cascade.size_bytes() as f64 * 8.0 / r as f64;
        assert!(bits < limit, "{bits} bits for each of {r} members among {each}");
    }
}

#[test]
fn contradictions_and_invalid_rates_are_errors() {
    let error = FilterCascade::build(&["a", "b", "c"], &["c", "x", "a", "c"], 0.01).unwrap_err();
    assert_eq!(error.contradictions().len(), 2);
    assert!(error.to_string().contains("2 keys"), "{error}");
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        let error = FilterCascade::build(&["a"], &["b"], rate).unwrap_err();
        assert!(error.is_invalid() && error.contradictions().is_empty(), "{error}");
    }
}

fn small_file() -> Vec<u8> {
    let members: Vec<u64> = (0..40).collect();
    let others: Vec<u64> = (40..200).collect();
    let mut file = Vec::new();
    FilterCascade::build(&members, &others, 0.3).unwrap().write_to(&mut file, "{}").unwrap();
    verify_bytes(&file).unwrap();
    file
}

#[test]
fn corrupted_files_are_errors() {
    let file = small_file();
    for bytes in truncations(&file).step_by(61) {
        assert!(FilterCascade::read_from(bytes).is_err());
    }
    for bytes in extensions(&file) {
        assert!(FilterCascade::read_from(&bytes[..]).is_err());
    }
    for (bit, bytes) in bit_flips(&file).step_by(7) {
        assert!(FilterCascade::read_from(&bytes[..]).is_err(), "bit {bit}");
    }
}

/// Data longer than any file, in types whose header has no length.
#[test]
fn impossible_length_is_an_error() {
    for length in [u64::MAX, u64::MAX - 63, u64::MAX - 4095, 1 << 63] {
        for filters in [1u64, 2, 96] {
            let mut bytes = small_file();
            bytes[64..72].copy_from_slice(&filters.to_le_bytes());
            bytes[24..32].copy_from_slice(&length.to_le_bytes());
            update_checksums(&mut bytes);
            for cut in [4096, 4160, bytes.len()] {
                assert!(FilterCascade::read_from(&bytes[..cut]).is_err());
            }
        }
    }
}

/// With valid checksums, modified files are errors or filters that can be queried.
#[test]
fn modified_files_with_valid_checksums_are_safe() {
    let file = small_file();
    let mut rng = Rng::new(11);
    let data_at = 4096;
    for _ in 0..4000 {
        let mut bytes = file.clone();
        for _ in 0..1 + rng.below(3) {
            // Header and directory contain all lengths.
            let at = if rng.one_in(2) { 32 + rng.below(208) } else { data_at + rng.below(1024) };
            let at = at.min(bytes.len() - 1);
            bytes[at] = *rng.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]);
        }
        update_checksums(&mut bytes);
        let Ok((cascade, _)) = FilterCascade::read_from(&bytes[..]) else { continue };
        for _ in 0..50 {
            let _ = cascade.contains_mixed_hash(rng.next_u64());
        }
        assert!((0.0..=1.0).contains(&cascade.stats().estimated_fpr));
    }
}
