//! `check`, and the tests of the workspace: what every change must pass.

use crate::step::{self, Result, Step, root};
use crate::{arch, wasm, words};

/// Runs all checks without tests, fast ones first.
pub(crate) fn check() -> Result {
    Step::cargo(&["fmt", "--all", "--check"]).run()?;
    if root().join("fuzz/Cargo.toml").exists() {
        Step::cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]).run()?;
    }
    arch::arch(false)?;
    words::words(&[])?;
    wasm::check_without_std_feature()?;
    let lints = ["--workspace", "--features", SQLITE, "--all-targets", "--", "-D", "warnings"];
    Step::cargo(&[&["clippy"], &lints[..]].concat()).run()?;
    let doc = ["doc", "--workspace", "--features", SQLITE, "--no-deps"];
    Step::cargo(&doc).env("RUSTDOCFLAGS", "-D warnings").run()
}

/// Features that need SQLite, which is C and takes long to compile.
const SQLITE: &str = "petal-bench-vs/lab,petal-example-crawler/sqlite";

/// What every test of the workspace is compiled with: all crates, all features of the program, and SQLite. Another
/// selection would compile the crates once more.
pub(crate) const WORKSPACE: [&str; 3] = ["--workspace", "--features", SQLITE];

/// Builds all tests of the workspace.
pub(crate) fn build_tests() -> Result {
    Step::cargo(&[&["test", "--no-run"], &WORKSPACE[..]].concat()).run()
}

/// Runs all tests of the workspace; prints their number and the slowest ones.
pub(crate) fn run_tests() -> Result {
    let mut tally = Tally::default();
    let test = [&["test", "--no-fail-fast"], &WORKSPACE[..]].concat();
    let programs = ["--tests", "--", "-Zunstable-options", "--report-time"];
    // A test program of the stable toolchain reports times only with this variable. A build must not have it: the scripts
    // of some dependencies would run again.
    let runner = format!("CARGO_TARGET_{}_RUNNER", step::host()?.to_uppercase().replace('-', "_"));
    let outcomes = [
        Step::cargo(&[&test[..], &programs].concat())
            .env(&runner, "env RUSTC_BOOTSTRAP=1")
            .run_with_lines(|line| tally.add(line)),
        Step::cargo(&[&test[..], &["--doc"]].concat()).run_with_lines(|line| tally.add(line)),
    ];
    println!("\nslowest tests:");
    for (seconds, name) in tally.slowest(10) {
        println!("{seconds:8.1} s  {name}");
    }
    println!(
        "\ncargo x test: {} tests passed, {} failed, {} ignored, in {} test programs and doctest sets",
        tally.passed, tally.failed, tally.ignored, tally.sets
    );
    if tally.ignored > 0 {
        println!(
            "ignored tests take longer; run them with: cargo test {} -- --ignored",
            WORKSPACE.join(" ")
        );
    }
    let errors: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\ncargo x: ")) }
}

/// Sums of libtest's result lines, and the times of the tests.
#[derive(Default)]
struct Tally {
    times: Vec<(f64, String)>,
    sets: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn add(&mut self, line: &str) {
        // test name::of::it ... ok <0.123s>
        if let Some((test, time)) = line.strip_prefix("test ").and_then(|l| l.rsplit_once(" <"))
            && let Some((name, _)) = test.split_once(" ... ")
            && let Ok(seconds) = time.trim_end_matches("s>").parse()
        {
            self.times.push((seconds, name.to_owned()));
        }
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        self.sets += 1;
        for part in rest.split([';', '.']) {
            let mut parts = part.split_whitespace();
            let (Some(number), Some(result)) = (parts.next(), parts.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match result {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl Tally {
    /// Returns the tests that took the most time, the slowest first.
    fn slowest(&mut self, number: usize) -> &[(f64, String)] {
        self.times.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        &self.times[..number.min(self.times.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn libtest_results_are_summed() {
        let mut tally = Tally::default();
        tally.add("running 3 tests");
        tally.add("test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.03s");
        tally.add("test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.03s");
        assert_eq!((tally.sets, tally.passed, tally.failed, tally.ignored), (2, 13, 4, 2));
    }

    #[test]
    fn slowest_tests_come_first() {
        let mut tally = Tally::default();
        for line in [
            "test one::fast ... ok <0.002s>",
            "test two::slow ... FAILED <12.500s>",
            "test three ... ignored",
            "test four - should panic ... ok <1.0s>",
        ] {
            tally.add(line);
        }
        let names: Vec<_> = tally.slowest(2).iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["two::slow", "four - should panic"]);
    }
}
