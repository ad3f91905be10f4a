//! `plan`: sizing before any work.

use petal::{
    AnyFilter, ClassicShape, QuotientFilter, ScalableBloomFilter, Shape, WideBloomFilter,
    WindowedBloomFilter,
};
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
        for_bits: Shape::for_bits,
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
        for_bits: ClassicShape::for_bits,
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
            let filter = empty(kind, keys, rate).ok_or_else(|| trouble("cannot be planned"))??;
            let face = filter.face();
            Plan {
                kind: name,
                layout: face.describe(),
                keys,
                rate: face.expected_rate(keys),
                rate_at_double: face.expected_rate(keys.saturating_mul(2)),
                size: face.size_bytes(),
                bits: face.size_bytes() * 8,
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

/// A filter without keys, whose memory is never touched; `None` of types that are not made so.
fn empty(kind: Kind, keys: u64, rate: f64) -> Option<petal::Result<AnyFilter>> {
    Some(match kind {
        Kind::Quotient => QuotientFilter::with_rate(keys, rate).map(AnyFilter::from),
        Kind::Scalable => {
            let builder = ScalableBloomFilter::builder().keys(keys).rate(rate);
            builder.build().map(AnyFilter::from)
        }
        Kind::Windowed => WindowedBloomFilter::with_rate(keys, rate).map(AnyFilter::from),
        Kind::Wide => WideBloomFilter::with_rate(keys, rate).map(AnyFilter::from),
        _ => return None,
    })
}

/// How a layout is sized: the same calls on both.
struct Sizing<S> {
    for_rate: fn(u64, f64) -> petal::Result<S>,
    for_memory: fn(u64, u64) -> petal::Result<S>,
    for_bits: fn(u64, u32) -> petal::Result<S>,
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
                    Some(probes) => self.least_bits(keys, rate, probes)?,
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
                Ok(((self.for_memory)(most, keys)?, keys))
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
        // Whole blocks of either layout.
        Ok((self.for_bits)((most / 128).max(1) * 1024, probes)?)
    }

    /// The smallest shape of so many probes that keeps a rate.
    fn least_bits(&self, keys: u64, rate: f64, probes: u32) -> Result<S> {
        let keeps = |bits: u64| -> Result<bool> {
            Ok((self.rate)(&(self.for_bits)(bits, probes)?, keys) <= rate)
        };
        let (mut low, mut high) = (0, 512);
        while !keeps(high)? {
            (low, high) = (high, high * 2);
        }
        while high - low > 512 {
            let middle = low + (high - low) / 2;
            if keeps(middle)? { high = middle } else { low = middle }
        }
        Ok((self.for_bits)(high, probes)?)
    }

    /// The most keys that a memory holds at a rate.
    fn most_keys(&self, most: u64, rate: f64) -> Result<(S, u64)> {
        let keeps = |keys: u64| -> Result<bool> {
            Ok((self.rate)(&(self.for_memory)(most, keys)?, keys) <= rate)
        };
        let (mut low, mut high) = (0, 1);
        while keeps(high)? {
            (low, high) = (high, high * 2);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if keeps(middle)? { low = middle } else { high = middle }
        }
        let shape = (self.for_memory)(most, low.max(1))?;
        self.some(shape, low, most, rate)
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
