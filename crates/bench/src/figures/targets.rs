//! Performance targets of the filters, and whether they are met.
//!
//! A target has parts (operations, sizes, builds) and is met if every part is. A part without rows in the CSV is neither
//! met nor missed. Ratios of times are paired by round.

use super::format::{figure_near, percent, percent_near, size};
use super::results::{BUILD, Query, Results};
use crate::harness::RANDOM_READS;
use crate::harness::rows::Row;

/// A filter in the CSV: its name and target rate.
#[derive(Clone, Copy)]
pub(super) struct Name {
    filter: &'static str,
    rate: f64,
}

impl Name {
    pub(super) fn is_of(self, row: &Row) -> bool {
        row.filter == self.filter && row.target_rate == Some(self.rate)
    }
}

/// The filters with targets.
pub(super) const PETAL: Name = Name { filter: "petal 1 %", rate: 0.01 };
const FINE: Name = Name { filter: "petal 0.1 %", rate: 0.001 };
const PAIRS: Name = Name { filter: "petal 0.1 % pairs", rate: 0.001 };
const CLASSIC: Name = Name { filter: "petal classic 1 %", rate: 0.01 };
const SPLIT_BLOCKS: Name = Name { filter: "sbbf-rs-safe", rate: 0.01 };
const FASTBLOOM: Name = Name { filter: "fastbloom foldhash", rate: 0.01 };

const LOOKUPS: [&str; 2] = ["absent", "present"];
const ALL: [&str; 3] = ["insert", "absent", "present"];
/// 99.9 % of a normal distribution is below this number of standard deviations above the mean.
const SIGMAS: f64 = 3.0902;
/// The smallest size in bytes for which parallel builds have a target; one thread builds smaller filters.
const PARALLEL_FROM: f64 = (4 << 20) as f64;

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All parts are within the bound.
    Met,
    /// A part is not within the bound.
    NotMet,
    /// No part is missed, and one has no rows.
    NotInTheCsv,
}

/// One target.
#[derive(Clone, Debug)]
pub struct Target {
    /// The measured work.
    pub work: String,
    /// The target as text.
    pub wanted: String,
    /// The target.
    pub bound: Bound,
    /// Names of the parts and their figures.
    pub parts: Vec<(String, Option<f64>)>,
    /// Formats a figure, given its bound.
    write: fn(f64, f64) -> String,
}

impl Target {
    /// Returns whether all parts are met.
    pub fn verdict(&self) -> Verdict {
        let verdicts = || self.parts.iter().map(|(_, value)| self.verdict_of(*value));
        if verdicts().any(|it| it == Verdict::NotMet) {
            Verdict::NotMet
        } else if self.parts.is_empty() || verdicts().any(|it| it == Verdict::NotInTheCsv) {
            Verdict::NotInTheCsv
        } else {
            Verdict::Met
        }
    }

    fn verdict_of(&self, value: Option<f64>) -> Verdict {
        let met = value.map(|value| match self.bound {
            AtMost(most) => value <= most,
            AtLeast(least) => value >= least,
        });
        match met {
            Some(true) => Verdict::Met,
            Some(false) => Verdict::NotMet,
            None => Verdict::NotInTheCsv,
        }
    }

    /// Returns the figures as text; empty if there are none.
    pub fn measured(&self) -> String {
        let (AtMost(bound) | AtLeast(bound)) = self.bound;
        let figures = self.parts.iter().filter_map(|(name, value)| {
            let figure = (self.write)((*value)?, bound);
            Some(if name.is_empty() { figure } else { format!("{name}: {figure}") })
        });
        figures.collect::<Vec<_>>().join(", ")
    }

    /// Returns the verdict as text, with the parts it applies to unless it applies to all.
    pub fn verdict_in_words(&self) -> String {
        let verdict = self.verdict();
        let word = match verdict {
            Verdict::Met => "met",
            Verdict::NotMet => "not met",
            Verdict::NotInTheCsv => "not in the CSV",
        };
        let of = |(_, value): &&(String, Option<f64>)| self.verdict_of(*value) == verdict;
        let parts: Vec<&str> = self.parts.iter().filter(of).map(|part| part.0.as_str()).collect();
        if parts.len() == self.parts.len() {
            word.to_owned()
        } else {
            format!("{word}: {}", parts.join(", "))
        }
    }
}

