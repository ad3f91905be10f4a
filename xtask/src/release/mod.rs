//! `release`: builds the files of a release into `target/release-files` and lists what is in each.
//!
//! The workflow of a release runs the same command. Programs, modules and wheels are cross-compiled with Zig's C
//! compiler and linker, which bring the C libraries of every target: one Linux machine builds all files, and the
//! programs for glibc need version 2.17 (2014) or later.

mod archive;
mod binary;
mod contents;
mod library;
mod python;
mod target;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use crate::js;
use crate::package::PUBLISHED;
use crate::step::{Result, Step, root, target_dir};
use archive::Archive;
use target::{TARGETS, Target};
use tools::Tools;

/// The folder of the files; git ignores it.
const FILES: &str = "target/release-files";

/// Version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Platforms without a program, and the reason.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("macOS", "the file engine uses Linux' O_TMPFILE, preadv2, posix_fadvise and /proc/meminfo"),
    ("Windows", "the file engine uses file descriptors, inodes and links of Unix"),
];

/// Builds all files for these targets; none: for all. Targets whose tools are missing are skipped in a dry run and an
/// error otherwise.
pub(crate) fn release(dry_run: bool, names: &[&str]) -> Result {
    let mut targets = vec![];
    for name in names {
        let known = TARGETS.iter().find(|target| target.name == *name);
        targets.push(known.ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            format!("release: unknown target {name}, expected one of {}", known.join(", "))
        })?);
    }
    if targets.is_empty() {
        targets = TARGETS.iter().collect();
    }
    let files = root().join(FILES);
    remake(&files)?;
    let mut skipped = vec![];
    let tools = match Tools::install() {
        Ok(tools) => {
            build(&tools, &targets, &files, &mut skipped)?;
            python::sdist(&tools, &files)?;
            Some(tools)
        }
        Err(missing) => {
            skipped.push(format!("programs, modules, wheels and sdist: {missing}"));
            None
        }
    };
    crates(&files)?;
    if let Err(missing) = js::package().and_then(|()| js::pack(&files)) {
        skipped.push(format!("package for JavaScript: {missing}"));
    }
    if let Err(missing) = library::jar(&files) {
        skipped.push(format!("jar of the reader for Java: {missing}"));
    }
    archive::write_checksums(&files)?;
    list(&files, tools.as_ref())?;
    println!("\nGo module {}", library::go_module()?);
    println!("\nNot built:");
    for line in &skipped {
        println!("  {line}");
    }
    for (platform, why) in UNSUPPORTED {
        println!("  {platform}: {why}; the library petal-filters supports it");
    }
    println!("  container: packaging/redis/Dockerfile, by the workflow of the release");
    if dry_run || skipped.is_empty() {
        Ok(())
    } else {
        Err(format!("release: not complete: {}", skipped.join("; ")))
    }
}

/// Publishes the crates in the order of their dependencies.
pub(crate) fn publish_crates() -> Result {
    let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    Step::cargo(&["publish", "--locked"].into_iter().chain(packages).collect::<Vec<_>>()).run()
}

/// Packs the program, the module and libpetal of the dev profile, checks the archives and compiles a program with
/// libpetal. Takes seconds after the tests.
pub(crate) fn pack_dev_builds() -> Result {
    crate::python::build_programs(&[])?;
    let files = root().join("target/release-dev");
    remake(&files)?;
    let target = Target { name: "dev", ..TARGETS[0] };
    let built = target_dir().join("debug");
    let manual = manual(&built.join("petal"), &files)?;
    contents::program(&target, &built, &manual, &files)?;
    // Built as a dependency of its tests, as in the other steps.
    contents::module(&target, &built.join("deps"), &files)?;
    contents::debian_package(&target, &built.join("deps"), &files)?;
    library::pack(&target, &built.join("deps"), &built.join("deps"), &files)?;
    library::try_installed(&target, &files)?;
    // Without the jar, which the tests of the reader for Java build at the same time.
    if !root().join(js::PACKAGE).join("package.json").exists() {
        js::package()?;
    }
    js::pack(&files)?;
    archive::write_checksums(&files)?;
    list(&files, None)?;
    println!("\nGo module {}", library::go_module()?);
    Ok(())
}

