//! `package`: the published crates, packed and built as the registry would hand them out.
//!
//! A packed crate has no repository around it, so what it includes by path must be inside. The
//! packed library is also tested: its examples, from a copy outside the workspace.

use std::path::Path;

use crate::step::{Result, Step, root};

/// The crates that are published, in the order in which they can be.
const PUBLISHED: &[&str] =
    &["petal-filters", "petal-lines", "petal-interop", "petal-cli", "petal-redis"];

/// Files that every package must hold.
const NEEDED: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The crate whose examples are run from its package.
const LIBRARY: &str = "petal-filters";

/// Packs and builds every published crate, then runs the examples of the packed library.
pub(crate) fn package() -> Result {
    let target = root().join("target");
    let target_dir = target.join("published");
    let target_dir = target_dir.to_string_lossy();
    let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    // Uncommitted changes are packed too: they are what is being tested.
    let mut words = vec!["package", "--allow-dirty", "--target-dir", &target_dir];
    words.extend(packages);
    Step::cargo(&words).run()?;
    let packed = target.join("published/package");
    for name in PUBLISHED {
        let folder = folder_of(&packed, name)?;
        for file in NEEDED {
            if !folder.join(file).is_file() {
                return Err(format!("package {name}: no {file}"));
            }
        }
    }
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

/// The folder that cargo unpacked a package into: its name and its version.
fn folder_of(packed: &Path, name: &str) -> Result<std::path::PathBuf> {
    let folder = packed.join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(format!("cargo package left no {}", folder.display()))
    }
}

/// Copies a folder and what is in it.
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
