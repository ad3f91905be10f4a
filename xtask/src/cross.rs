//! `cross`: the library's tests on machines of another kind, under QEMU.
//!
//! One is there for the NEON kernel, one because its words begin with the high byte. Programs are
//! linked statically: all they need to run is the emulator.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{Result, Step};

/// What is tested: all but the mathematics and the measured rates, which take minutes under an
/// emulator and would tell nothing that bits and golden files do not.
const TESTS: &[&str] = &[
    "--lib", "--test", "algebra", "--test", "atomic", "--test", "golden", "--test", "hostile",
    "--test", "parallel", "--", "--skip", "rate::",
];

/// A kind of machine, by its name in GCC and QEMU.
struct Machine {
    name: &'static str,
    why: &'static str,
}

const MACHINES: &[Machine] =
    &[Machine { name: "aarch64", why: "NEON" }, Machine { name: "s390x", why: "big-endian" }];

/// Runs the tests for every machine whose tools are there; a machine that is passed over is told,
/// with what it wants. To run nothing at all is a failure.
pub(crate) fn cross() -> Result {
    let (mut ran, mut skipped) = (vec![], vec![]);
    for machine in MACHINES {
        match machine.emulator() {
            Ok(emulator) => {
                machine.test(emulator)?;
                ran.push(format!("{} ({})", machine.name, machine.why));
            }
            Err(wants) => skipped.push(format!("{}: {wants}", machine.name)),
        }
    }
    println!();
    for machine in &skipped {
        println!("cargo x cross: skipped {machine}");
    }
    if ran.is_empty() {
        return Err("no machine could be tested; CONTRIBUTING.md tells what to install".into());
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

    /// The emulator, if all the other tools are there as well; else what is missing.
    fn emulator(&self) -> Result<String> {
        let (target, linker) = (self.target(), self.linker());
        if !has_std(&target) {
            return Err(format!("no std for it; rustup target add {target}"));
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
        // A folder of its own: cargo would take turns between two compilers otherwise.
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

/// Whether the compiler that cargo will call has a standard library for this target.
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
