//! The classes with deletion: `CountingBloomFilter` and `ClassicCountingBloomFilter` (a small counter
//! for each bit), and `QuotientFilter` (a table of remainders, which also grows).
//!
//! They store a key as often as it was added. Removing a false positive, a key that was never
//! added, damages other keys.

use petal::{AnyFilter, FilterSpec, FilterType, Store};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use super::bloom::change;
use super::options::{BloomSize, MemoryLimitArg, build, spec};
use super::{Filter, object, with_state};
use crate::error::{Exception, IntoPyErr};
use crate::keys::with_key;
use crate::state::{FilterState, Storage, each_storage};

/// A Bloom filter with deletion: a counter of `width` bits (2 to 8) instead of each bit.
///
/// Each `add` of a key counts, up to `2**(width - 1)`: to 8 with width 4, to 128 with width 8. A
/// saturated counter is never decremented, so a key that was added that often can no longer be
/// removed. `a |= b` adds the counts of another filter.
///
/// Other arguments as for `BloomFilter`; `bits` is the number of counters, and `memory_limit`
/// includes them.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct CountingBloomFilter;

/// A `ClassicBloomFilter` with deletion. Arguments, and `a |= b`, as for `CountingBloomFilter`.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ClassicCountingBloomFilter;

/// A table of hash remainders, with deletion, counts and growth.
///
/// With `max_capacity`, at least `capacity`, it grows up to that number of keys and keeps its rate;
/// without it, `add` raises `FullError` when the filter is full. Other arguments as for
/// `BloomFilter`.
///
/// Each `add` takes a slot, also for a key that is in the filter: a filter of capacity 100 is full
/// before one key is added 250 times. So each copy can be removed without damage to other keys. To
/// store a key once, use `if key not in filter: filter.add(key)`; then `remove` may also remove
/// another key, with about the probability of a false positive. `a |= b` takes the keys of another
/// filter, and of a key in both the larger count.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct QuotientFilter;

/// A quotient filter of cache lines: deletion with one or two cache lines for each operation.
///
/// `fpr` is at least 1e-6, and the filter does not grow: `add` raises `FullError` when it is full.
/// Each `add` takes a slot, as in a `QuotientFilter`, but all copies of a key must fit into two
/// blocks of 24 to 64 slots. `a |= b` is that of a `QuotientFilter`, for filters of equal size.
/// Other arguments as for `BloomFilter`.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct VectorQuotientFilter;

/// Implements the methods that all classes with deletion have, beside its own; a class has one
/// block of methods.
macro_rules! deletion_methods {
    ($class:ident, $($own:tt)*) => {
        #[pymethods]
        impl $class {
            $($own)*

            /// Removes one copy of a key. `KeyError` if the key certainly is not in the filter.
            fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
                remove(slf.as_super(), key)
            }

            /// Removes one copy of a key if it may be in the filter. Returns whether it was
            /// removed.
            fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                discard(slf.as_super(), key)
            }

            /// Returns how often a key was added: 0 is exact, other values may be too large.
            fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                count(slf.as_super(), key)
            }

            fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
                change(slf.as_super(), other, FilterState::union)
            }
        }
    };
}

macro_rules! counting_methods {
    ($class:ident, $filter_type:expr) => {
        deletion_methods! { $class,
            #[new]
            #[pyo3(signature = (
                capacity = None, fpr = None, *, width = 4, bits = None, probes = None, least_space = false,
                memory_limit = None, seed = 0, secret = None, secret_apart = false
            ))]
            #[expect(clippy::too_many_arguments, reason = "the arguments of Python")]
            fn new(
                py: Python<'_>,
                capacity: Option<u64>,
                fpr: Option<f64>,
                width: u32,
                bits: Option<u64>,
                probes: Option<u32>,
                least_space: bool,
                memory_limit: Option<MemoryLimitArg>,
                seed: u64,
                secret: Option<&[u8]>,
                secret_apart: bool,
            ) -> PyResult<PyClassInitializer<Self>> {
                let spec = spec($filter_type, seed, secret, secret_apart)?;
                let spec = FilterSpec { counter_width: width, ..spec };
                let size = BloomSize { capacity, fpr, bits, probes, least_space, memory_limit };
                let built = py.detach(|| size.build(spec))?;
                Ok(with_state(built, Self))
            }

            /// Returns a `BloomFilter` (classic: a `ClassicBloomFilter`) of the same keys, without
            /// the counters.
            fn freeze(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                frozen(slf.as_super())
            }
        }
    };
}

