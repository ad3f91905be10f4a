//! The tools of a release: Zig, cargo-zigbuild and maturin from Python packages, objcopy from the Rust toolchain.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{Result, Step, root};

/// A virtual environment with the tools; git ignores it.
const HOME: &str = "target/release-tools";

/// Prints the size and the name of each file in a zip file, after it has checked their checksums.
const LIST_ZIP: &str = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
    assert file.testzip() is None
    for entry in file.infolist():
        print(entry.file_size, entry.filename)
";

/// The installed tools.
pub(super) struct Tools {
    bin: PathBuf,
}

impl Tools {
    /// Installs the tools; the error says what is missing.
    pub(super) fn install() -> Result<Self> {
        let home = root().join(HOME);
        let python = home.join("bin/python");
        if !python.exists() {
            let interpreter = std::env::var("PETAL_PYTHON").unwrap_or_else(|_| "python3".into());
            Step::program(Path::new(&interpreter), &["-m", "venv", &home.to_string_lossy()])
                .run()?;
        }
        let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"];
        let list = ["--requirement", "crates/python/requirements-release.txt"];
        Step::program(&python, &[&pip[..], &list].concat()).run()?;
        Ok(Self { bin: home.join("bin") })
    }

    /// Returns a command of the environment. It finds the other tools on its `PATH`.
    pub(super) fn step(&self, name: &str, args: &[&str]) -> Step {
        Step::program(&self.bin.join(name), args).with_path(&self.bin)
    }

    /// Returns the names and sizes of the files in a wheel, by Python's reader of zip files.
    pub(super) fn wheel_entries(&self, wheel: &Path) -> Result<Vec<(String, u64)>> {
        let listed = self.step("python", &["-c", LIST_ZIP, &wheel.to_string_lossy()]).output();
        let text = listed.ok_or_else(|| format!("{}: not a readable wheel", wheel.display()))?;
        let entries = text.lines().filter_map(|line| {
            let (bytes, name) = line.split_once(' ')?;
            Some((name.to_string(), bytes.parse().ok()?))
        });
        Ok(entries.collect())
    }
}

/// Returns the folder of the Rust toolchain.
fn sysroot() -> Result<PathBuf> {
    let found = Step::program(Path::new("rustc"), &["--print", "sysroot"]).output();
    found.map(|text| text.trim().into()).ok_or_else(|| "`rustc --print sysroot` failed".into())
}

/// Runs the toolchain's own objcopy, which reads the files of all targets. rustc strips programs with it.
pub(super) fn objcopy(options: &[&str], from: &Path, to: &Path) -> Result {
    let sysroot = sysroot()?;
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    Step::program(&find_objcopy(&sysroot)?, &[options, &[&from, &to]].concat())
        .env("LD_LIBRARY_PATH", &sysroot.join("lib").to_string_lossy())
        .run()
}

fn find_objcopy(sysroot: &Path) -> Result<PathBuf> {
    let hosts = sysroot.join("lib/rustlib");
    let folders = std::fs::read_dir(&hosts).map_err(|error| super::failed(&hosts, &error))?;
    let paths = folders.flatten().map(|folder| folder.path().join("bin/rust-objcopy"));
    let mut found = paths.filter(|path| path.exists());
    found
        .next()
        .ok_or_else(|| format!("{}: no rust-objcopy; it is part of Rust 1.84", hosts.display()))
}

/// Returns whether a program runs on this machine.
pub(super) fn starts(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
