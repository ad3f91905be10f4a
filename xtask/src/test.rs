//! `test`: all checks and tests, in an order that keeps two cores busy.
//!
//! What other projects publish is downloaded and the fuzz targets are built beside the checks and the build of the tests.
//! What the tests in Python use is built next. Then the tests of the Python package, which mostly use one core or wait
//! for servers, run beside all others. They do not call cargo: a build would wait for those of the other list, and could
//! replace a program that a test runs.

use std::thread;

use crate::python::Tier;
use crate::step::{self, Result};
use crate::{browser, check, example, lab, loom, package, peers, python, release, sanitize, wasm};

/// Runs all tests; those with foreign programs and those with engines if selected.
pub(crate) fn test(foreign: bool, engines: bool) -> Result {
    let outcome = run_test(foreign, engines);
    step::print_times();
    outcome
}

fn run_test(foreign: bool, engines: bool) -> Result {
    side_by_side(
        || check::check().and_then(|()| check::build_tests()),
        || install(foreign, engines),
    )?;
    python::install(engines)?;
    if foreign {
        example::install()?;
        browser::build()?;
    }
    side_by_side(|| others(foreign), || python_package(foreign, engines))
}

/// Installs and builds what does not use the target folder of the workspace.
fn install(foreign: bool, engines: bool) -> Result {
    python::install_packages(engines)?;
    if foreign {
        // The step that runs them reports a failure.
        let _ = sanitize::build_targets();
        peers::install()?;
        example::install_packages()?;
        lab::install()?;
        browser::install()?;
    }
    Ok(())
}

/// Runs the tests in Rust, those with a browser and those of the examples.
fn others(foreign: bool) -> Result {
    let own: &[Step] = &[check::run_tests, loom::loom];
    let with_foreign: &[Step] = &[
        peers::test,
        wasm::wasm,
        release::pack_dev_builds,
        package::package,
        || browser::run_tests(&[]),
        || example::run_tests(&[]),
        sanitize::fuzz_briefly,
    ];
    run_all(own.iter().chain(with_foreign.iter().filter(|_| foreign)))
}

/// Runs the tests of the Python package.
fn python_package(foreign: bool, engines: bool) -> Result {
    // The longest ones first.
    let tiers = [(Tier::Engines, engines), (Tier::Own, true), (Tier::Foreign, foreign)];
    let steps: Vec<_> = tiers
        .into_iter()
        .filter(|(_, selected)| *selected)
        .map(|(tier, _)| move || python::run_tests(tier, &[]))
        .collect();
    run_all(&steps)
}

type Step = fn() -> Result;

/// Runs every step, also after one that failed.
fn run_all<'a, S>(steps: impl IntoIterator<Item = &'a S>) -> Result
where
    S: Fn() -> Result + ?Sized + 'a,
{
    let errors: Vec<_> = steps.into_iter().filter_map(|step| step().err()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\ncargo x: ")) }
}

/// Runs two lists of steps at the same time. Both run until they end or fail; the output of each step of the second is
/// printed when the step has ended.
fn side_by_side(first: impl FnOnce() -> Result, second: impl FnOnce() -> Result + Send) -> Result {
    thread::scope(|scope| {
        let second = scope.spawn(|| step::with_output_at_end(second));
        let first = first();
        let second = second.join().unwrap_or_else(|_| Err("a step panicked".to_string()));
        match (first, second) {
            (Err(first), Err(second)) => Err(format!("{first}\ncargo x: {second}")),
            (first, second) => first.and(second),
        }
    })
}
