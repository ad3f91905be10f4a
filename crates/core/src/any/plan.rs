//! What a filter will be and cost, before it is built.
//!
//! A plan is calculated by the functions that `build` calls, too. No memory is allocated for the
//! filter, so that any size can be planned.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

use super::AnyFilter;
use crate::byte_size::ByteSize;
use crate::counting::{self, CountingFilter};
use crate::error::{Error, Result};
use crate::filter::layout::Layout;
use crate::filter::layout::sealed::{AnyLayout, LayoutImpl as _};
use crate::filter::size;
use crate::filter::{Filter, FilterInfo};
use crate::format::header::PAGE;
use crate::format::kind::FilterType;
use crate::layout::{BlockedLayout, ClassicLayout, largest_fitting};
use crate::math;
use crate::quotient::{self, QuotientFilter, QuotientLayout};
use crate::scalable::plan::LayerPlan;
use crate::scalable::{self, ScalableBloomFilter};
use crate::spec::{BuildEmpty, Builder, FilterSpec};
use crate::static_filter::{self, StaticFilter};
use crate::store::CacheLine;
use crate::vector_quotient::{self, VectorQuotientFilter, VectorQuotientLayout};
use crate::windowed::plan::WindowPlan;
use crate::windowed::{self, WindowedBloomFilter};

/// What a filter will be and cost: its size, its rate at any number of keys.
///
/// ```
/// use petal::QuotientFilter;
///
/// let plan = QuotientFilter::builder().capacity(100_000_000_000).fpr(1e-3).plan()?;
/// assert!(plan.size_bytes() > 100 << 30 && plan.expected_fpr(1_000) < 1e-3);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    spec: FilterSpec,
    info: FilterInfo,
    shape: Shape,
}

/// The dimensions of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Blocked(BlockedLayout),
    Classic(ClassicLayout),
    Quotient(QuotientLayout),
    VectorQuotient(VectorQuotientLayout),
    /// The plan of all layers, and the layout of the first.
    Scalable(LayerPlan, BlockedLayout),
    /// The plan, and the layout of a generation.
    Windowed(WindowPlan, BlockedLayout),
    /// The number of bits.
    Static(u64),
}

impl Plan {
    /// Returns a specification that makes this filter without a search: the capacity with the rate,
    /// or with bits and probes.
    #[must_use]
    pub fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Returns the type of the filter.
    #[must_use]
    pub fn filter_type(&self) -> FilterType {
        self.spec.filter_type
    }

