//! The builder of vector quotient filters.

use super::layout::VectorQuotientLayout;
use super::{FilterInfo, VectorQuotientFilter};
use crate::error::{Error, Result};
use crate::hash::HashSpec;

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate, or blocks and bits of a tag";

/// Builds a [`VectorQuotientFilter`].
///
/// Its size follows from capacity and rate, or from blocks and bits of a tag, which determine the
/// rate.
///
/// ```
/// use petal::{Membership, VectorQuotientFilter};
///
/// let planned = VectorQuotientFilter::builder().capacity(1_000_000).fpr(0.005).build()?;
/// let fixed = VectorQuotientFilter::builder().blocks(1000).tag_bits(8).seed(7).build()?;
/// assert!(planned.size_bytes() < 1_400_000 && fixed.layout().slots() == 48_000);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct VectorQuotientBuilder {
    keys: Option<u64>,
    rate: Option<f64>,
    blocks: Option<u64>,
    tag_bits: Option<u32>,
    hash: HashSpec,
}

impl VectorQuotientBuilder {
    /// Sets the capacity. Copies that are [added](VectorQuotientFilter::add) count, because each takes
    /// a slot.
    #[must_use]
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.keys = Some(capacity);
        self
    }

    /// Sets the target false-positive rate at the capacity.
    #[must_use]
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.rate = Some(fpr);
        self
    }

    /// Sets the number of blocks.
    #[must_use]
    pub fn blocks(mut self, blocks: u64) -> Self {
        self.blocks = Some(blocks);
        self
    }

    /// Sets the number of bits of a tag: 6, 7, 8, 10, 13 or 18.
    #[must_use]
    pub fn tag_bits(mut self, bits: u32) -> Self {
        self.tag_bits = Some(bits);
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
        self.hash = hash;
        self
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, or memory allocation fails.
    pub fn build(self) -> Result<VectorQuotientFilter> {
        let (layout, info) = self.plan()?;
        VectorQuotientFilter::empty(layout, self.hash, info)
    }

    /// Returns the parameters of the filter, without building it.
    pub(crate) fn plan(&self) -> Result<(VectorQuotientLayout, FilterInfo)> {
        let exact = self.blocks.is_some() || self.tag_bits.is_some();
        if self.rate.is_some() && exact {
            let expected = "either a rate or blocks and bits of a tag, which decide the rate";
            return Err(Error::invalid("size", expected, "both"));
        }
        Ok(match *self {
            Self { keys: Some(keys), rate: Some(rate), .. } => {
                let layout = VectorQuotientLayout::for_fpr(keys, rate)?;
                (layout, FilterInfo::planned(keys, rate))
            }
            Self { blocks: Some(blocks), tag_bits: Some(bits), keys, .. } => {
                let layout = VectorQuotientLayout::new(blocks, bits)?;
                (layout, FilterInfo::of_size(keys, |keys| layout.fpr(keys))?)
            }
            _ => return Err(Error::unsized_filter(NEEDED)),
        })
    }
}
