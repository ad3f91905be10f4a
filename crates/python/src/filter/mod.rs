//! The classes: `Filter`, what every type can be asked and told, and one class below it for each
//! type, with what that type alone can do.
//!
//! What a type cannot do raises `UnsupportedError`: a mapped file never changes, nor does a
//! filter that was made once of all its keys.

mod bloom;
mod counting;
mod files;
mod fixed;
mod foreign;
mod growing;
mod info;
mod pair;
mod size;
mod wide;

use petal::FilterType;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch;
use crate::error::Kind;
use crate::held::{Held, Place};
use crate::key::with_key;
use crate::open::Name;
pub(crate) use crate::shared::Filter;

#[pymethods]
impl Filter {
    // ---- Keys -----------------------------------------------------------------------------------

    /// Whether a key may have been added; *no* is certain.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        // The key first: looking at it may run Python code.
        with_key(key, |key| self.read(py)?.contains(key))
    }

    /// Which of many keys may have been added: true or false for each key, in their order.
    ///
    /// The answers have the form that the library of the keys uses: a NumPy array of bool for a
    /// NumPy array, a Series of bool with the same index for a pandas Series or a frame of one
    /// column, a polars Series for a polars Series, a pyarrow BooleanArray for what pyarrow has, a
    /// petal.Mask for other producers of Arrow arrays, and a list of bool for any other iterable.
    /// A null is no key: false.
    fn contains_batch<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::contains(self, keys)
    }

    /// Adds a key; whether it certainly was not in the filter before.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(key, |key| self.write(py)?.insert(key))
    }

    /// Adds all keys of iterables, or of arrays as contains_batch() takes them; how many of them
    /// certainly were not in the filter before. Nulls are no keys.
    ///
    /// Others may ask the filter meanwhile, and see the keys come in. What was added before an
    /// exception stays.
    #[pyo3(signature = (*keys))]
    fn update(&self, keys: &Bound<'_, PyTuple>) -> PyResult<u64> {
        let mut new = 0;
        for keys in keys {
            new += batch::update(self, &keys)?;
        }
        Ok(new)
    }

    /// Forgets all keys. A scalable filter is its first layer again.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.write_detached()?.clear())
    }

    // ---- What is known of it --------------------------------------------------------------------

    /// The number of distinct keys in it, estimated from its bits; infinite if it is full, nan if
    /// the format of another program does not tell. After an intersection it is an upper bound,
    /// as bits that different keys set by chance count, too; `inserted` is the estimate then.
    #[getter]
    fn estimated_len(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| {
            let held = self.read_detached()?;
            Ok(match held.face() {
                Some(face) => face.estimated_len(),
                None => held.facts()?.estimated_keys.unwrap_or(f64::NAN),
            })
        })
    }

    /// The false-positive rate as it is now, whatever was planned.
    #[getter]
    fn estimated_rate(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| {
            let held = self.read_detached()?;
            Ok(match held.face() {
                Some(face) => face.estimated_rate(),
                None => held.facts()?.rate_now,
            })
        })
    }

    /// The share of its bits, counters or slots that are in use, 0 to 1.
    #[getter]
    fn fill_ratio(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| {
            let held = self.read_detached()?;
            if let Some(face) = held.face() {
                return Ok(face.fill_ratio());
            }
            let facts = held.facts()?;
            Ok(facts.set as f64 / facts.bits.max(1) as f64)
        })
    }

    /// How many keys that were added were new; after a union or an intersection an estimate of
    /// the distinct keys, with the error that `compare` returns. 0 if the format of another
    /// program does not tell.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        let held = self.read(py)?;
        Ok(match held.face() {
            Some(face) => face.inserted(),
            None => held.told()?.counted.unwrap_or(0),
        })
    }

    /// Keys it was planned for; 0 if there was no plan, or nothing tells. Of a filter in layers
    /// those of the first one.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
        let held = self.read(py)?;
        Ok(match held.face() {
            Some(face) => face.planned_keys(),
            None => held.told()?.planned_keys.unwrap_or(0),
        })
    }

    /// The false-positive rate it was planned for; 0.0 if there was no plan, or nothing tells.
    #[getter]
    fn rate(&self, py: Python<'_>) -> PyResult<f64> {
        let held = self.read(py)?;
        Ok(match held.face() {
            Some(face) => face.target_rate(),
            None => held.told()?.target_rate.unwrap_or(0.0),
        })
    }

    /// Bytes that its data take, in memory or in a file.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let held = self.read(py)?;
        Ok(held.face().map_or_else(|| held.file_bytes(), |face| face.size_bytes()))
    }

    /// Bytes of memory that it takes in all; the pages of a mapped file are not counted.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let held = self.read(py)?;
        Ok(match held.face() {
            Some(face) => face.memory_usage(),
            None if held.is_mapped() => 0,
            None => held.file_bytes(),
        })
    }

    /// The false-positive rate with so many distinct keys in it, by calculation.
    fn expected_rate(&self, py: Python<'_>, keys: u64) -> PyResult<f64> {
        match self.read(py)?.face() {
            Some(face) => Ok(face.expected_rate(keys)),
            None => Err(Kind::Unsupported.with(
                "no rate is calculated for other programs' filters; estimated_rate tells it now",
            )),
        }
    }

    /// How many keys more it holds at the rate planned for; None where that is no number: if
    /// there was no plan, or if it grows, forgets, or takes no keys at all.
    #[getter]
    fn capacity_left(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| Ok(self.read_detached()?.face().and_then(|face| face.capacity_left())))
    }

    /// Whether it errs more often than planned, by its bits and by more than chance: time for a
    /// larger one.
    #[getter]
    fn is_overfull(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| {
            let held = self.read_detached()?;
            Ok(match held.face() {
                Some(face) => face.is_overfull(),
                None => {
                    let facts = held.facts()?;
                    let target = facts.target_rate.unwrap_or(0.0);
                    petal::rate::overfull(target, facts.rate_now, facts.bits)
                }
            })
        })
    }

    /// Its type as on the command line: "bloom", "scalable", ...; "foreign" of other programs'.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.read(py)?.face().map_or("foreign", |face| face.filter_type().name()))
    }

    /// Whether it lies in a mapped file, and is read only.
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.is_mapped())
    }

    /// Free-form text that is kept in its file, JSON as a rule; at most 1 MiB.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.read(py)?.metadata.clone())
    }

    #[setter]
    fn set_metadata(&self, py: Python<'_>, metadata: String) -> PyResult<()> {
        self.write(py)?.set_metadata(metadata)
    }

    /// All that is known of it, by name.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        info::info(self, py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        info::words(slf.get(), slf.py(), &slf.get_type().name()?.to_string())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let other = other.get();
        let equal = py.detach(|| pair::with_both(self, other, |a, b| Ok(a.equals(b))))?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    // ---- Files and copies -----------------------------------------------------------------------

    /// Writes it to a file, which appears whole or not at all: written aside, made durable, moved
    /// into place. Whoever changes the filter meanwhile waits.
    fn save(&self, py: Python<'_>, path: Name) -> PyResult<()> {
        py.detach(|| files::save(&path.0, |out| self.read_detached()?.write_to(out)))
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let mut bytes = Vec::new();
            self.read_detached()?.write_to(&mut bytes)?;
            Ok::<_, PyErr>(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Makes a filter of the bytes of a file, every byte examined; of the class of what is in
    /// them. As petal.from_bytes.
    #[staticmethod]
    #[pyo3(signature = (data, *, format = None, keys = "text"))]
    fn from_bytes(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        format: Option<&str>,
        keys: &str,
    ) -> PyResult<Py<PyAny>> {
        files::from_bytes(py, data, format, keys)
    }

    /// A copy in memory of its own, which can be changed; of a mapped file, too.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let copy = py.detach(|| self.read_detached()?.copy())?;
        object(py, copy)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    /// Pickled it is the bytes of its file.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (format, keys) = self.read(py)?.told_by().unzip();
        let words = (self.to_bytes(py)?, format, keys.unwrap_or("text"));
        let make = UNPICKLED.get(py).ok_or_else(|| Kind::Petal.with("the module is half made"))?;
        (make, words).into_pyobject(py)
    }

    /// Examines every byte of a mapped file: raises FormatError if any is damaged. What lies in
    /// memory was examined when it was read.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.read_detached()?.verify())
    }
}

