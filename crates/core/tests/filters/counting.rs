//! Counting filters: comparison with an array of counters, rates after removals, files.

use petal::embed::{BlockedLayout, Layout};
use petal::{
    BatchResults, BloomFilter, Borrowed, ByteSize, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, CountingFilter, Filter, HashSpec, Membership as _, MembershipMut,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;

use crate::models;
use crate::naive::update_checksums;

// ---- The model ----------------------------------------------------------------------------------

#[test]
fn random_operations_equal_the_model() {
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let len = 20 + rng.below(400);
        models::counting::drive(&rng.bytes(len));
    }
}

/// Inputs that the fuzzer found: a filter of one counter, which is set after a union.
#[test]
fn found_operations_equal_the_model() {
    models::counting::drive(&[0xd4, 0, 0, 0, 0x11, 0xc0, 0xe2, 0x26, 0x31, 0, 0x2c]);
}

/// A union of filters has at least one key if any bit is set, and a full filter is not disjoint from
/// itself.
#[test]
fn tiny_and_full_filters_have_keys_and_overlap() {
    let mut one = ClassicCountingBloomFilter::builder().bits(1).probes(2).build().unwrap();
    let empty = one.try_clone().unwrap();
    one.insert("key");
    one.union(&empty).unwrap();
    assert!(one.inserted() == 1 && one.stats().estimated_len.is_infinite());
    for bits in 1..100 {
        let mut one = ClassicBloomFilter::with_bits(bits, 9).unwrap();
        let empty = one.try_clone().unwrap();
        one.insert("key");
        one.union(&empty).unwrap();
        assert!(one.inserted() >= 1, "{bits}");
        one.put("key");
        assert!(one.inserted() >= 1, "{bits}");
        assert!(one.union_folded(&empty).unwrap().inserted() >= 1, "{bits}");
    }
    let mut full = BloomFilter::with_bits(512, 8).unwrap();
    full.extend(0..10_000u64);
    let common = full.compare(&full).unwrap();
    assert!(full.stats().fill_ratio == 1.0 && common.intersection.value.is_nan(), "{common:?}");
    assert!(common.jaccard.value.is_nan() && common.jaccard.error.is_infinite(), "{common:?}");
    let none = full.compare(&BloomFilter::with_bits(512, 8).unwrap()).unwrap();
    assert_eq!((none.intersection.value, none.intersection.error), (0.0, 0.0));
}

/// A key that is inserted repeatedly saturates its counters.
#[test]
fn saturated_counters_are_never_decremented() {
    for width in 2..=8 {
        for probes in [8, 16] {
            let builder =
                CountingBloomFilter::builder().bits(512).probes(probes).counter_width(width);
            let mut filter = builder.build().unwrap();
            let max = filter.max_count();
            assert_eq!(max, 1 << (width - 1));
            for times in 1..max {
                filter.insert("key");
                assert_eq!((filter.count("key"), filter.saturated()), (times, 0));
            }
            for _ in 1..max {
                assert!(filter.remove("key"));
            }
            assert!(
                !filter.remove("key") && filter.stats().fill_ratio == 0.0 && filter.inserted() == 0
            );
            for _ in 0..max + 3 {
                filter.insert("key");
            }
            assert_eq!((filter.count("key"), filter.saturated()), (max, probes.into()));
            for _ in 0..3 * max {
                assert!(filter.remove("key") && filter.contains("key"));
            }
            filter.clear();
            assert!(!filter.contains("key") && filter.count("key") == 0);
        }
    }
}

/// After removals the bits are those of the remaining keys.
#[test]
fn frozen_filter_equals_the_plain_filter() {
    fn test<L: Layout>(plain: Result<Filter<L>, petal::Error>, keys: u64) {
        let mut plain = plain.unwrap();
        let mut filter = CountingFilter::<L>::builder()
            .capacity(keys)
            .fpr(plain.target_fpr())
            .counter_width(6)
            .build()
            .unwrap();
        assert_eq!(filter.layout(), plain.layout());
        let stay: Vec<u64> = (0..keys).collect();
        let go: Vec<u64> = (keys..2 * keys).collect();
        let mut results = BatchResults::new();
        filter.insert_batch(&go, &mut results);
        filter.insert_batch(&stay, &mut results);
        filter.remove_batch(&go, &mut results);
        assert_eq!(results.count_ones(), keys);
        plain.insert_batch(&stay, &mut results);
        let frozen = filter.freeze().unwrap();
        assert!(frozen == plain && filter.saturated() == 0);
        // Each inserted false positive, and each key removed with an equal one, changes the count by one.
        let off = filter.inserted().abs_diff(keys);
        assert!(off < keys / 10, "{off} of {keys}");
        assert_eq!(filter.stats().estimated_len, plain.stats().estimated_len);
        assert_eq!(filter.stats().estimated_fpr, plain.stats().estimated_fpr);
    }
    test(BloomFilter::with_fpr(5000, 0.01), 5000);
    test(BloomFilter::with_fpr(5000, 1e-4), 5000);
    test(petal::ClassicBloomFilter::with_fpr(5000, 0.01), 5000);
}

