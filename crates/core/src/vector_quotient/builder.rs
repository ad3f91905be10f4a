//! The builder of vector quotient filters.

use super::layout::VectorQuotientLayout;
use super::{FilterInfo, VectorQuotientFilter};
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::spec::{FilterSpec, hash_setters, setters};

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate, or blocks and bits of a tag";

/// Builds a [`VectorQuotientFilter`].
///
/// Its size follows from capacity and rate, or from blocks and bits of a tag, which determine the
/// rate.
///
/// ```
/// use petal::VectorQuotientFilter;
///
/// let planned = VectorQuotientFilter::builder().capacity(1_000_000).fpr(0.005).build()?;
/// let fixed = VectorQuotientFilter::builder().blocks(1000).tag_bits(8).seed(7).build()?;
/// assert!(planned.size_bytes() < 1_400_000 && fixed.layout().slots() == 48_000);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct VectorQuotientBuilder {
    spec: FilterSpec,
}

impl Default for VectorQuotientBuilder {
    fn default() -> Self {
        Self { spec: FilterSpec::new(FilterType::VectorQuotient) }
    }
}

impl VectorQuotientBuilder {
    setters! {
        /// Sets the capacity. Copies that are [added](VectorQuotientFilter::add) count, because each takes
        /// a slot.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate at the capacity.
        fpr: f64 => fpr;

        /// Sets the number of blocks.
        blocks: u64 => slots;

        /// Sets the number of bits of a tag: 6, 7, 8, 10, 13 or 18.
        tag_bits: u32 => slot_bits;
    }

    hash_setters!(spec.hash);

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, or memory allocation fails.
    pub fn build(self) -> Result<VectorQuotientFilter> {
        let (layout, info) = dimensions(&self.spec)?;
        VectorQuotientFilter::empty(layout, self.spec.hash, info)
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }
}

/// Returns the layout that a specification determines, and the plan of the filter.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<(VectorQuotientLayout, FilterInfo)> {
    let exact = spec.slots.is_some() || spec.slot_bits.is_some();
    if spec.fpr.is_some() && exact {
        let expected = "either a rate or blocks and bits of a tag, which decide the rate";
        return Err(Error::invalid("size", expected, "both"));
    }
    Ok(match *spec {
        FilterSpec { capacity: Some(keys), fpr: Some(rate), .. } => {
            let layout = VectorQuotientLayout::for_fpr(keys, rate)?;
            (layout, FilterInfo::planned(keys, rate))
        }
        FilterSpec { slots: Some(blocks), slot_bits: Some(bits), capacity: keys, .. } => {
            let layout = VectorQuotientLayout::new(blocks, bits)?;
            (layout, FilterInfo::of_size(keys, |keys| layout.fpr(keys))?)
        }
        _ => return Err(Error::unsized_filter(NEEDED)),
    })
}
