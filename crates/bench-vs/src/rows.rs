//! Measured figures as rows of CSV, and measurements in processes of their own.

use std::path::Path;
use std::process::{Command, Stdio};

use petal_bench::machine::Fields;

/// A measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The way, the set, or the part of a claim.
    pub case: String,
    /// The number of URLs or keys.
    pub size: u64,
    /// The name of the figure.
    pub figure: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

impl Row {
    /// A figure.
    pub fn new(case: &str, size: u64, figure: &str, value: f64, unit: &str) -> Self {
        Self { case: case.into(), size, figure: figure.into(), value, unit: unit.into() }
    }

    /// Returns the columns of the row.
    pub fn fields(&self, command: &str) -> Fields {
        vec![
            ("case", self.case.clone()),
            ("size", self.size.to_string()),
            ("figure", self.figure.clone()),
            ("value", significant(self.value)),
            ("unit", self.unit.clone()),
            ("command", command.to_owned()),
        ]
    }
}

/// Returns rows as lines for [`of_own_process`].
pub fn lines(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{}\t{}\t{}\n", row.figure, row.value, row.unit)).collect()
}

/// Starts this program again with these arguments to measure one case, and returns the rows that it prints with
/// [`lines`].
///
/// # Errors
/// If it cannot be started, fails, or prints anything else.
pub fn of_own_process(
    case: &str,
    keys: u64,
    args: &[&str],
    temp: &Path,
) -> Result<Vec<Row>, String> {
    let failed = |e: std::io::Error| format!("cannot measure {case}: {e}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(args).args(["--keys", &keys.to_string()]).arg("--temp-dir").arg(temp);
    // A fixed threshold: freed buffers are unmapped, and are not counted as memory of the set.
    command.env("MALLOC_MMAP_THRESHOLD_", "131072");
    let output = command.stderr(Stdio::inherit()).output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("cannot measure {case} ({})", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| {
        let (figure, rest) = line.split_once('\t')?;
        let (value, unit) = rest.split_once('\t')?;
        Some(Row::new(case, keys, figure, value.parse().ok()?, unit))
    };
    let rows: Option<Vec<Row>> = text.lines().map(row).collect();
    rows.ok_or_else(|| format!("cannot measure {case}: no figures in {text:?}"))
}

/// Six significant digits; whole numbers in full.
fn significant(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (5.0 - value.abs().log10().floor()).clamp(0.0, 15.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn values_have_six_digits_and_whole_numbers_all_of_theirs() {
        assert_eq!(
            [0.0, 12_345_678.0, 1.234_567_8, 0.000_123_456_78].map(significant),
            ["0", "12345678", "1.23457", "0.000123457"]
        );
    }
}