#[test]
fn union_equals_filter_of_both() {
    fn test<L: Layout>() {
        let empty =
            || CountingFilter::<L>::builder().capacity(300).fpr(0.02).counter_width(3).build();
        let [mut ours, mut theirs, mut both] = [(); 3].map(|()| empty().unwrap());
        for key in 0..600u64 {
            ours.insert(&(key / 2));
            theirs.insert(&(key / 4 * 3));
            both.insert(&(key / 2));
            both.insert(&(key / 4 * 3));
        }
        ours.union(&theirs).unwrap();
        assert!(ours == both && ours.saturated() > 0);
        let wider = CountingFilter::<L>::builder()
            .capacity(300)
            .fpr(0.02)
            .counter_width(4)
            .build()
            .unwrap();
        let before = ours.try_clone().unwrap();
        assert!(ours.union(&wider).unwrap_err().to_string().contains("width"));
        assert!(ours.union(&wider).unwrap_err().is_incompatible() && ours == before);
    }
    test::<BlockedLayout>();
    test::<petal::embed::ClassicLayout>();
}

#[test]
fn builder_rejects_invalid_parameters() {
    let builder = || CountingBloomFilter::builder().capacity(1000).fpr(0.01);
    for width in [0, 1, 9, u32::MAX] {
        assert!(builder().counter_width(width).build().unwrap_err().is_invalid());
    }
    assert!(CountingBloomFilter::builder().build().unwrap_err().is_invalid());
    assert!(CountingBloomFilter::with_fpr(1 << 60, 0.01).unwrap_err().is_unattainable());
    assert!(CountingBloomFilter::with_fpr(1000, 0.0).unwrap_err().is_invalid());
    assert!(CountingBloomFilter::with_fpr(1 << 44, 0.01).unwrap_err().is_alloc());
    let large = CountingBloomFilter::builder().bits(1 << 59).probes(8).counter_width(8);
    assert!(large.build().unwrap_err().is_alloc());
    let size = builder().build().unwrap().size_bytes();
    assert!(builder().memory(ByteSize::bytes(size)).build().is_ok());
    assert!(builder().memory(ByteSize::bytes(size - 1)).build().unwrap_err().is_invalid());
    let fitted = CountingBloomFilter::builder()
        .capacity(1000)
        .memory(ByteSize::bytes(size))
        .build()
        .unwrap();
    assert!(fitted.size_bytes() <= size && fitted.target_fpr() <= 0.011);
    assert!(
        CountingBloomFilter::builder()
            .capacity(9)
            .memory(ByteSize::bytes(255))
            .build()
            .unwrap_err()
            .is_invalid()
    );
}

#[test]
fn trait_methods_equal_inherent_methods() {
    let mut filter = ClassicCountingBloomFilter::with_fpr(1000, 0.01).unwrap();
    let hashes: Vec<u64> =
        (0..500u64).map(|key| petal::Key::hash_with(&key, &filter.hash_spec())).collect();
    let mut results = BatchResults::new();
    let as_dyn: &mut dyn MembershipMut = &mut filter;
    as_dyn.insert_mixed_hashes(&hashes, &mut results).unwrap();
    as_dyn.remove_mixed_hashes(&hashes[..100], &mut results).unwrap();
    assert_eq!(results.count_ones(), 100);
    as_dyn.contains_mixed_hashes(&hashes, &mut results);
    assert!((400..450).contains(&results.count_ones()));
    assert_eq!(as_dyn.filter_type().name(), "counting-classic");
    assert!(as_dyn.stats().layout.ends_with("counters of 4 bits"), "{}", as_dyn.stats().layout);
    let numbers = as_dyn.stats().parameters;
    assert!(numbers.contains(&("width", 4)) && numbers.contains(&("saturated", 0)));
    assert!(as_dyn.stats().capacity_left.unwrap() > 550 && !as_dyn.stats().is_overfull);
    // Two stores and the struct.
    let size = size_of_val(&filter) as u64;
    assert_eq!(filter.memory_usage(), filter.size_bytes() + size);
}

