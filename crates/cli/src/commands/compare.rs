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
    let overlap = overlap(&left, &right).ok_or_else(|| incomparable(args, &left, &right))?;
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

fn incomparable(
    args: &CompareArgs,
    left: &AnyFilter<Mapped>,
    right: &AnyFilter<Mapped>,
) -> Failure {
    for (path, filter) in [(&args.left, left), (&args.right, right)] {
        if Bits::of(filter).is_none() {
            return Failure::Plain(format!(
                "{}: a {} filter cannot be compared; bloom, classic and counting ones can",
                path.display(),
                filter.face().filter_type(),
            ));
        }
    }
    Failure::Plain(format!(
        "{}: a {} filter cannot be compared with {}, a {} filter; build both of one type",
        args.right.display(),
        right.face().filter_type(),
        args.left.display(),
        left.face().filter_type(),
    ))
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

/// What only the one has, as far as can be told; no number if that is not at all.
fn rest(keys: Estimate, both: Estimate) -> f64 {
    if is_known(keys) && is_known(both) { (keys.value - both.value).max(0.0) } else { f64::NAN }
}

/// Of filters with all bits set nothing is known, and whatever they were folded to for it.
fn is_known(estimate: Estimate) -> bool {
    estimate.value.is_finite() && estimate.error.is_finite()
}

fn table(sides: &[Side<'_>; 2], overlap: &Overlap) -> String {
    let both = overlap.intersection;
    let mut rows = Vec::new();
    for (name, side) in ["left", "right"].into_iter().zip(sides) {
        let path = side.path.display();
        let keys = about(side.keys).unwrap_or_else(|| "full".to_owned());
        let (kind, size) = (side.filter.filter_type(), text::size(side.filter.size_bytes()));
        rows.push((name, format!("{path}: {keys}; {kind}, {size}")));
    }
    let full = sides.iter().any(|side| !is_known(side.keys));
    let why = if full { "a filter is full" } else { "their sizes have too little in common" };
    let unknown = || format!("unknown: {why}");
    rows.push(("either", about(overlap.union).unwrap_or_else(unknown)));
    rows.push(("both", about(both).unwrap_or_else(unknown)));
    for (name, side) in ["left only", "right only"].into_iter().zip(sides) {
        let rest = rest(side.keys, both);
        let keys = || format!("about {}", text::keys(rest.round() as u64));
        rows.push((name, if rest.is_finite() { keys() } else { unknown() }));
    }
    rows.push(("jaccard", in_percent(overlap.jaccard).unwrap_or_else(unknown)));
    rows.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
}

/// An estimate with twice its standard error, which is right 19 times out of 20; `None` if nothing
/// is known.
fn about(keys: Estimate) -> Option<String> {
    let number = |keys: f64| text::count(keys as u64);
    let told =
        || format!("{} +- {} keys", number(keys.value.round()), number((2.0 * keys.error).ceil()));
    is_known(keys).then(told)
}

fn in_percent(share: Estimate) -> Option<String> {
    let percent = |share: f64| text::significant(share * 100.0);
    let told = || format!("{} % +- {} %", percent(share.value), percent(2.0 * share.error));
    is_known(share).then(told)
}

fn json(sides: &[Side<'_>; 2], overlap: &Overlap) -> String {
    // JSON has neither infinity nor NaN: what is not known is null.
    let known = |of: Estimate| if is_known(of) { of.value } else { f64::NAN };
    let estimate = |of: Estimate| json!({ "value": known(of), "error": of.error });
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
