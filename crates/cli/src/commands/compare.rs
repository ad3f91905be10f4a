//! `compare`: estimates the keys that two filters share, from their bits.

use std::path::Path;

use petal::math::{Estimate, Overlap};
use petal::{AnyFilter, BloomFilter, ClassicBloomFilter, Mapped, Membership};
use serde_json::{Value, json};

use super::print;
use crate::args::{CompareArgs, SecretArgs};
use crate::error::{Failure, Outcome, Result};
use crate::files::{filter_file, key_transforms, spelling};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &CompareArgs) -> Result<Outcome> {
    let [left, right] = [&args.left, &args.right].map(|path| open_verified(path, &args.secret));
    let (left, right) = (left?, right?);
    let names = [(&args.left, &left), (&args.right, &right)];
    let [left_keys, right_keys] = names.map(|(path, filter)| (path.as_path(), filter.metadata()));
    key_transforms::check_equal(left_keys, right_keys)?;
    let [one, other] =
        names.map(|(path, filter)| (path.as_path(), filter.metadata(), filter.as_dyn().inserted()));
    spelling::warn_if_filters_differ(one, other, &ProgressReporter::silent(false));
    let overlap = overlap(&left, &right).ok_or_else(|| incomparable(args, &left, &right))?;
    let overlap = overlap.map_err(Failure::of_file(&args.right))?;
    let sides = [
        Side { path: &args.left, filter: left.as_dyn(), keys: overlap.left },
        Side { path: &args.right, filter: right.as_dyn(), keys: overlap.right },
    ];
    print(&if args.json { json(&sides, &overlap) } else { table(&sides, &overlap) })?;
    Ok(Outcome::Done)
}

/// Opens and verifies a filter, because the estimates of a damaged file would be wrong.
fn open_verified(path: &Path, secret: &SecretArgs) -> Result<AnyFilter<Mapped>> {
    let filter = filter_file::open(path, secret)?;
    filter.verify().map_err(Failure::of_file(path))?;
    Ok(filter)
}

/// Returns the overlap; `None` for types that cannot be compared.
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
            return Failure::Message(format!(
                "{}: a {} filter cannot be compared; only bloom, classic and counting filters can",
                path.display(),
                filter.as_dyn().filter_type(),
            ));
        }
    }
    Failure::Message(format!(
        "{}: a {} filter cannot be compared with {}, a {} filter; build both with the same type",
        args.right.display(),
        right.as_dyn().filter_type(),
        args.left.display(),
        left.as_dyn().filter_type(),
    ))
}

/// The Bloom filter that a filter is or contains.
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

/// One of the two filters.
struct Side<'a> {
    path: &'a Path,
    filter: &'a dyn Membership,
    keys: Estimate,
}

/// Returns the number of keys in only one filter; NaN if it is unknown.
fn only(keys: Estimate, both: Estimate) -> f64 {
    if is_known(keys) && is_known(both) { (keys.value - both.value).max(0.0) } else { f64::NAN }
}

/// Returns false for the estimates of filters with all bits set, also after folding.
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
    let reason = if full { "a filter is full" } else { "the common size of both is too small" };
    let unknown = || format!("unknown: {reason}");
    rows.push(("either", about(overlap.union).unwrap_or_else(unknown)));
    rows.push(("both", about(both).unwrap_or_else(unknown)));
    for (name, side) in ["left only", "right only"].into_iter().zip(sides) {
        let only = only(side.keys, both);
        let keys = || format!("about {}", text::keys(only.round() as u64));
        rows.push((name, if only.is_finite() { keys() } else { unknown() }));
    }
    rows.push(("jaccard", in_percent(overlap.jaccard).unwrap_or_else(unknown)));
    rows.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
}

/// Formats an estimate with twice its standard error (95 % confidence); `None` if it is unknown.
fn about(keys: Estimate) -> Option<String> {
    let number = |keys: f64| text::count(keys as u64);
    let text =
        || format!("{} +- {} keys", number(keys.value.round()), number((2.0 * keys.error).ceil()));
    is_known(keys).then(text)
}

fn in_percent(share: Estimate) -> Option<String> {
    let percent = |share: f64| text::significant(share * 100.0);
    let text = || format!("{} % +- {} %", percent(share.value), percent(2.0 * share.error));
    is_known(share).then(text)
}

fn json(sides: &[Side<'_>; 2], overlap: &Overlap) -> String {
    // NaN is written as null.
    let known = |of: Estimate| if is_known(of) { of.value } else { f64::NAN };
    let estimate = |of: Estimate| json!({ "value": known(of), "error": of.error });
    let side = |side: &Side<'_>| -> Value {
        json!({
            "file": side.path.display().to_string(),
            "type": side.filter.filter_type().name(),
            "size_bytes": side.filter.size_bytes(),
            "keys": estimate(side.keys),
            "only_keys": only(side.keys, overlap.intersection),
        })
    };
    let result = json!({
        "left": side(&sides[0]),
        "right": side(&sides[1]),
        "union": estimate(overlap.union),
        "intersection": estimate(overlap.intersection),
        "jaccard": estimate(overlap.jaccard),
    });
    format!("{result:#}\n")
}
