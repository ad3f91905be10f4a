//! The targets of the filters: what was promised, what was measured, and whether it is met.
//!
//! A target has parts (operations, sizes, builds); it is met if every part is. What the CSV does not hold is neither
//! met nor missed. Ratios are paired, see [`super::sheet`].

use super::sheet::{BUILD, Pick, Row, Sheet};
use super::words::{figure_beside, percent, percent_beside, size};
use crate::contest::LIMIT;

/// A contestant as the CSV names it: by its name and the rate asked for.
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

/// The contestants that targets speak of.
pub(super) const PETAL: Name = Name { filter: "petal 1 %", rate: 0.01 };
const FINE: Name = Name { filter: "petal 0.1 %", rate: 0.001 };
const PAIRS: Name = Name { filter: "petal 0.1 % pairs", rate: 0.001 };
const CLASSIC: Name = Name { filter: "petal classic 1 %", rate: 0.01 };
const SPLIT_BLOCKS: Name = Name { filter: "sbbf-rs-safe", rate: 0.01 };
const FASTBLOOM: Name = Name { filter: "fastbloom foldhash", rate: 0.01 };

const ASKED: [&str; 2] = ["absent", "present"];
const ALL: [&str; 3] = ["insert", "absent", "present"];
/// So many standard deviations above its mean 99.9 % of a normal distribution have been passed.
const REACH: f64 = 3.0902;
/// A build on several threads is promised from a filter of so many bytes on: into a smaller one a single thread inserts
/// hashes and numbers.
const BUILT_FROM: f64 = (4 << 20) as f64;

/// What a figure must be.
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
    /// Every part is.
    Met,
    /// A part is not.
    NotMet,
    /// No part is missed, and of one there is no figure.
    NotInTheCsv,
}

/// One target.
#[derive(Clone, Debug)]
pub struct Target {
    /// What was measured.
    pub work: String,
    /// The promise in words.
    pub wanted: String,
    /// The promise.
    pub bound: Bound,
    /// What was measured, by name of the part.
    pub parts: Vec<(String, Option<f64>)>,
    /// How a figure is written beside its bound.
    write: fn(f64, f64) -> String,
}

impl Target {
    /// Met, if all of it is.
    pub fn verdict(&self) -> Verdict {
        let verdicts = || self.parts.iter().map(|(_, value)| self.judge(*value));
        if verdicts().any(|it| it == Verdict::NotMet) {
            Verdict::NotMet
        } else if self.parts.is_empty() || verdicts().any(|it| it == Verdict::NotInTheCsv) {
            Verdict::NotInTheCsv
        } else {
            Verdict::Met
        }
    }

