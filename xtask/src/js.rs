//! The package for JavaScript: the files in `js`, beside `crates/wasm` compiled with SIMD and without.

use std::fs;
use std::path::{Path, PathBuf};

use crate::peers;
use crate::step::{Result, Step, root, target_dir};

/// The finished package.
pub(crate) const PACKAGE: &str = "target/js";

/// The folder of the compiler of TypeScript.
const TOOLS: &str = "target/js-tools/5.9.3";
const TYPESCRIPT: &str = "typescript@5.9.3";
const TSC: &str = "target/js-tools/5.9.3/node_modules/typescript/bin/tsc";

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles the module and returns its path.
pub(crate) fn module(with_simd: bool) -> Result<PathBuf> {
    let installed = Step::program(Path::new("rustup"), &["target", "list", "--installed"]).output();
    if !installed.is_some_and(|targets| targets.lines().any(|target| target == TARGET)) {
        Step::program(Path::new("rustup"), &["target", "add", TARGET]).run().map_err(|error| {
            format!("{error}: the module for JavaScript needs Rust's target {TARGET}; install it and run again")
        })?;
    }
    let (folder, flags) = match with_simd {
        true => ("target/web-simd", "-C target-feature=+simd128"),
        false => ("target/web", ""),
    };
    let folder = root().join(folder);
    let into = ["--target", TARGET, "--target-dir", &folder.to_string_lossy()];
    let build = ["build", "--package", "petal-wasm", "--lib", "--profile", "web"];
    Step::cargo(&[&build[..], &into].concat())
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags)
        .run()?;
    Ok(folder.join(TARGET).join("web/petal_wasm.wasm"))
}

/// Builds the package; `npm pack` and imports take it from there.
pub(crate) fn package() -> Result {
    let folder = root().join(PACKAGE);
    let failed = |error: std::io::Error| format!("{PACKAGE}: {error}");
    fs::create_dir_all(&folder).map_err(failed)?;
    let copy =
        |from: &Path, name: &str| fs::copy(from, folder.join(name)).map(drop).map_err(failed);
    copy(&module(true)?, "petal.wasm")?;
    copy(&module(false)?, "petal-basic.wasm")?;
    for name in ["js/petal.js", "js/petal.d.ts", "js/README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(name), name.trim_start_matches("js/"))?;
    }
    let manifest = fs::read_to_string(root().join("js/package.json")).map_err(failed)?;
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    fs::write(folder.join("package.json"), manifest.replace("\"version\": \"\"", &version))
        .map_err(failed)
}

/// Packs the built package as npm publishes it, into a folder.
pub(crate) fn pack(files: &Path) -> Result {
    npm(&[
        "pack",
        "--silent",
        "--pack-destination",
        &files.to_string_lossy(),
        &format!("./{PACKAGE}"),
    ])
    .run()
}

/// Builds the package and the program, and tests the package.
pub(crate) fn build_and_test() -> Result {
    package()?;
    install()?;
    Step::cargo(&["build", "--package", "petal-cli"]).run()?;
    test()
}

/// Installs the compiler that checks the types.
pub(crate) fn install() -> Result {
    if root().join(TSC).exists() {
        return Ok(());
    }
    npm(&["install", "--silent", "--no-save", "--prefix", TOOLS, TYPESCRIPT]).run()
}

/// Tests the built package in Node, and its types. The program must be built.
pub(crate) fn test() -> Result {
    let check = [TSC, "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"];
    node(&[&check[..], &["--lib", "es2022,dom", "js/test/types.ts"]].concat()).run()?;
    node(&["--test", "js/test/petal.test.js"])
        .env("PETAL", &target_dir().join("debug/petal").to_string_lossy())
        .run()
}

fn node(args: &[&str]) -> Step {
    with_node(Step::program(Path::new("node"), args))
}

fn npm(args: &[&str]) -> Step {
    with_node(Step::program(Path::new("npm"), args))
}

/// Adds the Node that the peers install where there is none.
fn with_node(step: Step) -> Step {
    step.with_path(&root().join(peers::HOME).join("node-home/bin"))
}
