//! Measures the cost of hashing an integer key: `cargo bench -p petal-filters --bench integers`.
//!
//! One filter fits in the L2 cache, one exceeds the caches. Rounds with integers as keys and with the
//! same number of mixed hashes alternate: the medians of 15 rounds, and their ratio.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints results and stops on errors"
)]

use std::hint::black_box;
use std::time::Instant;

use petal::{BatchResults, BloomFilter, Membership as _};

const ROUNDS: usize = 15;

/// Returns nanoseconds per key.
fn timed(keys: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / keys as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    println!("keys,operation,u64_key_ns,mixed_hash_ns,ratio");
    for count in [200_000usize, 8_000_000] {
        let keys: Vec<u64> = (0..count as u64).collect();
        let make = || BloomFilter::with_fpr(count as u64, 0.01).unwrap();
        let spec = make().hash_spec();
        let hashes: Vec<u64> = keys.iter().map(|key| spec.hash(&key.to_le_bytes())).collect();
        let mut filter = make();
        let mut results = BatchResults::new();
        let mut rows = ["insert", "insert, batch", "contains", "contains, batch"]
            .map(|name| (name, Vec::new(), Vec::new()));
        for _ in 0..ROUNDS {
            filter.clear();
            rows[0].1.push(timed(count, || {
                keys.iter().for_each(|key| _ = black_box(filter.insert(key)))
            }));
            filter.clear();
            rows[0].2.push(timed(count, || {
                hashes.iter().for_each(|hash| _ = black_box(filter.insert_mixed_hash(*hash)));
            }));
            filter.clear();
            rows[1].1.push(timed(count, || filter.insert_batch(&keys, &mut results)));
            filter.clear();
            rows[1].2.push(timed(count, || filter.insert_mixed_hashes(&hashes, &mut results)));
            rows[2].1.push(timed(count, || {
                keys.iter().for_each(|key| _ = black_box(filter.contains(key)))
            }));
            rows[2].2.push(timed(count, || {
                hashes.iter().for_each(|hash| _ = black_box(filter.contains_mixed_hash(*hash)));
            }));
            rows[3].1.push(timed(count, || filter.contains_batch(&keys, &mut results)));
            assert_eq!(results.count_ones(), count as u64);
            rows[3].2.push(timed(count, || filter.contains_mixed_hashes(&hashes, &mut results)));
            assert_eq!(results.count_ones(), count as u64);
        }
        for (name, key, hash) in rows {
            let (key, hash) = (median(key), median(hash));
            println!("{count},{name},{key:.2},{hash:.2},{:.2}", key / hash);
        }
    }
}
