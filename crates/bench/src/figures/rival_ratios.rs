//! The table of rivals: ratios of petal's filter to the rival that it can replace.
//!
//! A ratio is petal's figure divided by the rival's; petal is ahead if it is less than 1. A rival without batches is
//! compared with petal's batches and with petal key by key.

use super::family::{OPERATIONS, RATES, fill, keeping, timed};
use super::format::size;
use super::results::Results;
use crate::harness::rows::Row;
use crate::harness::rows::paired;

/// A rival and the filter that can replace it.
struct Pair {
    rival: &'static str,
    petal: &'static str,
    /// The rates at which space is compared.
    rates: &'static [f64],
}

const fn pair(rival: &'static str, petal: &'static str) -> Pair {
    Pair { rival, petal, rates: &RATES }
}

/// All pairs, each of a rival and the best type for the same need; those without rows are left out.
const PAIRS: [Pair; 14] = [
    pair("fastbloom foldhash", "petal bloom"),
    pair("fastbloom foldhash", "petal classic"),
    pair("growable-bloom-filter", "petal scalable"),
    pair("growable-bloom-filter grown", "petal scalable grown"),
    pair("qfilter", "petal vector quotient"),
    pair("cuckoofilter", "petal vector quotient"),
    Pair { rates: &[0.031], ..pair("cuckoofilter full", "petal vector quotient 3 %") },
    pair("scalable_cuckoo_filter", "petal vector quotient"),
    pair("qfilter grown", "petal quotient grown"),
    pair("scalable_cuckoo_filter grown", "petal quotient grown"),
    pair("xorf fuse", "petal static fuse"),
    pair("xorf fuse", "petal static"),
    pair("pleat", "petal static fuse"),
    pair("pleat", "petal static"),
];

/// Returns the names of all pairs: rival, petal's filter.
pub fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAIRS.iter().map(|pair| (pair.rival, pair.petal))
}

/// Suffix of the name of an operation in which petal is used key by key.
const PER_KEY: &str = " key by key";

/// A measured ratio of a pair.
struct Ratio {
    name: String,
    ratio: f64,
}

/// Returns the table of all pairs at all sizes.
pub(super) fn table(results: &Results) -> String {
    let mut text = String::from(
        "| other library | petal's | n | space | fill | absent | present | delete | not ahead in |\n\
         |---|---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for pair in &PAIRS {
        for n in results.sizes() {
            text += &line(results, pair, n).unwrap_or_default();
        }
    }
    text
}

fn line(results: &Results, pair: &Pair, n: u64) -> Option<String> {
    let at = pair.rates[0];
    let (ours, theirs) =
        (keeping(results, pair.petal, n, at)?, keeping(results, pair.rival, n, at)?);
    let mut parts: Vec<Ratio> = Vec::new();
    let space: Vec<String> = pair
        .rates
        .iter()
        .filter_map(|&rate| {
            let bits = |name| keeping(results, name, n, rate)?.bits_per_key;
            let ratio = bits(pair.petal)? / bits(pair.rival)?;
            parts.push(Ratio { name: format!("space at {} %", rate * 100.0), ratio });
            Some(figure(ratio))
        })
        .collect();
    let ahead = |part: &Ratio| part.ratio < 1.0;
    if parts.iter().all(ahead) || !parts.iter().any(ahead) {
        parts.truncate(1);
        parts.iter_mut().for_each(|part| part.name = "space".to_owned());
    }
    let mut cells = vec![space.join(", ")];
    for (name, operation) in ["fill", "absent", "present", "delete"].iter().zip(OPERATIONS) {
        let forms = ["batch", "single"].map(|form| times(results, (ours, theirs), form, operation));
        let [batch, single] = forms;
        let first = batch.or(single);
        parts.extend(first.map(|ratio| Ratio { name: (*name).to_owned(), ratio }));
        let second = if batch.is_some() { single } else { None };
        parts.extend(second.map(|ratio| Ratio { name: format!("{name}{PER_KEY}"), ratio }));
        cells.push(match (batch, single) {
            (Some(batch), Some(single)) => format!("{} ({})", figure(batch), figure(single)),
            (ratio, None) | (None, ratio) => ratio.map_or(String::new(), figure),
        });
    }
    Some(format!(
        "| {} | {} | {} | {} | {} |\n",
        pair.rival,
        pair.petal,
        size(n),
        cells.join(" | "),
        behind(&parts)
    ))
}

/// Returns petal's time divided by the rival's for each round. A rival without batches is used key by key.
fn times(
    results: &Results,
    (ours, theirs): (&Row, &Row),
    form: &str,
    operation: &str,
) -> Option<f64> {
    let row = |like: &Row, form: &str| match operation {
        "insert" => fill(results, like, form),
        _ => timed(results, like, form, operation),
    };
    let theirs = row(theirs, form).or_else(|| row(theirs, "single"))?;
    paired(&theirs.ns_by_round, &row(ours, form)?.ns_by_round)
}

/// Two decimals; three below 0.1.
fn figure(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// Returns the names of the ratios of 1 and more; of an operation both in batches and key by key only the first.
fn behind(parts: &[Ratio]) -> String {
    let is = |part: &&Ratio| part.ratio >= 1.0;
    let names = parts.iter().filter(is).filter(|part| {
        let batch = part.name.strip_suffix(PER_KEY);
        !parts.iter().filter(is).any(|other| Some(other.name.as_str()) == batch)
    });
    let names: Vec<&str> = names.map(|part| part.name.as_str()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
