//! The targets of a release, and their builds.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use super::VERSION;
use super::tools::{self, Tools};
use crate::step::{Result, Step, target_dir};

/// A platform for which a release has files.
pub(super) struct Target {
    /// Its name for rustc.
    pub(super) name: &'static str,
    /// The oldest glibc that its programs run with. `None`: musl, linked statically.
    pub(super) glibc: Option<&'static str>,
}

const GLIBC: Option<&str> = Some("2.17");

pub(super) const TARGETS: &[Target] = &[
    Target { name: "x86_64-unknown-linux-gnu", glibc: GLIBC },
    Target { name: "aarch64-unknown-linux-gnu", glibc: GLIBC },
    Target { name: "x86_64-unknown-linux-musl", glibc: None },
    Target { name: "aarch64-unknown-linux-musl", glibc: None },
];

impl Target {
    /// Returns whether shared libraries can be built: not if the C library is linked statically.
    pub(super) fn has_module(&self) -> bool {
        self.glibc.is_some()
    }

    /// Returns the name of its processor.
    pub(super) fn processor(&self) -> &'static str {
        self.name.split('-').next().unwrap_or_default()
    }

    /// Returns Debian's name of its processor; of this machine's for the dev builds.
    pub(super) fn debian_architecture(&self) -> &'static str {
        let processor = if self.name == "dev" { ARCH } else { self.processor() };
        match processor {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }
    }

    /// Returns the name of one of its archives, without the extension.
    pub(super) fn archive(&self, package: &str) -> String {
        format!("{package}-{VERSION}-{}", self.name)
    }

    /// Installs the standard library of the target; the error says what is missing.
    pub(super) fn install_std(&self) -> Result {
        Step::program(Path::new("rustup"), &["target", "add", self.name])
            .output()
            .map(|_| ())
            .ok_or_else(|| format!("`rustup target add {}` failed", self.name))
    }

    /// Builds the program, the module and libpetal, and returns their folder.
    pub(super) fn build(&self, tools: &Tools) -> Result<PathBuf> {
        let name = match self.glibc {
            Some(version) => format!("{}.{version}", self.name),
            None => self.name.to_string(),
        };
        let libraries = ["--package", "petal-redis", "--package", "petal-capi"];
        let libraries = if self.has_module() { &libraries[..] } else { &[] };
        let args = ["zigbuild", "--locked", "--profile", "dist", "--package", "petal-cli"];
        tools.step("cargo-zigbuild", &[&args, libraries, &["--target", &name]].concat()).run()?;
        Ok(target_dir().join(self.name).join("dist"))
    }

    /// Writes stripped copies of the programs and shared libraries into a folder, and their debug information into files
    /// beside them. Returns the folder.
    pub(super) fn strip(&self, dir: &Path) -> Result<PathBuf> {
        let stripped = dir.join("stripped");
        super::remake(&stripped)?;
        for name in self.binaries() {
            let (file, to) = (dir.join(name), stripped.join(name));
            let debug = stripped.join(format!("{name}.debug"));
            tools::objcopy(&["--only-keep-debug"], &file, &debug)?;
            let link = format!("--add-gnu-debuglink={}", debug.display());
            tools::objcopy(&["--strip-all", &link], &file, &to)?;
        }
        Ok(stripped)
    }

    /// Returns the names of the programs and shared libraries that it compiles.
    pub(super) fn binaries(&self) -> &'static [&'static str] {
        if self.has_module() {
            &["petal", "libpetal_redis.so", "libpetal_capi.so"]
        } else {
            &["petal"]
        }
    }
}
