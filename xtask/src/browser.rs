//! `browser`: opens the pages of the book, and other pages that petal writes, in a headless Chromium.

use crate::step::{Result, Step, root};
use crate::{book, python};

/// The Python environment of the tests; git ignores it.
const HOME: &str = "target/browser";

/// Builds the book and the program, installs the browser if it is missing, and runs `tests/browser`.
pub(crate) fn test(more: &[&str]) -> Result {
    Step::script("tests/browser/install.sh", &[HOME]).run()?;
    book::build()?;
    Step::cargo(python::PROGRAMS).run()?;
    let python = root().join(HOME).join("bin/python");
    let args = ["-m", "pytest", "-c", "tests/browser/pytest.ini", "tests/browser"];
    Step::program(&python, &[&args[..], more].concat()).run()
}
