//! The core builder of a specified filter.

use petal::FilterType::{
    Bloom, Classic, Counting, CountingClassic, Quotient, Scalable, VectorQuotient, Wide, Windowed,
};
use petal::{
    AnyFilter, BlockedLayout, BloomFilter, ByteSize, ClassicBloomFilter,
    ClassicCountingBloomFilter, ClassicLayout, CountingBloomFilter, CountingBuilder, FilterType,
    QuotientBuilder, QuotientFilter, ScalableBloomFilter, ScalableBuilder, Sizing,
    VectorQuotientBuilder, VectorQuotientFilter, WideBloomFilter, WideBuilder, WindowedBloomFilter,
    WindowedBuilder,
};

use super::size::SizeBy;
use super::spec::FilterSpec;
use crate::error::{Advice, Error, Result, Setting};
use crate::numbers::{format_count, format_keys, format_rate};

/// Growth of a quotient filter without a maximum capacity: four bits per key.
const GROWTH: u64 = 16;

/// A builder of any type that inserts line by line.
#[derive(Clone, Copy)]
enum Builder {
    Bloom(petal::Builder<BlockedLayout>),
    Classic(petal::Builder<ClassicLayout>),
    Counting(CountingBuilder<BlockedLayout>),
    CountingClassic(CountingBuilder<ClassicLayout>),
    Wide(WideBuilder),
    Quotient(QuotientBuilder),
    VectorQuotient(VectorQuotientBuilder),
    Scalable(ScalableBuilder),
    Windowed(WindowedBuilder),
}

/// Evaluates an expression with the builder of any type.
macro_rules! with {
    ($any:expr, $builder:ident => $call:expr) => {
        match $any {
            Builder::Bloom($builder) => $call,
            Builder::Classic($builder) => $call,
            Builder::Counting($builder) => $call,
            Builder::CountingClassic($builder) => $call,
            Builder::Wide($builder) => $call,
            Builder::Quotient($builder) => $call,
            Builder::VectorQuotient($builder) => $call,
            Builder::Scalable($builder) => $call,
            Builder::Windowed($builder) => $call,
        }
    };
}

impl FilterSpec {
    /// Returns the size and the rates of the filter that [`build`](Self::build) makes for `keys`
    /// lines, without allocating it. Types that are built from all lines at once have none.
    ///
    /// # Errors
    /// As `build`; without a memory limit, the filter may be larger than the available memory.
    pub fn sizing(&self, keys: u64) -> Result<Sizing> {
        let kind = self.filter_type()?;
        let limited = Self {
            memory_limit: self.memory_limit.or(Some(u64::MAX)),
            fpr: self.fpr.or_else(|| {
                let is_free = self.memory_limit.is_none() && self.bits.is_none();
                is_free.then_some(Self::DEFAULT_FPR)
            }),
            ..self.clone()
        };
        let builder = limited.builder(kind, keys)?;
        let sizing = limited.sized(kind, builder)?;
        if sizing.size_bytes() > limited.max_bytes() {
            let or = Advice::Raise(Setting::Fpr);
            return Err(limited.too_large(keys, sizing.size_bytes(), or));
        }
        Ok(sizing)
    }

    /// Returns the empty filter for `keys` lines.
    pub(super) fn empty(&self, kind: FilterType, keys: u64) -> Result<AnyFilter> {
        let builder = self.builder(kind, keys)?;
        let sizing = self.sized(kind, builder)?;
        if sizing.size_bytes() > self.max_bytes() {
            let or = Advice::Raise(Setting::Fpr);
            return Err(self.too_large(sizing.capacity(), sizing.size_bytes(), or));
        }
        let built = with!(builder, builder => builder.build().map(AnyFilter::from));
        let mut filter = built.map_err(|error| self.explain(kind, error))?;
        if let AnyFilter::Windowed(filter) = &mut filter {
            filter.advance_to(self.now);
        }
        Ok(filter)
    }

    fn sized(&self, kind: FilterType, builder: Builder) -> Result<Sizing> {
        with!(builder, builder => builder.sizing()).map_err(|error| self.explain(kind, error))
    }

    fn explain(&self, kind: FilterType, error: petal::Error) -> Error {
        match kind {
            Scalable | Windowed => out_of_reach(kind, self.target_fpr(), error),
            _ => error.into(),
        }
    }

