//! Scalable filters: comparison with a model, measured rates, corrupted files, limits.

use petal::{BatchResults, Borrowed, HashSpec, Membership, ScalableBloomFilter};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;

use crate::kit::{self, Aligned};
use crate::models::scalable as model;
use crate::naive::update_checksums;

#[test]
fn random_operations_equal_the_model() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let length = 10 + rng.below(150);
        model::drive(&rng.bytes(length));
    }
}

fn random(count: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| rng.next_u64()).collect()
}

/// Returns the number of random hashes that are found.
fn false_positives(filter: &ScalableBloomFilter, queries: usize, seed: u64) -> u64 {
    let mut found = BatchResults::new();
    let mut sum = 0;
    for part in 0..queries / 100_000 {
        filter.contains_mixed_hashes(&random(100_000, seed << 32 | part as u64), &mut found);
        sum += found.count_ones();
    }
    sum
}

/// At every stage of growth the rate equals both predictions, from the bits and from the number of
/// keys, and is at most the target.
#[test]
fn measured_rate_equals_prediction_and_target() {
    const QUERIES: usize = 400_000;
    let usual = [(0.2, 2, 0), (0.05, 4, 0), (0.01, 2, 0), (1e-3, 3, 0)];
    let stated = [(0.05, 3, 2), (0.05, 2, 1 << 16), (0.01, 2, 4), (1e-3, 3, 64)];
    for (rate, growth, share) in usual.into_iter().chain(stated) {
        let builder = ScalableBloomFilter::builder().capacity(2000).fpr(rate).growth(growth);
        let builder = builder.growth_share(share);
        let mut filter = builder.build().unwrap();
        let mut given = 0;
        for (stage, keys) in [500, 1500, 4000, 40_000, 150_000].into_iter().enumerate() {
            let hashes = random(keys, 100 + stage as u64);
            filter.insert_mixed_hashes(&hashes, &mut BatchResults::new()).unwrap();
            given += keys as u64;
            let (now, expected) = (filter.stats().estimated_fpr, filter.expected_fpr(given));
            assert!(now <= rate && expected <= rate, "{rate} {stage}: {now} {expected}");
            // The prediction from the bits is exact for random queries.
            let count = false_positives(&filter, QUERIES, stage as u64 + 1);
            let (low, high) = binomial_range(QUERIES as u64, now, 0.999);
            assert!((low..=high).contains(&count), "{rate} {stage}: {count} {low} {high}");
            // The prediction from the number of keys is a mean, from which small filters differ.
            let stray = 1.0 + 6.0 / (given as f64).sqrt();
            let low = binomial_range(QUERIES as u64, expected / stray, 0.999).0;
            let high = binomial_range(QUERIES as u64, expected * stray, 0.999).1;
            assert!((low..=high).contains(&count), "{rate} {stage}: {count} {low} {high}");
            let len = filter.stats().estimated_len;
            assert!(
                (len / given as f64 - 1.0).abs() < stray - 1.0 + 0.01,
                "{stage}: {len} {given}"
            );
            assert!(!filter.stats().is_overfull);
        }
        assert!(filter.layers() > 4);
    }
}

/// A full layer has its share of the rate, although more keys were inserted than it counted: if
/// sizing ignored these, the rate would be a sixth higher for the first of these targets.
#[test]
fn each_layer_keeps_its_share_of_the_fpr() {
    for rate in [0.9, 0.5, 0.1] {
        let mut filter = ScalableBloomFilter::with_fpr(200_000, rate).unwrap();
        let mut results = BatchResults::new();
        let mut seed = 0;
        while filter.layer_capacity_left() > 0 {
            let keys = filter.layer_capacity_left().min(1000) as usize;
            filter.insert_mixed_hashes(&random(keys, seed), &mut results).unwrap();
            seed += 1;
        }
        assert_eq!((filter.layers(), filter.inserted()), (1, 200_000));
        let (part, now) = (rate / 4.0, filter.stats().estimated_fpr);
        assert!(now < part * 1.005 && now > part * 0.96, "{rate}: {now}");
    }
}

