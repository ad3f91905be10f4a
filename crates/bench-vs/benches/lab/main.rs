//! `cargo x lab`: ways to remember which URLs were seen, for `docs/uses/lab.md`. See `petal_bench_vs::lab`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::Parser;
use petal_bench::args;
use petal_bench_vs::lab::program::{LabArgs, run};

/// Measures ways to remember which URLs were seen: databases, sets, bitmaps, filters. About two minutes by default
#[derive(Parser)]
#[command(name = "cargo x lab", bin_name = "cargo x lab")]
#[command(after_help = "Example: cargo x lab --keys 1e6 --keys 1e7")]
struct Args {
    #[command(flatten)]
    args: LabArgs,
}

fn main() -> ExitCode {
    args::main(|Args { args }| {
        print!("{}", run(&args, &|line| eprintln!("{line}"))?);
        Ok(())
    })
}
