//! The plots of docs/performance/README.md.

use super::chart::{Axis, Head, Series, bars, lines};
use super::family::{RATES, compared_at, keeping, min_bits};
use super::format::{kernel, size};
use super::results::{BUILD, Query, Results};
use super::targets::{PETAL, hashed};
use crate::harness::RANDOM_READS;
use crate::harness::rows::Row;

/// A plot, or why it cannot be drawn.
type Plot = Result<String, String>;

const RATE_LABEL: &str = "measured false-positive rate (log scale)";

/// ns per key by the number of keys: petal's 1 % filter by kernel, the rivals, and random reads of memory.
pub(super) fn time(results: &Results, operation: &str) -> Plot {
    let what = match operation {
        "insert" => "Inserting keys",
        _ => "Looking up absent keys",
    };
    let series = time_series(results, operation);
    let all = || series.iter().flat_map(|series| &series.points);
    let (min, max) = range(all().map(|point| point.0), (1e5, 1e6));
    let (fast, slow) = range(all().map(|point| point.1), (1.0, 10.0));
    let head = Head {
        title: &format!("{what}: ns per key, by keys in the filter"),
        subtitle: "About 1 %, one thread, log scales. petal in batches, other libraries key by key. Keys are mixed hashes if not \
                   stated. Lower is better.",
        x_label: "keys in the filter",
        height: 560,
    };
    let x = Axis { range: min / 1.2..max * 1.2, ticks: |keys| size(keys.round() as u64) };
    let y = Axis { range: fast / 1.3..slow * 1.3, ticks: short };
    lines(&head, &x, &y, true, &series)
}

/// Petal's kernels, fastest first, then random reads, then the rivals.
fn time_series(results: &Results, operation: &str) -> Vec<Series> {
    let mut found = Vec::new();
    for name in ["avx512", "neon", "avx2", "simd128", "portable"] {
        let ours = |row: &Row| {
            PETAL.is_of(row)
                && row.form == "batch"
                && row.keys == "hash"
                && row.kernel == name
                && row.operation == operation
        };
        found.push((format!("petal, {}", kernel(name)), times(results, ours)));
    }
    let reads = |row: &Row| results.best_random_reads(row.n) == Some(&row.filter);
    found.push((RANDOM_READS.to_owned(), times(results, reads)));
    let rivals = results.filters().into_iter();
    for name in rivals.filter(|name| !name.starts_with("petal") && !name.starts_with(RANDOM_READS))
    {
        let rows =
            || results.rows.iter().filter(|row| row.filter == name && row.operation == operation);
        // One kind of keys for a line: hashes, if the filter takes them.
        let kinds = ["hash", "u64", "bytes", "-"];
        let kind = kinds.into_iter().find(|kind| rows().any(|row| row.keys == *kind));
        let Some(kind) = kind else { continue };
        // Some rivals do not support a rate of 1 %.
        let has_rate = rows().any(|row| row.target_rate == Some(RATES[0]));
        let is_shown = |row: &Row| {
            row.filter == name
                && row.operation == operation
                && row.keys == kind
                && (!has_rate || row.target_rate == Some(RATES[0]))
        };
        let name = match kind {
            "u64" => format!("{name}, 64-bit keys"),
            "bytes" => format!("{name}, byte keys"),
            _ => name.to_owned(),
        };
        found.push((name, times(results, is_shown)));
    }
    let series = found.into_iter().filter(|(_, points)| !points.is_empty());
    series.map(|(name, points)| Series { name, points, is_curve: false }).collect()
}

/// At each size the fastest of the rows, those of the rivals' suite if there are any: these were measured in turns.
fn times(results: &Results, is_shown: impl Fn(&Row) -> bool) -> Vec<(f64, f64)> {
    let at = |n: u64| {
        ["rivals", "own"].iter().find_map(|suite| {
            let rows = results.rows.iter().filter(|row| {
                row.n == n && row.suite == *suite && row.threads == 1 && row.operation != BUILD
            });
            let times = rows.filter(|row| is_shown(row)).map(|row| row.ns_median);
            times.min_by(f64::total_cmp)
        })
    };
    results.sizes().into_iter().filter_map(|n| Some((n as f64, at(n)?))).collect()
}

