//! Plans: the size and rate of a filter from two or three of capacity, rate, memory and probes.

use petal::{
    BlockedLayout, BloomFilter, ByteSize, ClassicBloomFilter, ClassicCountingBloomFilter,
    ClassicLayout, CountingBloomFilter, FilterType, QuotientFilter, ScalableBloomFilter, Sizing,
    StaticFilter, VectorQuotientFilter, WindowedBloomFilter, math,
};
use serde_json::{Value, json};

use crate::Result;

/// Bits of a counter.
pub(crate) const COUNTER_WIDTH: u64 = 4;

/// The lowest rate of a static filter.
const MIN_STATIC_FPR: f64 = 2.5e-10;

/// What a plan is made for; `None` is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) filter_type: FilterType,
    pub(crate) capacity: Option<u64>,
    pub(crate) fpr: Option<f64>,
    /// Bytes.
    pub(crate) memory: Option<u64>,
    pub(crate) probes: Option<u32>,
}

/// A filter: what determines its size, and its size and rate.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) filter_type: FilterType,
    pub(crate) capacity: u64,
    pub(crate) size_bytes: u64,
    /// Bits without the rest of the last cache line; counters count `COUNTER_WIDTH` times.
    pub(crate) bits: u64,
    /// The number of probes; `None` for types without probes, or whose parts have different numbers.
    pub(crate) probes: Option<u32>,
    /// The smallest or the best layout, as the library describes it.
    pub(crate) layout: String,
    /// What a builder makes this filter from.
    pub(crate) made_from: MadeFrom,
    rate: Rate,
}

/// The parameters of a builder that makes a filter, beside its capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MadeFrom {
    Fpr(f64),
    FprAndProbes(f64, u32),
    /// The number of bits, or of counters, and that of probes.
    Bits(u64, u32),
}

#[derive(Debug)]
enum Rate {
    /// The same for any number of keys; the filter takes no more keys than planned.
    Constant(f64),
    OfKeys(Sizing),
}

impl Wanted {
    pub(crate) fn from_json(request: &Value) -> Result<Self> {
        let name = request["type"].as_str().unwrap_or("bloom");
        let filter_type =
            FilterType::ALL.into_iter().find(|filter_type| filter_type.name() == name);
        let filter_type = filter_type.ok_or_else(|| format!("type: no filter type {name}"))?;
        Ok(Self {
            filter_type,
            capacity: whole(request, "capacity", 1e18)?,
            fpr: request["fpr"].as_f64(),
            memory: whole(request, "memory", 1e18)?,
            probes: whole(request, "probes", 64.0)?.map(|probes| probes as u32),
        })
    }

    /// Returns the plan.
    pub(crate) fn solve(&self) -> Result<Plan> {
        if self.fpr.is_some_and(|fpr| !(fpr > 0.0 && fpr < 1.0)) {
            return Err("false-positive rate: expected more than 0 and less than 1".to_owned());
        }
        match self.filter_type {
            FilterType::Bloom => self.bloom::<BlockedLayout>(1),
            FilterType::Classic => self.bloom::<ClassicLayout>(1),
            FilterType::Counting => self.bloom::<BlockedLayout>(COUNTER_WIDTH),
            FilterType::CountingClassic => self.bloom::<ClassicLayout>(COUNTER_WIDTH),
            FilterType::Cascade => {
                Err("the size of a cascade depends on both of its lists".to_owned())
            }
            _ if self.probes.is_some() => {
                Err(format!("probes: {} has no free number of probes", self.filter_type))
            }
            _ => self.by_rate(),
        }
    }

