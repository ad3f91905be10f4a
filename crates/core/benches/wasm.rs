//! Times the default filter without threads or clocks of the processor, so also as WebAssembly.
//!
//! 100,000 random hashes, 1 %: the minimum and the median of 100 rounds, in ns per hash.
//!
//! ```console
//! $ export CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings --no-liftoff $PWD/xtask/src/wasi.mjs"
//! $ cargo bench -p petal-filters --bench wasm --target wasm32-wasip1 --target-dir target/wasm
//! $ RUSTFLAGS="-C target-feature=+simd128" cargo bench -p petal-filters --bench wasm --target wasm32-wasip1 \
//!     --target-dir target/wasm
//! ```
//!
//! `--no-liftoff`: without it Node starts with its baseline compiler, and on one core stays with it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints results and stops on errors"
)]

use std::hint::black_box;
use std::time::Instant;

use petal::{BatchResults, BloomFilter, Kernel};
use petal_testkit::rng::Rng;

const KEYS: usize = 100_000;
const ROUNDS: usize = 100;

/// Adds the nanoseconds per hash of some work on all hashes.
fn timed(times: &mut Vec<f64>, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    times.push(start.elapsed().as_secs_f64() * 1e9 / KEYS as f64);
}

fn main() {
    let mut rng = Rng::new(1);
    let [present, absent] = [(); 2].map(|()| (0..KEYS).map(|_| rng.next_u64()).collect::<Vec<_>>());
    let mut filter = BloomFilter::with_fpr(KEYS as u64, 0.01).unwrap();
    let mut results = BatchResults::new();
    let names = ["insert", "put", "absent", "present"];
    let mut rows = ["single", "batch"].map(|form| (form, names.map(|_| Vec::new())));
    for _ in 0..ROUNDS {
        let [(_, single), (_, batch)] = &mut rows;
        filter.clear();
        timed(&mut single[0], || {
            present.iter().for_each(|&hash| _ = black_box(filter.insert_mixed_hash(hash)));
        });
        filter.clear();
        timed(&mut single[1], || {
            present.iter().for_each(|&hash| filter.put_mixed_hash(hash));
        });
        for (at, hashes) in [(2, &absent), (3, &present)] {
            timed(&mut single[at], || {
                hashes.iter().for_each(|&hash| _ = black_box(filter.contains_mixed_hash(hash)));
            });
        }
        filter.clear();
        timed(&mut batch[0], || filter.insert_mixed_hashes(&present, &mut results));
        filter.clear();
        timed(&mut batch[1], || filter.put_mixed_hashes(&present));
        for (at, hashes) in [(2, &absent), (3, &present)] {
            timed(&mut batch[at], || filter.contains_mixed_hashes(hashes, &mut results));
        }
    }
    println!("kernel,form,operation,ns_min,ns_median");
    for (form, operations) in &mut rows {
        for (name, times) in names.iter().zip(operations) {
            times.sort_by(f64::total_cmp);
            let (least, median) = (times[0], times[ROUNDS / 2]);
            println!("{},{form},{name},{least:.2},{median:.2}", Kernel::current().name());
        }
    }
}
