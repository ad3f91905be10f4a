//! The results of a case at one operation: written as CSV, and shown as a table of ratios.
//!
//! `ns_by_round` has the ns per key of every round, joined by `;`. Equal positions in two rows of the same suite, `n` and
//! operation are of the same round; `paired` computes ratios from such pairs.

use super::{Case, Form, Operation};
use crate::machine::Fields;
use crate::stats::median;

/// The results of a case at one operation. A column that does not apply is empty or `-`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// `own`, `rivals` or `family`: rows of one suite and `n` were measured in turns.
    pub suite: String,
    /// Keys in the filter.
    pub n: u64,
    /// Name of the filter.
    pub filter: String,
    /// The target false-positive rate.
    pub target_rate: Option<f64>,
    /// Memory divided by the number of keys.
    pub bits_per_key: Option<f64>,
    /// The share of absent keys that were reported as present.
    pub measured_rate: Option<f64>,
    /// The number of absent keys for the measured rate.
    pub absent_keys: Option<u64>,
    /// `hash`, `u64` or `bytes`.
    pub keys: String,
    /// `single` or `batch`.
    pub form: String,
    /// `portable`, `simd128`, `avx2`, `avx512` or `neon`.
    pub kernel: String,
    /// `insert`, `absent`, `present`, `mixed`, `remove` or `build`.
    pub operation: String,
    /// Number of threads.
    pub threads: u32,
    /// Median of the rounds, ns per key.
    pub ns_median: f64,
    /// ns per key, round by round.
    pub ns_by_round: Vec<f64>,
}

impl Row {
    pub(super) fn new(
        suite: &str,
        n: u64,
        case: &Case,
        measured: Option<(f64, u64)>,
        operation: Operation,
        ns: Vec<f64>,
    ) -> Self {
        let bits = |bytes: u64| 8.0 * bytes as f64 / n as f64;
        Self {
            suite: suite.to_owned(),
            n,
            filter: case.filter.clone(),
            target_rate: case.target,
            bits_per_key: Some(case.tested.memory_bytes().map_or(case.bits_per_key, bits)),
            measured_rate: measured.map(|(rate, _)| rate),
            absent_keys: measured.map(|(_, keys)| keys),
            keys: case.kind.name().to_owned(),
            form: case.form.name().to_owned(),
            kernel: case.kernel.map_or(String::new(), |kernel| kernel.name().to_owned()),
            operation: operation.name().to_owned(),
            threads: case.threads as u32,
            ns_median: median(&ns).unwrap_or(f64::NAN),
            ns_by_round: ns,
        }
    }

    /// Returns the columns of the row.
    pub fn fields(&self) -> Fields {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let rounds: Vec<String> = self.ns_by_round.iter().map(|ns| format!("{ns:.3}")).collect();
        vec![
            ("suite", self.suite.clone()),
            ("n", self.n.to_string()),
            ("filter", self.filter.clone()),
            ("target_rate", number(self.target_rate)),
            ("bits_per_key", self.bits_per_key.map_or(String::new(), |bits| format!("{bits:.3}"))),
            ("measured_rate", number(self.measured_rate)),
            ("absent_keys", self.absent_keys.map_or(String::new(), |keys| keys.to_string())),
            ("keys", self.keys.clone()),
            ("form", self.form.clone()),
            ("kernel", self.kernel.clone()),
            ("operation", self.operation.clone()),
            ("threads", self.threads.to_string()),
            ("ns_median", format!("{:.3}", self.ns_median)),
            ("ns_by_round", rounds.join(";")),
        ]
    }

    /// Returns whether two rows are of the same case.
    pub fn same_case(&self, other: &Self) -> bool {
        let numbers = |row: &Self| (row.n, row.target_rate.map(f64::to_bits), row.threads);
        let names = |row: &Self| {
            [&row.suite, &row.filter, &row.kernel, &row.keys, &row.form].map(String::clone)
        };
        numbers(self) == numbers(other) && names(self) == names(other)
    }
}

