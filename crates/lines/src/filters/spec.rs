//! The specification of a filter of lines, and its plan: the library's, within the memory limit.
//!
//! Building from the same specification and the same lines gives the same filter, bit for bit.
//! Conflicting settings are an error before any input is read.

use petal::FilterType::{
    Bloom, Cascade, Classic, Counting, CountingClassic, Quotient, Scalable, VectorQuotient,
    Windowed,
};
use petal::{AnyFilter, ByteSize, FilterType, HashSpec, Plan};

use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::input::Source;
use crate::numbers::{format_count, format_keys, format_rate, format_size};

/// Growth of a quotient filter without a maximum capacity: four bits per key.
const GROWTH: u64 = 16;

/// The specification of a filter of lines; `None` selects the default.
#[derive(Clone, Debug, Default)]
pub struct FilterSpec {
    /// Filter type. Default: the type that the other settings imply, else a Bloom filter.
    pub filter_type: Option<FilterType>,
    /// Number of lines to plan for. Default: the lines of the inputs, counted in a pass before.
    pub capacity: Option<u64>,
    /// Target false-positive rate. Default: [`DEFAULT_FPR`](Self::DEFAULT_FPR), or the lowest rate
    /// that fits if only `size` is given.
    pub fpr: Option<f64>,
    /// Number of bits of a Bloom filter, or of counters of a counting filter. Beside it, `probes`,
    /// `capacity` or `fpr` may be missing. With `probes` alone the filter has no plan: its capacity
    /// and target rate are 0.
    pub bits: Option<u64>,
    /// Bits that a line sets. Default: the best number.
    pub probes: Option<u32>,
    /// Choose the fewest bits for the rate, at the cost of time. Excludes `bits` and `probes`, and
    /// `size` without `fpr`.
    pub least_space: bool,
    /// Maximum size of the filter in bytes. Default: what the memory limit of the job leaves.
    pub size: Option<u64>,
    /// Bits per counter of a counting filter. Default:
    /// [`COUNTER_WIDTH`](petal::FilterSpec::COUNTER_WIDTH).
    pub width: Option<u32>,
    /// Build a filter that grows.
    pub growing: bool,
    /// Maximum number of lines of a growing quotient filter.
    pub max_capacity: Option<u64>,
    /// Window of a windowed filter, in seconds.
    pub window: Option<u64>,
    /// Window of a windowed filter, in lines.
    pub last: Option<u64>,
    /// Current time in seconds since any epoch, for a window in seconds.
    pub now: u64,
    /// Inputs whose lines a cascade does not contain.
    pub not_in: Vec<Source>,
    /// Seed of the hash. Not a secret: use `keyed` for lines that an adversary may choose.
    pub seed: u64,
    /// Use a hash with a new random secret.
    pub keyed: bool,
    /// Use this hash, whatever `seed` and `keyed` are.
    pub own_hash: Option<HashSpec>,
}

/// Returns the bytes of a new random secret.
///
/// # Errors
/// If the system has no random bytes.
pub fn random_key() -> Result<[u8; 16]> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|_| Error::random())?;
    Ok(key)
}

impl FilterSpec {
    /// The default false-positive rate.
    pub const DEFAULT_FPR: f64 = 0.01;

    /// Returns the filter type: the given one, else the one that the other settings imply.
    ///
    /// # Errors
    /// If settings conflict, or a setting that the type requires is missing.
    pub fn filter_type(&self) -> Result<FilterType> {
        let implied = |is_set: bool, filter_type: FilterType| is_set.then_some(filter_type);
        let filter_type = self.filter_type.or(implied(!self.not_in.is_empty(), Cascade));
        let filter_type = filter_type.or(implied(self.max_capacity.is_some(), Quotient));
        let forgets = self.window.is_some() || self.last.is_some();
        let filter_type = filter_type.or(implied(forgets, Windowed));
        let filter_type = filter_type.or(implied(self.growing, Scalable)).unwrap_or(Bloom);
        self.check_settings_of_type(filter_type)?;
        if filter_type == Cascade && self.not_in.is_empty() {
            let problem = "a cascade filter needs the lines that it must not contain";
            return Err(Error::setting_is(Setting::FilterType, problem)
                .advise(Advice::Specify(Setting::NotIn)));
        }
        if filter_type == Windowed && !forgets {
            let problem = "a windowed filter needs a limit after which it forgets lines";
            return Err(Error::setting_is(Setting::FilterType, problem)
                .advise(Advice::Specify(Setting::Window))
                .advise(Advice::Specify(Setting::Last)));
        }
        if self.last.is_some() && (self.window.is_some() || self.capacity.is_some()) {
            let problem = "determines the lines in the filter, so other limits conflict with it";
            return Err(Error::setting_is(Setting::Last, problem)
                .advise_any(self.window.map(|_| Advice::Omit(Setting::Window)))
                .advise_any(self.capacity.map(|_| Advice::Omit(Setting::Capacity))));
        }
        self.check_least_space()?;
        if filter_type.is_fixed() && self.capacity.is_some() {
            let problem =
                format!("a {filter_type} filter is sized by the lines that it is built from");
            return Err(Error::setting_is(Setting::Capacity, problem)
                .advise(Advice::Omit(Setting::Capacity)));
        }
        let minimum = petal::FilterSpec::MIN_STATIC_FPR;
        let too_low = |fpr: f64| 0.0 < fpr && fpr < minimum;
        if filter_type.is_fixed() && self.fpr.is_some_and(too_low) {
            let problem = format!(
                "a {filter_type} filter has at most 32 bits for a line, and {minimum:e} is the \
                 lowest rate of that"
            );
            return Err(Error::setting_is(Setting::Fpr, problem)
                .advise(Advice::Raise(Setting::Fpr))
                .advise(Advice::UseType(&[Bloom])));
        }
        let sized_by_rate = filter_type.is_fixed()
            || matches!(filter_type, Scalable | Quotient | VectorQuotient | Windowed);
        if sized_by_rate && self.is_sized_by_memory() {
            let problem =
                format!("memory alone does not determine the size of a {filter_type} filter");
            return Err(
                Error::setting_is(Setting::Size, problem).advise(Advice::Specify(Setting::Fpr))
            );
        }
        Ok(filter_type)
    }

