//! One row for each contestant and operation: as CSV, which keeps every round, and as a table of ratios.
//!
//! `ns_by_round` has the ns per key of all rounds, joined by `;`. The same place in two rows of one suite, `n` and
//! operation is the same round: ratios are made of such pairs, see [`paired`].

use super::{Contestant, Operation};
use crate::summary::{csv_row, median};

/// The columns.
pub const HEADER: [&str; 14] = [
    "suite",
    "n",
    "filter",
    "target_rate",
    "bits_per_key",
    "measured_rate",
    "absent_keys",
    "keys",
    "form",
    "kernel",
    "operation",
    "threads",
    "ns_median",
    "ns_by_round",
];

/// What was measured of a contestant at one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `own`, `rivals` or `family`.
    pub suite: String,
    /// Keys in the filter.
    pub n: u64,
    /// The contestant's filter.
    pub filter: String,
    /// The rate it was made for.
    pub target: Option<f64>,
    /// Its memory.
    pub bits_per_key: f64,
    /// The share of absent keys that it took for present, and of how many.
    pub measured: Option<(f64, u64)>,
    /// What a key is.
    pub keys: &'static str,
    /// How keys are given.
    pub form: &'static str,
    /// The kernel of petal's filters.
    pub kernel: String,
    /// What was timed.
    pub operation: Operation,
    /// Threads at work at a time.
    pub threads: usize,
    /// ns per key, a value for each round.
    pub ns: Vec<f64>,
}

impl Row {
    pub(super) fn new(
        suite: &str,
        n: u64,
        contestant: &Contestant,
        measured: Option<(f64, u64)>,
        operation: Operation,
        ns: Vec<f64>,
    ) -> Self {
        Self {
            suite: suite.to_owned(),
            n,
            filter: contestant.filter.clone(),
            target: contestant.target,
            bits_per_key: contestant
                .subject
                .bytes()
                .map_or(contestant.bits_per_key, |bytes| 8.0 * bytes as f64 / n as f64),
            measured,
            keys: contestant.kind.name(),
            form: contestant.form.name(),
            kernel: contestant.kernel.map_or(String::new(), |kernel| kernel.name().to_owned()),
            operation,
            threads: contestant.threads,
            ns,
        }
    }

    /// The row as CSV.
    pub fn csv(&self) -> String {
        let rate = |rate: Option<f64>| rate.map_or(String::new(), |rate| rate.to_string());
        let rounds: Vec<String> = self.ns.iter().map(|ns| format!("{ns:.3}")).collect();
        csv_row(&[
            self.suite.clone(),
            self.n.to_string(),
            self.filter.clone(),
            rate(self.target),
            format!("{:.3}", self.bits_per_key),
            rate(self.measured.map(|(rate, _)| rate)),
            self.measured.map_or(String::new(), |(_, absent)| absent.to_string()),
            self.keys.to_owned(),
            self.form.to_owned(),
            self.kernel.clone(),
            self.operation.name().to_owned(),
            self.threads.to_string(),
            format!("{:.3}", median(&self.ns).unwrap_or(f64::NAN)),
            rounds.join(";"),
        ])
    }

    /// Whether two rows are of one contestant.
    fn same_contestant(&self, other: &Self) -> bool {
        let facts = |row: &Self| (row.n, row.target.map(f64::to_bits), row.threads);
        let names = |row: &Self| (row.suite.clone(), row.filter.clone(), row.kernel.clone());
        facts(self) == facts(other)
            && names(self) == names(other)
            && (self.keys, self.form) == (other.keys, other.form)
    }
}

/// How many times as long the second takes: the median of the ratios of times of one round.
pub fn paired(yardstick: &[f64], other: &[f64]) -> Option<f64> {
    if yardstick.len() != other.len() {
        return None;
    }
    let ratios: Vec<f64> = yardstick.iter().zip(other).map(|(one, other)| other / one).collect();
    median(&ratios)
}

/// Whose batches all others are compared with in a table.
const YARDSTICK: &str = "petal 1 %";

/// The operations that a table has room for.
const SHOWN: [Operation; 3] = [Operation::Insert, Operation::Absent, Operation::Present];

