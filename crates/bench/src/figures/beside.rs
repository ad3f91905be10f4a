//! Each rival beside the type of petal's that one would take in its place: where petal is ahead, and where not.
//!
//! A ratio is petal's figure over the rival's: less than 1 is ahead. What a rival has no batches for is compared twice,
//! with petal's batches and with petal key by key.

use super::family::{RATES, keeping, timed};
use super::sheet::{Row, Sheet};
use super::words::size;
use crate::contest::rows::paired;

/// What is timed, as the rows name it.
pub(super) const OPERATIONS: [&str; 4] = ["insert", "absent", "present", "remove"];

/// A rival, and whose place it could take.
struct Pair {
    rival: &'static str,
    petal: &'static str,
    /// Where space is compared.
    rates: &'static [f64],
}

const fn pair(rival: &'static str, petal: &'static str) -> Pair {
    Pair { rival, petal, rates: &RATES }
}

/// Who is compared with whom: a new rival or type is a line here. Pairs without rows are left out.
const PAIRS: [Pair; 15] = [
    pair("fastbloom foldhash", "petal bloom"),
    pair("fastbloom foldhash", "petal classic"),
    pair("growable-bloom-filter", "petal scalable"),
    pair("growable-bloom-filter grown", "petal scalable grown"),
    pair("qfilter", "petal quotient copies"),
    pair("qfilter grown", "petal quotient grown"),
    pair("cuckoofilter", "petal quotient copies"),
    Pair { rates: &[0.031], ..pair("cuckoofilter full", "petal quotient 3 %") },
    pair("scalable_cuckoo_filter", "petal quotient copies"),
    pair("scalable_cuckoo_filter grown", "petal quotient grown"),
    pair("qfilter", "petal counting"),
    pair("cuckoofilter", "petal counting"),
    pair("scalable_cuckoo_filter", "petal counting"),
    pair("xorf fuse", "petal static"),
    pair("pleat", "petal static"),
];

/// The names of all pairs: a rival, and a type of petal's.
pub fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAIRS.iter().map(|pair| (pair.rival, pair.petal))
}

/// The row of a filter that has been filled: key by key, or made at once.
pub(super) fn fill<'a>(sheet: &'a Sheet, like: &Row, form: &str) -> Option<&'a Row> {
    ["insert", "build"].into_iter().find_map(|operation| timed(sheet, like, form, operation))
}

/// Behind the name of an operation that petal was asked for key by key.
const SINGLY: &str = " key by key";

/// A figure of a pair that was measured of both.
struct Part {
    name: String,
    ratio: f64,
}

/// The table of all pairs at all sizes.
pub(super) fn rivals(sheet: &Sheet) -> String {
    let mut text = String::from(
        "| rival | petal's | n | space | fill | absent | present | delete | ahead in | not ahead in |\n\
         |---|---|--:|--:|--:|--:|--:|--:|---|---|\n",
    );
    for pair in &PAIRS {
        for n in sheet.sizes() {
            text += &line(sheet, pair, n).unwrap_or_default();
        }
    }
    text
}

fn line(sheet: &Sheet, pair: &Pair, n: u64) -> Option<String> {
    let at = pair.rates[0];
    let (ours, theirs) = (keeping(sheet, pair.petal, n, at)?, keeping(sheet, pair.rival, n, at)?);
    let mut parts: Vec<Part> = Vec::new();
    let space: Vec<String> = pair
        .rates
        .iter()
        .filter_map(|&rate| {
            let bits = |name| keeping(sheet, name, n, rate)?.bits_per_key;
            let ratio = bits(pair.petal)? / bits(pair.rival)?;
            parts.push(Part { name: format!("space at {} %", rate * 100.0), ratio });
            Some(figure(ratio))
        })
        .collect();
    let ahead = |part: &Part| part.ratio < 1.0;
    if parts.iter().all(ahead) || !parts.iter().any(ahead) {
        parts.truncate(1);
        parts.iter_mut().for_each(|part| part.name = "space".to_owned());
    }
    let mut cells = vec![space.join(", ")];
    for (name, operation) in ["fill", "absent", "present", "delete"].iter().zip(OPERATIONS) {
        let forms = ["batch", "single"].map(|form| times(sheet, (ours, theirs), form, operation));
        let [batch, single] = forms;
        let first = batch.or(single);
        parts.extend(first.map(|ratio| Part { name: (*name).to_owned(), ratio }));
        let second = if batch.is_some() { single } else { None };
        parts.extend(second.map(|ratio| Part { name: format!("{name}{SINGLY}"), ratio }));
        cells.push(match (batch, single) {
            (Some(batch), Some(single)) => format!("{} ({})", figure(batch), figure(single)),
            (ratio, None) | (None, ratio) => ratio.map_or(String::new(), figure),
        });
    }
    Some(format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        pair.rival,
        pair.petal,
        size(n),
        cells.join(" | "),
        listed(&parts, |ratio| ratio < 1.0),
        listed(&parts, |ratio| ratio >= 1.0)
    ))
}

/// How long ours takes over theirs, in the same rounds; a rival without batches is asked key by key.
fn times(sheet: &Sheet, (ours, theirs): (&Row, &Row), form: &str, operation: &str) -> Option<f64> {
    let row = |like: &Row, form: &str| match operation {
        "insert" => fill(sheet, like, form),
        _ => timed(sheet, like, form, operation),
    };
    let theirs = row(theirs, form).or_else(|| row(theirs, "single"))?;
    paired(&theirs.ns_by_round, &row(ours, form)?.ns_by_round)
}

/// Two digits behind the point; three below a tenth, so that none is lost.
fn figure(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// The names of parts, of those in batches and key by key at once only where the two differ.
fn listed(parts: &[Part], is: impl Fn(f64) -> bool) -> String {
    let names = parts.iter().filter(|part| is(part.ratio)).filter(|part| {
        let batch = part.name.strip_suffix(SINGLY);
        let same = |other: &&Part| Some(other.name.as_str()) == batch;
        !parts.iter().find(same).is_some_and(|batch| is(batch.ratio))
    });
    let names: Vec<&str> = names.map(|part| part.name.as_str()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
