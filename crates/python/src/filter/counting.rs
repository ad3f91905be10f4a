//! The classes that delete: `CountingBloomFilter`, `ClassicCountingBloomFilter` (a small counter
//! for each bit), `QuotientFilter` (remainders in a table, which grows and counts, too).
//!
//! They hold a key as often as it was added. Removing a key that was never added, and passes by
//! chance, takes away another one's: only remove what was added.

use petal::{AnyFilter, ClassicShape, CountingBuilder, Geometry, Shape, Store};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use super::bloom::change;
use super::size::{Bytes, Size, hash, size, within};
use super::{Filter, object, parts};
use crate::error::{Kind, Raise};
use crate::held::{Held, Place};
use crate::key::with_key;

/// A Bloom filter with a small counter of `width` bits for each bit, to delete.
///
/// Each add() of a key counts, up to 2**(width - 1): to 8 with width 4, to 128 with width 8. A
/// counter at that limit stays there, so a key that was added so often can no longer be removed.
/// Other arguments as of BloomFilter; memory is that of the counters, too.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct CountingBloomFilter;

/// The same over a ClassicBloomFilter.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ClassicCountingBloomFilter;

/// Remainders of hashes in a table: deletes, counts, and grows without the keys. With
/// `max_capacity` it grows to that many keys by itself, at the rate all the way; without, it
/// raises FullError when it is full.
///
/// Each add() takes a slot, also of a key that is there: one key added 250 times is more than a
/// filter of capacity 100 takes. So each copy can be removed without harm to other keys. To hold a key once, ask
/// first: `if key not in filter: filter.add(key)`; then remove() may take away another key, too,
/// with about the chance of a false positive.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct QuotientFilter;

#[pymethods]
impl CountingBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity, rate = None, *, width = 4, memory = None, seed = 0, secret = None
    ))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        rate: Option<f64>,
        width: u32,
        memory: Option<Bytes>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = petal::CountingBloomFilter::builder().hash(hash(seed, secret, false)?);
        let needed = |rate| Shape::for_rate(capacity, rate).map(|shape| shape.size_bytes());
        let made = py.detach(|| build(builder, capacity, (rate, width, memory), needed))?;
        Ok(parts(made, Self))
    }

    /// Removes a key once. KeyError if it was certainly not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        remove(slf.as_super(), key)
    }

    /// Removes a key once, if it may be there; whether it was.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        discard(slf.as_super(), key)
    }

    /// How often a key was added: at least so often, as far as the counters reach; 0 is certain.
    fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        count(slf.as_super(), key)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, Held::union)
    }

    /// The BloomFilter of its keys, without the counters.
    fn freeze(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        frozen(slf.as_super())
    }
}

#[pymethods]
impl ClassicCountingBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity, rate = None, *, width = 4, memory = None, seed = 0, secret = None
    ))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        rate: Option<f64>,
        width: u32,
        memory: Option<Bytes>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = petal::ClassicCountingBloomFilter::builder().hash(hash(seed, secret, false)?);
        let needed = |rate| ClassicShape::for_rate(capacity, rate).map(|shape| shape.size_bytes());
        let made = py.detach(|| build(builder, capacity, (rate, width, memory), needed))?;
        Ok(parts(made, Self))
    }

    /// Removes a key once. KeyError if it was certainly not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        remove(slf.as_super(), key)
    }

    /// Removes a key once, if it may be there; whether it was.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        discard(slf.as_super(), key)
    }

    /// How often a key was added: at least so often, as far as the counters reach; 0 is certain.
    fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        count(slf.as_super(), key)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, Held::union)
    }

    /// The ClassicBloomFilter of its keys, without the counters.
    fn freeze(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        frozen(slf.as_super())
    }
}

