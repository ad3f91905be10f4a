//! `BloomFilter` (blocked: the one to take unless there is a reason for another) and
//! `ClassicBloomFilter` (the textbook's): united, intersected, compared, made smaller.
//!
//! Filters of one type take part together if shape and hash are equal; sizes may differ where it
//! says so.

use petal::{AnyFilter, Builder, ClassicShape, Geometry, Overlap, Shape, Store};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::size::{Bytes, Size, hash, size, within};
use super::{Filter, object, pair, parts};
use crate::error::{Kind, Raise};
use crate::held::{Held, Place};

/// A blocked Bloom filter: one or two cache lines for each key. `BloomFilter(capacity, rate=0.01)`
/// holds that many keys at that false-positive rate.
///
/// `memory` (bytes, or "512M") without a rate gives the best rate that fits, with one it is a
/// limit. Filters of another `seed` err on other keys; it is no protection against chosen keys.
/// `secret` (16 random bytes) makes a keyed hash, for keys that an adversary may choose; it is
/// stored in the file.
///
/// Raises ValueError of what cannot be, MemoryCapError of what does not fit.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct BloomFilter;

/// The textbook's Bloom filter: a little smaller than BloomFilter, slower where it is larger than
/// the caches. Arguments as there.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ClassicBloomFilter;

#[pymethods]
impl BloomFilter {
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
        let builder = petal::BloomFilter::builder().hash(hash(seed, secret, false)?);
        let needed = |rate| Shape::for_rate(capacity, rate).map(|shape| shape.size_bytes());
        let made = py.detach(|| build(builder, capacity, rate, memory, needed))?;
        Ok(parts(made, Self))
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

    /// Estimates of what two filters have in common: a dict of "left", "right", "union",
    /// "intersection" (keys) and "jaccard" (0 to 1), each a value and its standard error. Sizes
    /// may differ. Cost: reads both.
    fn compare<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, Filter>,
    ) -> PyResult<Bound<'py, PyDict>> {
        compared(slf.as_super(), other)
    }

    /// The share of all keys of two filters that both have, 0 to 1: an estimate.
    fn jaccard(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<f64> {
        Ok(overlap(slf.as_super(), other)?.jaccard.value)
    }

    /// The filter with `divisor` times fewer blocks, as if it had been made so: smaller, and errs
    /// more often. ValueError if the blocks are no multiple of it.
    fn fold(slf: &Bound<'_, Self>, divisor: u64) -> PyResult<Py<PyAny>> {
        folded(slf.as_super(), Fold::By(divisor))
    }

    /// The smallest fold that still errs at `rate` at most: for what was planned too large.
    fn shrink_to_rate(slf: &Bound<'_, Self>, rate: f64) -> PyResult<Py<PyAny>> {
        folded(slf.as_super(), Fold::ToRate(rate))
    }
}

#[pymethods]
impl ClassicBloomFilter {
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
        let builder = petal::ClassicBloomFilter::builder().hash(hash(seed, secret, false)?);
        let needed = |rate| ClassicShape::for_rate(capacity, rate).map(|shape| shape.size_bytes());
        let made = py.detach(|| build(builder, capacity, rate, memory, needed))?;
        Ok(parts(made, Self))
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

    /// Estimates of what two filters have in common, as BloomFilter.compare().
    fn compare<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, Filter>,
    ) -> PyResult<Bound<'py, PyDict>> {
        compared(slf.as_super(), other)
    }

    /// The share of all keys of two filters that both have, 0 to 1: an estimate.
    fn jaccard(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<f64> {
        Ok(overlap(slf.as_super(), other)?.jaccard.value)
    }

    /// The filter with `divisor` times fewer bits, as if it had been made so: smaller, and errs
    /// more often. ValueError if the bits are no multiple of it.
    fn fold(slf: &Bound<'_, Self>, divisor: u64) -> PyResult<Py<PyAny>> {
        folded(slf.as_super(), Fold::By(divisor))
    }

    /// The smallest fold that still errs at `rate` at most: for what was planned too large.
    fn shrink_to_rate(slf: &Bound<'_, Self>, rate: f64) -> PyResult<Py<PyAny>> {
        folded(slf.as_super(), Fold::ToRate(rate))
    }
}

fn build<G: Geometry>(
    builder: Builder<G>,
    capacity: u64,
    rate: Option<f64>,
    memory: Option<Bytes>,
    needed: impl Fn(f64) -> petal::Result<u64>,
) -> PyResult<Held>
where
    AnyFilter: From<petal::Filter<G>>,
{
    let memory = memory.map(|memory| memory.0);
    let builder = builder.keys(capacity);
    let builder = match size(rate, memory) {
        Size::Memory(bytes) => builder.memory(bytes),
        Size::Rate(rate) => {
            within(needed(rate).map_err(Raise::raise)?, memory)?;
            builder.rate(rate)
        }
    };
    Ok(Held::new(builder.build().map_err(Raise::raise)?))
}

type Change = fn(&mut Held, &Held) -> PyResult<()>;

/// Changes a filter by another one, or itself.
pub(super) fn change(
    ours: &Bound<'_, Filter>,
    theirs: &Bound<'_, Filter>,
    how: Change,
) -> PyResult<()> {
    let (a, b) = (ours.get(), theirs.get());
    ours.py().detach(|| pair::change_by(a, b, how))
}

