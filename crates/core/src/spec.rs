//! The description of a filter before it exists, as plain data, and the builder that sets its fields one
//! by one.
//!
//! [`FilterSpec::plan`](crate::FilterSpec::plan) is in `any/plan.rs`, because it knows all types; each
//! type sizes itself in its `size.rs`, static filters in `builder.rs`.

use core::marker::PhantomData;
use core::num::NonZeroUsize;

use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;

/// Describes a filter before it exists: its type, what sizes it, and its hash.
///
/// [`plan`](Self::plan) returns what the filter will be and cost,
/// [`AnyFilter::build`](crate::AnyFilter::build) makes it. A [`Builder`] sets the fields one by one.
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
    /// [`Builder::least_space`].
    pub least_space: bool,
    /// Bits of a counter, 2 to 8.
    pub counter_width: u32,
    /// How a scalable filter grows.
    pub growth: Growth,
    /// The number of keys up to which a quotient filter grows.
    pub max_capacity: Option<u64>,
    /// The size of the table: slots of a quotient filter, blocks of a vector quotient filter.
    pub table_size: Option<u64>,
    /// Bits of a remainder of a quotient filter, or of a tag of a vector quotient filter.
    pub slot_bits: Option<u32>,
    /// The window of a windowed filter in ticks; `None` for a number of keys.
    pub window: Option<u64>,
    /// The number of generations of a windowed filter, 2 to 12.
    pub generations: u32,
    /// The hash of the keys.
    pub hash: HashSpec,
}

/// How a scalable filter grows: see [`Builder::growth`].
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
    /// (docs/design/filters.md).
    fn default() -> Self {
        Self { factor: 2, head_start: None, share: None }
    }
}

impl FilterSpec {
    /// The default bits of a counter, at which less than one counter in a million is saturated at the
    /// capacity.
    pub const COUNTER_WIDTH: u32 = 4;

    /// The default number of generations: within 3 % of the minimum space at a rate of 1 %, and few
    /// lines per query (docs/design/filters.md).
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
            table_size: None,
            slot_bits: None,
            window: None,
            generations: Self::GENERATIONS,
            hash: HashSpec::default(),
        }
    }

    /// Whether bits and probes can size the type.
    pub(crate) fn is_bloom(&self) -> bool {
        use FilterType::{Bloom, Classic, Counting, CountingClassic};
        matches!(self.filter_type, Bloom | Classic | Counting | CountingClassic)
    }

    /// Returns an error if a field is set that this type of filter does not have.
    pub(crate) fn check_fields(&self) -> Result<()> {
        use FilterType::{Counting, CountingClassic, Quotient, Scalable, VectorQuotient, Windowed};
        let is_bloom = self.is_bloom();
        let has_counters = matches!(self.filter_type, Counting | CountingClassic);
        let is_table = matches!(self.filter_type, Quotient | VectorQuotient);
        for (is_set, is_allowed, reason) in [
            (self.bits.is_some(), is_bloom, "is not sized by a number of bits"),
            (self.probes.is_some(), is_bloom, "has no free number of probes"),
            (self.least_space, is_bloom, "has one size for each rate"),
            (self.lowest_fpr.is_some(), is_bloom, "is sized by its rate"),
            (self.max_capacity.is_some(), self.filter_type == Quotient, "has no maximum capacity"),
            (self.table_size.is_some() || self.slot_bits.is_some(), is_table, "has no slots"),
            (self.counter_width != Self::COUNTER_WIDTH, has_counters, "has no counters"),
            (self.growth != Growth::default(), self.filter_type == Scalable, "has no layers"),
            (self.window.is_some(), self.filter_type == Windowed, "forgets no keys"),
            (
                self.generations != Self::GENERATIONS,
                self.filter_type == Windowed,
                "has no generations",
            ),
        ] {
            if is_set && !is_allowed {
                return Err(Error::unsupported(self.filter_type.name(), reason, "leave it out"));
            }
        }
        Ok(())
    }

    /// [`check_fields`](Self::check_fields) of a filter that is built from its keys, whose size follows
    /// from them.
    pub(crate) fn check_fixed(&self) -> Result<()> {
        self.check_fields()?;
        if self.memory.is_some() {
            let reason = "is sized by its keys and its rate";
            return Err(Error::unsupported(
                self.filter_type.name(),
                reason,
                "leave out the memory",
            ));
        }
        Ok(())
    }
}

