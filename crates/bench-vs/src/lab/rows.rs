//! Measured figures as rows of CSV, with the columns of the examples' rows.

use std::collections::BTreeMap;

use petal_bench::machine::Machine;
use petal_bench::stats::csv_fields;

use super::measure::Measured;

/// The columns.
pub const HEADER: [&str; 10] =
    ["machine", "date", "commit", "use", "case", "size", "figure", "value", "unit", "command"];

/// A measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The way, or the part of a claim.
    pub case: String,
    /// The number of URLs.
    pub size: u64,
    /// The name of the figure.
    pub figure: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

impl Row {
    /// A figure.
    pub fn new(case: &str, size: u64, figure: &str, value: f64, unit: &'static str) -> Self {
        Self { case: case.into(), size, figure: figure.into(), value, unit }
    }

    /// The figures of a way.
    pub fn of_way(name: &str, size: u64, measured: &Measured) -> Vec<Self> {
        let per_url = |bytes: u64| bytes as f64 / size as f64;
        let (positives, negatives) = (measured.false_positives, measured.false_negatives);
        let figures = [
            ("insert", measured.insert_ns, "ns"),
            ("query", measured.query_ns, "ns"),
            ("memory", per_url(measured.memory_bytes), "bytes per URL"),
            ("peak memory", per_url(measured.peak_bytes), "bytes per URL"),
            ("disk", per_url(measured.disk_bytes), "bytes per URL"),
            ("false positives", positives.0 as f64, "URLs"),
            ("new URLs", positives.1 as f64, "URLs"),
            ("false negatives", negatives.0 as f64, "URLs"),
            ("seen URLs", negatives.1 as f64, "URLs"),
            ("survives a restart", f64::from(u8::from(measured.survives_restart)), "0 or 1"),
            ("deletes", f64::from(u8::from(measured.deletes)), "0 or 1"),
        ];
        figures.map(|(figure, value, unit)| Self::new(name, size, figure, value, unit)).into()
    }

    /// Returns the fields of a row.
    pub fn fields(&self, machine: &Machine, command: &str) -> [String; HEADER.len()] {
        let Self { case, size, figure, value, unit } = self;
        let Machine { description, date, commit, .. } = machine;
        let (size, value) = (size.to_string(), significant(*value));
        let texts: [&str; HEADER.len()] =
            [description, date, commit, "lab", case, &size, figure, &value, unit, command];
        texts.map(str::to_owned)
    }
}

/// Six significant digits; whole numbers in full.
fn significant(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (5.0 - value.abs().log10().floor()).clamp(0.0, 15.0) as usize;
    format!("{value:.digits$}")
}

/// The figures of a result file. If a figure was measured more than once, the last row counts.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    values: BTreeMap<(String, u64, String), f64>,
    /// The machine and the date of the last row.
    pub source: [String; 2],
    /// The commits of the rows, in the order of the file.
    pub commits: Vec<String>,
}

impl Figures {
    /// Reads a result file.
    ///
    /// # Errors
    /// A sentence with the number of the invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut figures = Self::default();
        let mut lines = text.lines().enumerate();
        let header = lines.next().map(|(_, line)| csv_fields(line));
        if header.is_none_or(|fields| fields != HEADER) {
            return Err(format!("line 1: the columns are not {}", HEADER.join(",")));
        }
        for (at, line) in lines {
            let invalid = || format!("line {}: not a row of `cargo x lab`", at + 1);
            let fields: [String; HEADER.len()] =
                csv_fields(line).try_into().map_err(|_| invalid())?;
            let [machine, date, commit, _, case, size, figure, value, _, _] = fields;
            let size = size.parse().map_err(|_| invalid())?;
            let value = value.parse().map_err(|_| invalid())?;
            figures.values.insert((case, size, figure), value);
            figures.source = [machine, date];
            if !figures.commits.contains(&commit) {
                figures.commits.push(commit);
            }
        }
        Ok(figures)
    }

    /// Returns a figure.
    pub fn get(&self, case: &str, size: u64, figure: &str) -> Option<f64> {
        self.values.get(&(case.to_owned(), size, figure.to_owned())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_a_figure_counts() {
        let row = |value: &str| format!("m,d,c,lab,set,1000,insert,{value},ns,cargo x lab\n");
        let text = format!("{}\n{}{}", HEADER.join(","), row("1.5"), row("2.5"));
        let figures = Figures::parse(&text).expect("valid rows");
        assert_eq!(figures.get("set", 1000, "insert"), Some(2.5));
        assert_eq!(figures.commits, ["c"]);
        assert!(Figures::parse(&(text + "x,y\n")).is_err_and(|e| e.starts_with("line 4")));
        assert_eq!(
            [0.0, 12_345_678.0, 1.234_567_8, 0.000_123_456_78].map(significant),
            ["0", "12345678", "1.23457", "0.000123457"]
        );
    }
}
