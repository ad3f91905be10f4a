//! `fuzz` and `asan`: the runs that need a nightly toolchain.

use crate::step::{Result, Step, root};

/// Sound inputs that a target starts from, besides what earlier runs found (`fuzz/corpus`).
const SEEDS: &[(&str, &str)] = &[
    ("parquet_file", "testdata/foreign"),
    ("read_foreign", "testdata/foreign"),
    ("read_native", "testdata/native"),
    ("receive_native", "testdata/native"),
];

/// No input may make a target ask for more than this at once.
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
    nightly_is_there()?;
    if Step::nightly(&["fuzz", "--version"]).output().is_none() {
        return Err(
            "cargo-fuzz is missing; install it with: cargo install cargo-fuzz --locked".into()
        );
    }
    let limit = format!("-max_total_time={seconds}");
    for target in &targets {
        // The first folder is the one that new inputs are kept in.
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

/// Runs the core's tests under AddressSanitizer, in a target folder of their own.
pub(crate) fn asan() -> Result {
    let host = nightly_is_there()?;
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
    // A test asks for more memory than there is, to see that it is refused like by the system.
    .env("ASAN_OPTIONS", "allocator_may_return_null=1")
    .run()
}

/// The host triple of the nightly toolchain.
fn nightly_is_there() -> Result<String> {
    let text = Step::nightly(&["-vV"]).output();
    text.as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("host: ")))
        .map(str::to_owned)
        .ok_or_else(|| {
            "no nightly toolchain; install it with: rustup toolchain install nightly".into()
        })
}
