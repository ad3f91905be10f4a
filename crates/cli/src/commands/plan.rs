//! `plan`: sizes a filter.

use petal::{BlockedLayout, ByteSize, ClassicLayout, FilterType, StaticFilter};
use petal_lines::{FilterSpec, MemoryLimit};
use serde_json::{Value, json};

use super::{print, write_page};
use crate::args::{FilterTypeArg, PlanArgs};
use crate::error::{Failure, Outcome, Result};
use crate::html::{RateCurve, plan::page};
use crate::text;

pub(super) fn run(args: &PlanArgs) -> Result<Outcome> {
    let op = args.op().map_err(|text| Failure::Message(format!("{text}; leave it out")))?;
    if let Some(op) = op {
        return super::estimate::run(op, args);
    }
    let input = PlanInput {
        keys: args.capacity,
        rate: args.fpr,
        memory: args.memory.map(MemoryLimit::bytes),
        bits: args.bits,
        probes: args.probes,
        least_space: args.least_space,
    };
    let plans = match args.filter_type.map(FilterTypeArg::filter_type) {
        // Only the classic layout can have more than 16 probes.
        None if args.probes.is_some_and(|probes| probes > 16) => {
            vec![classic(FilterType::Classic, &input)?]
        }
        // The blocked layout must be possible; the classic one is shown if it is.
        None => {
            let bloom = blocked(FilterType::Bloom, &input)?;
            [Some(bloom), classic(FilterType::Classic, &input).ok()].into_iter().flatten().collect()
        }
        Some(filter_type) => {
            let settings = FilterSpec { filter_type: Some(filter_type), ..input.spec() };
            settings.check_settings_of_type(filter_type)?;
            vec![match filter_type {
                FilterType::Bloom | FilterType::Counting => blocked(filter_type, &input)?,
                FilterType::Classic | FilterType::CountingClassic => classic(filter_type, &input)?,
                _ => of_type(filter_type, &input)?,
            }]
        }
    };
    if let Some(path) = &args.html {
        let curves: Vec<_> = plans.iter().filter_map(SizedFilter::curve).collect();
        let capacity = plans.iter().map(|plan| plan.capacity).max().unwrap_or(0);
        write_page(path, &[], &page(&rows(&plans), &curves, capacity)?)?;
        return Ok(Outcome::Done);
    }
    let text = if args.json {
        let plans: Vec<_> = plans.iter().map(SizedFilter::to_json).collect();
        format!("{:#}\n", json!({ "plans": plans }))
    } else {
        table(&plans)
    };
    print(&text)?;
    Ok(Outcome::Done)
}

/// The values from the command line.
struct PlanInput {
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<u64>,
    bits: Option<u64>,
    probes: Option<u32>,
    least_space: bool,
}

impl PlanInput {
    /// Returns the specification of a filter, without the memory limit.
    fn spec(&self) -> FilterSpec {
        let Self { keys, rate, bits, probes, least_space, .. } = *self;
        let capacity = keys;
        FilterSpec { capacity, fpr: rate, bits, probes, least_space, ..FilterSpec::default() }
    }
}

/// The size of a filter and its rates.
struct SizedFilter {
    filter_type: &'static str,
    layout: String,
    capacity: u64,
    fpr: f64,
    fpr_at_double: f64,
    size: u64,
    bits: u64,
    /// 0 for types without probes.
    probes: u32,
    /// The rate by the number of keys; `None` for types that take no more keys.
    rate: Option<Box<dyn Fn(u64) -> f64>>,
}

fn blocked(filter_type: FilterType, input: &PlanInput) -> Result<SizedFilter> {
    let rate = |layout: &BlockedLayout, keys| layout.fpr(keys);
    let sizing = LayoutFns {
        for_fpr: match input.least_space {
            true => BlockedLayout::for_least_space,
            false => BlockedLayout::for_fpr,
        },
        for_memory: BlockedLayout::for_memory,
        with_probes: BlockedLayout::for_fpr_with_probes,
        filling: BlockedLayout::for_memory_with_probes,
        for_bits: BlockedLayout::for_bits,
        filter_type,
        rate,
        capacity_at_fpr: |layout, rate| layout.capacity_at_fpr(rate),
        size: |layout| layout.size_bytes(),
    };
    let (layout, keys) = sizing.solve(input)?;
    let times = sizing.times();
    let blocks = format!("{} blocks of {} bits", text::count(layout.blocks()), layout.lanes() * 64);
    Ok(SizedFilter {
        filter_type: filter_type.name(),
        layout: if times > 1 { format!("counters of {times} bits") } else { blocks },
        capacity: keys,
        fpr: layout.fpr(keys),
        fpr_at_double: layout.fpr(keys.saturating_mul(2)),
        size: layout.size_bytes() * times,
        bits: layout.bits() * times,
        probes: layout.probes(),
        rate: Some(Box::new(move |keys| layout.fpr(keys))),
    })
}

