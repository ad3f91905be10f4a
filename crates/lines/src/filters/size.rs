//! The size of a filter from its specification.

use petal::FilterType::{
    Bloom, Classic, Counting, CountingClassic, Quotient, VectorQuotient, Wide,
};
use petal::{
    AnyFilter, BlockedLayout, ByteSize, ClassicLayout, FilterType, QuotientLayout,
    VectorQuotientLayout,
};

use super::spec::FilterSpec;
use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::numbers::{format_count, format_size};

/// The lowest rate that a filter is made for if only the memory limit is given.
const BEST_FPR: f64 = 1e-9;

/// The value that determines the size of a filter.
#[derive(Clone, Copy)]
pub(super) enum SizeBy {
    /// This many bytes.
    Memory(u64),
    /// The target false-positive rate.
    Fpr(f64),
    /// This many bits, and the target false-positive rate if one is given.
    Bits(u64, Option<f64>),
}

impl FilterSpec {
    /// Returns the largest number of lines for which [`build`](Self::build) makes a Bloom filter
    /// within both the memory limit and the rate, accurate to 2 % or one line. `None` if one of
    /// the two is not given, or if the type is not a Bloom filter of fixed size.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1.
    pub fn capacity_for_memory(&self) -> Result<Option<u64>> {
        let (Some(memory), Some(rate)) = (self.memory_limit, self.fpr) else { return Ok(None) };
        let width = u64::from(self.width.unwrap_or(Self::DEFAULT_COUNTER_WIDTH)).max(1);
        Ok(Some(match self.filter_type()? {
            Bloom => BlockedLayout::max_capacity(ByteSize::bytes(memory), rate)?,
            Classic => ClassicLayout::max_capacity(ByteSize::bytes(memory), rate)?,
            Counting => BlockedLayout::max_capacity(ByteSize::bytes(memory / width), rate)?,
            CountingClassic => ClassicLayout::max_capacity(ByteSize::bytes(memory / width), rate)?,
            _ => return Ok(None),
        }))
    }

    /// Returns the given rate if it fits the limit, or without a rate the memory to use, at most the
    /// limit.
    pub(super) fn size_by(&self, kind: FilterType, keys: u64) -> Result<SizeBy> {
        let (cap, rate) = (self.max_bytes(), self.target_fpr());
        if let Some(bits) = self.bits {
            return Ok(SizeBy::Bits(bits, self.fpr));
        }
        if self.probes.is_some() {
            // The caller compares the size with the limit.
            return Ok(match self.is_sized_by_memory() {
                true => SizeBy::Memory(cap),
                false => SizeBy::Fpr(rate),
            });
        }
        let Some(model) = SizeModel::of(kind, self.width, self.least_space) else {
            // The size of a quotient filter is known before its memory is allocated.
            let needed = match kind {
                Quotient => QuotientLayout::for_fpr(keys, rate)?.size_bytes(),
                VectorQuotient => VectorQuotientLayout::for_fpr(keys, rate)?.size_bytes(),
                _ => 0,
            };
            if needed > cap {
                let or = Advice::Lower(Setting::Capacity);
                return Err(self.too_large(keys, needed, or));
            }
            return Ok(if self.is_sized_by_memory() {
                SizeBy::Memory(cap)
            } else {
                SizeBy::Fpr(rate)
            });
        };
        if self.is_sized_by_memory() {
            // Memory beyond the best rate would be wasted.
            let best = if kind == Wide { BEST_FPR * BEST_FPR } else { BEST_FPR };
            let most = model.needed(keys, best);
            return Ok(SizeBy::Memory(most.map_or(cap, |most| cap.min(most))));
        }
        let needed = match model.needed(keys, rate) {
            // One half cannot reach the rate; the builder checks whether both together can.
            Err(error) if kind == Wide && error.is_unattainable() => 0,
            needed => needed?,
        };
        if needed <= cap {
            return Ok(SizeBy::Fpr(rate));
        }
        // Do not advise a filter that reports most keys as present.
        let best = model.best(cap, keys).ok().filter(|best| *best < 0.5);
        let limited = self.memory_limit.is_some();
        let alternative = match best {
            Some(best) if limited && !self.least_space => Advice::OmitFpr(best),
            Some(best) => Advice::AcceptFpr(best * 1.001),
            None => Advice::Lower(Setting::Capacity),
        };
        Err(self.too_large(keys, needed, alternative))
    }

