//! Windowed filters: comparison with a model with a clock, measured rates, corrupted files, limits.

use std::collections::{HashSet, VecDeque};

use petal::{BatchResults, Borrowed, HashSpec, Membership, WindowedBloomFilter};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;

use crate::kit::{self, Aligned};
use crate::models::windowed as model;
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

const QUERIES: u64 = 400_000;

/// Returns the number of random hashes that are found.
fn false_positives(filter: &WindowedBloomFilter, seed: u64) -> u64 {
    let mut found = BatchResults::new();
    filter.contains_mixed_hashes(&random(QUERIES as usize, seed << 32), &mut found);
    found.count_ones()
}

/// Returns whether a count is within the bounds of a rate, which varies between small filters.
fn near(count: u64, rate: f64, stray: f64) -> bool {
    let low = binomial_range(QUERIES, (rate / stray).min(1.0), 0.999).0;
    let high = binomial_range(QUERIES, (rate * stray).min(1.0), 0.999).1;
    (low..=high).contains(&count)
}

/// In the steady state the rate equals the estimate from the bits; its maximum is the predicted rate
/// and at most the target.
#[test]
fn window_of_keys_keeps_its_target_fpr() {
    for (rate, generations) in [(0.1, 2), (0.01, 5), (0.01, 12), (1e-3, 4), (1e-3, 8)] {
        let builder = WindowedBloomFilter::builder().capacity(40_000).fpr(rate);
        let mut filter = builder.generations(generations).build().unwrap();
        let mut highest: f64 = 0.0;
        let mut results = BatchResults::new();
        for step in 0..150 {
            let keys = random(1000, 1000 * step + u64::from(generations));
            filter.insert_mixed_hashes(&keys, &mut results);
            filter.contains_mixed_hashes(&keys, &mut results);
            assert_eq!(results.count_ones(), 1000);
            highest = highest.max(filter.stats().estimated_fpr);
            if step % 30 == 29 {
                let count = false_positives(&filter, 7 + step);
                assert!(near(count, filter.stats().estimated_fpr, 1.0), "{rate} {step} {count}");
                let len = filter.stats().estimated_len;
                let sum = filter.inserted() as f64;
                assert!((len / sum - 1.0).abs() < 0.03, "{len} {sum}");
            }
        }
        let predicted = filter.expected_fpr(40_000);
        // Pairs of lines may keep a lower rate than asked for.
        let least = predicted.max(rate / 2.0) * 0.85;
        assert!(predicted <= rate && highest < rate * 1.04 && highest > least, "{highest}");
        assert!(!filter.stats().is_overfull);
    }
}

/// At the planned number of keys, at fewer, and at more, which makes the filter overfull.
#[test]
fn window_of_time_has_the_predicted_fpr() {
    for flow in [500u64, 1000, 3000] {
        for (rate, generations) in [(0.1, 3), (0.01, 5), (1e-3, 6)] {
            let builder = WindowedBloomFilter::builder().capacity(60_000).fpr(rate).window(60);
            let mut filter = builder.generations(generations).build().unwrap();
            let mut results = BatchResults::new();
            let width = 60u64.div_ceil(u64::from(generations) - 1);
            // Until just before a generation expires.
            for now in 0..width * 12 {
                filter.advance_to(1_000_000 * width * u64::from(generations) + now);
                filter.insert_mixed_hashes(&random(flow as usize, now), &mut results);
            }
            let count = false_positives(&filter, flow + 5);
            assert!(near(count, filter.stats().estimated_fpr, 1.0), "{rate} {flow} {count}");
            let predicted = filter.expected_fpr(flow * 60);
            assert!(near(count, predicted, 1.03), "{rate} {flow} {count} {predicted}");
            assert_eq!(filter.stats().is_overfull, flow > 1000, "{rate} {flow}");
            assert_eq!(filter.stats().capacity_left.unwrap() > 0, flow <= 1000);
        }
    }
}

/// If the window is not divisible, generations are longer, and sized for their keys.
#[test]
fn uneven_generations_keep_the_target_fpr() {
    for (ticks, generations) in [(1u64, 4), (1, 12), (4, 4), (5, 4), (7, 6), (60, 12), (90, 4)] {
        let flow = 12_000u64.div_ceil(ticks);
        let builder = WindowedBloomFilter::builder().capacity(flow * ticks).fpr(0.01).window(ticks);
        let mut filter = builder.generations(generations).build().unwrap();
        let mut results = BatchResults::new();
        let width = ticks.div_ceil(u64::from(generations) - 1);
        for now in 0..width * u64::from(generations) * 2 {
            filter.advance_to(width * u64::from(generations) * 10 + now);
            filter.insert_mixed_hashes(&random(flow as usize, now), &mut results);
        }
        let count = false_positives(&filter, ticks + 5);
        assert!(near(count, filter.expected_fpr(flow * ticks), 1.04), "{ticks} {generations}");
        assert!(filter.expected_fpr(flow * ticks) <= 0.01 && !filter.stats().is_overfull);
    }
}

