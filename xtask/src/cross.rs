//! `cross`: the library's tests on other architectures, with QEMU, and a check of libpetal for other systems.
//!
//! aarch64 has the NEON kernel, s390x is big-endian. Programs are linked statically, so that only the emulator is
//! needed.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{Result, Step};

/// The tests: all except mathematics and measured rates, which take minutes and do not depend on the architecture.
const TESTS: &[&str] =
    &["--lib", "--test", "portable", "--", "--skip", "math::", "--skip", "large::"];

/// An architecture, by its name in GCC and QEMU.
struct Machine {
    name: &'static str,
    why: &'static str,
}

const MACHINES: &[Machine] =
    &[Machine { name: "aarch64", why: "NEON" }, Machine { name: "s390x", why: "big-endian" }];

/// Systems for which libpetal compiles.
const SYSTEMS: &[&str] = &["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// Checks libpetal for other systems. Runs the tests for every architecture whose tools are installed and prints what is missing for the others. An error
/// if there is none.
pub(crate) fn cross() -> Result {
    let (mut ran, mut skipped) = (vec![], vec![]);
    for system in SYSTEMS {
        if has_std(system) {
            let args = ["check", "--package", "petal-capi", "--target", system];
            Step::cargo(&[&args[..], &["--target-dir", "target/cross"]].concat()).run()?;
            ran.push(format!("{system} (libpetal compiles)"));
        } else {
            skipped.push(format!("{system}: no std; rustup target add {system}"));
        }
    }
    let checked = ran.len();
    for machine in MACHINES {
        match machine.emulator() {
            Ok(emulator) => {
                machine.test(emulator)?;
                ran.push(format!("{} ({})", machine.name, machine.why));
            }
            Err(missing) => skipped.push(format!("{}: {missing}", machine.name)),
        }
    }
    println!();
    for machine in &skipped {
        println!("cargo x cross: skipped {machine}");
    }
    if ran.len() == checked {
        return Err("no architecture could be tested; CONTRIBUTING.md lists what to install".into());
    }
    println!("cargo x cross: passed on {}", ran.join(", "));
    Ok(())
}

impl Machine {
    fn target(&self) -> String {
        format!("{}-unknown-linux-gnu", self.name)
    }

    fn linker(&self) -> String {
        format!("{}-linux-gnu-gcc", self.name)
    }

    /// Returns the emulator, or what is missing.
    fn emulator(&self) -> Result<String> {
        let (target, linker) = (self.target(), self.linker());
        if !has_std(&target) {
            return Err(format!("no std; rustup target add {target}"));
        }
        if !starts(&linker) {
            return Err(format!("no {linker}; in Debian: apt install gcc-{}-linux-gnu", self.name));
        }
        let names = [format!("qemu-{}", self.name), format!("qemu-{}-static", self.name)];
        let emulator = names.into_iter().find(|name| starts(name));
        emulator.ok_or_else(|| format!("no qemu-{}; in Debian: apt install qemu-user", self.name))
    }

    fn test(&self, emulator: String) -> Result {
        let target = self.target();
        let setting =
            |what| format!("CARGO_TARGET_{}_{what}", target.replace('-', "_").to_uppercase());
        // With a separate folder cargo does not rebuild for each target.
        let args = [
            "test",
            "--package",
            "petal-filters",
            "--target",
            &target,
            "--target-dir",
            "target/cross",
        ];
        Step::cargo(&[&args, TESTS].concat())
            .env(&setting("LINKER"), &self.linker())
            .env(&setting("RUNNER"), &emulator)
            .env(&setting("RUSTFLAGS"), "-C target-feature=+crt-static")
            .run()
    }
}

/// Returns whether the compiler has a standard library for this target.
fn has_std(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let output =
        Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    let Ok(output) = output else { return false };
    let folder = String::from_utf8_lossy(&output.stdout);
    Path::new(folder.trim()).is_dir()
}

fn starts(program: impl AsRef<OsStr>) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
