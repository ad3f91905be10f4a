//! Plain loops over single keys, as programs write them. "fresh": a filter is made and filled, with the first access to
//! its memory.
//!
//! ns per key, on one thread. See `petal_bench::harness` for how it is measured. Other benchmarks are built with link-time
//! optimization; this program is built with the default profile of a release, as most programs that use petal are:
//!
//! ```console
//! $ cargo run --release -p petal-bench --bin loops
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::Parser;
use petal::{BloomFilter, Kernel, Membership as _};
use petal_bench::args;
use petal_bench::harness::adapters::{BenchFilter, StaticBuild};
use petal_bench::harness::keys::Keys;
use petal_bench::harness::library::kernels;
use petal_bench::harness::program::{FilterArgs, Program};
use petal_bench::harness::{Case, Form, KeyKind, Operation};

/// Times plain loops over keys. Default: 100000, 1000000 and 50000000 keys
#[derive(Parser)]
#[command(name = "loops", bin_name = "loops")]
struct Args {
    #[command(flatten)]
    args: FilterArgs,
}

const FPR: f64 = 0.01;

fn main() -> ExitCode {
    let program = Program {
        suite: "loops",
        command: "cargo run --release -p petal-bench --bin loops --",
        numbers: &[100_000, 1_000_000, 50_000_000],
        cases,
    };
    args::main(|Args { args }| {
        print!("{}", program.run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}

fn cases(keys: u64) -> Result<Vec<Case>, String> {
    let mut all = Vec::new();
    for kernel in kernels() {
        if !matches!(kernel, Kernel::Portable | Kernel::Simd128) {
            all.push(case(keys, KeyKind::Hash, kernel, Hashes)?);
            all.push(case(keys, KeyKind::Number, kernel, Numbers)?);
        }
    }
    let fresh = StaticBuild::new(
        move |hashes: &[u64]| {
            let mut filter = BloomFilter::with_fpr(keys, FPR).ok()?;
            Hashes.insert(&mut filter, hashes);
            Some(filter)
        },
        |filter: &BloomFilter, hashes: &[u64]| Hashes.query(filter, hashes),
        BloomFilter::memory_usage,
    );
    all.push(Case {
        filter: format!("petal fresh {} %", 100.0 * FPR),
        bits_per_key: f64::NAN,
        operations: &[Operation::Build],
        fills_at_once: true,
        tested: Box::new(fresh),
        ..case(keys, KeyKind::Hash, Kernel::current(), Hashes)?
    });
    Ok(all)
}

fn case<L: Loops + 'static>(
    keys: u64,
    kind: KeyKind,
    kernel: Kernel,
    loops: L,
) -> Result<Case, String> {
    // A filter takes its kernel when it is made.
    kernel.force();
    let filter = BloomFilter::with_fpr(keys, FPR).map_err(|problem| problem.to_string())?;
    Ok(Case {
        filter: format!("petal {} %", 100.0 * FPR),
        target: Some(FPR),
        bits_per_key: filter.size_bytes() as f64 * 8.0 / keys as f64,
        kind,
        form: Form::Single,
        kernel: Some(kernel),
        threads: 1,
        operations: &Operation::ALL,
        fills_at_once: false,
        is_filter: true,
        tested: Box::new(Tested { filter, loops, hits: 0 }),
    })
}

/// The loops for one type of key. They return the number of keys that were new or found.
trait Loops {
    fn insert(&self, filter: &mut BloomFilter, keys: &[u64]) -> u64;

    fn query(&self, filter: &BloomFilter, keys: &[u64]) -> u64;
}

struct Hashes;

impl Loops for Hashes {
    fn insert(&self, filter: &mut BloomFilter, hashes: &[u64]) -> u64 {
        let mut new = 0;
        for &hash in hashes {
            new += u64::from(filter.insert_mixed_hash(hash));
        }
        new
    }

    fn query(&self, filter: &BloomFilter, hashes: &[u64]) -> u64 {
        let mut hits = 0;
        for &hash in hashes {
            hits += u64::from(filter.contains_mixed_hash(hash));
        }
        hits
    }
}

struct Numbers;

impl Loops for Numbers {
    fn insert(&self, filter: &mut BloomFilter, keys: &[u64]) -> u64 {
        let mut new = 0;
        for key in keys {
            new += u64::from(filter.insert(key));
        }
        new
    }

    fn query(&self, filter: &BloomFilter, keys: &[u64]) -> u64 {
        let mut hits = 0;
        for key in keys {
            hits += u64::from(filter.contains(key));
        }
        hits
    }
}

/// A filter and its loops.
struct Tested<L> {
    filter: BloomFilter,
    loops: L,
    hits: u64,
}

impl<L: Loops> BenchFilter for Tested<L> {
    fn clear(&mut self) {
        self.filter.clear();
    }

    fn insert(&mut self, keys: &Keys) {
        self.hits = self.loops.insert(&mut self.filter, keys.numbers());
    }

    fn query(&mut self, keys: &Keys) {
        self.hits = self.loops.query(&self.filter, keys.numbers());
    }

    fn hits(&self) -> u64 {
        self.hits
    }

    fn estimated_fpr(&self) -> Option<f64> {
        Some(self.filter.stats().estimated_fpr)
    }
}
