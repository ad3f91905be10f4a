//! Choosing a counting filter's size, width, hash and seed.

use super::{CountingFilter, planes_of};
use crate::error::{Error, Result};
use crate::filter::builder::Builder;
use crate::filter::geometry::Geometry;
use crate::filter::{Facts, Filter};
use crate::hash::HashSpec;
use crate::store::Owned;

/// Makes a counting filter. Its size follows from keys and rate, keys and memory, or bits and
/// probes, as for a [`Builder`].
///
/// ```
/// use petal::CountingBloomFilter;
///
/// let narrow = CountingBloomFilter::builder().keys(1000).rate(0.01).width(3).build()?;
/// let fitted = CountingBloomFilter::builder().keys(1000).memory(8192).seed(7).build()?;
/// assert!(narrow.size_bytes() < 5000 && fitted.size_bytes() == 8192);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingBuilder<G> {
    bloom: Builder<G>,
    width: u32,
}

/// Four bits: less than a counter in a million is stuck when the planned keys have been inserted once.
const WIDTH: u32 = 4;

impl<G: Geometry> CountingBuilder<G> {
    pub(super) fn new() -> Self {
        Self { bloom: Builder::new(), width: WIDTH }
    }

    /// Distinct keys to plan for.
    #[must_use]
    pub fn keys(self, keys: u64) -> Self {
        Self { bloom: self.bloom.keys(keys), ..self }
    }

    /// The false-positive rate to keep with that many keys.
    #[must_use]
    pub fn rate(self, rate: f64) -> Self {
        Self { bloom: self.bloom.rate(rate), ..self }
    }

    /// The most memory the counters may take, in bytes.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        Self { bloom: self.bloom.memory(bytes), ..self }
    }

    /// The least number of counters: the bits of the Bloom filter that they make.
    #[must_use]
    pub fn bits(self, bits: u64) -> Self {
        Self { bloom: self.bloom.bits(bits), ..self }
    }

    /// How many counters a key raises.
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        Self { bloom: self.bloom.probes(probes), ..self }
    }

    /// Bits of a counter, 2 to 8; 4 unless this says otherwise. It counts to 2^(width-1).
    ///
    /// At the planned number of distinct keys, each inserted once, one counter in 6 to 8 is stuck
    /// with 2 bits, in 200 to 300 with 3, in more than a million with 4, in more than 10^16 with 5.
    /// Keys that are inserted often want more, and so do filters whose keys are replaced thousands
    /// of times. See [`expected_saturated`](CountingFilter::expected_saturated) and
    /// [`expected_saturated_after`](CountingFilter::expected_saturated_after).
    #[must_use]
    pub fn width(self, width: u32) -> Self {
        Self { width, ..self }
    }

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { bloom: self.bloom.seed(seed), ..self }
    }

    /// The hash.
    #[must_use]
    pub fn hash(self, hash: HashSpec) -> Self {
        Self { bloom: self.bloom.hash(hash), ..self }
    }

    /// Makes the filter, empty.
    ///
    /// # Errors
    /// If the size is not given or cannot be, the width is not 2 to 8, or the memory is refused.
    pub fn build(self) -> Result<CountingFilter<G>> {
        let (shape, facts, width) = self.plan()?;
        let planes = Owned::zeroed(planes_of(&shape, width))?;
        let bloom = Filter::empty(shape, self.bloom.hash_spec(), facts)?;
        Ok(CountingFilter::over(bloom, width, planes))
    }

    /// What is to be made: the shape of the bits, and the width of the counters.
    pub(crate) fn plan(&self) -> Result<(G, Facts, u32)> {
        let width = check_width(self.width.into())?;
        let (shape, facts) = self.bloom.plan(width.into())?;
        Ok((shape, facts, width))
    }
}

/// A width that there is.
pub(super) fn check_width(width: u64) -> Result<u32> {
    if !(2..=8).contains(&width) {
        return Err(Error::invalid("width of counters", "2 to 8 bits", width));
    }
    Ok(width as u32)
}