fn classic(filter_type: FilterType, input: &PlanInput) -> Result<SizedFilter> {
    let sizing = LayoutFns {
        for_fpr: match input.least_space {
            true => ClassicLayout::for_least_space,
            false => ClassicLayout::for_fpr,
        },
        for_memory: ClassicLayout::for_memory,
        with_probes: ClassicLayout::for_fpr_with_probes,
        filling: ClassicLayout::for_memory_with_probes,
        for_bits: ClassicLayout::for_bits,
        filter_type,
        rate: |layout, keys| layout.fpr(keys),
        capacity_at_fpr: |layout, rate| layout.capacity_at_fpr(rate),
        size: |layout| layout.size_bytes(),
    };
    let (layout, keys) = sizing.solve(input)?;
    let times = sizing.times();
    let anywhere = "positions anywhere".to_owned();
    Ok(SizedFilter {
        filter_type: filter_type.name(),
        layout: if times > 1 { format!("counters of {times} bits") } else { anywhere },
        capacity: keys,
        fpr: layout.fpr(keys),
        fpr_at_double: layout.fpr(keys.saturating_mul(2)),
        size: layout.size_bytes() * times,
        bits: layout.bits() * times,
        probes: layout.probes(),
        rate: Some(Box::new(move |keys| layout.fpr(keys))),
    })
}

/// Sizes a filter of any other type, from capacity and rate only.
fn of_type(filter_type: FilterType, input: &PlanInput) -> Result<SizedFilter> {
    let name = filter_type.name();
    let failed = |text: &str| Failure::Message(format!("--type {name}: {text}"));
    let (Some(keys), Some(rate)) = (input.keys, input.rate) else {
        return Err(failed("needs -n and -p; specify both"));
    };
    let plan = match filter_type {
        FilterType::Static | FilterType::StaticFuse => {
            if rate < FilterSpec::MIN_STATIC_FPR {
                return Err(failed("its lowest rate is 2.5e-10; raise -p"));
            }
            let fuse = filter_type == FilterType::StaticFuse;
            let bits = StaticFilter::builder().fpr(rate).fuse(fuse).planned_bits(keys)?;
            let layout = match fuse {
                true => "maximum size; immutable".to_owned(),
                false => "approximate size; immutable".to_owned(),
            };
            SizedFilter {
                filter_type: name,
                layout,
                capacity: keys,
                fpr: rate,
                fpr_at_double: f64::NAN,
                size: bits / 8,
                bits,
                probes: 0,
                rate: None,
            }
        }
        FilterType::Cascade => {
            return Err(failed("its size depends on both lists; build it, or use --type static"));
        }
        _ => {
            let spec = FilterSpec {
                filter_type: Some(filter_type),
                capacity: (filter_type != FilterType::Windowed).then_some(keys),
                // A window of this number of lines.
                last: (filter_type == FilterType::Windowed).then_some(keys),
                fpr: Some(rate),
                ..FilterSpec::default()
            };
            let sizing = spec.sizing(keys)?;
            SizedFilter {
                filter_type: name,
                layout: text::grouped(sizing.describe()),
                capacity: keys,
                fpr: sizing.expected_fpr(keys),
                fpr_at_double: sizing.expected_fpr(keys.saturating_mul(2)),
                size: sizing.size_bytes(),
                bits: sizing.size_bytes().saturating_mul(8),
                probes: sizing.probes().unwrap_or(0),
                rate: Some(Box::new(move |keys| sizing.expected_fpr(keys))),
            }
        }
    };
    match input.memory.filter(|most| plan.size > *most) {
        None => Ok(plan),
        Some(most) => Err(Failure::Message(format!(
            "{} at {} take {}, more than {}; raise -m or -p",
            text::keys(keys),
            text::rate(rate),
            text::size(plan.size),
            text::size(most),
        ))),
    }
}

