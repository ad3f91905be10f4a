//! `check` and `test`: what a change must pass.

use crate::step::{Result, Step, root};
use crate::{arch, loom, package};

/// Everything that needs no test to run. Fast steps first.
pub(crate) fn check() -> Result {
    Step::cargo(&["fmt", "--all", "--check"]).run()?;
    if root().join("fuzz/Cargo.toml").exists() {
        Step::cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]).run()?;
    }
    arch::arch()?;
    package::package()?;
    Step::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    Step::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()
}

/// [`check`], the orders of threads, then every test; ends with a count of what ran.
pub(crate) fn test() -> Result {
    check()?;
    loom::loom()?;
    let mut tally = Tally::default();
    let outcome =
        Step::cargo(&["test", "--workspace", "--no-fail-fast"]).run_seeing(|line| tally.see(line));
    println!(
        "\ncargo x test: check passed (format, arch, clippy, docs), and loom; {} tests passed, {} failed, {} ignored, \
         in {} test programs and doctest sets",
        tally.passed, tally.failed, tally.ignored, tally.sets
    );
    if tally.ignored > 0 {
        println!("the ignored ones are the long forms: cargo test --workspace -- --ignored");
    }
    outcome
}

/// Sums libtest's own result lines.
#[derive(Default)]
struct Tally {
    sets: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn see(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        self.sets += 1;
        for part in rest.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
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
    fn the_tally_reads_libtest() {
        let mut tally = Tally::default();
        tally.see("running 3 tests");
        tally.see("test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.03s");
        tally.see("test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.03s");
        assert_eq!((tally.sets, tally.passed, tally.failed, tally.ignored), (2, 13, 4, 2));
    }
}
