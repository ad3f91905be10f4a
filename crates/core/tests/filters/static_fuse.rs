//! Static filters of the fuse layout: measured rates, space, corrupted files, and recorded files.

use std::num::NonZeroUsize;

use petal::{BatchResults, Borrowed, Builder, Kernel, Membership, StaticFilter};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;
use xxhash_rust::xxh3::xxh3_64;

use crate::models::static_filter::static_fuse::{self, Naive};
use crate::models::static_filter::{Aligned, file_of};
use crate::naive::update_checksums;

fn hashes(seed: u64, len: usize) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64()).collect()
}

fn fuse(rate: f64) -> Builder<StaticFilter> {
    StaticFilter::builder().fpr(rate).fuse(true)
}

fn contains_all(filter: &StaticFilter, set: &[u64]) -> bool {
    let mut found = BatchResults::new();
    filter.contains_mixed_hashes(set, &mut found);
    found.count_ones() == set.len() as u64
        && set.iter().all(|&hash| filter.contains_mixed_hash(hash))
}

#[test]
fn every_small_set_is_built() {
    for keys in (0..300).chain([574, 575, 1000, 1824, 1825, 5792, 5793, 18_389, 18_390]) {
        for rate in [0.7, 1.0 / 256.0, 0.01, 1e-7] {
            let set = hashes(keys as u64, keys);
            let filter = fuse(rate).from_mixed_hashes(set.clone()).unwrap();
            assert_eq!((filter.len(), filter.is_empty()), (keys as u64, keys == 0));
            assert!(contains_all(&filter, &set), "{keys} {rate}");
            assert!(
                filter.stats().estimated_fpr <= rate * 1.000_001,
                "{keys} {rate}: {}",
                filter.stats().estimated_fpr
            );
        }
    }
}

/// A writer by the document writes the same file, with the dimensions of few keys and of many.
#[test]
fn document_describes_every_dimension() {
    let numbers = (1..260).chain([270, 399, 400, 574, 575, 899, 900, 1824, 1825, 5793, 18_390]);
    for keys in numbers {
        for rate in [0.7, 0.25, 0.01, 1.0 / 256.0, 1e-4] {
            let set = hashes(keys * 7, keys as usize);
            let file = file_of(&fuse(rate).from_mixed_hashes(set.clone()).unwrap(), "");
            let written = static_fuse::write(&set, rate);
            let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
            let parameters = [96, 104, 112, 120, 128, 136].map(word);
            assert_eq!(parameters, written.parameters, "{keys} {rate}");
            let data: Vec<u64> = (4096..file.len()).step_by(8).map(word).collect();
            assert!(data == written.words, "{keys} {rate}");
        }
    }
}

/// Hashes that differ in their highest bits only once they are mixed with the first seed: all their slots
/// are equal, with any multiplier.
#[test]
fn any_distinct_hashes_are_built() {
    let set = [0x1aa3_ecd4_ed2b_0df9, 0x33e9_88fb_18c2_cd6e];
    for more in [0, 1, 10, 200, 3000] {
        let set = [&set[..], &hashes(more as u64, more)].concat();
        let filter = fuse(0.01).from_mixed_hashes(set.clone()).unwrap();
        assert!(contains_all(&filter, &set) && filter.len() == set.len() as u64, "{more}");
        let file = file_of(&filter, "");
        let naive = Naive::new(&file);
        assert!(set.iter().all(|&hash| naive.contains(hash)), "{more}");
        assert!(more > 0 || file[136] > 0, "seed 0");
        let twice = [&set[..], &set[..]].concat();
        assert!(filter == fuse(0.01).from_mixed_hashes(twice).unwrap(), "{more}");
    }
}

