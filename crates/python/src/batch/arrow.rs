//! Keys in Arrow arrays, hashed in place.
//!
//! A producer exports arrays by Arrow's PyCapsule protocol (`__arrow_c_array__`,
//! `__arrow_c_stream__`): two C structures in capsules, which the consumer moves out. The memory
//! belongs to the producer and is released with the last array that uses it.
//!
//! Offsets, views and indexes point into memory, so they are checked before they are used. Text is
//! read as bytes, because it need not be valid UTF-8. Three properties cannot be checked: the
//! length of the data buffer, which the interface does not have (pyarrow validates it for its own
//! arrays); that the offsets of streams are aligned; and that no other thread changes the arrays,
//! which Arrow forbids.
//!
//! Cost: offsets and views are checked piece by piece just before they are used.
//!
//! An extension type gives the values of its storage another meaning: only those whose meaning is known are
//! keys.
//!
//! Source: the Arrow C data interface and its PyCapsule interface.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayReader as _, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray,
    GenericBinaryArray, LargeBinaryArray, OffsetSizeTrait, make_array,
};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator};

use crate::keys::KeyHasher;
use crate::keys::{Key, out_of_range, texts};

const MILLISECONDS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// One or several arrays of keys.
pub(crate) enum Arrays {
    One(Option<UncheckedArray>),
    /// The arrays that a pyarrow object consists of.
    Chunks(Py<PyIterator>),
    Stream(Box<ArrayStreamReader>),
}

impl Iterator for Arrays {
    type Item = PyResult<UncheckedArray>;

    /// May run Python code, so the caller must not hold a lock.
    fn next(&mut self) -> Option<PyResult<UncheckedArray>> {
        Some(match self {
            Self::One(array) => Ok(array.take()?),
            Self::Chunks(chunks) => Python::attach(|py| {
                let next = chunks.bind(py).clone().next()?;
                Some(next.and_then(|chunk| exported_array(&chunk)))
            })?,
            Self::Stream(stream) => {
                let array = stream.next()?.map_err(|error| arrow_error(&error));
                array.and_then(|array| column(&array, stream.field()))
            }
        })
    }
}

/// Returns the arrays that an object exports; `None` if it exports none.
pub(crate) fn arrays(keys: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    if keys.hasattr("__arrow_c_array__")? {
        return exported_array(keys).map(|array| Some(Arrays::One(Some(array))));
    }
    let Some(export) = keys.getattr_opt("__arrow_c_stream__")? else {
        return Ok(None);
    };
    if is_pyarrow(keys)? {
        return Ok(Some(Arrays::Chunks(chunks(keys)?.unbind())));
    }
    let stream = export.call0()?.cast_into::<PyCapsule>()?;
    import_stream(&stream).map(|stream| Some(Arrays::Stream(Box::new(stream))))
}

pub(super) fn is_pyarrow(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.get_type().module()?.to_str()?.starts_with("pyarrow"))
}

/// Returns the arrays of a pyarrow table, column or reader. An Arrow stream would have unchecked
/// arrays, and an exception of the reader would become an error number.
fn chunks<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    for name in ["iterchunks", "to_batches"] {
        if let Some(chunks) = keys.getattr_opt(name)? {
            return chunks.call0()?.try_iter();
        }
    }
    keys.try_iter()
}

/// Returns the array that an object exports.
fn exported_array(keys: &Bound<'_, PyAny>) -> PyResult<UncheckedArray> {
    if is_pyarrow(keys)? && keys.hasattr("validate")? {
        keys.call_method0("validate")?;
    }
    let exported = keys.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = exported.extract()?;
    let (array, field) = import_array(&schema, &array)?;
    column(&array, &field)
}

/// Moves an array and its type out of their capsules.
#[expect(unsafe_code, reason = "C structures in capsules")]
fn import_array(
    schema: &Bound<'_, PyCapsule>,
    array: &Bound<'_, PyCapsule>,
) -> PyResult<(ArrayRef, Field)> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: by the protocol capsules with these names hold these structures; both capsules are
    // alive and used by this thread only. The structures left behind are marked as released, and
    // the capsules' destructors ignore those.
    let (schema, array) = unsafe {
        (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr()))
    };
    if schema.release().is_none() || array.is_released() {
        return Err(PyValueError::new_err(
            "keys: the Arrow array was already released or consumed",
        ));
    }
    let field = Field::try_from(&schema).map_err(|error| arrow_error(&error))?;
    check_type(&field)?;
    check_dictionaries(&schema)?;
    if !has_valid_buffers(&array, field.data_type()) {
        return Err(PyValueError::new_err(
            "keys: the buffers of the Arrow array do not match its type or are not aligned; use a \
             copy of it",
        ));
    }
    // SAFETY: by the protocol the memory that the structures describe is valid until they are
    // released, and the resulting array releases them when it is dropped.
    let data = unsafe { from_ffi(array, &schema) };
    Ok((make_array(data.map_err(|error| arrow_error(&error))?), field))
}

