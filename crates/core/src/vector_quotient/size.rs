//! The sizes of vector quotient filters.

use super::layout::VectorQuotientLayout;
use super::{FilterInfo, VectorQuotientFilter};
use crate::error::{Error, Result};
use crate::spec::{BuildEmpty, FilterSpec};

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate, or `table_size` and `slot_bits`";

impl BuildEmpty for VectorQuotientFilter {
    fn build_empty(spec: &FilterSpec) -> Result<Self> {
        let (layout, info) = dimensions(spec)?;
        Self::empty(layout, spec.hash, info)
    }
}

/// Returns the layout that a specification determines, and the plan of the filter.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<(VectorQuotientLayout, FilterInfo)> {
    let exact = spec.table_size.is_some() || spec.slot_bits.is_some();
    if spec.fpr.is_some() && exact {
        let expected = "either a rate, or `table_size` and `slot_bits`, which decide the rate";
        return Err(Error::invalid("size", expected, "both"));
    }
    Ok(match *spec {
        FilterSpec { capacity: Some(keys), fpr: Some(rate), .. } => {
            let layout = VectorQuotientLayout::for_fpr(keys, rate)?;
            (layout, FilterInfo::planned(keys, rate))
        }
        FilterSpec { table_size: Some(blocks), slot_bits: Some(bits), capacity: keys, .. } => {
            let layout = VectorQuotientLayout::new(blocks, bits)?;
            (layout, FilterInfo::of_size(keys, |keys| layout.fpr(keys))?)
        }
        _ => return Err(Error::unsized_filter(NEEDED)),
    })
}
