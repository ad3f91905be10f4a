//! `cargo x lab`: ways to remember which URLs were seen, for `docs/uses/lab.md`. See `petal_bench_vs::lab`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use petal_bench::args;
use petal_bench_vs::lab::program::run;

fn main() -> ExitCode {
    args::main(|args| {
        print!("{}", run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}