    /// Returns an error if a setting does not apply to the type.
    ///
    /// # Errors
    /// As the first line says; the error names the setting and the types that have it.
    pub fn check_settings_of_type(&self, filter_type: FilterType) -> Result<()> {
        use Setting::{
            Bits, CounterWidth, Growing, Last, LeastSpace, MaxCapacity, NotIn, Probes, Window,
        };
        const BLOOM: &[FilterType] = &[Bloom, Classic, Counting, CountingClassic];
        const ONE_BLOCK: &str = "has all bits of a line in one block, at most 16";
        let many = self.probes.is_some_and(|probes| probes > 16);
        let rules: [(bool, Setting, &'static [FilterType], &str); 11] = [
            (self.bits.is_some(), Bits, BLOOM, "is not sized by a number of bits"),
            (self.probes.is_some(), Probes, BLOOM, "has no free number of probes"),
            (many && filter_type == Bloom, Probes, &[Classic], ONE_BLOCK),
            (many && filter_type == Counting, Probes, &[CountingClassic], ONE_BLOCK),
            (self.least_space, LeastSpace, BLOOM, "has one size for each rate"),
            (self.width.is_some(), CounterWidth, &[Counting, CountingClassic], "has no counters"),
            (self.growing, Growing, &[Scalable, Quotient], "does not grow"),
            (self.max_capacity.is_some(), MaxCapacity, &[Quotient], "has no maximum capacity"),
            (self.window.is_some(), Window, &[Windowed], "forgets no lines"),
            (self.last.is_some(), Last, &[Windowed], "forgets no lines"),
            (!self.not_in.is_empty(), NotIn, &[Cascade], "has no known non-members"),
        ];
        for (is_set, setting, types, reason) in rules {
            if is_set && !types.contains(&filter_type) {
                let problem = format!("a {filter_type} filter {reason}");
                return Err(Error::setting_is(setting, problem)
                    .advise(Advice::Omit(setting))
                    .advise(Advice::UseType(types)));
            }
        }
        Ok(())
    }

    /// Returns an error if `least_space` conflicts with a setting that determines the size.
    fn check_least_space(&self) -> Result<()> {
        let conflicts: &[Setting] = match (self.bits, self.probes) {
            (Some(_), None) => &[Setting::Bits],
            (None, Some(_)) => &[Setting::Probes],
            (Some(_), Some(_)) => &[Setting::Bits, Setting::Probes],
            (None, None) if self.is_sized_by_memory() => &[Setting::Size],
            (None, None) => &[],
        };
        if self.least_space && !conflicts.is_empty() {
            let problem = "capacity and false-positive rate determine the size";
            return Err(Error::setting_is(Setting::LeastSpace, problem)
                .advise_any(conflicts.iter().copied().map(Advice::Omit)));
        }
        Ok(())
    }

    /// Returns the hash. With `keyed`, each call generates a new secret.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn hash(&self) -> Result<HashSpec> {
        if let Some(hash) = self.own_hash {
            return Ok(hash);
        }
        if !self.keyed {
            return Ok(HashSpec::rapid(self.seed));
        }
        random_key().map(HashSpec::keyed)
    }

    /// The target rate, unless only the maximum size is given.
    pub(super) fn target_fpr(&self) -> f64 {
        self.fpr.unwrap_or(Self::DEFAULT_FPR)
    }

    /// Whether the maximum size alone determines the size.
    fn is_sized_by_memory(&self) -> bool {
        self.size.is_some() && self.fpr.is_none() && self.bits.is_none()
    }

    /// Whether the size follows from the bits, and the plan needs no number of lines.
    pub(super) fn is_sized_without_capacity(&self) -> bool {
        self.bits.is_some() && (self.probes.is_some() || self.fpr.is_some())
    }