/// Returns all targets.
pub fn targets(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    for n in [100_000, 1_000_000] {
        let rival = Query { form: "single", ..hashed(SPLIT_BLOCKS, n) };
        for (form, most) in [("batch", 0.75), ("single", 1.0)] {
            let ours = Query { form, ..hashed(PETAL, n) };
            let work = format!("1 %, {}, mixed hashes, {form}", of(n));
            let wanted = format!("at most {most} × the time of sbbf-rs-safe");
            targets.push(times(results, &work, &wanted, AtMost(most), &ALL, &ours, &rival));
        }
    }
    targets.push(bits(results, PETAL, "1 %", 10.1, &[100_000, 1_000_000]));
    targets.extend([100_000, 1_000_000].map(|n| rate(results, n)));
    for n in [1_000_000, 50_000_000] {
        for (operations, least) in [(&LOOKUPS[..], 4.5), (&["insert"][..], 6.0)] {
            let work = format!("1 %, {}, 64-bit keys, batch", of(n));
            let (ours, rival) = (Query { keys: "u64", ..hashed(PETAL, n) }, fastbloom(n));
            let wanted = format!("at least {least} × faster than fastbloom with foldhash");
            targets.push(times(results, &work, &wanted, AtLeast(least), operations, &rival, &ours));
        }
    }
    for n in [50_000_000, 400_000_000] {
        let ours = hashed(PETAL, n);
        // If there are no random reads this name matches no row.
        let limit = any(results.best_random_reads(n).unwrap_or(RANDOM_READS), n);
        let work = format!("1 %, {}, mixed hashes, batch", of(n));
        let wanted = format!("at most 1.05 × the time of {RANDOM_READS}");
        targets.push(times(results, &work, &wanted, AtMost(1.05), &LOOKUPS, &ours, &limit));
    }
    targets.extend(fine(results));
    let n = 50_000_000;
    let ours = Query { keys: "u64", ..hashed(CLASSIC, n) };
    let work = format!("classic 1 %, {}, 64-bit keys, batch", of(n));
    let wanted = "at least 2 × faster than fastbloom with foldhash";
    targets.push(times(results, &work, wanted, AtLeast(2.0), &ALL, &fastbloom(n), &ours));
    targets.push(parallel(results));
    targets
}

fn of(n: u64) -> String {
    format!("n = {}", size(n))
}

fn any(filter: &str, n: u64) -> Query<'_> {
    let any = "";
    Query { filter, n, rate: None, keys: any, form: any, kernel: any, operation: any, threads: 1 }
}

/// Batches of mixed hashes: the default for comparisons.
pub(super) fn hashed(Name { filter, rate }: Name, n: u64) -> Query<'static> {
    Query { rate: Some(rate), keys: "hash", form: "batch", ..any(filter, n) }
}

/// fastbloom, which has no batches.
fn fastbloom(n: u64) -> Query<'static> {
    Query { keys: "u64", form: "", ..hashed(FASTBLOOM, n) }
}

/// A target whose parts are operations: the time of the first query divided by that of the second.
fn times(
    results: &Results,
    work: &str,
    wanted: &str,
    bound: Bound,
    operations: &[&str],
    over: &Query,
    under: &Query,
) -> Target {
    let part = |operation: &&str| {
        let (over, under) = (Query { operation, ..*over }, Query { operation, ..*under });
        ((*operation).to_owned(), results.ratio(&over, &under))
    };
    let parts = operations.iter().map(part).collect();
    let (work, wanted) = (work.to_owned(), wanted.to_owned());
    Target { work, wanted, bound, parts, write: figure_near }
}

fn bits(results: &Results, name: Name, work: &str, most: f64, sizes: &[u64]) -> Target {
    let parts = sizes.iter().map(|&n| {
        let row = results.rows.iter().find(|row| {
            name.is_of(row) && row.n == n && row.bits_per_key.is_some() && row.threads == 1
        });
        (of(n), row.and_then(|row| row.bits_per_key))
    });
    Target {
        work: format!("{work}, space"),
        wanted: format!("at most {most} bits per key"),
        bound: AtMost(most),
        parts: parts.collect(),
        write: figure_near,
    }
}