/// Builds a filter of one type: sets the fields of a [`FilterSpec`] one by one.
///
/// A field that the type does not have is an error when the filter is planned or built.
///
/// ```
/// use petal::{BloomFilter, ByteSize, HashSpec, Membership, QuotientFilter, ScalableBloomFilter};
///
/// let small = BloomFilter::builder().capacity(1000).fpr(0.001).build()?;
/// let fixed = BloomFilter::builder().bits(1 << 20).probes(8).seed(7).build()?;
/// let keyed = BloomFilter::builder()
///     .capacity(1000)
///     .memory(ByteSize::kib(4))
///     .hash(HashSpec::keyed(*b"sixteen secrets!"))
///     .build()?;
/// assert!(small.size_bytes() < 2048 && fixed.size_bytes() == 1 << 17);
/// assert!(keyed.target_fpr() < 1e-3);
///
/// let grows = QuotientFilter::builder().capacity(1000).fpr(0.001).max_capacity(1 << 30).build()?;
/// let layers = ScalableBloomFilter::builder().fpr(0.01).growth(4).build()?;
/// assert!(grows.size_bytes() < 7000 && layers.layers() == 1);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder<F> {
    pub(crate) spec: FilterSpec,
    pub(crate) threads: NonZeroUsize,
    filter: PhantomData<fn() -> F>,
}

impl<F> Clone for Builder<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Builder<F> {}

/// A type whose filters are empty when they are made.
pub trait BuildEmpty: Sized {
    /// Creates the empty filter of a specification whose fields the type has.
    fn build_empty(spec: &FilterSpec) -> Result<Self>;
}

/// Defines methods of the builder that set a field of its specification.
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

impl<F> Builder<F> {
    pub(crate) fn new(filter_type: FilterType) -> Self {
        let spec = FilterSpec::new(filter_type);
        Self { spec, threads: NonZeroUsize::MIN, filter: PhantomData }
    }

