//! Where and when the figures are from.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use petal_bench::summary::date;

/// The facts that go into every row.
pub(crate) struct Machine {
    /// Folder name: architecture and processor.
    pub(crate) slug: String,
    /// Processor, cores, memory, kernel.
    pub(crate) description: String,
    pub(crate) rustc: String,
    /// Short hash, with `+` if the work tree differs from it.
    pub(crate) commit: String,
    pub(crate) date: String,
}

impl Machine {
    /// Asks the system; what it does not tell is `unknown`.
    pub(crate) fn read() -> Self {
        let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
        let memory_kib: u64 = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse().ok())
            .unwrap_or(0);
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let changed = said("git", &["status", "--porcelain", "--untracked-files=no"])
            .is_some_and(|text| !text.is_empty());
        let commit =
            said("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".into());
        Self {
            slug: slug(&format!("{} {cpu}", std::env::consts::ARCH)),
            description: format!(
                "{cpu}, {cores} cores, {} MiB, Linux {}",
                memory_kib / 1024,
                kernel.trim()
            ),
            rustc: said("rustc", &["--version"])
                .map_or("unknown".into(), |text| text.replace("rustc ", "")),
            commit: if changed { commit + "+" } else { commit },
            date: date(seconds),
        }
    }
}

/// The first value of a `name : value` file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Lower-case words joined by `-`.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