/// What a pickle calls, by the name that this module was imported by.
static UNPICKLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Makes a filter of what a pickle holds.
#[pyfunction(name = "_unpickled")]
fn unpickled(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    format: Option<&str>,
    keys: &str,
) -> PyResult<Py<PyAny>> {
    files::from_bytes(py, data, format, keys)
}

/// What makes an object of a class below `Filter`.
fn parts<T: PyClass<BaseType = Filter>>(held: Held, class: T) -> PyClassInitializer<T> {
    PyClassInitializer::from(Filter::new(held)).add_subclass(class)
}

/// A filter as an object of its own class.
pub(crate) fn object(py: Python<'_>, held: Held) -> PyResult<Py<PyAny>> {
    let kind = match &held.place {
        Place::Memory(filter) => filter.face().filter_type(),
        Place::File(filter) => filter.face().filter_type(),
        Place::Foreign(_) | Place::ForeignFile(_) => {
            return Ok(Py::new(py, parts(held, foreign::ForeignFilter))?.into_any());
        }
    };
    Ok(match kind {
        FilterType::Bloom => Py::new(py, parts(held, bloom::BloomFilter))?.into_any(),
        FilterType::Classic => Py::new(py, parts(held, bloom::ClassicBloomFilter))?.into_any(),
        FilterType::Counting => Py::new(py, parts(held, counting::CountingBloomFilter))?.into_any(),
        FilterType::CountingClassic => {
            Py::new(py, parts(held, counting::ClassicCountingBloomFilter))?.into_any()
        }
        FilterType::Quotient => Py::new(py, parts(held, counting::QuotientFilter))?.into_any(),
        FilterType::Scalable => Py::new(py, parts(held, growing::ScalableBloomFilter))?.into_any(),
        FilterType::Windowed => Py::new(py, parts(held, growing::WindowedBloomFilter))?.into_any(),
        FilterType::Static => Py::new(py, parts(held, fixed::StaticFilter))?.into_any(),
        FilterType::Cascade => Py::new(py, parts(held, fixed::FilterCascade))?.into_any(),
        FilterType::Wide => Py::new(py, parts(held, wide::WideBloomFilter))?.into_any(),
        // Of a type that this crate does not know.
        _ => Py::new(py, Filter::new(held))?.into_any(),
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let unpickled = wrap_pyfunction!(unpickled, module)?;
    UNPICKLED.get_or_init(module.py(), || unpickled.clone().into_any().unbind());
    module.add_function(unpickled)?;
    files::register(module)?;
    module.add_class::<Filter>()?;
    module.add_class::<bloom::BloomFilter>()?;
    module.add_class::<bloom::ClassicBloomFilter>()?;
    module.add_class::<counting::ClassicCountingBloomFilter>()?;
    module.add_class::<counting::CountingBloomFilter>()?;
    module.add_class::<counting::QuotientFilter>()?;
    module.add_class::<fixed::FilterCascade>()?;
    module.add_class::<fixed::StaticFilter>()?;
    module.add_class::<foreign::ForeignFilter>()?;
    module.add_class::<growing::ScalableBloomFilter>()?;
    module.add_class::<growing::WindowedBloomFilter>()?;
    module.add_class::<wide::WideBloomFilter>()
}
