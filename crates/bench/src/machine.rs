//! The machine, compiler and commit of a run, and its result file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::paths::root;
use crate::stats::{csv_row, date};

/// The machine and the commit, which are recorded with every row.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Folder name: architecture and processor.
    pub slug: String,
    /// Processor, cores, memory, kernel.
    pub description: String,
    /// Version of the compiler.
    pub rustc: String,
    /// Short hash, with `+` if the work tree differs from it.
    pub commit: String,
    /// Today (UTC).
    pub date: String,
}

impl Machine {
    /// Reads `/proc`, `git` and `rustc`; what is not available is `unknown`.
    pub fn read() -> Self {
        let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
        let memory_kib: u64 = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse().ok())
            .unwrap_or(0);
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"])
            .is_some_and(|text| !text.is_empty());
        let commit =
            output("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".into());
        Self {
            slug: slug(&format!("{} {cpu}", std::env::consts::ARCH)),
            description: format!(
                "{cpu}, {cores} {}, {} MiB, Linux {}",
                if cores == 1 { "core" } else { "cores" },
                memory_kib / 1024,
                kernel.trim()
            ),
            rustc: output("rustc", &["--version"])
                .map_or("unknown".into(), |text| text.replace("rustc ", "")),
            commit: if changed { commit + "+" } else { commit },
            date: date(seconds),
        }
    }

    /// Returns a line of text.
    pub fn line(&self) -> String {
        let Self { description, rustc, commit, date, .. } = self;
        format!("{description}; rustc {rustc}; commit {commit}; {date}")
    }

    /// Appends rows to `results/<arch>-<cpu>/<date>-<bench>.csv` and returns that path. The date is the first column,
    /// machine, compiler and commit are the last.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, bench: &str, rows: &[Fields]) -> Result<PathBuf, String> {
        let last =
            [("machine", &self.description), ("rustc", &self.rustc), ("commit", &self.commit)];
        let whole = |row: &Fields| -> Fields {
            let mut fields = vec![("date", self.date.clone())];
            fields.extend_from_slice(row);
            fields.extend(last.map(|(name, value)| (name, value.clone())));
            fields
        };
        let rows: Vec<Fields> = rows.iter().map(whole).collect();
        let head = rows.first().map_or(String::new(), names);
        self.write(&format!("-{bench}"), &head, &rows.iter().map(values).collect::<String>(), true)
    }

    /// Writes `results/<arch>-<cpu>/<date><suffix>.csv` or appends to it, and returns that path. A new file gets the
    /// head.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(
        &self,
        suffix: &str,
        head: &str,
        rows: &str,
        append: bool,
    ) -> Result<PathBuf, String> {
        let file = format!("results/{}/{}{suffix}.csv", self.slug, self.date);
        write(&root().join(&file), head, rows, append)
            .map_err(|e| format!("cannot write {file}: {e}"))?;
        Ok(file.into())
    }
}

/// The columns of a row with their values.
pub type Fields = Vec<(&'static str, String)>;

/// Returns the header of a row, as CSV.
pub fn names(row: &Fields) -> String {
    csv_row(&row.iter().map(|(name, _)| *name).collect::<Vec<_>>())
}

/// Returns a row, as CSV.
pub fn values(row: &Fields) -> String {
    csv_row(&row.iter().map(|(_, value)| value).collect::<Vec<_>>())
}

fn write(file: &Path, head: &str, rows: &str, append: bool) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    if append && file.exists() {
        File::options().append(true).open(file)?.write_all(rows.as_bytes())
    } else {
        fs::write(file, head.to_owned() + rows)
    }
}

/// Returns the first value of that name in a file of `name : value` lines.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the standard output of a command that succeeds.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the words of a text in lower case, joined by `-`.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_file_has_one_header() {
        let scratch = petal_testkit::scratch::Scratch::new();
        let file = scratch.file("slug/2000-01-01.csv");
        let text = || fs::read_to_string(&file).unwrap();
        write(&file, "head\n", "1\n", true).unwrap();
        assert_eq!(text(), "head\n1\n");
        write(&file, "head\n", "2\n", false).unwrap();
        write(&file, "head\n", "3\n", true).unwrap();
        assert_eq!(text(), "head\n2\n3\n");
    }
}
