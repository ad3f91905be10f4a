//! `cargo x bench rivals`: petal beside other filters, and beside the machine's own limit.
//!
//! ns per key, one thread. What turns and rounds are, and how answers are judged: `petal_bench::contest`. Rivals are asked
//! key by key, since they have no batches; petal is asked in both ways. Petal asks the system for huge pages from 8 MiB
//! on; a rival gets what its allocator gives.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use petal::{Kernel, Shape};
use petal_bench::contest::petal::{Model, kernels};
use petal_bench::contest::program::Program;
use petal_bench::contest::{Contestant, Form, Kind};
use petal_bench_vs::{line_reads, rivals};

const USAGE: &str = "\
usage: cargo x bench rivals [--quick] [N ...]

  N         numbers of keys (default: 100000 1000000 50000000 400000000; all filters of one number are in memory at once,
            2.5 GB at most)
  --quick   few rounds, and 100000 keys unless numbers are given (seconds)
";
/// From so many keys on petal's default filter is alone with the limit.
const ALONE_FROM: u64 = 200_000_000;
/// From so many keys on the limit takes part: a filter in cache is bound by other things.
const LIMIT_FROM: u64 = 10_000_000;
const RATE: f64 = 0.01;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let program = Program {
        suite: "rivals",
        command: "cargo x bench rivals",
        numbers: &[100_000, 1_000_000, 50_000_000, 400_000_000],
        contestants,
    };
    match program.run(&args, &|what| eprintln!("{what}")) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("rivals: {problem}");
            ExitCode::from(1)
        }
    }
}

/// Who takes part: a new filter of petal's is a line here, a new rival one in `rivals::all`.
fn contestants(keys: u64) -> Result<Vec<Contestant>, String> {
    let best = kernels().last().copied().unwrap_or(Kernel::Portable);
    let petal = |model: Model, kind, form| model.contestant(keys, kind, form, best);
    let mut all = vec![petal(Model::Rate(RATE), Kind::Hash, Form::Batch)?];
    if keys < ALONE_FROM {
        all.push(petal(Model::Rate(RATE), Kind::Hash, Form::Single)?);
        for form in [Form::Batch, Form::Single] {
            all.push(petal(Model::Rate(RATE), Kind::Number, form)?);
            all.push(petal(Model::Classic(RATE), Kind::Number, form)?);
        }
        all.extend(rivals::all(keys)?);
    }
    if keys >= LIMIT_FROM {
        let shape = Shape::for_rate(keys, RATE).map_err(|problem| problem.to_string())?;
        for distance in line_reads::DISTANCES {
            all.push(line_reads::contestant(shape.size_bytes(), keys, distance)?);
        }
    }
    Ok(all)
}
