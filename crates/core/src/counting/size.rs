//! The sizes of counting filters.

use super::CountingFilter;
use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::filter::layout::Layout;
use crate::filter::size;
use crate::spec::{BuildEmpty, FilterSpec};

impl<L: Layout> BuildEmpty for CountingFilter<L> {
    fn build_empty(spec: &FilterSpec) -> Result<Self> {
        let (layout, info) = dimensions(spec)?;
        Self::empty(layout, spec.hash, info, spec.counter_width)
    }
}

/// Returns the layout of the bits of a counting filter, and its plan.
pub(crate) fn dimensions<L: Layout>(spec: &FilterSpec) -> Result<(L, FilterInfo)> {
    let width = check_width(spec.counter_width.into())?;
    size::dimensions(spec, width.into())
}

/// Returns a valid width.
pub(super) fn check_width(width: u64) -> Result<u32> {
    if !(2..=8).contains(&width) {
        return Err(Error::invalid("width of counters", "2 to 8 bits", width));
    }
    Ok(width as u32)
}
