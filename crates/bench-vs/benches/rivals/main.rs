//! `cargo x bench rivals`: petal, other Bloom filters, and random reads of memory as the limit of the machine.
//!
//! ns per key, on one thread. See `petal_bench::harness` for how it is measured. Rivals have no batches and are used key
//! by key, petal in both ways. Petal requests huge pages from 8 MiB on; a rival gets what its allocator provides.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::Parser;
use petal::{BloomFilter, Kernel};
use petal_bench::args;
use petal_bench::harness::library::{Model, kernels};
use petal_bench::harness::program::{FilterArgs, Program};
use petal_bench::harness::{Case, Form, KeyKind};
use petal_bench_vs::{random_reads, rivals};

/// Times petal and other Bloom filters. Default: 100000, 1000000, 50000000 and 400000000 keys, 2.5 GB
#[derive(Parser)]
#[command(name = "cargo x bench rivals", bin_name = "cargo x bench rivals")]
struct Args {
    #[command(flatten)]
    args: FilterArgs,
}

/// The number of keys from which only petal's default filter and random reads are measured.
const DEFAULT_ONLY_FROM: u64 = 200_000_000;
/// The number of keys from which random reads are measured; smaller filters are in cache.
const RANDOM_READS_FROM: u64 = 10_000_000;
const FPR: f64 = 0.01;

fn main() -> ExitCode {
    let program = Program {
        suite: "rivals",
        command: "cargo x bench rivals",
        numbers: &[100_000, 1_000_000, 50_000_000, 400_000_000],
        cases,
    };
    args::main(|Args { args }| {
        print!("{}", program.run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}

fn cases(keys: u64) -> Result<Vec<Case>, String> {
    let best = kernels().last().copied().unwrap_or(Kernel::Portable);
    let petal = |model: Model, kind, form| model.case(keys, kind, form, best);
    let mut all = vec![petal(Model::Rate(FPR), KeyKind::Hash, Form::Batch)?];
    if keys < DEFAULT_ONLY_FROM {
        all.push(petal(Model::Rate(FPR), KeyKind::Hash, Form::Single)?);
        for form in [Form::Batch, Form::Single] {
            all.push(petal(Model::Rate(FPR), KeyKind::Number, form)?);
            all.push(petal(Model::Classic(FPR), KeyKind::Number, form)?);
            if keys <= rivals::SMALL_UP_TO {
                all.push(petal(Model::Rate(FPR), KeyKind::Bytes, form)?);
                all.push(petal(Model::Classic(FPR), KeyKind::Bytes, form)?);
            }
        }
        all.extend(rivals::all(keys)?);
    }
    if keys >= RANDOM_READS_FROM {
        let plan = BloomFilter::builder()
            .capacity(keys)
            .fpr(FPR)
            .plan()
            .map_err(|problem| problem.to_string())?;
        for distance in random_reads::DISTANCES {
            all.push(random_reads::case(plan.size_bytes(), keys, distance)?);
        }
    }
    Ok(all)
}