// ---- Rates --------------------------------------------------------------------------------------

/// Returns the number of false positives among random queries.
fn found<L: Layout>(filter: &CountingFilter<L>, rng: &mut Rng, queries: u64) -> u64 {
    let mut results = BatchResults::new();
    let hashes: Vec<u64> = (0..queries).map(|_| rng.next_u64()).collect();
    filter.contains_mixed_hashes(&hashes, &mut results);
    results.count_ones()
}

/// After insertions and removals the rate is that of the remaining keys: at a quarter of the
/// capacity, at the capacity, and at twice the capacity. Filters are large, so that they differ
/// little and the bound is that of the queries.
#[test]
fn rate_is_that_of_the_remaining_keys() {
    fn test<L: Layout>(rate: f64, seed: u64) {
        const KEYS: u64 = 60_000;
        const QUERIES: u64 = 400_000;
        let comparisons = 3.0 * 6.0;
        let mut rng = Rng::new(seed);
        let builder = CountingFilter::<L>::builder().capacity(KEYS).fpr(rate).counter_width(5);
        let mut filter = builder.build().unwrap();
        let mut results = BatchResults::new();
        let mut hashes: Vec<u64> = (0..2 * KEYS).map(|_| rng.next_u64()).collect();
        filter.insert_mixed_hashes(&hashes, &mut results);
        for left in [2 * KEYS, KEYS, KEYS / 4] {
            let gone: Vec<u64> = hashes.drain(left as usize..).collect();
            filter.remove_mixed_hashes(&gone, &mut results);
            assert_eq!(results.count_ones(), gone.len() as u64);
            let confidence = 1.0 - 0.001 / comparisons;
            let (low, high) = binomial_range(QUERIES, filter.expected_fpr(left), confidence);
            let found = found(&filter, &mut rng, QUERIES);
            assert!((low..=high).contains(&found), "{rate} {left}: {found} not {low} to {high}");
            assert!((filter.stats().estimated_len / left as f64 - 1.0).abs() < 0.01);
            assert!(
                hashes.iter().all(|&hash| filter.contains_mixed_hash(hash)),
                "a present key is absent"
            );
        }
    }
    for (seed, rate) in [0.1, 0.01, 1e-4].into_iter().enumerate() {
        test::<BlockedLayout>(rate, seed as u64);
        test::<petal::embed::ClassicLayout>(rate, 100 + seed as u64);
    }
}

/// Counters of different keys are nearly independent, so the bound is binomial.
#[test]
fn saturated_share_equals_prediction() {
    fn test<L: Layout>(width: u32, keys: u64) {
        let builder =
            CountingFilter::<L>::builder().capacity(100_000).fpr(0.01).counter_width(width);
        let mut filter = builder.build().unwrap();
        let mut rng = Rng::new(width.into());
        let hashes: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
        filter.insert_mixed_hashes(&hashes, &mut BatchResults::new());
        let bits = filter.as_filter().size_bytes() * 8;
        let share = filter.expected_saturated(keys, 0.0) / bits as f64;
        let (low, high) = binomial_range(bits, share, 0.999);
        let saturated = filter.saturated();
        assert!((low..=high).contains(&saturated), "{width}: {saturated} not {low} to {high}");
        assert!(saturated > 10, "only {saturated} saturated counters");
    }
    test::<BlockedLayout>(2, 100_000);
    test::<BlockedLayout>(3, 100_000);
    test::<BlockedLayout>(4, 300_000);
    test::<petal::embed::ClassicLayout>(2, 100_000);
    test::<petal::embed::ClassicLayout>(3, 100_000);
    test::<petal::embed::ClassicLayout>(4, 300_000);
}

// ---- Long use -----------------------------------------------------------------------------------

