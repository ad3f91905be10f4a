//! `plan`: sizing before any work.

use petal::{ClassicShape, FilterType, Shape};
use petal_lines::Recipe;
use serde_json::{Value, json};

use super::print;
use crate::args::{Kind, Memory, PlanArgs};
use crate::exit::{Failure, Outcome, Result};
use crate::text;

pub(super) fn run(args: &PlanArgs) -> Result<Outcome> {
    if let Some(verb) = args.verb {
        return super::forecast::run(verb.into(), args);
    }
    let asked = Asked {
        keys: args.expected,
        rate: args.fpr,
        memory: args.memory.map(Memory::bytes),
        probes: args.probes,
    };
    let plans = match args.kind {
        // petal's own layout must be possible; the classic one is shown where it is.
        None => [Some(blocked(&asked)?), classic(&asked).ok()].into_iter().flatten().collect(),
        Some(Kind::Bloom) => vec![blocked(&asked)?],
        Some(Kind::Classic) => vec![classic(&asked)?],
        Some(kind) => vec![of_type(kind, &asked)?],
    };
    let text = if args.json {
        let plans: Vec<_> = plans.iter().map(Plan::to_json).collect();
        format!("{:#}\n", json!({ "plans": plans }))
    } else {
        table(&plans)
    };
    print(&text)?;
    Ok(Outcome::Done)
}

/// What is given.
struct Asked {
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<u64>,
    probes: Option<u32>,
}

/// A filter that answers it.
struct Plan {
    kind: &'static str,
    layout: String,
    keys: u64,
    rate: f64,
    rate_at_double: f64,
    size: u64,
    bits: u64,
    /// 0 of types that have none of their own.
    probes: u32,
}

fn blocked(asked: &Asked) -> Result<Plan> {
    let rate = |shape: &Shape, keys| shape.rate(keys);
    let sizing = Sizing {
        for_rate: Shape::for_rate,
        for_memory: Shape::for_memory,
        with_probes: Shape::for_rate_with_probes,
        filling: Shape::for_memory_with_probes,
        for_bits: Shape::for_bits,
        kind: FilterType::Bloom,
        rate,
        keys_at_rate: |shape, rate| shape.keys_at_rate(rate),
        size: |shape| shape.size_bytes(),
    };
    let (shape, keys) = sizing.solve(asked)?;
    Ok(Plan {
        kind: "bloom",
        layout: format!("{} blocks of {} bits", text::count(shape.blocks()), shape.lanes() * 64),
        keys,
        rate: shape.rate(keys),
        rate_at_double: shape.rate(keys.saturating_mul(2)),
        size: shape.size_bytes(),
        bits: shape.bits(),
        probes: shape.probes(),
    })
}

fn classic(asked: &Asked) -> Result<Plan> {
    let sizing = Sizing {
        for_rate: ClassicShape::for_rate,
        for_memory: ClassicShape::for_memory,
        with_probes: ClassicShape::for_rate_with_probes,
        filling: ClassicShape::for_memory_with_probes,
        for_bits: ClassicShape::for_bits,
        kind: FilterType::Classic,
        rate: |shape, keys| shape.rate(keys),
        keys_at_rate: |shape, rate| shape.keys_at_rate(rate),
        size: |shape| shape.size_bytes(),
    };
    let (shape, keys) = sizing.solve(asked)?;
    Ok(Plan {
        kind: "classic",
        layout: "positions anywhere".to_owned(),
        keys,
        rate: shape.rate(keys),
        rate_at_double: shape.rate(keys.saturating_mul(2)),
        size: shape.size_bytes(),
        bits: shape.bits(),
        probes: shape.probes(),
    })
}

