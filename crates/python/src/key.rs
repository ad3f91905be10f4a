//! What can be a key, and which bytes stand for it: as in the library, a key *is* its bytes.
//!
//! | key | bytes |
//! |---|---|
//! | `bytes`, `bytearray`, `memoryview`, … | as they are |
//! | `str` | UTF-8 |
//! | `int`, 0 to 2⁶⁴ - 1 | 8 bytes, little-endian |
//!
//! So `"a"` and `b"a"` are one key, which is also the line `a` of a file and the item `a` of a
//! server. `1` is neither `"1"` nor `b"1"`: whoever has numbers as text says `str(number)`.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

/// A key as it was given.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    Bytes(&'a [u8]),
    Int(u64),
}

/// Hands over a key.
///
/// # Errors
/// `TypeError` of what is no key, `OverflowError` of an `int` out of range, `UnicodeEncodeError`
/// of a `str` with lone surrogates.
#[inline]
pub(crate) fn with_key<R>(
    key: &Bound<'_, PyAny>,
    look: impl FnOnce(Key<'_>) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(text) = key.cast_exact::<PyString>() {
        return look(Key::Bytes(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        return look(Key::Bytes(bytes.as_bytes()));
    }
    if key.is_exact_instance_of::<PyInt>() {
        return look(Key::Int(key.extract().map_err(|_| out_of_range(key))?));
    }
    with_other_key(key, look)
}

/// The same of keys that are less common.
#[cold]
fn with_other_key<R>(
    key: &Bound<'_, PyAny>,
    look: impl FnOnce(Key<'_>) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(text) = key.cast::<PyString>() {
        return look(Key::Bytes(text.to_str()?.as_bytes()));
    }
    // Numbers of other libraries, too: some of them would show their bytes as well.
    if key.hasattr(intern!(key.py(), "__index__"))? {
        match key.extract() {
            Ok(number) => return look(Key::Int(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(key.py()) => {
                return Err(out_of_range(key));
            }
            // An array has it and is no number.
            Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => {}
            Err(error) => return Err(error),
        }
    }
    // NumPy's is no int, as Python's is: true is 1.
    let class = key.get_type();
    if class.module()?.to_str()? == "numpy" && class.name()?.to_str()?.starts_with("bool") {
        return look(Key::Int(u64::from(key.is_truthy()?)));
    }
    if let Ok(buffer) = PyBuffer::<u8>::get(key) {
        return look(Key::Bytes(&buffer.to_vec(key.py())?));
    }
    let name = key.get_type().name()?;
    Err(PyTypeError::new_err(format!("a key is bytes, str or int, found {name}")))
}

/// A number that is no key.
pub(crate) fn out_of_range(key: impl std::fmt::Display) -> PyErr {
    PyOverflowError::new_err(format!(
        "key {key}: as an int it must be from 0 to 2**64 - 1; give str(key), or its bytes"
    ))
}