    fn builder(&self, kind: FilterType, keys: u64) -> Result<Builder> {
        let (hash, width) = (self.hash(kind)?, self.width.unwrap_or(Self::DEFAULT_COUNTER_WIDTH));
        let (size, rate) = (self.size_by(kind, keys)?, self.target_fpr());
        /// Sets hash, capacity and size of a builder.
        macro_rules! sized {
            ($builder:expr) => {{
                let builder = $builder.hash(hash).capacity(keys);
                match size {
                    SizeBy::Memory(bytes) => builder.memory(ByteSize::bytes(bytes)),
                    // Such types have no bits to choose.
                    SizeBy::Fpr(rate) | SizeBy::Bits(_, Some(rate)) => builder.fpr(rate),
                    SizeBy::Bits(_, None) => builder,
                }
            }};
        }
        /// `sized`, for types whose bits and probes can be chosen.
        macro_rules! bits_sized {
            ($builder:expr) => {{
                let builder = $builder.least_space(self.least_space);
                let builder = self.probes.map_or(builder, |probes| builder.probes(probes));
                match size {
                    SizeBy::Bits(bits, rate) => {
                        let builder = builder.hash(hash).bits(bits);
                        let builder = rate.map_or(builder, |rate| builder.fpr(rate));
                        // Without a number of lines there is no plan.
                        if keys > 0 { builder.capacity(keys) } else { builder }
                    }
                    _ => sized!(builder),
                }
            }};
        }
        Ok(match kind {
            Bloom => Builder::Bloom(bits_sized!(BloomFilter::builder())),
            Classic => Builder::Classic(bits_sized!(ClassicBloomFilter::builder())),
            Counting => Builder::Counting(bits_sized!(CountingBloomFilter::builder().width(width))),
            CountingClassic => {
                let builder = ClassicCountingBloomFilter::builder().width(width);
                Builder::CountingClassic(bits_sized!(builder))
            }
            Wide => Builder::Wide(sized!(WideBloomFilter::builder())),
            Quotient => {
                if let Some(most) = self.max_capacity.filter(|most| *most < keys) {
                    let problem = format!(
                        "{} is less than the initial capacity of {}",
                        format_keys(most),
                        format_count(keys)
                    );
                    return Err(Error::setting_is(Setting::MaxCapacity, problem)
                        .advise(Advice::Raise(Setting::MaxCapacity)));
                }
                let builder = QuotientFilter::builder().hash(hash).capacity(keys).fpr(rate);
                let growth = self.growing.then(|| keys.saturating_mul(GROWTH));
                let most = self.max_capacity.or(growth);
                Builder::Quotient(most.map_or(builder, |most| builder.max_capacity(most)))
            }
            VectorQuotient => {
                let builder = VectorQuotientFilter::builder().hash(hash);
                Builder::VectorQuotient(builder.capacity(keys).fpr(rate))
            }
            Scalable => {
                let builder = ScalableBloomFilter::builder().hash(hash).fpr(rate);
                // Without a capacity the builder uses its default.
                Builder::Scalable(self.capacity.map_or(builder, |keys| builder.capacity(keys)))
            }
            Windowed => {
                let builder = WindowedBloomFilter::builder().hash(hash).fpr(rate);
                let builder = builder.capacity(self.last.unwrap_or(keys));
                Builder::Windowed(self.window.map_or(builder, |seconds| builder.time(seconds)))
            }
            _ => {
                let problem = format!("a {kind} filter cannot be built from lines");
                return Err(Error::setting_is(Setting::FilterType, problem));
            }
        })
    }
}

/// Replaces the rate of a part, which core reports, by that of the whole filter.
fn out_of_reach(filter_type: FilterType, fpr: f64, error: petal::Error) -> Error {
    if !error.is_unattainable() {
        return error.into();
    }
    let problem = format!(
        "a {filter_type} filter has 64-bit hashes, which collide too often for {}",
        format_rate(fpr)
    );
    Error::setting_is(Setting::Fpr, problem)
        .advise(Advice::Raise(Setting::Fpr))
        .advise(Advice::UseType(&[FilterType::Wide]))
}
