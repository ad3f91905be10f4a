//! The builder of counting filters.

use super::{CountingFilter, planes_of};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::filter::builder::Builder;
use crate::filter::layout::Layout;
use crate::filter::{Filter, FilterInfo};
use crate::hash::HashSpec;
use crate::store::Owned;

/// Builds a counting filter.
///
/// Its size follows from capacity and rate, capacity and memory, or bits and probes, as for a
/// [`Builder`].
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
    bloom: Builder<L>,
    width: u32,
}

/// The default width, at which less than one counter in a million is saturated at the capacity.
const WIDTH: u32 = 4;

impl<L: Layout> CountingBuilder<L> {
    pub(super) fn new() -> Self {
        Self { bloom: Builder::new(), width: WIDTH }
    }

    /// Sets the capacity in distinct keys.
    #[must_use]
    pub fn capacity(self, capacity: u64) -> Self {
        Self { bloom: self.bloom.capacity(capacity), ..self }
    }

    /// Sets the target false-positive rate at the capacity.
    #[must_use]
    pub fn fpr(self, fpr: f64) -> Self {
        Self { bloom: self.bloom.fpr(fpr), ..self }
    }

    /// Sets the largest amount of memory for the counters.
    #[must_use]
    pub fn memory(self, memory: ByteSize) -> Self {
        Self { bloom: self.bloom.memory(memory), ..self }
    }

    /// Sets the smallest number of counters, which is the number of bits of the Bloom filter.
    #[must_use]
    pub fn bits(self, bits: u64) -> Self {
        Self { bloom: self.bloom.bits(bits), ..self }
    }

    /// Sets the number of counters of a key.
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        Self { bloom: self.bloom.probes(probes), ..self }
    }

    /// Chooses the fewest counters that keep the rate: see
    /// [`Builder::least_space`](crate::Builder::least_space).
    #[must_use]
    pub fn least_space(self, least_space: bool) -> Self {
        Self { bloom: self.bloom.least_space(least_space), ..self }
    }

    /// Sets the width of a counter in bits, 2 to 8 \[default: 4\]. It counts to 2^(width-1).
    ///
    /// When as many distinct keys as the capacity have been inserted once, one counter in 6 to 8 is
    /// saturated with 2 bits, one in 200 to 300 with 3, in more than a million with 4, in more than
    /// 10^16 with 5. Use more bits if keys are inserted often or replaced thousands of times. See
    /// [`expected_saturated`](CountingFilter::expected_saturated) and
    /// [`expected_saturated_after`](CountingFilter::expected_saturated_after).
    #[must_use]
    pub fn width(self, width: u32) -> Self {
        Self { width, ..self }
    }

    /// Sets the seed of the default hash. False positives of different seeds are independent.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { bloom: self.bloom.seed(seed), ..self }
    }

    /// Sets the hash.
    #[must_use]
    pub fn hash(self, hash: HashSpec) -> Self {
        Self { bloom: self.bloom.hash(hash), ..self }
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, the width is not 2 to 8, or memory allocation fails.
    pub fn build(self) -> Result<CountingFilter<L>> {
        let (layout, info, width) = self.plan()?;
        let planes = Owned::zeroed(planes_of(&layout, width))?;
        let bloom = Filter::empty(layout, self.bloom.hash_spec(), info)?;
        Ok(CountingFilter::from_parts(bloom, width, planes))
    }

    /// Returns the layout of the bits and the width of the counters, without building the filter.
    pub(crate) fn plan(&self) -> Result<(L, FilterInfo, u32)> {
        let width = check_width(self.width.into())?;
        let (layout, info) = self.bloom.plan(width.into())?;
        Ok((layout, info, width))
    }
}

/// Returns a valid width.
pub(super) fn check_width(width: u64) -> Result<u32> {
    if !(2..=8).contains(&width) {
        return Err(Error::invalid("width of counters", "2 to 8 bits", width));
    }
    Ok(width as u32)
}
