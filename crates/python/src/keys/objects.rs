//! The bytes of keys that are tuples, dates, UUIDs and decimal numbers.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::{KeyBuf, with_key};

/// Maximum depth of tuples in tuples. Each level takes a frame of the stack.
const MAX_DEPTH: usize = 100;

/// Largest exponent of ten, and smallest negative one, of a number in plain notation.
const PLAIN: i64 = 40;

/// Returns the bytes of such a key; `None` for other objects.
pub(super) fn encode(key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(tuple) = key.cast::<PyTuple>() {
        return encode_tuple(tuple, MAX_DEPTH).map(Some);
    }
    if is_instance(key, "uuid", "UUID")? {
        return key.getattr(intern!(key.py(), "bytes"))?.extract().map(Some);
    }
    if is_instance(key, "datetime", "date")? {
        return encode_date(key).map(Some);
    }
    if is_instance(key, "decimal", "Decimal")? {
        return encode_decimal(key).map(Some);
    }
    Ok(None)
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
    let mut append = |item: &[u8]| -> PyResult<()> {
        let length = u32::try_from(item.len())
            .map_err(|_| PyValueError::new_err("an item of a key has more than 4 GiB"))?;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(item);
        Ok(())
    };
    for item in tuple {
        if let Ok(inner) = item.cast::<PyTuple>() {
            let depth = depth.checked_sub(1).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "tuples of a key are nested more than {MAX_DEPTH} times"
                ))
            })?;
            append(&encode_tuple(inner, depth)?)?;
            continue;
        }
        with_key(&item, |key| append(KeyBuf::default().encode(key, false)))?;
    }
    Ok(bytes)
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

/// Returns the number as text, equal for equal numbers: `-0.5`, `100`, and `1.5E+99` if the exponent
/// is large.
fn encode_decimal(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let parts = key.call_method0("as_tuple")?;
    let negative = parts.get_item(0)?.extract::<u8>()? == 1;
    let mut digits: Vec<u8> = parts.get_item(1)?.extract()?;
    let Ok(mut exponent) = parts.get_item(2)?.extract::<i64>() else {
        return Err(PyValueError::new_err(format!("key {key}: is not a number")));
    };
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    digits.drain(..zeros);
    while digits.last() == Some(&0) {
        digits.pop();
        exponent += 1;
    }
    if digits.is_empty() {
        return Ok(b"0".to_vec());
    }
    let digits: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let sign = if negative { "-" } else { "" };
    Ok(format!("{sign}{}", notation(&digits, exponent)).into_bytes())
}

/// Returns the number `digits * 10^exponent`.
fn notation(digits: &str, exponent: i64) -> String {
    let leading = exponent + digits.len() as i64 - 1;
    if !(-PLAIN..=PLAIN).contains(&leading) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{first}{point}{rest}E{leading:+}");
    }
    if exponent >= 0 {
        return format!("{digits}{}", "0".repeat(exponent as usize));
    }
    if leading < 0 {
        return format!("0.{}{digits}", "0".repeat(-leading as usize - 1));
    }
    let (whole, rest) = digits.split_at(leading as usize + 1);
    format!("{whole}.{rest}")
}