    /// The maximum size of the filter in bytes, of which a job has `memory`.
    pub(super) fn max_bytes(&self, memory: u64) -> u64 {
        self.size.map_or(memory, |size| size.min(memory))
    }

    /// Returns the size and the rates of the filter that [`build`](crate::build) makes for `keys`
    /// lines, without allocating it.
    ///
    /// # Errors
    /// As `build`; the filter may be larger than the available memory.
    pub fn plan(&self, keys: u64) -> Result<Plan> {
        let kind = self.filter_type()?;
        let limited = Self {
            fpr: self.fpr.or_else(|| {
                let is_free = self.size.is_none() && self.bits.is_none();
                is_free.then_some(Self::DEFAULT_FPR)
            }),
            ..self.clone()
        };
        limited.plan_within(kind, keys, u64::MAX)
    }

    /// Returns the empty filter for `keys` lines, of at most `memory` bytes.
    pub(super) fn empty(&self, kind: FilterType, keys: u64, memory: u64) -> Result<AnyFilter> {
        let plan = self.plan_within(kind, keys, memory)?;
        let mut filter = plan.build().map_err(|error| self.explain(kind, error))?;
        if let AnyFilter::Windowed(filter) = &mut filter {
            filter.advance_to(self.now);
        }
        Ok(filter)
    }

    fn plan_within(&self, kind: FilterType, keys: u64, memory: u64) -> Result<Plan> {
        let spec = self.library_spec(kind, keys)?;
        let plan = spec.plan().map_err(|error| self.explain(kind, error))?;
        if plan.size_bytes() <= self.max_bytes(memory) {
            return Ok(plan);
        }
        let alternative = match kind {
            Bloom | Classic | Counting | CountingClassic if self.probes.is_none() => {
                self.fitting_rate(&spec, memory)
            }
            VectorQuotient => Advice::Lower(Setting::Capacity),
            Quotient if spec.max_capacity.is_none() => Advice::Lower(Setting::Capacity),
            _ => Advice::Raise(Setting::Fpr),
        };
        Err(self.too_large(plan.capacity(), plan.size_bytes(), memory, alternative))
    }

    /// Returns the library's specification of the filter for `keys` lines. The memory limit is in it
    /// only if it determines the size.
    fn library_spec(&self, kind: FilterType, keys: u64) -> Result<petal::FilterSpec> {
        if kind == Cascade {
            let problem = format!("a {kind} filter cannot be built from lines");
            return Err(Error::setting_is(Setting::FilterType, problem));
        }
        if let Some(max) = self.max_capacity.filter(|max| *max < keys) {
            let problem = format!(
                "{} is less than the initial capacity of {}",
                format_keys(max),
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
        if let Some(size) = self.size.filter(|_| self.is_sized_by_memory()) {
            spec.memory = Some(ByteSize::bytes(size));
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
    fn fitting_rate(&self, spec: &petal::FilterSpec, memory: u64) -> Advice {
        let memory = Some(ByteSize::bytes(self.max_bytes(memory)));
        let fitting = petal::FilterSpec { fpr: None, least_space: false, memory, ..*spec };
        let best = fitting.plan().ok().map(|plan| plan.target_fpr()).filter(|best| *best < 0.5);
        match best {
            Some(best) if self.size.is_some() && !self.least_space => Advice::OmitFpr(best),
            Some(best) => Advice::AcceptFpr(best * 1.001),
            None => Advice::Lower(Setting::Capacity),
        }
    }

    /// Returns an error if a filter is larger than the limit.
    pub(super) fn check_size(&self, filter: &AnyFilter) -> Result<()> {
        let (keys, needed) = (filter.as_dyn().capacity(), filter.as_dyn().size_bytes());
        if needed <= self.max_bytes(u64::MAX) {
            return Ok(());
        }
        Err(self.too_large(keys, needed, u64::MAX, Advice::Raise(Setting::Fpr)))
    }

    /// The error of a filter that does not fit in its maximum size or in `memory`; `alternative` is the
    /// advice besides a higher limit.
    fn too_large(&self, capacity: u64, needed: u64, memory: u64, alternative: Advice) -> Error {
        let (fpr, available) = (self.target_fpr(), self.max_bytes(memory));
        let (limit, raise) = match self.size {
            Some(size) if size <= memory => ("the limit", Setting::Size),
            _ => ("what the memory limit leaves", Setting::MemoryLimit),
        };
        if let Some(bits) = self.bits {
            let problem = format!(
                "a filter of {} bits takes {}, more than {}, {limit}",
                format_count(bits),
                format_size(needed),
                format_size(available)
            );
            return Error::new(ErrorKind::Memory, problem)
                .advise(Advice::Raise(raise))
                .advise(Advice::Lower(Setting::Bits));
        }
        Error::filter_too_large(capacity, fpr, needed, available, limit, raise).advise(alternative)
    }
}