/// A table of the rows of one suite and `n`. A ratio is that to the first of petal's filters in batches that takes the
/// same kind of keys, with its fastest kernel.
pub fn table(rows: &[Row]) -> String {
    let [insert, absent, present] = SHOWN.map(Operation::name);
    let mut text = format!(
        "{:67}{:<24}{:<24}\n{:<24} {:>6} {:>6} {:>9} {:<5} {:<6} {:<8}",
        "",
        "  ns per key",
        "  times petal's time",
        "filter",
        "rate",
        "bits",
        "measured",
        "keys",
        "form",
        "kernel"
    );
    text += &format!(" {insert:>7} {absent:>7} {present:>7}").repeat(2);
    text.push('\n');
    let mut shown: Vec<&Row> = Vec::new();
    for row in rows {
        let built = row.operation == Operation::Build;
        if built || shown.iter().any(|other| row.same_contestant(other)) {
            continue;
        }
        shown.push(row);
        let percent = |rate: Option<f64>, digits: usize| {
            rate.map_or(String::new(), |rate| format!("{:.digits$} %", rate * 100.0))
        };
        text += &format!(
            "{:<24} {:>6} {:>6.2} {:>9} {:<5} {:<6} {:<8}",
            row.filter,
            percent(row.target, 1),
            row.bits_per_key,
            percent(row.measured.map(|(rate, _)| rate), 4),
            row.keys,
            row.form,
            row.kernel,
        );
        let timed = |operation| {
            rows.iter().find(|other| other.operation == operation && other.same_contestant(row))
        };
        let yardstick = |operation| {
            rows.iter().rev().filter(|other| other.operation == operation).find(|other| {
                other.filter == YARDSTICK && (other.keys, other.form) == (row.keys, "batch")
            })
        };
        for operation in SHOWN {
            let ns = timed(operation).and_then(|row| median(&row.ns));
            text += &ns.map_or(format!(" {:>7}", ""), |ns| format!(" {ns:>7.2}"));
        }
        for operation in SHOWN {
            let ratio = timed(operation)
                .zip(yardstick(operation))
                .and_then(|(row, yardstick)| paired(&yardstick.ns, &row.ns));
            text += &ratio.map_or(format!(" {:>7}", ""), |ratio| format!(" {ratio:>7.2}"));
        }
        text = text.trim_end().to_owned() + "\n";
    }
    for row in rows.iter().filter(|row| row.operation == Operation::Build) {
        let (keys, threads) = (row.keys, row.threads);
        let ns = median(&row.ns).unwrap_or(f64::NAN);
        text += &format!(
            "{} built at once, {keys}, {threads} threads: {ns:.2} ns per key\n",
            row.filter
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(filter: &str, operation: Operation, ns: &[f64]) -> Row {
        Row {
            suite: "rivals".into(),
            n: 100_000,
            filter: filter.into(),
            target: Some(0.01),
            bits_per_key: 9.93,
            measured: Some((0.0099, 10_000_000)),
            keys: "hash",
            form: if filter == YARDSTICK { "batch" } else { "single" },
            kernel: String::new(),
            operation,
            threads: 1,
            ns: ns.into(),
        }
    }

    #[test]
    fn a_row_has_a_field_for_each_column() {
        let csv = row(YARDSTICK, Operation::Insert, &[1.0, 3.0, 2.0]).csv();
        let fields: Vec<&str> = csv.trim_end().split(',').collect();
        assert_eq!(fields.len(), HEADER.len());
        assert_eq!(fields[10..], ["insert", "1", "2.000", "1.000;3.000;2.000"]);
        assert_eq!(fields[..6], ["rivals", "100000", YARDSTICK, "0.01", "9.930", "0.0099"]);
    }

    #[test]
    fn ratios_are_of_one_round() {
        // The machine was three times as slow in the second round: the medians alone would say 2.
        assert_eq!(paired(&[1.0, 3.0, 1.0], &[4.0, 12.0, 2.0]), Some(4.0));
        assert_eq!(paired(&[1.0, 2.0], &[1.0]), None);
    }

    #[test]
    fn a_table_has_a_line_for_each_contestant() {
        let rows = [
            row(YARDSTICK, Operation::Insert, &[2.0, 2.0]),
            row(YARDSTICK, Operation::Absent, &[1.0, 1.0]),
            row("other", Operation::Insert, &[5.0, 7.0]),
            row("other", Operation::Absent, &[3.0, 3.0]),
        ];
        let table = table(&rows);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[2].contains("0.9900 %") && lines[2].contains("1.00"), "{table}");
        assert!(lines[3].contains("6.00") && lines[3].ends_with("3.00    3.00"), "{table}");
    }
}