/// Any other type: of keys and a rate alone.
fn of_type(kind: Kind, asked: &Asked) -> Result<Plan> {
    let name = kind.filter_type().name();
    let trouble = |text: &str| Failure::Plain(format!("--type {name}: {text}"));
    let (Some(keys), Some(rate)) = (asked.keys, asked.rate) else {
        return Err(trouble("is sized by -n and -p; give both"));
    };
    let plan = match kind {
        Kind::Counting | Kind::CountingClassic => {
            let of = if kind == Kind::Counting { blocked } else { classic };
            let plain = of(&Asked { memory: None, ..*asked })?;
            let width = Recipe::WIDTH;
            Plan {
                kind: name,
                layout: format!("counters of {width} bits"),
                size: plain.size * u64::from(width),
                bits: plain.bits * u64::from(width),
                ..plain
            }
        }
        Kind::Static => {
            if rate < Recipe::LEAST_STATIC {
                return Err(trouble("its lowest rate is 2.5e-10; give that with -p"));
            }
            let bits = (keys as f64 * -rate.log2() * STATIC_OVERHEAD) as u64;
            let layout = "about so much; it takes no more keys".to_owned();
            let rate_at_double = f64::NAN;
            Plan { kind: name, layout, keys, rate, rate_at_double, size: bits / 8, bits, probes: 0 }
        }
        Kind::Cascade => {
            return Err(trouble("its size depends on both lists; build it, or plan --type static"));
        }
        _ => {
            let recipe = Recipe {
                kind: Some(kind.filter_type()),
                keys: (kind != Kind::Windowed).then_some(keys),
                // A window of so many lines.
                last: (kind == Kind::Windowed).then_some(keys),
                rate: Some(rate),
                ..Recipe::default()
            };
            let sizing = recipe.sizing(keys)?;
            Plan {
                kind: name,
                layout: sizing.describe().to_owned(),
                keys,
                rate: sizing.expected_rate(keys),
                rate_at_double: sizing.expected_rate(keys.saturating_mul(2)),
                size: sizing.size_bytes(),
                bits: sizing.size_bytes().saturating_mul(8),
                probes: 0,
            }
        }
    };
    match asked.memory.filter(|most| plan.size > *most) {
        None => Ok(plan),
        Some(most) => Err(Failure::Plain(format!(
            "{} at {} take {}, more than {}; give more memory or accept a higher rate",
            text::keys(keys),
            text::rate(rate),
            text::size(plan.size),
            text::size(most),
        ))),
    }
}

/// What a static filter takes above the least that any can: measured, docs/filters.md.
const STATIC_OVERHEAD: f64 = 1.03;

/// How a layout is sized: the same calls on both.
struct Sizing<S> {
    for_rate: fn(u64, f64) -> petal::Result<S>,
    for_memory: fn(u64, u64) -> petal::Result<S>,
    with_probes: fn(u64, f64, u32) -> petal::Result<S>,
    filling: fn(u64, u32) -> petal::Result<S>,
    for_bits: fn(u64, u32) -> petal::Result<S>,
    kind: FilterType,
    rate: fn(&S, u64) -> f64,
    keys_at_rate: fn(&S, f64) -> u64,
    size: fn(&S) -> u64,
}

