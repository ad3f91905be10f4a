//! `cargo x figures`: the tables and plots of docs/performance/README.md, from the CSV of the filter benchmarks; the
//! chart of README.md from that of the files benchmark.
//!
//! Only the plots and the text between the markers of the page are changed. Files are written after all of them have
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
/// The name of a marker and the new text after it.
type Body = (&'static str, String);

/// Updates the page and plots below `root` from a CSV file, or from the newest ones in `results/`: that of the filter
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
    let (mut bodies, mut files): (Vec<Body>, Vec<NewFile>) = (Vec::new(), Vec::new());
    for source in &report.sources {
        let text = read(source)?;
        if date(source, &format!("-{FILES}")).is_some() {
            let svg = common::chart(&text).map_err(|e| format!("{}: {e}", source.display()))?;
            files.extend(svg.map(|svg| plot("common.svg", svg)));
            continue;
        }
        let results = Results::parse(&text).map_err(|e| format!("{}: {e}", source.display()))?;
        let short = shown(root, source);
        let of = |suite: &str| results.rows.iter().any(|row| row.suite == suite);
        if date(source, &format!("-{FAMILY_AVX2}")).is_some() {
            let source = tables::source(&short, &results);
            bodies.push(("avx2", rival_ratios::table(&results) + "\n" + &source));
        } else if of(FAMILY) {
            bodies.extend(family_bodies(&results, &short));
            files.push(plot("family-space.svg", plots::family(&results)?));
        } else {
            report.targets = targets::targets(&results);
            bodies.push(("targets", tables::targets(&report.targets, &short, &results)));
            files.extend(filter_plots(&results)?);
        }
    }
    if !bodies.is_empty() {
        files.push(filled(root, &bodies)?);
    }
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

/// The plots of the filter benchmarks.
fn filter_plots(results: &Results) -> Result<[NewFile; 3], String> {
    Ok([
        plot("filters-absent.svg", plots::time(results, "absent")?),
        plot("filters-insert.svg", plots::time(results, "insert")?),
        plot("filters-kernels.svg", plots::kernels(results)?),
    ])
}

/// The tables of the family benchmark with the fastest kernels.
fn family_bodies(results: &Results, source: &str) -> [Body; 4] {
    [
        ("space", family::space(results)),
        ("speed", family::speed(results)),
        ("ratios", rival_ratios::table(results)),
        ("source", tables::source(source, results)),
    ]
}

fn plot(name: &str, svg: String) -> NewFile {
    (Path::new(PLOTS).join(name), svg)
}

/// The page with new text between its markers.
fn filled(root: &Path, bodies: &[Body]) -> Result<NewFile, String> {
    let mut text = read(&root.join(PAGE))?;
    for (name, body) in bodies {
        text = page::replace(&text, name, body).map_err(|e| format!("{PAGE}: {e}"))?;
    }
    Ok((PathBuf::from(PAGE), text))
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
