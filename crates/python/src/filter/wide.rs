//! `WideBloomFilter`: for rates below what 64-bit hashes can promise.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::bloom::{change, combined, combined_by_operator, intersect};
use super::size::{Bytes, Size, hash, size, within};
use super::{Filter, parts};
use crate::error::Raise;
use crate::held::Held;

/// Two Bloom filters on the halves of a 128-bit hash: for rates that 64 bits cannot promise,
/// below some 1e-9. Arguments as of BloomFilter.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct WideBloomFilter;

#[pymethods]
impl WideBloomFilter {
    #[new]
    #[pyo3(signature = (capacity, rate = None, *, memory = None, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        rate: Option<f64>,
        memory: Option<Bytes>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let memory = memory.map(|memory| memory.0);
        let builder = petal::WideBloomFilter::builder().hash(hash(seed, secret, true)?);
        let builder = builder.keys(capacity);
        let builder = match size(rate, memory) {
            Size::Memory(bytes) => builder.memory(bytes),
            Size::Rate(rate) => builder.rate(rate),
        };
        let made = py.detach(|| builder.build()).map_err(Raise::raise)?;
        within(made.size_bytes(), memory)?;
        Ok(parts(Held::new(made), Self))
    }

    /// A copy with the keys of others of its shape and hash.
    #[pyo3(signature = (*others))]
    fn union(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        combined(slf.as_super(), others, Held::union)
    }

    /// A copy that answers yes only where all others do, too: at least the keys that all have.
    #[pyo3(signature = (*others))]
    fn intersection(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        combined(slf.as_super(), others, intersect)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        combined_by_operator(slf.as_super(), other, Held::union)
    }

    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        combined_by_operator(slf.as_super(), other, intersect)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, Held::union)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, intersect)
    }
}
