//! Keys in Arrow's memory, hashed where they lie.
//!
//! Whoever has arrays shows them by Arrow's PyCapsule protocol (`__arrow_c_array__`,
//! `__arrow_c_stream__`): two C structures in capsules, which whoever takes them empties. The
//! memory stays the producer's, and is released when the last array over it goes.
//!
//! Nothing that an array says of itself is believed before it is checked: offsets, views and
//! indexes lead into memory. Text is read as bytes, for nobody promised that it is UTF-8. How long
//! the bytes behind the last offset are, the interface does not tell: for its own arrays pyarrow
//! does. Of the streams of others it is believed, and that their offsets are aligned; and of all,
//! that nobody changes them meanwhile, which Arrow forbids. Cost: offsets and views are looked at
//! piece by piece, just before they are followed; keys never.
//!
//! Source: the Arrow C data interface and its PyCapsule interface.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayReader as _, ArrayRef, BinaryArray, BinaryViewArray, GenericBinaryArray,
    LargeBinaryArray, OffsetSizeTrait, make_array,
};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator};

use crate::held::Keyer;
use crate::key::{Key, out_of_range};

/// Arrays of keys, one or one after the other.
pub(crate) enum Arrays {
    One(Option<Lent>),
    /// The arrays that an object of pyarrow is made of, each taken when its turn comes.
    Each(Py<PyIterator>),
    Stream(Box<ArrayStreamReader>),
}

impl Iterator for Arrays {
    type Item = PyResult<Lent>;

    /// The next one. Python code may run for it: no lock may be held.
    fn next(&mut self) -> Option<PyResult<Lent>> {
        Some(match self {
            Self::One(array) => Ok(array.take()?),
            Self::Each(parts) => Python::attach(|py| {
                let next = parts.bind(py).clone().next()?;
                Some(next.and_then(|part| shown(&part)))
            })?,
            Self::Stream(stream) => {
                stream.next()?.map_err(|error| raised(&error)).and_then(|array| column(&array))
            }
        })
    }
}

/// The arrays of what shows any; `None` of other objects.
pub(crate) fn arrays(keys: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    let py = keys.py();
    if keys.hasattr(intern!(py, "__arrow_c_array__"))? {
        return shown(keys).map(|array| Some(Arrays::One(Some(array))));
    }
    let Some(show) = keys.getattr_opt(intern!(py, "__arrow_c_stream__"))? else { return Ok(None) };
    if is_of_pyarrow(keys)? {
        return Ok(Some(Arrays::Each(parts(keys)?.unbind())));
    }
    let stream = show.call0()?.cast_into::<PyCapsule>()?;
    imported_stream(&stream).map(|stream| Some(Arrays::Stream(Box::new(stream))))
}

fn is_of_pyarrow(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.get_type().module()?.to_str()?.starts_with("pyarrow"))
}

/// What pyarrow's tables, columns and readers are made of: in a stream it would come unchecked,
/// and what Python raises on the way would be a number.
fn parts<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    for name in [intern!(keys.py(), "iterchunks"), intern!(keys.py(), "to_batches")] {
        if let Some(parts) = keys.getattr_opt(name)? {
            return parts.call0()?.try_iter();
        }
    }
    keys.try_iter()
}