/// Small filters may need several rounds, and the last two have several shards.
#[test]
fn planned_size_is_enough_for_the_filter() {
    for keys in (0..400).chain([999, 1000, 5793, 6200, 50_000, 393_216, 393_217, 1_000_000]) {
        for rate in [0.7, 1.0 / 256.0, 0.01, 1e-7] {
            let planned = fuse(rate).capacity(keys).plan().unwrap().bits();
            let set = hashes(keys, keys as usize);
            let bits = fuse(rate).from_mixed_hashes(set).unwrap().size_bytes() * 8;
            assert!(bits <= planned, "{keys} {rate}: {bits} > {planned}");
            let largest = match keys {
                0..257 => 2 * bits + 512,
                257..6200 => bits + bits / 2 + 512,
                6200..=393_216 => bits,
                _ => bits + bits / 50,
            };
            assert!(planned <= largest, "{keys} {rate}: {planned} > {largest}");
        }
    }
    let sizes: Vec<u64> =
        (0..20_000).map(|keys| fuse(0.01).capacity(keys).plan().unwrap().bits()).collect();
    assert!(sizes.is_sorted());
    assert!(fuse(1e-9).capacity(10_000_000_000).plan().is_err());
    assert!(StaticFilter::builder().fuse(true).capacity(1).plan().is_err());
}

/// Hashes of which a part of the range is missing, as after a query of another filter.
#[test]
fn selected_hashes_are_built() {
    let set = hashes(1, 400_000);
    let select: [fn(&u64) -> bool; 3] =
        [|hash| *hash < 1 << 62, |hash| hash % 4 == 1, |hash| hash >> 40 & 3 != 0];
    for selected in select {
        let set: Vec<u64> = set.iter().copied().filter(selected).collect();
        assert!(contains_all(&fuse(0.01).from_mixed_hashes(set.clone()).unwrap(), &set));
    }
}

#[test]
fn number_of_threads_does_not_change_the_filter() {
    // Several shards.
    let set = hashes(1, 1_000_000);
    let built = |threads| {
        let threads = NonZeroUsize::new(threads).unwrap();
        fuse(0.01).threads(threads).from_mixed_hashes(set.clone()).unwrap()
    };
    let one = built(1);
    assert!(one == built(2) && one == built(7));
    assert!(one.stats().parameters.contains(&("shards", 4)));
    assert!(contains_all(&one, &set));
    let mut twice = set.clone();
    twice.extend(set.iter().rev());
    assert!(one == fuse(0.01).from_mixed_hashes(twice).unwrap());
    let file = file_of(&one, "");
    let naive = Naive::new(&file);
    assert!(set.iter().step_by(17).all(|&hash| naive.contains(hash)));
}

/// All kernels return what the document says, for every width of slots.
#[test]
fn kernels_agree_with_the_document() {
    let set = hashes(2, 50_000);
    let queries: Vec<u64> = set.iter().copied().step_by(3).chain(hashes(3, 20_000)).collect();
    let powers = (1..32).map(|bits| 0.5f64.powi(bits));
    for rate in powers.chain([0.9, 0.2, 0.1, 0.01, 0.003, 1e-5, 2.5e-10]) {
        let file = file_of(&fuse(rate).from_mixed_hashes(set.clone()).unwrap(), "");
        let naive = Naive::new(&file);
        let expected: Vec<bool> = queries.iter().map(|&hash| naive.contains(hash)).collect();
        let before = Kernel::current();
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
            kernel.force();
            let filter = StaticFilter::read_from(&file[..]).unwrap().0;
            let mut found = BatchResults::new();
            for length in [0, 1, 7, 8, 9, 63, 64, 65, 1000, queries.len()] {
                filter.contains_mixed_hashes(&queries[..length], &mut found);
                assert!((0..length).all(|at| found.get(at) == expected[at]), "{rate} {kernel:?}");
            }
            let single =
                |(hash, expected): (&u64, &bool)| filter.contains_mixed_hash(*hash) == *expected;
            assert!(queries.iter().zip(&expected).all(single), "{rate} {kernel:?}");
        }
        before.force();
    }
}