/// A capacity gets nearly the whole rate, and so a smaller filter than with the default series; after
/// that the filter grows within the target.
#[test]
fn growth_share_keeps_the_first_layer_small() {
    // The bits of a textbook filter at half the rate, as in the first layer of RedisBloom.
    let textbook = |rate: f64| -(rate / 2.0).ln() / std::f64::consts::LN_2.powi(2);
    for (keys, rate, parts) in [(100_000, 0.01, 4), (1_000_000, 0.01, 4), (100_000, 1e-3, 64)] {
        let builder = ScalableBloomFilter::builder().capacity(keys).fpr(rate);
        let mut filter = builder.growth_share(parts).build().unwrap();
        let bits = |filter: &ScalableBloomFilter| filter.size_bytes() as f64 * 8.0 / keys as f64;
        assert!(bits(&filter) <= textbook(rate), "{rate}: {}", bits(&filter));
        assert!(bits(&filter) < 0.85 * bits(&builder.build().unwrap()));
        let mut new = BatchResults::new();
        while filter.layer_capacity_left() > 0 {
            let some = filter.layer_capacity_left().min(10_000) as usize;
            filter.insert_mixed_hashes(&random(some, filter.inserted()), &mut new).unwrap();
        }
        let (max, now) = (rate * (1.0 - 1.0 / parts as f64), filter.stats().estimated_fpr);
        assert!(now < max * 1.01 && now > max * 0.95, "{now} {max}");
        assert_eq!((filter.layers(), filter.growth_share()), (1, Some(parts)));
        filter.insert_mixed_hashes(&random(100_000, 1), &mut new).unwrap();
        assert!(filter.layers() > 1 && filter.stats().estimated_fpr < rate);
    }
    let builder = ScalableBloomFilter::builder().fpr(0.1);
    for parts in [1, (1 << 16) + 1, u64::MAX] {
        assert!(builder.growth_share(parts).build().unwrap_err().is_invalid());
    }
}

/// With a head start there are few layers, and the rate is kept.
#[test]
fn head_start_needs_few_layers() {
    for (factor, below, layers) in [(0, 0, 13), (4, 1 << 16, 8), (8, 1 << 16, 6), (16, 1 << 16, 5)]
    {
        let builder = ScalableBloomFilter::builder().capacity(100).fpr(0.01);
        let mut filter = builder.head_start(factor, below).build().unwrap();
        let mut new = BatchResults::new();
        while filter.inserted() < 490_000 {
            filter.insert_mixed_hashes(&random(10_000, filter.inserted()), &mut new).unwrap();
        }
        filter.insert_mixed_hashes(&random(10_000, 1), &mut new).unwrap();
        assert_eq!(filter.layers(), layers, "{factor}");
        assert!(filter.stats().estimated_fpr < 0.01 && filter.expected_fpr(500_000) < 0.01);
        let left = filter.total_capacity() - filter.inserted();
        assert_eq!(left, filter.layer_capacity_left());
    }
}

/// The predicted size of the next layer equals its size.
#[test]
fn size_of_the_next_layer_is_predicted() {
    let builder = ScalableBloomFilter::builder().capacity(100).fpr(0.01).growth(3);
    let mut filter = builder.head_start(9, 1000).build().unwrap();
    for hash in random(200_000, 1) {
        let (layers, total) = (filter.layers(), filter.total_capacity());
        if filter.layer_capacity_left() > 0 {
            filter.insert_mixed_hash(hash).unwrap();
            continue;
        }
        let (before, next) =
            (filter.size_bytes() + filter.memory_usage(), filter.next_layer_bytes());
        filter.insert_mixed_hash(hash).unwrap();
        if filter.layers() > layers {
            let more = filter.size_bytes() + filter.memory_usage() - before;
            // As bits and as memory, with a vector that may have spare capacity.
            let next = next.unwrap();
            assert!(2 * next <= more + 512 && more <= 2 * next + 4096 + 4 * 256, "{next} {more}");
            assert!(filter.total_capacity() > total);
        }
    }
    assert_eq!((filter.layers(), filter.growth()), (6, 3));
}