/// The array that an object shows.
fn shown(keys: &Bound<'_, PyAny>) -> PyResult<Lent> {
    let py = keys.py();
    if is_of_pyarrow(keys)? && keys.hasattr(intern!(py, "validate"))? {
        keys.call_method0(intern!(py, "validate"))?;
    }
    let shown = keys.call_method0(intern!(py, "__arrow_c_array__"))?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = shown.extract()?;
    column(&imported(&schema, &array)?)
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
    if schema.release().is_none() || array.is_released() {
        return Err(PyValueError::new_err("keys: the Arrow array was released or taken already"));
    }
    let kind = DataType::try_from(&schema).map_err(|error| raised(&error))?;
    check_kind(&kind)?;
    if !fits(&array, &kind) {
        return Err(PyValueError::new_err(
            "keys: the Arrow array has other buffers than its type, or they are not aligned; \
             give a copy of it",
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
    let stream = ArrayStreamReader::try_new(stream).map_err(|error| raised(&error))?;
    check_kind(stream.field().data_type())?;
    Ok(stream)
}

/// Refuses what holds no keys before it is imported, for that believes all that an array says.
fn check_kind(kind: &DataType) -> PyResult<()> {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(()),
        DataType::FixedSizeBinary(_) | DataType::Null => Ok(()),
        kind if kind.is_integer() => Ok(()),
        DataType::Dictionary(_, values) if !values.is_nested() => check_kind(values),
        DataType::Struct(fields) if fields.len() == 1 && !fields[0].data_type().is_nested() => {
            check_kind(fields[0].data_type())
        }
        DataType::Struct(fields) if fields.len() != 1 => {
            let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            Err(PyTypeError::new_err(format!(
                "keys: expected one column, found {} ({}); choose one",
                fields.len(),
                names.join(", ")
            )))
        }
        other => Err(no_keys(other)),
    }
}

fn no_keys(kind: &DataType) -> PyErr {
    PyTypeError::new_err(format!(
        "keys: a column of {kind} holds no keys; cast it to strings, binary or integers"
    ))
}

/// Whether an array has the buffers of its type, and what the import follows in them before
/// anybody can check it is there, aligned, and no negative length.
fn fits(array: &FFI_ArrowArray, kind: &DataType) -> bool {
    let (len, offset) = (isize::try_from(array.len()), isize::try_from(array.offset()));
    let Some(rows) = len.ok().zip(offset.ok()).and_then(|(len, offset)| len.checked_add(offset))
    else {
        return false;
    };
    let (rows, buffers) = (rows.unsigned_abs(), array.num_buffers());
    match kind {
        DataType::Utf8 | DataType::Binary => {
            buffers == 3 && (rows == 0 || number_at::<i32>(array.buffer(1), rows) >= Some(0))
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            buffers == 3 && (rows == 0 || number_at::<i64>(array.buffer(1), rows) >= Some(0))
        }
        // Validity, views, the buffers that they lead to, and how long these are.
        DataType::Utf8View | DataType::BinaryView => {
            let is_length = |at| number_at::<i64>(array.buffer(buffers - 1), at) >= Some(0);
            buffers >= 3 && (0..buffers - 3).all(is_length)
        }
        DataType::Dictionary(_, kind) => {
            buffers == 2 && array.dictionary().is_some_and(|values| fits(values, kind))
        }
        DataType::Struct(fields) => {
            let of = |child| fits(array.child(child), fields[child].data_type());
            array.num_children() == fields.len() && (0..fields.len()).all(of)
        }
        DataType::Null => true,
        _ => buffers == 2,
    }
}

/// A number in a buffer that has so many and one more; `None` if it cannot be read there.
fn number_at<N: Copy>(buffer: *const u8, at: usize) -> Option<N> {
    let numbers = buffer.cast::<N>();
    if numbers.is_null() || !numbers.is_aligned() {
        return None;
    }
    #[expect(unsafe_code, reason = "a number in another's memory")]
    // SAFETY: it is not null, and aligned; by the protocol the buffer has that many numbers.
    Some(unsafe { *numbers.add(at) })
}

pub(crate) fn raised(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("keys: {error}"))
}

/// An array of keys of which nobody has followed an offset or a view yet: whoever wants keys takes
/// pieces, which are checked first.
pub(crate) struct Lent(ArrayRef);

impl Lent {
    /// Keys and nulls.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Some of them, with all that leads into memory checked.
    pub(crate) fn piece(&self, start: usize, len: usize) -> PyResult<ArrayRef> {
        let piece = self.0.slice(start, len);
        check_leads(&piece).map_err(|error| raised(&error))?;
        Ok(piece)
    }

    /// All of them.
    pub(crate) fn all(&self) -> PyResult<ArrayRef> {
        self.piece(0, self.len())
    }
}

/// The keys of an array. Those of a table of one column are that column; where the table has a
/// null, so has it.
fn column(array: &ArrayRef) -> PyResult<Lent> {
    if !matches!(array.data_type(), DataType::Struct(_)) {
        return as_bytes(array).map(Lent).map_err(|error| raised(&error));
    }
    let column = as_bytes(array.as_struct().column(0)).map_err(|error| raised(&error))?;
    let Some(nulls) = array.nulls().filter(|_| !column.data_type().is_null()) else {
        return Ok(Lent(column));
    };
    let both = match column.nulls() {
        Some(more) => nulls.inner() & more.inner(),
        None => nulls.inner().clone(),
    };
    let data = column.to_data().into_builder().nulls(Some(both.into()));
    // SAFETY: of more nulls there is less to follow, and nobody has followed anything yet.
    #[expect(unsafe_code, reason = "a check would look at what nulls hide")]
    let data = unsafe { data.build_unchecked() };
    Ok(Lent(make_array(data)))
}

/// The array with its text as bytes, and checked but for offsets and views. Those of a dictionary
/// are checked here, for each piece leads to all of it.
fn as_bytes(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    array.to_data().validate_nulls()?;
    Ok(match array.data_type() {
        DataType::Utf8 => Arc::new(BinaryArray::from(array.as_string::<i32>().clone())),
        DataType::LargeUtf8 => Arc::new(LargeBinaryArray::from(array.as_string::<i64>().clone())),
        DataType::Utf8View => Arc::new(array.as_string_view().clone().to_binary_view()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Arc::clone(array),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = as_bytes(dictionary.values())?;
            check_leads(&values)?;
            make_array(dictionary.with_values(values).to_data().into_builder().build()?)
        }
        // Whatever is built is checked.
        _ => make_array(array.to_data().into_builder().build()?),
    })
}

/// Refuses offsets and views that lead out of the memory of their array.
fn check_leads(array: &dyn Array) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::Binary => check_offsets(array.as_binary::<i32>()),
        DataType::LargeBinary => check_offsets(array.as_binary::<i64>()),
        DataType::BinaryView => check_views(array.as_binary_view()),
        _ => Ok(()),
    }
}

