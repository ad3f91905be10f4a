//! `WideBloomFilter`, for rates below those of 64-bit hashes.

use petal::Membership as _;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::bloom::{change, combined, combined_by_operator, intersect, is_subset};
use super::options::{MemoryLimitArg, Size, check_memory_limit, hash, size};
use super::{Filter, with_state};
use crate::error::IntoPyErr;
use crate::state::FilterState;

/// Two Bloom filters, on the halves of a 128-bit hash. For false-positive rates below about 1e-9,
/// which 64-bit hashes do not reach. Arguments as for BloomFilter.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct WideBloomFilter;

#[pymethods]
impl WideBloomFilter {
    #[new]
    #[pyo3(signature = (capacity, fpr = None, *, memory_limit = None, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        fpr: Option<f64>,
        memory_limit: Option<MemoryLimitArg>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let memory_limit = memory_limit.map(|memory_limit| memory_limit.0);
        let builder = petal::WideBloomFilter::builder().hash(hash(seed, secret, true)?);
        let builder = builder.capacity(capacity);
        let builder = match size(fpr, memory_limit) {
            Size::Memory(bytes) => builder.memory(petal::ByteSize::bytes(bytes)),
            Size::Fpr(fpr) => builder.fpr(fpr),
        };
        let built = py.detach(|| builder.build()).map_err(IntoPyErr::into_py_err)?;
        check_memory_limit(built.size_bytes(), memory_limit)?;
        Ok(with_state(FilterState::new(built), Self))
    }

    /// Returns a new filter with the keys of this one and all others, which must have the same
    /// layout and hash. IncompatibleError otherwise.
    #[pyo3(signature = (*others))]
    fn union(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        combined(slf.as_super(), others, FilterState::union)
    }

    /// Returns a new filter that contains a key only if this one and all others contain it, and so
    /// every key that was inserted into all. IncompatibleError if layouts or hashes differ.
    #[pyo3(signature = (*others))]
    fn intersection(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        combined(slf.as_super(), others, intersect)
    }

    /// Returns whether every bit of this filter is set in the other one, as BloomFilter.issubset().
    fn issubset(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<bool> {
        is_subset(slf.as_super(), other)
    }

    /// Returns whether every bit of the other filter is set in this one: `other.issubset(self)`.
    fn issuperset(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<bool> {
        is_subset(other, slf.as_super())
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        combined_by_operator(slf.as_super(), other, FilterState::union)
    }

    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        combined_by_operator(slf.as_super(), other, intersect)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, FilterState::union)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, intersect)
    }
}
