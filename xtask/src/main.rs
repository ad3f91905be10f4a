//! `cargo x ...`: development commands. CONTRIBUTING.md describes when to use them.
//!
//! Most commands are a list of cargo steps; [`arch`] and [`words`] check the source. Exit code 0: success. 1: failure.
//! 2: wrong usage.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod arch;
mod book;
mod browser;
mod check;
mod cross;
mod example;
mod figures;
mod js;
mod lab;
mod loom;
mod package;
mod peers;
mod python;
mod readers;
mod release;
mod sanitize;
mod step;
mod test;
mod wasm;
mod words;

use std::process::ExitCode;

use python::Tier;
use step::{Result, Step};

const USAGE: &str = "\
usage: cargo x COMMAND

  check            format, arch, clippy, documentation: all checks without tests
  test             check, then all tests: of the workspace, doctests, loom, python
  test --foreign   test, then install the peers and run the tests with them
  test --engines   test, then the tests with Apache Spark
  test --foreign --engines   all of these
  python [ARG]...  build the Python package into target/python and run its tests; arguments are passed to pytest
  python --engines the tests with Apache Spark; python --foreign: those with the peers
  book             build the book into target/book (mdBook is downloaded once)
  browser [ARG]... build the book and run the browser tests; arguments are passed to pytest
  example NAME [ARG]...  build petal and run one of the programs in examples/
  examples [ARG]...  test the examples with their counterparts; arguments are passed to pytest
  arch             check for dependency cycles, misplaced unsafe code, long files, and that ARCHITECTURE.md is up to date
  arch --write     the same, and update the tables in ARCHITECTURE.md
  words [PATH]...  find words to avoid, and conflicts of merges, in tracked files
  loom             test the concurrent filter in every interleaving of its threads
  release          build the archives, packages, wheels, crates and jar of a release into target/release-files
  release TARGET...  only for these targets of Rust
  release --dry-run [TARGET]...  the same; skips what cannot be built on this machine, and names it
  release --dev    pack the program, the module and libpetal of the dev profile, and check the archives
  release --publish-crates  publish the crates, in the order of their dependencies
  package          pack the published crates, build them from their packages, run the packed examples
  fuzz             run each fuzz target for about ten seconds, with the same inputs every time
  fuzz SECONDS     run each fuzz target for this time, from the inputs that earlier runs kept
  sanitize         run the library's tests with AddressSanitizer, and with Miri if it is installed (nightly)
  peers            install the foreign libraries into target/peers, from their package registries
  peers golden     the same, and let them write the missing files of testdata/foreign
  cross            run the core's tests on aarch64 and on a big-endian machine, with QEMU; check libpetal for other systems
  js               build the package for JavaScript into target/js, and test it in Node
  wasm             run the core's tests as WebAssembly, in Node
  bench            time the Bloom filters and their rivals; rows go to results/
  bench filters    time petal's Bloom filters only; print the rows
  bench rivals     time petal's default filters and their rivals; print the rows
  bench family     compare every type of filter with its rivals: space, rate, time; rows go to results/
  bench known      compare static filters with their rivals on lists of digests; rows go to results/
  bench files      compare petal with its rivals on files of lines
  bench full       build and query a filter of 5 billion lines through pipes
  bench headline   compare petal with DuckDB on large files
  bench server     measure the module on redis-server: CPU time per request relative to GET
  bench languages  time queries in each language, beside a filter of the language; rows go to results/
  bench python     compare the Python package with the program, the library and rbloom
  lab [ARG]...     compare ways to remember which URLs were seen: databases, sets, filters; rows go to results/
  figures          update the tables and plots of the docs and of results/filters.md from results/
  figures --check  the same tables and plots as in the docs, or exit code 1; needs only Python

`--help` after the name of a benchmark lists its options.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["check"] => check::check(),
        ["test", tiers @ ..]
            if tiers.iter().all(|tier| ["--foreign", "--engines"].contains(tier)) =>
        {
            test::test(tiers.contains(&"--foreign"), tiers.contains(&"--engines"))
        }
        ["python", "--foreign", rest @ ..] => python::test(Tier::Foreign, rest),
        ["python", "--engines", rest @ ..] => python::test(Tier::Engines, rest),
        ["python", rest @ ..] => python::test(Tier::Own, rest),
        ["book"] => book::build(),
        ["browser", rest @ ..] => browser::test(rest),
        ["example", name, rest @ ..] => example::run(name, rest),
        ["examples", rest @ ..] => example::test(rest),
        ["arch"] => arch::arch(false),
        ["arch", "--write"] => arch::arch(true),
        ["words", paths @ ..] => words::words(paths),
        ["loom"] => loom::loom(),
        ["package"] => package::package(),
        ["release", "--publish-crates"] => release::publish_crates(),
        ["release", "--dev"] => release::pack_dev_builds(),
        ["release", "--dry-run", targets @ ..] => release::release(true, targets),
        ["release", targets @ ..] => release::release(false, targets),
        ["js"] => js::build_and_test(),
        ["wasm"] => wasm::wasm(),
        ["fuzz"] => sanitize::fuzz_briefly(),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => sanitize::fuzz(seconds),
            Err(_) => return usage(&format!("not a number of seconds: {seconds}")),
        },
        ["sanitize"] => sanitize::sanitize(),
        ["peers"] => peers::install(),
        ["peers", "golden"] => peers::golden(),
        ["cross"] => cross::cross(),
        ["bench"] => whole_bench(),
        ["bench", "--quick"] => {
            bench_of("filters", &["--quick"]).and_then(|()| bench_of("rivals", &["--quick"]))
        }
        ["bench", "family"] => bench_of("family", &["--keep", "new"]),
        ["bench", name @ ("filters" | "rivals" | "family" | "known"), rest @ ..] => {
            bench_of(name, rest)
        }
        ["bench", name @ ("files" | "full" | "headline" | "server"), rest @ ..] => {
            bench(name, rest)
        }
        ["bench", "python", rest @ ..] => python::bench(rest),
        ["bench", "languages", rest @ ..] => readers::bench(rest),
        ["lab", rest @ ..] => lab::run(rest),
        ["figures", rest @ ..] => figures::run(rest),
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

/// Builds the program or the module as it is published, and runs a benchmark with it.
fn bench(name: &str, args: &[&str]) -> Result {
    let (package, other) =
        if name == "server" { ("petal-redis", "--module") } else { ("petal-cli", "--petal") };
    if !args.contains(&"--help") && !args.contains(&other) {
        Step::cargo(&["build", "--profile", "dist", "--package", package]).run()?;
    }
    match name {
        "server" => bench_of("server", args),
        // One benchmark with a command for each name.
        _ => bench_of("lines", &[&[name], args].concat()),
    }
}

/// Runs both benchmarks of Bloom filters; their rows go to the same file.
fn whole_bench() -> Result {
    bench_of("filters", &["--keep", "new"])?;
    bench_of("rivals", &["--keep", "add"])
}

/// Runs a benchmark of petal-bench or petal-bench-vs.
fn bench_of(name: &str, args: &[&str]) -> Result {
    let with_rivals = matches!(name, "rivals" | "family" | "known");
    let package = if with_rivals { "petal-bench-vs" } else { "petal-bench" };
    let runner = ["bench", "--quiet", "--package", package, "--bench", name, "--"];
    Step::cargo(&[&runner[..], args].concat()).run()
}
