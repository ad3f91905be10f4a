//! Compares the shared filter with the plain one: ns per key, and in brackets the ratio to the plain
//! filter on one thread, in the same rounds.
//!
//! `cargo bench -p petal-filters --bench shared -- 100000 20000000` (numbers of keys; default: three).
//! Results are checked, and bits compared. Times are medians per thread: each of two threads has half of
//! the keys. The keys are hashes.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints results and stops on errors"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use petal::{AtomicBloomFilter, BatchResults, BloomFilter};
use petal_testkit::rng::Rng;

/// Keys in a batch.
const BATCH: usize = 20_000;
/// The timed operations, in this order, on an empty filter.
const ACTS: [&str; 4] = ["insert new", "insert known", "query absent", "query present"];

type Times = [Vec<f64>; ACTS.len()];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000, 20_000_000] } else { sizes };
    for keys in sizes {
        for batches in [false, true] {
            measure(keys, batches);
        }
    }
}

fn measure(keys: usize, batches: bool) {
    let mut rng = Rng::new(keys as u64);
    let members: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
    let others: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
    let lists = [&members, &members, &others, &members];
    let new = || BloomFilter::with_fpr(keys as u64, 0.01).unwrap();
    let (mut plain, mut shared) = (new(), new());
    let [mut alone, mut one, mut two] = [(); 3].map(|()| Times::default());
    for _ in 0..(10_000_000 / keys).clamp(3, 60) {
        plain.clear();
        for (act, list) in lists.iter().enumerate() {
            let (nanos, yes) = run(&mut plain, act, list, batches);
            check(act, yes, keys as u64);
            alone[act].push(nanos);
        }
        for (threads, times) in [(1, &mut one), (2, &mut two)] {
            shared.clear();
            let filter = AtomicBloomFilter::from(shared);
            for (act, list) in lists.iter().enumerate() {
                let (nanos, yes) = concurrently(&filter, act, list, batches, threads);
                check(act, yes, keys as u64);
                times[act].push(nanos);
            }
            shared = filter.into_filter();
            assert!(shared == plain, "the contents differ");
        }
    }
    let how = if batches { "in batches" } else { "one by one" };
    println!("\n{keys} keys, {how}: {}", ACTS.join(" / "));
    let [alone, one, two] = [alone, one, two].map(|times| times.map(median));
    for (name, row) in [("plain", &alone), ("1 thread", &one), ("2 threads", &two)] {
        let cells =
            row.iter().zip(&alone).map(|(time, plain)| format!("{time:5.2} ({:.2})", time / plain));
        println!("{name:>10}: {}", cells.collect::<Vec<_>>().join(" / "));
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns whether this number of true results is plausible.
fn check(act: usize, yes: u64, keys: u64) {
    let right = match act {
        // Some keys are false positives and were not inserted.
        0 => (keys - keys / 50..=keys).contains(&yes),
        1 => yes == 0,
        2 => yes < keys / 50,
        _ => yes == keys,
    };
    assert!(right, "{}: {yes} of {keys} true", ACTS[act]);
}

/// The timed operations of a filter, by their numbers in [`ACTS`].
trait Operations {
    fn one(&mut self, act: usize, key: u64) -> bool;
    fn many(&mut self, act: usize, keys: &[u64], results: &mut BatchResults);
}

/// Implements the operations of a Bloom filter.
macro_rules! bloom_operations {
    ($filter:ty) => {
        impl Operations for $filter {
            #[inline(always)]
            fn one(&mut self, act: usize, hash: u64) -> bool {
                if act < 2 { self.insert_mixed_hash(hash) } else { self.contains_mixed_hash(hash) }
            }

            fn many(&mut self, act: usize, hashes: &[u64], results: &mut BatchResults) {
                if act < 2 {
                    self.insert_mixed_hashes(hashes, results);
                } else {
                    self.contains_mixed_hashes(hashes, results);
                }
            }
        }
    };
}
bloom_operations!(BloomFilter);
bloom_operations!(&AtomicBloomFilter);

/// Returns the time per key, and the number of true results.
fn run(filter: &mut impl Operations, act: usize, list: &[u64], batches: bool) -> (f64, u64) {
    let (mut yes, mut results, begin) = (0, BatchResults::new(), Instant::now());
    for keys in list.chunks(BATCH) {
        if batches {
            filter.many(act, keys, &mut results);
            yes += results.count_ones();
        } else {
            keys.iter().for_each(|&key| yes += u64::from(filter.one(act, key)));
        }
    }
    (begin.elapsed().as_nanos() as f64 / list.len() as f64, yes)
}

/// Same as `run` with threads, each with its part of the list.
fn concurrently(
    filter: &AtomicBloomFilter,
    act: usize,
    list: &[u64],
    batches: bool,
    threads: usize,
) -> (f64, u64) {
    let here = AtomicUsize::new(0);
    let part = |mut filter: &AtomicBloomFilter, list: &[u64]| {
        // Spin: a sleeping thread would start when the others have finished.
        here.fetch_add(1, Ordering::Relaxed);
        while here.load(Ordering::Relaxed) < threads {
            std::hint::spin_loop();
        }
        run(&mut filter, act, list, batches)
    };
    let results: Vec<(f64, u64)> = thread::scope(|scope| {
        let lists = list.chunks(list.len().div_ceil(threads));
        let threads: Vec<_> = lists.map(|list| scope.spawn(|| part(filter, list))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let nanos = results.iter().map(|(nanos, _)| nanos).sum::<f64>() / threads as f64;
    (nanos, results.iter().map(|(_, yes)| yes).sum())
}
