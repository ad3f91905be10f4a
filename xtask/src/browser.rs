//! `browser`: opens the pages of the book, and other pages that petal writes, in a headless Chromium.

use crate::step::{Result, Step, root};
use crate::{book, python};

/// The Python environment of the tests; git ignores it.
const HOME: &str = "target/browser";

/// Installs and builds what the tests need, and runs them.
pub(crate) fn test(more: &[&str]) -> Result {
    install()?;
    build()?;
    run_tests(more)
}

/// Installs the browser and the Python packages that are missing.
pub(crate) fn install() -> Result {
    Step::script("tests/browser/install.sh", &[HOME]).run()
}

/// Builds the book and the program.
pub(crate) fn build() -> Result {
    book::build()?;
    python::build_programs(&[])
}

/// Runs `tests/browser`.
pub(crate) fn run_tests(more: &[&str]) -> Result {
    let python = root().join(HOME).join("bin/python");
    let args = ["-m", "pytest", "-c", "tests/browser/pytest.ini", "tests/browser"];
    Step::program(&python, &[&args[..], more].concat()).run()
}