/// The number of keys for which a filter with k probes is optimal, with half of its bits set:
/// n = m ln 2 / k.
fn best_capacity(bits: f64, probes: u32) -> u64 {
    (bits * std::f64::consts::LN_2 / f64::from(probes)) as u64
}

fn not_enough() -> Failure {
    Failure::Message(
        "not enough to size a filter: specify two or three of -n, -p, -k and -m or --bits, \
         including -n, -m or --bits"
            .to_owned(),
    )
}

/// The bytes of a filter file before its data: header and metadata, rounded up to a page.
const FILE_HEADER: u64 = 4096;

/// The sizing functions of a layout.
struct LayoutFns<S> {
    for_fpr: fn(u64, f64) -> petal::Result<S>,
    for_memory: fn(u64, ByteSize) -> petal::Result<S>,
    with_probes: fn(u64, f64, u32) -> petal::Result<S>,
    filling: fn(ByteSize, u32) -> petal::Result<S>,
    for_bits: fn(u64, u32) -> petal::Result<S>,
    filter_type: FilterType,
    rate: fn(&S, u64) -> f64,
    capacity_at_fpr: fn(&S, f64) -> u64,
    size: fn(&S) -> u64,
}

impl<S> LayoutFns<S> {
    /// Returns the bits of a counter; 1 for filters without counters.
    fn times(&self) -> u64 {
        match self.filter_type {
            FilterType::Bloom | FilterType::Classic => 1,
            _ => FilterSpec::DEFAULT_COUNTER_WIDTH.into(),
        }
    }

    /// Returns the layout and its capacity from two or three of capacity, rate, memory or bits, and
    /// probes.
    fn solve(&self, input: &PlanInput) -> Result<(S, u64)> {
        match *input {
            PlanInput { bits: Some(bits), .. } => self.of_bits(bits, input),
            PlanInput { keys: Some(keys), rate: Some(rate), memory, probes, .. } => {
                let layout = match probes {
                    Some(probes) => (self.with_probes)(keys, rate, probes)?,
                    None => (self.for_fpr)(keys, rate)?,
                };
                let size = (self.size)(&layout).saturating_mul(self.times());
                if let Some(most) = memory.filter(|most| size > *most) {
                    let best = (self.for_memory)(keys, ByteSize::bytes(most / self.times()))?;
                    return Err(Failure::Message(format!(
                        "{} keys at {} take {}, more than {}; with that memory the rate is {}",
                        text::count(keys),
                        text::rate(rate),
                        text::size(size),
                        text::size(most),
                        text::rate((self.rate)(&best, keys)),
                    )));
                }
                Ok((layout, keys))
            }
            PlanInput { keys: Some(keys), memory: Some(most), probes: None, .. } => {
                // The size that `build` chooses, which has a lower limit for the rate.
                let size = self.spec(most).sizing(keys)?.size_bytes();
                Ok(((self.for_memory)(keys, ByteSize::bytes(size / self.times()))?, keys))
            }
            PlanInput { keys: Some(keys), memory: Some(most), probes: Some(probes), .. } => {
                Ok((self.fixed(most, probes)?, keys))
            }
            PlanInput { rate: Some(rate), memory: Some(most), probes: Some(probes), .. } => {
                let layout = self.fixed(most, probes)?;
                let keys = (self.capacity_at_fpr)(&layout, rate);
                self.non_empty(layout, keys, most, rate)
            }
            PlanInput { rate: Some(rate), memory: Some(most), probes: None, .. } => {
                self.max_capacity(most, rate)
            }
            PlanInput { memory: Some(most), probes: Some(probes), .. } => {
                let layout = self.fixed(most, probes)?;
                let keys = best_capacity((self.size)(&layout) as f64 * 8.0, probes);
                Ok((layout, keys))
            }
            PlanInput { keys: Some(keys), probes: Some(probes), .. } => {
                let bits = keys as f64 * f64::from(probes) / std::f64::consts::LN_2;
                Ok(((self.for_bits)(bits.ceil() as u64, probes)?, keys))
            }
            _ => Err(not_enough()),
        }
    }

    /// Returns the layout with these probes that fills the memory.
    fn fixed(&self, most: u64, probes: u32) -> Result<S> {
        Ok((self.filling)(ByteSize::bytes(most / self.times()), probes)?)
    }

