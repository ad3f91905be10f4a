//! `figures`: brings the tables and plots of docs/performance.md and docs/filters.md up to date with the CSV of the filter
//! benches.
//!
//! Exit code 0, or 1 with one line on standard error. Wrong usage: 2.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::path::Path;
use std::process::ExitCode;

use petal_bench::figures::{self, targets::Verdict};
use petal_bench::place::root;

const USAGE: &str = "\
usage: cargo x figures [--from FILE]

Writes the tables of docs/performance.md, docs/filters.md and docs/plots/*.svg from FILE (a path from the root of the
repository), or from the newest results/*/<date>.csv and results/*/<date>-family.csv.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let from = match args.as_slice() {
        [] => None,
        ["--from", file] => Some(Path::new(file)),
        ["--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match figures::write(&root(), from) {
        Ok(report) => {
            let met = |verdict| report.targets.iter().filter(|it| it.verdict() == verdict).count();
            for source in &report.sources {
                println!("read {}", source.display());
            }
            println!(
                "{} targets met, {} not met, {} not in the CSV",
                met(Verdict::Met),
                met(Verdict::NotMet),
                met(Verdict::NotInTheCsv)
            );
            for file in &report.changed {
                println!("wrote {}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("figures: {problem}");
            ExitCode::from(1)
        }
    }
}
