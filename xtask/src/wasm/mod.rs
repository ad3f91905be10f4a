//! `wasm`: the library on wasm32, in Node.
//!
//! A program of its own that depends on the library alone: the library's tests need more than
//! wasm32-unknown-unknown has.

use std::fs;
use std::process::{Command, Stdio};

use crate::step::{Result, Step, root};

const TARGET: &str = "wasm32-unknown-unknown";
const MANIFEST: &str = r#"[package]
name = "wasm-program"
version = "0.0.0"
edition = "2024"
[dependencies]
petal = { package = "petal-filters", path = "../../crates/core" }
[workspace]
"#;

/// What the program exits with when all is well.
const WELL: i32 = 42;

/// Builds and runs the program; if the target or Node is missing, says so and succeeds.
pub(crate) fn wasm() -> Result {
    if let Some(missing) = missing() {
        println!("cargo x wasm: skipped: {missing}");
        return Ok(());
    }
    let place = root().join("target/wasm");
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    fs::create_dir_all(place.join("src")).map_err(failed)?;
    fs::write(place.join("Cargo.toml"), MANIFEST).map_err(failed)?;
    fs::write(place.join("src/main.rs"), include_str!("program.rs")).map_err(failed)?;
    fs::write(place.join("run.mjs"), include_str!("run.mjs")).map_err(failed)?;
    // The versions of the repository.
    fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock")).map_err(failed)?;
    let manifest = place.join("Cargo.toml");
    let manifest = manifest.to_string_lossy();
    Step::cargo(&[
        "build",
        "--target",
        TARGET,
        "--manifest-path",
        &manifest,
        "--target-dir",
        "target/wasm/target",
    ])
    .run()?;
    let program = place.join(format!("target/{TARGET}/debug/wasm-program.wasm"));
    let mut node = Command::new("node");
    let status = node.arg(place.join("run.mjs")).arg(&program).stdin(Stdio::null()).status();
    match status.map_err(failed)?.code() {
        Some(WELL) => {
            println!("cargo x wasm: passed");
            Ok(())
        }
        code => Err(format!("{}: expected exit code {WELL}, found {code:?}", program.display())),
    }
}

/// What is not there, and how to have it.
fn missing() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root())
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    if !libraries.is_some_and(|folder| std::path::Path::new(folder.trim()).is_dir()) {
        return Some(format!("no {TARGET} in this toolchain; rustup target add {TARGET}"));
    }
    let node = Command::new("node").arg("--version").stdout(Stdio::null()).status();
    (!node.is_ok_and(|status| status.success())).then(|| "no node on the PATH; install Node".into())
}
