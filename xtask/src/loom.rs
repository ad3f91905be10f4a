//! `loom`: the concurrent filter's protocol in every order of its threads.

use crate::step::{Result, Step};

/// Runs the tests that are named after it, built with loom's atomics in a target folder of their own.
pub(crate) fn loom() -> Result {
    // What loom brings along takes longer to optimise than it then saves; loom itself does not.
    let plain = ["--config", "profile.dev.package.'*'.opt-level=0"];
    let fast = ["--config", "profile.dev.package.loom.opt-level=2"];
    let tests =
        ["test", "--package", "petal-filters", "--lib", "--target-dir", "target/loom", "loom_"];
    Step::cargo(&[&plain[..], &fast, &tests].concat()).env("RUSTFLAGS", "--cfg loom").run()
}