    /// Plans a type with probes, whose bits are `times` as large.
    fn bloom<L: Layout>(&self, times: u64) -> Result<Plan> {
        let memory = self.memory.map(|bytes| ByteSize::bytes(bytes / times));
        let by_bits = |layout: L, capacity| {
            let made_from = MadeFrom::Bits(layout.bits(), layout.probes());
            self.planned(capacity, made_from, Some(layout.bits() * times))
        };
        let by_fpr = |layout: L, capacity, made_from| {
            self.planned(capacity, made_from, Some(layout.bits() * times))
        };
        match (self.capacity, self.fpr, memory, self.probes) {
            (Some(n), Some(fpr), limit, probes) => {
                let (layout, made_from) = match probes {
                    Some(k) => (L::with_probes(n, fpr, k), MadeFrom::FprAndProbes(fpr, k)),
                    None => (L::for_fpr(n, fpr), MadeFrom::Fpr(fpr)),
                };
                let plan = by_fpr(layout.map_err(text)?, n, made_from)?;
                self.check_limit(plan, limit.is_some())
            }
            (Some(n), None, Some(memory), Some(k)) => {
                by_bits(L::filling(memory, k).map_err(text)?, n)
            }
            (Some(n), None, Some(memory), None) => {
                by_bits(L::for_memory(n, memory).map_err(text)?, n)
            }
            (None, Some(fpr), Some(memory), Some(k)) => {
                let layout = L::filling(memory, k).map_err(text)?;
                let n = layout.capacity_at_fpr(fpr);
                by_bits(layout, some_keys(n)?)
            }
            (None, Some(fpr), Some(memory), None) => {
                let n = some_keys(L::max_capacity(memory, fpr).map_err(text)?)?;
                by_fpr(L::for_fpr(n, fpr).map_err(text)?, n, MadeFrom::Fpr(fpr))
            }
            // A filter with k probes is best with half of its bits set, at a rate of 2^-k.
            (None, None, Some(memory), Some(k)) => {
                let layout = L::filling(memory, k).map_err(text)?;
                let n = math::classic_capacity(layout.bits(), (-f64::from(k)).exp2());
                by_bits(layout, some_keys(n as u64)?)
            }
            (Some(n), None, None, Some(k)) => {
                let bits = math::classic_bits(n, (-f64::from(k)).exp2()).ceil() as u64;
                by_bits(L::for_bits(bits.max(1), k).map_err(text)?, n)
            }
            _ => Err(TOO_FEW.to_owned()),
        }
    }

    /// Plans a type that is sized by capacity and rate, and searches one of them if the memory is given instead.
    fn by_rate(&self) -> Result<Plan> {
        let plan = |capacity, fpr| self.planned(capacity, MadeFrom::Fpr(fpr), None);
        match (self.capacity, self.fpr, self.memory) {
            (Some(n), Some(fpr), limit) => self.check_limit(plan(n, fpr)?, limit.is_some()),
            (None, Some(fpr), Some(memory)) => {
                let fits = |n| plan(n, fpr).is_ok_and(|plan| plan.size_bytes <= memory);
                plan(some_keys(largest(fits))?, fpr)
            }
            (Some(n), None, Some(memory)) => {
                let fits = |fpr| plan(n, fpr).is_ok_and(|plan| plan.size_bytes <= memory);
                let fpr = lowest(fits).ok_or("the memory is too small for this number of keys")?;
                plan(n, fpr)
            }
            _ => Err(TOO_FEW.to_owned()),
        }
    }

    fn check_limit(&self, plan: Plan, limited: bool) -> Result<Plan> {
        match self.memory.filter(|memory| limited && plan.size_bytes > *memory) {
            None => Ok(plan),
            Some(memory) => Err(format!(
                "this filter takes {} bytes, more than {memory}: leave one of the four values empty",
                plan.size_bytes
            )),
        }
    }

    /// Returns the plan of a filter that a builder makes from these parameters; `bits` is `None` for all of them.
    fn planned(&self, capacity: u64, from: MadeFrom, bits: Option<u64>) -> Result<Plan> {
        let filter_type = self.filter_type;
        if matches!(filter_type, FilterType::Static | FilterType::StaticFuse) {
            let MadeFrom::Fpr(fpr) = from else { return Err(TOO_FEW.to_owned()) };
            if fpr < MIN_STATIC_FPR {
                return Err("the lowest rate of a static filter is 2.5e-10".to_owned());
            }
            let fuse = filter_type == FilterType::StaticFuse;
            let planned = StaticFilter::builder().fpr(fpr).fuse(fuse).planned_bits(capacity);
            let bits = planned.map_err(|problem| problem.to_string())?;
            return Ok(Plan {
                filter_type,
                capacity,
                size_bytes: bits / 8,
                bits,
                probes: None,
                layout: if fuse { "maximum size" } else { "approximate size" }.to_owned(),
                made_from: from,
                rate: Rate::Constant(fpr),
            });
        }
        let sizing = sizing(filter_type, capacity, from)?;
        Ok(Plan {
            filter_type,
            capacity,
            size_bytes: sizing.size_bytes(),
            bits: bits.unwrap_or(sizing.size_bytes() * 8),
            probes: sizing.probes(),
            layout: sizing.describe().to_owned(),
            made_from: from,
            rate: Rate::OfKeys(sizing),
        })
    }
}

