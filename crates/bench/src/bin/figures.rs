//! `figures`: updates the tables and plots of docs/performance/README.md from the CSV of the filter benchmarks, and the chart of README.md from that of the files benchmark.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use petal_bench::args;
use petal_bench::figures::{self, targets::Verdict};
use petal_bench::paths::root;

/// Writes the tables of docs/performance/README.md, and docs/performance/plots/*.svg
#[derive(Parser)]
#[command(name = "cargo x figures", bin_name = "cargo x figures")]
struct Args {
    /// CSV file, as a path from the root of the repository [default: the newest results/*/DATE.csv,
    /// DATE-family.csv, DATE-family-avx2.csv and DATE-files.csv]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

fn main() -> ExitCode {
    args::main(|args: Args| {
        let report = figures::write(&root(), args.from.as_deref())?;
        for source in &report.sources {
            println!("read {}", source.display());
        }
        let count = |verdict| report.targets.iter().filter(|it| it.verdict() == verdict).count();
        println!(
            "{} targets met, {} not met, {} not in the CSV",
            count(Verdict::Met),
            count(Verdict::NotMet),
            count(Verdict::NotInTheCsv)
        );
        for file in &report.changed {
            println!("wrote {}", file.display());
        }
        Ok(())
    })
}
