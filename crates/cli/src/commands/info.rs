//! `info`: what a filter file says of itself, and what its bits say.

use petal::{AnyFilter, AnyShape, Mapped};
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
    print(&if args.json { json(&filter) } else { table(&filter) })?;
    Ok(Outcome::Done)
}

/// Type, layout and probes in words, and as numbers.
fn shape(filter: &AnyFilter<Mapped>) -> (&'static str, String, Value) {
    match filter.shape() {
        AnyShape::Bloom(shape) => (
            "bloom",
            format!("{} blocks of {} bits", text::count(shape.blocks()), shape.lanes() * 64),
            json!({
                "bits": shape.bits(), "probes": shape.probes(),
                "blocks": shape.blocks(), "lanes": shape.lanes(),
            }),
        ),
        AnyShape::Classic(shape) => (
            "classic",
            format!("{} bits", text::count(shape.bits())),
            json!({ "bits": shape.bits(), "probes": shape.probes() }),
        ),
        _ => ("unknown", String::new(), Value::Null),
    }
}

fn table(filter: &AnyFilter<Mapped>) -> String {
    let (kind, layout, numbers) = shape(filter);
    let (planned, target) = (filter.planned_keys(), filter.target_rate());
    let plan = match planned {
        0 => "none".to_owned(),
        _ => format!("{} keys at {}", text::count(planned), text::rate(target)),
    };
    let held = filter.estimated_len();
    let keys = if held.is_finite() { text::count(held.round() as u64) } else { "full".to_owned() };
    let hash = filter.hash_spec();
    let secret = if hash.is_keyed() { ", keyed: keep this file private" } else { "" };
    let metadata = match filter.metadata() {
        "" => "none".to_owned(),
        json => json.to_owned(),
    };
    let rows = [
        ("type", format!("{kind}, {layout}, {} probes", numbers["probes"])),
        ("size", text::size(filter.size_bytes())),
        ("plan", plan),
        (
            "keys",
            format!("about {keys} distinct; {} inserts were new", text::count(filter.inserted())),
        ),
        ("fill", format!("{} %", text::significant(filter.fill_ratio() * 100.0))),
        ("rate now", text::rate(filter.estimated_rate())),
        ("hash", format!("{}{secret}", hash.name())),
        ("metadata", metadata),
    ];
    rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect()
}

fn json(filter: &AnyFilter<Mapped>) -> String {
    let (kind, _, numbers) = shape(filter);
    let held = filter.estimated_len();
    let metadata = filter.metadata();
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_else(|_| metadata.into());
    let facts = json!({
        "type": kind,
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
