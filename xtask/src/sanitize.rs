//! `fuzz` and `sanitize`: any bytes under AddressSanitizer, the tests of unsafe code under it, and under Miri.
//!
//! The stable toolchain builds everything but Miri: `RUSTC_BOOTSTRAP` permits the flag of the sanitizer, whose runtime
//! is part of the toolchain. libFuzzer is compiled from the sources in its crate and needs a C++ compiler.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

use crate::step::{self, Result, Step, root};

/// The folder of the fuzz targets' sources.
const FOLDER: &str = "fuzz/fuzz_targets";

/// The folder of what is built for AddressSanitizer.
const BUILT: &str = "target/asan";

/// A fuzz target.
struct Target {
    name: &'static str,
    /// The runs of [`fuzz_briefly`]: about ten seconds.
    runs: u32,
    /// Valid inputs that the target starts with, besides the corpus of earlier runs (`fuzz/corpus`).
    seeds: Option<&'static str>,
}

const fn target(name: &'static str, runs: u32) -> Target {
    Target { name, runs, seeds: None }
}

const fn reader(name: &'static str, runs: u32, seeds: &'static str) -> Target {
    Target { name, runs, seeds: Some(seeds) }
}

const TARGETS: &[Target] = &[
    target("c_interface", 20_000),
    target("cascade_vs_model", 4_000),
    target("counting_vs_model", 3_000),
    reader("csv_records", 20_000, "fuzz/seeds/csv_records"),
    target("folding_vs_model", 1_500),
    reader("json_keys", 20_000, "fuzz/seeds/json_keys"),
    reader("key_transforms", 5_000, "fuzz/seeds/key_transforms"),
    target("ops_vs_model", 6_000),
    reader("parquet_file", 25_000, "testdata/foreign"),
    target("quotient_vs_model", 7_000),
    reader("read_foreign", 3_000, "testdata/foreign"),
    reader("read_native", 5_000, "testdata/native"),
    reader("receive_native", 20_000, "testdata/native"),
    target("redisbloom_chunks", 7_000),
    target("redisbloom_fields", 4_500),
    target("scalable_vs_model", 6_500),
    target("static_vs_model", 1_700),
    target("vector_quotient_vs_model", 14_000),
    target("windowed_vs_model", 6_500),
];

/// What libFuzzer needs to see which branches an input takes.
const COVERAGE: &[&str] = &[
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// Options of every run: at most 16 MiB in one allocation and 16 KiB of input, and a summary at the end.
const LIMITS: &[&str] =
    &["-malloc_limit_mb=16", "-max_len=16384", "-print_final_stats=1", "-verbosity=0"];

/// The seconds after which a brief run ends although it has inputs left, on a slow machine.
const LONGEST: &str = "-max_total_time=30";

/// Runs each target for this time, and keeps new inputs in `fuzz/corpus`.
pub(crate) fn fuzz(seconds: u32) -> Result {
    let limit = format!("-max_total_time={seconds}");
    build_targets()?;
    run_targets(|target| {
        let corpus = made(&format!("fuzz/corpus/{}", target.name))?;
        run(target, &corpus, &[&limit])
    })
}

/// Builds the targets.
pub(crate) fn build_targets() -> Result {
    let manifest = ["build", "--release", "--manifest-path", "fuzz/Cargo.toml"];
    sanitized(&manifest, &format!("{BUILT}/fuzz"), COVERAGE)?.run()
}

/// Runs each target for a number of inputs that is the same on every machine, with the same seed and without the corpus
/// of earlier runs: a change that fails here fails again.
pub(crate) fn fuzz_briefly() -> Result {
    build_targets()?;
    run_targets(|target| {
        let corpus = format!("{BUILT}/corpus/{}", target.name);
        let _ = fs::remove_dir_all(root().join(&corpus));
        run(target, &made(&corpus)?, &["-seed=1", &format!("-runs={}", target.runs), LONGEST])
    })
}

/// Runs a target with these options. New inputs go to the folder `corpus`.
fn run(target: &Target, corpus: &str, options: &[&str]) -> Result {
    let program =
        root().join(BUILT).join("fuzz").join(step::host()?).join("release").join(target.name);
    let found = format!("-artifact_prefix={}/{}-", made("fuzz/artifacts")?, target.name);
    let args = [LIMITS, options, &[&found, corpus], target.seeds.as_slice()].concat();
    Step::program(&program, &args).env("ASAN_OPTIONS", "detect_odr_violation=0").run()
}

/// Creates a folder, by its path from the root.
fn made(path: &str) -> Result<String> {
    let folder = root().join(path);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(path.to_owned())
}

/// Runs all targets, two at a time.
fn run_targets(run: impl Fn(&Target) -> Result + Sync) -> Result {
    same_targets()?;
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let work = || {
        while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = step::with_output_at_end(|| run(target)) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(error);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\ncargo x: ")) }
}

/// Checks that the list has every target.
fn same_targets() -> Result {
    let folder = root().join(FOLDER);
    let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = files.map_while(|file| file.ok().map(|file| file.path()));
    let found: BTreeSet<PathBuf> = paths.map(|path| path.with_extension("")).collect();
    let listed = TARGETS.iter().map(|target| folder.join(target.name)).collect();
    if found == listed {
        return Ok(());
    }
    let other: Vec<_> =
        found.symmetric_difference(&listed).map(|p| p.display().to_string()).collect();
    Err(format!("not both in {FOLDER} and in xtask/src/sanitize.rs: {}", other.join(", ")))
}

/// Runs the tests of unsafe code under AddressSanitizer and, where it is installed, under Miri.
pub(crate) fn sanitize() -> Result {
    asan()?;
    miri()
}

/// Runs the library's tests under AddressSanitizer.
fn asan() -> Result {
    let tests = ["test", "--no-fail-fast", "--package", "petal-filters", "--lib", "--tests"];
    sanitized(&tests, BUILT, &["--cfg asan"])?
        // A test requests more memory than exists and expects the allocation to fail.
        .env("ASAN_OPTIONS", "allocator_may_return_null=1")
        .run()
}

/// Runs the tests of filters' memory, of the portable kernels and of the file format in Miri.
fn miri() -> Result {
    if Step::nightly(&["miri", "--version"]).output().is_none() {
        println!(
            "\ncargo x sanitize: Miri was not run; to install it: \
             rustup toolchain install nightly --component miri"
        );
        return Ok(());
    }
    let units = ["store::", "kernel::primitives", "kernel::select", "kernel::vector_quotient"];
    let units = [&["--lib", "--"], &units[..]].concat();
    for tests in [&units[..], &["--test", "portable", "--", "golden::"]] {
        let miri = ["miri", "test", "--package", "petal-filters", "--target-dir", "target/miri"];
        Step::nightly(&[&miri[..], tests].concat())
            // The tests read files.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .run()?;
    }
    Ok(())
}

/// A command of cargo that compiles for AddressSanitizer, with more flags.
fn sanitized(command: &[&str], folder: &str, flags: &[&str]) -> Result<Step> {
    let host = step::host()?;
    // With a target, build scripts and macros are compiled without the flags.
    let args = [command, &["--target", &host, "--target-dir", folder]].concat();
    Ok(Step::cargo(&args)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", &[&["-Zsanitizer=address"], flags].concat().join(" ")))
}
