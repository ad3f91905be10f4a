//! `fuzz` and `asan`, which need a nightly toolchain.

use crate::step::{Result, Step, root};

/// Valid inputs that a target starts with, besides the corpus of earlier runs (`fuzz/corpus`).
const SEEDS: &[(&str, &str)] = &[
    ("parquet_file", "testdata/foreign"),
    ("read_foreign", "testdata/foreign"),
    ("read_native", "testdata/native"),
    ("receive_native", "testdata/native"),
];

/// Maximum size of a single allocation.
const MALLOC_LIMIT: &str = "-malloc_limit_mb=16";

/// Runs each target in `fuzz/fuzz_targets` for `seconds`.
pub(crate) fn fuzz(seconds: u32) -> Result {
    let folder = root().join("fuzz/fuzz_targets");
    let files = std::fs::read_dir(&folder)
        .map_err(|e| format!("no fuzz targets in {}: {e}", folder.display()))?;
    let mut targets: Vec<String> = files
        .filter_map(|file| {
            file.ok()?.file_name().into_string().ok()?.strip_suffix(".rs").map(str::to_owned)
        })
        .collect();
    targets.sort();
    if targets.is_empty() {
        return Err(format!("no fuzz targets in {}", folder.display()));
    }
    nightly_host()?;
    if Step::nightly(&["fuzz", "--version"]).output().is_none() {
        return Err(
            "cargo-fuzz is missing; install it with: cargo install cargo-fuzz --locked".into()
        );
    }
    let limit = format!("-max_total_time={seconds}");
    for target in &targets {
        // New inputs go to the first folder.
        let corpus = format!("fuzz/corpus/{target}");
        let folder = root().join(&corpus);
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let seeds = SEEDS.iter().filter(|(of, _)| of == target).map(|(_, seeds)| *seeds);
        let corpora: Vec<&str> = std::iter::once(corpus.as_str()).chain(seeds).collect();
        let before = ["fuzz", "run", target];
        let after = ["--", &limit, MALLOC_LIMIT, "-max_len=16384", "-print_final_stats=1"];
        Step::nightly(&[&before[..], &corpora, &after].concat()).run()?;
    }
    println!("\ncargo x fuzz: {} for {seconds} s each, no finding", targets.join(", "));
    Ok(())
}

/// Runs the core's tests with AddressSanitizer, in a separate target folder.
pub(crate) fn asan() -> Result {
    let host = nightly_host()?;
    let flags = "-Zsanitizer=address";
    Step::nightly(&[
        "test",
        "--package",
        "petal-filters",
        "--lib",
        "--tests",
        "--target",
        &host,
        "--target-dir",
        "target/asan",
    ])
    .env("RUSTFLAGS", flags)
    // A test requests more memory than exists and expects the allocation to fail.
    .env("ASAN_OPTIONS", "allocator_may_return_null=1")
    .run()
}

/// Returns the host triple of the nightly toolchain.
fn nightly_host() -> Result<String> {
    let text = Step::nightly(&["-vV"]).output();
    text.as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("host: ")))
        .map(str::to_owned)
        .ok_or_else(|| {
            "no nightly toolchain; install it with: rustup toolchain install nightly".into()
        })
}