/// Without growth of layers the filter has a limit: an error that loses no key.
#[test]
fn equal_layers_end_with_an_error() {
    let builder = ScalableBloomFilter::builder().capacity(50).fpr(0.01).growth(1);
    let mut filter = builder.build().unwrap();
    let mut hashes = random(50 * 70, 3).into_iter();
    let refused = hashes.find_map(|hash| filter.insert_mixed_hash(hash).err()).unwrap();
    assert!(refused.is_full() && refused.to_string().contains("64 layers"), "{refused}");
    assert_eq!((filter.layers(), filter.inserted(), filter.total_capacity()), (64, 3200, 3200));
    assert!(filter.next_layer_bytes().unwrap_err().is_full());
    assert!(random(50 * 70, 3)[..3200].iter().all(|&hash| filter.contains_mixed_hash(hash)));
    assert!(filter.expected_fpr(3200) < 0.01 && filter.expected_fpr(3300) == 1.0);
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert!(ScalableBloomFilter::read_from(&file[..]).unwrap().0 == filter);
}

fn small(spec: HashSpec) -> Vec<u8> {
    let mut filter =
        ScalableBloomFilter::builder().capacity(3).fpr(0.1).hash(spec).build().unwrap();
    for key in 0..8u64 {
        filter.insert(&key).unwrap();
    }
    assert_eq!(filter.layers(), 2);
    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").unwrap();
    file
}

/// Refused, or a filter that results; whether it was refused.
fn refused(bytes: &[u8]) -> bool {
    let aligned = Aligned::new(bytes);
    if let Ok(borrowed) = ScalableBloomFilter::<Borrowed<'_>>::from_bytes(aligned.bytes()) {
        let mut found = BatchResults::new();
        borrowed.contains_mixed_hashes(&[0, 1, u64::MAX, 1 << 63], &mut found);
        let _ = (
            borrowed.stats().estimated_len,
            borrowed.stats().estimated_fpr,
            borrowed.stats().fill_ratio,
        );
        let _ = (borrowed.inserted(), borrowed.layer_capacity_left(), borrowed.block_fills(4));
    }
    let Ok((mut read, _)) = ScalableBloomFilter::read_from(bytes) else { return true };
    for hash in random(50, 9) {
        // Another layer may be too large to allocate.
        assert!(read.insert_mixed_hash(hash).is_err() || read.contains_mixed_hash(hash));
    }
    false
}

#[test]
fn corrupted_files_are_errors() {
    for spec in [HashSpec::default(), HashSpec::keyed([9; 16])] {
        let file = small(spec);
        assert!(!refused(&file));
        assert!(truncations(&file).all(refused));
        assert!(extensions(&file).all(|longer| refused(&longer)));
        assert!(bit_flips(&file).all(|(_, flipped)| refused(&flipped)));
    }
}

