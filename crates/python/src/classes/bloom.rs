//! `BloomFilter`, the default, and `ClassicBloomFilter`, the textbook's; and the combination of two
//! filters.

use petal::embed::Layout;
use petal::{AnyFilter, FilterType, Overlap, Store};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::options::{BloomSize, MemoryLimitArg, spec};
use super::{Filter, object, pair, with_state};
use crate::error::{Exception, IntoPyErr};
use crate::state::{FilterState, Storage, each_storage};

/// A blocked Bloom filter: the bits of a key are in one or two cache lines.
///
/// - `capacity`: number of distinct keys to plan for.
/// - `fpr`: false-positive rate at that number of keys, above 0 and below 1 [0.01; with only
///   `memory_limit` the lowest that fits].
/// - `bits`, `probes`: number of bits of the filter, and bits that each key sets, 1 to 16 (classic:
///   1 to 64) [as `capacity` and `fpr` need]. With `bits` and `probes` alone the filter has no
///   plan: its `capacity` and `target_fpr` are 0.
/// - `least_space`: whether to choose the smallest filter for the rate: 2 % less space at 0.01, 4 %
///   at 0.001, and up to twice the time for a key. Not with `bits`, `probes`, or `memory_limit`
///   without `fpr`.
/// - `memory_limit`: bytes as an `int`, or a `str` such as `"512M"`, `"1.5G"` or `"25%"`. With
///   `fpr` the filter must fit.
/// - `seed`: an `int` from 0 to `2**64 - 1` that selects the hash. Filters with different seeds
///   have different false positives. A seed does not protect against chosen keys.
/// - `secret`: 16 random bytes for a keyed hash, for keys that an adversary may choose. It is
///   stored in the file.
/// - `secret_apart`: keep the secret out of the file: `open` needs it. The filter cannot be pickled.
///
/// Raises `ValueError` if an argument is out of range, `MemoryLimitError` if the filter does not
/// fit.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct BloomFilter;

/// The textbook's Bloom filter: the bits of a key are anywhere. A little smaller than
/// `BloomFilter`, and slower if it is larger than the caches of the processor. Arguments as for
/// `BloomFilter`.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ClassicBloomFilter;

