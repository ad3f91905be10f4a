//! `info` of another program's filter: what its file says, what its bits say, and what nobody can
//! tell from it.

use petal_interop::{Facts, Foreign};
use serde_json::{Value, json};

use super::print;
use crate::args::InfoArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::text;

pub(super) fn tell<B: AsRef<[u8]>>(filter: &Foreign<B>, args: &InfoArgs) -> Result<Outcome> {
    filter.verify().map_err(Failure::of_foreign(&args.filter))?;
    let (facts, bytes) = (filter.facts(), filter.as_bytes().len() as u64);
    print(&if args.json { json(&facts, bytes) } else { table(&facts, bytes) })?;
    Ok(Outcome::Done)
}

fn table(facts: &Facts, bytes: u64) -> String {
    let layers = match facts.layers {
        0 | 1 => String::new(),
        layers => format!(", {} layers", text::count(layers)),
    };
    let (bits, probes) = (text::count(facts.bits), facts.probes);
    let plan = match (facts.planned_keys, facts.target_rate) {
        (Some(keys), Some(rate)) => format!("{} at {}", text::keys(keys), text::rate(rate)),
        (Some(keys), None) => {
            format!("{} at a rate that the format does not tell", text::keys(keys))
        }
        (None, Some(rate)) => {
            format!("{}, for a number of keys that is not told", text::rate(rate))
        }
        (None, None) => "not told by the format".to_owned(),
    };
    let keys = match facts.estimated_keys {
        Some(keys) if keys.is_finite() => {
            format!("about {} distinct", text::count(keys.round() as u64))
        }
        Some(_) => "more than its bits can tell".to_owned(),
        None => "not told by its bits".to_owned(),
    };
    let counted =
        facts.counted.map(|count| format!("; its program counted {}", text::count(count)));
    let fill = facts.set as f64 / facts.bits.max(1) as f64;
    let forms: Vec<_> = facts.forms.iter().map(|form| form.name()).collect();
    let mut rows = vec![
        ("format", format!("{}{}", facts.format, facts.variant())),
        ("size", text::size(bytes)),
        ("shape", format!("{bits} bits, {probes} probes{layers}")),
        ("plan", plan),
        ("keys", keys + &counted.unwrap_or_default()),
        ("fill", format!("{} %", text::significant(fill * 100.0))),
        ("rate now", text::rate(facts.rate_now)),
    ];
    if facts.rate_floor > facts.rate_now / 20.0 {
        let floor = text::rate(facts.rate_floor);
        rows.push(("floor", format!("{floor} of that comes from the format's double hashing")));
    }
    rows.push(("lines as", forms.join(", ")));
    rows.extend(facts.warnings.iter().map(|warning| ("warning", (*warning).to_owned())));
    rows.extend(facts.untold.iter().map(|untold| ("not told", (*untold).to_owned())));
    rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect()
}

fn json(facts: &Facts, bytes: u64) -> String {
    let choices =
        facts.choices.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
    let choices: serde_json::Map<String, Value> = choices.collect();
    let forms: Vec<_> = facts.forms.iter().map(|form| form.name()).collect();
    let facts = json!({
        "format": facts.format.name(),
        "choices": choices,
        "size_bytes": bytes,
        "bits": facts.bits,
        "bits_set": facts.set,
        "probes": facts.probes,
        "layers": facts.layers,
        "planned_keys": facts.planned_keys,
        "target_rate": facts.target_rate,
        "counted": facts.counted,
        "estimated_keys": facts.estimated_keys.filter(|keys| keys.is_finite()),
        "rate_now": facts.rate_now,
        "rate_floor": facts.rate_floor,
        "key_forms": forms,
        "not_told": facts.untold,
        "warnings": facts.warnings,
    });
    format!("{facts:#}\n")
}