    setters! {
        /// Sets the capacity in distinct keys.
        ///
        /// * [`QuotientFilter`](crate::QuotientFilter) and
        ///   [`VectorQuotientFilter`](crate::VectorQuotientFilter): copies of a key count, because each
        ///   takes a slot.
        /// * [`ScalableBloomFilter`](crate::ScalableBloomFilter): the capacity of the first layer, an
        ///   estimate of the number of keys \[default: 65,536\]. A wrong estimate costs space or time;
        ///   the target rate holds anyway.
        /// * [`WindowedBloomFilter`](crate::WindowedBloomFilter): the number of keys in the window.
        /// * [`StaticFilter`](crate::StaticFilter): for [`plan`](Self::plan) only.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate at the capacity; of a
        /// [`ScalableBloomFilter`](crate::ScalableBloomFilter) for any number of keys, as far as 64-bit
        /// hashes reach it ([`keeps_fpr`](crate::ScalableBloomFilter::keeps_fpr)).
        fpr: f64 => fpr;

        /// Sets the largest amount of memory for the data.
        memory: ByteSize => memory;

        /// Sets the number of bits of a Bloom filter, or of counters; a blocked filter rounds it up to
        /// whole blocks.
        bits: u64 => bits;

        /// Sets the number of bits, or counters, of a key.
        probes: u32 => probes;

        /// Chooses the fewest bits that keep the rate at the capacity; by default a blocked filter may take
        /// some more where that is faster. At 1 % it saves 2 % of the space, at 0.1 % 4 %, and a key takes
        /// one and a half to two times the time. A classic filter always has the fewest bits.
        ///
        /// Needs a capacity and a rate, and excludes bits and probes.
        ///
        /// ```
        /// use petal::{BloomFilter, Membership};
        ///
        /// let small = BloomFilter::builder().capacity(1_000_000).fpr(0.001).least_space(true).build()?;
        /// assert!(small.size_bytes() * 8 < 15_100_000);
        /// # Ok::<_, petal::Error>(())
        /// ```
        least_space: bool => least_space;

        /// Sets the width of a counter of a counting filter in bits, 2 to 8 \[default: 4\]. It counts to
        /// 2^(width-1).
        ///
        /// When as many distinct keys as the capacity have been inserted once, one counter in 6 to 8 is
        /// saturated with 2 bits, one in 200 to 300 with 3, in more than a million with 4, in more than
        /// 10^16 with 5. Use more bits if keys are inserted often or replaced thousands of times. See
        /// [`expected_saturated`](crate::CountingFilter::expected_saturated).
        counter_width: u32 => counter_width;

        /// Makes a quotient filter grow automatically up to this number of keys, at the target rate.
        max_capacity: u64 => max_capacity;

        /// Sets the size of the table: slots of a quotient filter, blocks of a vector quotient filter.
        table_size: u64 => table_size;

        /// Sets the number of bits of a remainder of a quotient filter, or of a tag of a vector quotient
        /// filter: 6, 7, 8, 10, 13 or 18.
        slot_bits: u32 => slot_bits;

        /// Sets the ratio of the capacities of a layer of a scalable filter and the layer before it, 1 to
        /// 32768 \[default: 2\]. A larger ratio makes queries faster and leaves more memory unused. There
        /// are at most 64 layers: with a growth of 1, inserts beyond 64 times the first capacity fail.
        growth: u64 => growth.factor;

        /// Makes the window of a windowed filter the last `window` ticks of the caller's clock instead of
        /// a number of insertions.
        window: u64 => window;

        /// Sets the number of generations of a windowed filter, 2 to 12 \[default: 4\]. The window moves
        /// in steps of one generation. A key is forgotten after at least one window and at most G/(G-1)
        /// windows with G generations; in a window of T ticks, before G · ⌈T/(G-1)⌉ ticks. Use at least 20
        /// ticks per generation, because the ticks of a generation are rounded up.
        generations: u32 => generations;

        /// Sets the hash.
        hash: HashSpec => hash;
    }

    /// Sets the seed of the default hash. False positives of different seeds are independent.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// Sets a larger growth of a scalable filter, `factor` (2 to 32768), after layers for fewer than
    /// `below` keys: for filters that begin small and may become large.
    ///
    /// From 100 keys to 500,000, a filter has 13 layers without a head start, 8 with a factor of 4
    /// below 65,536, and 6 with a factor of 8. It takes less memory from about 10⁵ keys on, and more
    /// before (docs/design/filters.md).
    #[must_use]
    pub fn head_start(mut self, factor: u64, below: u64) -> Self {
        self.spec.growth.head_start = Some((factor, below)).filter(|start| *start != (0, 0));
        self
    }

    /// Reserves 1 / `parts` of the rate of a scalable filter (2 to 65536 parts) for the layers after
    /// the first, and gives the first layer the rest. Without it the first layer has a quarter of the
    /// rate.
    ///
    /// For filters whose number of keys is known: at a rate of 1 % and `growth_share(4)` the first
    /// layer takes 10.7 bits per key instead of 13.3, at 0.1 % and `growth_share(4)` 15.7 instead of
    /// 18.9. Later layers have smaller shares of the rate and take more bits. The target rate holds
    /// in any case (docs/design/filters.md).
    #[must_use]
    pub fn growth_share(mut self, parts: u64) -> Self {
        self.spec.growth.share = Some(parts).filter(|parts| *parts > 0);
        self
    }

    /// Sets the number of threads that build a static filter or a cascade \[default: 1\]; more than
    /// useful or than the system gives are not started. The filter is the same for any number. Without
    /// the feature `std` there is one thread.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }
}
