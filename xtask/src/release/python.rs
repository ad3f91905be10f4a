//! The wheels and the source distribution of the Python package.

use std::path::Path;

use super::archive::{self, Archive};
use super::target::Target;
use super::tools::Tools;
use super::{VERSION, make, remake, write};
use crate::step::{Result, Step, root};

const MANIFEST: &str = "crates/python/Cargo.toml";

/// Ends of the names of files that every wheel must contain.
const IN_WHEEL: &[&str] = &[
    "petal/__init__.py",
    "petal/_petal.abi3.so",
    "petal/_petal.pyi",
    "petal/py.typed",
    ".dist-info/METADATA",
    ".dist-info/licenses/LICENSE-APACHE",
    ".dist-info/licenses/LICENSE-MIT",
];

/// Builds the wheel of a target: for CPython 3.11 and later, with the oldest manylinux tag that its symbols allow.
pub(super) fn wheel(tools: &Tools, target: &Target, files: &Path) -> Result {
    let out = files.to_string_lossy();
    let args = ["build", "--locked", "--profile", "dist", "--manifest-path", MANIFEST, "--zig"];
    let tag = ["--compatibility", "manylinux2014", "--target", target.name, "--out", &out];
    tools.step("maturin", &[&args[..], &tag].concat()).run()?;
    let wheels = archive::sorted_files(files)?;
    let found = wheels.iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_wheel_of(&name, target)
    });
    let wheel =
        found.ok_or_else(|| format!("release: maturin made no wheel for {}", target.name))?;
    let entries = tools.wheel_entries(wheel)?;
    for needed in IN_WHEEL {
        if !entries.iter().any(|(name, bytes)| {
            name.ends_with(needed) && (*bytes > 0 || *needed == "petal/py.typed")
        }) {
            return Err(format!("{}: no file {needed}, or it is empty", wheel.display()));
        }
    }
    Ok(())
}

/// Returns whether a file name is that of a manylinux wheel for CPython 3.11 and later on this target.
fn is_wheel_of(name: &str, target: &Target) -> bool {
    name.strip_prefix(&format!("petal_filters-{VERSION}-cp311-abi3-"))
        .and_then(|tags| tags.strip_suffix(".whl"))
        .is_some_and(|tags| {
            tags.split('.').all(|tag| {
                tag.starts_with("manylinux") && tag.ends_with(&format!("_{}", target.processor()))
            })
        })
}

/// Packs the source distribution with the sources of all dependencies, so that it builds without network.
pub(super) fn sdist(tools: &Tools, files: &Path) -> Result {
    let name = format!("petal_filters-{VERSION}");
    let folder = root().join("target/release-sdist");
    remake(&folder)?;
    let out = folder.to_string_lossy();
    tools.step("maturin", &["sdist", "--manifest-path", MANIFEST, "--out", &out]).run()?;
    Archive::unpack(&folder.join(format!("{name}.tar.gz")), &folder)?;
    let source = folder.join(&name);
    let (manifest, vendor) = (source.join("Cargo.toml"), source.join("vendor"));
    let (manifest, vendor) = (manifest.to_string_lossy(), vendor.to_string_lossy());
    // It prints the settings that are written below, with this machine's path.
    let args = ["vendor", "--quiet", "--versioned-dirs", "--manifest-path", &manifest, &vendor];
    Step::cargo(&args)
        .output()
        .ok_or("release: `cargo vendor` failed in the source distribution")?;
    make(&source.join(".cargo"))?;
    let settings = "[source.crates-io]\nreplace-with = \"vendored\"\n\n[source.vendored]\ndirectory = \"vendor\"\n";
    write(&source.join(".cargo/config.toml"), settings.as_bytes())?;
    let mut archive = Archive::create(files, &name)?;
    archive.add_folder(&source, "")?;
    archive.finish(&[
        "PKG-INFO",
        "pyproject.toml",
        "Cargo.lock",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "python/petal/__init__.py",
        "crates/core/src/lib.rs",
        ".cargo/config.toml",
        "vendor/pyo3-*",
    ])
}

#[cfg(test)]
mod tests {
    use super::super::target::TARGETS;
    use super::*;

    #[test]
    fn wheel_without_manylinux_tag_or_for_another_processor_is_not_accepted() {
        let target = &TARGETS[0];
        let accepted = |tags: &str| {
            is_wheel_of(&format!("petal_filters-{VERSION}-cp311-abi3-{tags}.whl"), target)
        };
        assert!(accepted("manylinux_2_17_x86_64.manylinux2014_x86_64"));
        assert!(accepted("manylinux2014_x86_64"));
        assert!(!accepted("linux_x86_64"));
        assert!(!accepted("manylinux_2_17_aarch64.manylinux2014_aarch64"));
        assert!(!accepted("manylinux2014_x86_64.linux_x86_64"));
        assert!(!is_wheel_of("petal_filters-9.9.9-cp311-abi3-manylinux2014_x86_64.whl", target));
    }
}
