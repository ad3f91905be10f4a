//! `cargo x figures`: the tables of docs/performance.md and the plots beside it, from the CSV of the filter benches.
//!
//! Invariants: nothing but what stands between the markers of the page and the plots is changed; nothing is written
//! unless all of it can be made; the same CSV gives the same bytes.

mod axis;
mod labels;
pub mod page;
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
const PLOTS: &str = "docs/plots";

/// What was done.
#[derive(Debug)]
pub struct Report {
    /// The CSV that was read.
    pub source: PathBuf,
    /// The targets, each with what was measured.
    pub targets: Vec<targets::Target>,
    /// Files below the root that are not as they were.
    pub changed: Vec<PathBuf>,
}

/// Brings page and plots below `root` up to date with a CSV, or with the newest one in `results/`.
///
/// # Errors
/// One line: what cannot be read or written, what is not understood, which marker is missing.
pub fn write(root: &Path, from: Option<&Path>) -> Result<Report, String> {
    let source = match from {
        Some(file) => root.join(file),
        None => newest(&root.join("results"))?,
    };
    let sheet = Sheet::read(&read(&source)?).map_err(|e| format!("{}: {e}", source.display()))?;
    let targets = targets::targets(&sheet);

    // The page tells no paths of this machine.
    let alone = || source.file_name().map(Path::new).unwrap_or(&source);
    let short = source.strip_prefix(root).unwrap_or_else(|_| alone());
    let short = short.to_string_lossy().replace('\\', "/");
    let mut page = read(&root.join(PAGE))?;
    for (name, body) in [
        ("targets", tables::targets(&targets, &short, &sheet)),
        ("rivals", tables::suite(&sheet, "rivals")),
        ("own", tables::suite(&sheet, "own")),
    ] {
        page = page::replace(&page, name, &body).map_err(|e| format!("{PAGE}: {e}"))?;
    }
    let mut files = vec![(PathBuf::from(PAGE), page)];
    let plots = [
        ("filters-absent.svg", plot_time::plot(&sheet, "absent")),
        ("filters-insert.svg", plot_time::plot(&sheet, "insert")),
        ("filters-space.svg", plot_space::plot(&sheet)),
        ("filters-kernels.svg", plot_kernels::plot(&sheet)),
    ];
    files.extend(plots.map(|(name, svg)| (Path::new(PLOTS).join(name), svg)));

    let mut changed = Vec::new();
    for (file, text) in files {
        let full = root.join(&file);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        full.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&full, text))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        changed.push(file);
    }
    Ok(Report { source, targets, changed })
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", file.display()))
}

/// The newest `<machine>/<date>.csv`; files of other benches have their name behind the date.
fn newest(results: &Path) -> Result<PathBuf, String> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let mut found: Vec<(String, PathBuf)> = entries(results)
        .iter()
        .flat_map(|machine| entries(machine))
        .filter_map(|file| Some((date(&file)?, file)))
        .collect();
    found.sort();
    let (newest, file) =
        found.pop().ok_or("no results/<machine>/<date>.csv; `cargo x bench` makes one")?;
    match found.pop() {
        Some((same, other)) if same == newest => Err(format!(
            "two files are of {newest}: {} and {}; choose one by --from",
            other.display(),
            file.display()
        )),
        _ => Ok(file),
    }
}

/// The date that is all of a file's name.
fn date(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?.strip_suffix(".csv")?;
    let like_a_date = name.len() == 10
        && name.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    like_a_date.then(|| name.to_owned())
}
