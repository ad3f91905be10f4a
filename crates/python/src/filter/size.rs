//! What the constructors of several classes are told: keys, rate, memory, hash.

use petal::HashSpec;
use petal_lines::Cap;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

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

/// A number of bytes: an int, or a str such as "512M", "1.5G" or "25%", as of the file engine.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.cast::<PyString>() {
            let cap = Cap::parse(text.to_str()?);
            return cap
                .map(|cap| Self(cap.bytes()))
                .map_err(|problem| PyValueError::new_err(format!("memory=: {problem}")));
        }
        let number = if given.is_instance_of::<PyBool>() { None } else { given.extract().ok() };
        number.map(Self).ok_or_else(|| {
            PyValueError::new_err(format!(
                "memory=: expected bytes as a whole number, or a str such as \"512M\" or \"25%\", \
                 found {}",
                given.repr().map_or_else(|_| "?".to_owned(), |found| found.to_string())
            ))
        })
    }
}
