//! The machine, compiler and commit of a run, and its result file.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
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
        format!("{} | rustc {} | commit {}", self.description, self.rustc, self.commit)
    }

    /// Appends rows to `results/<arch>-<cpu>/<date>-<bench>.csv` and returns that path. A new file gets the header.
    ///
    /// # Errors
    /// A sentence, if the file cannot be written.
    pub fn save<const N: usize>(
        &self,
        bench: &str,
        header: &[&str; N],
        rows: &[[String; N]],
    ) -> Result<PathBuf, String> {
        let folder = PathBuf::from("results").join(&self.slug);
        let file = folder.join(format!("{}-{bench}.csv", self.date));
        let full = root().join(&file);
        let first = if full.exists() { String::new() } else { csv_row(header) };
        let text: String =
            std::iter::once(first).chain(rows.iter().map(|row| csv_row(row))).collect();
        fs::create_dir_all(root().join(folder))
            .and_then(|()| File::options().create(true).append(true).open(&full))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        Ok(file)
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