/// Returns the median of `other / base` over the rounds. `None` if they have different numbers of rounds, or none.
fn paired(base: &[f64], other: &[f64]) -> Option<f64> {
    if base.len() != other.len() {
        return None;
    }
    let ratios: Vec<f64> = base.iter().zip(other).map(|(base, other)| other / base).collect();
    median(&ratios)
}

/// The filter whose batches are the base of the ratios in a table.
const BASE: &str = "petal 1 %";

/// The operations in a table.
const SHOWN: [Operation; 3] = [Operation::Insert, Operation::Absent, Operation::Present];

/// Returns a table of the rows of one suite and `n`. Ratios are to batches of `BASE` with the same kind of keys and
/// the fastest kernel.
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
    let is_build = |row: &Row| row.operation == Operation::Build.name();
    let mut shown: Vec<&Row> = Vec::new();
    for row in rows.iter().filter(|row| !is_build(row)) {
        if shown.iter().any(|other| row.same_case(other)) {
            continue;
        }
        shown.push(row);
        let percent = |rate: Option<f64>, digits: usize| {
            rate.map_or(String::new(), |rate| format!("{:.digits$} %", rate * 100.0))
        };
        text += &format!(
            "{:<24} {:>6} {:>6.2} {:>9} {:<5} {:<6} {:<8}",
            row.filter,
            percent(row.target_rate, 1),
            row.bits_per_key.unwrap_or(f64::NAN),
            percent(row.measured_rate, 4),
            row.keys,
            row.form,
            row.kernel,
        );
        let timed = |operation: Operation| {
            let same = |other: &&Row| other.operation == operation.name() && other.same_case(row);
            rows.iter().find(same)
        };
        let base = |operation: Operation| {
            rows.iter().rev().filter(|other| other.operation == operation.name()).find(|other| {
                let batch = Form::Batch.name();
                other.filter == BASE && other.keys == row.keys && other.form == batch
            })
        };
        for operation in SHOWN {
            let ns = timed(operation).map(|row| row.ns_median);
            text += &ns.map_or(format!(" {:>7}", ""), |ns| format!(" {ns:>7.2}"));
        }
        for operation in SHOWN {
            let ratio = timed(operation)
                .zip(base(operation))
                .and_then(|(row, base)| paired(&base.ns_by_round, &row.ns_by_round));
            text += &ratio.map_or(format!(" {:>7}", ""), |ratio| format!(" {ratio:>7.2}"));
        }
        text = text.trim_end().to_owned() + "\n";
    }
    for row in rows.iter().filter(|row| is_build(row)) {
        let Row { filter, keys, threads, ns_median: ns, .. } = row;
        text += &format!("{filter} built at once, {keys}, {threads} threads: {ns:.2} ns per key\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::values;

    fn row(filter: &str, operation: Operation, ns: &[f64]) -> Row {
        Row {
            suite: "rivals".into(),
            n: 100_000,
            filter: filter.into(),
            target_rate: Some(0.01),
            bits_per_key: Some(9.93),
            measured_rate: Some(0.0099),
            absent_keys: Some(10_000_000),
            keys: "hash".into(),
            form: if filter == BASE { "batch" } else { "single" }.into(),
            kernel: String::new(),
            operation: operation.name().into(),
            threads: 1,
            ns_median: median(ns).unwrap(),
            ns_by_round: ns.into(),
        }
    }

    #[test]
    fn numbers_of_a_row_have_their_decimals() {
        let row = values(&row(BASE, Operation::Insert, &[1.0, 3.0, 2.0]).fields());
        assert_eq!(
            row,
            "rivals,100000,petal 1 %,0.01,9.930,0.0099,10000000,hash,batch,,insert,1,2.000,1.000;3.000;2.000\n"
        );
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        // The machine was three times as slow in the second round.
        assert_eq!(paired(&[1.0, 3.0, 1.0], &[4.0, 12.0, 2.0]), Some(4.0));
        assert_eq!(paired(&[1.0, 2.0], &[1.0]), None);
    }

    #[test]
    fn a_table_has_a_line_for_each_case() {
        let rows = [
            row(BASE, Operation::Insert, &[2.0, 2.0]),
            row(BASE, Operation::Absent, &[1.0, 1.0]),
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
