//! `package`: the crates as they are published.
//!
//! Packs them all, and looks for the licences and the README in each. What is packed is not built:
//! `cargo package` without `--no-verify` does that, in minutes.

use crate::step::{Result, Step};

/// In the order in which they depend on each other.
const PUBLISHED: [&str; 4] = ["petal-filters", "petal-lines", "petal-interop", "petal-cli"];

/// What each of them must have beside its code.
const FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

pub(crate) fn package() -> Result {
    for name in PUBLISHED {
        let args = ["package", "--package", name, "--list", "--allow-dirty", "--offline"];
        let list = Step::cargo(&args).output().ok_or(format!("{name}: cannot be listed"))?;
        let packed: Vec<&str> = list.lines().collect();
        let missing: Vec<_> = FILES.into_iter().filter(|file| !packed.contains(file)).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(format!("{name}: its package lacks {missing}; link it into its folder"));
        }
    }
    let mut args = vec!["package", "--no-verify", "--allow-dirty", "--offline"];
    PUBLISHED.iter().for_each(|name| args.extend(["--package", name]));
    Step::cargo(&args).run()
}