/// Keys one behind the other: each offset is where one ends and the next begins.
fn check_offsets<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>) -> Result<(), ArrowError> {
    let offsets = array.value_offsets();
    let ascending = |ok, pair: &[O]| ok & (pair[0] <= pair[1]);
    // All of them, though one that is wrong would do: the loop becomes one of vectors.
    let ascend = offsets.windows(2).fold(true, ascending);
    let (first, last) = (offsets[0], offsets[array.len()].as_usize());
    // Of a stream nobody has looked at the last offset of all, which is the length of the bytes.
    let room = isize::try_from(array.values().len()).map_or(0, isize::unsigned_abs);
    if ascend && first >= O::zero() && last <= room { Ok(()) } else { Err(leads_out("an offset")) }
}

/// Keys that are in their views, or where these say: in the low bits how long the key is, above
/// those how it begins or, of a short one, all of it, then in which buffer, then where.
fn check_views(array: &BinaryViewArray) -> Result<(), ArrowError> {
    const SHORT: u128 = 12;
    let leads_in = |view: u128| {
        let part = |shift: u32| view >> shift & u128::from(u32::MAX);
        let end = part(96) + part(0);
        let buffer = || array.data_buffers().get(part(64) as usize);
        part(0) <= SHORT || buffer().is_some_and(|buffer| end <= buffer.len() as u128)
    };
    // Nobody promised anything of the views of nulls, and nobody follows them.
    let mut all = array.views().iter().enumerate();
    let lead_in = all.all(|(row, view)| leads_in(*view) || array.is_null(row));
    if lead_in { Ok(()) } else { Err(leads_out("a view")) }
}

fn leads_out(what: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{what} of the Arrow array leads out of its memory"))
}

/// Of a checked piece: puts the words of its keys into `words`, and if there are nulls among them,
/// the places of the others into `rows`; whether there are.
///
/// # Errors
/// `TypeError` if its type is no type of keys, `OverflowError` of a negative number.
pub(crate) fn put_array(
    array: &dyn Array,
    keyer: &mut Keyer,
    rows: &mut Vec<usize>,
    words: &mut Vec<u64>,
) -> PyResult<bool> {
    let Some(nulls) = array.logical_nulls() else {
        return put_rows(array, 0..array.len(), keyer, words).map(|()| false);
    };
    rows.clear();
    rows.extend(nulls.valid_indices());
    put_rows(array, rows.iter().copied(), keyer, words).map(|()| true)
}

fn put_rows(
    array: &dyn Array,
    mut rows: impl ExactSizeIterator<Item = usize>,
    keyer: &mut Keyer,
    words: &mut Vec<u64>,
) -> PyResult<()> {
    /// Of arrays that lend their values.
    macro_rules! lent {
        ($array:expr) => {{
            let array = $array;
            keyer.put_all(rows.map(|row| array.value(row)), words)
        }};
    }
    /// Of arrays of numbers.
    macro_rules! ints {
        ($kind:ty) => {{
            let values = array.as_primitive::<$kind>().values();
            rows.try_for_each(|row| {
                let number = values[row].try_into().map_err(|_| out_of_range(values[row]))?;
                keyer.put_key(Key::Int(number), words)
            })
        }};
    }
    match array.data_type() {
        DataType::Binary => lent!(array.as_binary::<i32>()),
        DataType::LargeBinary => lent!(array.as_binary::<i64>()),
        DataType::BinaryView => lent!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => lent!(array.as_fixed_size_binary()),
        DataType::Int8 => ints!(Int8Type),
        DataType::Int16 => ints!(Int16Type),
        DataType::Int32 => ints!(Int32Type),
        DataType::Int64 => ints!(Int64Type),
        DataType::UInt8 => ints!(UInt8Type),
        DataType::UInt16 => ints!(UInt16Type),
        DataType::UInt32 => ints!(UInt32Type),
        DataType::UInt64 => ints!(UInt64Type),
        // All of them are null: there need be no value then.
        DataType::Dictionary(..) if rows.len() == 0 => Ok(()),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            let places = array.normalized_keys();
            let rows: Vec<_> = rows.map(|row| places[row]).collect();
            put_rows(array.values(), rows.into_iter(), keyer, words)
        }
        // Nothing but nulls.
        DataType::Null => Ok(()),
        other => Err(no_keys(other)),
    }
}