/// Returns a filter whose keys were replaced this number of times, the oldest first.
fn churned<L: Layout>(keys: u64, rate: f64, width: u32, turnovers: u64) -> CountingFilter<L> {
    let builder = CountingFilter::<L>::builder().capacity(keys).fpr(rate).counter_width(width);
    let mut filter = builder.build().unwrap();
    let hash = |at: u64| Rng::new(at).next_u64();
    (0..keys).for_each(|at| _ = filter.insert_mixed_hash(hash(at)));
    for at in 0..keys * turnovers {
        assert!(filter.remove_mixed_hash(hash(at)), "{at}");
        filter.insert_mixed_hash(hash(at + keys));
    }
    let from = keys * turnovers;
    assert!((from..from + keys).all(|at| filter.contains_mixed_hash(hash(at))));
    filter
}

fn long_use<L: Layout>(keys: u64, width: u32, turnovers: u64) {
    let filter = churned::<L>(keys, 0.01, width, turnovers);
    let expected = filter.expected_saturated(keys, turnovers as f64);
    let (saturated, share) = (filter.saturated(), expected / filter.layout().bits() as f64);
    // Five standard errors, plus the error of the calculation of 20 %.
    let error = 5.0 * expected.sqrt() + 0.2 * expected;
    assert!(
        (saturated as f64 - expected).abs() < error,
        "{saturated} of {expected}, width {width}"
    );
    // The drift in the documentation.
    let drift = filter.inserted().abs_diff(keys) as f64;
    let removed = (keys * turnovers) as f64;
    let rate = filter.stats().estimated_fpr.max(0.01);
    assert!(drift < 5.0 * (2.0 * rate * removed).sqrt() + 0.02 * keys as f64, "{drift}");
    let deviation = filter.stats().estimated_len / keys as f64 - 1.0;
    assert!((-0.05..0.05 + 3.0 * share).contains(&deviation), "{deviation} {share}");
}

#[test]
fn saturated_share_after_turnovers_equals_prediction() {
    long_use::<BlockedLayout>(2000, 4, 1000);
    long_use::<petal::embed::ClassicLayout>(2000, 4, 500);
    long_use::<BlockedLayout>(2000, 3, 20);
}

/// The 10,000 turnovers of the documentation.
#[test]
#[ignore = "ten seconds"]
fn ten_thousand_turnovers() {
    long_use::<BlockedLayout>(1000, 4, 10_000);
    long_use::<petal::embed::ClassicLayout>(1000, 4, 10_000);
}

/// A filter at its capacity is not overfull by chance, with any counter width.
#[test]
fn filters_at_capacity_are_not_overfull() {
    for width in [2, 4, 8] {
        let overfull = (0..400u64).filter(|seed| {
            let builder =
                CountingBloomFilter::builder().capacity(1000).fpr(0.01).counter_width(width);
            let mut filter = builder.build().unwrap();
            let mut rng = Rng::new(seed + 1);
            (0..1000).for_each(|_| _ = filter.insert_mixed_hash(rng.next_u64()));
            assert_eq!(filter.stats().is_overfull, filter.as_filter().stats().is_overfull);
            filter.stats().is_overfull
        });
        // Three standard deviations: one filter in 700.
        assert!(overfull.count() <= 6, "width {width}");
    }
}

// ---- Files --------------------------------------------------------------------------------------

/// Returns small files of all layouts.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    fn file<L: Layout>(bits: u64, probes: u32, width: u32, metadata: &str) -> Vec<u8> {
        let keyed = HashSpec::keyed([7; 16]);
        let builder = CountingFilter::<L>::builder().bits(bits).probes(probes).counter_width(width);
        let mut filter = builder.hash(keyed).build().unwrap();
        for key in 0..60u64 {
            filter.insert(&(key / 3));
        }
        let mut file = Vec::new();
        filter.write_to(&mut file, metadata).unwrap();
        file
    }
    vec![
        ("line", file::<BlockedLayout>(512, 5, 4, "")),
        ("pair", file::<BlockedLayout>(1024, 11, 2, "{}")),
        ("classic", file::<petal::embed::ClassicLayout>(500, 7, 3, "")),
    ]
}

