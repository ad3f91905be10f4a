//! The results of a batch lookup, as a type of the library of the keys.
//!
//! | keys | results |
//! |---|---|
//! | NumPy array | NumPy array of bool |
//! | pandas Series, or frame of one column | Series of bool with the same index |
//! | pandas Index or extension array | NumPy array of bool |
//! | polars Series, or frame of one column | Series of the same name |
//! | pyarrow array, column or table | `BooleanArray` |
//! | other Arrow producers | [`Mask`] |
//! | any other iterable | list of bool |
//!
//! Cost: a byte per key for NumPy and pandas; a bit per key for Arrow, whose memory polars and
//! pyarrow share.

use arrow_array::ffi::to_ffi;
use arrow_array::{Array as _, BooleanArray};
use arrow_buffer::bit_mask::set_bits;
use arrow_buffer::bit_util::{get_bit, set_bit};
use arrow_buffer::{BooleanBuffer, Buffer};
use petal::BatchResults;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyTuple};

use super::arrow::arrow_error;
use crate::memory::{py_list, reserve};

/// The type of the results.
pub(crate) enum ResultType<'py> {
    List,
    Numpy,
    /// A Series with the index and name of this one.
    Pandas(Bound<'py, PyAny>),
    /// A Series with this name.
    Polars(Bound<'py, PyAny>),
    Pyarrow,
    Mask,
}

impl<'py> ResultType<'py> {
    /// Converts results to this type.
    pub(crate) fn convert(&self, py: Python<'py>, results: Bits) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::List => Ok(py_list(py, results.iter())?.into_any()),
            Self::Numpy => numpy(py, results.iter()),
            Self::Pandas(keys) => {
                let options = PyDict::new(py);
                options.set_item("index", keys.getattr("index")?)?;
                options.set_item("name", keys.getattr("name")?)?;
                options.set_item("copy", false)?;
                let results = (numpy(py, results.iter())?,);
                py.import("pandas")?.call_method("Series", results, Some(&options))
            }
            Self::Polars(name) => {
                let mask = Py::new(py, results.into_mask())?;
                let series = py.import("polars")?.call_method1("Series", (mask,))?;
                series.call_method1("alias", (name,))
            }
            Self::Pyarrow => {
                let mask = Py::new(py, results.into_mask())?;
                py.import("pyarrow")?.call_method1("array", (mask,))
            }
            Self::Mask => Ok(Py::new(py, results.into_mask())?.into_bound(py).into_any()),
        }
    }
}

/// Returns a writable NumPy array of bool.
fn numpy(
    py: Python<'_>,
    results: impl ExactSizeIterator<Item = bool>,
) -> PyResult<Bound<'_, PyAny>> {
    let bytes = PyBytes::new_with(py, results.len(), |bytes| {
        bytes.iter_mut().zip(results).for_each(|(byte, result)| *byte = result.into());
        Ok(())
    })?;
    let array = py.import("numpy")?.call_method1("frombuffer", (bytes, "bool"))?;
    array.call_method0("copy")
}

/// The results of a batch lookup, one bit for each key.
#[derive(Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// Appends the results for `len` keys and nulls. If there are nulls, `rows` has the positions of
    /// the keys; a null is false.
    pub(crate) fn append(
        &mut self,
        results: &BatchResults,
        len: usize,
        rows: Option<&[usize]>,
    ) -> PyResult<()> {
        let start = self.len;
        let more = (start + len).div_ceil(8) - self.bytes.len();
        reserve(&mut self.bytes, more)?;
        self.bytes.resize(self.bytes.len() + more, 0);
        self.len += len;
        if let Some(rows) = rows {
            results.iter().for_each(|at| set_bit(&mut self.bytes, start + rows[at]));
        } else {
            let results = results.as_words().iter().flat_map(|word| word.to_le_bytes());
            set_bits(&mut self.bytes, &results.collect::<Vec<_>>(), start, 0, len);
        }
        Ok(())
    }

    /// Iterates over the results.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.len).map(|at| get_bit(&self.bytes, at))
    }

    /// Returns the results as an object that exports an Arrow array.
    pub(crate) fn into_mask(self) -> Mask {
        let bits = BooleanBuffer::new(Buffer::from_vec(self.bytes), 0, self.len);
        Mask { bits: BooleanArray::new(bits, None) }
    }
}

/// The results of `contains_batch` for Arrow arrays of other libraries: an Arrow array of booleans,
/// and a sequence of `bool` with `len(mask)`, `mask[i]`, iteration and `==`. `~mask` is the
/// complement. Libraries that support Arrow's PyCapsule protocol (`pyarrow.array(mask)`) share its
/// memory, NumPy and pandas copy it.
#[pyclass(frozen, module = "petal", sequence)]
pub(crate) struct Mask {
    bits: BooleanArray,
}

#[pymethods]
impl Mask {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The protocol allows a producer to ignore the requested schema.
        let _ = requested_schema;
        let (array, schema) = to_ffi(&self.bits.to_data()).map_err(|error| arrow_error(&error))?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.bits.len()
    }

    fn __getitem__(&self, at: isize) -> PyResult<bool> {
        let len = self.bits.len();
        let index = if at < 0 { len.checked_add_signed(at) } else { Some(at.unsigned_abs()) };
        match index.filter(|&index| index < len) {
            Some(index) => Ok(self.bits.value(index)),
            None => Err(PyIndexError::new_err("mask index out of range")),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        py_list(slf.py(), slf.get().bits.values().iter())?.try_iter()
    }

    /// Returns the mask that is true where this one is false.
    fn __invert__(&self) -> Self {
        Self { bits: BooleanArray::new(!self.bits.values(), None) }
    }

    /// Returns a NumPy array of bool, or of another `dtype`, as a copy. ValueError if `copy` is
    /// False.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "a petal.Mask has a bit for each key, NumPy a byte: expected copy=True or None, found False",
            ));
        }
        let array = numpy(py, self.bits.values().iter())?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// Compares with a mask or a list of bool.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let same = match other.cast::<Self>() {
            Ok(other) => self.bits == other.get().bits,
            Err(_) => match other.extract::<Vec<bool>>() {
                Ok(list) => list.into_iter().map(Some).eq(self.bits.iter()),
                Err(_) => return Ok(py.NotImplemented()),
            },
        };
        Ok(same.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __repr__(&self) -> String {
        format!("<petal.Mask {} of {} true>", self.bits.true_count(), self.bits.len())
    }
}
