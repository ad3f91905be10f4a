//! `cargo x bench filters`: every filter of the library with every kernel, in every form, for every kind of keys.
//!
//! ns per key, one thread but for the builds. What turns and rounds are, and how answers are judged: `petal_bench::contest`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::num::NonZeroUsize;
use std::process::ExitCode;

use petal::Kernel;
use petal_bench::contest::petal::{Model, atomic, build, kernels};
use petal_bench::contest::program::Program;
use petal_bench::contest::{Contestant, Form, Kind};

const USAGE: &str = "\
usage: cargo x bench filters [--quick] [N ...]

  N         numbers of keys (default: 100000 1000000 50000000 400000000; all filters of one number are in memory at once,
            2.8 GB at most)
  --quick   few rounds, and 100000 keys unless numbers are given (seconds)
";
/// From so many keys on only the default filter takes part.
const ALONE_FROM: u64 = 200_000_000;
/// Texts take more than ten times the memory of numbers.
const TEXTS_TO: u64 = 1_000_000;

/// Single keys out of cache wait for memory, whatever the kernel.
const SINGLE_TO: u64 = 1_000_000;
/// Below a filter of 4 MiB a build of hashes or numbers takes one thread, however many it may have.
const BUILT_FROM: u64 = 10_000_000;
/// Threads of a build.
const ONE: NonZeroUsize = NonZeroUsize::MIN;
const TWO: NonZeroUsize = ONE.saturating_add(1);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let program = Program {
        suite: "own",
        command: "cargo x bench filters",
        numbers: &[100_000, 1_000_000, 50_000_000, 400_000_000],
        contestants,
    };
    match program.run(&args, &|what| eprintln!("{what}")) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("filters: {problem}");
            ExitCode::from(1)
        }
    }
}

/// Who takes part: a new filter is a line here.
fn contestants(keys: u64) -> Result<Vec<Contestant>, String> {
    let kernels = kernels();
    let best = kernels.last().copied().unwrap_or(Kernel::Portable);
    let mut all = Vec::new();
    let mut add = |model: Model, kind, form, kernel| -> Result<(), String> {
        all.push(model.contestant(keys, kind, form, kernel)?);
        Ok(())
    };
    let one = Model::Rate(0.01);
    if keys >= ALONE_FROM {
        add(one, Kind::Hash, Form::Batch, best)?;
        return Ok(all);
    }
    let lines = [6, 7, 8].map(Model::Line);
    for model in [one, Model::Rate(0.001), Model::Pair].into_iter().chain(lines) {
        for &kernel in &kernels {
            add(model, Kind::Hash, Form::Batch, kernel)?;
        }
        for &kernel in &kernels {
            if kernel == best || (model == one && keys <= SINGLE_TO) {
                add(model, Kind::Hash, Form::Single, kernel)?;
            }
        }
    }
    for model in [Model::Classic(0.01), Model::Classic(0.001)] {
        for form in [Form::Batch, Form::Single] {
            add(model, Kind::Hash, form, best)?;
        }
    }
    for form in [Form::Batch, Form::Single] {
        add(one, Kind::Number, form, best)?;
        if keys <= TEXTS_TO {
            add(one, Kind::Bytes, form, best)?;
        }
    }
    for &kernel in &kernels {
        if kernel == best || kernel == Kernel::Portable {
            for form in [Form::Batch, Form::Single] {
                all.push(atomic(keys, 0.01, form, kernel)?);
            }
        }
    }
    if keys >= BUILT_FROM {
        for kind in [Kind::Hash, Kind::Number] {
            for threads in [ONE, TWO] {
                all.push(build(keys, 0.01, kind, best, threads)?);
            }
        }
    }
    Ok(all)
}
