//! The builder of scalable filters.

use super::ScalableBloomFilter;
use super::plan::LayerPlan;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::spec::{FilterSpec, hash_setters, setters};

/// The default capacity of the first layer: 110 kB at a rate of 1 %, which fits a core's own cache
/// and is little memory if the filter stays small.
const FIRST: u64 = 1 << 16;

/// Builds a [`ScalableBloomFilter`]. Only the rate is required.
///
/// ```
/// use petal::ScalableBloomFilter;
///
/// let filter = ScalableBloomFilter::builder().fpr(0.01).capacity(1_000_000).growth(4).build()?;
/// assert_eq!(filter.layers(), 1);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ScalableBuilder {
    spec: FilterSpec,
}

impl ScalableBuilder {
    pub(super) fn new() -> Self {
        Self { spec: FilterSpec::new(FilterType::Scalable) }
    }

    setters! {
        /// Sets the capacity of the first layer, an estimate of the number of keys \[default: 65,536\].
        /// A wrong estimate costs space or time; the target rate holds anyway.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate, for any number of keys.
        ///
        /// For very many keys 64-bit hashes do not reach a very low rate. The filter then grows on at the rate
        /// that is possible: see [`keeps_fpr`](ScalableBloomFilter::keeps_fpr).
        fpr: f64 => fpr;

        /// Sets the ratio of the capacities of a layer and the layer before it, 1 to 32768
        /// \[default: 2\]. A larger ratio makes queries faster and leaves more memory unused. There are
        /// at most 64 layers: with a growth of 1, inserts beyond 64 times the first capacity fail.
        growth: u64 => growth.factor;
    }

    /// Sets a larger growth, `factor` (2 to 32768), after layers for fewer than `below` keys: for
    /// filters that begin small and may become large.
    ///
    /// From 100 keys to 500,000, a filter has 13 layers without a head start, 8 with a factor of 4
    /// below 65,536, and 6 with a factor of 8. It takes less memory from about 10⁵ keys on, and more
    /// before (docs/design/filters/scalable.md).
    #[must_use]
    pub fn head_start(mut self, factor: u64, below: u64) -> Self {
        self.spec.growth.head_start = Some((factor, below)).filter(|start| *start != (0, 0));
        self
    }

    /// Reserves 1 / `parts` of the rate (2 to 65536 parts) for the layers after the first, and gives
    /// the first layer the rest. Without it the first layer has a quarter of the rate.
    ///
    /// For filters whose number of keys is known: at a rate of 1 % and `growth_share(4)` the first
    /// layer takes 10.7 bits per key instead of 13.3, at 0.1 % and `growth_share(64)` 15.8 instead of
    /// 18.9. Later layers have smaller shares of the rate and take more bits. The target rate holds
    /// in any case (docs/design/filters/scalable.md).
    #[must_use]
    pub fn growth_share(mut self, parts: u64) -> Self {
        self.spec.growth.share = Some(parts).filter(|parts| *parts > 0);
        self
    }

    hash_setters!(spec.hash);

    /// Creates an empty filter with one layer.
    ///
    /// # Errors
    /// If the rate is missing, not between 0 and 1 or cannot be reached, growth, head start or growth
    /// share are out of range, or memory allocation fails.
    pub fn build(self) -> Result<ScalableBloomFilter> {
        ScalableBloomFilter::empty(dimensions(&self.spec)?, self.spec.hash)
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }
}

/// Returns the plan of all layers that a specification determines.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<LayerPlan> {
    let rate =
        spec.fpr.ok_or_else(|| Error::invalid("false-positive rate", "one to be given", "none"))?;
    LayerPlan::new(spec.capacity.unwrap_or(FIRST), rate, spec.growth)
}
