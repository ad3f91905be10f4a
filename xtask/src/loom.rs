//! `loom`: the concurrent filter's protocol in every order of its threads.

use crate::step::{Result, Step};

/// Runs the tests that are named after it, built with loom's atomics in a target folder of their own.
pub(crate) fn loom() -> Result {
    Step::cargo(&["test", "--package", "petal", "--lib", "--target-dir", "target/loom", "loom_"])
        .env("RUSTFLAGS", "--cfg loom")
        .run()
}
