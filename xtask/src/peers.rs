//! `peers`: the foreign libraries (see `peers/README.md`), and the tests that need them.

use crate::step::{Result, Step, root};

/// The folder in which they are installed; git ignores it.
pub(crate) const HOME: &str = "target/peers";

/// Installs all that are missing.
pub(crate) fn install() -> Result {
    Step::script("peers/install.sh", &[HOME]).run()
}

/// Installs the peers, and lets them write the missing golden files.
pub(crate) fn golden() -> Result {
    install()?;
    Step::script("peers/golden.sh", &[HOME]).run()
}

/// Runs the tests in which the peers read and write filters.
pub(crate) fn test_formats() -> Result {
    // The whole workspace is selected, because the features of dependencies are those of the tests before.
    let args = ["test", "--workspace", "--no-fail-fast", "--test", "foreign", "--", "--ignored"];
    Step::cargo(&args).env("PETAL_PEERS", &root().join(HOME).to_string_lossy()).run()
}

/// Runs the tests of object storage and of tables, which need features: one build has both. It replaces the program in
/// `target/debug`, so other tests may not run at the same time.
pub(crate) fn test_features() -> Result {
    let features = ["--features", "petal-cli/object-store,petal-cli/parquet"];
    let tests = ["--test", "objects", "--test", "tables", "--", "--include-ignored"];
    let args = [&["test", "--workspace", "--no-fail-fast"][..], &features, &tests].concat();
    Step::cargo(&args).env("PETAL_PEERS", &root().join(HOME).to_string_lossy()).run()
}