/// Implements the methods that both classes have; a class has one block of methods.
macro_rules! bloom_methods {
    ($class:ident, $filter_type:expr) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (
                capacity = None, fpr = None, *, bits = None, probes = None, least_space = false,
                memory_limit = None, seed = 0, secret = None, secret_apart = false
            ))]
            #[expect(clippy::too_many_arguments, reason = "the arguments of Python")]
            fn new(
                py: Python<'_>,
                capacity: Option<u64>,
                fpr: Option<f64>,
                bits: Option<u64>,
                probes: Option<u32>,
                least_space: bool,
                memory_limit: Option<MemoryLimitArg>,
                seed: u64,
                secret: Option<&[u8]>,
                secret_apart: bool,
            ) -> PyResult<PyClassInitializer<Self>> {
                let spec = spec($filter_type, seed, secret, secret_apart)?;
                let size = BloomSize { capacity, fpr, bits, probes, least_space, memory_limit };
                let built = py.detach(|| size.build(spec))?;
                Ok(with_state(built, Self))
            }

            /// Returns a filter of the keys of this one and all others. Raises `IncompatibleError`
            /// unless type, layout and hash are equal.
            #[pyo3(signature = (*others))]
            fn union(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
                combined(slf.as_super(), others, FilterState::union)
            }

            /// Returns a filter that contains a key only if this one and all others do: every
            /// common key, and more false positives than a filter built from the common keys.
            /// Raises `IncompatibleError` as `union` does.
            #[pyo3(signature = (*others))]
            fn intersection(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
                combined(slf.as_super(), others, intersect)
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

            /// Estimates the overlap of two filters of any size: a `dict` of `"left"`, `"right"`,
            /// `"union"`, `"intersection"` (numbers of keys) and `"jaccard"` (0 to 1), each a pair
            /// of the value and its standard error; `nan` and `inf` for what a full filter leaves
            /// unknown. Cost: one pass over both.
            fn compare<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, Filter>,
            ) -> PyResult<Bound<'py, PyDict>> {
                compared(slf.as_super(), other)
            }

            /// Returns whether every bit of this filter is set in the other one. `False` is
            /// certain: a key of this filter was never added to the other. `True` has the other's
            /// false-positive rate for each key that it lacks. Raises `IncompatibleError` as
            /// `union` does. Cost: a copy of the other filter, and two passes over both.
            fn issubset(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<bool> {
                is_subset(slf.as_super(), other)
            }

            /// Returns whether every bit of the other filter is set in this one:
            /// `other.issubset(self)`.
            fn issuperset(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<bool> {
                is_subset(other, slf.as_super())
            }

            /// Returns whether the filters seem to have no key in common: the estimate of `compare`
            /// is at most three times its standard error. `False` if a filter is full. Cost: one
            /// pass over both.
            ///
            /// Not certain either way: fewer common keys than that are not noticed, and of 700
            /// pairs without any, about one seems to have some.
            fn isdisjoint(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<bool> {
                let common = overlap(slf.as_super(), other)?.intersection;
                // False if the value is unknown, which is NaN.
                Ok(common.value <= 3.0 * common.error)
            }

            /// Estimates the Jaccard index, 0 to 1: the keys of both filters divided by the keys of
            /// either. `nan` if a filter is full.
            fn jaccard(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<f64> {
                Ok(overlap(slf.as_super(), other)?.jaccard.value)
            }

            /// Returns a filter of the same keys with `divisor` times fewer blocks (classic: bits)
            /// and a higher false-positive rate. `ValueError` if their number is not a multiple of
            /// `divisor`.
            fn fold(slf: &Bound<'_, Self>, divisor: u64) -> PyResult<Py<PyAny>> {
                folded(slf.as_super(), Fold::By(divisor))
            }

            /// Returns the smallest filter of the same keys whose false-positive rate is at most
            /// `fpr`.
            fn shrink_to_fpr(slf: &Bound<'_, Self>, fpr: f64) -> PyResult<Py<PyAny>> {
                folded(slf.as_super(), Fold::ToFpr(fpr))
            }
        }
    };
}

bloom_methods!(BloomFilter, FilterType::Bloom);
bloom_methods!(ClassicBloomFilter, FilterType::Classic);

type Change = fn(&mut FilterState, &FilterState) -> PyResult<()>;

/// Changes a filter in place, using another one or itself.
pub(super) fn change(
    ours: &Bound<'_, Filter>,
    theirs: &Bound<'_, Filter>,
    change: Change,
) -> PyResult<()> {
    let (a, b) = (ours.get(), theirs.get());
    ours.py().detach(|| pair::change_first(a, b, change))
}

/// Returns a copy, changed using each of the others in turn.
pub(super) fn combined(
    ours: &Bound<'_, Filter>,
    others: &Bound<'_, PyTuple>,
    change: Change,
) -> PyResult<Py<PyAny>> {
    let filter = ours.get();
    let built = Filter::new(ours.py().detach(|| filter.read_detached()?.copy())?);
    for other in others {
        let other = other.cast::<Filter>()?.get();
        ours.py().detach(|| pair::change_first(&built, other, change))?;
    }
    let state = built.into_state()?;
    object(ours.py(), state)
}

/// [`combined`] for the operators `|` and `&`, which return `NotImplemented` for other objects.
pub(super) fn combined_by_operator(
    ours: &Bound<'_, Filter>,
    other: &Bound<'_, PyAny>,
    change: Change,
) -> PyResult<Py<PyAny>> {
    if !other.is_instance_of::<Filter>() {
        return Ok(ours.py().NotImplemented());
    }
    combined(ours, &PyTuple::new(ours.py(), [other])?, change)
}

/// Keeps the bits that are set in both filters.
pub(super) fn intersect(ours: &mut FilterState, theirs: &FilterState) -> PyResult<()> {
    ours.check_same_transforms(theirs)?;
    let ours = ours.filter_mut()?;
    let done = each_storage!(&theirs.storage, theirs => intersect_any(ours, theirs), _ => None);
    done.ok_or_else(different_types)?.map_err(IntoPyErr::into_py_err)
}

/// Returns `None` if the types differ or have no intersection.
fn intersect_any<S: Store>(
    ours: &mut AnyFilter,
    theirs: &AnyFilter<S>,
) -> Option<petal::Result<()>> {
    match (ours, theirs) {
        (AnyFilter::Bloom(ours), AnyFilter::Bloom(theirs)) => Some(ours.intersect(theirs)),
        (AnyFilter::Classic(ours), AnyFilter::Classic(theirs)) => Some(ours.intersect(theirs)),
        _ => None,
    }
}

/// Returns whether the second filter has all bits of the first.
pub(super) fn is_subset(a: &Bound<'_, Filter>, b: &Bound<'_, Filter>) -> PyResult<bool> {
    let (ours, theirs) = (a.get(), b.get());
    a.py().detach(|| {
        pair::with_both(ours, theirs, |a, b| {
            if !a.is_bloom() || !b.is_bloom() {
                return Err(different_types());
            }
            a.is_subset(b)
        })
    })
}

fn different_types() -> PyErr {
    Exception::Incompatible
        .new_err("the filters must have the same type, one that supports this operation")
}

fn overlap(ours: &Bound<'_, Filter>, theirs: &Bound<'_, Filter>) -> PyResult<Overlap> {
    let (a, b) = (ours.get(), theirs.get());
    let compare = |a: &FilterState, b: &FilterState| {
        a.check_same_transforms(b)?;
        let compared = match (&a.storage, &b.storage) {
            (Storage::Memory(a), Storage::Memory(b)) => overlap_any(a, b),
            (Storage::Memory(a), Storage::Mapped(b)) => overlap_any(a, b),
            (Storage::Mapped(a), Storage::Memory(b)) => overlap_any(a, b),
            (Storage::Mapped(a), Storage::Mapped(b)) => overlap_any(a, b),
            _ => None,
        };
        compared.ok_or_else(different_types)?.map_err(IntoPyErr::into_py_err)
    };
    ours.py().detach(|| pair::with_both(a, b, compare))
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
    ToFpr(f64),
}

fn folded(filter: &Bound<'_, Filter>, fold: Fold) -> PyResult<Py<PyAny>> {
    let ours = filter.get();
    let built = filter.py().detach(|| {
        let state = ours.read_detached()?;
        let built = each_storage!(&state.storage, filter => folded_any(filter, fold), _ => None);
        let built = built.ok_or_else(different_types)?.map_err(IntoPyErr::into_py_err)?;
        Ok::<_, PyErr>(FilterState::from_storage(
            Storage::Memory(built),
            state.metadata().to_owned(),
        ))
    })?;
    object(filter.py(), built)
}

fn folded_any<S: Store>(filter: &AnyFilter<S>, fold: Fold) -> Option<petal::Result<AnyFilter>> {
    fn of<L: Layout, S: Store>(
        filter: &petal::Filter<L, S>,
        fold: Fold,
    ) -> petal::Result<petal::Filter<L>> {
        match fold {
            Fold::By(divisor) => filter.fold(divisor),
            Fold::ToFpr(fpr) => filter.shrink_to_fpr(fpr),
        }
    }
    match filter {
        AnyFilter::Bloom(filter) => Some(of(filter, fold).map(AnyFilter::from)),
        AnyFilter::Classic(filter) => Some(of(filter, fold).map(AnyFilter::from)),
        _ => None,
    }
}
