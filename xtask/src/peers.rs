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

/// Installs the peers, and runs the tests in which they read and write filters.
pub(crate) fn test() -> Result {
    install()?;
    let home = root().join(HOME);
    let packages = ["petal-interop", "petal-cli", "petal-redis"].map(|name| ["--package", name]);
    let args = [&["test", "--no-fail-fast"], packages.as_flattened()].concat();
    Step::cargo(&[&args[..], &["--test", "foreign", "--", "--ignored"]].concat())
        .env("PETAL_PEERS", &home.to_string_lossy())
        .run()
}
