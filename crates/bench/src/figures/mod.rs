//! `cargo x figures`: the tables of docs/performance.md and docs/filters.md and the plots beside them, from the CSV of the
//! filter benches.
//!
//! Invariants: nothing but what stands between the markers of the pages and the plots is changed; nothing is written
//! unless all of it can be made; the same CSV gives the same bytes.

mod axis;
pub mod beside;
mod family;
mod labels;
pub mod page;
mod plot_family;
mod plot_kernels;
mod plot_space;
mod plot_time;
pub mod sheet;
mod svg;
mod tables;
pub mod targets;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use sheet::Sheet;

const PAGE: &str = "docs/performance.md";
const FAMILY_PAGE: &str = "docs/filters.md";
const PLOTS: &str = "docs/plots";
/// Behind the date in the name of a file with rows of the family; the suite of those rows.
const FAMILY: &str = "family";

/// What was done.
#[derive(Debug)]
pub struct Report {
    /// The CSVs that were read.
    pub sources: Vec<PathBuf>,
    /// The targets, each with what was measured.
    pub targets: Vec<targets::Target>,
    /// Files below the root that are not as they were.
    pub changed: Vec<PathBuf>,
}

/// A file below the root, and what is to be in it.
type Made = (PathBuf, String);

/// Brings pages and plots below `root` up to date with a CSV, or with the newest ones in `results/`: that of the filters,
/// and that of the family if there is one.
///
/// # Errors
/// One line: what cannot be read or written, what is not understood, which marker is missing.
pub fn write(root: &Path, from: Option<&Path>) -> Result<Report, String> {
    let results = root.join("results");
    let sources = match from {
        Some(file) => vec![root.join(file)],
        None => {
            let filters = newest(&results, "")?;
            let missing = "no results/<machine>/<date>.csv; `cargo x bench` makes one";
            let mut sources = vec![filters.ok_or(missing)?];
            sources.extend(newest(&results, &format!("-{FAMILY}"))?);
            sources
        }
    };
    let mut report = Report { sources, targets: Vec::new(), changed: Vec::new() };
    let mut files = Vec::new();
    for source in &report.sources {
        let text = read(source)?;
        let sheet = Sheet::read(&text).map_err(|e| format!("{}: {e}", source.display()))?;
        let short = told(root, source);
        if sheet.rows.iter().any(|row| row.suite == FAMILY) {
            files.extend(family_files(root, &sheet, &short)?);
        } else {
            report.targets = targets::targets(&sheet);
            files.extend(filter_files(root, &sheet, &report.targets, &short)?);
        }
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

/// A source as pages tell it: they name no paths of this machine.
fn told(root: &Path, source: &Path) -> String {
    let alone = || source.file_name().map(Path::new).unwrap_or(source);
    let short = source.strip_prefix(root).unwrap_or_else(|_| alone());
    short.to_string_lossy().replace('\\', "/")
}

/// The page of the Bloom filters, and its plots.
fn filter_files(
    root: &Path,
    sheet: &Sheet,
    targets: &[targets::Target],
    source: &str,
) -> Result<Vec<Made>, String> {
    let bodies = [
        ("targets", tables::targets(targets, source, sheet)),
        ("rivals", tables::suite(sheet, "rivals")),
        ("own", tables::suite(sheet, "own")),
    ];
    let plots = [
        ("filters-absent.svg", plot_time::plot(sheet, "absent")),
        ("filters-insert.svg", plot_time::plot(sheet, "insert")),
        ("filters-space.svg", plot_space::plot(sheet)),
        ("filters-kernels.svg", plot_kernels::plot(sheet)),
    ];
    let plots = plots.map(|(name, svg)| (Path::new(PLOTS).join(name), svg));
    Ok([filled(root, PAGE, &bodies)?].into_iter().chain(plots).collect())
}

/// The page of the family, and its plot.
fn family_files(root: &Path, sheet: &Sheet, source: &str) -> Result<Vec<Made>, String> {
    let bodies = [
        ("space", family::space(sheet)),
        ("speed", family::speed(sheet)),
        ("rivals", beside::rivals(sheet)),
        ("source", tables::source(source, sheet)),
    ];
    let plot = (Path::new(PLOTS).join("family-space.svg"), plot_family::plot(sheet));
    Ok(vec![filled(root, FAMILY_PAGE, &bodies)?, plot])
}

/// A page with new bodies between its markers.
fn filled(root: &Path, page: &str, bodies: &[(&str, String)]) -> Result<Made, String> {
    let mut text = read(&root.join(page))?;
    for (name, body) in bodies {
        text = page::replace(&text, name, body).map_err(|e| format!("{page}: {e}"))?;
    }
    Ok((PathBuf::from(page), text))
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", file.display()))
}

/// The newest `<machine>/<date><suffix>.csv`; files of other benches have other names behind the date.
fn newest(results: &Path, suffix: &str) -> Result<Option<PathBuf>, String> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let mut found: Vec<(String, PathBuf)> = entries(results)
        .iter()
        .flat_map(|machine| entries(machine))
        .filter_map(|file| Some((date(&file, suffix)?, file)))
        .collect();
    found.sort();
    let Some((newest, file)) = found.pop() else { return Ok(None) };
    match found.pop() {
        Some((same, other)) if same == newest => Err(format!(
            "two files are of {newest}: {} and {}; choose one by --from",
            other.display(),
            file.display()
        )),
        _ => Ok(Some(file)),
    }
}

/// The date that is all of a file's name but for the suffix.
fn date(file: &Path, suffix: &str) -> Option<String> {
    let name = file.file_name()?.to_str()?.strip_suffix(".csv")?.strip_suffix(suffix)?;
    let like_a_date = name.len() == 10
        && name.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    like_a_date.then(|| name.to_owned())
}
