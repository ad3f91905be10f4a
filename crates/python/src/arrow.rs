//! Keys in Arrow's memory, hashed where they lie; masks as Arrow arrays.
//!
//! Whoever has arrays shows them by Arrow's PyCapsule protocol (`__arrow_c_array__`,
//! `__arrow_c_stream__`): two C structures in capsules, which whoever takes them empties. The
//! memory stays the producer's, and is released when the last array over it goes.
//!
//! Nothing that an array says of itself is believed before it is checked: offsets, views and
//! indexes lead into memory. Text is read as bytes, for nobody promised that it is UTF-8. How long
//! the bytes behind the last offset are, the interface does not tell: for its own arrays pyarrow
//! does. Cost: a pass over offsets, views or indexes, once an array; none over the keys.
//!
//! Source: the Arrow C data interface and its PyCapsule interface.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, make_array};
use arrow_schema::{ArrowError, DataType};
use petal::Answers;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::held::Keyer;
use crate::key::{Key, out_of_range};

/// Arrays of keys, one or one after the other.
pub(crate) enum Arrays {
    One(Option<ArrayRef>),
    Stream(Box<ArrayStreamReader>),
}

impl Iterator for Arrays {
    type Item = PyResult<ArrayRef>;

    /// The next one. A stream may run Python code for it: no lock may be held.
    fn next(&mut self) -> Option<PyResult<ArrayRef>> {
        let next = match self {
            Self::One(array) => Ok(array.take()?),
            Self::Stream(stream) => stream.next()?.map_err(|error| raised(&error)),
        };
        Some(next.and_then(column).and_then(|array| checked(&array).map_err(|e| raised(&e))))
    }
}

/// The arrays of what shows any; `None` of other objects.
pub(crate) fn arrays(keys: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    let py = keys.py();
    let of_pyarrow = keys.get_type().module()?.to_str()?.starts_with("pyarrow");
    if of_pyarrow && keys.hasattr(intern!(py, "validate"))? {
        // A stream of bytes becomes its arrays unchecked.
        keys.call_method0(intern!(py, "validate"))?;
    }
    if let Some(show) = keys.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        let shown = show.call0()?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = shown.extract()?;
        return imported(&schema, &array).map(|array| Some(Arrays::One(Some(array))));
    }
    if let Some(show) = keys.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        let stream = show.call0()?.cast_into::<PyCapsule>()?;
        return imported_stream(&stream).map(|stream| Some(Arrays::Stream(Box::new(stream))));
    }
    Ok(None)
}

/// Takes an array out of its capsules.
#[expect(unsafe_code, reason = "C structures in capsules")]
fn imported(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<ArrayRef> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold these structures, by the protocol; both capsules are
    // alive, and nobody else has this thread. What is taken leaves a released structure behind,
    // which the capsule's destructor knows to leave alone.
    let (schema, array) = unsafe {
        (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr()))
    };
    if array.is_released() {
        return Err(PyValueError::new_err("keys: the Arrow array was released or taken already"));
    }
    let kind = DataType::try_from(&schema).map_err(|error| raised(&error))?;
    if !is_aligned(&array, &kind) {
        return Err(PyValueError::new_err(
            "keys: the offsets of the Arrow array are not aligned; give a copy of it",
        ));
    }
    // SAFETY: by the protocol the structures describe memory that lives until they are released,
    // which the array that comes of them does when it goes.
    let data = unsafe { from_ffi(array, &schema) };
    Ok(make_array(data.map_err(|error| raised(&error))?))
}

/// Takes a stream out of its capsule.
#[expect(unsafe_code, reason = "a C structure in a capsule")]
fn imported_stream(stream: &Bound<'_, PyCapsule>) -> PyResult<ArrayStreamReader> {
    let stream = stream.pointer_checked(Some(c"arrow_array_stream"))?;
    let stream = stream.cast::<FFI_ArrowArrayStream>();
    // SAFETY: as above; the reader releases the stream when it goes.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    ArrayStreamReader::try_new(stream).map_err(|error| raised(&error))
}

/// Whether offsets can be read where they lie, which the import does before it aligns anything.
fn is_aligned(array: &FFI_ArrowArray, kind: &DataType) -> bool {
    let width = match kind {
        DataType::Utf8 | DataType::Binary => 4,
        DataType::LargeUtf8 | DataType::LargeBinary => 8,
        DataType::Dictionary(_, kind) => {
            return array.dictionary().is_none_or(|values| is_aligned(values, kind));
        }
        DataType::Struct(fields) if array.num_children() == 1 && fields.len() == 1 => {
            return is_aligned(array.child(0), fields[0].data_type());
        }
        _ => return true,
    };
    array.num_buffers() < 2 || array.buffer(1).addr().is_multiple_of(width)
}

fn raised(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("keys: {error}"))
}

/// The keys of a table of one column are that column; where the table has a null, so has it.
fn column(array: ArrayRef) -> PyResult<ArrayRef> {
    let DataType::Struct(fields) = array.data_type() else { return Ok(array) };
    if fields.len() != 1 {
        let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
        return Err(PyTypeError::new_err(format!(
            "keys: expected one column, found {} ({}); choose one",
            fields.len(),
            names.join(", ")
        )));
    }
    let column = array.as_struct().column(0);
    let Some(nulls) = array.nulls().filter(|_| !column.data_type().is_null()) else {
        return Ok(Arc::clone(column));
    };
    let both = match column.nulls() {
        Some(more) => nulls.inner() & more.inner(),
        None => nulls.inner().clone(),
    };
    let data = column.to_data().into_builder().nulls(Some(both.into())).build();
    Ok(make_array(data.map_err(|error| raised(&error))?))
}

