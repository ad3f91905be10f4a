//! `test`: all checks and tests, in an order that keeps two cores busy.
//!
//! What other projects publish is downloaded and the fuzz targets are built beside the checks and the build of the tests.
//! What the tests in Python use is built next. Then three lists of tests run at the same time: many tests use one core or
//! wait for servers. Those beside the first list build nothing: a build would wait for those of the first list, and could
//! replace a program that a test runs.

use std::thread;

use crate::python::Tier;
use crate::step::{self, Result};
use crate::{
    browser, check, example, js, lab, loom, package, peers, python, readers, release, sanitize,
    wasm,
};

/// Runs all tests; those with foreign programs and those with engines if selected.
pub(crate) fn test(foreign: bool, engines: bool) -> Result {
    let outcome = run_test(foreign, engines);
    step::print_times();
    outcome
}

fn run_test(foreign: bool, engines: bool) -> Result {
    beside([&|| install(foreign, engines)], || check::check().and_then(|()| check::build_tests()))?;
    python::install(engines)?;
    if foreign {
        example::install()?;
        browser::build()?;
    }
    beside(
        [&|| spark_and_browser_tests(foreign, engines), &|| python_and_foreign_tests(foreign)],
        || rust_tests(foreign),
    )
}

/// Installs and builds what does not use the target folder of the workspace.
fn install(foreign: bool, engines: bool) -> Result {
    python::install_packages(engines)?;
    if foreign {
        // The step that runs them reports a failure.
        let _ = sanitize::build_targets();
        peers::install()?;
        js::install()?;
        example::install_packages()?;
        lab::install()?;
        browser::install()?;
    }
    Ok(())
}

/// Runs the tests in Rust, and what else builds programs.
fn rust_tests(foreign: bool) -> Result {
    let own: &[Step] = &[check::run_tests, loom::loom];
    let with_foreign: &[Step] =
        &[wasm::wasm, release::pack_dev_builds, package::package, sanitize::fuzz_briefly];
    run_all(own.iter().chain(with_foreign.iter().filter(|_| foreign)))
}

/// Runs the tests with Spark, with a browser, and those of the examples.
fn spark_and_browser_tests(foreign: bool, engines: bool) -> Result {
    let with_engines: &[Step] = &[|| python::run_tests(Tier::Engines, &[])];
    let with_foreign: &[Step] = &[|| browser::run_tests(&[]), || example::run_tests(&[])];
    let steps = with_engines.iter().filter(|_| engines);
    run_all(steps.chain(with_foreign.iter().filter(|_| foreign)))
}

/// Runs the tests of the Python package, those of the program and the module with foreign programs, and readers.
fn python_and_foreign_tests(foreign: bool) -> Result {
    let own: &[Step] = &[|| python::run_tests(Tier::Own, &[])];
    let with_foreign: &[Step] = &[
        || python::run_tests(Tier::Foreign, &[]),
        peers::test,
        readers::go,
        readers::java,
        js::test,
    ];
    run_all(own.iter().chain(with_foreign.iter().filter(|_| foreign)))
}

type Step = fn() -> Result;

/// Runs every step, also after one that failed.
fn run_all<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Result {
    joined(steps.into_iter().map(|step| step()))
}

fn joined(outcomes: impl IntoIterator<Item = Result>) -> Result {
    let errors: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\ncargo x: ")) }
}

/// Runs `first`, and other lists of steps at the same time. Each runs until it ends or fails; the output of a step of
/// the others is printed when the step has ended.
fn beside<const N: usize>(
    others: [&(dyn Fn() -> Result + Sync); N],
    first: impl FnOnce() -> Result,
) -> Result {
    thread::scope(|scope| {
        let others = others.map(|steps| scope.spawn(move || step::with_output_at_end(steps)));
        let first = first();
        let others =
            others.map(|steps| steps.join().unwrap_or_else(|_| Err("a step panicked".to_string())));
        joined([first].into_iter().chain(others))
    })
}
