//! Compares the shared filter with the plain one: ns per hash, and in brackets the ratio
//! to the plain filter on one thread, in the same rounds.
//!
//! `cargo bench -p petal-filters --bench shared -- 100000 20000000` (keys; default: three sizes).
//! Results are checked and bits compared. Times are medians per thread: each of two threads has half
//! of the hashes.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints results and stops on errors"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use petal::{AtomicBloomFilter, BatchResults, BloomFilter, Membership as _};
use petal_testkit::rng::Rng;

/// Hashes in a batch.
const BATCH: usize = 20_000;
/// The timed operations, in this order, on an empty filter.
const ACTS: [&str; 4] = ["insert new", "insert known", "query absent", "query present"];
const INSERTS: usize = 2;

type Times = [Vec<f64>; ACTS.len()];

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000, 20_000_000] } else { sizes };
    for keys in sizes {
        measure(keys, false);
        measure(keys, true);
    }
}

fn measure(keys: usize, batches: bool) {
    let mut rng = Rng::new(keys as u64);
    let hashes: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
    let others: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
    let lists = [&hashes, &hashes, &others, &hashes];
    let mut plain = BloomFilter::with_fpr(keys as u64, 0.01).unwrap();
    let mut shared = AtomicBloomFilter::with_fpr(keys as u64, 0.01).unwrap();
    let [mut alone, mut one, mut two] = [(); 3].map(|()| Times::default());
    for _ in 0..(10_000_000 / keys).clamp(3, 60) {
        plain.clear();
        for (act, list) in lists.into_iter().enumerate() {
            let (nanos, yes) = run(&mut plain, act, list, batches);
            check(act, yes, keys as u64);
            alone[act].push(nanos);
        }
        for (threads, times) in [(1, &mut one), (2, &mut two)] {
            let mut empty = shared.into_filter();
            empty.clear();
            shared = empty.into();
            for (act, list) in lists.into_iter().enumerate() {
                let (nanos, yes) = concurrently(&shared, act, list, batches, threads);
                check(act, yes, keys as u64);
                times[act].push(nanos);
            }
            let same = shared.into_filter();
            assert!(same == plain, "the bits differ");
            shared = same.into();
        }
    }
    let how = if batches { "in batches" } else { "one by one" };
    println!("\n{keys} keys, {how}: {}", ACTS.join(" / "));
    let alone = alone.map(median);
    for (name, row) in
        [("plain", alone), ("1 thread", one.map(median)), ("2 threads", two.map(median))]
    {
        let cells =
            row.iter().zip(alone).map(|(time, plain)| format!("{time:5.2} ({:.2})", time / plain));
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
        0 => (keys - keys / 50..=keys).contains(&yes),
        1 => yes == 0,
        2 => yes < keys / 50,
        _ => yes == keys,
    };
    assert!(right, "{}: {yes} of {keys} true", ACTS[act]);
}

/// The operations of both filters.
trait Filter {
    fn one(&mut self, insert: bool, hash: u64) -> bool;
    fn many(&mut self, insert: bool, hashes: &[u64], results: &mut BatchResults);
}

impl Filter for BloomFilter {
    #[inline(always)]
    fn one(&mut self, insert: bool, hash: u64) -> bool {
        if insert { self.insert_mixed_hash(hash) } else { self.contains_mixed_hash(hash) }
    }

    fn many(&mut self, insert: bool, hashes: &[u64], results: &mut BatchResults) {
        if insert {
            self.insert_mixed_hashes(hashes, results);
        } else {
            self.contains_mixed_hashes(hashes, results);
        }
    }
}

impl Filter for &AtomicBloomFilter {
    #[inline(always)]
    fn one(&mut self, insert: bool, hash: u64) -> bool {
        if insert { self.insert_mixed_hash(hash) } else { self.contains_mixed_hash(hash) }
    }

    fn many(&mut self, insert: bool, hashes: &[u64], results: &mut BatchResults) {
        if insert {
            self.insert_mixed_hashes(hashes, results);
        } else {
            self.contains_mixed_hashes(hashes, results);
        }
    }
}

/// Returns the time per hash, and the number of true results.
fn run(filter: &mut impl Filter, act: usize, list: &[u64], batches: bool) -> (f64, u64) {
    let (mut yes, mut results, begin) = (0, BatchResults::new(), Instant::now());
    for hashes in list.chunks(BATCH) {
        if batches {
            filter.many(act < INSERTS, hashes, &mut results);
            yes += results.count_ones();
        } else if act < INSERTS {
            hashes.iter().for_each(|&hash| yes += u64::from(filter.one(true, hash)));
        } else {
            hashes.iter().for_each(|&hash| yes += u64::from(filter.one(false, hash)));
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
