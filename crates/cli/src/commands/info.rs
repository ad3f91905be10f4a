//! `info`: what a filter file says of itself, and what its bits say.

use petal::Membership;
use serde_json::{Value, json};

use super::print;
use crate::args::InfoArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::filter_file;
use crate::text;

pub(super) fn run(args: &InfoArgs) -> Result<Outcome> {
    let filter = filter_file::open(&args.filter)?;
    // Its bits are about to be counted: a damaged file must not be described as if it were whole.
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let (face, metadata) = (filter.face(), filter.metadata());
    print(&if args.json { json(face, metadata) } else { table(face, metadata) })?;
    Ok(Outcome::Done)
}

fn table(filter: &dyn Membership, metadata: &str) -> String {
    let (planned, target) = (filter.planned_keys(), filter.target_rate());
    let plan = match planned {
        0 => "none".to_owned(),
        _ => format!("{} keys at {}", text::count(planned), text::rate(target)),
    };
    let held = filter.estimated_len();
    let keys = if held.is_finite() { text::count(held.round() as u64) } else { "full".to_owned() };
    let hash = filter.hash_spec();
    let secret = if hash.is_keyed() { ", keyed: keep this file private" } else { "" };
    let metadata = if metadata.is_empty() { "none" } else { metadata };
    let rows = [
        ("type", format!("{}, {}", filter.filter_type(), filter.describe())),
        ("size", text::size(filter.size_bytes())),
        ("plan", plan),
        (
            "keys",
            format!("about {keys} distinct; {} inserts were new", text::count(filter.inserted())),
        ),
        ("fill", format!("{} %", text::significant(filter.fill_ratio() * 100.0))),
        ("rate now", text::rate(filter.estimated_rate())),
        ("hash", format!("{}{secret}", hash.name())),
        ("metadata", metadata.to_owned()),
    ];
    rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect()
}

fn json(filter: &dyn Membership, metadata: &str) -> String {
    let numbers =
        filter.geometry().into_iter().map(|(name, number)| (name.to_owned(), number.into()));
    let numbers: serde_json::Map<String, Value> = numbers.collect();
    let held = filter.estimated_len();
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_else(|_| metadata.into());
    let facts = json!({
        "type": filter.filter_type().name(),
        "shape": numbers,
        "size_bytes": filter.size_bytes(),
        "planned_keys": filter.planned_keys(),
        "target_rate": filter.target_rate(),
        "inserted": filter.inserted(),
        "estimated_keys": held.is_finite().then(|| held.round() as u64),
        "fill_ratio": filter.fill_ratio(),
        "rate_now": filter.estimated_rate(),
        "hash": filter.hash_spec().name(),
        "metadata": metadata,
    });
    format!("{facts:#}\n")
}