impl Plan {
    /// Returns the rate with this number of keys.
    pub(crate) fn fpr(&self, keys: u64) -> f64 {
        match &self.rate {
            Rate::Constant(fpr) => *fpr,
            Rate::OfKeys(sizing) => sizing.expected_fpr(keys),
        }
    }

    /// Returns the number of probes of a type whose builder takes one.
    pub(crate) fn settable_probes(&self) -> Option<u32> {
        let free = matches!(
            self.filter_type,
            FilterType::Bloom
                | FilterType::Classic
                | FilterType::Counting
                | FilterType::CountingClassic
        );
        self.probes.filter(|_| free)
    }

    /// Returns the number of keys that the filter can hold; `None` if it takes any number.
    pub(crate) fn most_keys(&self) -> Option<u64> {
        matches!(
            self.filter_type,
            FilterType::Static
                | FilterType::StaticFuse
                | FilterType::Quotient
                | FilterType::VectorQuotient
        )
        .then_some(self.capacity)
    }

    pub(crate) fn to_json(&self) -> Value {
        let fpr = self.fpr(self.capacity);
        let bits_per_key = self.bits as f64 / self.capacity as f64;
        // A window keeps its keys at the rate that older generations still add to.
        let limit = math::information_bits(fpr);
        let double = self.capacity.saturating_mul(2);
        json!({
            "type": self.filter_type.name(),
            "capacity": self.capacity,
            "fpr": fpr,
            "fpr_at_double_capacity": self.most_keys().is_none().then(|| self.fpr(double)),
            "size_bytes": self.size_bytes,
            "bits": self.bits,
            "bits_per_key": bits_per_key,
            "information_bits_per_key": limit,
            "probes": self.probes,
            "layout": self.layout,
        })
    }
}

const TOO_FEW: &str =
    "give two or three of the four values, the number of keys or the memory among them";

fn text(error: petal::Error) -> String {
    error.to_string()
}

/// Reads a whole number from 1 to `most`, which may be written as a float.
fn whole(request: &Value, name: &str, most: f64) -> Result<Option<u64>> {
    match request[name].as_f64() {
        None => Ok(None),
        Some(number) if (1.0..=most).contains(&number) => Ok(Some(number.round() as u64)),
        Some(number) => Err(format!("{name}: expected 1 to {most:e}, found {number}")),
    }
}

fn some_keys(keys: u64) -> Result<u64> {
    if keys == 0 { Err("no key fits this memory".to_owned()) } else { Ok(keys) }
}