counting_methods!(CountingBloomFilter, FilterType::Counting);
counting_methods!(ClassicCountingBloomFilter, FilterType::CountingClassic);

deletion_methods! { QuotientFilter,
    #[new]
    #[pyo3(signature = (capacity, fpr = 0.01, *, max_capacity = None, seed = 0, secret = None, secret_apart = false))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        fpr: f64,
        max_capacity: Option<u64>,
        seed: u64,
        secret: Option<&[u8]>,
        secret_apart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        if let Some(max) = max_capacity.filter(|max| *max < capacity) {
            return Err(PyValueError::new_err(format!(
                "max_capacity=: {max} is less than capacity=, {capacity}; raise max_capacity="
            )));
        }
        let mut spec = spec(FilterType::Quotient, seed, secret, secret_apart)?;
        (spec.capacity, spec.fpr, spec.max_capacity) = (Some(capacity), Some(fpr), max_capacity);
        Ok(with_state(build(py, &spec)?, Self))
    }
}

deletion_methods! { VectorQuotientFilter,
    #[new]
    #[pyo3(signature = (capacity, fpr = 0.01, *, seed = 0, secret = None, secret_apart = false))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        fpr: f64,
        seed: u64,
        secret: Option<&[u8]>,
        secret_apart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut spec = spec(FilterType::VectorQuotient, seed, secret, secret_apart)?;
        (spec.capacity, spec.fpr) = (Some(capacity), Some(fpr));
        Ok(with_state(build(py, &spec)?, Self))
    }
}

fn discard(filter: &Bound<'_, Filter>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    with_key(key, |key| {
        let mut state = filter.get().write(filter.py())?;
        let hash = state.hash(key)?;
        match state.filter_mut()? {
            AnyFilter::Counting(filter) => Ok(filter.remove_mixed_hash(hash)),
            AnyFilter::CountingClassic(filter) => Ok(filter.remove_mixed_hash(hash)),
            AnyFilter::Quotient(filter) => Ok(filter.remove_mixed_hash(hash)),
            AnyFilter::VectorQuotient(filter) => Ok(filter.remove_mixed_hash(hash)),
            _ => Err(no_counters()),
        }
    })
}

fn remove(filter: &Bound<'_, Filter>, key: &Bound<'_, PyAny>) -> PyResult<()> {
    if discard(filter, key)? { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
}

fn count(filter: &Bound<'_, Filter>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
    with_key(key, |key| {
        let state = filter.get().read(filter.py())?;
        let hash = state.hash(key)?;
        let count = each_storage!(&state.storage, filter => count_any(filter, hash), _ => None);
        count.ok_or_else(no_counters)
    })
}

fn count_any<S: Store>(filter: &AnyFilter<S>, hash: u64) -> Option<u64> {
    match filter {
        AnyFilter::Counting(filter) => Some(filter.count_mixed_hash(hash)),
        AnyFilter::CountingClassic(filter) => Some(filter.count_mixed_hash(hash)),
        AnyFilter::Quotient(filter) => Some(filter.count_mixed_hash(hash)),
        AnyFilter::VectorQuotient(filter) => Some(filter.count_mixed_hash(hash)),
        _ => None,
    }
}

fn frozen(filter: &Bound<'_, Filter>) -> PyResult<Py<PyAny>> {
    let ours = filter.get();
    let built = filter.py().detach(|| {
        let state = ours.read_detached()?;
        let built = each_storage!(&state.storage, filter => frozen_any(filter), _ => None);
        let built = built.ok_or_else(no_counters)?.map_err(IntoPyErr::into_py_err)?;
        Ok::<_, PyErr>(FilterState::from_storage(
            Storage::Memory(built),
            state.metadata().to_owned(),
        ))
    })?;
    object(filter.py(), built)
}

fn frozen_any<S: Store>(filter: &AnyFilter<S>) -> Option<petal::Result<AnyFilter>> {
    match filter {
        AnyFilter::Counting(filter) => Some(filter.freeze().map(AnyFilter::from)),
        AnyFilter::CountingClassic(filter) => Some(filter.freeze().map(AnyFilter::from)),
        _ => None,
    }
}

fn no_counters() -> PyErr {
    Exception::Unsupported.new_err("a filter of this type has no counters")
}
