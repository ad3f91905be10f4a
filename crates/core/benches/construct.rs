//! Measures the construction of empty filters: `cargo bench -p petal-filters --bench construct`.
//!
//! Microseconds for each type, number of keys and rate: of the first construction and the minimum of
//! the next ones.
//!
//! `cargo bench -p petal-filters --bench construct -- fuse 100000 3000000` builds static filters of the
//! fuse layout instead. Up to 1000 keys: microseconds, the mean of 200 sets. More keys: copies of some
//! hashes are added at random positions; ns per hash of these builds, and their ratio to ns per hash
//! without copies, medians of 9 rounds in which both are built. Both are the same filter. The first
//! row has no copies, so its ratio shows the noise.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints results and stops on errors"
)]

use std::hint::black_box;
use std::time::Instant;

use petal::{
    BloomFilter, ClassicBloomFilter, CountingBloomFilter, QuotientFilter, ScalableBloomFilter,
    StaticFilter, WindowedBloomFilter,
};
use petal_testkit::rng::Rng;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    if args.next().as_deref() == Some("fuse") {
        let numbers: Vec<usize> = args.map(|arg| arg.parse().unwrap()).collect();
        let default = vec![10, 30, 50, 70, 100, 150, 200, 256, 300, 1000, 100_000, 3_000_000];
        fuse(&if numbers.is_empty() { default } else { numbers });
        return;
    }
    type Make = fn(u64, f64);
    let types: [(&str, Make); 6] = [
        ("bloom", |keys, rate| drop(black_box(BloomFilter::with_fpr(keys, rate).unwrap()))),
        ("classic", |keys, rate| {
            drop(black_box(ClassicBloomFilter::with_fpr(keys, rate).unwrap()))
        }),
        ("counting", |keys, rate| {
            drop(black_box(CountingBloomFilter::with_fpr(keys, rate).unwrap()))
        }),
        ("quotient", |keys, rate| drop(black_box(QuotientFilter::with_fpr(keys, rate).unwrap()))),
        ("scalable", |keys, rate| {
            drop(black_box(ScalableBloomFilter::with_fpr(keys, rate).unwrap()))
        }),
        ("windowed", |keys, rate| {
            drop(black_box(WindowedBloomFilter::with_fpr(keys, rate).unwrap()))
        }),
    ];
    println!("type,keys,rate,first_us,least_us");
    for (name, make) in types {
        for keys in [1, 10, 60, 100, 1000, 10_000, 100_000] {
            for rate in [0.1, 0.01, 1e-3, 1e-5, 1e-9] {
                let start = Instant::now();
                make(keys, rate);
                let first = start.elapsed();
                let rounds = (20_000 / first.as_micros().max(1)).clamp(3, 200) as u32;
                let one = |_| {
                    let start = Instant::now();
                    make(black_box(keys), black_box(rate));
                    start.elapsed()
                };
                let least = (0..rounds).map(one).min().unwrap_or(first);
                let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
                println!("{name},{keys},{rate:e},{:.1},{:.1}", micros(first), micros(least));
            }
        }
    }
}

/// Times the static filters of the fuse layout at 1 %.
fn fuse(numbers: &[usize]) {
    let (small, large): (Vec<usize>, Vec<usize>) = numbers.iter().partition(|&&keys| keys <= 1000);
    let mut rng = Rng::new(1);
    let mut random = |keys| -> Vec<u64> { (0..keys).map(|_| rng.next_u64()).collect() };
    let build = |hashes: Vec<u64>| {
        let start = Instant::now();
        let filter = StaticFilter::builder().fpr(0.01).fuse(true).from_mixed_hashes(hashes);
        let time = start.elapsed().as_secs_f64();
        drop(black_box(filter.unwrap()));
        time
    };
    println!("keys,build_us");
    for keys in small {
        let sets: Vec<Vec<u64>> = (0..200).map(|_| random(keys)).collect();
        let least = |set: &Vec<u64>| {
            (0..5).map(|_| build(set.clone())).min_by(f64::total_cmp).unwrap_or_default()
        };
        let sum: f64 = sets.iter().map(least).sum();
        println!("{keys},{:.2}", sum / 200.0 * 1e6);
    }
    println!("keys,copies,ns,ratio");
    for keys in large {
        let distinct = random(keys);
        let few =
            [0, 1, 10, keys / 100_000, keys / 1000, keys / 10, keys].map(|copies| (copies, false));
        // Copies of different hashes, then of one.
        for (copies, of_one) in few.into_iter().chain([(keys / 10, true)]) {
            let mut hashes = distinct.clone();
            hashes.extend((0..copies).map(|at| distinct[if of_one { 0 } else { at }]));
            for (at, word) in random(keys + copies).into_iter().enumerate() {
                hashes.swap(at, (word % (keys + copies) as u64) as usize);
            }
            let name = if of_one { "of one hash" } else { "" };
            print_ratio(&format!("{keys},{copies} {name}"), &distinct, &hashes, build);
        }
    }
}

/// Builds both sets in turn and prints a row.
fn print_ratio(name: &str, distinct: &[u64], hashes: &[u64], build: impl Fn(Vec<u64>) -> f64) {
    let rounds = (0..9).map(|_| {
        let [without, with] =
            [distinct, hashes].map(|hashes| build(hashes.to_vec()) / hashes.len() as f64);
        (with, with / without)
    });
    let (mut times, mut ratios): (Vec<f64>, Vec<f64>) = rounds.unzip();
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("{name},{:.1},{:.3}", median(&mut times) * 1e9, median(&mut ratios));
}
