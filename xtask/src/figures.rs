//! `figures`: the tables and plots of the docs, by `crates/bench/figures` in Python.

use std::ffi::OsString;
use std::path::Path;

use crate::step::{Result, Step, root};

const REQUIREMENTS: &str = "crates/bench/requirements.txt";
/// The virtual environment with matplotlib; git ignores it.
const HOME: &str = "target/figures";

/// Makes or checks them. Only plots need more than Python itself.
pub(crate) fn run(args: &[&str]) -> Result {
    let system = std::env::var_os("PETAL_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let mut python = root().join(HOME).join("bin/python");
    if args.iter().any(|arg| ["--check", "--help", "-h"].contains(arg)) {
        python = system.into();
    } else {
        if !python.exists() {
            Step::program(Path::new(&system), &["-m", "venv", HOME]).run()?;
        }
        let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"];
        Step::program(&python, &[&pip[..], &["-r", REQUIREMENTS]].concat()).run()?;
    }
    let figures = ["-B", "-m", "figures"];
    Step::program(&python, &[&figures[..], args].concat()).env("PYTHONPATH", "crates/bench").run()
}
