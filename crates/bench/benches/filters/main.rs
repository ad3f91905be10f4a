//! `cargo x bench filters`: the Bloom filters of the library with every kernel, form and kind of keys.
//!
//! ns per key, on one thread except for builds. See `petal_bench::harness` for how it is measured.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Parser;
use petal::Kernel;
use petal_bench::args;
use petal_bench::harness::library::{Model, atomic, build, kernels, put};
use petal_bench::harness::program::{FilterArgs, Program};
use petal_bench::harness::{Case, Form, KeyKind};

/// Times petal's Bloom filters. Default: 100000, 1000000, 50000000 and 400000000 keys, 2.8 GB
#[derive(Parser)]
#[command(name = "cargo x bench filters", bin_name = "cargo x bench filters")]
struct Args {
    #[command(flatten)]
    args: FilterArgs,
}

/// The number of keys from which only the default filter is measured.
const DEFAULT_ONLY_FROM: u64 = 200_000_000;
/// The largest number of byte keys, which take ten times the memory of numbers.
const BYTES_UP_TO: u64 = 1_000_000;
/// The largest number of keys for which single keys are measured with each kernel: out of cache, all wait for memory.
const SINGLE_KERNELS_UP_TO: u64 = 1_000_000;
/// The number of keys from which builds are measured: one thread builds filters below 4 MiB.
const BUILD_FROM: u64 = 10_000_000;
const ONE: NonZeroUsize = NonZeroUsize::MIN;
const TWO: NonZeroUsize = ONE.saturating_add(1);

fn main() -> ExitCode {
    let program = Program {
        suite: "own",
        command: "cargo x bench filters",
        numbers: &[100_000, 1_000_000, 50_000_000, 400_000_000],
        cases,
    };
    args::main(|Args { args }| {
        print!("{}", program.run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}

fn cases(keys: u64) -> Result<Vec<Case>, String> {
    let kernels = kernels();
    let best = kernels.last().copied().unwrap_or(Kernel::Portable);
    let mut all = Vec::new();
    let mut add = |model: Model, kind, form, kernel| -> Result<(), String> {
        all.push(model.case(keys, kind, form, kernel)?);
        Ok(())
    };
    let one = Model::Rate(0.01);
    if keys >= DEFAULT_ONLY_FROM {
        add(one, KeyKind::Hash, Form::Batch, best)?;
        return Ok(all);
    }
    let lines = [6, 7, 8].map(Model::Line);
    for model in [one, Model::Rate(0.001), Model::Pair].into_iter().chain(lines) {
        for &kernel in &kernels {
            add(model, KeyKind::Hash, Form::Batch, kernel)?;
        }
        for &kernel in &kernels {
            if kernel == best || (model == one && keys <= SINGLE_KERNELS_UP_TO) {
                add(model, KeyKind::Hash, Form::Single, kernel)?;
            }
        }
    }
    for model in [Model::Classic(0.01), Model::Classic(0.001)] {
        for form in [Form::Batch, Form::Single] {
            add(model, KeyKind::Hash, form, best)?;
        }
    }
    for form in [Form::Batch, Form::Single] {
        add(one, KeyKind::Number, form, best)?;
        if keys <= BYTES_UP_TO {
            add(one, KeyKind::Bytes, form, best)?;
        }
    }
    for &kernel in &kernels {
        all.push(put(keys, 0.01, Form::Batch, kernel)?);
        if kernel == best || keys <= SINGLE_KERNELS_UP_TO {
            all.push(put(keys, 0.01, Form::Single, kernel)?);
        }
    }
    for &kernel in &kernels {
        // All kernels but AVX-512 share the portable code of the concurrent filter.
        if kernel == best || kernel == Kernel::Portable {
            for form in [Form::Batch, Form::Single] {
                all.push(atomic(keys, 0.01, form, kernel)?);
            }
        }
    }
    if keys >= BUILD_FROM {
        for threads in [ONE, TWO] {
            all.push(build(keys, 0.01, KeyKind::Number, best, threads)?);
        }
    }
    Ok(all)
}