/// The array with all that leads into memory checked, and its text as bytes.
fn checked(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let (array, kind) = match array.data_type() {
        DataType::Utf8 => (Arc::clone(array), DataType::Binary),
        DataType::LargeUtf8 => (Arc::clone(array), DataType::LargeBinary),
        DataType::Utf8View => (Arc::clone(array), DataType::BinaryView),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let array = dictionary.with_values(checked(dictionary.values())?);
            let kind = array.data_type().clone();
            (array, kind)
        }
        kind => (Arc::clone(array), kind.clone()),
    };
    // Whatever is built is checked, but not what it is built of.
    Ok(make_array(array.to_data().into_builder().data_type(kind).build()?))
}

/// Of a checked array: puts the places of those that are no nulls into `rows`, and their words into `words`.
///
/// # Errors
/// `TypeError` if its type is no type of keys, `OverflowError` of a negative number.
pub(crate) fn put_array(
    array: &dyn Array,
    keyer: &mut Keyer,
    rows: &mut Vec<usize>,
    words: &mut Vec<u64>,
) -> PyResult<()> {
    rows.clear();
    match array.logical_nulls() {
        Some(nulls) => rows.extend(nulls.valid_indices()),
        None => rows.extend(0..array.len()),
    }
    put_rows(array, rows, keyer, words)
}

fn put_rows(
    array: &dyn Array,
    rows: &[usize],
    keyer: &mut Keyer,
    words: &mut Vec<u64>,
) -> PyResult<()> {
    /// Of arrays that lend their values.
    macro_rules! lent {
        ($array:expr) => {{
            let array = $array;
            keyer.put_all(rows.iter().map(|&row| array.value(row)), words)
        }};
    }
    match array.data_type() {
        DataType::Binary => lent!(array.as_binary::<i32>()),
        DataType::LargeBinary => lent!(array.as_binary::<i64>()),
        DataType::BinaryView => lent!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => lent!(array.as_fixed_size_binary()),
        DataType::Int8 => put_ints::<Int8Type>(array, rows, keyer, words),
        DataType::Int16 => put_ints::<Int16Type>(array, rows, keyer, words),
        DataType::Int32 => put_ints::<Int32Type>(array, rows, keyer, words),
        DataType::Int64 => put_ints::<Int64Type>(array, rows, keyer, words),
        DataType::UInt8 => put_ints::<UInt8Type>(array, rows, keyer, words),
        DataType::UInt16 => put_ints::<UInt16Type>(array, rows, keyer, words),
        DataType::UInt32 => put_ints::<UInt32Type>(array, rows, keyer, words),
        DataType::UInt64 => put_ints::<UInt64Type>(array, rows, keyer, words),
        // All of them are null: there need be no value then.
        DataType::Dictionary(..) if rows.is_empty() => Ok(()),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            let places = array.normalized_keys();
            let rows: Vec<_> = rows.iter().map(|&row| places[row]).collect();
            put_rows(array.values(), &rows, keyer, words)
        }
        // Nothing but nulls.
        DataType::Null => Ok(()),
        other => Err(PyTypeError::new_err(format!(
            "keys: a column of {other} holds no keys; cast it to strings, binary or integers"
        ))),
    }
}

fn put_ints<T: ArrowPrimitiveType<Native: TryInto<u64> + std::fmt::Display>>(
    array: &dyn Array,
    rows: &[usize],
    keyer: &mut Keyer,
    words: &mut Vec<u64>,
) -> PyResult<()> {
    let values = array.as_primitive::<T>().values();
    for &row in rows {
        let number = values[row].try_into().map_err(|_| out_of_range(values[row]))?;
        keyer.put_key(Key::Int(number), words)?;
    }
    Ok(())
}

/// Answers to a batch, as they come, a bit each.
pub(crate) struct Bits(BooleanBufferBuilder);

impl Bits {
    pub(crate) fn new() -> Self {
        Self(BooleanBufferBuilder::new(0))
    }

    /// Appends answers to so many keys; those that have one are at `rows`, if not all have.
    pub(crate) fn append(&mut self, answers: &Answers, len: usize, rows: Option<&[usize]>) {
        if let Some(rows) = rows.filter(|rows| rows.len() < len) {
            let start = self.0.len();
            self.0.append_n(len, false);
            answers.iter().for_each(|at| self.0.set_bit(start + rows[at], true));
            return;
        }
        let bytes = answers.as_words().iter().flat_map(|word| word.to_le_bytes());
        self.0.append_packed_range(0..len, &bytes.collect::<Vec<_>>());
    }

    /// All answers, in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.0.len()).map(|at| self.0.get_bit(at))
    }

    /// As an object that shows them to Arrow.
    pub(crate) fn into_mask(mut self) -> Mask {
        Mask { bits: BooleanArray::new(self.0.finish(), None) }
    }
}

/// The answers to a batch, true or false for each key: an Arrow array of booleans, for whoever
/// speaks Arrow's PyCapsule protocol (`polars.Series(mask)`, `pyarrow.array(mask)`, ...).
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
        // One form is all there is; the protocol lets a producer say so.
        let _ = requested_schema;
        let (array, schema) = to_ffi(&self.bits.to_data()).map_err(|error| raised(&error))?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.bits.len()
    }

    fn __getitem__(&self, at: usize) -> PyResult<bool> {
        if at < self.bits.len() {
            return Ok(self.bits.value(at));
        }
        Err(pyo3::exceptions::PyIndexError::new_err("mask index out of range"))
    }

    fn __repr__(&self) -> String {
        format!("<petal.Mask {} of {} true>", self.bits.true_count(), self.bits.len())
    }
}