/// Opens the bytes in every way, and queries opened filters.
fn try_all(bytes: &[u8]) -> [bool; 4] {
    fn one<L: Layout>(bytes: &[u8]) -> [bool; 2] {
        let borrowed = CountingFilter::<L, Borrowed<'_>>::from_bytes(bytes);
        if let Ok(filter) = &borrowed {
            for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let _ = (filter.contains_mixed_hash(hash), filter.count_mixed_hash(hash));
            }
            let _ = (
                filter.stats().parameters,
                filter.stats().estimated_fpr,
                filter.stats().capacity_left,
            );
            let mut copy = filter.try_clone().unwrap();
            for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let _ = (
                    copy.remove_mixed_hash(hash),
                    copy.insert_mixed_hash(hash),
                    copy.remove_mixed_hash(hash),
                );
            }
            let _ = copy.union(filter);
        }
        let read = CountingFilter::<L>::read_from(bytes);
        if let Ok((filter, metadata)) = &read {
            let mut again = Vec::new();
            filter.write_to(&mut again, metadata).unwrap();
            // Except the number of keys, which a reader may reduce.
            assert!(again.len() == bytes.len() && again[256..] == bytes[256..]);
        }
        [borrowed.is_ok(), read.is_ok()]
    }
    let mut buffer = vec![0; bytes.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    buffer[start..start + bytes.len()].copy_from_slice(bytes);
    let bytes = &buffer[start..start + bytes.len()];
    let ([a, b], [c, d]) = (one::<BlockedLayout>(bytes), one::<petal::embed::ClassicLayout>(bytes));
    [a, c, b, d]
}

#[test]
fn corrupted_files_are_errors() {
    for (name, file) in files() {
        assert_eq!(try_all(&file).iter().filter(|ok| **ok).count(), 2, "{name}");
        for short in truncations(&file) {
            assert_eq!(try_all(short), [false; 4], "{name} cut to {}", short.len());
        }
        for longer in extensions(&file) {
            assert_eq!(try_all(&longer), [false; 4], "{name} with trailing bytes");
        }
        for (bit, damaged) in bit_flips(&file) {
            // All bits of the header and the data, and a sample of the padding.
            if bit < 300 * 8 || bit % 61 == 0 || bit >= 4096 * 8 {
                assert_eq!(try_all(&damaged)[2..], [false; 2], "{name} with bit {bit} flipped");
            }
        }
    }
}

/// Bit flips with valid checksums are errors, or filters that write the same bytes.
#[test]
fn bit_flips_with_valid_checksums_are_errors_or_valid() {
    let mut taken = 0;
    for (name, file) in files() {
        for (bit, mut modified) in bit_flips(&file) {
            let at = bit / 8;
            if (240..256).contains(&at) || (256..4096).contains(&at) && bit % 61 != 0 {
                continue;
            }
            update_checksums(&mut modified);
            let [.., line, classic] = try_all(&modified);
            taken += u32::from(line || classic);
            let right = match at {
                // Metadata length, bits, type, hash, probes, lanes, seed, numbers: some flips are valid.
                10..12 | 32..42 | 64..66 | 48..64 | 72..96 => true,
                // A counter that differs by one, but none that is set where its bit is clear.
                4096.. => true,
                _ => !(line || classic),
            };
            assert!(right, "{name} with bit {bit} flipped was accepted");
        }
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let mut modified = file.clone();
            for _ in 0..1 + rng.below(4) {
                let at = *rng.pick(&[24, 36, 38, 40, 64, 72, 80, 88, 96, 97, 103, 104]);
                modified[at + rng.below(2)] = *rng.pick(&[0, 1, 2, 3, 4, 8, 9, 16, 64, 128, 255]);
            }
            update_checksums(&mut modified);
            try_all(&modified);
        }
        for width in [0u64, 1, 9, 1 << 32 | 4, u64::MAX] {
            let mut modified = file.clone();
            modified[96..104].copy_from_slice(&width.to_le_bytes());
            update_checksums(&mut modified);
            assert_eq!(try_all(&modified), [false; 4], "{name}: width {width}");
        }
    }
    assert!(taken > 100, "{taken}");
}