/// Expired keys are found as often as keys that were never inserted.
#[test]
fn expired_keys_are_absent() {
    let builder = WindowedBloomFilter::builder().capacity(50_000).fpr(0.01).window(100);
    let mut filter = builder.generations(5).build().unwrap();
    let mut results = BatchResults::new();
    let mut days = Vec::new();
    for now in 0..1000 {
        filter.advance_to(now);
        days.push(random(500, now));
        filter.insert_mixed_hashes(&days[now as usize], &mut results);
    }
    let rate = filter.stats().estimated_fpr;
    let (mut old, mut found_old) = (0, 0);
    for (day, hashes) in days.iter().enumerate() {
        filter.contains_mixed_hashes(hashes, &mut results);
        if 999 - day <= 100 {
            assert_eq!(results.count_ones(), 500, "day {day}");
        } else if 999 - day >= 125 {
            old += 500;
            found_old += results.count_ones();
        }
    }
    let (low, high) = binomial_range(old, rate, 0.999);
    assert!((low..=high).contains(&found_old), "{found_old} of {old}: {low} {high}");
    filter.advance_to(100_000);
    assert_eq!(
        (filter.inserted(), filter.stats().fill_ratio, filter.stats().estimated_len),
        (0, 0.0, 0.0)
    );
    filter.advance_to(5);
    assert_eq!(filter.now(), 100_000);
}

/// A key that is inserted repeatedly is found as long as it is.
#[test]
fn repeated_keys_stay() {
    let mut filter = WindowedBloomFilter::with_fpr(1000, 0.01).unwrap();
    assert!(filter.insert("again"));
    for hash in random(100_000, 3) {
        filter.insert_mixed_hash(hash);
        if hash % 64 == 0 {
            assert!(!filter.insert("again"));
        }
    }
}

/// A window with exact sets as generations.
struct Exact {
    /// The newest first.
    generations: VecDeque<HashSet<u64>>,
    share: usize,
}

impl Exact {
    fn new(keys: usize, generations: usize) -> Self {
        let share = keys.div_ceil(generations - 1);
        Self { generations: vec![HashSet::new(); generations].into(), share }
    }

    fn insert(&mut self, key: u64, if_absent: bool) -> bool {
        let new = !self.generations.iter().any(|keys| keys.contains(&key));
        let newest = &self.generations[0];
        if (if_absent && !new) || newest.contains(&key) {
            return new;
        }
        if newest.len() == self.share {
            self.generations.pop_back();
            self.generations.push_front(HashSet::new());
        }
        self.generations[0].insert(key);
        new
    }
}

/// Batches of any size, repeated keys within a batch, and windows much smaller than a batch.
#[test]
fn batches_equal_single_operations() {
    for seed in 0..160 {
        let mut rng = Rng::new(seed);
        let keys = 1 + rng.below(if seed % 4 == 0 { 5000 } else { 300 });
        let (generations, if_absent) = (2 + rng.below(11), seed % 2 == 0);
        let distinct = 1 + rng.below(keys * 2) as u64;
        let builder = WindowedBloomFilter::builder().capacity(keys as u64).fpr(1e-12);
        let builder = builder.generations(generations as u32);
        let (mut single, mut batched) = (builder.build().unwrap(), builder.build().unwrap());
        let mut exact = Exact::new(keys, generations);
        let stream: Vec<u64> = (0..12_000).map(|_| rng.next_u64() % distinct).collect();
        let longest = [3, 100, 5000][seed as usize % 3];
        let (mut rest, mut results) = (&stream[..], BatchResults::new());
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at((1 + rng.below(longest)).min(rest.len()));
            rest = behind;
            match if_absent {
                true => batched.insert_batch_if_absent(batch, &mut results),
                false => batched.insert_batch(batch, &mut results),
            }
            for (at, key) in batch.iter().enumerate() {
                let expected = exact.insert(*key, if_absent);
                let one = match if_absent {
                    true => single.insert_if_absent(key),
                    false => single.insert(key),
                };
                assert_eq!((results.get(at), one), (expected, expected), "seed {seed}");
            }
            assert!(single == batched, "seed {seed}");
        }
    }
}