/// Returns the file of a filter of these dimensions with random slots and multipliers.
fn random_file(rng: &mut Rng, [bits, log, shards, segments, wide]: [u64; 5]) -> Vec<u8> {
    let slots = (shards * segments) << log;
    let words = (slots * bits + (wide << log)).div_ceil(64) + shards;
    let length = words.div_ceil(8) * 64;
    let mut file = file_of(&fuse(0.01).from_mixed_hashes(vec![1]).unwrap(), "")[..4096].to_vec();
    file.extend((0..length / 8).flat_map(|_| rng.next_u64().to_le_bytes()));
    let fields = [(24, length), (64, slots), (96, bits), (104, log), (112, shards)];
    let seed = rng.below(1 << 16) as u64;
    for (at, word) in fields.into_iter().chain([(120, segments), (128, wide), (136, seed)]) {
        file[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    update_checksums(&mut file);
    file
}

/// Queries the filter of a file one by one and in batches with every kernel, and compares the results
/// with the document.
fn kernels_agree(file: &[u8], queries: &[u64], dimensions: [u64; 5]) {
    let (naive, aligned) = (Naive::new(file), Aligned::new(file));
    let expected: Vec<bool> = queries.iter().map(|&hash| naive.contains(hash)).collect();
    let before = Kernel::current();
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        kernel.force();
        let filter = StaticFilter::<Borrowed<'_>>::from_bytes(aligned.bytes()).unwrap();
        let mut found = BatchResults::new();
        filter.contains_mixed_hashes(queries, &mut found);
        for (at, &hash) in queries.iter().enumerate() {
            assert_eq!(
                found.get(at),
                expected[at],
                "{dimensions:?} {kernel:?}: {hash:#x} in a batch"
            );
            let single = filter.contains_mixed_hash(hash);
            assert_eq!(single, expected[at], "{dimensions:?} {kernel:?}: {hash:#x}");
        }
    }
    before.force();
}

/// Every width of slots, from four slots in all, some of which are the last before the multipliers,
/// to the largest segments.
#[test]
fn kernels_agree_for_random_dimensions() {
    let mut rng = Rng::new(21);
    let queries = hashes(22, 203);
    for bits in 0..32 {
        for log in [0, 1, 3, 5, 6, 7, 11, 16] {
            let shards = if log < 6 { 1 } else { 1 << rng.below(4) };
            let segments = 4 + rng.below(5) as u64;
            let all = shards * segments;
            for wide in [0, rng.below(all as usize + 1) as u64, all] {
                if (all * (bits + 1)) << log > 1 << 22 {
                    continue;
                }
                let dimensions = [bits, log, shards, segments, wide];
                kernels_agree(&random_file(&mut rng, dimensions), &queries, dimensions);
            }
        }
    }
}

/// Slots of 0 bits, except the wide ones: numbers of slots of 32 bits, and of more.
#[test]
fn kernels_agree_for_2_to_the_32_slots() {
    let mut rng = Rng::new(23);
    let queries = hashes(24, 2003);
    for shards in [1, 2, 4] {
        let dimensions = [0, 16, shards, 1 << 15, 8];
        kernels_agree(&random_file(&mut rng, dimensions), &queries, dimensions);
    }
}

/// The same for filters of 9 MiB, which prefetch.
#[test]
fn kernels_agree_for_large_filters() {
    let mut rng = Rng::new(17);
    let queries = hashes(18, 10_001);
    let (log, shards) = (11, 4);
    for (bits, wide) in [(8, 0), (16, 0), (3, 1000), (6, 1500), (8, 1000), (24, 1000), (31, 1000)] {
        let segments = (9 << 23) / ((bits * shards) << log);
        let dimensions = [bits, log, shards, segments, wide];
        kernels_agree(&random_file(&mut rng, dimensions), &queries, dimensions);
    }
}

/// Without duplicates the keys are not sorted.
#[test]
fn order_of_keys_and_duplicates_do_not_change_the_filter() {
    for keys in [1, 2, 50, 100, 255, 256, 257, 1000, 20_000, 500_000] {
        let set = hashes(keys as u64, keys);
        let one = fuse(0.01).from_mixed_hashes(set.clone()).unwrap();
        let reversed: Vec<u64> = set.iter().rev().copied().collect();
        assert!(one == fuse(0.01).from_mixed_hashes(reversed.clone()).unwrap(), "{keys}");
        // The first key again, and the last; then all keys.
        let mut once_more = reversed.clone();
        once_more.extend([set[0], set[keys - 1]]);
        let threads = NonZeroUsize::new(3).unwrap();
        assert!(one == fuse(0.01).threads(threads).from_mixed_hashes(once_more).unwrap(), "{keys}");
        let twice = [&set[..], &reversed].concat();
        let twice = fuse(0.01).from_mixed_hashes(twice).unwrap();
        assert!(one == twice && twice.len() == keys as u64, "{keys}");
    }
    // More copies of one key than a shard can have keys of.
    let copies = fuse(0.01).from_mixed_hashes(vec![7; (1 << 24) + 1]).unwrap();
    assert!(copies == fuse(0.01).from_mixed_hashes(vec![7]).unwrap());
}

/// Returns the hashes and copies of some of them, in random order.
fn with_copies(set: &[u64], copies: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut rng = Rng::new(31);
    let mut hashes: Vec<u64> = set.iter().copied().chain(copies).collect();
    for at in (1..hashes.len()).rev() {
        hashes.swap(at, rng.below(at + 1));
    }
    hashes
}

/// Returns the shard of a hash in a filter with four shards, by the document.
fn shard_of(hash: u64) -> usize {
    let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
    (((product >> 64) as u64 ^ product as u64) >> 62) as usize
}

/// Duplicates in one shard of four and in each; there are fewer shards, or other dimensions, without the
/// duplicates of some of these sets.
#[test]
fn duplicates_in_some_shards_do_not_change_the_filter() {
    let set = hashes(32, 800_000);
    let one = fuse(0.01).from_mixed_hashes(set.clone()).unwrap();
    assert!(one.stats().parameters.contains(&("shards", 4)));
    let of_shard = |shard| set.iter().copied().filter(move |&hash| shard_of(hash) == shard);
    let first_of_each = (0..4).filter_map(|shard| of_shard(shard).next());
    let mut cases: Vec<(&str, Vec<u64>)> = (0..4)
        .map(|shard| ("one duplicate in one shard", of_shard(shard).take(1).collect()))
        .collect();
    cases.extend([
        ("one duplicate in each shard", first_of_each.collect()),
        ("3000 duplicates in one shard", of_shard(2).take(3000).collect()),
        ("all keys of one shard twice", of_shard(1).collect()),
        ("300,000 copies of one key", vec![set[7]; 300_000]),
        ("one key in a thousand twice", set.iter().copied().step_by(1000).collect()),
        ("all keys three times", set.repeat(2)),
    ]);
    for (name, copies) in cases {
        for threads in [1, 2] {
            let threads = NonZeroUsize::new(threads).unwrap();
            let hashes = with_copies(&set, copies.iter().copied());
            let filter = fuse(0.01).threads(threads).from_mixed_hashes(hashes).unwrap();
            assert!(filter == one && filter.len() == set.len() as u64, "{name}");
        }
    }
    assert!(contains_all(&one, &set));
}

/// One duplicate of a number of keys where one key more or less has other dimensions.
#[test]
fn duplicates_at_every_number_of_keys_do_not_change_the_filter() {
    for keys in (1..600).chain(1000..1030).chain([393_216]) {
        let set = hashes(keys as u64, keys);
        let one = fuse(0.01).from_mixed_hashes(set.clone()).unwrap();
        for copies in [1, keys / 3 + 1] {
            let hashes = with_copies(&set, set[keys - copies..].iter().copied());
            assert!(one == fuse(0.01).from_mixed_hashes(hashes).unwrap(), "{keys} {copies}");
        }
    }
}

/// Hashes that cluster after they are mixed, as an attacker would choose them, beside random ones, and a
/// hash that the filter mixes to 0.
#[test]
fn duplicates_among_hashes_that_cluster_are_dropped() {
    let clustered = hashes(33, 16_000_000).into_iter().filter(|&hash| {
        let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
        ((product >> 64) as u64 ^ product as u64) >> 52 == 0x555
    });
    let set: Vec<u64> = clustered.chain([0]).chain(hashes(34, 800_000)).collect();
    let hashes = with_copies(&set, set.iter().copied().step_by(2).chain([0, 0]));
    let one = fuse(0.01).from_mixed_hashes(set.clone()).unwrap();
    let twice = fuse(0.01).from_mixed_hashes(hashes).unwrap();
    assert!(one == twice && contains_all(&one, &set));
}

/// Sizes are whole cache lines, so that some numbers of keys in between take more.
#[test]
fn small_filters_take_at_most_half_more_space_per_key() {
    for (rate, fewest, large) in [(0.01, 50, 7.38), (0.001, 100, 10.95), (1e-4, 100, 14.67)] {
        let numbers = [50, 100, 150, 200, 300, 500, 1000, 2000, 5792];
        for keys in numbers.into_iter().filter(|&keys| keys >= fewest) {
            let bits = |seed| {
                let filter = fuse(rate).from_mixed_hashes(hashes(seed, keys)).unwrap();
                filter.size_bytes() as f64 * 8.0 / keys as f64
            };
            let mean = (0..20).map(bits).sum::<f64>() / 20.0;
            assert!(mean <= 1.5 * large, "{keys} {rate}: {mean} bits per key");
        }
    }
}

/// Filters from 8 MiB on prefetch.
#[test]
fn large_filters_contain_their_keys() {
    let set = hashes(15, 3_000_000);
    let threads = NonZeroUsize::new(2).unwrap();
    for rate in [1e-7, 1.0 / 65_536.0, 3e-9] {
        let filter = fuse(rate).threads(threads).from_mixed_hashes(set.clone()).unwrap();
        assert!(contains_all(&filter, &set), "{rate}");
        let mut found = BatchResults::new();
        let others = hashes(16, 1_000_000);
        filter.contains_mixed_hashes(&others, &mut found);
        let (low, high) = binomial_range(others.len() as u64, filter.stats().estimated_fpr, 0.999);
        assert!((low..=high).contains(&found.count_ones()), "{rate}");
    }
}

// ---- Rates and space ----------------------------------------------------------------------------

#[test]
fn measured_rate_equals_prediction_and_target() {
    for (keys, rate) in [
        (100_000, 0.6),
        (100_000, 0.3),
        (200_000, 0.1),
        (3000, 0.04),
        (200_000, 0.01),
        (40_000, 0.0072),
        (100_000, 1.0 / 256.0),
        (900_000, 1e-3),
        (100_000, 1e-4),
    ] {
        let filter = fuse(rate).from_mixed_hashes(hashes(4, keys)).unwrap();
        let queries = hashes(5, 1_000_000);
        let mut found = BatchResults::new();
        filter.contains_mixed_hashes(&queries, &mut found);
        let (low, high) = binomial_range(queries.len() as u64, filter.stats().estimated_fpr, 0.999);
        let yes = found.count_ones();
        assert!((low..=high).contains(&yes), "{keys} {rate}: {yes} not in {low}..={high}");
        assert!(
            filter.stats().estimated_fpr <= rate * 1.000_001,
            "{keys} {rate}: {}",
            filter.stats().estimated_fpr
        );
        assert!(
            filter.stats().estimated_fpr > rate * 0.97,
            "{keys} {rate}: {}",
            filter.stats().estimated_fpr
        );
        assert!(
            (filter.expected_fpr(keys as u64) / filter.stats().estimated_fpr - 1.0).abs() < 1e-9
        );
        assert!(!filter.stats().is_overfull && filter.target_fpr() == rate);
    }
}

/// Bits per key over the minimum, including all data of the file. The size of most filters is the planned
/// one, and of none is it more.
#[test]
fn space_is_within_15_percent_of_the_minimum() {
    let rates = [0.1, 0.095, 0.09, 0.07, 0.05, 0.01, 1.0 / 256.0, 1e-3, 1e-6];
    let many = (100_000..1_000_000).step_by(1117).chain((1_000_000..40_000_000).step_by(70_001));
    let few = [(1000, 1.9), (10_000, 1.4)];
    for (keys, most) in few.into_iter().chain(many.map(|keys| (keys, 1.15))) {
        for rate in rates {
            let bits = fuse(rate).capacity(keys).plan().unwrap().bits() as f64 / keys as f64;
            assert!(bits <= most * -rate.log2(), "{keys} {rate}: {}", bits / -rate.log2());
        }
    }
    // One cache line.
    assert_eq!(fuse(0.01).from_mixed_hashes(hashes(6, 10)).unwrap().size_bytes(), 64);
}

// ---- Corrupted files ------------------------------------------------------------------------------

/// Returns small files with slots of one width, with two widths, and without slots.
fn files() -> Vec<Vec<u8>> {
    [(0, 0.01), (3, 1.0 / 256.0), (60, 1.0 / 65_536.0), (1100, 0.4)]
        .into_iter()
        .map(|(keys, rate)| file_of(&fuse(rate).from_mixed_hashes(hashes(7, keys)).unwrap(), "{}"))
        .collect()
}

/// Opens and queries borrowed bytes, and reads them. Returns whether each succeeded.
fn try_all(bytes: &[u8]) -> (bool, bool) {
    let aligned = Aligned::new(bytes);
    let opened = StaticFilter::<Borrowed<'_>>::from_bytes(aligned.bytes());
    if let Ok(filter) = &opened {
        let mut found = BatchResults::new();
        let queries = hashes(9, 40);
        filter.contains_mixed_hashes(&queries, &mut found);
        for (at, &hash) in queries.iter().enumerate() {
            assert_eq!(filter.contains_mixed_hash(hash), found.get(at));
            assert_eq!(filter.explain_mixed_hash(hash).contains, found.get(at));
        }
        let dynamic: &dyn Membership = filter;
        assert!((0.0..=1.0).contains(&dynamic.stats().estimated_fpr));
        assert!((0.0..=1.0).contains(&dynamic.stats().fill_ratio));
        let _ = (dynamic.stats().layout, dynamic.stats().parameters, dynamic.expected_fpr(1 << 40));
    }
    (opened.is_ok(), StaticFilter::read_from(bytes).is_ok())
}

#[test]
fn corrupted_files_are_errors() {
    for file in files() {
        assert_eq!(try_all(&file), (true, true));
        assert!(truncations(&file).step_by(7).all(|short| try_all(short) == (false, false)));
        assert!(extensions(&file).all(|longer| !try_all(&longer).1));
        for (bit, damaged) in bit_flips(&file).filter(|(bit, _)| *bit < 2048 || bit / 8 >= 4096) {
            let (opened, read) = try_all(&damaged);
            assert!(!read && (bit >= 258 * 8 || !opened), "bit {bit}");
        }
    }
}

/// Modified files with valid checksums are errors, or filters that can be queried.
#[test]
fn modified_files_with_valid_checksums_are_safe() {
    let mut rng = Rng::new(10);
    let numbers = [0, 1, 2, 3, 4, 8, 16, 17, 31, 32, 1 << 20, 1 << 31, 1 << 50, 1 << 63, u64::MAX];
    let mut opened = 0;
    for file in files() {
        for at in (64..240).step_by(8).chain([24]) {
            for number in numbers.into_iter().chain([rng.next_u64()]) {
                let mut modified = file.clone();
                modified[at..at + 8].copy_from_slice(&number.to_le_bytes());
                update_checksums(&mut modified);
                try_all(&modified);
            }
        }
        // Consistent changes: any dimensions, with the length and extent that they need.
        for _ in 0..3000 {
            let (bits, log, shards) = (rng.below(34), rng.below(18), 1 << rng.below(4));
            let (segments, wide) = (3 + rng.below(6), rng.below(9));
            let slots = (shards * segments) << log;
            let words = (slots * bits + (wide << log)).div_ceil(64) + shards;
            let length = words.div_ceil(8) * 64;
            if length > 1 << 16 {
                continue;
            }
            let mut modified = file.clone();
            modified.resize(4096 + length, 0x5a);
            let fields = [(24, length), (64, slots), (96, bits), (104, log), (112, shards)];
            for (at, word) in fields.into_iter().chain([(120, segments), (128, wide)]) {
                modified[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            update_checksums(&mut modified);
            let valid = bits < 32 && log < 17 && segments > 3 && wide <= shards * segments;
            assert_eq!(try_all(&modified).0, valid);
            opened += u32::from(valid);
        }
    }
    assert!(opened > 1000);
}

#[test]
fn files_that_no_writer_creates_are_errors() {
    let filter = fuse(0.4).from_mixed_hashes(hashes(7, 1100)).unwrap();
    let file = file_of(&filter, "");
    // 20 · 64 slots of 1 or 2 bits, a multiplier, and zeros to the end of the line.
    let mut modified = file.clone();
    assert_eq!(modified.pop(), Some(0));
    modified.push(1);
    update_checksums(&mut modified);
    assert!(StaticFilter::read_from(&modified[..]).is_err());
    // Bits between the last slot and the multiplier: three slots of seven bits in a word.
    let filter = fuse(0.5f64.powi(7)).from_mixed_hashes(vec![5]).unwrap();
    let small = file_of(&filter, "");
    let mut modified = small.clone();
    assert_eq!(modified[4096 + 7], 0);
    modified[4096 + 7] = 0x80;
    update_checksums(&mut modified);
    assert!(StaticFilter::read_from(&modified[..]).is_err());
    // Bits, logarithm, shards, segments, wide segments and seed out of range, probes, lanes, a parameter.
    let changes = [(96, 32), (104, 17), (112, 3), (120, 3), (128, 255), (138, 1)];
    let changes = changes.into_iter().chain([(38, 1), (40, 8), (144, 1)]);
    for (at, value) in changes {
        let mut modified = file.clone();
        modified[at] = value;
        update_checksums(&mut modified);
        assert_eq!(try_all(&modified), (false, false), "{at}");
    }
}

// ---- Recorded files -----------------------------------------------------------------------------

#[test]
fn file_checksums_are_unchanged() {
    let sums: Vec<u64> =
        [(0, 0.01), (1, 0.01), (100, 0.03), (3000, 1.0 / 256.0), (80_000, 1e-3), (800_000, 1e-5)]
            .into_iter()
            .map(|(keys, rate)| {
                let filter = fuse(rate).from_mixed_hashes(hashes(13, keys)).unwrap();
                xxh3_64(&file_of(&filter, ""))
            })
            .collect();
    assert_eq!(sums, GOLDEN, "{sums:#x?}");
}

const GOLDEN: [u64; 6] = [
    0x62dd_dc52_4fe0_3a08,
    0xfb54_bcbe_eb09_2aa5,
    0x6a7e_e13e_3d16_ec50,
    0x269c_50bc_f9a2_a35c,
    0x8dbb_4bfb_b630_a95a,
    0x8467_5979_e254_aad6,
];
