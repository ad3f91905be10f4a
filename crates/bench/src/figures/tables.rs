//! The Markdown tables: targets, and for each suite and size every contestant beside petal.

use super::sheet::{BUILD, Pick, Row, Sheet};
use super::targets::{PETAL, Target, hashed};
use super::words::{figure, kernel, ns, percent, size};
use crate::contest::rows::paired;

const OPERATIONS: [&str; 4] = ["insert", "absent", "present", "mixed"];

/// The table of targets, and where its figures are from.
pub(super) fn targets(targets: &[Target], source: &str, sheet: &Sheet) -> String {
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
    text + "\n" + &self::source(source, sheet)
}

/// Where figures are from.
pub(super) fn source(source: &str, sheet: &Sheet) -> String {
    // Indented: shown as it is, whatever signs are in it.
    let notes: String = sheet.notes.iter().map(|note| format!("    {note}\n")).collect();
    format!("Rows: `{source}`\n\n{notes}")
}

/// A table for each size, of what was measured in turns in this suite; then the builds.
pub(super) fn suite(sheet: &Sheet, suite: &str) -> String {
    let mut text = String::new();
    for n in sheet.sizes() {
        let entries = entries(sheet, suite, n);
        if !entries.is_empty() {
            text += &table(sheet, suite, n, &entries);
        }
    }
    text + &builds(sheet, suite)
}

/// The rows of one contestant at one size: one for each operation.
type Entry<'a> = Vec<&'a Row>;

/// The contestants, in the order in which they stand in the CSV.
fn entries<'a>(sheet: &'a Sheet, suite: &str, n: u64) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry> = Vec::new();
    let meant = |row: &&Row| row.suite == suite && row.n == n && row.operation != BUILD;
    for row in sheet.rows.iter().filter(meant) {
        let same = |entry: &&mut Entry| same_contestant(entry[0], row);
        match entries.iter_mut().find(same) {
            Some(entry) => entry.push(row),
            None => entries.push(vec![row]),
        }
    }
    entries
}

fn same_contestant(a: &Row, b: &Row) -> bool {
    let who = |row: &Row| (row.target_rate, row.threads);
    let how = |row: &Row| [&row.filter, &row.keys, &row.form, &row.kernel].map(String::clone);
    who(a) == who(b) && how(a) == how(b)
}

fn table(sheet: &Sheet, suite: &str, n: u64, entries: &[Entry]) -> String {
    let mut text = format!(
        "**n = {}**\n\n\
         | filter | how | bits a key | rate | insert | absent | present | mixed | × petal |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
        size(n)
    );
    for entry in entries {
        // Space and rate may stand in one row of the contestant only.
        let bits = entry.iter().find_map(|row| row.bits_per_key);
        let rate = entry.iter().find_map(|row| row.measured_rate);
        let row_of = |name: &str| entry.iter().find(|row| row.operation == name);
        let times =
            OPERATIONS.map(|name| row_of(name).map_or(String::new(), |row| ns(row.ns_median)));
        let times_petal = row_of("absent").and_then(|row| beside_petal(sheet, suite, n, row));
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

/// How many times as long as petal's batch of the same kind of keys; queries of absent keys, paired.
fn beside_petal(sheet: &Sheet, suite: &str, n: u64, row: &Row) -> Option<f64> {
    let keys = if row.keys == "-" { "hash" } else { &row.keys };
    let petal = sheet.pick(suite, &Pick { keys, operation: "absent", ..hashed(PETAL, n) })?;
    paired(&petal.ns_by_round, &row.ns_by_round)
}

/// Kind of keys, calls, kernel; what does not apply is left out.
fn how(row: &Row) -> String {
    let keys = match row.keys.as_str() {
        "hash" => "hashes",
        "u64" => "64-bit keys",
        other => other,
    };
    let words = [keys, &row.form, kernel(&row.kernel)];
    words.into_iter().filter(|word| !matches!(*word, "" | "-")).collect::<Vec<_>>().join(", ")
}

/// The builds on several threads.
fn builds(sheet: &Sheet, suite: &str) -> String {
    let rows = sheet.rows.iter().filter(|row| row.suite == suite && row.operation == BUILD);
    let lines: Vec<String> = rows
        .map(|row| {
            let (n, time) = (size(row.n), ns(row.ns_median));
            format!("| {} | {} | {n} | {} | {time} |\n", row.filter, how(row), row.threads)
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let head = "**Building**\n\n| filter | how | n | threads | ns a key |\n|---|---|--:|--:|--:|\n";
    format!("{head}{}\n", lines.concat())
}
