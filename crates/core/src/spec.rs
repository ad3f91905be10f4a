//! The description of a filter before it exists, as plain data.
//!
//! [`FilterSpec::plan`](crate::FilterSpec::plan) is in `any/plan.rs`, because it knows all types;
//! each type sizes itself in its builder.

use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;

/// Describes a filter before it exists: its type, what sizes it, and its hash.
///
/// [`plan`](Self::plan) returns what the filter will be and cost,
/// [`AnyFilter::build`](crate::AnyFilter::build) makes it. The builders of the types set the fields
/// one by one.
///
/// Bloom filters and counting filters are sized by two or three of capacity, rate, memory, bits and
/// probes:
///
/// | given | the filter |
/// |---|---|
/// | capacity, rate | is the smallest one |
/// | capacity, memory | has the lowest rate |
/// | rate, memory | has the largest capacity |
/// | bits, and capacity or rate | has the best number of probes |
/// | bits, probes | has neither a planned capacity nor a target rate: both are 0 |
/// | probes, and capacity or memory | has half of its bits set at its capacity |
///
/// Probes beside capacity, rate or memory restrict the choice. Memory beside a pair that sizes the
/// filter is a limit. A rate beside bits and probes must be one that they keep.
///
/// All other types are sized by capacity and rate. Memory may stand for one of them: the plan is then
/// searched.
///
/// ```
/// use petal::{AnyFilter, ByteSize, FilterSpec, FilterType};
///
/// let mut spec = FilterSpec::new(FilterType::Bloom);
/// (spec.fpr, spec.memory) = (Some(0.01), Some(ByteSize::mib(1)));
/// let plan = spec.plan()?;
/// assert!(plan.capacity() > 800_000 && plan.expected_fpr(plan.capacity()) <= 0.01);
/// assert_eq!(AnyFilter::build(&spec)?.as_dyn().size_bytes(), plan.size_bytes());
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FilterSpec {
    /// The type of filter.
    pub filter_type: FilterType,
    /// The number of distinct keys planned for. Of a scalable filter it is that of the first layer
    /// \[default: 65,536\]; of a windowed one, that of the window.
    pub capacity: Option<u64>,
    /// The target false-positive rate at the capacity.
    pub fpr: Option<f64>,
    /// The largest amount of memory for the data.
    pub memory: Option<ByteSize>,
    /// If capacity and memory alone size a Bloom filter, it takes no more memory than this rate
    /// needs.
    pub lowest_fpr: Option<f64>,
    /// The number of bits of a Bloom filter, or of counters.
    pub bits: Option<u64>,
    /// The number of bits, or counters, of a key.
    pub probes: Option<u32>,
    /// Whether a Bloom filter has the fewest bits for the rate, at the cost of time: see
    /// [`Builder::least_space`](crate::Builder::least_space).
    pub least_space: bool,
    /// Bits of a counter, 2 to 8.
    pub counter_width: u32,
    /// How a scalable filter grows.
    pub growth: Growth,
    /// The number of keys up to which a quotient filter grows.
    pub max_capacity: Option<u64>,
    /// The slots of a quotient filter, or the blocks of a vector quotient filter.
    pub slots: Option<u64>,
    /// Bits of a remainder of a quotient filter, or of a tag of a vector quotient filter.
    pub slot_bits: Option<u32>,
    /// The window of a windowed filter in ticks; `None` for a number of keys.
    pub window: Option<u64>,
    /// The number of generations of a windowed filter, 2 to 12.
    pub generations: u32,
    /// The hash of the keys.
    pub hash: HashSpec,
}

/// How a scalable filter grows: see [`ScalableBuilder`](crate::ScalableBuilder).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Growth {
    /// The capacity of a layer divided by that of the layer before it.
    pub factor: u64,
    /// A larger factor after layers for fewer keys than a number: `(factor, keys)`.
    pub head_start: Option<(u64, u64)>,
    /// The layers after the first share 1/n of the rate; `None` for the default series.
    pub share: Option<u64>,
}

impl Default for Growth {
    /// The factor is 2: of 2 to 4 the one with the least unused memory
    /// (docs/design/filters/scalable.md).
    fn default() -> Self {
        Self { factor: 2, head_start: None, share: None }
    }
}

impl FilterSpec {
    /// The default bits of a counter, at which less than one counter in a million is saturated at the
    /// capacity.
    pub const COUNTER_WIDTH: u32 = 4;

    /// The default number of generations: within 3 % of the minimum space at a rate of 1 %, and few
    /// lines per query (docs/design/filters/windowed.md).
    pub const GENERATIONS: u32 = 4;

    /// The lowest rate of a static filter or a cascade: 32 columns, the largest number, have
    /// 2.33 · 10⁻¹⁰.
    pub const MIN_STATIC_FPR: f64 = 2.5e-10;

    /// A rate below which more memory is of no use to most users, for
    /// [`lowest_fpr`](Self::lowest_fpr).
    pub const USEFUL_FPR: f64 = 1e-9;

    /// Describes a filter of this type with the default hash, without a size.
    #[must_use]
    pub fn new(filter_type: FilterType) -> Self {
        Self {
            filter_type,
            capacity: None,
            fpr: None,
            memory: None,
            lowest_fpr: None,
            bits: None,
            probes: None,
            least_space: false,
            counter_width: Self::COUNTER_WIDTH,
            growth: Growth::default(),
            max_capacity: None,
            slots: None,
            slot_bits: None,
            window: None,
            generations: Self::GENERATIONS,
            hash: HashSpec::default(),
        }
    }

    /// Returns an error if a field is set that this type of filter does not have.
    pub(crate) fn check_fields(&self) -> Result<()> {
        use FilterType::{
            Bloom, Classic, Counting, CountingClassic, Quotient, VectorQuotient, Windowed,
        };
        let is_bloom = matches!(self.filter_type, Bloom | Classic | Counting | CountingClassic);
        let is_table = matches!(self.filter_type, Quotient | VectorQuotient);
        for (is_set, is_allowed, reason) in [
            (self.bits.is_some(), is_bloom, "is not sized by a number of bits"),
            (self.probes.is_some(), is_bloom, "has no free number of probes"),
            (self.least_space, is_bloom, "has one size for each rate"),
            (self.lowest_fpr.is_some(), is_bloom, "is sized by its rate"),
            (self.max_capacity.is_some(), self.filter_type == Quotient, "has no maximum capacity"),
            (self.slots.is_some() || self.slot_bits.is_some(), is_table, "has no slots"),
            (self.window.is_some(), self.filter_type == Windowed, "forgets no keys"),
        ] {
            if is_set && !is_allowed {
                return Err(Error::unsupported(self.filter_type.name(), reason, "leave it out"));
            }
        }
        Ok(())
    }
}

/// Defines methods of a builder that set a field of its specification.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $($field:ident).+;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.spec.$($field).+ = $name.into();
            self
        }
    )*};
}

/// Defines the methods of a builder that set the hash.
macro_rules! hash_setters {
    ($($hash:ident).+) => {
        /// Sets the hash.
        #[must_use]
        pub fn hash(mut self, hash: $crate::HashSpec) -> Self {
            self.$($hash).+ = hash;
            self
        }

        /// Sets the seed of the default hash. False positives of different seeds are independent.
        #[must_use]
        pub fn seed(self, seed: u64) -> Self {
            self.hash($crate::HashSpec::rapid(seed))
        }
    };
}
pub(crate) use {hash_setters, setters};
