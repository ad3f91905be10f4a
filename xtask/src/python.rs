//! `python`: the Python package as a wheel in an environment of its own, and its tests.

use crate::peers;
use crate::step::{Result, Step, root};

/// The environment: a folder that git passes over.
const HOME: &str = "target/python";

/// Which of the package's tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Those that need no more than packages of Python.
    Own,
    /// Those with a real Redis, which is among the peers.
    Foreign,
    /// Those with a real Spark.
    Engines,
}

/// Builds and installs the package, then runs its tests of a tier.
pub(crate) fn test(tier: Tier, more: &[&str]) -> Result {
    // That of the other tests: an optimiser, every check, and no second build of the libraries.
    let install = ["crates/python/install.sh", HOME, "--profile", "dev"];
    let engines = if tier == Tier::Engines { &["--engines"][..] } else { &[] };
    Step::script(install[0], &[&install[1..], engines].concat()).run()?;
    // What its answers are compared with, and the module; here, where no test's time is running.
    Step::cargo(&["build", "--package", "petal-cli", "--package", "petal-redis"]).run()?;
    let (python, chosen) = match tier {
        Tier::Own => ("bin/python", "not engines and not foreign"),
        Tier::Foreign => ("bin/python", "foreign"),
        // Its environment has what docs/spark.md says to install, and no more.
        Tier::Engines => ("spark/bin/python", "engines"),
    };
    let python = root().join(HOME).join(python);
    let words = ["-m", "pytest", "-c", "crates/python/pyproject.toml", "-m", chosen];
    let folder = if tier == Tier::Engines { &["crates/python/tests/spark"][..] } else { &[] };
    Step::program(&python, &[&words[..], folder, more].concat())
        .env("PETAL_PEERS", &root().join(peers::HOME).to_string_lossy())
        .run()
}

/// Builds all that the bench of the package needs, as releases, and starts it.
pub(crate) fn bench(args: &[&str]) -> Result {
    const BENCH: &str = "target/python-bench";
    Step::script("crates/python/install.sh", &[BENCH]).run()?;
    let python = root().join(BENCH).join("bin/python");
    let rival = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "rbloom==1.5.4"];
    Step::program(&python, &rival).run()?;
    Step::cargo(&["build", "--release", "--package", "petal-cli"]).run()?;
    let tools =
        ["build", "--release", "--package", "petal-bench", "--bin", "urls", "--bin", "batch"];
    Step::cargo(&tools).run()?;
    Step::program(&python, &[&["crates/python/bench/main.py"], args].concat()).run()
}