    fn judge(&self, value: Option<f64>) -> Verdict {
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

    /// What was measured, in words; nothing, if nothing was.
    pub fn measured(&self) -> String {
        let (AtMost(bound) | AtLeast(bound)) = self.bound;
        let figures = self.parts.iter().filter_map(|(name, value)| {
            let figure = (self.write)((*value)?, bound);
            Some(if name.is_empty() { figure } else { format!("{name}: {figure}") })
        });
        figures.collect::<Vec<_>>().join(", ")
    }

    /// The verdict in words; names the parts, if it is not one for all.
    pub fn verdict_in_words(&self) -> String {
        let verdict = self.verdict();
        let word = match verdict {
            Verdict::Met => "met",
            Verdict::NotMet => "not met",
            Verdict::NotInTheCsv => "not in the CSV",
        };
        let of = |(_, value): &&(String, Option<f64>)| self.judge(*value) == verdict;
        let parts: Vec<&str> = self.parts.iter().filter(of).map(|part| part.0.as_str()).collect();
        if parts.len() == self.parts.len() {
            word.to_owned()
        } else {
            format!("{word}: {}", parts.join(", "))
        }
    }
}

/// All targets, in the order of the issue that set them.
pub fn targets(sheet: &Sheet) -> Vec<Target> {
    let mut targets = Vec::new();
    for n in [100_000, 1_000_000] {
        let rival = Pick { form: "single", ..hashed(SPLIT_BLOCKS, n) };
        for (form, most) in [("batch", 0.75), ("single", 1.0)] {
            let ours = Pick { form, ..hashed(PETAL, n) };
            let work = format!("1 %, {}, hashes given, {form}", of(n));
            let wanted = format!("at most {most} × the time of sbbf-rs-safe");
            targets.push(times(sheet, &work, &wanted, AtMost(most), &ALL, &ours, &rival));
        }
    }
    targets.push(bits(sheet, PETAL, "1 %", 10.1, &[100_000, 1_000_000]));
    targets.extend([100_000, 1_000_000].map(|n| rate(sheet, n)));
    for n in [1_000_000, 50_000_000] {
        for (operations, least) in [(&ASKED[..], 4.5), (&["insert"][..], 6.0)] {
            let work = format!("1 %, {}, 64-bit keys, batch", of(n));
            let (ours, rival) = (Pick { keys: "u64", ..hashed(PETAL, n) }, fastbloom(n));
            let wanted = format!("at least {least} × faster than fastbloom with foldhash");
            targets.push(times(sheet, &work, &wanted, AtLeast(least), operations, &rival, &ours));
        }
    }
    for n in [50_000_000, 400_000_000] {
        let ours = hashed(PETAL, n);
        // Without a limit its bare name stands for a row that is not there.
        let limit = any(sheet.limit(n).unwrap_or(LIMIT), n);
        let work = format!("1 %, {}, hashes given, batch", of(n));
        let wanted = format!("at most 1.05 × the time of {LIMIT}");
        targets.push(times(sheet, &work, &wanted, AtMost(1.05), &ASKED, &ours, &limit));
    }
    targets.extend(fine(sheet));
    let n = 50_000_000;
    let ours = Pick { keys: "u64", ..hashed(CLASSIC, n) };
    let work = format!("classic 1 %, {}, 64-bit keys, batch", of(n));
    let wanted = "at least 2 × faster than fastbloom with foldhash";
    targets.push(times(sheet, &work, wanted, AtLeast(2.0), &ALL, &fastbloom(n), &ours));
    targets.push(parallel(sheet));
    targets
}

fn of(n: u64) -> String {
    format!("n = {}", size(n))
}

fn any(filter: &str, n: u64) -> Pick<'_> {
    let any = "";
    Pick { filter, n, rate: None, keys: any, form: any, kernel: any, operation: any, threads: 1 }
}

/// Batches of hashes: what petal is compared by, if not said otherwise.
pub(super) fn hashed(Name { filter, rate }: Name, n: u64) -> Pick<'static> {
    Pick { rate: Some(rate), keys: "hash", form: "batch", ..any(filter, n) }
}

/// It has no batches.
fn fastbloom(n: u64) -> Pick<'static> {
    Pick { keys: "u64", form: "", ..hashed(FASTBLOOM, n) }
}

/// A target whose parts are operations: how many times as long the first takes as the second.
fn times(
    sheet: &Sheet,
    work: &str,
    wanted: &str,
    bound: Bound,
    operations: &[&str],
    over: &Pick,
    under: &Pick,
) -> Target {
    let part = |operation: &&str| {
        let (over, under) = (Pick { operation, ..*over }, Pick { operation, ..*under });
        ((*operation).to_owned(), sheet.ratio(&over, &under))
    };
    let parts = operations.iter().map(part).collect();
    let (work, wanted) = (work.to_owned(), wanted.to_owned());
    Target { work, wanted, bound, parts, write: figure_beside }
}

fn bits(sheet: &Sheet, name: Name, work: &str, most: f64, sizes: &[u64]) -> Target {
    let parts = sizes.iter().map(|&n| {
        let row = sheet.rows.iter().find(|row| {
            name.is_of(row) && row.n == n && row.bits_per_key.is_some() && row.threads == 1
        });
        (of(n), row.and_then(|row| row.bits_per_key))
    });
    Target {
        work: format!("{work}, space"),
        wanted: format!("at most {most} bits a key"),
        bound: AtMost(most),
        parts: parts.collect(),
        write: figure_beside,
    }
}

