//! What the constructors of several classes are told: keys, rate, memory, hash.

use petal::HashSpec;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The rate when nothing is said of it.
const RATE: f64 = 0.01;

/// What decides how large a filter is.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Rate(f64),
    Memory(u64),
}

/// Memory without a rate: the best rate that fits. Else the rate decides, and the memory is a
/// limit, to be held against what came of it with [`within`].
pub(super) fn size(rate: Option<f64>, memory: Option<u64>) -> Size {
    match (rate, memory) {
        (None, Some(memory)) => Size::Memory(memory),
        (rate, _) => Size::Rate(rate.unwrap_or(RATE)),
    }
}

/// Refuses more memory than was allowed, before it is asked for.
pub(super) fn within(needed: u64, memory: Option<u64>) -> PyResult<()> {
    match memory {
        Some(memory) if needed > memory => Err(crate::error::Kind::MemoryCap.with(format_args!(
            "the filter takes {needed} bytes, more than memory={memory}; raise it, or leave the \
             rate out to get the best that fits"
        ))),
        _ => Ok(()),
    }
}

/// The hash of 64 bits, or of 128.
pub(super) fn hash(seed: u64, secret: Option<&[u8]>, wide: bool) -> PyResult<HashSpec> {
    let Some(secret) = secret else {
        return Ok(if wide { HashSpec::wide(seed) } else { HashSpec::rapid(seed) });
    };
    let key: [u8; 16] = secret.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "secret: expected 16 bytes (os.urandom(16)), found {}",
            secret.len()
        ))
    })?;
    if seed != 0 {
        return Err(PyValueError::new_err("seed and secret: give one of them"));
    }
    Ok(if wide { HashSpec::wide_keyed(key) } else { HashSpec::keyed(key) })
}

/// A number of bytes: an int, or a str such as "512M" or "1.5G", in powers of 1024.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = given.cast::<PyString>() else { return given.extract().map(Self) };
        let text = text.to_str()?;
        parsed(text).map(Self).ok_or_else(|| {
            PyValueError::new_err(format!(
                "memory: expected bytes as an int, or a str such as \"512M\" or \"4G\", found \
                 {text:?}"
            ))
        })
    }
}

fn parsed(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let power = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 1,
        "M" | "MB" | "MIB" => 2,
        "G" | "GB" | "GIB" => 3,
        "T" | "TB" | "TIB" => 4,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * 1024_f64.powi(power);
    (bytes.is_finite() && bytes >= 0.0 && bytes < u64::MAX as f64).then_some(bytes as u64)
}
