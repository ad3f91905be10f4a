//! The wheels and the source distribution of the Python package.

use std::path::Path;

use super::archive::{self, Archive};
use super::target::Target;
use super::tools::Tools;
use super::{VERSION, make, remake, write};
use crate::step::{Result, Step, root};

const MANIFEST: &str = "crates/python/Cargo.toml";

/// Builds the wheel of a target: for CPython 3.11 and later, with the oldest manylinux tag that its symbols allow.
pub(super) fn wheel(tools: &Tools, target: &Target, files: &Path) -> Result {
    let out = files.to_string_lossy();
    let args = ["build", "--locked", "--profile", "dist", "--manifest-path", MANIFEST, "--zig"];
    let tag = ["--compatibility", "manylinux2014", "--target", target.name, "--out", &out];
    tools.step("maturin", &[&args[..], &tag].concat()).run()?;
    let found = archive::sorted_files(files)?.into_iter().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let machine = target.name.split('-').next().unwrap_or_default();
        let start = format!("petal_filters-{VERSION}-cp311-abi3-manylinux");
        name.starts_with(&start) && name.ends_with(&format!("{machine}.whl"))
    });
    if found { Ok(()) } else { Err(format!("release: maturin made no wheel for {}", target.name)) }
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
