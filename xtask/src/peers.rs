//! `peers`: the foreign libraries, as `peers/README.md` tells, and the tests that need them.

use crate::step::{Result, Step, root};

/// Where they are installed: a folder that git passes over.
pub(crate) const HOME: &str = "target/peers";

/// Installs all of them; what is there already stays.
pub(crate) fn install() -> Result {
    Step::script("peers/install.sh", &[HOME]).run()
}

/// [`install`], then lets them write the golden files that are missing.
pub(crate) fn golden() -> Result {
    install()?;
    Step::script("peers/golden.sh", &[HOME]).run()
}

/// [`install`], then the tests in which they write what we read, and read what we write.
pub(crate) fn test() -> Result {
    install()?;
    let home = root().join(HOME);
    let packages = ["petal-interop", "petal-cli", "petal-redis"].map(|name| ["--package", name]);
    let words = [&["test", "--no-fail-fast"], packages.as_flattened()].concat();
    Step::cargo(&[&words[..], &["--test", "foreign", "--", "--ignored"]].concat())
        .env("PETAL_PEERS", &home.to_string_lossy())
        .run()
}
