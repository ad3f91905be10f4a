//! `python`: builds the Python package, installs it in a virtual environment and runs its tests.

use crate::check;
use crate::peers;
use crate::step::{Result, Step, root};

/// The virtual environment; git ignores it.
const HOME: &str = "target/python";

/// A group of tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Tests that need only Python packages.
    Own,
    /// Tests with Redis, which is one of the peers.
    Foreign,
    /// Tests with Apache Spark.
    Engines,
}

/// Builds and installs the package, then runs a group of tests.
pub(crate) fn test(tier: Tier, more: &[&str]) -> Result {
    install(tier == Tier::Engines)?;
    run_tests(tier, more)
}

/// Installs the packages of the tests, and downloads those of the tests with Spark if `engines`.
pub(crate) fn install_packages(engines: bool) -> Result {
    install_with(&["--without-petal"], engines)
}

/// Builds and installs the package, with Spark if `engines`, and builds the programs that its tests use.
pub(crate) fn install(engines: bool) -> Result {
    // The profile of the other tests: optimized, with all checks, and without a second build of the libraries.
    install_with(&["--profile", "dev"], engines)?;
    // The tests compare with the program and load the module; a build during a test could exceed its timeout.
    build_programs(&[])
}

/// Builds the program, the module and the library for C as dependencies of their tests (in `deps`), and more binaries.
pub(crate) fn build_programs(bins: &[String]) -> Result {
    let programs = ["--bin", "petal", "--test", "foreign", "--test", "programs"];
    let more = bins.iter().flat_map(|name| ["--bin", name]).collect::<Vec<_>>();
    Step::cargo(&[&["build"], &check::WORKSPACE[..], &programs, &more].concat()).run()
}

fn install_with(options: &[&str], engines: bool) -> Result {
    let engines = if engines { &["--engines"][..] } else { &[] };
    Step::script("crates/python/install.sh", &[&[HOME], options, engines].concat()).run()
}

/// Runs a group of tests with the installed package.
pub(crate) fn run_tests(tier: Tier, more: &[&str]) -> Result {
    let (python, chosen) = match tier {
        Tier::Own => ("bin/python", "not engines and not foreign"),
        Tier::Foreign => ("bin/python", "foreign"),
        // This environment has only the packages that docs/guides/spark.md lists.
        Tier::Engines => ("spark/bin/python", "engines"),
    };
    let python = root().join(HOME).join(python);
    let args =
        ["-m", "pytest", "--durations=10", "-c", "crates/python/pyproject.toml", "-m", chosen];
    let folders: &[&str] = match tier {
        Tier::Own => &["crates/python/tests", "crates/bench/tests"],
        Tier::Foreign => &["crates/python/tests"],
        Tier::Engines => &["crates/python/tests/spark"],
    };
    Step::program(&python, &[&args[..], folders, more].concat())
        .env("PETAL_PEERS", &root().join(peers::HOME).to_string_lossy())
        .run()
}

/// Builds what the benchmark of the package needs, and runs it.
pub(crate) fn bench(args: &[&str]) -> Result {
    const BENCH: &str = "target/python-bench";
    Step::script("crates/python/install.sh", &[BENCH]).run()?;
    let python = root().join(BENCH).join("bin/python");
    let rival = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "rbloom==1.5.4"];
    Step::program(&python, &rival).run()?;
    Step::cargo(&["build", "--profile", "dist", "--package", "petal-cli"]).run()?;
    let tools = [
        "build",
        "--profile",
        "dist",
        "--package",
        "petal-bench",
        "--bin",
        "urls",
        "--bin",
        "batch",
    ];
    Step::cargo(&tools).run()?;
    Step::program(&python, &[&["crates/python/bench/main.py"], args].concat()).run()
}
