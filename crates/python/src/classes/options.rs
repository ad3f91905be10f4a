//! Arguments that several constructors have: rate, memory limit, seed and secret.

use petal::HashSpec;
use petal_lines::MemoryLimit;
use pyo3::exceptions::{PyTypeError, PyValueError};
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

/// The arguments that determine the size of a Bloom filter.
pub(super) struct BloomSize {
    pub(super) capacity: Option<u64>,
    pub(super) fpr: Option<f64>,
    pub(super) bits: Option<u64>,
    pub(super) probes: Option<u32>,
    pub(super) least_space: bool,
    pub(super) memory_limit: Option<MemoryLimitArg>,
}

impl BloomSize {
    /// Returns the number of bits, or the rate or memory that determines it.
    pub(super) fn by(&self) -> PyResult<(Option<u64>, Size)> {
        if self.capacity.is_none() && self.bits.is_none() {
            return Err(PyTypeError::new_err(
                "capacity= is missing: pass the number of keys, or bits= and probes=",
            ));
        }
        Ok((self.bits, size(self.fpr, self.memory_limit.map(|limit| limit.0))))
    }

    /// Returns an error if a filter of `needed` bytes exceeds the memory limit.
    pub(super) fn check(&self, needed: u64) -> PyResult<()> {
        let limit = self.memory_limit.map(|limit| limit.0);
        match (self.bits, limit) {
            (Some(_), Some(limit)) if needed > limit => {
                Err(Exception::MemoryLimit.new_err(format_args!(
                    "the filter takes {needed} bytes, more than memory_limit={limit}; raise it, or \
                     lower bits="
                )))
            }
            (None, Some(limit)) if self.least_space && needed > limit => {
                Err(Exception::MemoryLimit.new_err(format_args!(
                    "the filter takes {needed} bytes, more than memory_limit={limit}; raise it, or \
                     raise fpr="
                )))
            }
            _ => check_memory_limit(needed, limit),
        }
    }
}

/// Sets the size of the builder of a Bloom filter or a counting filter.
macro_rules! set_size {
    ($builder:expr, $size:expr) => {{
        let (builder, size) = ($builder, $size);
        let (bits, by) = size.by()?;
        let builder = size.capacity.map_or(builder, |capacity| builder.capacity(capacity));
        let builder = builder.least_space(size.least_space);
        let builder = size.probes.map_or(builder, |probes| builder.probes(probes));
        let builder = match (bits, by) {
            (Some(bits), _) => {
                let builder = builder.bits(bits);
                size.fpr.map_or(builder, |fpr| builder.fpr(fpr))
            }
            (None, Size::Memory(bytes)) => builder.memory(ByteSize::bytes(bytes)),
            (None, Size::Fpr(fpr)) => builder.fpr(fpr),
        };
        let plan = builder.plan().map_err(IntoPyErr::into_py_err)?;
        size.check(plan.size_bytes())?;
        builder
    }};
}
pub(super) use set_size;

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

/// Returns the hash function.
pub(super) fn hash(seed: u64, secret: Option<&[u8]>) -> PyResult<HashSpec> {
    let Some(secret) = secret else { return Ok(HashSpec::rapid(seed)) };
    let key: [u8; 16] = secret.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "secret=: expected 16 bytes, such as os.urandom(16), found {}",
            secret.len()
        ))
    })?;
    if seed != 0 {
        return Err(PyValueError::new_err("seed= and secret=: leave out one of them"));
    }
    Ok(HashSpec::keyed(key))
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