/// A present key keeps its age.
#[test]
fn insert_if_absent_does_not_renew() {
    let mut filter = WindowedBloomFilter::with_fpr(300, 1e-9).unwrap();
    assert!(filter.insert_if_absent("first"));
    let mut due = 0;
    for key in 0..500u64 {
        assert!(filter.insert_if_absent(&key) && !filter.insert_if_absent(&key));
        if filter.insert_if_absent("first") {
            due = key + 1;
            break;
        }
    }
    assert!((300..=400).contains(&due), "{due}");
}

/// Returns files of windows of keys and of time, with blocks of one cache line and of two.
fn small(by_time: bool, rate: f64, spec: HashSpec) -> Vec<u8> {
    let mut builder =
        WindowedBloomFilter::builder().capacity(10).fpr(rate).generations(3).hash(spec);
    if by_time {
        builder = builder.window(20);
    }
    let mut filter = builder.build().unwrap();
    for key in 0..23u64 {
        filter.advance_to(key);
        filter.insert(&key);
    }
    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").unwrap();
    file
}

/// Refused, or a filter that results; whether it was refused.
fn refused(bytes: &[u8]) -> bool {
    let aligned = Aligned::new(bytes);
    if let Ok(borrowed) = WindowedBloomFilter::<Borrowed<'_>>::from_bytes(aligned.bytes()) {
        let mut found = BatchResults::new();
        borrowed.contains_mixed_hashes(&[0, 1, u64::MAX, 1 << 63], &mut found);
        let _ = (
            borrowed.stats().estimated_len,
            borrowed.stats().estimated_fpr,
            borrowed.stats().fill_ratio,
        );
        let _ = (
            borrowed.inserted(),
            borrowed.stats().capacity_left,
            borrowed.block_fills(4),
            borrowed.now(),
        );
    }
    let Ok((mut read, _)) = WindowedBloomFilter::read_from(bytes) else { return true };
    for (hash, step) in random(60, 9).into_iter().zip(0..) {
        read.insert_mixed_hash(hash);
        assert!(read.contains_mixed_hash(hash));
        read.advance_to(read.now().saturating_add(step / 8));
    }
    read.advance_to(u64::MAX);
    read.insert_mixed_hash(1);
    assert!(read.contains_mixed_hash(1));
    false
}

fn files() -> [Vec<u8>; 4] {
    let keyed = HashSpec::keyed([9; 16]);
    [(false, 0.1), (true, 0.1), (false, 1e-5), (true, 1e-5)].map(|(by_time, rate)| {
        small(by_time, rate, if by_time { keyed } else { HashSpec::default() })
    })
}

#[test]
fn corrupted_files_are_errors() {
    for file in files() {
        assert!(!refused(&file));
        assert!(truncations(&file).step_by(3).all(refused));
        assert!(extensions(&file).all(|longer| refused(&longer)));
        assert!(bit_flips(&file).all(|(_, flipped)| refused(&flipped)));
    }
}

#[test]
fn modified_files_with_valid_checksums_are_errors_or_safe() {
    for file in files() {
        let by_time = kit::words(&file, 104, 1)[0] > 0;
        for (bit, mut flipped) in bit_flips(&file) {
            let at = bit / 8;
            // Except the checksums and the padding.
            if (8..240).contains(&at) || at >= 4096 {
                update_checksums(&mut flipped);
                let refused = refused(&flipped);
                let fixed = (42..48).contains(&at) || (64..72).contains(&at);
                let counts = (88..104).contains(&at) || (120..240).contains(&at);
                assert!(refused || !(fixed || counts), "byte {at}");
            }
        }
        let is_refused_with = |at: usize, word: u64| {
            let mut file = file.clone();
            file[at..at + 8].copy_from_slice(&word.to_le_bytes());
            update_checksums(&mut file);
            refused(&file)
        };
        for word in [0, 1, 2, 4, 13, 1 << 32 | 3, u64::MAX] {
            assert!(is_refused_with(96, word), "{word} generations");
        }
        assert!(
            [0, 1 << 50, 1 << 60, u64::MAX].into_iter().all(|blocks| is_refused_with(64, blocks))
        );
        assert!(
            is_refused_with(72, 0)
                && is_refused_with(80, 0)
                && is_refused_with(80, f64::NAN.to_bits())
        );
        // Any clock value is valid, but not any number of rotations.
        assert_eq!(is_refused_with(112, u64::MAX), !by_time);
        assert!(is_refused_with(120, u64::MAX));
    }
}

