//! The tables of space and time: every type of filter and its rivals, from the rows of `cargo x bench family`.
//!
//! At a rate, a filter is represented by its smallest row with this target rate or a lower one.

use super::format::{ns, percent, size};
use super::results::{BUILD, Results};
use super::targets::upper_bound;
use crate::harness::rows::Row;

/// The timed operations, by their names in rows.
pub(super) const OPERATIONS: [&str; 4] = ["insert", "absent", "present", "remove"];

/// The rates at which filters are compared; times are compared at the first.
pub(super) const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// Space is compared at the size nearest to this.
const KEYS: f64 = 1e6;

/// Returns the lower bound of the bits per key of any filter.
pub(super) fn min_bits(rate: f64) -> f64 {
    -rate.log2()
}

/// Returns the size nearest to [`KEYS`].
pub(super) fn compared_at(results: &Results) -> Option<u64> {
    let distance = |n: u64| (n as f64 / KEYS).ln().abs();
    results.sizes().into_iter().min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
}

/// Returns the smallest row of a filter with this target rate or a lower one. At the highest rate, a filter without
/// such a row has its smallest one.
pub(super) fn keeping<'a>(results: &'a Results, name: &str, n: u64, rate: f64) -> Option<&'a Row> {
    let of = || results.rows.iter().filter(|row| row.filter == name && row.n == n);
    let leaner = |a: &&Row, b: &&Row| {
        let bits = |row: &Row| row.bits_per_key.unwrap_or(f64::INFINITY);
        bits(a).total_cmp(&bits(b))
    };
    let kept = of().filter(|row| row.target_rate.is_some_and(|target| target <= rate));
    kept.min_by(leaner).or_else(|| of().min_by(leaner).filter(|_| rate == RATES[0]))
}

/// Returns the row of the same filter at an operation.
pub(super) fn timed<'a>(
    results: &'a Results,
    like: &Row,
    form: &str,
    operation: &str,
) -> Option<&'a Row> {
    let same = |row: &&Row| {
        (row.n, row.target_rate) == (like.n, like.target_rate)
            && (row.filter.as_str(), row.form.as_str()) == (&like.filter, form)
            && row.operation == operation
            && row.threads == 1
    };
    results.rows.iter().find(same)
}

/// The row of a filter that has been filled, by inserts or by a build.
pub(super) fn fill<'a>(results: &'a Results, like: &Row, form: &str) -> Option<&'a Row> {
    ["insert", BUILD].into_iter().find_map(|operation| timed(results, like, form, operation))
}

/// Space and the measured rate, at every rate.
pub(super) fn space(results: &Results) -> String {
    let Some(n) = compared_at(results) else { return String::new() };
    let heads: String =
        RATES.map(|rate| format!(" {} %: bits per key | measured |", rate * 100.0)).concat();
    let limits: String = RATES.map(|rate| format!(" {:.2} | |", min_bits(rate))).concat();
    let mut text = format!(
        "**n = {}**\n\n| filter |{heads}\n|---|{}\n| *no filter can be below* |{limits}\n",
        size(n),
        "--:|--:|".repeat(RATES.len())
    );
    for name in results.filters() {
        let cells = RATES.map(|rate| {
            keeping(results, name, n, rate).map_or_else(|| " | |".to_owned(), |row| cell(row, rate))
        });
        text += &format!("| {name} |{}\n", cells.concat());
    }
    text
}

/// Bits and rate. A rate significantly above the target is bold.
fn cell(row: &Row, rate: f64) -> String {
    let target = row.target_rate.map_or(rate, |target| target.max(rate));
    let bits = row.bits_per_key.map_or(String::new(), |bits| format!("{bits:.2}"));
    let rate = match (row.measured_rate, row.absent_keys) {
        (Some(rate), Some(tries)) if rate > upper_bound(target, tries) => {
            format!("**{}**", percent(rate))
        }
        (Some(rate), _) => percent(rate),
        _ => String::new(),
    };
    format!(" {bits} | {rate} |")
}

/// Times at the first of the rates, a table for each size.
pub(super) fn speed(results: &Results) -> String {
    let mut text = String::new();
    for n in results.sizes() {
        text += &format!(
            "**n = {}**\n\n\
             | filter | bits per key | fill | absent | present | delete |\n\
             |---|--:|--:|--:|--:|--:|\n",
            size(n)
        );
        for name in results.filters() {
            text += &keeping(results, name, n, RATES[0])
                .map_or_else(String::new, |row| line(results, row));
        }
        text.push('\n');
    }
    text
}

/// The line of a filter: of each operation the time in batches, and in parentheses the time key by key.
fn line(results: &Results, row: &Row) -> String {
    let times = OPERATIONS.map(|operation| {
        let time = |form| match operation {
            "insert" => fill(results, row, form),
            _ => timed(results, row, form, operation),
        };
        match ["batch", "single"].map(|form| time(form).map(|row| ns(row.ns_median))) {
            [Some(batch), Some(single)] => format!("{batch} ({single})"),
            [one, other] => one.or(other).unwrap_or_default(),
        }
    });
    let bits = row.bits_per_key.unwrap_or(f64::NAN);
    format!("| {} | {bits:.2} | {} |\n", row.filter, times.join(" | "))
}
