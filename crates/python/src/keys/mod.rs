//! The bytes of a key.
//!
//! | key | bytes |
//! |---|---|
//! | `bytes`, `bytearray`, `memoryview`, … | unchanged |
//! | `str` | UTF-8 |
//! | `int`, 0 to 2⁶⁴ - 1 | 8 bytes, little-endian |
//! | `tuple` | each item after its length in 4 bytes, little-endian |
//! | `datetime.date`, `datetime.datetime`, `numpy.datetime64` | ISO 8601; in UTC if it has a time zone |
//! | `uuid.UUID` | 16 bytes |
//! | `decimal.Decimal` | its shortest text |
//!
//! So `"a"` and `b"a"` are the same key, which is also the line `a` of a file and the item `a` of a
//! server. `1` is a different key from `"1"`: for numbers that are text elsewhere, use
//! `str(number)`. `True` is 1, as in Python. The values of a column have the bytes of Python's objects of
//! the same value.

pub(crate) mod calls;
mod hasher;
mod numpy_times;
mod objects;
pub(crate) mod texts;

pub(crate) use hasher::{KeyBuf, KeyHasher};
pub(crate) use numpy_times::NumpyTimes;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

use crate::memory::copy_of_buffer;

/// A key from Python.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// The bytes of bytes or of a text.
    Bytes(&'a [u8]),
    Int(u64),
    Bool(bool),
    /// The bytes that petal defines for other objects.
    Object(&'a [u8]),
}

/// Calls `use_key` with a key.
///
/// # Errors
/// `TypeError` if the object is not a key, `OverflowError` if an `int` is out of range,
/// `UnicodeEncodeError` if a `str` has lone surrogates.
#[inline]
pub(crate) fn with_key<R>(
    key: &Bound<'_, PyAny>,
    use_key: impl FnOnce(Key<'_>) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(text) = key.cast_exact::<PyString>() {
        return use_key(Key::Bytes(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        return use_key(Key::Bytes(bytes.as_bytes()));
    }
    if key.is_exact_instance_of::<PyInt>() {
        return use_key(Key::Int(key.extract().map_err(|_| out_of_range(key))?));
    }
    with_uncommon_key(key, use_key)
}

/// [`with_key`] for subclasses, buffers and the numbers of other libraries.
#[cold]
fn with_uncommon_key<R>(
    key: &Bound<'_, PyAny>,
    use_key: impl FnOnce(Key<'_>) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(text) = key.cast::<PyString>() {
        return use_key(Key::Bytes(text.to_str()?.as_bytes()));
    }
    if let Ok(flag) = key.cast::<PyBool>() {
        return use_key(Key::Bool(flag.is_true()));
    }
    // Before buffers: some number types of other libraries are buffers, too.
    if key.hasattr("__index__")? {
        match key.extract() {
            Ok(number) => return use_key(Key::Int(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(key.py()) => {
                return Err(out_of_range(key));
            }
            // NumPy arrays have `__index__` but are not numbers.
            Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => {}
            Err(error) => return Err(error),
        }
    }
    let class = key.get_type();
    if class.module()?.to_str()? == "numpy" {
        match class.name()?.to_str()? {
            // Unlike Python's bool, NumPy's is not an int: true is 1.
            "bool" | "bool_" => return use_key(Key::Bool(key.is_truthy()?)),
            // Before buffers: they are buffers of their number of units.
            "datetime64" => return use_key(Key::Object(numpy_times::encode(key)?.as_bytes())),
            "timedelta64" => return Err(no_key(key)),
            _ => {}
        }
    }
    if let Ok(buffer) = PyBuffer::<u8>::get(key) {
        return use_key(Key::Bytes(&copy_of_buffer(key.py(), &buffer)?));
    }
    if let Some(bytes) = objects::encode(key)? {
        return use_key(Key::Object(&bytes));
    }
    Err(no_key(key))
}

fn no_key(found: &Bound<'_, PyAny>) -> PyErr {
    match found.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!(
            "a key is bytes, str, int, a tuple, date, UUID or Decimal, found {name}"
        )),
        Err(error) => error,
    }
}

/// Returns the error for an integer that is not a key.
pub(crate) fn out_of_range(key: impl std::fmt::Display) -> PyErr {
    PyOverflowError::new_err(format!(
        "key {key}: an int must be from 0 to 2**64 - 1; use str(key), or its bytes"
    ))
}