/// Bits per key by the measured rate: a line for each type of filter and each rival.
pub(super) fn family(results: &Results) -> Plot {
    let n = compared_at(results);
    let mut series: Vec<Series> = Vec::new();
    for name in results.filters() {
        let rows = RATES.iter().filter_map(|&rate| keeping(results, name, n?, rate));
        let mut points: Vec<(f64, f64)> = rows.filter_map(point).collect();
        points.dedup();
        if !points.is_empty() {
            series.push(Series { name: name.to_owned(), points, is_curve: false });
        }
    }
    let all = || series.iter().flat_map(|series| &series.points);
    let (min, max) = range(all().map(|point| point.0), (1e-4, 0.02));
    let (min, max) = (min / 2.0, (max * 2.0).min(0.3));
    let (_, heavy) = range(all().map(|point| point.1), (1.0, 20.0));
    series.push(curve("lower bound: log₂(1/rate)", min, max, min_bits));
    let keys = n.map_or(String::new(), |n| format!("{} keys. ", size(n)));
    let head = Head {
        title: "The family: bits per key, by measured false-positive rate",
        subtitle: &format!(
            "{keys}Both scales are logarithmic. Lower, and further left, is better."
        ),
        x_label: RATE_LABEL,
        height: 620,
    };
    let bits = min_bits(max) / 1.05..heavy.max(min_bits(min)) * 1.15;
    let (x, y) = (Axis { range: min..max, ticks: percent }, Axis { range: bits, ticks: short });
    lines(&head, &x, &y, true, &series)
}

fn point(row: &Row) -> Option<(f64, f64)> {
    Some((row.measured_rate.filter(|&rate| rate > 0.0)?, row.bits_per_key?))
}

fn curve(name: &str, min: f64, max: f64, bits: fn(f64) -> f64) -> Series {
    let rates = (0..=100).map(|step| min * (max / min).powf(f64::from(step) / 100.0));
    let points = rates.map(|rate| (rate, bits(rate))).collect();
    Series { name: name.to_owned(), points, is_curve: true }
}

const OPERATIONS: [(&str, &str); 4] = [
    ("insert", "insert"),
    ("absent", "look up, absent"),
    ("present", "look up, present"),
    ("mixed", "look up, mixed"),
];

/// ns per key of the kernels at the smallest size.
pub(super) fn kernels(results: &Results) -> Plot {
    let time = |n: u64, operation: &str, kernel: &str| {
        let query = Query { operation, kernel, ..hashed(PETAL, n) };
        results.find("own", &query).map(|row| row.ns_median)
    };
    let exists = |n: u64, kernel: &str| OPERATIONS.iter().any(|it| time(n, it.0, kernel).is_some());
    let all = ["portable", "simd128", "avx2", "avx512", "neon"];
    let n = results.sizes().into_iter().find(|&n| all.iter().any(|kernel| exists(n, kernel)));
    let n = n.unwrap_or_default();
    let kernels: Vec<&str> = all.into_iter().filter(|kernel| exists(n, kernel)).collect();
    let names: Vec<String> = kernels.iter().map(|name| kernel(name).to_owned()).collect();
    let groups = OPERATIONS.map(|(operation, name)| {
        (name, kernels.iter().map(|kernel| time(n, operation, kernel)).collect())
    });
    let head = Head {
        title: &format!("Kernels in cache: ns per key, {} keys", size(n)),
        subtitle: "petal's 1 % filter, batches of mixed hashes, one thread. Lower is better.",
        x_label: "",
        height: 420,
    };
    bars(&head, &names, &groups)
}

/// The smallest and the largest value; `default` if there are none.
fn range(values: impl Iterator<Item = f64>, default: (f64, f64)) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { default }
}

/// A tick in as few digits as it needs.
fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (-value.abs().log10().floor()).max(0.0) as usize };
    format!("{value:.digits$}")
}

fn percent(rate: f64) -> String {
    format!("{} %", short(rate * 100.0))
}
