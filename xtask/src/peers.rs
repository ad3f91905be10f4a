//! `peers`: the foreign libraries (see `peers/README.md`), and the tests that need them.

use crate::check;
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

/// Runs the tests that need the peers: programs that read and write filters, object stores, tools for C.
pub(crate) fn test() -> Result {
    let tests = ["foreign", "objects", "programs", "tables"].map(|name| ["--test", name]).concat();
    let tests = [&tests[..], &["--", "--ignored"]].concat();
    Step::cargo(&[&["test", "--no-fail-fast"], &check::WORKSPACE[..], &tests].concat())
        .env("PETAL_PEERS", &root().join(HOME).to_string_lossy())
        .run()
}
