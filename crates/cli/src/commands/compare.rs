//! `compare`: how much two filters have in common, by their bits.

use std::path::Path;

use petal::rate::{Estimate, Overlap};
use petal::{AnyFilter, BloomFilter, ClassicBloomFilter, Mapped, Membership};
use serde_json::{Value, json};

use super::print;
use crate::args::CompareArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::{filter_file, text};

pub(super) fn run(args: &CompareArgs) -> Result<Outcome> {
    let [left, right] = [&args.left, &args.right].map(|path| opened(path));
    let (left, right) = (left?, right?);
    let overlap = overlap(&left, &right).ok_or_else(|| {
        Failure::Plain(format!(
            "{}: a {} filter cannot be compared with {}, a {} filter; build both of one type",
            args.right.display(),
            right.face().filter_type(),
            args.left.display(),
            left.face().filter_type(),
        ))
    })?;
    let overlap = overlap.map_err(Failure::of_file(&args.right))?;
    let sides = [
        Side { path: &args.left, filter: left.face(), keys: overlap.left },
        Side { path: &args.right, filter: right.face(), keys: overlap.right },
    ];
    print(&if args.json { json(&sides, &overlap) } else { table(&sides, &overlap) })?;
    Ok(Outcome::Done)
}

/// Its bits are about to be counted: a damaged file must not be compared as if it were whole.
fn opened(path: &Path) -> Result<AnyFilter<Mapped>> {
    let filter = filter_file::open(path)?;
    filter.verify().map_err(Failure::of_file(path))?;
    Ok(filter)
}

/// What they have in common; `None` for types that cannot be compared with each other.
fn overlap(left: &AnyFilter<Mapped>, right: &AnyFilter<Mapped>) -> Option<petal::Result<Overlap>> {
    match (Bits::of(left)?, Bits::of(right)?) {
        (Bits::Blocked(left), Bits::Blocked(right)) => Some(left.compare(right)),
        (Bits::Classic(left), Bits::Classic(right)) => Some(left.compare(right)),
        _ => None,
    }
}

/// The Bloom filter that a filter is or has in it.
enum Bits<'a> {
    Blocked(&'a BloomFilter<Mapped>),
    Classic(&'a ClassicBloomFilter<Mapped>),
}

impl<'a> Bits<'a> {
    fn of(filter: &'a AnyFilter<Mapped>) -> Option<Self> {
        Some(match filter {
            AnyFilter::Bloom(filter) => Self::Blocked(filter),
            AnyFilter::Counting(filter) => Self::Blocked(filter.as_filter()),
            AnyFilter::Classic(filter) => Self::Classic(filter),
            AnyFilter::CountingClassic(filter) => Self::Classic(filter.as_filter()),
            _ => return None,
        })
    }
}

/// One of the two.
struct Side<'a> {
    path: &'a Path,
    filter: &'a dyn Membership,
    keys: Estimate,
}

/// What only the one has, as far as can be told.
fn rest(keys: Estimate, both: Estimate) -> f64 {
    (keys.value - both.value).max(0.0)
}

fn table(sides: &[Side<'_>; 2], overlap: &Overlap) -> String {
    let both = overlap.intersection;
    let mut rows = Vec::new();
    for (name, side) in ["left", "right"].into_iter().zip(sides) {
        let (path, keys) = (side.path.display(), about(side.keys));
        let (kind, size) = (side.filter.filter_type(), text::size(side.filter.size_bytes()));
        rows.push((name, format!("{path}: {keys} keys; {kind}, {size}")));
    }
    rows.push(("either", format!("{} keys", about(overlap.union))));
    rows.push(("both", format!("{} keys", about(both))));
    for (name, side) in ["left only", "right only"].into_iter().zip(sides) {
        rows.push((name, format!("about {} keys", number(rest(side.keys, both)))));
    }
    rows.push(("jaccard", in_percent(overlap.jaccard)));
    rows.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
}

/// A number of keys that is full if the filter is.
fn number(keys: f64) -> String {
    if keys.is_finite() { text::count(keys.round() as u64) } else { "unknown".to_owned() }
}

/// An estimate with twice its standard error, which is right 19 times out of 20.
fn about(keys: Estimate) -> String {
    if !(keys.value.is_finite() && keys.error.is_finite()) {
        return "unknown (the filter is full)".to_owned();
    }
    format!("{} +- {}", number(keys.value), number((2.0 * keys.error).ceil()))
}

fn in_percent(share: Estimate) -> String {
    if !share.error.is_finite() {
        return "unknown (a filter is full)".to_owned();
    }
    let percent = |share: f64| text::significant(share * 100.0);
    format!("{} % +- {} %", percent(share.value), percent(2.0 * share.error))
}

fn json(sides: &[Side<'_>; 2], overlap: &Overlap) -> String {
    // JSON has no infinity: what is not known is null.
    let estimate = |of: Estimate| json!({ "value": of.value, "error": of.error });
    let side = |side: &Side<'_>| -> Value {
        json!({
            "file": side.path.display().to_string(),
            "type": side.filter.filter_type().name(),
            "size_bytes": side.filter.size_bytes(),
            "keys": estimate(side.keys),
            "only_keys": rest(side.keys, overlap.intersection),
        })
    };
    let facts = json!({
        "left": side(&sides[0]),
        "right": side(&sides[1]),
        "union": estimate(overlap.union),
        "intersection": estimate(overlap.intersection),
        "jaccard": estimate(overlap.jaccard),
    });
    format!("{facts:#}\n")
}