/// Moves a stream out of its capsule.
#[expect(unsafe_code, reason = "a C structure in a capsule")]
fn import_stream(stream: &Bound<'_, PyCapsule>) -> PyResult<ArrayStreamReader> {
    let stream = stream.pointer_checked(Some(c"arrow_array_stream"))?;
    let stream = stream.cast::<FFI_ArrowArrayStream>();
    // SAFETY: as above; the reader releases the stream when it is dropped.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    if let Some(get_schema) = stream.get_schema().filter(|_| stream.release().is_some()) {
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, and the schema is released when it is dropped.
        if unsafe { get_schema(&raw mut stream, &raw mut schema) } == 0 {
            check_dictionaries(&schema)?;
        }
    }
    let stream = ArrayStreamReader::try_new(stream).map_err(|error| arrow_error(&error))?;
    check_type(stream.field())?;
    Ok(stream)
}

/// Returns an error for a type without keys. Called before the import, which does not check arrays.
fn check_type(field: &Field) -> PyResult<()> {
    check_extension(field)?;
    match field.data_type() {
        DataType::Struct(fields) if fields.len() == 1 => {
            check_extension(&fields[0])?;
            check_values(fields[0].data_type())
        }
        DataType::Struct(fields) => {
            let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            Err(PyTypeError::new_err(format!(
                "keys: expected one column, found {} ({}); choose one",
                fields.len(),
                names.join(", ")
            )))
        }
        kind => check_values(kind),
    }
}

/// Returns an error for an extension type whose values are not known.
fn check_extension(field: &Field) -> PyResult<()> {
    let is_text =
        matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (field.extension_type_name(), field.data_type()) {
        (None, _) | (Some("arrow.uuid"), DataType::FixedSizeBinary(16)) => Ok(()),
        (Some("arrow.json"), _) if is_text => Ok(()),
        (Some(BOOL8), DataType::Int8) => Ok(()),
        (Some(name), _) => Err(no_keys(format_args!(
            "the extension type {name}{}",
            field.extension_type_metadata().unwrap_or_default().escape_debug()
        ))),
    }
}

/// Returns an error if the values of a dictionary have an extension type, which a [`Field`] leaves out.
fn check_dictionaries(schema: &FFI_ArrowSchema) -> PyResult<()> {
    for schema in schema.children().chain([schema]) {
        let Some(values) = schema.dictionary() else { continue };
        let metadata = values.metadata().map_err(|error| arrow_error(&error))?;
        if let Some(name) = metadata.get(EXTENSION_TYPE_NAME_KEY) {
            return Err(no_keys(format_args!("a dictionary of the extension type {name}")));
        }
    }
    Ok(())
}

/// An extension type of booleans: a value is false if it is 0.
const BOOL8: &str = "arrow.bool8";

fn check_values(kind: &DataType) -> PyResult<()> {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(()),
        DataType::FixedSizeBinary(_) | DataType::Null | DataType::Boolean => Ok(()),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Ok(()),
        kind if kind.is_integer() || kind.is_decimal() => Ok(()),
        DataType::Dictionary(_, values) if !values.is_nested() => check_values(values),
        other => Err(no_keys(other)),
    }
}

fn no_keys(kind: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(format!(
        "keys: a column of {kind} holds no keys; cast it to strings, binary or integers"
    ))
}

/// Returns true if an array has the buffers of its type, and if the values that the import reads
/// from them are present, aligned and not negative.
fn has_valid_buffers(array: &FFI_ArrowArray, kind: &DataType) -> bool {
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
        // Validity, views, the data buffers, and the lengths of the data buffers.
        DataType::Utf8View | DataType::BinaryView => {
            let is_length = |at| number_at::<i64>(array.buffer(buffers - 1), at) >= Some(0);
            buffers >= 3 && (0..buffers - 3).all(is_length)
        }
        DataType::Dictionary(_, kind) => {
            buffers == 2 && array.dictionary().is_some_and(|values| has_valid_buffers(values, kind))
        }
        DataType::Struct(fields) => {
            let of = |child| has_valid_buffers(array.child(child), fields[child].data_type());
            array.num_children() == fields.len() && (0..fields.len()).all(of)
        }
        DataType::Null => true,
        _ => buffers == 2,
    }
}

/// Returns the number at index `at` of a buffer; `None` if the buffer is null or not aligned.
fn number_at<N: Copy>(buffer: *const u8, at: usize) -> Option<N> {
    let numbers = buffer.cast::<N>();
    if numbers.is_null() || !numbers.is_aligned() {
        return None;
    }
    #[expect(unsafe_code, reason = "reads memory of the producer")]
    // SAFETY: not null and aligned; by the protocol the buffer has more than `at` numbers.
    Some(unsafe { *numbers.add(at) })
}

