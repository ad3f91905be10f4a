//! `ScalableBloomFilter`, which grows in layers.

use petal::{AnyFilter, FilterType};
use pyo3::prelude::*;

use super::options::{build, spec};
use super::{Filter, with_state};
use crate::state::Storage;

/// A Bloom filter that grows: when its newest layer is full it adds one, `growth` times as large.
/// The rate of all layers together stays below `fpr`, as far as 64-bit hashes reach it. `capacity`
/// is that of the first layer; other arguments as for `BloomFilter`.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ScalableBloomFilter;

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (capacity, fpr = 0.01, *, growth = 2, seed = 0, secret = None, secret_apart = false))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        fpr: f64,
        growth: u64,
        seed: u64,
        secret: Option<&[u8]>,
        secret_apart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut spec = spec(FilterType::Scalable, seed, secret, secret_apart)?;
        (spec.capacity, spec.fpr, spec.growth.factor) = (Some(capacity), Some(fpr), growth);
        Ok(with_state(build(py, &spec)?, Self))
    }

    /// The number of layers.
    #[getter]
    fn layers(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(match &slf.as_super().get().read(slf.py())?.storage {
            Storage::Memory(AnyFilter::Scalable(filter)) => filter.layers(),
            Storage::Mapped(AnyFilter::Scalable(filter)) => filter.layers(),
            _ => 0,
        })
    }

    /// Whether the layers keep `fpr` when they are full. `False` only for a very low `fpr` and very
    /// many keys: 64-bit hashes do not reach it, and the filter grows on at the rate that is
    /// possible.
    #[getter]
    fn keeps_fpr(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(match &slf.as_super().get().read(slf.py())?.storage {
            Storage::Memory(AnyFilter::Scalable(filter)) => filter.keeps_fpr(),
            Storage::Mapped(AnyFilter::Scalable(filter)) => filter.keeps_fpr(),
            _ => true,
        })
    }

    /// The size of each layer as a multiple of the one before.
    #[getter]
    fn growth(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Ok(match &slf.as_super().get().read(slf.py())?.storage {
            Storage::Memory(AnyFilter::Scalable(filter)) => filter.growth(),
            Storage::Mapped(AnyFilter::Scalable(filter)) => filter.growth(),
            _ => 0,
        })
    }
}