    /// Returns an error if a filter is larger than the limit.
    pub(super) fn check_size(&self, filter: &AnyFilter) -> Result<()> {
        let (keys, needed) = (filter.as_dyn().capacity(), filter.as_dyn().size_bytes());
        if needed <= self.max_bytes() {
            return Ok(());
        }
        let or = Advice::Raise(Setting::Fpr);
        Err(self.too_large(keys, needed, or))
    }

    /// The error of a filter that does not fit; `alternative` is the advice besides a higher limit.
    pub(super) fn too_large(&self, capacity: u64, needed: u64, alternative: Advice) -> Error {
        let (fpr, available) = (self.target_fpr(), self.max_bytes());
        let limit = match self.memory_limit {
            Some(_) => "the limit",
            None => "half of the memory of this machine",
        };
        if let Some(bits) = self.bits {
            let problem = format!(
                "a filter of {} bits takes {}, more than {}, {limit}",
                format_count(bits),
                format_size(needed),
                format_size(available)
            );
            return Error::new(ErrorKind::Memory, problem)
                .advise(Advice::Raise(Setting::MemoryLimit))
                .advise(Advice::Lower(Setting::Bits));
        }
        Error::filter_too_large(capacity, fpr, needed, available, limit).advise(alternative)
    }
}

/// The relation of size, keys and rate of a Bloom filter.
struct SizeModel {
    bytes_for_fpr: fn(u64, f64) -> petal::Result<u64>,
    fpr_in_bytes: fn(u64, u64) -> petal::Result<f64>,
    /// Size in multiples of a plain Bloom filter.
    times: u64,
}

impl SizeModel {
    /// `None` for types that are not Bloom filters of fixed size.
    fn of(kind: FilterType, width: Option<u32>, least_space: bool) -> Option<Self> {
        let times = match kind {
            Bloom | Classic => 1,
            Counting | CountingClassic => width.unwrap_or(FilterSpec::DEFAULT_COUNTER_WIDTH).into(),
            Wide => 2,
            _ => return None,
        };
        Some(match kind {
            // Two halves at the square root of the rate each, without the share of the hash.
            Wide => Self {
                bytes_for_fpr: |keys, rate| {
                    Ok(BlockedLayout::for_fpr(keys, rate.sqrt())?.size_bytes())
                },
                fpr_in_bytes: |bytes, keys| {
                    Ok(BlockedLayout::for_memory(keys, ByteSize::bytes(bytes))?.fpr(keys).powi(2))
                },
                times,
            },
            Classic | CountingClassic => Self {
                bytes_for_fpr: match least_space {
                    true => {
                        |keys, rate| Ok(ClassicLayout::for_least_space(keys, rate)?.size_bytes())
                    }
                    false => |keys, rate| Ok(ClassicLayout::for_fpr(keys, rate)?.size_bytes()),
                },
                fpr_in_bytes: |bytes, keys| {
                    Ok(ClassicLayout::for_memory(keys, ByteSize::bytes(bytes))?.fpr(keys))
                },
                times,
            },
            _ => Self {
                bytes_for_fpr: match least_space {
                    true => {
                        |keys, rate| Ok(BlockedLayout::for_least_space(keys, rate)?.size_bytes())
                    }
                    false => |keys, rate| Ok(BlockedLayout::for_fpr(keys, rate)?.size_bytes()),
                },
                fpr_in_bytes: |bytes, keys| {
                    Ok(BlockedLayout::for_memory(keys, ByteSize::bytes(bytes))?.fpr(keys))
                },
                times,
            },
        })
    }

    /// Bytes that `keys` keys take at a rate.
    fn needed(&self, keys: u64, rate: f64) -> petal::Result<u64> {
        (self.bytes_for_fpr)(keys, rate).map(|bytes| bytes.saturating_mul(self.times))
    }

    /// The lowest rate of `keys` keys in `memory` bytes.
    fn best(&self, memory: u64, keys: u64) -> petal::Result<f64> {
        (self.fpr_in_bytes)(memory / self.times, keys)
    }
}