/// Planes set where the bit is clear, and set bits after the last one, are errors.
#[test]
fn files_that_no_writer_creates_are_errors() {
    for (name, file) in files() {
        let lines = match name {
            "pair" => 2,
            _ => 1,
        };
        let clear = (0..500).find(|bit| file[4096 + bit / 8] >> (bit % 8) & 1 == 0).unwrap();
        let mut modified = file.clone();
        modified[4096 + 64 * lines + clear / 8] |= 1 << (clear % 8);
        update_checksums(&mut modified);
        let error = CountingBloomFilter::read_from(&modified[..]).unwrap_err();
        let other = ClassicCountingBloomFilter::read_from(&modified[..]).unwrap_err();
        assert!(error.is_corrupt() || other.is_corrupt(), "{name}: {error}");
        assert!(
            [error, other].iter().any(|error| error.to_string().contains("counters of clear bits"))
        );
        // Opening without verification succeeds, and the filter can be queried.
        assert!(try_all(&modified)[..2].contains(&true), "{name}");
    }
    let (_, mut modified) = files().pop().unwrap();
    modified[4096 + 63] |= 0x80; // bit 511 of 500
    update_checksums(&mut modified);
    assert!(ClassicCountingBloomFilter::read_from(&modified[..]).unwrap_err().is_corrupt());
    // A file of one type is not a file of the other, or of a plain filter.
    let (_, line) = files().swap_remove(0);
    assert!(ClassicCountingBloomFilter::read_from(&line[..]).unwrap_err().is_invalid());
    assert!(BloomFilter::read_from(&line[..]).unwrap_err().is_invalid());
}

/// The header declares a petabyte, which must not be allocated.
#[test]
fn declared_size_without_data_is_an_error() {
    let (_, mut file) = files().swap_remove(0);
    let blocks = 1u64 << 44;
    file[24..32].copy_from_slice(&(blocks * 64 * 4).to_le_bytes());
    file[64..72].copy_from_slice(&blocks.to_le_bytes());
    update_checksums(&mut file);
    assert!(CountingBloomFilter::read_from(&file[..]).unwrap_err().is_corrupt());
    assert!(!try_all(&file).contains(&true));
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Around 2^32 counters and 2^32 bytes of bits, in sparse memory. Skipped if it cannot be allocated.
#[test]
fn sizes_around_32_bits() {
    fn test<L: Layout>(bits: u64, probes: u32) {
        let builder = CountingFilter::<L>::builder().bits(bits).probes(probes).counter_width(2);
        let mut filter = match builder.build() {
            Err(error) if error.is_alloc() => return,
            filter => filter.unwrap(),
        };
        let mut results = BatchResults::new();
        // The first and the last block, and those around 2^32.
        let mut hashes = vec![0, u64::MAX, (1 << 63) + 12345, u64::MAX / 2, u64::MAX - (1 << 33)];
        let border = |border| u64::try_from((1u128 << (border + 64)) / u128::from(bits)).ok();
        hashes.extend([31, 32, 34].into_iter().filter_map(border));
        for &hash in &hashes {
            assert!(
                filter.insert_mixed_hash(hash) && filter.count_mixed_hash(hash) == 1,
                "{bits} {hash:#x}"
            );
        }
        filter.contains_mixed_hashes(&hashes, &mut results);
        assert_eq!(results.count_ones(), hashes.len() as u64);
        filter.remove_mixed_hashes(&hashes, &mut results);
        assert_eq!((results.count_ones(), filter.inserted()), (hashes.len() as u64, 0));
        filter.contains_mixed_hashes(&hashes, &mut results);
        assert_eq!(results.count_ones(), 0);
    }
    for bits in [(1 << 32) - 512, 1 << 32, (1 << 32) + 512, 1 << 35, (1 << 35) + 1024] {
        test::<BlockedLayout>(bits, 8);
        test::<BlockedLayout>(bits, 16);
        test::<petal::embed::ClassicLayout>(bits + 1, 7);
    }
}

// ---- The document -------------------------------------------------------------------------------

/// The data of the example in docs/reference/format-bloom.md.
#[test]
fn documented_example_is_correct() {
    let builder = CountingBloomFilter::builder().bits(512).probes(5).counter_width(3);
    let mut filter = builder.build().unwrap();
    for key in ["one", "two", "two", "three", "three", "three"] {
        filter.insert(key);
    }
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    let row = |(row, bytes): (usize, &[u8])| {
        let hex = |half: &[u8]| {
            half.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        };
        format!("{:08x}  {}  {}", 4096 + 16 * row, hex(&bytes[..8]), hex(&bytes[8..]))
    };
    // The page has the line of bits in another example.
    let dump: Vec<String> = file[4096..].chunks(16).enumerate().skip(4).map(row).collect();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/format-bloom.md");
    let document = std::fs::read_to_string(document).unwrap();
    let dump = dump.join("\n");
    assert!(document.contains(&dump), "the document should show\n{dump}");
    assert_eq!((file[10], file[96]), (3, 3));
}
