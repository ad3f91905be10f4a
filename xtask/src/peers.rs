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

/// Installs the peers, and runs the tests in which they read and write filters, and those of object storage
/// and of tables, which need features: one build has both.
pub(crate) fn test() -> Result {
    install()?;
    let home = root().join(HOME);
    // The whole workspace is selected, because the features of dependencies are those of the tests before.
    let args = ["test", "--workspace", "--no-fail-fast", "--test", "foreign", "--", "--ignored"];
    Step::cargo(&args).env("PETAL_PEERS", &home.to_string_lossy()).run()?;
    let features = ["--features", "petal-cli/object-store,petal-cli/parquet"];
    let tests = ["--test", "objects", "--test", "tables", "--", "--include-ignored"];
    let args = [&["test", "--workspace", "--no-fail-fast"][..], &features, &tests].concat();
    Step::cargo(&args).env("PETAL_PEERS", &home.to_string_lossy()).run()
}