    /// Returns the capacity; 0 if only bits and probes were given.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.info.capacity
    }

    /// Returns the capacity, or, if only bits and probes were given, the number of keys at which half of
    /// the bits are set.
    #[must_use]
    pub fn best_capacity(&self) -> u64 {
        match (self.info.capacity, self.shape) {
            (0, Shape::Blocked(layout)) => half_full(&layout),
            (0, Shape::Classic(layout)) => half_full(&layout),
            (capacity, _) => capacity,
        }
    }

    /// Returns the number of bits for each key at the best capacity.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.bits() as f64 / self.best_capacity() as f64
    }

    /// Returns the false-positive rate at twice the best capacity; `None` if the filter takes no more keys.
    #[must_use]
    pub fn fpr_at_double_capacity(&self) -> Option<f64> {
        let double = self.best_capacity().saturating_mul(2);
        (!self.filter_type().is_fixed()).then(|| self.expected_fpr(double))
    }

    /// Returns the target false-positive rate; 0 if only bits and probes were given.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        self.info.target_fpr
    }

    /// Returns the number of bits, without the unused ones of the last cache line. For a ribbon it is
    /// approximate, and small ribbons take more; for a fuse filter it is an upper bound with
    /// overwhelming probability.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let width = u64::from(self.spec.bits_per_position());
        match self.shape {
            Shape::Blocked(layout) => layout.bits().saturating_mul(width),
            Shape::Classic(layout) => layout.bits().saturating_mul(width),
            Shape::Static(bits) => bits,
            _ => self.size_bytes().saturating_mul(8),
        }
    }

    /// Returns the size of the empty filter in bytes, as
    /// [`Membership::size_bytes`](crate::Membership::size_bytes).
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let width = u64::from(self.spec.bits_per_position());
        match self.shape {
            Shape::Blocked(layout) => bytes(layout.lines(), width),
            Shape::Classic(layout) => bytes(layout.lines(), width),
            Shape::Quotient(layout) => layout.size_bytes(),
            Shape::VectorQuotient(layout) => layout.size_bytes(),
            // One line for each layer.
            Shape::Scalable(_, layout) => layout.size_bytes() + CacheLine::BYTES as u64,
            Shape::Windowed(plan, layout) => bytes(layout.lines(), plan.generations.into()),
            Shape::Static(bits) => bits / 8,
        }
    }

    /// Returns the size of the file in bytes, with up to 3840 bytes of metadata.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.size_bytes().saturating_add(PAGE)
    }

    /// Returns the number of bits of a key; `None` for types without such a number, or with several.
    #[must_use]
    pub fn probes(&self) -> Option<u32> {
        match self.shape {
            Shape::Blocked(layout) | Shape::Windowed(_, layout) => Some(layout.probes()),
            Shape::Classic(layout) => Some(layout.probes()),
            _ => None,
        }
    }

    /// Describes the layout in words, as [`Membership::describe`](crate::Membership::describe).
    #[must_use]
    pub fn describe(&self) -> String {
        let counters = match self.spec.bits_per_position() {
            1 => String::new(),
            width => format!(", counters of {width} bits"),
        };
        match self.shape {
            Shape::Blocked(layout) => layout.describe() + &counters,
            Shape::Classic(layout) => layout.describe() + &counters,
            Shape::Quotient(layout) => layout.describe(),
            Shape::VectorQuotient(layout) => layout.describe(),
            Shape::Scalable(_, layout) => format!("1 layer, the newest of {}", layout.describe()),
            Shape::Windowed(plan, layout) => {
                format!("{} generations of {}", plan.generations, layout.describe())
            }
            Shape::Static(_) if self.filter_type() == FilterType::StaticFuse => {
                "maximum size".to_owned()
            }
            Shape::Static(_) => "approximate size".to_owned(),
        }
    }

    /// Returns the false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        match self.shape {
            Shape::Blocked(layout) => layout.fpr(keys),
            Shape::Classic(layout) => layout.fpr(keys),
            Shape::Quotient(layout) => layout.fpr(keys),
            Shape::VectorQuotient(layout) => layout.fpr(keys),
            Shape::Scalable(plan, _) => plan.expected_fpr(keys, |_| None),
            Shape::Windowed(plan, layout) => plan.expected_fpr(layout, keys),
            Shape::Static(_) => self.info.target_fpr,
        }
    }

    /// Returns the number of bits that no filter of this capacity and rate can be smaller than: see
    /// [`math::information_bits`].
    #[must_use]
    pub fn information_bits(&self) -> f64 {
        let capacity = self.best_capacity();
        capacity as f64 * math::information_bits(self.expected_fpr(capacity))
    }

    /// Creates the empty filter.
    ///
    /// # Errors
    /// If memory allocation fails, or the type is built from all its keys at once.
    pub fn build(&self) -> Result<AnyFilter> {
        let Self { spec: FilterSpec { hash, counter_width: width, .. }, info, shape } = *self;
        let counters = self.spec.bits_per_position() > 1;
        Ok(match shape {
            Shape::Blocked(layout) if counters => {
                CountingFilter::empty(layout, hash, info, width)?.into()
            }
            Shape::Classic(layout) if counters => {
                CountingFilter::empty(layout, hash, info, width)?.into()
            }
            Shape::Blocked(layout) => Filter::empty(layout, hash, info)?.into(),
            Shape::Classic(layout) => Filter::empty(layout, hash, info)?.into(),
            Shape::Quotient(layout) => {
                let growing = self.spec.max_capacity.is_some();
                QuotientFilter::empty(layout, hash, info, growing)?.into()
            }
            Shape::VectorQuotient(layout) => {
                VectorQuotientFilter::empty(layout, hash, info)?.into()
            }
            Shape::Scalable(plan, _) => ScalableBloomFilter::empty(plan)?.into(),
            Shape::Windowed(plan, _) => WindowedBloomFilter::empty(plan, hash)?.into(),
            Shape::Static(_) => return Err(not_empty(self.filter_type())),
        })
    }
}

