//! `package`: packs the published crates and builds them from their packages.
//!
//! A package must contain all files that it includes by path. The examples of the packed library are run from a copy
//! outside the workspace.

use std::path::Path;
use std::process::Command;

use crate::step::{Result, Step, root};

/// The published crates, in order of publication.
pub(crate) const PUBLISHED: &[&str] =
    &["petal-filters", "petal-lines", "petal-interop", "petal-cli", "petal-redis"];

/// Files that every package must contain.
const NEEDED: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The crate whose examples are run from its package.
const LIBRARY: &str = "petal-filters";

/// Packs and builds every published crate, runs the program without optional features, and the examples of the packed
/// library.
pub(crate) fn package() -> Result {
    // Cargo keeps the unpacked sources of a local registry in its home, by path and version: in the same folder, a
    // second run would compile the packages of the first.
    let folder = root().join(format!("target/published/{}", seconds_since_1970()));
    let result = package_into(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn seconds_since_1970() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs())
}

/// Packs, builds and tests in a folder.
fn package_into(folder: &Path) -> Result {
    let target_dir = folder.to_string_lossy();
    let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    // Uncommitted changes are tested, too.
    let mut args = vec!["package", "--allow-dirty", "--target-dir", &target_dir];
    args.extend(packages);
    Step::cargo(&args).env("CARGO_PROFILE_DEV_DEBUG", "false").run()?;
    let packed = folder.join("package");
    for name in PUBLISHED {
        let package = folder_of(&packed, name)?;
        for file in NEEDED {
            if !package.join(file).is_file() {
                return Err(format!("package {name}: no {file}"));
            }
        }
    }
    let build =
        ["build", "--package", "petal-cli", "--no-default-features", "--target-dir", &target_dir];
    Step::cargo(&build).env("CARGO_PROFILE_DEV_DEBUG", "false").run()?;
    refuses_what_it_was_built_without(&folder.join("debug/petal"))?;
    let outside = std::env::temp_dir().join(format!("petal-package-{}", std::process::id()));
    copy(&folder_of(&packed, LIBRARY)?, &outside)
        .map_err(|error| format!("{}: {error}", outside.display()))?;
    let manifest = outside.join("Cargo.toml");
    let tested = Step::cargo(&[
        "test",
        "--doc",
        "--manifest-path",
        &manifest.to_string_lossy(),
        "--target-dir",
        &target_dir,
    ])
    .run();
    let _ = std::fs::remove_dir_all(&outside);
    tested
}

/// Runs the program without the features that all other tests have, and checks its messages.
fn refuses_what_it_was_built_without(petal: &Path) -> Result {
    for (input, expected) in [
        (
            "testdata/tables/a.parquet",
            "petal: testdata/tables/a.parquet: is a Parquet file, expected lines; build petal with its default \
             features to read its columns, or use --text",
        ),
        (
            "https://***@host/path",
            "petal: https://***@host/path: cannot read: this petal was built without object storage; build it with \
             its default features",
        ),
    ] {
        let mut command = Command::new(petal);
        let secret = input.replace("***", "secret");
        let output =
            command.args(["dedup", "--column", "url", &secret]).current_dir(root()).output();
        let output = output.map_err(|e| format!("cannot start {}: {e}", petal.display()))?;
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || !message.starts_with(expected) {
            return Err(format!(
                "the program without features: expected {expected:?}, found {message:?}"
            ));
        }
    }
    Ok(())
}

/// Returns the folder of an unpacked package.
fn folder_of(packed: &Path, name: &str) -> Result<std::path::PathBuf> {
    let folder = packed.join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(format!("cargo package did not create {}", folder.display()))
    }
}

/// Copies a folder recursively.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