/// Returns the largest number that fits, if all smaller ones do; 0 if none does.
fn largest(fits: impl Fn(u64) -> bool) -> u64 {
    let mut high = 1u64;
    while fits(high) && high < 1 << 60 {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// Returns the lowest rate that fits, rounded up to four digits; `None` if none does.
fn lowest(fits: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (f64::ln(1e-30), f64::ln(0.999));
    if !fits(high.exp()) {
        return None;
    }
    while high - low > 1e-5 {
        let middle = (low + high) / 2.0;
        if fits(middle.exp()) { high = middle } else { low = middle }
    }
    // A rate that can be written down gives the same filter in a command.
    let rounded: f64 = format!("{:.3e}", high.exp() * 1.0006).parse().ok()?;
    Some(rounded.min(0.999))
}

/// Returns the library's sizing of a filter.
fn sizing(filter_type: FilterType, capacity: u64, from: MadeFrom) -> Result<Sizing> {
    macro_rules! bloom {
        ($filter:ty) => {{
            let builder = <$filter>::builder().capacity(capacity);
            match from {
                MadeFrom::Fpr(fpr) => builder.fpr(fpr),
                MadeFrom::FprAndProbes(fpr, probes) => builder.fpr(fpr).probes(probes),
                MadeFrom::Bits(bits, probes) => builder.bits(bits).probes(probes),
            }
            .sizing()
        }};
    }
    let unknown = || Err(format!("type: the size of {filter_type} is not known here"));
    let (MadeFrom::Fpr(fpr) | MadeFrom::FprAndProbes(fpr, _)) = from else {
        let sizing = match filter_type {
            FilterType::Bloom => bloom!(BloomFilter),
            FilterType::Classic => bloom!(ClassicBloomFilter),
            FilterType::Counting => bloom!(CountingBloomFilter),
            FilterType::CountingClassic => bloom!(ClassicCountingBloomFilter),
            _ => return unknown(),
        };
        return sizing.map_err(text);
    };
    let sizing = match filter_type {
        FilterType::Bloom => bloom!(BloomFilter),
        FilterType::Classic => bloom!(ClassicBloomFilter),
        FilterType::Counting => bloom!(CountingBloomFilter),
        FilterType::CountingClassic => bloom!(ClassicCountingBloomFilter),
        FilterType::Quotient => QuotientFilter::builder().capacity(capacity).fpr(fpr).sizing(),
        FilterType::VectorQuotient => {
            VectorQuotientFilter::builder().capacity(capacity).fpr(fpr).sizing()
        }
        FilterType::Scalable => ScalableBloomFilter::builder().capacity(capacity).fpr(fpr).sizing(),
        FilterType::Windowed => WindowedBloomFilter::builder().capacity(capacity).fpr(fpr).sizing(),
        _ => return unknown(),
    };
    sizing.map_err(text)
}

/// The sizing functions that both layouts have.
trait Layout: Sized {
    fn for_fpr(capacity: u64, fpr: f64) -> petal::Result<Self>;
    fn with_probes(capacity: u64, fpr: f64, probes: u32) -> petal::Result<Self>;
    fn for_memory(capacity: u64, memory: ByteSize) -> petal::Result<Self>;
    fn filling(memory: ByteSize, probes: u32) -> petal::Result<Self>;
    fn for_bits(bits: u64, probes: u32) -> petal::Result<Self>;
    fn max_capacity(memory: ByteSize, fpr: f64) -> petal::Result<u64>;
    fn capacity_at_fpr(&self, fpr: f64) -> u64;
    fn bits(&self) -> u64;
    fn probes(&self) -> u32;
}

macro_rules! layout {
    ($layout:ty) => {
        impl Layout for $layout {
            fn for_fpr(capacity: u64, fpr: f64) -> petal::Result<Self> {
                <$layout>::for_fpr(capacity, fpr)
            }
            fn with_probes(capacity: u64, fpr: f64, probes: u32) -> petal::Result<Self> {
                <$layout>::for_fpr_with_probes(capacity, fpr, probes)
            }
            fn for_memory(capacity: u64, memory: ByteSize) -> petal::Result<Self> {
                <$layout>::for_memory(capacity, memory)
            }
            fn filling(memory: ByteSize, probes: u32) -> petal::Result<Self> {
                <$layout>::for_memory_with_probes(memory, probes)
            }
            fn for_bits(bits: u64, probes: u32) -> petal::Result<Self> {
                <$layout>::for_bits(bits, probes)
            }
            fn max_capacity(memory: ByteSize, fpr: f64) -> petal::Result<u64> {
                <$layout>::max_capacity(memory, fpr)
            }
            fn capacity_at_fpr(&self, fpr: f64) -> u64 {
                <$layout>::capacity_at_fpr(self, fpr)
            }
            fn bits(&self) -> u64 {
                <$layout>::bits(self)
            }
            fn probes(&self) -> u32 {
                <$layout>::probes(self)
            }
        }
    };
}

layout!(BlockedLayout);
layout!(ClassicLayout);