#[pymethods]
impl QuotientFilter {
    #[new]
    #[pyo3(signature = (capacity, rate = 0.01, *, max_capacity = None, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        rate: f64,
        max_capacity: Option<u64>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = petal::QuotientFilter::builder().hash(hash(seed, secret, false)?);
        let builder = builder.keys(capacity).rate(rate);
        let builder = max_capacity.map_or(builder, |most| builder.max_keys(most));
        let made = py.detach(|| builder.build()).map_err(Raise::raise)?;
        Ok(parts(Held::new(made), Self))
    }

    /// Removes a key once. KeyError if it was certainly not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        remove(slf.as_super(), key)
    }

    /// Removes a key once, if it may be there; whether it was.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        discard(slf.as_super(), key)
    }

    /// How often a key was added: at least so often; 0 is certain.
    fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        count(slf.as_super(), key)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, Held::union)
    }
}

fn build<G: Geometry>(
    builder: CountingBuilder<G>,
    capacity: u64,
    (rate, width, memory): (Option<f64>, u32, Option<Bytes>),
    needed: impl Fn(f64) -> petal::Result<u64>,
) -> PyResult<Held>
where
    AnyFilter: From<petal::CountingFilter<G>>,
{
    let memory = memory.map(|memory| memory.0);
    let builder = builder.keys(capacity).width(width);
    let builder = match size(rate, memory) {
        Size::Memory(bytes) => builder.memory(bytes),
        Size::Rate(rate) => {
            let bits = needed(rate).map_err(Raise::raise)?;
            within(bits.saturating_mul(width.into()), memory)?;
            builder.rate(rate)
        }
    };
    Ok(Held::new(builder.build().map_err(Raise::raise)?))
}

fn discard(filter: &Bound<'_, Filter>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    with_key(key, |key| {
        let mut held = filter.get().write(filter.py())?;
        let hash = held.hash_of(key)?;
        match held.memory()? {
            AnyFilter::Counting(filter) => Ok(filter.remove_mixed_hash(hash)),
            AnyFilter::CountingClassic(filter) => Ok(filter.remove_mixed_hash(hash)),
            AnyFilter::Quotient(filter) => Ok(filter.remove_mixed_hash(hash)),
            _ => Err(no_counters()),
        }
    })
}

fn remove(filter: &Bound<'_, Filter>, key: &Bound<'_, PyAny>) -> PyResult<()> {
    if discard(filter, key)? { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
}

fn count(filter: &Bound<'_, Filter>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
    with_key(key, |key| {
        let held = filter.get().read(filter.py())?;
        let hash = held.hash_of(key)?;
        let count = match &held.place {
            Place::Memory(filter) => count_any(filter, hash),
            Place::File(filter) => count_any(filter, hash),
            Place::Foreign(_) | Place::ForeignFile(_) => None,
        };
        count.ok_or_else(no_counters)
    })
}

fn count_any<S: Store>(filter: &AnyFilter<S>, hash: u64) -> Option<u64> {
    match filter {
        AnyFilter::Counting(filter) => Some(filter.count_mixed_hash(hash)),
        AnyFilter::CountingClassic(filter) => Some(filter.count_mixed_hash(hash)),
        AnyFilter::Quotient(filter) => Some(filter.count_mixed_hash(hash)),
        _ => None,
    }
}

fn frozen(filter: &Bound<'_, Filter>) -> PyResult<Py<PyAny>> {
    let ours = filter.get();
    let made = filter.py().detach(|| {
        let held = ours.read_detached()?;
        let made = match &held.place {
            Place::Memory(filter) => frozen_any(filter),
            Place::File(filter) => frozen_any(filter),
            Place::Foreign(_) | Place::ForeignFile(_) => None,
        };
        let made = made.ok_or_else(no_counters)?.map_err(Raise::raise)?;
        Ok::<_, PyErr>(Held::at(Place::Memory(made), held.metadata.clone()))
    })?;
    object(filter.py(), made)
}

fn frozen_any<S: Store>(filter: &AnyFilter<S>) -> Option<petal::Result<AnyFilter>> {
    match filter {
        AnyFilter::Counting(filter) => Some(filter.freeze().map(AnyFilter::from)),
        AnyFilter::CountingClassic(filter) => Some(filter.freeze().map(AnyFilter::from)),
        _ => None,
    }
}

fn no_counters() -> PyErr {
    Kind::Unsupported.with("a filter of this type has no counters")
}
