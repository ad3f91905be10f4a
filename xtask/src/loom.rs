//! `loom`: tests the concurrent filter in every interleaving of its threads.

use crate::step::{Result, Step};

/// Runs the tests named `loom_*`, built with loom's atomics in a separate target folder.
pub(crate) fn loom() -> Result {
    // Optimizing loom's dependencies takes longer than it saves; optimizing loom itself does not.
    let plain = ["--config", "profile.dev.package.'*'.opt-level=0"];
    let fast = ["--config", "profile.dev.package.loom.opt-level=2"];
    let tests =
        ["test", "--package", "petal-filters", "--lib", "--target-dir", "target/loom", "loom_"];
    Step::cargo(&[&plain[..], &fast, &tests].concat()).env("RUSTFLAGS", "--cfg loom").run()
}
