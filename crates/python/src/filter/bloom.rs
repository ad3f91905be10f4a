//! `BloomFilter`: blocked, the one to take unless there is a reason for another.

use pyo3::prelude::*;

use super::Filter;
use crate::error::Raise;
use crate::held::Held;

/// A blocked Bloom filter: one or two cache lines for each key.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct BloomFilter;

impl BloomFilter {
    pub(super) fn object(py: Python<'_>, held: Held) -> PyResult<Py<PyAny>> {
        let parts = PyClassInitializer::from(Filter::new(held)).add_subclass(Self);
        Ok(Py::new(py, parts)?.into_any())
    }
}

#[pymethods]
impl BloomFilter {
    /// A filter for `capacity` keys at a false-positive rate of `rate`.
    #[new]
    #[pyo3(signature = (capacity, rate = 0.01))]
    fn new(capacity: u64, rate: f64) -> PyResult<PyClassInitializer<Self>> {
        let filter = petal::BloomFilter::with_rate(capacity, rate).map_err(Raise::raise)?;
        Ok(PyClassInitializer::from(Filter::new(Held::new(filter))).add_subclass(Self))
    }
}
