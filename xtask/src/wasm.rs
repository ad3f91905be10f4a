//! `wasm`: the library's tests as WebAssembly, in Node.
//!
//! The target is 32 bits wide, has no threads and cannot map memory.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{Result, Step, root};

const TARGET: &str = "wasm32-wasip1";

/// What is tested: all types of filters, small and large, and the files.
const TESTS: &[&str] = &["--test", "large", "--test", "algebra", "--test", "golden"];

/// Runs the tests, or says what is missing and passes.
pub(crate) fn wasm() -> Result {
    if let Err(missing) = tools() {
        println!("\ncargo x wasm: skipped: {missing}");
        return Ok(());
    }
    let runner = root().join("xtask/src/wasi.mjs");
    let runner = format!("node --no-warnings {}", runner.to_string_lossy());
    let words = ["test", "--package", "petal-filters", "--target", TARGET];
    Step::cargo(&[&words[..], &["--target-dir", "target/wasm"], TESTS].concat())
        .env("CARGO_TARGET_WASM32_WASIP1_RUNNER", &runner)
        .run()
}

/// Node, and the target's standard library, which rustup fetches if it is not there.
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
