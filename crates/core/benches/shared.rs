//! Compares the shared filters with the plain ones: ns per key, and in brackets the ratio to the plain
//! filter on one thread, in the same rounds.
//!
//! `cargo bench -p petal-filters --bench shared -- bloom vector-quotient 100000 20000000` (filters and
//! numbers of keys; default: both filters, three numbers). Results are checked, and bits compared.
//! Times are medians per thread: each of two threads has half of the keys. The keys of Bloom filters are
//! hashes.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints results and stops on errors"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use petal::{
    AtomicBloomFilter, AtomicVectorQuotientFilter, BatchResults, BloomFilter, Membership as _,
    VectorQuotientFilter,
};
use petal_testkit::rng::Rng;

/// Keys in a batch.
const BATCH: usize = 20_000;
/// The timed operations, in this order, on an empty filter. Bloom filters do not have the last one.
const ACTS: [&str; 5] = ["insert new", "insert known", "query absent", "query present", "remove"];

type Times = [Vec<f64>; ACTS.len()];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000, 20_000_000] } else { sizes };
    let names = [BloomFilter::NAME, VectorQuotientFilter::NAME];
    let any_name = names.iter().any(|name| args.iter().any(|arg| arg == name));
    let is_wanted = |name: &str| !any_name || args.iter().any(|arg| arg == name);
    for keys in sizes {
        for batches in [false, true] {
            if is_wanted(BloomFilter::NAME) {
                measure::<BloomFilter>(keys, batches);
            }
            if is_wanted(VectorQuotientFilter::NAME) {
                measure::<VectorQuotientFilter>(keys, batches);
            }
        }
    }
}

fn measure<F: Plain>(keys: usize, batches: bool)
where
    for<'a> &'a F::Shared: Operations,
{
    let mut rng = Rng::new(keys as u64);
    let members: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
    let others: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
    let lists = [&members, &members, &others, &members, &members];
    let lists = &lists[..F::ACTS];
    let (mut plain, mut shared) = (F::new(keys), F::new(keys));
    let [mut alone, mut one, mut two] = [(); 3].map(|()| Times::default());
    for _ in 0..(10_000_000 / keys).clamp(3, 60) {
        plain.empty();
        for (act, list) in lists.iter().enumerate() {
            let (nanos, yes) = run(&mut plain, act, list, batches);
            check(act, yes, keys as u64);
            alone[act].push(nanos);
        }
        for (threads, times) in [(1, &mut one), (2, &mut two)] {
            shared.empty();
            let filter = shared.share();
            for (act, list) in lists.iter().enumerate() {
                let (nanos, yes) = concurrently::<F>(&filter, act, list, batches, threads);
                check(act, yes, keys as u64);
                times[act].push(nanos);
            }
            shared = F::unshare(filter);
            assert!(shared.is_same(&plain), "the contents differ");
        }
    }
    let how = if batches { "in batches" } else { "one by one" };
    println!("\n{}, {keys} keys, {how}: {}", F::NAME, ACTS[..F::ACTS].join(" / "));
    let [alone, one, two]: [Vec<f64>; 3] =
        [alone, one, two].map(|times| times.into_iter().take(F::ACTS).map(median).collect());
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
        // Some keys have the fingerprints of others and were not inserted.
        0 | 4 => (keys - keys / 50..=keys).contains(&yes),
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

/// A filter of one thread, and the shared one.
trait Plain: Operations + Sized {
    const NAME: &str;
    /// How many of [`ACTS`] the filter has.
    const ACTS: usize;
    type Shared: Sync;
    fn new(keys: usize) -> Self;
    fn empty(&mut self);
    fn share(self) -> Self::Shared;
    fn unshare(shared: Self::Shared) -> Self;
    fn is_same(&self, other: &Self) -> bool;
}

impl Plain for BloomFilter {
    const NAME: &str = "bloom";
    const ACTS: usize = 4;
    type Shared = AtomicBloomFilter;

    fn new(keys: usize) -> Self {
        Self::with_fpr(keys as u64, 0.01).unwrap()
    }

    fn empty(&mut self) {
        self.clear();
    }

    fn share(self) -> Self::Shared {
        self.into()
    }

    fn unshare(shared: Self::Shared) -> Self {
        shared.into_filter()
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Plain for VectorQuotientFilter {
    const NAME: &str = "vector-quotient";
    const ACTS: usize = ACTS.len();
    type Shared = AtomicVectorQuotientFilter;

    fn new(keys: usize) -> Self {
        Self::with_fpr(keys as u64, 0.01).unwrap()
    }

    fn empty(&mut self) {
        self.clear();
    }

    fn share(self) -> Self::Shared {
        self.into()
    }

    fn unshare(shared: Self::Shared) -> Self {
        shared.into_filter()
    }

    /// Which block has a fingerprint depends on the order of the inserts.
    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len()
    }
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

/// Implements the operations of a vector quotient filter.
macro_rules! vector_quotient_operations {
    ($filter:ty) => {
        impl Operations for $filter {
            #[inline(always)]
            fn one(&mut self, act: usize, key: u64) -> bool {
                match act {
                    0 | 1 => self.insert(&key).unwrap(),
                    2 | 3 => self.contains(&key),
                    _ => self.remove(&key),
                }
            }

            fn many(&mut self, act: usize, keys: &[u64], results: &mut BatchResults) {
                match act {
                    0 | 1 => self.insert_batch(keys, results).unwrap(),
                    2 | 3 => self.contains_batch(keys, results),
                    _ => self.remove_batch(keys, results),
                }
            }
        }
    };
}
vector_quotient_operations!(VectorQuotientFilter);
vector_quotient_operations!(&AtomicVectorQuotientFilter);

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
fn concurrently<F: Plain>(
    filter: &F::Shared,
    act: usize,
    list: &[u64],
    batches: bool,
    threads: usize,
) -> (f64, u64)
where
    for<'a> &'a F::Shared: Operations,
{
    let here = AtomicUsize::new(0);
    let part = |mut filter: &F::Shared, list: &[u64]| {
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