/// Uses sparse memory: only accessed pages are allocated.
#[test]
fn generations_beyond_32_bits() {
    // 2^32 bits are 512 MiB, 2^32 bytes are 4 GiB.
    for (keys, least) in [(260_000_000u64, 1u64 << 29), (2_100_000_000, 1 << 32)] {
        let mut filter = WindowedBloomFilter::with_fpr(keys, 0.01).unwrap();
        assert!(filter.size_bytes() > least && filter.size_bytes() < least * 3 / 2);
        let ends = [0, 1, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let mut results = BatchResults::new();
        filter.contains_mixed_hashes(&ends, &mut results);
        assert_eq!(results.count_ones(), 0);
        filter.insert_mixed_hashes(&ends, &mut results);
        assert!(results.get(0) && results.get(5) && !filter.insert_mixed_hash(u64::MAX));
        assert!(ends.iter().all(|&hash| filter.contains_mixed_hash(hash)));
    }
}

#[test]
fn invalid_parameters_are_errors() {
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(WindowedBloomFilter::with_fpr(10, rate).unwrap_err().is_invalid());
    }
    let builder = WindowedBloomFilter::builder().capacity(10).fpr(0.1);
    for generations in [0, 1, 13] {
        assert!(builder.generations(generations).build().unwrap_err().is_invalid());
    }
    assert!(builder.window(0).build().unwrap_err().is_invalid());
    assert!(WindowedBloomFilter::builder().fpr(0.1).build().unwrap_err().is_invalid());
    assert!(WindowedBloomFilter::with_fpr(u64::MAX, 0.01).unwrap_err().is_unattainable());
    assert!(WindowedBloomFilter::with_fpr(1 << 44, 0.01).unwrap_err().is_alloc());
    // The smallest windows.
    for generations in [2, 12] {
        let mut filter = builder.capacity(0).generations(generations).build().unwrap();
        assert!(filter.insert("a") && !filter.insert("a") && filter.contains("a"));
        let mut longest = WindowedBloomFilter::builder().capacity(1).fpr(0.1).window(u64::MAX);
        longest = longest.generations(generations);
        let mut longest = longest.build().unwrap();
        longest.insert("a");
        longest.advance_to(u64::MAX);
        assert!(longest.contains("a"));
    }
}

#[test]
fn memory_usage_is_exact() {
    let filter = WindowedBloomFilter::with_fpr(100_000, 0.01).unwrap();
    let (used, bits) = (filter.memory_usage(), filter.size_bytes());
    assert!(used >= bits && used < bits + 8192, "{used} {bits}");
}

/// A server may have a million windows of a few hundred keys.
#[test]
fn small_windows_use_little_memory() {
    // Including 24 bytes for the address and length of the memory.
    assert!(size_of::<WindowedBloomFilter>() <= 112);
    for by_time in [false, true] {
        let mut builder = WindowedBloomFilter::builder().capacity(200).fpr(0.01);
        if by_time {
            builder = builder.window(7 * 86_400_000);
        }
        let mut filter = builder.build().unwrap();
        let one = 1.0 - 0.99f64.powf(0.25);
        let ideal = 200.0 * 4.0 / 3.0 * -one.log2() / std::f64::consts::LN_2;
        assert!((filter.size_bytes() * 8) as f64 <= 1.3 * ideal, "{ideal}");
        // Only the struct and its bits.
        filter.insert_mixed_hashes(&random(1000, 3), &mut BatchResults::new());
        assert_eq!(filter.memory_usage(), filter.size_bytes() + size_of_val(&filter) as u64);
    }
}

/// Compares the checksums of small files with recorded values.
#[test]
fn file_checksums_are_unchanged() {
    let sums: Vec<u64> = files().iter().flat_map(|file| kit::words(file, 240, 2)).collect();
    assert_eq!(
        sums,
        [
            0x75f5_b2f2_bd65_de4c,
            0x6c8b_84b6_de72_93b3,
            0x1892_6006_b2ac_93b4,
            0x5120_8ac3_b239_a4b2,
            0x5790_58c5_1d0b_9fee,
            0x2c40_f1ab_b72e_f567,
            0x0958_cb82_4050_b94b,
            0x6de9_a5a7_46fb_58d3,
        ],
        "{sums:x?}"
    );
}
