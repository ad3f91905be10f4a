//! `cargo x ...`: the commands of the working day. CONTRIBUTING.md tells when to use which.
//!
//! Every command is a thin list of steps over cargo; the only logic of its own is [`arch`], which holds the code to
//! the arrows and rooms that ARCHITECTURE.md draws. Exit code 0: all is well. 1: something is not. 2: wrong usage.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool talks to the developer"
)]

mod arch;
mod check;
mod cross;
mod sanitize;
mod step;

use std::process::ExitCode;

use step::{Result, Step};

const USAGE: &str = "\
usage: cargo x COMMAND

  check            format, clippy, arch, docs: everything that needs no test to run
  test             check, then every test of the workspace, doctests included
  arch             only the rules of ARCHITECTURE.md: arrows, rooms, unsafe, file lengths
  fuzz SECONDS     each fuzz target for so many seconds (nightly, cargo-fuzz)
  asan             the core's tests under AddressSanitizer (nightly)
  cross            the core's tests on aarch64 and on a big-endian machine, under QEMU
  bench files      petal and its rivals on line files, and the targets
  bench full       the headline at full size, approximate, through pipes
  bench headline   the exact headline at scale; `--help` after the name of a bench tells its options
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["check"] => check::check(),
        ["test"] => check::test(),
        ["arch"] => arch::arch(),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => sanitize::fuzz(seconds),
            Err(_) => return usage(&format!("not a number of seconds: {seconds}")),
        },
        ["asan"] => sanitize::asan(),
        ["cross"] => cross::cross(),
        ["bench", name @ ("files" | "full" | "headline"), rest @ ..] => bench(name, rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => return usage(&format!("no such command: {}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("\ncargo x: {problem}");
            ExitCode::from(1)
        }
    }
}

fn usage(problem: &str) -> ExitCode {
    eprint!("cargo x: {problem}\n\n{USAGE}");
    ExitCode::from(2)
}

/// The program as a release build, then the runner, which does the rest.
fn bench(name: &str, args: &[&str]) -> Result {
    if !args.contains(&"--help") && !args.contains(&"--petal") {
        Step::cargo(&["build", "--release", "--package", "petal-cli"]).run()?;
    }
    let runner = ["bench", "--quiet", "--package", "petal-bench", "--bench", name, "--"];
    Step::cargo(&[&runner[..], args].concat()).run()
}
