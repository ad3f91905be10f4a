//! `cargo x figures`: tables of docs/performance/README.md and docs/performance/filters.md, and their plots, from the
//! CSV of the filter benchmarks; the chart of README.md from that of the files benchmark.
//!
//! Only the plots and the text between the markers of the pages are changed. Files are written after all of them have
//! been generated. The same CSV gives the same bytes.

mod chart;
mod common;
mod family;
mod format;
pub mod page;
mod plots;
pub mod results;
pub mod rival_ratios;
pub mod scatter;
mod tables;
pub mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use results::Results;

const PAGE: &str = "docs/performance/README.md";
const FAMILY_PAGE: &str = "docs/performance/filters.md";
const PLOTS: &str = "docs/performance/plots";
/// The suite of the rows of the family benchmark, and the suffix of its result files.
const FAMILY: &str = "family";
/// The suffix of the result files of the family benchmark with the AVX2 kernels.
const FAMILY_AVX2: &str = "family-avx2";
/// The suffix of the result files of `cargo x bench files`.
const FILES: &str = "files";

/// The result of an update.
#[derive(Debug)]
pub struct Report {
    /// The CSV files that were read.
    pub sources: Vec<PathBuf>,
    /// The targets with their measurements.
    pub targets: Vec<targets::Target>,
    /// The files that have changed, as paths from the root.
    pub changed: Vec<PathBuf>,
}

/// A path from the root and the new content of the file.
type NewFile = (PathBuf, String);

/// Updates the pages and plots below `root` from a CSV file, or from the newest ones in `results/`: that of the filter
/// benchmarks, and those of the family benchmark (with the fastest kernels and with AVX2) and of the files benchmark if
/// there are any.
///
/// # Errors
/// A line about the file that cannot be read, parsed or written, or the missing marker.
pub fn write(root: &Path, from: Option<&Path>) -> Result<Report, String> {
    let folder = root.join("results");
    let sources = match from {
        Some(file) => vec![root.join(file)],
        None => {
            let filters = newest(&folder, "")?;
            let missing = "no results/<machine>/<date>.csv; `cargo x bench` makes one";
            let mut sources = vec![filters.ok_or(missing)?];
            for suffix in [FAMILY, FAMILY_AVX2, FILES] {
                sources.extend(newest(&folder, &format!("-{suffix}"))?);
            }
            sources
        }
    };
    let mut report = Report { sources, targets: Vec::new(), changed: Vec::new() };
    let mut files: Vec<NewFile> = Vec::new();
    let (mut family, mut family_avx2) = (None, None);
    for source in &report.sources {
        let text = read(source)?;
        if date(source, &format!("-{FILES}")).is_some() {
            let svg = common::chart(&text).map_err(|e| format!("{}: {e}", source.display()))?;
            files.extend(svg.map(|svg| (Path::new(PLOTS).join("common.svg"), svg)));
            continue;
        }
        let results = Results::parse(&text).map_err(|e| format!("{}: {e}", source.display()))?;
        let short = shown(root, source);
        let of = |suite: &str| results.rows.iter().any(|row| row.suite == suite);
        if date(source, &format!("-{FAMILY_AVX2}")).is_some() {
            family_avx2 = Some((results, short));
        } else if of(FAMILY) {
            family = Some((results, short));
        } else {
            report.targets = targets::targets(&results);
            files.extend(filter_files(root, &results, &report.targets, &short)?);
        }
    }
    files.extend(family_files(root, family, family_avx2)?);
    for (file, text) in files {
        let full = root.join(&file);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        full.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&full, text))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        report.changed.push(file);
    }
    Ok(report)
}

/// The path of a source in a page: from the root, or the name alone if it is elsewhere.
fn shown(root: &Path, source: &Path) -> String {
    let alone = || source.file_name().map(Path::new).unwrap_or(source);
    let short = source.strip_prefix(root).unwrap_or_else(|_| alone());
    short.to_string_lossy().replace('\\', "/")
}

/// The page of the filter benchmarks and its plots.
fn filter_files(
    root: &Path,
    results: &Results,
    targets: &[targets::Target],
    source: &str,
) -> Result<Vec<NewFile>, String> {
    let bodies = [
        ("targets", tables::targets(targets, source, results)),
        ("rivals", tables::suite(results, "rivals")),
        ("own", tables::suite(results, "own")),
    ];
    let plots = [
        ("filters-absent.svg", plots::time(results, "absent")?),
        ("filters-insert.svg", plots::time(results, "insert")?),
        ("filters-space.svg", plots::space(results)?),
        ("filters-kernels.svg", plots::kernels(results)?),
    ];
    let plots = plots.map(|(name, svg)| (Path::new(PLOTS).join(name), svg));
    Ok([filled(root, PAGE, &bodies)?].into_iter().chain(plots).collect())
}

/// The page of the family benchmark and its plot, from its rows with the fastest kernels and with AVX2, each with its
/// source.
fn family_files(
    root: &Path,
    fastest: Option<(Results, String)>,
    avx2: Option<(Results, String)>,
) -> Result<Vec<NewFile>, String> {
    let (mut bodies, mut plot) = (Vec::new(), None);
    if let Some((results, source)) = fastest {
        bodies.extend([
            ("space", family::space(&results)),
            ("speed", family::speed(&results)),
            ("rivals", rival_ratios::table(&results)),
            ("source", tables::source(&source, &results)),
        ]);
        plot = Some((Path::new(PLOTS).join("family-space.svg"), plots::family(&results)?));
    }
    if let Some((results, source)) = avx2 {
        let source = tables::source(&source, &results);
        bodies.push(("avx2", rival_ratios::table(&results) + "\n" + &source));
    }
    if bodies.is_empty() {
        return Ok(Vec::new());
    }
    Ok([filled(root, FAMILY_PAGE, &bodies)?].into_iter().chain(plot).collect())
}

/// A page with new text between its markers.
fn filled(root: &Path, page: &str, bodies: &[(&str, String)]) -> Result<NewFile, String> {
    let mut text = read(&root.join(page))?;
    for (name, body) in bodies {
        text = page::replace(&text, name, body).map_err(|e| format!("{page}: {e}"))?;
    }
    Ok((PathBuf::from(page), text))
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", file.display()))
}

/// Returns the newest `<machine>/<date><suffix>.csv`.
fn newest(folder: &Path, suffix: &str) -> Result<Option<PathBuf>, String> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let mut found: Vec<(String, PathBuf)> = entries(folder)
        .iter()
        .flat_map(|machine| entries(machine))
        .filter_map(|file| Some((date(&file, suffix)?, file)))
        .collect();
    found.sort();
    let Some((newest, file)) = found.pop() else { return Ok(None) };
    match found.pop() {
        Some((same, other)) if same == newest => Err(format!(
            "two files of {newest}: {} and {}; select one with --from",
            other.display(),
            file.display()
        )),
        _ => Ok(Some(file)),
    }
}

/// Returns the date in the name `<date><suffix>.csv`.
fn date(file: &Path, suffix: &str) -> Option<String> {
    let name = file.file_name()?.to_str()?.strip_suffix(".csv")?.strip_suffix(suffix)?;
    let like_a_date = name.len() == 10
        && name.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    like_a_date.then(|| name.to_owned())
}