impl FilterSpec {
    /// Returns what the filter will be and cost, without allocating its memory.
    ///
    /// # Errors
    /// If fields are missing, contradict each other or are not of this type; if no filter keeps the
    /// rate or fits the memory. A cascade has no plan: its size depends on both of its lists.
    pub fn plan(&self) -> Result<Plan> {
        self.check_fields()?;
        match self.filter_type {
            FilterType::Bloom => bloom::<BlockedLayout>(self, size::dimensions(self, 1)),
            FilterType::Classic => bloom::<ClassicLayout>(self, size::dimensions(self, 1)),
            FilterType::Counting => bloom::<BlockedLayout>(self, counting::dimensions(self)),
            FilterType::CountingClassic => bloom::<ClassicLayout>(self, counting::dimensions(self)),
            FilterType::Cascade => Err(not_empty(self.filter_type)),
            _ => self.plan_by_rate(),
        }
    }

    /// Plans a type that is sized by capacity and rate. Searches one of them if the memory is given in
    /// its place.
    fn plan_by_rate(&self) -> Result<Plan> {
        let with = |capacity, fpr| {
            Self { capacity: Some(capacity), fpr: Some(fpr), memory: None, ..*self }.plan_of_rate()
        };
        let fits = |plan: Result<Plan>, memory: ByteSize| {
            plan.is_ok_and(|plan| plan.size_bytes() <= memory.as_u64())
        };
        match (self.capacity, self.fpr, self.memory) {
            (None, Some(fpr), Some(memory)) => {
                let capacity = largest_fitting(|keys| fits(with(keys, fpr), memory));
                let plan = with(capacity.max(1), fpr)?;
                check_keys(capacity, memory, plan.size_bytes())?;
                Ok(plan)
            }
            (Some(capacity), None, Some(memory)) if self.table_size.is_none() => {
                let fpr = lowest_fitting(|fpr| fits(with(capacity, fpr), memory));
                let fpr = fpr.ok_or_else(|| {
                    let needed = with(capacity, HIGHEST).map_or(0, |plan| plan.size_bytes());
                    Error::over_limit(memory.as_u64(), needed)
                })?;
                with(capacity, fpr)
            }
            (_, _, memory) => {
                let plan = self.plan_of_rate()?;
                if let Some(limit) = memory {
                    size::check_memory(limit, plan.size_bytes())?;
                }
                Ok(plan)
            }
        }
    }

    fn plan_of_rate(&self) -> Result<Plan> {
        let (shape, info) = match self.filter_type {
            FilterType::Quotient => {
                let (layout, info) = quotient::dimensions(self)?;
                (Shape::Quotient(layout), info)
            }
            FilterType::VectorQuotient => {
                let (layout, info) = vector_quotient::dimensions(self)?;
                (Shape::VectorQuotient(layout), info)
            }
            FilterType::Scalable => {
                let plan = scalable::dimensions(self)?;
                let info = FilterInfo::planned(plan.first(), plan.fpr());
                (Shape::Scalable(plan, plan.layout(0)?), info)
            }
            FilterType::Windowed => {
                let plan = windowed::dimensions(self)?;
                (Shape::Windowed(plan, plan.layout()?), FilterInfo::planned(plan.keys, plan.fpr))
            }
            _ => {
                let (bits, info) = static_filter::dimensions(self)?;
                (Shape::Static(bits), info)
            }
        };
        Ok(Plan { spec: Self { memory: None, ..*self }, info, shape })
    }

