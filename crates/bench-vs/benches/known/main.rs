//! `cargo x bench known`: sets of known keys that are built once. See `petal_bench_vs::known`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use petal_bench::args;
use petal_bench_vs::known::program::run;

fn main() -> ExitCode {
    args::main(|args| {
        print!("{}", run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}