pub(crate) fn arrow_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("keys: {error}"))
}

/// An array of keys whose offsets and views are not checked yet. They are checked piece by piece.
pub(crate) struct UncheckedArray(ArrayRef);

impl UncheckedArray {
    /// Returns the number of keys and nulls.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a slice with checked offsets and views.
    pub(crate) fn piece(&self, start: usize, len: usize) -> PyResult<ArrayRef> {
        let piece = self.0.slice(start, len);
        check_pointers(&piece).map_err(|error| arrow_error(&error))?;
        Ok(piece)
    }

    /// Returns the whole array with checked offsets and views.
    pub(crate) fn all(&self) -> PyResult<ArrayRef> {
        self.piece(0, self.len())
    }
}

/// Returns the keys of an array of this type. The keys of a table with one column are the column, which is
/// null where the table is.
fn column(array: &ArrayRef, field: &Field) -> PyResult<UncheckedArray> {
    let DataType::Struct(fields) = field.data_type() else {
        return values(array, field).map(UncheckedArray).map_err(|error| arrow_error(&error));
    };
    let column = values(array.as_struct().column(0), &fields[0]);
    let column = column.map_err(|error| arrow_error(&error))?;
    let Some(nulls) = array.nulls().filter(|_| !column.data_type().is_null()) else {
        return Ok(UncheckedArray(column));
    };
    let both = match column.nulls() {
        Some(more) => nulls.inner() & more.inner(),
        None => nulls.inner().clone(),
    };
    let data = column.to_data().into_builder().nulls(Some(both.into()));
    // SAFETY: additional nulls make fewer offsets and views used, and none has been used yet.
    #[expect(unsafe_code, reason = "a check would read values that are null")]
    let data = unsafe { data.build_unchecked() };
    Ok(UncheckedArray(make_array(data)))
}

/// Returns [`as_bytes`], with the meaning that an extension type gives to the values.
fn values(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let array = as_bytes(array)?;
    if field.extension_type_name() != Some(BOOL8) {
        return Ok(array);
    }
    let numbers = array.as_primitive::<Int8Type>();
    let are_true = numbers.values().iter().map(|&number| number != 0).collect();
    Ok(Arc::new(BooleanArray::new(are_true, numbers.nulls().cloned())))
}

/// Returns the array with text as bytes, checked except for offsets and views. Those of a dictionary
/// are checked, because each piece may point anywhere in it.
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
            check_pointers(&values)?;
            make_array(dictionary.with_values(values).to_data().into_builder().build()?)
        }
        // `build` checks the array.
        _ => make_array(array.to_data().into_builder().build()?),
    })
}

/// Returns an error if offsets or views point outside the buffers of their array.
fn check_pointers(array: &dyn Array) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::Binary => check_offsets(array.as_binary::<i32>()),
        DataType::LargeBinary => check_offsets(array.as_binary::<i64>()),
        DataType::BinaryView => check_views(array.as_binary_view()),
        _ => Ok(()),
    }
}

/// Checks the offsets of contiguous keys: each is the end of a key and the start of the next.
fn check_offsets<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>) -> Result<(), ArrowError> {
    let offsets = array.value_offsets();
    let ascending = |ok, pair: &[O]| ok & (pair[0] <= pair[1]);
    // No early exit, so that the loop is vectorised.
    let ascend = offsets.windows(2).fold(true, ascending);
    let (first, last) = (offsets[0], offsets[array.len()].as_usize());
    // The length of the data is the last offset, which is unchecked in a stream.
    let available = isize::try_from(array.values().len()).map_or(0, isize::unsigned_abs);
    if ascend && first >= O::zero() && last <= available {
        Ok(())
    } else {
        Err(out_of_bounds("an offset"))
    }
}

/// Checks views. A view has, from its low bits: the length of the key; its prefix, or the whole of a
/// short key; the index of a data buffer; the offset in that buffer. 32 bits each.
fn check_views(array: &BinaryViewArray) -> Result<(), ArrowError> {
    const SHORT: u128 = 12;
    let is_inside = |view: u128| {
        let part = |shift: u32| view >> shift & u128::from(u32::MAX);
        let end = part(96) + part(0);
        let buffer = || array.data_buffers().get(part(64) as usize);
        part(0) <= SHORT || buffer().is_some_and(|buffer| end <= buffer.len() as u128)
    };
    // The views of nulls are undefined and not used.
    let mut views = array.views().iter().enumerate();
    let all_inside = views.all(|(row, view)| is_inside(*view) || array.is_null(row));
    if all_inside { Ok(()) } else { Err(out_of_bounds("a view")) }
}