    /// Bits of a position: those of a counter, or 1.
    fn bits_per_position(&self) -> u32 {
        match self.filter_type {
            FilterType::Counting | FilterType::CountingClassic => self.counter_width,
            _ => 1,
        }
    }
}

impl AnyFilter {
    /// Creates the empty filter of a specification.
    ///
    /// # Errors
    /// As of [`FilterSpec::plan`]; if memory allocation fails, or the type is built from all its keys
    /// at once.
    pub fn build(spec: &FilterSpec) -> Result<Self> {
        spec.plan()?.build()
    }
}

/// Returns the plan of a Bloom filter or a counting filter.
fn bloom<L: Layout>(spec: &FilterSpec, dimensions: Result<(L, FilterInfo)>) -> Result<Plan> {
    let (layout, info) = dimensions?;
    let by_rate = spec.fpr.is_some() && spec.bits.is_none();
    let none = FilterSpec { memory: None, lowest_fpr: None, ..*spec };
    let spec = match by_rate {
        // With memory and probes the size is that of the memory.
        true if spec.memory.is_none() || spec.probes.is_none() || spec.capacity.is_some() => {
            FilterSpec { capacity: Some(info.capacity), ..none }
        }
        _ => FilterSpec {
            capacity: Some(info.capacity).filter(|capacity| *capacity > 0),
            bits: Some(layout.bits()),
            probes: Some(layout.fields().probes.into()),
            ..none
        },
    };
    let shape = match layout.into_any() {
        AnyLayout::Blocked(layout) => Shape::Blocked(layout),
        AnyLayout::Classic(layout) => Shape::Classic(layout),
    };
    Ok(Plan { spec, info, shape })
}

/// Returns the bytes of `times` · `lines` lines.
fn bytes(lines: u64, times: u64) -> u64 {
    lines.saturating_mul(times).saturating_mul(CacheLine::BYTES as u64)
}

fn half_full<L: Layout>(layout: &L) -> u64 {
    math::half_full_capacity(layout.bits(), layout.fields().probes.into())
}

/// Returns an error if no key fits the memory; one takes `needed` bytes.
fn check_keys(capacity: u64, memory: ByteSize, needed: u64) -> Result<()> {
    if capacity == 0 { Err(Error::over_limit(memory.as_u64(), needed)) } else { Ok(()) }
}

fn not_empty(filter_type: FilterType) -> Error {
    let reason = "is built from all its keys at once";
    Error::unsupported(filter_type.name(), reason, "build it from them")
}

/// The highest rate that a search returns.
const HIGHEST: f64 = 0.999;

/// Returns the lowest rate that fits, rounded up to four digits, so that it can be written down;
/// `None` if none does.
fn lowest_fitting(fits: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (1e-30_f64.ln(), HIGHEST.ln());
    if !fits(HIGHEST) {
        return None;
    }
    while high - low > 1e-5 {
        let middle = (low + high) / 2.0;
        if fits(middle.exp()) { high = middle } else { low = middle }
    }
    let rounded: f64 = format!("{:.3e}", high.exp() * 1.0006).parse().ok()?;
    Some(rounded.min(HIGHEST))
}

impl Builder<StaticFilter> {
    /// Returns what the filter of `capacity` keys will be and cost.
    ///
    /// # Errors
    /// As [`FilterSpec::plan`], and if a field is set that this builder does not use.
    pub fn plan(&self) -> Result<Plan> {
        self.spec.check_fixed()?;
        self.spec.plan()
    }
}

impl<F: BuildEmpty> Builder<F> {
    /// Returns what the filter will be and cost, without allocating its memory.
    ///
    /// # Errors
    /// As [`FilterSpec::plan`].
    pub fn plan(&self) -> Result<Plan> {
        self.spec.plan()
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// As [`plan`](Self::plan), and if memory allocation fails.
    pub fn build(self) -> Result<F> {
        let spec = self.spec;
        if spec.memory.is_some() && !spec.is_bloom() {
            return F::build_empty(self.plan()?.spec());
        }
        spec.check_fields()?;
        F::build_empty(&spec)
    }
}
