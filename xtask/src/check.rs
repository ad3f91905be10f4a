//! `check`, and the tests of the workspace: what every change must pass.

use crate::step::{Result, Step, root};
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
    Step::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    Step::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()
}

/// Builds all tests of the workspace.
pub(crate) fn build_tests() -> Result {
    Step::cargo(&["test", "--workspace", "--no-run"]).run()
}

/// Runs all tests of the workspace; prints their number.
pub(crate) fn run_tests() -> Result {
    let mut tally = Tally::default();
    let outcome = Step::cargo(&["test", "--workspace", "--no-fail-fast"])
        .run_with_lines(|line| tally.add(line));
    println!(
        "\ncargo x test: {} tests passed, {} failed, {} ignored, in {} test programs and doctest sets",
        tally.passed, tally.failed, tally.ignored, tally.sets
    );
    if tally.ignored > 0 {
        println!("ignored tests take longer; run them with: cargo test --workspace -- --ignored");
    }
    outcome
}

/// Sums of libtest's result lines.
#[derive(Default)]
struct Tally {
    sets: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn add(&mut self, line: &str) {
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
}
