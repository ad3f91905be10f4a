//! `info` of another program's filter: its header, estimates from its bits, and what its format does
//! not record.

use petal_interop::{FilterStats, ForeignFilter, Format};
use petal_lines::Source;
use serde_json::{Value, json};

use super::{print, write_page};
use crate::args::InfoArgs;
use crate::error::{Failure, Outcome, Result};
use crate::html::RateCurve;
use crate::html::info::{FilterPage, page};
use crate::text;

pub(super) fn run<B: AsRef<[u8]>>(filter: &ForeignFilter<B>, args: &InfoArgs) -> Result<Outcome> {
    filter.verify().map_err(Failure::of_foreign(&args.filter))?;
    let (stats, bytes) = (filter.stats(), filter.as_bytes().len() as u64);
    if let Some(path) = &args.html {
        let page = page(FilterPage {
            name: args.filter.display().to_string(),
            rows: rows(&stats, bytes),
            blocks: &[],
            curve: curve(&stats),
            capacity: stats.capacity,
            keys: estimated_keys(&stats),
        })?;
        write_page(path, &[Source::from_arg(&args.filter)], &page)?;
        return Ok(Outcome::Done);
    }
    print(&if args.json { json(&stats, bytes) } else { table(&stats, bytes) })?;
    Ok(Outcome::Done)
}

fn estimated_keys(stats: &FilterStats) -> Option<u64> {
    stats.estimated_keys.filter(|keys| keys.is_finite()).map(|keys| keys.round() as u64)
}

/// Returns the rate by the number of keys, for formats of one bit array with independent positions.
fn curve(stats: &FilterStats) -> Option<RateCurve<'_>> {
    let is_classic = !matches!(stats.format, Format::Parquet | Format::FilterCascade);
    let rate = |keys| {
        let rate = petal::math::classic_fpr(keys, stats.bits, stats.probes);
        petal::math::probability_of_either(rate, stats.fpr_floor)
    };
    let curve = RateCurve { name: stats.format.to_string(), rate: Box::new(rate) };
    (is_classic && stats.layers <= 1 && stats.bits > 0).then_some(curve)
}

fn table(stats: &FilterStats, bytes: u64) -> String {
    rows(stats, bytes).iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect()
}

/// Returns a name and a text for each value.
fn rows(stats: &FilterStats, bytes: u64) -> Vec<(&'static str, String)> {
    let layers = match stats.layers {
        0 | 1 => String::new(),
        layers => format!(", {} layers", text::count(layers)),
    };
    let (bits, probes) = (text::count(stats.bits), stats.probes);
    let plan = match (stats.capacity, stats.target_fpr) {
        (Some(keys), Some(rate)) => format!("{} at {}", text::keys(keys), text::rate(rate)),
        (Some(keys), None) => {
            format!("{} at an unknown rate", text::keys(keys))
        }
        (None, Some(rate)) => {
            format!("{} for an unknown number of keys", text::rate(rate))
        }
        (None, None) => "not recorded".to_owned(),
    };
    let keys = match stats.estimated_keys {
        Some(keys) if keys.is_finite() => {
            format!("about {} distinct", text::count(keys.round() as u64))
        }
        Some(_) => "unknown: all bits are set".to_owned(),
        None => "unknown".to_owned(),
    };
    let counted =
        stats.counted.map(|count| format!("; its program counted {}", text::count(count)));
    let fill = stats.set as f64 / stats.bits.max(1) as f64;
    let key_types: Vec<_> = stats.key_types.iter().map(|key_type| key_type.name()).collect();
    let mut rows = vec![
        ("format", format!("{}{}", stats.format, stats.variant())),
        ("size", text::size(bytes)),
        ("layout", format!("{bits} bits, {probes} probes{layers}")),
        ("planned", plan),
        ("keys", keys + &counted.unwrap_or_default()),
        ("fill", format!("{} %", text::significant(fill * 100.0))),
        ("est. fpr", text::rate(stats.estimated_fpr)),
    ];
    if stats.fpr_floor > stats.estimated_fpr / 20.0 {
        let floor = text::rate(stats.fpr_floor);
        rows.push(("floor", format!("{floor} of that comes from the format's double hashing")));
    }
    rows.push(("key types", key_types.join(", ")));
    rows.extend(stats.warnings.iter().map(|warning| ("warning", (*warning).to_owned())));
    rows.extend(stats.not_recorded.iter().map(|note| ("unknown", (*note).to_owned())));
    rows
}

fn json(stats: &FilterStats, bytes: u64) -> String {
    let choices =
        stats.choices.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
    let choices: serde_json::Map<String, Value> = choices.collect();
    let key_types: Vec<_> = stats.key_types.iter().map(|key_type| key_type.name()).collect();
    let stats = json!({
        "format": stats.format.name(),
        "choices": choices,
        "size_bytes": bytes,
        "bits": stats.bits,
        "bits_set": stats.set,
        "probes": stats.probes,
        "layers": stats.layers,
        "capacity": stats.capacity,
        "target_fpr": stats.target_fpr,
        "counted": stats.counted,
        "estimated_len": stats.estimated_keys.filter(|keys| keys.is_finite()),
        "estimated_fpr": stats.estimated_fpr,
        "fpr_floor": stats.fpr_floor,
        "key_types": key_types,
        "not_recorded": stats.not_recorded,
        "warnings": stats.warnings,
    });
    format!("{stats:#}\n")
}
