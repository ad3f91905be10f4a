//! The readers of petal's files in other languages, which run the set in `testdata/conformance`.

use std::path::{Path, PathBuf};

use crate::step::{Result, Step, root, target_dir};
use crate::{js, peers};

/// Checks and tests the package in `go`, and fuzzes it for ten seconds. The program must be built.
pub(crate) fn go() -> Result {
    let bin = root().join(peers::HOME).join("go/bin");
    let badly_formatted = Step::program(&bin.join("gofmt"), &["-l", "go"]).output();
    match badly_formatted.as_deref() {
        Some("") => {}
        Some(files) => return Err(format!("`gofmt -w` formats {}", files.trim())),
        None => return Err("`gofmt -l go` failed".to_owned()),
    }
    let go = |args: &[&str]| {
        Step::program(&bin.join("go"), args)
            .in_folder("go")
            // The guide runs the program and `go`.
            .with_path(&target_dir().join("debug"))
            .with_path(&bin)
            .run()
    };
    go(&["vet", "."])?;
    go(&["test", "-race", "."])?;
    // Minimizing an interesting input would take up to a minute.
    let fuzz = ["-run=none", "-fuzz=FuzzFromBytes", "-fuzztime=10s", "-fuzzminimizetime=1x", "."];
    go(&[&["test"], &fuzz[..]].concat())
}

/// Builds the reader for Java with a JDK that is installed, and returns its jar; the error says what is missing.
pub(crate) fn jar() -> Result<PathBuf> {
    let home = root().join(peers::HOME);
    let of_path = Step::program(Path::new("javac"), &["--release", "17", "-version"]).output();
    if of_path.is_none() && !home.join("debian/jdk/usr/lib/jvm").is_dir() {
        return Err("no JDK 17 or newer; `cargo x peers` installs one".to_owned());
    }
    Step::script("java/build.sh", &[]).env("PETAL_PEERS", &home.to_string_lossy()).run()?;
    Ok(root().join("target/java/petal.jar"))
}

/// Builds the reader for Java, and runs its tests; those of its page use the program of the other tests.
pub(crate) fn java() -> Result {
    Step::script("java/build.sh", &["--test"])
        .env("PETAL", &target_dir().join("debug/petal").to_string_lossy())
        .env("PETAL_PEERS", &root().join(peers::HOME).to_string_lossy())
        .run()
}

/// Builds the program, the library for C and the rivals of each language, and times queries in all languages.
pub(crate) fn bench(args: &[&str]) -> Result {
    let peers = root().join(peers::HOME);
    Step::script("peers/install.sh", &[peers::HOME, "go", "gobloom", "guava", "languages"])
        .run()?;
    js::package()?;
    let packages = ["--package", "petal-cli", "--package", "petal-capi"];
    Step::cargo(&[&["build", "--release"], &packages[..]].concat()).run()?;
    let side = ["--package", "petal-bench", "--bin", "languages"];
    Step::cargo(&[&["build", "--release"], &side[..]].concat()).run()?;
    Step::program(Path::new("python3"), &[&["crates/bench/languages/main.py"], args].concat())
        .with_path(&peers.join("go/bin"))
        .env("PETAL_PEERS", &peers.to_string_lossy())
        .run()
}