/// The measured rate of the 1 % filter, which must be within the statistical bound of 1 %.
fn rate(results: &Results, n: u64) -> Target {
    let rows = results.rows.iter().filter(|row| PETAL.is_of(row) && row.n == n);
    let measured = rows.filter_map(|row| row.measured_rate.zip(row.absent_keys)).next();
    let promise = "the upper 99.9 % bound of 1 %";
    let (wanted, bound) = match measured {
        Some((_, tries)) => {
            // Rounded as it is written: up to a thousandth of a percent.
            let most = (upper_bound(PETAL.rate, tries) * 1e5).ceil() / 1e5;
            let wanted =
                format!("at most {}, {promise} for {} absent keys", percent(most), size(tries));
            (wanted, most)
        }
        None => (format!("at most {promise}"), PETAL.rate),
    };
    Target {
        work: format!("1 %, {}, measured rate", of(n)),
        wanted,
        bound: AtMost(bound),
        parts: vec![(String::new(), measured.map(|(rate, _)| rate))],
        write: percent_near,
    }
}

/// Returns the upper 99.9 % bound of a measured rate, for `tries` independent lookups with this probability of success.
/// Normal approximation, valid for thousands of successes.
///
/// The rate of a filter also depends on its keys: at 1 % and 10⁵ keys it varies by 0.006 points (one standard
/// deviation), twice the 0.003 of 10⁷ lookups; at 10⁶ keys by 0.002. So this bound is for the mean of several filters.
pub fn upper_bound(rate: f64, tries: u64) -> f64 {
    rate + SIGMAS * (rate * (1.0 - rate) / tries as f64).sqrt()
}

/// The 0.1 % filter relative to the 1 % filter, at every size that has both; and its space, in lines and line pairs.
fn fine(results: &Results) -> Vec<Target> {
    let sizes_of = |name: Name| -> Vec<u64> {
        let there = |n: &u64| results.rows.iter().any(|row| name.is_of(row) && row.n == *n);
        results.sizes().into_iter().filter(there).collect()
    };
    let mut targets = Vec::new();
    let wanted = "at most 1.3 × the time of 1 %";
    for n in sizes_of(FINE) {
        let work = format!("0.1 %, {}, mixed hashes, batch", of(n));
        let (ours, other) = (hashed(FINE, n), hashed(PETAL, n));
        targets.push(times(results, &work, wanted, AtMost(1.3), &ALL, &ours, &other));
    }
    if targets.is_empty() {
        let (work, none) = ("0.1 %, mixed hashes, batch".to_owned(), Vec::new());
        let wanted = wanted.to_owned();
        let bound = AtMost(1.3);
        targets.push(Target { work, wanted, bound, parts: none, write: figure_near });
    }
    targets.push(bits(results, FINE, "0.1 %", 15.8, &sizes_of(FINE)));
    targets.push(bits(results, PAIRS, "0.1 % in line pairs", 15.1, &sizes_of(PAIRS)));
    targets
}

/// Every build of petal on two threads relative to the same on one, for large filters.
fn parallel(results: &Results) -> Target {
    let large =
        |row: &Row| row.bits_per_key.is_some_and(|it| it * row.n as f64 / 8.0 >= PARALLEL_FROM);
    let two = |row: &&Row| {
        let ours = row.filter.starts_with("petal");
        ours && row.operation == BUILD && row.threads == 2 && large(row)
    };
    let parts = results.rows.iter().filter(two).map(|row| {
        let find = |threads| Query {
            rate: row.target_rate,
            keys: &row.keys,
            form: &row.form,
            kernel: &row.kernel,
            operation: BUILD,
            threads,
            ..any(&row.filter, row.n)
        };
        (format!("{}, {}", row.keys, of(row.n)), results.ratio(&find(1), &find(2)))
    });
    Target {
        work: "build on two threads, filters of 4 MiB and more".to_owned(),
        wanted: "at least 1.85 × faster than on one".to_owned(),
        bound: AtLeast(1.85),
        parts: parts.collect(),
        write: figure_near,
    }
}
