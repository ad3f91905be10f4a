//! The plan of a filter of lines: the library's, within the memory limit.

use petal::FilterType::{
    Bloom, Cascade, Classic, Counting, CountingClassic, Quotient, Scalable, VectorQuotient,
    Windowed,
};
use petal::{AnyFilter, ByteSize, FilterType, Plan};

use super::spec::FilterSpec;
use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::numbers::{format_count, format_keys, format_rate, format_size};

/// Growth of a quotient filter without a maximum capacity: four bits per key.
const GROWTH: u64 = 16;

impl FilterSpec {
    /// Returns the size and the rates of the filter that [`build`](Self::build) makes for `keys`
    /// lines, without allocating it.
    ///
    /// # Errors
    /// As `build`; without a memory limit, the filter may be larger than the available memory.
    pub fn plan(&self, keys: u64) -> Result<Plan> {
        let kind = self.filter_type()?;
        let limited = Self {
            memory_limit: self.memory_limit.or(Some(u64::MAX)),
            fpr: self.fpr.or_else(|| {
                let is_free = self.memory_limit.is_none() && self.bits.is_none();
                is_free.then_some(Self::DEFAULT_FPR)
            }),
            ..self.clone()
        };
        limited.plan_within_limit(kind, keys)
    }

    /// Returns the empty filter for `keys` lines.
    pub(super) fn empty(&self, kind: FilterType, keys: u64) -> Result<AnyFilter> {
        let plan = self.plan_within_limit(kind, keys)?;
        let mut filter = plan.build().map_err(|error| self.explain(kind, error))?;
        if let AnyFilter::Windowed(filter) = &mut filter {
            filter.advance_to(self.now);
        }
        Ok(filter)
    }

    fn plan_within_limit(&self, kind: FilterType, keys: u64) -> Result<Plan> {
        let spec = self.library_spec(kind, keys)?;
        let plan = spec.plan().map_err(|error| self.explain(kind, error))?;
        if plan.size_bytes() <= self.max_bytes() {
            return Ok(plan);
        }
        let alternative = match kind {
            Bloom | Classic | Counting | CountingClassic if self.probes.is_none() => {
                self.fitting_rate(&spec)
            }
            VectorQuotient => Advice::Lower(Setting::Capacity),
            Quotient if spec.max_capacity.is_none() => Advice::Lower(Setting::Capacity),
            _ => Advice::Raise(Setting::Fpr),
        };
        Err(self.too_large(plan.capacity(), plan.size_bytes(), alternative))
    }

    /// Returns the library's specification of the filter for `keys` lines. The memory limit is in it
    /// only if it determines the size.
    fn library_spec(&self, kind: FilterType, keys: u64) -> Result<petal::FilterSpec> {
        if kind == Cascade {
            let problem = format!("a {kind} filter cannot be built from lines");
            return Err(Error::setting_is(Setting::FilterType, problem));
        }
        if let Some(most) = self.max_capacity.filter(|most| *most < keys) {
            let problem = format!(
                "{} is less than the initial capacity of {}",
                format_keys(most),
                format_count(keys)
            );
            return Err(Error::setting_is(Setting::MaxCapacity, problem)
                .advise(Advice::Raise(Setting::MaxCapacity)));
        }
        let mut spec = petal::FilterSpec::new(kind);
        spec.capacity = match kind {
            // Without a capacity the first layer has that of the library.
            Scalable => self.capacity,
            Windowed => Some(self.last.unwrap_or(keys)),
            // Without a number of lines there is no plan.
            _ if self.bits.is_some() && keys == 0 => None,
            _ => Some(keys),
        };
        (spec.bits, spec.probes, spec.least_space) = (self.bits, self.probes, self.least_space);
        spec.counter_width = self.width.unwrap_or(petal::FilterSpec::COUNTER_WIDTH);
        let growth = (kind == Quotient && self.growing).then(|| keys.saturating_mul(GROWTH));
        spec.max_capacity = self.max_capacity.or(growth);
        (spec.window, spec.hash) = (self.window, self.hash()?);
        if self.is_sized_by_memory() {
            spec.memory = Some(ByteSize::bytes(self.max_bytes()));
            // More memory would be wasted.
            spec.lowest_fpr = Some(petal::FilterSpec::USEFUL_FPR);
        } else {
            spec.fpr = if self.bits.is_some() { self.fpr } else { Some(self.target_fpr()) };
        }
        Ok(spec)
    }

    /// Replaces the rate of a part of a filter, which the library reports, by that of the whole one.
    fn explain(&self, filter_type: FilterType, error: petal::Error) -> Error {
        if matches!(filter_type, Scalable | Windowed) && error.is_unattainable() {
            let problem = format!(
                "a {filter_type} filter has 64-bit hashes, which collide too often for {}",
                format_rate(self.target_fpr())
            );
            return Error::setting_is(Setting::Fpr, problem).advise(Advice::Raise(Setting::Fpr));
        }
        error.into()
    }

    /// The advice to take the rate that fits the limit; a filter that reports most keys as present is
    /// not advised.
    fn fitting_rate(&self, spec: &petal::FilterSpec) -> Advice {
        let memory = Some(ByteSize::bytes(self.max_bytes()));
        let fitting = petal::FilterSpec { fpr: None, least_space: false, memory, ..*spec };
        let best = fitting.plan().ok().map(|plan| plan.target_fpr()).filter(|best| *best < 0.5);
        match best {
            Some(best) if self.memory_limit.is_some() && !self.least_space => Advice::OmitFpr(best),
            Some(best) => Advice::AcceptFpr(best * 1.001),
            None => Advice::Lower(Setting::Capacity),
        }
    }

    /// Returns an error if a filter is larger than the limit.
    pub(super) fn check_size(&self, filter: &AnyFilter) -> Result<()> {
        let (keys, needed) = (filter.as_dyn().capacity(), filter.as_dyn().size_bytes());
        if needed <= self.max_bytes() {
            return Ok(());
        }
        Err(self.too_large(keys, needed, Advice::Raise(Setting::Fpr)))
    }

    /// The error of a filter that does not fit; `alternative` is the advice besides a higher limit.
    fn too_large(&self, capacity: u64, needed: u64, alternative: Advice) -> Error {
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
