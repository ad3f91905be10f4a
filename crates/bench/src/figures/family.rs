//! The tables of docs/filters.md: every type of filter beside its rivals, from the rows of `cargo x bench family`.
//!
//! A filter is shown at a rate by its leanest row that was made for that rate or a finer one: what a user who wants this
//! rate would take. Ratios are petal's figure over the rival's, so that less than 1 is ahead; of times they are paired.

use super::beside::{OPERATIONS, fill};
use super::sheet::{Row, Sheet};
use super::targets::upper_bound;
use super::words::{ns, percent, size};

/// The rates that filters are compared at; times at the first.
pub(super) const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// The size at which space is compared, or the nearest that there is.
const KEYS: f64 = 1e6;

/// What no filter can go below, in bits a key.
pub(super) fn limit(rate: f64) -> f64 {
    -rate.log2()
}

/// The size nearest to [`KEYS`].
pub(super) fn compared_at(sheet: &Sheet) -> Option<u64> {
    let far = |n: u64| (n as f64 / KEYS).ln().abs();
    sheet.sizes().into_iter().min_by(|&a, &b| far(a).total_cmp(&far(b)))
}

/// Names of filters, in the order of their first rows.
pub(super) fn names(sheet: &Sheet) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in &sheet.rows {
        if !names.contains(&row.filter.as_str()) {
            names.push(&row.filter);
        }
    }
    names
}

/// The leanest row of a filter that keeps a rate. At the coarsest rate, what there is of a filter that cannot keep it.
pub(super) fn keeping<'a>(sheet: &'a Sheet, name: &str, n: u64, rate: f64) -> Option<&'a Row> {
    let of = || sheet.rows.iter().filter(|row| row.filter == name && row.n == n);
    let leaner = |a: &&Row, b: &&Row| {
        let bits = |row: &Row| row.bits_per_key.unwrap_or(f64::INFINITY);
        bits(a).total_cmp(&bits(b))
    };
    let kept = of().filter(|row| row.target_rate.is_some_and(|target| target <= rate));
    kept.min_by(leaner).or_else(|| of().min_by(leaner).filter(|_| rate == RATES[0]))
}

/// The row of the same filter at an operation.
pub(super) fn timed<'a>(
    sheet: &'a Sheet,
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
    sheet.rows.iter().find(same)
}

/// Space and the measured rate, at every rate.
pub(super) fn space(sheet: &Sheet) -> String {
    let Some(n) = compared_at(sheet) else { return String::new() };
    let heads: String = RATES
        .map(|rate| format!(" {} %: bits a key | measured | × limit |", rate * 100.0))
        .concat();
    let limits: String = RATES.map(|rate| format!(" {:.2} | | 1 |", limit(rate))).concat();
    let mut text = format!(
        "**n = {}**\n\n| filter |{heads}\n|---|{}\n| *no filter can be below* |{limits}\n",
        size(n),
        "--:|--:|--:|".repeat(RATES.len())
    );
    for name in names(sheet) {
        let cells = RATES.map(|rate| {
            keeping(sheet, name, n, rate).map_or_else(|| " | | |".to_owned(), |row| cell(row, rate))
        });
        text += &format!("| {name} |{}\n", cells.concat());
    }
    text
}

/// Bits, rate and how far above the limit of that rate; a promise that is not kept is in bold.
fn cell(row: &Row, rate: f64) -> String {
    // What cannot keep the rate was made for another, and promised no more.
    let promised = row.target_rate.map_or(rate, |target| target.max(rate));
    let bits = row.bits_per_key.map_or(String::new(), |bits| format!("{bits:.2}"));
    let (rate, times) = match (row.measured_rate, row.absent_keys) {
        (Some(rate), Some(tries)) if rate > upper_bound(promised, tries) => {
            (format!("**{}**", percent(rate)), over_limit(row))
        }
        (Some(rate), _) => (percent(rate), over_limit(row)),
        _ => (String::new(), String::new()),
    };
    format!(" {bits} | {rate} | {times} |")
}

fn over_limit(row: &Row) -> String {
    let at = row.measured_rate.filter(|&rate| rate > 0.0 && rate < 1.0).map(limit);
    let times = row.bits_per_key.zip(at).map(|(bits, limit)| bits / limit);
    times.map_or(String::new(), |times| format!("{times:.2}"))
}

/// Times at the first of the rates, a table for each size.
pub(super) fn speed(sheet: &Sheet) -> String {
    let mut text = String::new();
    for n in sheet.sizes() {
        text += &format!(
            "**n = {}**\n\n\
             | filter | how | bits a key | insert | absent | present | delete | filled in |\n\
             |---|---|--:|--:|--:|--:|--:|--:|\n",
            size(n)
        );
        for name in names(sheet) {
            let Some(row) = keeping(sheet, name, n, RATES[0]) else { continue };
            for form in ["batch", "single"] {
                text += &line(sheet, row, form);
            }
        }
        text.push('\n');
    }
    text
}

/// One filter, in one form; nothing, if it has none.
fn line(sheet: &Sheet, row: &Row, form: &str) -> String {
    let times = OPERATIONS.map(|operation| {
        let found = timed(sheet, row, form, operation);
        found.map_or(String::new(), |row| ns(row.ns_median))
    });
    let Some(filled) = fill(sheet, row, form) else { return String::new() };
    let seconds = filled.ns_median * row.n as f64 / 1e9;
    let how = match (form, filled.operation.as_str()) {
        (_, "build") => format!("{form}, made at once"),
        _ => form.to_owned(),
    };
    format!(
        "| {} | {how} | {:.2} | {} | {} |\n",
        row.filter,
        row.bits_per_key.unwrap_or(f64::NAN),
        times.join(" | "),
        self::seconds(seconds)
    )
}

/// Three digits that count.
fn seconds(value: f64) -> String {
    let places = (2.0 - value.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.places$} s")
}
