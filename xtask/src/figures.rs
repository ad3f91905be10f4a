//! `figures`: the tables and plots of the docs, by `crates/bench/figures` in Python.

use std::ffi::OsString;
use std::path::Path;

use crate::step::{Result, Step};

/// Makes or checks them. They need nothing but Python itself.
pub(crate) fn run(args: &[&str]) -> Result {
    let python = std::env::var_os("PETAL_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let figures = ["-B", "-m", "figures"];
    let step = Step::program(Path::new(&python), &[&figures[..], args].concat());
    step.env("PYTHONPATH", "crates/bench").run()
}
