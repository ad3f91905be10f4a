//! `example` and `examples`: the programs in `examples/`, and their tests.

use std::fs;

use crate::step::{Result, Step, root, target_dir};
use crate::{js, peers, python};

/// The Python environment of the examples; git ignores it.
const HOME: &str = "target/examples";

/// Builds petal, installs what an example needs, and runs it.
pub(crate) fn run(name: &str, args: &[&str]) -> Result {
    let (names, folder) = (names()?, root().join("examples").join(name));
    if !names.iter().any(|known| known == name) {
        return Err(format!("no example {name:?}; there are: {}", names.join(", ")));
    }
    let mut packages = vec!["--package", "petal-cli"];
    let own_package = format!("petal-example-{name}");
    let sqlite = format!("{own_package}/sqlite");
    if folder.join("Cargo.toml").exists() {
        packages.extend(["--package", &own_package]);
        // SQLite takes a minute to compile: only to compare with it.
        if args.iter().any(|arg| *arg == "--compare" || arg.contains("sqlite")) {
            packages.extend(["--features", &sqlite]);
        }
    }
    if name == "recommender" {
        packages.extend(["--package", "petal-redis"]);
    }
    if name == "polyglot" {
        packages.extend(["--package", "petal-capi"]);
        js::package()?;
    }
    Step::cargo(&[&["build", "--release"], &packages[..]].concat()).run()?;
    Step::script("examples/install.sh", &[HOME, "release", name]).run()?;
    let program = if folder.join("main.py").exists() {
        let main = format!("examples/{name}/main.py");
        let python = root().join(HOME).join("bin/python");
        Step::program(&python, &[&[main.as_str()], args].concat())
    } else {
        Step::program(&target_dir().join("release").join(own_package), args)
    };
    with_environment(program, "release").run()
}

/// Installs and builds what all examples need, and runs the tests in `examples`.
pub(crate) fn test(more: &[&str]) -> Result {
    install()?;
    run_tests(more)
}

/// Installs what all examples need besides petal.
pub(crate) fn install_packages() -> Result {
    Step::script("examples/install.sh", &[HOME, "none"]).run()
}

/// Builds petal with the profile of the other tests, and installs what all examples need.
pub(crate) fn install() -> Result {
    Step::script("examples/install.sh", &[HOME, "dev"]).run()?;
    let own: Vec<String> = names()?
        .into_iter()
        .filter(|name| root().join("examples").join(name).join("Cargo.toml").exists())
        .map(|name| format!("petal-example-{name}"))
        .collect();
    python::build_programs(&own)
}

/// Runs the tests in `examples`.
pub(crate) fn run_tests(more: &[&str]) -> Result {
    let args = ["-m", "pytest", "-c", "examples/pytest.ini", "examples"];
    let python = root().join(HOME).join("bin/python");
    with_environment(Step::program(&python, &[&args[..], more].concat()), "debug").run()
}

/// Sets the variables that examples/README.md lists.
fn with_environment(step: Step, profile: &str) -> Step {
    let built = target_dir().join(profile);
    let peers = root().join(peers::HOME);
    step.with_path(&peers.join("go/bin"))
        .with_path(&peers.join("bin"))
        .with_path(&built)
        .env("PETAL_LIBRARY", &built.join("deps/libpetal_capi.so").to_string_lossy())
        .env("PETAL_MODULE", &built.join("deps/libpetal_redis.so").to_string_lossy())
        .env("PETAL_PEERS", &peers.to_string_lossy())
}

/// Returns the names of the examples, sorted.
fn names() -> Result<Vec<String>> {
    let folder = root().join("examples");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(std::result::Result::ok)
        .filter(|entry| {
            let path = entry.path();
            path.join("main.py").exists() || path.join("Cargo.toml").exists()
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}
