//! Measures the construction of empty filters: `cargo bench -p petal-filters --bench construct`.
//!
//! Microseconds for each type, number of keys and rate: of the first construction and the minimum of
//! the next ones.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints results and stops on errors"
)]

use std::hint::black_box;
use std::time::Instant;

use petal::{
    BloomFilter, ClassicBloomFilter, CountingBloomFilter, QuotientFilter, ScalableBloomFilter,
    WideBloomFilter, WindowedBloomFilter,
};

fn main() {
    type Make = fn(u64, f64);
    let types: [(&str, Make); 7] = [
        ("bloom", |keys, rate| drop(black_box(BloomFilter::with_fpr(keys, rate).unwrap()))),
        ("classic", |keys, rate| {
            drop(black_box(ClassicBloomFilter::with_fpr(keys, rate).unwrap()))
        }),
        ("counting", |keys, rate| {
            drop(black_box(CountingBloomFilter::with_fpr(keys, rate).unwrap()))
        }),
        ("wide", |keys, rate| drop(black_box(WideBloomFilter::with_fpr(keys, rate).unwrap()))),
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