impl<S> Sizing<S> {
    /// The shape, and the keys it is for, from any two or three of keys, rate, memory, probes.
    fn solve(&self, asked: &Asked) -> Result<(S, u64)> {
        match *asked {
            Asked { keys: Some(keys), rate: Some(rate), memory, probes } => {
                let shape = match probes {
                    Some(probes) => (self.with_probes)(keys, rate, probes)?,
                    None => (self.for_rate)(keys, rate)?,
                };
                if let Some(most) = memory.filter(|most| (self.size)(&shape) > *most) {
                    let best = (self.for_memory)(most, keys)?;
                    return Err(Failure::Plain(format!(
                        "{} keys at {} take {}, more than {}; with that memory the rate is {}",
                        text::count(keys),
                        text::rate(rate),
                        text::size((self.size)(&shape)),
                        text::size(most),
                        text::rate((self.rate)(&best, keys)),
                    )));
                }
                Ok((shape, keys))
            }
            Asked { keys: Some(keys), memory: Some(most), probes: None, .. } => {
                // As large as `build` makes it: no larger than the best rate anybody uses takes.
                let size = self.recipe(most).sizing(keys)?.size_bytes();
                Ok(((self.for_memory)(size, keys)?, keys))
            }
            Asked { keys: Some(keys), memory: Some(most), probes: Some(probes), .. } => {
                Ok((self.fixed(most, probes)?, keys))
            }
            Asked { rate: Some(rate), memory: Some(most), probes: Some(probes), .. } => {
                let shape = self.fixed(most, probes)?;
                let keys = (self.keys_at_rate)(&shape, rate);
                self.some(shape, keys, most, rate)
            }
            Asked { rate: Some(rate), memory: Some(most), probes: None, .. } => {
                self.most_keys(most, rate)
            }
            // With half of the bits set a filter of k probes is at its best: n = m ln 2 / k.
            Asked { memory: Some(most), probes: Some(probes), .. } => {
                let shape = self.fixed(most, probes)?;
                let bits = (self.size)(&shape) as f64 * 8.0;
                Ok((shape, (bits * std::f64::consts::LN_2 / f64::from(probes)) as u64))
            }
            Asked { keys: Some(keys), probes: Some(probes), .. } => {
                let bits = keys as f64 * f64::from(probes) / std::f64::consts::LN_2;
                Ok(((self.for_bits)(bits.ceil() as u64, probes)?, keys))
            }
            _ => Err(Failure::Plain(
                "too little to plan with: give two or three of -n keys, -p rate, -m memory, -k \
                 probes, and keys or memory among them"
                    .to_owned(),
            )),
        }
    }

    /// The shape of so many probes that fills the memory.
    fn fixed(&self, most: u64, probes: u32) -> Result<S> {
        Ok((self.filling)(most, probes)?)
    }

    /// The most keys that a memory holds at a rate.
    fn most_keys(&self, most: u64, rate: f64) -> Result<(S, u64)> {
        let recipe = self.recipe(most);
        let keys = Recipe { rate: Some(rate), ..recipe }.most_keys()?.unwrap_or(0);
        let shape = (self.for_rate)(keys.max(1), rate)?;
        self.some(shape, keys, most, rate)
    }

    fn recipe(&self, memory: u64) -> Recipe {
        Recipe { kind: Some(self.kind), memory: Some(memory), ..Recipe::default() }
    }

    fn some(&self, shape: S, keys: u64, most: u64, rate: f64) -> Result<(S, u64)> {
        if keys == 0 {
            return Err(Failure::Plain(format!(
                "not one key fits {} at {}; give more memory or accept a higher rate",
                text::size(most),
                text::rate(rate),
            )));
        }
        Ok((shape, keys))
    }
}

impl Plan {
    fn bits_per_key(&self) -> f64 {
        self.bits as f64 / self.keys as f64
    }

    fn to_json(&self) -> Value {
        json!({
            "type": self.kind,
            "keys": self.keys,
            "rate": self.rate,
            "rate_at_twice_the_keys": self.rate_at_double,
            "size_bytes": self.size,
            "bits": self.bits,
            "bits_per_key": self.bits_per_key(),
            "probes": (self.probes > 0).then_some(self.probes),
        })
    }
}

/// A row for each fact, a column for each layout.
fn table(plans: &[Plan]) -> String {
    type Fact = fn(&Plan) -> String;
    let facts: [(&str, Fact); 8] = [
        ("type", |plan| plan.kind.to_owned()),
        ("keys", |plan| text::count(plan.keys)),
        ("rate", |plan| text::rate(plan.rate)),
        ("at twice the keys", |plan| match plan.rate_at_double.is_nan() {
            true => "-".to_owned(),
            false => text::rate(plan.rate_at_double),
        }),
        ("memory", |plan| text::size(plan.size)),
        ("bits per key", |plan| text::significant(plan.bits_per_key())),
        ("probes", |plan| match plan.probes {
            0 => "-".to_owned(),
            probes => probes.to_string(),
        }),
        ("layout", |plan| plan.layout.clone()),
    ];
    let row = |(name, fact): &(&str, Fact)| {
        let cells = plans.iter().map(|plan| format!("{:<32}", fact(plan)));
        let line = format!("{name:<20}{}", cells.collect::<String>());
        format!("{}\n", line.trim_end())
    };
    facts.iter().map(row).collect()
}