fn out_of_bounds(what: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!(
        "{what} of the Arrow array points outside its buffers"
    ))
}

/// Appends the hashes of the keys of a checked array to `hashes`. If there are nulls, returns true
/// and sets `rows` to the positions of the keys.
///
/// # Errors
/// `TypeError` if the type has no keys, `OverflowError` for a negative number, `ValueError` for a date that
/// Python does not have.
pub(crate) fn hash_array(
    array: &dyn Array,
    hasher: &mut KeyHasher,
    rows: &mut Vec<usize>,
    hashes: &mut Vec<u64>,
) -> PyResult<bool> {
    let Some(nulls) = array.logical_nulls() else {
        return hash_rows(array, 0..array.len(), hasher, hashes).map(|()| false);
    };
    rows.clear();
    rows.extend(nulls.valid_indices());
    hash_rows(array, rows.iter().copied(), hasher, hashes).map(|()| true)
}

fn hash_rows(
    array: &dyn Array,
    mut rows: impl ExactSizeIterator<Item = usize>,
    hasher: &mut KeyHasher,
    hashes: &mut Vec<u64>,
) -> PyResult<()> {
    /// Arrays whose values are bytes.
    macro_rules! bytes {
        ($array:expr) => {{
            let array = $array;
            hasher.hash_all(rows.map(|row| array.value(row)), hashes)
        }};
    }
    /// Arrays of integers.
    macro_rules! ints {
        ($kind:ty) => {{
            let values = array.as_primitive::<$kind>().values();
            rows.try_for_each(|row| {
                let number = values[row].try_into().map_err(|_| out_of_range(values[row]))?;
                hasher.hash_key(Key::Int(number), hashes)
            })
        }};
    }
    /// Arrays of values with a text, which the expression computes from the value.
    macro_rules! texts {
        ($kind:ty, $value:ident => $text:expr) => {{
            let values = array.as_primitive::<$kind>().values();
            rows.try_for_each(|row| {
                let $value = values[row];
                hasher.hash_key(Key::Object($text.as_bytes()), hashes)
            })
        }};
    }
    /// Arrays of decimal numbers: integers and the number of their decimals.
    macro_rules! decimals {
        ($kind:ty, $scale:expr) => {{
            let exponent = -i64::from(*$scale);
            texts!($kind, value => texts::decimal(&value.to_string(), exponent))
        }};
    }
    /// Arrays of times.
    macro_rules! times {
        ($kind:ty, $ticks_per_second:expr, $zone:expr) => {{
            let in_utc = $zone.is_some();
            texts!($kind, ticks => texts::time(ticks, $ticks_per_second, in_utc)?)
        }};
    }
    match array.data_type() {
        DataType::Binary => bytes!(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(array.as_binary::<i64>()),
        DataType::BinaryView => bytes!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary()),
        DataType::Int8 => ints!(Int8Type),
        DataType::Int16 => ints!(Int16Type),
        DataType::Int32 => ints!(Int32Type),
        DataType::Int64 => ints!(Int64Type),
        DataType::UInt8 => ints!(UInt8Type),
        DataType::UInt16 => ints!(UInt16Type),
        DataType::UInt32 => ints!(UInt32Type),
        DataType::UInt64 => ints!(UInt64Type),
        DataType::Boolean => {
            let values = array.as_boolean().values();
            rows.try_for_each(|row| hasher.hash_key(Key::Bool(values.value(row)), hashes))
        }
        DataType::Date32 => texts!(Date32Type, days => texts::date(days.into())?),
        DataType::Date64 => {
            texts!(Date64Type, time => texts::date(time.div_euclid(MILLISECONDS_PER_DAY))?)
        }
        DataType::Timestamp(TimeUnit::Second, zone) => times!(TimestampSecondType, 1, zone),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            times!(TimestampMillisecondType, 1_000, zone)
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            times!(TimestampMicrosecondType, 1_000_000, zone)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            times!(TimestampNanosecondType, 1_000_000_000, zone)
        }
        DataType::Decimal32(_, scale) => decimals!(Decimal32Type, scale),
        DataType::Decimal64(_, scale) => decimals!(Decimal64Type, scale),
        DataType::Decimal128(_, scale) => decimals!(Decimal128Type, scale),
        DataType::Decimal256(_, scale) => decimals!(Decimal256Type, scale),
        // All rows are null, and the dictionary may be empty.
        DataType::Dictionary(..) if rows.len() == 0 => Ok(()),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            let indexes = array.normalized_keys();
            let rows: Vec<_> = rows.map(|row| indexes[row]).collect();
            hash_rows(array.values(), rows.into_iter(), hasher, hashes)
        }
        // All rows are null.
        DataType::Null => Ok(()),
        other => Err(no_keys(other)),
    }
}
