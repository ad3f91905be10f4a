//! `lab`: ways to remember which URLs were seen, measured by petal-bench-vs, and the PostgreSQL server that it needs.

use crate::peers;
use crate::step::{Result, Step, root};

/// Debian's PostgreSQL, which the example of the same script uses, too.
const INSTALL: &str = "examples/database/install.sh";

/// Installs PostgreSQL unless help is printed, and runs the laboratory.
pub(crate) fn run(args: &[&str]) -> Result {
    let measures = !args.iter().any(|arg| ["--help", "-h"].contains(arg));
    if measures && let Err(problem) = install() {
        eprintln!("cargo x lab: without PostgreSQL: {problem}");
    }
    let runner = [
        "bench",
        "--quiet",
        "--package",
        "petal-bench-vs",
        "--features",
        "lab",
        "--bench",
        "lab",
        "--",
    ];
    let home = root().join(peers::HOME);
    Step::cargo(&[&runner[..], args].concat()).env("PETAL_PEERS", &home.to_string_lossy()).run()
}

/// Unpacks PostgreSQL below the folder of the peers.
pub(crate) fn install() -> Result {
    let script = format!(
        "set -euo pipefail; mkdir -p {0}; ROOT=$PWD; PEERS=$PWD/{0}; HERE=$PWD/examples/database; \
         . peers/lib.sh; . {INSTALL}",
        peers::HOME
    );
    Step::program("bash".as_ref(), &["-c", &script]).run()
}