#[test]
fn modified_files_with_valid_checksums_are_errors_or_safe() {
    let file = small(HashSpec::default());
    let directory = 4096..4096 + 2 * 64;
    for (bit, mut flipped) in bit_flips(&file) {
        let at = bit / 8;
        // Except the checksums and the padding.
        if (8..240).contains(&at) || at >= 4096 {
            update_checksums(&mut flipped);
            let refused = refused(&flipped);
            // Fields with one valid value. A directory may have other probes.
            let fixed = (42..48).contains(&at) || (64..80).contains(&at) || (88..240).contains(&at);
            let free = directory.contains(&at) && (at - 4096) % 64 / 8 == 2;
            let layer = directory.contains(&at) && !free;
            // So may another plan of layers, in which the newest is not full.
            let plan = (72..80).contains(&at) || (96..98).contains(&at) || (120..123).contains(&at);
            assert!(refused || !(fixed || layer) || plan, "byte {at}");
        }
    }
    let assert_refused_with = |at: usize, word: u64| {
        let mut file = file.clone();
        file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        update_checksums(&mut file);
        assert!(refused(&file), "{word} at {at}");
    };
    for word in [0, 1, 3, 65, 1 << 50, u64::MAX] {
        assert_refused_with(64, word); // layers
    }
    for word in [0, 1, 32_769, u64::MAX] {
        assert_refused_with(96, word); // growth
    }
    for at in [104, 112] {
        for word in [1, 5, u64::MAX] {
            assert_refused_with(at, word); // half of a head start
        }
    }
    for word in [1, (1 << 16) + 1, u64::MAX] {
        assert_refused_with(120, word); // parts of the rate
    }
    for word in [0, 1 << 50, u64::MAX, 1 << 63] {
        assert_refused_with(4096, word); // blocks
        assert_refused_with(4096 + 24, word); // keys
    }
    for word in [0, 7, 17, 1 << 32, 1 << 32 | 8] {
        assert_refused_with(4096 + 8, word); // lanes
    }
}

/// Uses sparse memory: only accessed pages are allocated.
#[test]
fn layers_beyond_32_bits() {
    // 2^32 bits are 512 MiB, 2^32 bytes are 4 GiB: first layers just above each.
    for (keys, least) in [(360_000_000u64, 1u64 << 29), (2_900_000_000, 1 << 32)] {
        let mut filter = ScalableBloomFilter::with_fpr(keys, 0.01).unwrap();
        assert!(filter.size_bytes() > least && filter.size_bytes() < least * 3 / 2);
        let ends = [0, 1, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let mut results = BatchResults::new();
        filter.contains_mixed_hashes(&ends, &mut results);
        assert_eq!(results.count_ones(), 0);
        filter.insert_mixed_hashes(&ends, &mut results).unwrap();
        assert!(results.get(0) && results.get(5) && !filter.insert_mixed_hash(u64::MAX).unwrap());
        assert!(ends.iter().all(|&hash| filter.contains_mixed_hash(hash)));
    }
}

#[test]
fn invalid_parameters_are_errors() {
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(ScalableBloomFilter::with_fpr(10, rate).unwrap_err().is_invalid());
    }
    let builder = ScalableBloomFilter::builder().fpr(0.1);
    for growth in [0, 32_769] {
        assert!(builder.growth(growth).build().unwrap_err().is_invalid());
    }
    for (factor, below) in [(0, 5), (1, 5), (32_769, 5), (8, 0)] {
        assert!(builder.head_start(factor, below).build().unwrap_err().is_invalid());
    }
    assert!(ScalableBloomFilter::builder().build().unwrap_err().is_invalid());
    assert!(ScalableBloomFilter::with_fpr(u64::MAX, 0.01).unwrap_err().is_unattainable());
}

/// Where 64-bit hashes do not reach the share of a layer, the filter grows on at the rate that is
/// possible, and says so once the sum of all layers is above the target.
#[test]
fn growth_does_not_end_where_the_rate_is_out_of_reach() {
    // The target is kept at first, though the tenth layer does not reach its share.
    let mut filter = ScalableBloomFilter::with_fpr(1000, 1e-12).unwrap();
    let hashes = random(600_000, 5);
    filter.insert_mixed_hashes(&hashes, &mut BatchResults::new()).unwrap();
    assert!(
        filter.keeps_fpr() && !filter.stats().is_overfull && filter.stats().estimated_fpr <= 1e-12
    );
    assert!(filter.expected_fpr(600_000) <= 1e-12);

    let mut filter = ScalableBloomFilter::with_fpr(40, 2e-17).unwrap();
    let (one_by_one, batch) = hashes.split_at(1000);
    assert!(one_by_one.iter().all(|&hash| filter.insert_mixed_hash(hash).unwrap()));
    let mut new = BatchResults::new();
    filter.insert_mixed_hashes(&batch[..99_000], &mut new).unwrap();
    assert_eq!((new.count_ones(), filter.inserted()), (99_000, 100_000));
    assert!(hashes[..100_000].iter().all(|&hash| filter.contains_mixed_hash(hash)));
    assert!(!filter.keeps_fpr() && filter.stats().is_overfull);
    let possible = 100_000.0 / 2f64.powi(64);
    assert!((possible..4.0 * possible).contains(&filter.expected_fpr(100_000)));
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert!(ScalableBloomFilter::read_from(&file[..]).unwrap().0 == filter);
}

