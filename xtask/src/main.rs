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
mod loom;
mod package;
mod peers;
mod python;
mod sanitize;
mod step;
mod wasm;

use std::process::ExitCode;

use python::Tier;
use step::{Result, Step};

const USAGE: &str = "\
usage: cargo x COMMAND

  check            format, clippy, arch, docs: everything that needs no test to run
  test             check and loom, then every test of the workspace, doctests included, then python
  test --foreign   the same, then peers, and the tests in which they write for us and read from us
  test --engines   test, then the tests with a real Apache Spark
  test --foreign --engines   all of these
  python           builds the Python package into target/python and runs its tests; what follows goes to pytest
  python --engines the same with the tests that need Apache Spark, python --foreign with those that need the peers
  arch             only the rules of ARCHITECTURE.md: arrows, rooms, unsafe, file lengths
  loom             the concurrent filter's protocol in every order of its threads
  package          packs the published crates, builds them from their packages, runs the packed examples
  fuzz SECONDS     each fuzz target for so many seconds (nightly, cargo-fuzz)
  asan             the core's tests under AddressSanitizer (nightly)
  peers            installs the foreign libraries into target/peers, from their package registries
  peers golden     the same, then lets them write the files that are missing in testdata/foreign
  cross            the core's tests on aarch64 and on a big-endian machine, under QEMU
  wasm             the core's tests as WebAssembly, in Node
  bench            every filter, alone and beside its rivals; keeps the rows in results/
  bench filters    only petal's own; numbers of keys or --quick may follow: rows are printed
  bench rivals     only beside its rivals; likewise
  bench family     every type of filter beside its rivals: space, rate, time; keeps the rows in results/*/<date>-family.csv
                   unless numbers of keys or --quick follow
  bench files      petal and its rivals on line files, and the targets
  bench full       the headline at full size, approximate, through pipes
  bench server     the module in crates/module on a real redis-server, its CPU per request beside GET's; --quick
  bench python     the Python package beside the program, the library and rbloom
  bench headline   the exact headline at scale; `--help` after the name of a bench tells its options
  figures          tables and plots of docs/performance.md and docs/filters.md, from the newest results/*/<date>.csv and
                   <date>-family.csv or --from FILE
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["check"] => check::check(),
        ["test", tiers @ ..]
            if tiers.iter().all(|tier| ["--foreign", "--engines"].contains(tier)) =>
        {
            test(tiers.contains(&"--foreign"), tiers.contains(&"--engines"))
        }
        ["python", "--foreign", rest @ ..] => python::test(Tier::Foreign, rest),
        ["python", "--engines", rest @ ..] => python::test(Tier::Engines, rest),
        ["python", rest @ ..] => python::test(Tier::Own, rest),
        ["arch"] => arch::arch(),
        ["loom"] => loom::loom(),
        ["package"] => package::package(),
        ["wasm"] => wasm::wasm(),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => sanitize::fuzz(seconds),
            Err(_) => return usage(&format!("not a number of seconds: {seconds}")),
        },
        ["asan"] => sanitize::asan(),
        ["peers"] => peers::install(),
        ["peers", "golden"] => peers::golden(),
        ["cross"] => cross::cross(),
        ["bench"] => whole_bench(),
        ["bench", "--quick"] => {
            bench_of("filters", &["--quick"]).and_then(|()| bench_of("rivals", &["--quick"]))
        }
        ["bench", "family"] => bench_of("family", &["--keep", "new"]),
        ["bench", name @ ("filters" | "rivals" | "family"), rest @ ..] => bench_of(name, rest),
        ["bench", name @ ("files" | "full" | "headline" | "server"), rest @ ..] => {
            bench(name, rest)
        }
        ["bench", "python", rest @ ..] => python::bench(rest),
        ["figures", rest @ ..] => figures(rest),
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

/// Every test, by tier: what needs only a toolchain and the packages of Python; foreign programs;
/// engines.
fn test(foreign: bool, engines: bool) -> Result {
    check::test()?;
    python::test(Tier::Own, &[])?;
    if foreign {
        package::package()?;
        wasm::wasm()?;
        peers::test()?;
        python::test(Tier::Foreign, &[])?;
    }
    if engines {
        python::test(Tier::Engines, &[])?;
    }
    Ok(())
}

/// The program, or the module, as a release build, then the runner, which does the rest.
fn bench(name: &str, args: &[&str]) -> Result {
    let (package, other) =
        if name == "server" { ("petal-redis", "--module") } else { ("petal-cli", "--petal") };
    if !args.contains(&"--help") && !args.contains(&other) {
        Step::cargo(&["build", "--release", "--package", package]).run()?;
    }
    bench_of(name, args)
}

/// Both programs of the filters into one file: the first begins it anew.
fn whole_bench() -> Result {
    bench_of("filters", &["--keep", "new"])?;
    bench_of("rivals", &["--keep", "add"])
}

/// A bench, in the crate that has it.
fn bench_of(name: &str, args: &[&str]) -> Result {
    let beside_rivals = matches!(name, "rivals" | "family");
    let package = if beside_rivals { "petal-bench-vs" } else { "petal-bench" };
    let runner = ["bench", "--quiet", "--package", package, "--bench", name, "--"];
    Step::cargo(&[&runner[..], args].concat()).run()
}

/// The runner does the work; without a release build, for it is short.
fn figures(args: &[&str]) -> Result {
    let runner = ["run", "--quiet", "--package", "petal-bench", "--bin", "figures", "--"];
    Step::cargo(&[&runner[..], args].concat()).run()
}
