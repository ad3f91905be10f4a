//! One operation of one filter, key by key, for counting its instructions with callgrind.
//!
//! The program fills the filter with 64-bit keys at 1 %, then runs the operation once for every key; with `none` it
//! only fills. So the instructions of an operation, with its hash and the loop, are those of two runs, subtracted and
//! divided by the number of keys. Without a fill (`make`) the insert itself is counted. Valgrind has no AVX-512: petal
//! uses AVX2.
//!
//! ```console
//! $ cargo bench -p petal-bench-vs --bench instructions --no-run      # prints the path of the program
//! $ valgrind --tool=callgrind --callgrind-out-file=/dev/null PROGRAM "petal vector quotient" absent 1000000
//! ```
#![allow(clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use petal_bench::args;
use petal_bench::harness::keys::{KeySet, Keys};
use petal_bench::harness::{Form, family};
use petal_bench_vs::family as rivals;

/// Runs one operation of one filter of `cargo x bench family`, key by key
#[derive(Parser)]
#[command(bin_name = "instructions")]
struct Args {
    /// A name of the first column of results/filters.md
    filter: String,
    operation: Operation,
    #[arg(value_parser = args::number)]
    keys: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// Only make the filter.
    Make,
    /// Only fill it.
    None,
    Absent,
    Present,
    Delete,
}

fn main() -> ExitCode {
    args::main(|Args { filter, operation, keys }| {
        let mut cases = family::all(keys, 0.01)?;
        cases.extend(rivals::all(keys, 0.01, || 0)?);
        cases.retain(|case| case.filter == filter && case.form == Form::Single);
        let Some(mut case) = cases.pop() else {
            return Err(format!("no filter is named {filter}"));
        };
        drop(cases);
        let [present, absent] =
            [KeySet::Present, KeySet::Absent].map(|set| Keys::new(set, 0..keys, false));
        if operation != Operation::Make {
            case.tested.insert(&present);
        }
        match operation {
            Operation::Make | Operation::None => {}
            Operation::Absent => case.tested.query(&absent),
            Operation::Present => case.tested.query(&present),
            Operation::Delete => _ = case.tested.remove(&present),
        }
        Ok(())
    })
}