/// Every layer can be planned, at any rate, until its bits exceed the limit of 2⁵⁰ blocks. Nothing is
/// allocated: a capacity is planned by the memory that it takes.
#[test]
fn planned_growth_ends_only_at_the_largest_size() {
    for (first, rate) in [(100, 0.5), (100, 0.01), (100, 1e-6), (1000, 1e-12), (1, 1e-17)] {
        for share in [0, 2, 65_536] {
            let builder = ScalableBloomFilter::builder().capacity(first).fpr(rate);
            let filter = builder.growth_share(share).build().unwrap();
            let keys = filter.capacity_within(petal::ByteSize::bytes(u64::MAX));
            // From 2⁵⁴ keys on the next layer needs more than 2⁵⁰ blocks of 512 bits.
            assert!(keys > 1 << 54, "{first} {rate} {share}: {keys}");
        }
    }
}

#[test]
fn memory_usage_is_exact() {
    let mut filter = ScalableBloomFilter::with_fpr(1000, 0.01).unwrap();
    for hash in random(100_000, 1) {
        filter.insert_mixed_hash(hash).unwrap();
    }
    // A layer takes less memory than its bits and its line of the directory in a file.
    let directory = 64 * u64::from(filter.layers());
    let (used, bits) = (filter.memory_usage(), filter.size_bytes() - directory);
    assert!(used >= bits && used < bits + 4096 * u64::from(filter.layers()), "{used} {bits}");
    filter.clear();
    let fresh = ScalableBloomFilter::with_fpr(1000, 0.01).unwrap();
    assert!(filter == fresh && filter.memory_usage() == fresh.memory_usage());
}

/// Compares the checksums of a small file with recorded values.
#[test]
fn file_checksums_are_unchanged() {
    let file = small(HashSpec::default());
    let sums = kit::words(&file, 240, 2);
    let builder = ScalableBloomFilter::builder().capacity(3).fpr(0.1).growth(1).head_start(5, 10);
    let mut headed = builder.build().unwrap();
    for key in 0..40u64 {
        headed.insert(&key).unwrap();
    }
    let mut file = Vec::new();
    headed.write_to(&mut file, "").unwrap();
    assert_eq!((headed.layers(), kit::words(&file, 96, 4)), (4, vec![1, 5, 10, 0]));
    let headed = kit::words(&file, 240, 2);
    assert_eq!(headed, [0x9439_0e0f_628a_a33a, 0x0b94_9a87_9b60_e8f3], "{headed:x?}");
    let builder = ScalableBloomFilter::builder().capacity(3).fpr(0.1).growth_share(4);
    let mut stated = builder.build().unwrap();
    for key in 0..40u64 {
        stated.insert(&key).unwrap();
    }
    let mut file = Vec::new();
    stated.write_to(&mut file, "").unwrap();
    assert_eq!((stated.layers(), kit::words(&file, 96, 4)), (4, vec![2, 0, 0, 4]));
    assert!(ScalableBloomFilter::read_from(&file[..]).unwrap().0 == stated);
    let stated = kit::words(&file, 240, 2);
    assert_eq!(stated, [0xf9da_4551_1be6_4b48, 0xf231_d90a_435e_2ff3], "{stated:x?}");
    assert_eq!(sums, [0x00f5_e3f5_a270_d339, 0x25ce_3a2a_505f_618f], "{sums:x?}");
}
