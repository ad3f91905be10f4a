//! Arguments that several constructors have: rate, memory limit, seed and secret.

use petal::HashSpec;
use petal_lines::MemoryLimit;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::error::Exception;

const DEFAULT_FPR: f64 = 0.01;

/// The value that determines the size of a filter.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Fpr(f64),
    Memory(u64),
}

/// A memory limit without a rate determines the size. Otherwise the rate does, and the caller must
/// check the size with [`check_memory_limit`].
pub(super) fn size(fpr: Option<f64>, memory_limit: Option<u64>) -> Size {
    match (fpr, memory_limit) {
        (None, Some(memory_limit)) => Size::Memory(memory_limit),
        (fpr, _) => Size::Fpr(fpr.unwrap_or(DEFAULT_FPR)),
    }
}

/// Returns an error if a filter of `needed` bytes exceeds the memory limit.
pub(super) fn check_memory_limit(needed: u64, memory_limit: Option<u64>) -> PyResult<()> {
    match memory_limit {
        Some(limit) if needed > limit => Err(Exception::MemoryLimit.new_err(format_args!(
            "the filter takes {needed} bytes, more than memory_limit={limit}; raise it, or leave \
             out fpr= to get the lowest rate that fits"
        ))),
        _ => Ok(()),
    }
}

/// Returns the hash function: 128 bits if `wide` is set, 64 otherwise.
pub(super) fn hash(seed: u64, secret: Option<&[u8]>, wide: bool) -> PyResult<HashSpec> {
    let Some(secret) = secret else {
        return Ok(if wide { HashSpec::wide(seed) } else { HashSpec::rapid(seed) });
    };
    let key: [u8; 16] = secret.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "secret=: expected 16 bytes, such as os.urandom(16), found {}",
            secret.len()
        ))
    })?;
    if seed != 0 {
        return Err(PyValueError::new_err("seed= and secret=: leave out one of them"));
    }
    Ok(if wide { HashSpec::wide_keyed(key) } else { HashSpec::keyed(key) })
}

/// The argument `memory_limit`: bytes, or a str such as "512M", "1.5G" or "25%".
#[derive(Clone, Copy)]
pub(crate) struct MemoryLimitArg(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for MemoryLimitArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return MemoryLimit::parse(text.to_str()?)
                .map(|limit| Self(limit.bytes()))
                .map_err(|problem| PyValueError::new_err(format!("memory_limit=: {problem}")));
        }
        let is_bool = object.is_instance_of::<PyBool>();
        let bytes = if is_bool { None } else { object.extract().ok() };
        bytes.map(Self).ok_or_else(|| {
            PyValueError::new_err(format!(
                "memory_limit=: expected bytes as a whole number, or a str such as \"512M\" or \
                 \"25%\", found {}",
                object.repr().map_or_else(|_| "?".to_owned(), |found| found.to_string())
            ))
        })
    }
}
