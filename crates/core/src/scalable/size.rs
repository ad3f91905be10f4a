//! The sizes of scalable filters.

use super::ScalableBloomFilter;
use super::plan::LayerPlan;
use crate::error::{Error, Result};
use crate::spec::{BuildEmpty, FilterSpec};

/// The default capacity of the first layer: 110 kB at a rate of 1 %, which fits a core's own cache
/// and is little memory if the filter stays small.
const FIRST: u64 = 1 << 16;

impl BuildEmpty for ScalableBloomFilter {
    fn build_empty(spec: &FilterSpec) -> Result<Self> {
        Self::empty(dimensions(spec)?)
    }
}

/// Returns the plan of all layers that a specification determines.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<LayerPlan> {
    let rate =
        spec.fpr.ok_or_else(|| Error::invalid("false-positive rate", "one to be given", "none"))?;
    LayerPlan::new(spec.capacity.unwrap_or(FIRST), rate, spec.growth, spec.hash)
}
