//! The tables of docs/performance/README.md: targets, and all cases of each suite and size.

use super::format::{figure, kernel, ns, percent, size};
use super::results::{BUILD, Query, Results};
use super::targets::{PETAL, Target, hashed};
use crate::harness::rows::{Row, paired};

const OPERATIONS: [&str; 4] = ["insert", "absent", "present", "mixed"];

/// The table of targets, and the source of its figures.
pub(super) fn targets(targets: &[Target], source: &str, results: &Results) -> String {
    let mut text = String::from("| work | target | measured | |\n|---|---|---|---|\n");
    for target in targets {
        text += &format!(
            "| {} | {} | {} | {} |\n",
            target.work,
            target.wanted,
            target.measured(),
            target.verdict_in_words()
        );
    }
    text + "\n" + &self::source(source, results)
}

/// The source of figures.
pub(super) fn source(source: &str, results: &Results) -> String {
    // Indented lines are code blocks, in which no character is special.
    let notes: String = results.notes.iter().map(|note| format!("    {note}\n")).collect();
    format!("Rows: `{source}`\n\n{notes}")
}

/// A table for each size of a suite, then the builds.
pub(super) fn suite(results: &Results, suite: &str) -> String {
    let mut text = String::new();
    for n in results.sizes() {
        let entries = entries(results, suite, n);
        if !entries.is_empty() {
            text += &table(results, suite, n, &entries);
        }
    }
    text + &builds(results, suite)
}

/// The rows of a case: one for each operation.
type Entry<'a> = Vec<&'a Row>;

/// Returns the cases in the order of the CSV.
fn entries<'a>(results: &'a Results, suite: &str, n: u64) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry> = Vec::new();
    let is_shown = |row: &&Row| row.suite == suite && row.n == n && row.operation != BUILD;
    for row in results.rows.iter().filter(is_shown) {
        let same = |entry: &&mut Entry| entry[0].same_case(row);
        match entries.iter_mut().find(same) {
            Some(entry) => entry.push(row),
            None => entries.push(vec![row]),
        }
    }
    entries
}

fn table(results: &Results, suite: &str, n: u64, entries: &[Entry]) -> String {
    let mut text = format!(
        "**n = {}**\n\n\
         | filter | how | bits per key | rate | insert | absent | present | mixed | × petal |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
        size(n)
    );
    for entry in entries {
        // Some files have space and rate only in one row of a case.
        let bits = entry.iter().find_map(|row| row.bits_per_key);
        let rate = entry.iter().find_map(|row| row.measured_rate);
        let row_of = |name: &str| entry.iter().find(|row| row.operation == name);
        let times =
            OPERATIONS.map(|name| row_of(name).map_or(String::new(), |row| ns(row.ns_median)));
        let times_petal =
            row_of("absent").and_then(|row| relative_to_petal(results, suite, n, row));
        text += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            entry[0].filter,
            how(entry[0]),
            bits.map_or(String::new(), |bits| format!("{bits:.2}")),
            rate.map_or(String::new(), percent),
            times.join(" | "),
            times_petal.map_or(String::new(), figure),
        );
    }
    text + "\n"
}

/// Returns the time relative to petal's batches with the same kind of keys, for absent keys, paired by round.
fn relative_to_petal(results: &Results, suite: &str, n: u64, row: &Row) -> Option<f64> {
    let keys = if row.keys == "-" { "hash" } else { &row.keys };
    let petal = results.find(suite, &Query { keys, operation: "absent", ..hashed(PETAL, n) })?;
    paired(&petal.ns_by_round, &row.ns_by_round)
}

/// Kind of keys, form, kernel; those that do not apply are left out.
fn how(row: &Row) -> String {
    let keys = match row.keys.as_str() {
        "hash" => "hashes",
        "u64" => "64-bit keys",
        other => other,
    };
    let words = [keys, &row.form, kernel(&row.kernel)];
    words.into_iter().filter(|word| !matches!(*word, "" | "-")).collect::<Vec<_>>().join(", ")
}

/// The parallel builds.
fn builds(results: &Results, suite: &str) -> String {
    let rows = results.rows.iter().filter(|row| row.suite == suite && row.operation == BUILD);
    let lines: Vec<String> = rows
        .map(|row| {
            let (n, time) = (size(row.n), ns(row.ns_median));
            format!("| {} | {} | {n} | {} | {time} |\n", row.filter, how(row), row.threads)
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let head =
        "**Building**\n\n| filter | how | n | threads | ns per key |\n|---|---|--:|--:|--:|\n";
    format!("{head}{}\n", lines.concat())
}
