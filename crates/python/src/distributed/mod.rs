//! Tasks for the workers of a cluster: on byte ranges of files, and on columns of data frames.

mod fingerprints;
mod ranges;
mod verified_filters;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fingerprints::register(module)?;
    ranges::register(module)
}
