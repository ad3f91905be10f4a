//! Rows of measured figures, in the format of `results/`.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Appends rows to a CSV file. Without a file they are dropped.
pub(crate) struct Rows<'a> {
    path: Option<&'a Path>,
    start: String,
    command: String,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(path: Option<&'a Path>) -> Self {
        let output = |program: &str, args: &[&str]| {
            let output =
                Command::new(program).args(args).output().ok().filter(|o| o.status.success());
            output.map_or("unknown".into(), |output| {
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            })
        };
        let (date, commit) =
            (output("date", &["+%F"]), output("git", &["rev-parse", "--short", "HEAD"]));
        let args = without_rows(std::env::args().skip(1));
        Self {
            path,
            start: format!("\"{}\",{date},{commit},crawler", machine()),
            command: format!("cargo x example crawler {}", args.join(" ")),
        }
    }

    /// Appends a row. `size` is the number of pages of the site.
    pub(crate) fn add(
        &self,
        case: &str,
        size: u64,
        figure: &str,
        value: f64,
        unit: &str,
    ) -> Result<(), String> {
        let Some(path) = self.path else { return Ok(()) };
        let is_new = fs::metadata(path).map_or(true, |file| file.len() == 0);
        let header = "machine,date,commit,use,case,size,figure,value,unit,command\n";
        let value = (value * 1000.0).round() / 1000.0;
        let row = format!(
            "{},\"{case}\",{size},{figure},{value},{unit},\"{}\"\n",
            self.start, self.command
        );
        File::options()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| {
                file.write_all([if is_new { header } else { "" }, &row].concat().as_bytes())
            })
            .map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

/// Returns arguments without `--rows FILE`: where the rows go has no effect on them.
fn without_rows(mut args: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    while let Some(arg) = args.next() {
        if arg == "--rows" {
            args.next();
        } else if !arg.starts_with("--rows=") {
            kept.push(arg);
        }
    }
    kept
}

/// Returns the processor, the number of cores, the memory and the kernel, as in `results/`.
fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("", |(_, value)| value.trim()).to_owned()
    };
    let kib: u64 =
        field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or_default().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {cores} cores, {} MiB, Linux {kernel}",
        field("/proc/cpuinfo", "model name"),
        kib / 1024
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_row_is_without_its_file() {
        let args = ["--pages", "5", "--rows", "a.csv", "--rows=b.csv", "--compare"];
        assert_eq!(
            without_rows(args.into_iter().map(str::to_owned)),
            ["--pages", "5", "--compare"]
        );
    }
}
