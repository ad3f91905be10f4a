//! `wasm`: the library without the standard library, and its tests as WebAssembly in Node.
//!
//! The target is 32 bits wide, has no threads and cannot map memory.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{Result, Step, root};

const TARGET: &str = "wasm32-wasip1";

/// Targets without the standard library; all but the first are without atomic words of 64 bits.
const NO_STD_TARGETS: [&str; 4] = [
    "wasm32v1-none",
    "thumbv7em-none-eabihf",
    "thumbv8m.main-none-eabihf",
    "riscv32imac-unknown-none-elf",
];

/// The tests: all filter types, small and large, and their files.
const TESTS: &[&str] = &["--test", "portable", "--", "algebra::", "golden::", "large::"];

/// Runs the tests; prints what is missing and succeeds if they cannot run.
pub(crate) fn wasm() -> Result {
    if let Err(missing) = tools() {
        println!("\ncargo x wasm: skipped: {missing}");
        return Ok(());
    }
    no_std()?;
    let runner = root().join("xtask/src/wasi.mjs");
    let runner = format!("node --no-warnings {}", runner.to_string_lossy());
    let args = ["test", "--package", "petal-filters", "--target", TARGET];
    Step::cargo(&[&args[..], &["--target-dir", "target/wasm"], TESTS].concat())
        .env("CARGO_TARGET_WASM32_WASIP1_RUNNER", &runner)
        .run()
}

/// Checks that the library compiles for targets without the standard library.
fn no_std() -> Result {
    for target in NO_STD_TARGETS {
        succeeds(Path::new("rustup"), &["target", "add", target])
            .map_err(|()| format!("`rustup target add {target}` fails"))?;
        check_without_std(&["--target", target])?;
    }
    Ok(())
}

/// Checks that the library compiles with vector kernels and without the feature `std`.
pub(crate) fn check_without_std_feature() -> Result {
    check_without_std(&[])
}

fn check_without_std(target: &[&str]) -> Result {
    let check = ["clippy", "--package", "petal-filters", "--target-dir", "target/wasm"];
    let features = ["--no-default-features", "--features", "libm,serde"];
    Step::cargo(&[&check[..], &features, target, &["--", "-D", "warnings"]].concat()).run()
}

/// Checks for Node, and installs the target's standard library.
fn tools() -> Result {
    succeeds(Path::new("node"), &["--version"]).map_err(|()| "no node".to_string())?;
    succeeds(Path::new("rustup"), &["target", "add", TARGET])
        .map_err(|()| format!("no target {TARGET}, and `rustup target add {TARGET}` fails"))
}

fn succeeds(program: &Path, args: &[&str]) -> std::result::Result<(), ()> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|_| ())?;
    if status.success() { Ok(()) } else { Err(()) }
}
