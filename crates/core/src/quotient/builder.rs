//! The builder of quotient filters.

use super::layout::QuotientLayout;
use super::{FilterInfo, QuotientFilter};
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::spec::{FilterSpec, hash_setters, setters};

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate, or slots and bits of a remainder";

/// Builds a [`QuotientFilter`].
///
/// Its size follows from capacity and rate, or from slots and bits of a remainder, which determine
/// the rate.
///
/// ```
/// use petal::QuotientFilter;
///
/// let grows = QuotientFilter::builder().capacity(1000).fpr(0.001).max_capacity(1 << 30).build()?;
/// let fixed = QuotientFilter::builder().slots(1 << 10).remainder_bits(8).seed(7).build()?;
/// assert!(grows.size_bytes() < 7000 && fixed.layout().fingerprints() == 1 << 18);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QuotientBuilder {
    spec: FilterSpec,
}

impl Default for QuotientBuilder {
    fn default() -> Self {
        Self { spec: FilterSpec::new(FilterType::Quotient) }
    }
}

impl QuotientBuilder {
    setters! {
        /// Sets the capacity. Copies that are [added](QuotientFilter::add) count, because each takes a
        /// slot.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate at the capacity.
        fpr: f64 => fpr;

        /// Makes the filter grow automatically up to this number of keys, at the target rate.
        max_capacity: u64 => max_capacity;

        /// Sets the number of slots.
        slots: u64 => slots;

        /// Sets the number of bits of a remainder.
        remainder_bits: u32 => slot_bits;
    }

    hash_setters!(spec.hash);

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, or memory allocation fails.
    pub fn build(self) -> Result<QuotientFilter> {
        let (layout, info) = dimensions(&self.spec)?;
        QuotientFilter::empty(layout, self.spec.hash, info, self.spec.max_capacity.is_some())
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }
}

/// Returns the layout that a specification determines, and the plan of the filter.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<(QuotientLayout, FilterInfo)> {
    let exact = spec.slots.is_some() || spec.slot_bits.is_some();
    if spec.fpr.is_some() && exact {
        let expected = "either a rate or slots and bits of a remainder, which decide the rate";
        return Err(Error::invalid("size", expected, "both"));
    }
    Ok(match *spec {
        FilterSpec { capacity: Some(keys), fpr: Some(rate), max_capacity, .. } => {
            let max_keys = max_capacity.unwrap_or(keys).max(keys);
            let layout = QuotientLayout::for_growth(keys, rate, max_keys)?;
            (layout, FilterInfo::planned(max_keys, rate))
        }
        FilterSpec { slots: Some(slots), slot_bits: Some(bits), .. } => {
            let layout = QuotientLayout::new(slots, bits)?;
            let keys = spec.max_capacity.or(spec.capacity);
            (layout, FilterInfo::of_size(keys, |keys| layout.fpr(keys))?)
        }
        _ => return Err(Error::unsized_filter(NEEDED)),
    })
}
