//! What is in each archive.

use std::path::Path;

use super::archive::Archive;
use super::target::Target;
use crate::step::{Result, root};

const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Packs the program with its completion scripts and man pages.
pub(super) fn program(target: &Target, dir: &Path, manual: &Path, files: &Path) -> Result {
    let mut archive = Archive::create(files, &target.archive("petal"))?;
    archive.add(&dir.join("petal"), "petal")?;
    for name in LICENCES.iter().chain(&["CHANGELOG.md"]) {
        archive.add(&root().join(name), name)?;
    }
    archive.add(&root().join("crates/cli/README.md"), "README.md")?;
    archive.add_folder(manual, "")?;
    let pages = [
        "petal",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "man/petal.1",
        "man/petal-common.1",
    ];
    let scripts = ["completions/petal.bash", "completions/_petal", "completions/petal.fish"];
    archive.finish(&[&pages[..], &scripts].concat())
}

/// Packs the server module with its configuration.
pub(super) fn module(target: &Target, dir: &Path, files: &Path) -> Result {
    let mut archive = Archive::create(files, &target.archive("petal-redis"))?;
    archive.add(&dir.join("libpetal_redis.so"), "libpetal_redis.so")?;
    for name in LICENCES {
        archive.add(&root().join(name), name)?;
    }
    archive.add_folder(&root().join("packaging/redis/archive"), "")?;
    archive.finish(&[
        "libpetal_redis.so",
        "petal.conf",
        "systemd/petal.conf",
        "README.md",
        "LICENSE-MIT",
    ])
}

/// Packs the debug information of the program and the module.
pub(super) fn debug_info(target: &Target, dir: &Path, files: &Path) -> Result {
    let mut archive = Archive::create(files, &target.archive("petal-debug"))?;
    let names: Vec<String> = target.binaries().iter().map(|name| format!("{name}.debug")).collect();
    for name in &names {
        archive.add(&dir.join(name), name)?;
    }
    archive.finish(&names.iter().map(String::as_str).collect::<Vec<_>>())
}
