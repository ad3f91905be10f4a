//! The sizes of quotient filters.

use super::layout::QuotientLayout;
use super::{FilterInfo, QuotientFilter};
use crate::error::{Error, Result};
use crate::spec::{BuildEmpty, FilterSpec};

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate, or `table_size` and `slot_bits`";

impl BuildEmpty for QuotientFilter {
    fn build_empty(spec: &FilterSpec) -> Result<Self> {
        let (layout, info) = dimensions(spec)?;
        Self::empty(layout, spec.hash, info, spec.max_capacity.is_some())
    }
}

/// Returns the layout that a specification determines, and the plan of the filter.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<(QuotientLayout, FilterInfo)> {
    let exact = spec.table_size.is_some() || spec.slot_bits.is_some();
    if spec.fpr.is_some() && exact {
        let expected = "either a rate, or `table_size` and `slot_bits`, which decide the rate";
        return Err(Error::invalid("size", expected, "both"));
    }
    Ok(match *spec {
        FilterSpec { capacity: Some(keys), fpr: Some(rate), max_capacity, .. } => {
            let max_keys = max_capacity.unwrap_or(keys).max(keys);
            let layout = QuotientLayout::for_growth(keys, rate, max_keys)?;
            (layout, FilterInfo::planned(max_keys, rate))
        }
        FilterSpec { table_size: Some(slots), slot_bits: Some(bits), .. } => {
            let layout = QuotientLayout::new(slots, bits)?;
            let keys = spec.max_capacity.or(spec.capacity);
            (layout, FilterInfo::of_size(keys, |keys| layout.fpr(keys))?)
        }
        _ => return Err(Error::unsized_filter(NEEDED)),
    })
}
