//! Choosing a quotient filter's size, growth, hash and seed.

use super::shape::QuotientShape;
use super::{Facts, QuotientFilter};
use crate::error::{Error, Result};
use crate::hash::HashSpec;

/// Makes a [`QuotientFilter`]. Its size follows from keys and rate, or from slots and bits of a
/// remainder; a rate beside the latter is refused.
///
/// ```
/// use petal::{HashSpec, QuotientFilter};
///
/// let grows = QuotientFilter::builder().keys(1000).rate(0.001).max_keys(1 << 30).build()?;
/// let fixed = QuotientFilter::builder().slots(1 << 10).remainder_bits(8).seed(7).build()?;
/// assert!(grows.size_bytes() < 7000 && fixed.shape().fingerprints() == 1 << 18);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct QuotientBuilder {
    keys: Option<u64>,
    rate: Option<f64>,
    max_keys: Option<u64>,
    slots: Option<u64>,
    remainder_bits: Option<u32>,
    hash: HashSpec,
}

impl QuotientBuilder {
    /// Keys to plan for. Copies that are [added](QuotientFilter::add) count, for each takes a slot.
    #[must_use]
    pub fn keys(mut self, keys: u64) -> Self {
        self.keys = Some(keys);
        self
    }

    /// The false-positive rate to keep with that many keys.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Keys that it shall grow to by itself, keeping the rate all the way.
    #[must_use]
    pub fn max_keys(mut self, keys: u64) -> Self {
        self.max_keys = Some(keys);
        self
    }

    /// The number of slots.
    #[must_use]
    pub fn slots(mut self, slots: u64) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Bits kept in a slot.
    #[must_use]
    pub fn remainder_bits(mut self, bits: u32) -> Self {
        self.remainder_bits = Some(bits);
        self
    }

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// The hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Makes the filter, empty.
    ///
    /// # Errors
    /// If the size is not given or cannot be, or the memory is refused.
    pub fn build(self) -> Result<QuotientFilter> {
        self.hash.check_words(1)?;
        let (shape, facts) = self.plan()?;
        QuotientFilter::empty(shape, self.hash, facts, self.max_keys.is_some())
    }

    /// What is to be made.
    pub(crate) fn plan(&self) -> Result<(QuotientShape, Facts)> {
        let exact = self.slots.is_some() || self.remainder_bits.is_some();
        if self.rate.is_some() && exact {
            let expected = "either a rate or slots and bits of a remainder, which decide the rate";
            return Err(Error::invalid("size", expected, "both"));
        }
        let (shape, planned, target) = match *self {
            Self { keys: Some(keys), rate: Some(rate), max_keys, .. } => {
                let most = max_keys.unwrap_or(keys).max(keys);
                (QuotientShape::for_growth(keys, rate, most)?, most, rate)
            }
            Self { slots: Some(slots), remainder_bits: Some(bits), .. } => {
                let shape = QuotientShape::new(slots, bits)?;
                let planned = self.max_keys.or(self.keys);
                (shape, planned.unwrap_or(0), planned.map_or(0.0, |keys| shape.rate(keys)))
            }
            _ => return Err(Error::unsized_filter()),
        };
        Ok((shape, Facts { planned, target, inserted: 0 }))
    }
}
