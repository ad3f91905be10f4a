//! The builder of counting filters.

use core::marker::PhantomData;

use super::CountingFilter;
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::filter::builder;
use crate::filter::layout::Layout;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::spec::FilterSpec;

/// Builds a counting filter.
///
/// Sets the fields of a [`FilterSpec`], which lists what sizes a filter.
///
/// ```
/// use petal::{ByteSize, CountingBloomFilter, Membership};
///
/// let narrow = CountingBloomFilter::builder().capacity(1000).fpr(0.01).width(3).build()?;
/// let fitted = CountingBloomFilter::builder().capacity(1000).memory(ByteSize::kib(8)).seed(7).build()?;
/// assert!(narrow.size_bytes() < 5000 && fitted.size_bytes() == 8192);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingBuilder<L> {
    spec: FilterSpec,
    layout: PhantomData<L>,
}

impl<L: Layout> CountingBuilder<L> {
    pub(super) fn new() -> Self {
        let counting = match L::KIND {
            FilterType::Classic => FilterType::CountingClassic,
            _ => FilterType::Counting,
        };
        Self { spec: FilterSpec::new(counting), layout: PhantomData }
    }

    /// Sets the capacity in distinct keys.
    #[must_use]
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.spec.capacity = Some(capacity);
        self
    }

    /// Sets the target false-positive rate at the capacity.
    #[must_use]
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.spec.fpr = Some(fpr);
        self
    }

    /// Sets the largest amount of memory for the counters.
    #[must_use]
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.spec.memory = Some(memory);
        self
    }

    /// Sets the smallest number of counters, which is the number of bits of the Bloom filter.
    #[must_use]
    pub fn bits(mut self, bits: u64) -> Self {
        self.spec.bits = Some(bits);
        self
    }

    /// Sets the number of counters of a key.
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.spec.probes = Some(probes);
        self
    }

    /// Chooses the fewest counters that keep the rate: see
    /// [`Builder::least_space`](crate::Builder::least_space).
    #[must_use]
    pub fn least_space(mut self, least_space: bool) -> Self {
        self.spec.least_space = least_space;
        self
    }

    /// Sets the width of a counter in bits, 2 to 8 \[default: 4\]. It counts to 2^(width-1).
    ///
    /// When as many distinct keys as the capacity have been inserted once, one counter in 6 to 8 is
    /// saturated with 2 bits, one in 200 to 300 with 3, in more than a million with 4, in more than
    /// 10^16 with 5. Use more bits if keys are inserted often or replaced thousands of times. See
    /// [`expected_saturated`](CountingFilter::expected_saturated) and
    /// [`expected_saturated_after`](CountingFilter::expected_saturated_after).
    #[must_use]
    pub fn width(mut self, width: u32) -> Self {
        self.spec.counter_width = width;
        self
    }

    /// Sets the seed of the default hash. False positives of different seeds are independent.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// Sets the hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.spec.hash = hash;
        self
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, the width is not 2 to 8, or memory allocation fails.
    pub fn build(self) -> Result<CountingFilter<L>> {
        let (layout, info) = dimensions(&self.spec)?;
        CountingFilter::empty(layout, self.spec.hash, info, self.spec.counter_width)
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }
}

/// Returns the layout of the bits of a counting filter, and its plan.
pub(crate) fn dimensions<L: Layout>(spec: &FilterSpec) -> Result<(L, FilterInfo)> {
    let width = check_width(spec.counter_width.into())?;
    builder::dimensions(spec, None, width.into())
}

/// Returns a valid width.
pub(super) fn check_width(width: u64) -> Result<u32> {
    if !(2..=8).contains(&width) {
        return Err(Error::invalid("width of counters", "2 to 8 bits", width));
    }
    Ok(width as u32)
}