/// The measured rate of the 1 % filter: no more than what 1 % gives by chance.
fn rate(sheet: &Sheet, n: u64) -> Target {
    let rows = sheet.rows.iter().filter(|row| PETAL.is_of(row) && row.n == n);
    let measured = rows.filter_map(|row| row.measured_rate.zip(row.absent_keys)).next();
    let promise = "the upper 99.9 % bound of 1 %";
    let (wanted, bound) = match measured {
        Some((_, tries)) => {
            // Judged as it is written: up to a thousandth of a percent.
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
        write: percent_beside,
    }
}

/// What a measured rate does not exceed 999 times of 1000, if each of so many tries succeeds by this chance alone. The
/// normal approximation: for thousands of successes.
///
/// It leaves out that a filter has a rate of its own, by the luck of its keys: at 1 % and 10⁵ keys that strays by 0.006
/// points (one standard deviation), twice as far as the 0.003 of 10⁷ questions; at 10⁶ keys by 0.002. So the mean of
/// several filters is what this bound is fair to.
pub fn upper_bound(rate: f64, tries: u64) -> f64 {
    rate + REACH * (rate * (1.0 - rate) / tries as f64).sqrt()
}

/// The 0.1 % filter beside the 1 % filter, at every size that has both; and the space that it and line pairs take.
fn fine(sheet: &Sheet) -> Vec<Target> {
    let sizes_of = |name: Name| -> Vec<u64> {
        let there = |n: &u64| sheet.rows.iter().any(|row| name.is_of(row) && row.n == *n);
        sheet.sizes().into_iter().filter(there).collect()
    };
    let mut targets = Vec::new();
    let wanted = "at most 1.3 × the time of 1 %";
    for n in sizes_of(FINE) {
        let work = format!("0.1 %, {}, hashes given, batch", of(n));
        let (ours, other) = (hashed(FINE, n), hashed(PETAL, n));
        targets.push(times(sheet, &work, wanted, AtMost(1.3), &ALL, &ours, &other));
    }
    if targets.is_empty() {
        let (work, none) = ("0.1 %, hashes given, batch".to_owned(), Vec::new());
        let wanted = wanted.to_owned();
        let bound = AtMost(1.3);
        targets.push(Target { work, wanted, bound, parts: none, write: figure_beside });
    }
    targets.push(bits(sheet, FINE, "0.1 %", 15.8, &sizes_of(FINE)));
    targets.push(bits(sheet, PAIRS, "0.1 % in line pairs", 15.1, &sizes_of(PAIRS)));
    targets
}

/// Every build of ours on two threads, of a filter large enough, over the same on one.
fn parallel(sheet: &Sheet) -> Target {
    let large =
        |row: &Row| row.bits_per_key.is_some_and(|it| it * row.n as f64 / 8.0 >= BUILT_FROM);
    let two = |row: &&Row| {
        let ours = row.filter.starts_with("petal");
        ours && row.operation == BUILD && row.threads == 2 && large(row)
    };
    let parts = sheet.rows.iter().filter(two).map(|row| {
        let pick = |threads| Pick {
            rate: row.target_rate,
            keys: &row.keys,
            form: &row.form,
            kernel: &row.kernel,
            operation: BUILD,
            threads,
            ..any(&row.filter, row.n)
        };
        (format!("{}, {}", row.keys, of(row.n)), sheet.ratio(&pick(1), &pick(2)))
    });
    Target {
        work: "build on two threads, filters of 4 MiB and more".to_owned(),
        wanted: "at least 1.85 × faster than on one".to_owned(),
        bound: AtLeast(1.85),
        parts: parts.collect(),
        write: figure_beside,
    }
}