/// Builds the files of each target.
fn build(tools: &Tools, targets: &[&Target], files: &Path, skipped: &mut Vec<String>) -> Result {
    let mut built = vec![];
    for target in targets {
        match target.install_std() {
            Ok(()) => built.push((*target, target.build(tools)?)),
            Err(missing) => skipped.push(format!("{}: {missing}", target.name)),
        }
    }
    let program =
        match built.iter().map(|(_, dir)| dir.join("petal")).find(|file| tools::starts(file)) {
            Some(program) => program,
            // No target runs on this machine; every build of the program writes the same manual.
            None => {
                Step::cargo(&[
                    "build",
                    "--profile",
                    "quick",
                    "--no-default-features",
                    "--package",
                    "petal-cli",
                ])
                .run()?;
                target_dir().join("quick/petal")
            }
        };
    let manual = manual(&program, files)?;
    for (target, dir) in &built {
        let stripped = target.strip(dir)?;
        for name in target.binaries() {
            binary::check_stripped(&stripped.join(name), target)?;
            binary::check_debug_info(&stripped.join(format!("{name}.debug")))?;
        }
        contents::program(target, &stripped, &manual, files)?;
        if target.has_module() {
            contents::module(target, &stripped, files)?;
            if let Err(missing) = contents::debian_package(target, &stripped, files) {
                skipped.push(format!("Debian package for {}: {missing}", target.name));
            }
            if let Err(missing) = library::pack(target, dir, &stripped, files) {
                skipped.push(format!("libpetal for {}: {missing}", target.name));
            }
            python::wheel(tools, target, files)?;
        }
        contents::debug_info(target, &stripped, files)?;
    }
    Ok(())
}

/// Writes completion scripts and man pages, and returns their folder.
fn manual(program: &Path, files: &Path) -> Result<PathBuf> {
    let folder = files.with_extension("manual");
    remake(&folder)?;
    let (completions, man) = (folder.join("completions"), folder.join("man"));
    make(&completions)?;
    for (shell, name) in [("bash", "petal.bash"), ("zsh", "_petal"), ("fish", "petal.fish")] {
        let script = Step::program(program, &["completions", shell])
            .output()
            .ok_or_else(|| format!("release: `petal completions {shell}` failed"))?;
        write(&completions.join(name), script.as_bytes())?;
    }
    Step::program(program, &["man", "--dir", &man.to_string_lossy()]).run()?;
    Ok(folder)
}

/// Packs the published crates.
fn crates(files: &Path) -> Result {
    let folder = root().join("target/release-crates");
    let target_dir = folder.to_string_lossy();
    let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    let args = ["package", "--no-verify", "--allow-dirty", "--target-dir", &target_dir];
    Step::cargo(&args.into_iter().chain(packages).collect::<Vec<_>>()).run()?;
    for name in PUBLISHED {
        let name = format!("{name}-{VERSION}.crate");
        copy(&folder.join("package").join(&name), &files.join(&name))?;
    }
    Ok(())
}

/// Prints the files, and what is in the archives; in wheels only with the tools.
fn list(files: &Path, tools: Option<&Tools>) -> Result {
    for path in archive::sorted_files(files)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::metadata(&path).map_err(|e| failed(&path, &e))?.len();
        println!("\n{name}  {bytes} bytes");
        let entries = match (path.extension().and_then(|end| end.to_str()), tools) {
            (Some("gz" | "tgz" | "crate"), _) => Archive::entries(&path)?,
            (Some("whl"), Some(tools)) => tools.wheel_entries(&path)?,
            _ => vec![],
        };
        let (vendored, own): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(name, _)| name.contains("/vendor/"));
        for (name, bytes) in own {
            println!("  {bytes:>10}  {name}");
        }
        if !vendored.is_empty() {
            println!("  {} files of dependencies in vendor/", vendored.len());
        }
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn make(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

/// Removes a folder with its files and creates it again.
fn remake(folder: &Path) -> Result {
    let _ = fs::remove_dir_all(folder);
    make(folder)
}

fn write(path: &Path, bytes: &[u8]) -> Result {
    fs::write(path, bytes).map_err(|error| failed(path, &error))
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(|_| ()).map_err(|error| failed(from, &error))
}