    /// Returns the layout with this number of bits, and its capacity. One of the other values may be
    /// missing; without all but the probes, the capacity is the best one for them.
    fn of_bits(&self, bits: u64, input: &PlanInput) -> Result<(S, u64)> {
        if input.probes.or(input.rate.and(Some(0))).is_none() && input.keys.is_none() {
            return Err(not_enough());
        }
        let spec = FilterSpec { filter_type: Some(self.filter_type), ..input.spec() };
        let sizing = spec.sizing(input.keys.unwrap_or(0))?;
        let probes = sizing.probes().unwrap_or(1);
        let layout = (self.for_bits)(bits, probes)?;
        let keys = match sizing.capacity() {
            0 if input.rate.is_none() => best_capacity(bits as f64, probes),
            keys => keys,
        };
        Ok((layout, keys))
    }

    /// Returns the layout for the maximum capacity of the memory at a rate.
    fn max_capacity(&self, most: u64, rate: f64) -> Result<(S, u64)> {
        let spec = self.spec(most);
        let keys = FilterSpec { fpr: Some(rate), ..spec }.capacity_for_memory()?.unwrap_or(0);
        let layout = (self.for_fpr)(keys.max(1), rate)?;
        self.non_empty(layout, keys, most, rate)
    }

    fn spec(&self, memory: u64) -> FilterSpec {
        FilterSpec {
            filter_type: Some(self.filter_type),
            memory_limit: Some(memory),
            ..FilterSpec::default()
        }
    }

    fn non_empty(&self, layout: S, keys: u64, most: u64, rate: f64) -> Result<(S, u64)> {
        if keys == 0 {
            return Err(Failure::Message(format!(
                "no key fits {} at {}; raise -m or -p",
                text::size(most),
                text::rate(rate),
            )));
        }
        Ok((layout, keys))
    }
}

impl SizedFilter {
    fn bits_per_key(&self) -> f64 {
        self.bits as f64 / self.capacity as f64
    }

    fn curve(&self) -> Option<RateCurve<'_>> {
        let rate = self.rate.as_deref()?;
        Some(RateCurve { name: self.filter_type.to_owned(), rate: Box::new(rate) })
    }

    /// Returns the size of the file that `build` writes.
    fn file_bytes(&self) -> u64 {
        self.size.saturating_add(FILE_HEADER)
    }

    fn to_json(&self) -> Value {
        json!({
            "type": self.filter_type,
            "capacity": self.capacity,
            "fpr": self.fpr,
            "fpr_at_double_capacity": self.fpr_at_double,
            "size_bytes": self.size,
            "file_bytes": self.file_bytes(),
            "bits": self.bits,
            "bits_per_key": self.bits_per_key(),
            "probes": (self.probes > 0).then_some(self.probes),
        })
    }
}

/// Returns a row for each value: its name, and its text for each layout.
fn rows(plans: &[SizedFilter]) -> Vec<(&'static str, Vec<String>)> {
    type Value = fn(&SizedFilter) -> String;
    let rows: [(&str, Value); 9] = [
        ("type", |plan| plan.filter_type.to_owned()),
        ("capacity", |plan| text::count(plan.capacity)),
        ("fpr", |plan| text::rate(plan.fpr)),
        ("fpr at 2x capacity", |plan| match plan.fpr_at_double.is_nan() {
            true => "-".to_owned(),
            false => text::rate(plan.fpr_at_double),
        }),
        ("memory", |plan| text::size(plan.size)),
        ("file on disk", |plan| text::size(plan.file_bytes())),
        ("bits per key", |plan| text::significant(plan.bits_per_key())),
        ("probes", |plan| match plan.probes {
            0 => "-".to_owned(),
            probes => probes.to_string(),
        }),
        ("layout", |plan| plan.layout.clone()),
    ];
    rows.into_iter().map(|(name, value)| (name, plans.iter().map(value).collect())).collect()
}

/// The least width of a column of the table.
const COLUMN: usize = 32;

/// Formats a row for each value, and a column for each layout.
fn table(plans: &[SizedFilter]) -> String {
    let rows = rows(plans);
    let longest = rows.iter().flat_map(|(_, values)| values).map(String::len).max().unwrap_or(0);
    let width = COLUMN.max(longest + 2);
    let row = |(name, values): &(&str, Vec<String>)| {
        let cells = values.iter().map(|value| format!("{value:<width$}"));
        let line = format!("{name:<20}{}", cells.collect::<String>());
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(row).collect()
}
