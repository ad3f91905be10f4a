//! The bytes of keys that are tuples, dates, UUIDs and decimal numbers.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::{KeyBuf, texts, with_key};
use crate::memory::reserve;

/// Maximum depth of tuples in tuples. Each level takes a frame of the stack.
pub(super) const MAX_DEPTH: usize = 100;

/// Returns the bytes of such a key; `None` for other objects.
pub(super) fn encode(key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(tuple) = key.cast::<PyTuple>() {
        return encode_tuple(tuple, MAX_DEPTH).map(Some);
    }
    Ok(encode_one(key)?.map(|(_, bytes)| bytes))
}

/// Returns the kind and the bytes of a UUID, a date, a time or a decimal number; `None` for other objects.
pub(super) fn encode_one(key: &Bound<'_, PyAny>) -> PyResult<Option<(u8, Vec<u8>)>> {
    Ok(Some(if is_instance(key, "uuid", "UUID")? {
        (b'u', key.getattr("bytes")?.extract()?)
    } else if is_instance(key, "datetime", "date")? {
        (b'd', encode_date(key)?)
    } else if is_instance(key, "decimal", "Decimal")? {
        (b'n', encode_decimal(key)?)
    } else {
        return Ok(None);
    }))
}

/// Returns whether an object is of a class, without an import: if its module is not loaded it is not.
fn is_instance(key: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    let modules = key.py().import("sys")?.getattr("modules")?;
    let module = modules.call_method1("get", (module,))?;
    if module.is_none() {
        return Ok(false);
    }
    key.is_instance(&module.getattr(class)?)
}

/// Returns each item after its length, as in the key of several columns. Tuples may be nested `depth`
/// times.
fn encode_tuple(tuple: &Bound<'_, PyTuple>, depth: usize) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    for item in tuple {
        if let Ok(inner) = item.cast::<PyTuple>() {
            append(&encode_tuple(inner, one_deeper(depth)?)?, &mut bytes)?;
            continue;
        }
        with_key(&item, |key| append(KeyBuf::default().encode(key, false), &mut bytes))?;
    }
    Ok(bytes)
}

/// Appends an item after its length.
pub(super) fn append(item: &[u8], bytes: &mut Vec<u8>) -> PyResult<()> {
    let length = u32::try_from(item.len())
        .map_err(|_| PyValueError::new_err("an item of a key has more than 4 GiB"))?;
    reserve(bytes, item.len() + 4)?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(item);
    Ok(())
}

/// Returns the depth that is left for the items of a tuple.
pub(super) fn one_deeper(depth: usize) -> PyResult<usize> {
    depth.checked_sub(1).ok_or_else(|| {
        PyValueError::new_err(format!("tuples of a key are nested more than {MAX_DEPTH} times"))
    })
}

/// Returns the text of a date or a time in ISO 8601; with a time zone, of the time in UTC.
fn encode_date(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = key.py();
    // pandas' missing time is a `datetime` without most of its methods.
    if key.get_type().name()?.to_str()? == "NaTType" {
        return Err(PyTypeError::new_err("a key is a date or a time, found NaT"));
    }
    let mut date = key.clone();
    if is_instance(key, "datetime", "datetime")? && !key.call_method0("utcoffset")?.is_none() {
        let utc = py.import("datetime")?.getattr("timezone")?.getattr("utc")?;
        date = key.call_method1("astimezone", (utc,))?;
    }
    let text = date.call_method0("isoformat")?.cast_into::<PyString>()?;
    Ok(text.to_str()?.as_bytes().to_vec())
}

/// Returns the number as text: [`texts::decimal`].
fn encode_decimal(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let parts = key.call_method0("as_tuple")?;
    let sign = if parts.get_item(0)?.extract::<u8>()? == 1 { "-" } else { "" };
    let digits: Vec<u8> = parts.get_item(1)?.extract()?;
    let Ok(exponent) = parts.get_item(2)?.extract::<i64>() else {
        return Err(PyValueError::new_err(format!("key {key}: is not a number")));
    };
    let digits: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    Ok(texts::decimal(&format!("{sign}{digits}"), exponent).into_bytes())
}
