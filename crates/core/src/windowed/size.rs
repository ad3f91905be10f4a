//! The sizes of windowed filters.

use super::WindowedBloomFilter;
use super::plan::WindowPlan;
use crate::error::{Error, Result};
use crate::spec::{BuildEmpty, FilterSpec};

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate";

impl BuildEmpty for WindowedBloomFilter {
    fn build_empty(spec: &FilterSpec) -> Result<Self> {
        Self::empty(dimensions(spec)?, spec.hash)
    }
}

/// Returns the plan that a specification determines.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<WindowPlan> {
    let (Some(keys), Some(rate)) = (spec.capacity, spec.fpr) else {
        return Err(Error::unsized_filter(NEEDED));
    };
    WindowPlan::new(keys, rate, spec.window, spec.generations)
}
