//! What is in each archive.

use std::path::Path;

use super::VERSION;
use super::archive::Archive;
use super::target::Target;
use crate::step::{Result, Step, root};

pub(super) const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Files that the archive of the program must contain; its README names them.
const PROGRAM: &[&str] = &[
    "petal",
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "man/petal.1",
    "man/petal-common.1",
    "completions/petal.bash",
    "completions/_petal",
    "completions/petal.fish",
];

/// Packs the program with its completion scripts and man pages.
pub(super) fn program(target: &Target, dir: &Path, manual: &Path, files: &Path) -> Result {
    let mut archive = Archive::create(files, &target.archive("petal"))?;
    archive.add(&dir.join("petal"), "petal")?;
    for name in LICENCES.iter().chain(&["CHANGELOG.md"]) {
        archive.add(&root().join(name), name)?;
    }
    archive.add_folder(&root().join("packaging/petal"), "")?;
    archive.add_folder(manual, "")?;
    archive.finish(PROGRAM)
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
        "monitoring/petal.lua",
        "tools/union.py",
        "monitoring/alerts.yml",
        "monitoring/grafana.json",
        "README.md",
        "LICENSE-MIT",
    ])
}

/// Builds the Debian package of the server module. Needs dpkg-deb.
pub(super) fn debian_package(target: &Target, dir: &Path, files: &Path) -> Result {
    let module = dir.join("libpetal_redis.so");
    let (module, files) = (module.to_string_lossy(), files.to_string_lossy());
    let args = [&module, VERSION, target.debian_architecture(), &files];
    Step::script("packaging/redis/deb.sh", &args).run()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_has_the_files_that_its_readme_names() {
        let readme = std::fs::read_to_string(root().join("packaging/petal/README.md")).unwrap();
        let table = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let commands = readme.lines().filter_map(|line| line.trim().strip_prefix("install -D -m "));
        let sources = commands.map(|args| args.split(' ').nth_back(1).unwrap());
        let names: Vec<&str> = table
            .flat_map(|cell| cell.split(", "))
            .map(|name| name.trim_matches('`'))
            .chain(sources.filter(|source| !source.starts_with('~')))
            .collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert!(PROGRAM.iter().any(|file| file.starts_with(name)), "README names {name}");
        }
    }
}