/// A copy, changed by others.
pub(super) fn combined(
    ours: &Bound<'_, Filter>,
    others: &Bound<'_, PyTuple>,
    how: Change,
) -> PyResult<Py<PyAny>> {
    let filter = ours.get();
    let made = Filter::new(ours.py().detach(|| filter.read_detached()?.copy())?);
    for other in others {
        let other = other.cast::<Filter>()?.get();
        ours.py().detach(|| pair::change_by(&made, other, how))?;
    }
    let held = made.into_held()?;
    object(ours.py(), held)
}

/// The same of `|` and `&`, which the other side may know better.
pub(super) fn combined_by_operator(
    ours: &Bound<'_, Filter>,
    other: &Bound<'_, PyAny>,
    how: Change,
) -> PyResult<Py<PyAny>> {
    if !other.is_instance_of::<Filter>() {
        return Ok(ours.py().NotImplemented());
    }
    combined(ours, &PyTuple::new(ours.py(), [other])?, how)
}

/// Keeps the bits that both have.
pub(super) fn intersect(ours: &mut Held, theirs: &Held) -> PyResult<()> {
    let ours = ours.memory()?;
    let done = match &theirs.place {
        Place::Memory(theirs) => intersect_any(ours, theirs),
        Place::File(theirs) => intersect_any(ours, theirs),
        Place::Foreign(_) | Place::ForeignFile(_) => None,
    };
    done.ok_or_else(differ)?.map_err(Raise::raise)
}

/// None of types that are not intersected.
fn intersect_any<S: Store>(
    ours: &mut AnyFilter,
    theirs: &AnyFilter<S>,
) -> Option<petal::Result<()>> {
    match (ours, theirs) {
        (AnyFilter::Bloom(ours), AnyFilter::Bloom(theirs)) => Some(ours.intersect(theirs)),
        (AnyFilter::Classic(ours), AnyFilter::Classic(theirs)) => Some(ours.intersect(theirs)),
        (AnyFilter::Wide(ours), AnyFilter::Wide(theirs)) => Some(ours.intersect(theirs)),
        _ => None,
    }
}

fn differ() -> PyErr {
    Kind::Incompatible.with("the filters differ in type: both must be of one that allows it")
}

fn overlap(ours: &Bound<'_, Filter>, theirs: &Bound<'_, Filter>) -> PyResult<Overlap> {
    let (a, b) = (ours.get(), theirs.get());
    let look = |a: &Held, b: &Held| {
        let compared = match (&a.place, &b.place) {
            (Place::Memory(a), Place::Memory(b)) => overlap_any(a, b),
            (Place::Memory(a), Place::File(b)) => overlap_any(a, b),
            (Place::File(a), Place::Memory(b)) => overlap_any(a, b),
            (Place::File(a), Place::File(b)) => overlap_any(a, b),
            _ => None,
        };
        compared.ok_or_else(differ)?.map_err(Raise::raise)
    };
    ours.py().detach(|| pair::with_both(a, b, look))
}

fn overlap_any<S: Store, T: Store>(
    a: &AnyFilter<S>,
    b: &AnyFilter<T>,
) -> Option<petal::Result<Overlap>> {
    match (a, b) {
        (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) => Some(a.compare(b)),
        (AnyFilter::Classic(a), AnyFilter::Classic(b)) => Some(a.compare(b)),
        _ => None,
    }
}

fn compared<'py>(
    ours: &Bound<'py, Filter>,
    theirs: &Bound<'py, Filter>,
) -> PyResult<Bound<'py, PyDict>> {
    let overlap = overlap(ours, theirs)?;
    let all = [
        ("left", overlap.left),
        ("right", overlap.right),
        ("union", overlap.union),
        ("intersection", overlap.intersection),
        ("jaccard", overlap.jaccard),
    ];
    let dict = PyDict::new(ours.py());
    for (name, estimate) in all {
        dict.set_item(name, (estimate.value, estimate.error))?;
    }
    Ok(dict)
}

#[derive(Clone, Copy)]
enum Fold {
    By(u64),
    ToRate(f64),
}

fn folded(filter: &Bound<'_, Filter>, fold: Fold) -> PyResult<Py<PyAny>> {
    let ours = filter.get();
    let made = filter.py().detach(|| {
        let held = ours.read_detached()?;
        let made = match &held.place {
            Place::Memory(filter) => folded_any(filter, fold),
            Place::File(filter) => folded_any(filter, fold),
            Place::Foreign(_) | Place::ForeignFile(_) => None,
        };
        let made = made.ok_or_else(differ)?.map_err(Raise::raise)?;
        Ok::<_, PyErr>(Held::at(Place::Memory(made), held.metadata.clone()))
    })?;
    object(filter.py(), made)
}

fn folded_any<S: Store>(filter: &AnyFilter<S>, fold: Fold) -> Option<petal::Result<AnyFilter>> {
    fn of<G: Geometry, S: Store>(
        filter: &petal::Filter<G, S>,
        fold: Fold,
    ) -> petal::Result<petal::Filter<G>> {
        match fold {
            Fold::By(divisor) => filter.fold(divisor),
            Fold::ToRate(rate) => filter.shrink_to_rate(rate),
        }
    }
    match filter {
        AnyFilter::Bloom(filter) => Some(of(filter, fold).map(AnyFilter::from)),
        AnyFilter::Classic(filter) => Some(of(filter, fold).map(AnyFilter::from)),
        _ => None,
    }
}
