//! Which filter to make of lines: by type, for so many keys, at a rate or in so much memory.
//!
//! The same words make the same filter as those of `petal build`, bit for bit.

use petal::FilterType::{
    Bloom, Classic, Counting, CountingClassic, Quotient, Scalable, Wide, Windowed,
};
use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, ClassicShape,
    CountingBloomFilter, FilterType, HashSpec, QuotientFilter, QuotientShape, ScalableBloomFilter,
    Shape, WideBloomFilter, WindowedBloomFilter,
};
use petal_lines::readable_size;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Memory, SHARE};
use crate::error::{Kind, Raise};

/// What was asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Asked {
    r#type: String,
    pub(super) capacity: Option<u64>,
    rate: Option<f64>,
    memory: Option<Memory>,
    seed: u64,
    width: Option<u32>,
    max_capacity: Option<u64>,
    window: Option<u64>,
    last: Option<u64>,
    now: u64,
}

/// A better rate than anybody asks for: in `memory` alone, the filter stops growing there.
const BEST_RATE: f64 = 1e-9;

/// Bits of a counter when nothing is said of them.
const WIDTH: u32 = 4;

/// The rate when nothing is said of it.
const RATE: f64 = 0.01;

impl Asked {
    /// The type by its name; words that do not go with it are refused.
    pub(super) fn kind(&self) -> PyResult<FilterType> {
        let all = FilterType::ALL;
        let kind = all.into_iter().find(|kind| kind.name() == self.r#type).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|kind| kind.name()).collect();
            let names = names.join(", ");
            PyValueError::new_err(format!("type=: no type {:?}; one of {names}", self.r#type))
        })?;
        let rules = [
            (self.width.is_some(), "width=", &[Counting, CountingClassic][..], "has no counters"),
            (self.max_capacity.is_some(), "max_capacity=", &[Quotient], "does not grow to an end"),
            (self.window.is_some(), "window=", &[Windowed], "forgets nothing"),
            (self.last.is_some(), "last=", &[Windowed], "forgets nothing"),
        ];
        for (said, word, kinds, why) in rules {
            if said && !kinds.contains(&kind) {
                let words = format!("{word}: a filter of type {kind} {why}; leave it out");
                return Err(PyValueError::new_err(words));
            }
        }
        let trouble = |words: &str| Err(PyValueError::new_err(words.replace("{}", kind.name())));
        if kind == Windowed && self.window.is_some() == self.last.is_some() {
            return trouble(
                "type=: a {} filter forgets after window= (seconds) or last= (lines); say one",
            );
        }
        if kind.is_fixed() && self.capacity.is_some() {
            return trouble("capacity=: a {} filter is made of the lines that come; leave it out");
        }
        if !matches!(kind, Bloom | Classic | Counting | CountingClassic | Wide) && self.by_memory()
        {
            return trouble(
                "memory=: alone it does not tell the rate of a {} filter; say that with rate=, \
                 and memory= is a limit",
            );
        }
        Ok(kind)
    }

    /// Whether memory alone tells how large the filter is.
    fn by_memory(&self) -> bool {
        self.memory.is_some() && self.rate.is_none()
    }

    /// Lines to plan for, if they need not be counted.
    pub(super) fn keys(&self, kind: FilterType) -> Option<u64> {
        // It grows with what comes, or was told how many it is to hold.
        let told = kind == FilterType::Scalable || self.last.is_some();
        self.capacity.or(told.then_some(0))
    }

    /// The rate to plan for.
    pub(super) fn rate(&self) -> f64 {
        self.rate.unwrap_or(RATE)
    }

    /// How lines are hashed.
    pub(super) fn hash(&self, kind: FilterType) -> HashSpec {
        match kind {
            FilterType::Wide => HashSpec::wide(self.seed),
            _ => HashSpec::rapid(self.seed),
        }
    }

    /// How large the filter may be.
    pub(super) fn cap(&self) -> PyResult<u64> {
        self.memory.as_ref().map_or_else(|| Ok(SHARE.bytes()), Memory::bytes)
    }

    /// The empty filter, for so many keys.
    pub(super) fn filter(&self, kind: FilterType, keys: u64) -> PyResult<AnyFilter> {
        let (cap, rate) = (self.cap()?, self.rate());
        let (hash, width) = (self.hash(kind), self.width.unwrap_or(WIDTH));
        // Before memory is asked for.
        let needed = self.needed(kind, keys, rate)?;
        if !self.by_memory() {
            self.refuse_above(cap, needed, keys)?;
        }
        // More than the best rate takes would be memory for nothing.
        let most = if self.by_memory() { self.needed(kind, keys, BEST_RATE)? } else { 0 };
        /// Tells a builder of any type what was asked for.
        macro_rules! built {
            ($builder:expr) => {{
                let builder = $builder.hash(hash).keys(keys);
                let builder = match self.by_memory() {
                    true => builder.memory(cap.min(most)),
                    false => builder.rate(rate),
                };
                builder.build().map(AnyFilter::from)
            }};
        }
        let built = match kind {
            Bloom => built!(BloomFilter::builder()),
            Classic => built!(ClassicBloomFilter::builder()),
            Counting => built!(CountingBloomFilter::builder().width(width)),
            CountingClassic => built!(ClassicCountingBloomFilter::builder().width(width)),
            Wide => built!(WideBloomFilter::builder()),
            Quotient => {
                let builder = QuotientFilter::builder().hash(hash).keys(keys).rate(rate);
                let most = self.max_capacity;
                most.map_or(builder, |most| builder.max_keys(most)).build().map(AnyFilter::from)
            }
            Scalable => {
                let builder = ScalableBloomFilter::builder().hash(hash).rate(rate);
                // Without a guess its own is as good as any.
                let guess = self.capacity;
                guess.map_or(builder, |keys| builder.keys(keys)).build().map(AnyFilter::from)
            }
            Windowed => {
                let builder = WindowedBloomFilter::builder().hash(hash).rate(rate);
                let builder = builder.keys(self.last.unwrap_or(keys));
                let builder = self.window.map_or(builder, |seconds| builder.time(seconds));
                builder.build().map(|mut filter| {
                    filter.advance_to(self.now);
                    AnyFilter::from(filter)
                })
            }
            _ => {
                let words = format!("type=: a {kind} filter cannot be filled line by line");
                return Err(Kind::Unsupported.with(words));
            }
        };
        let filter = built.map_err(Raise::raise)?;
        self.refuse_above(cap, filter.face().size_bytes(), keys)?;
        Ok(filter)
    }

    /// Bytes that so many keys take at a rate; 0 of types that are small when they begin.
    fn needed(&self, kind: FilterType, keys: u64, rate: f64) -> PyResult<u64> {
        let times = u64::from(self.width.unwrap_or(WIDTH));
        let plain = |times| Ok(Shape::for_rate(keys, rate)?.size_bytes().saturating_mul(times));
        let classic =
            |times| Ok(ClassicShape::for_rate(keys, rate)?.size_bytes().saturating_mul(times));
        let needed: petal::Result<u64> = match kind {
            Bloom | Wide => plain(1),
            Classic => classic(1),
            Counting => plain(times),
            CountingClassic => classic(times),
            Quotient => QuotientShape::for_rate(keys, rate).map(|shape| shape.size_bytes()),
            _ => Ok(0),
        };
        match needed {
            // Of 128-bit hashes a rate is asked that no 64 bits can keep; the builder knows it.
            Err(error) if kind == Wide && error.is_unattainable() => Ok(0),
            needed => needed.map_err(Raise::raise),
        }
    }

    /// Refuses a filter that is larger than it may be.
    pub(super) fn refuse_above(&self, cap: u64, needed: u64, keys: u64) -> PyResult<()> {
        if needed <= cap {
            return Ok(());
        }
        let cap_is = if self.memory.is_some() { "memory=" } else { "half of the memory there is" };
        Err(Kind::MemoryCap.with(format_args!(
            "{keys} keys at a rate of {} take {}, more than {}, {cap_is}; raise memory=, or accept \
             a higher rate=",
            self.rate(),
            readable_size(needed),
            readable_size(cap),
        )))
    }
}
