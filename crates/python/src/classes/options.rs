//! Arguments that several constructors have: rate, memory limit, seed and secret.

use petal::{AnyFilter, ByteSize, FilterSpec, FilterType, HashSpec, Secret};
use petal_lines::MemoryLimit;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::error::{Exception, IntoPyErr};
use crate::secret::secret_bytes;
use crate::state::FilterState;

const DEFAULT_FPR: f64 = petal_lines::FilterSpec::DEFAULT_FPR;

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
    /// Returns the specification with these arguments. A memory limit without a rate determines the
    /// size; otherwise [`check`](Self::check) compares the size with it.
    fn applied_to(&self, spec: FilterSpec) -> PyResult<FilterSpec> {
        let Self { capacity, fpr, bits, probes, least_space, memory_limit } = *self;
        if capacity.is_none() && bits.is_none() {
            return Err(PyTypeError::new_err(
                "capacity= is missing: pass the number of keys, or bits= and probes=",
            ));
        }
        let memory = memory_limit.map(|limit| ByteSize::bytes(limit.0));
        let memory = memory.filter(|_| fpr.is_none() && bits.is_none());
        let default = (bits.is_none() && memory.is_none()).then_some(DEFAULT_FPR);
        let fpr = fpr.or(default);
        Ok(FilterSpec { capacity, fpr, memory, bits, probes, least_space, ..spec })
    }

    /// Builds a Bloom filter or a counting filter.
    pub(super) fn build(&self, spec: FilterSpec) -> PyResult<FilterState> {
        let plan = self.applied_to(spec)?.plan().map_err(IntoPyErr::into_py_err)?;
        self.check(plan.size_bytes())?;
        Ok(FilterState::new(plan.build().map_err(IntoPyErr::into_py_err)?))
    }

    /// Returns an error if a filter of `needed` bytes exceeds the memory limit.
    fn check(&self, needed: u64) -> PyResult<()> {
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

/// Returns an error if a filter of `needed` bytes exceeds the memory limit.
fn check_memory_limit(needed: u64, memory_limit: Option<u64>) -> PyResult<()> {
    match memory_limit {
        Some(limit) if needed > limit => Err(Exception::MemoryLimit.new_err(format_args!(
            "the filter takes {needed} bytes, more than memory_limit={limit}; raise it, or leave \
             out fpr= to get the lowest rate that fits"
        ))),
        _ => Ok(()),
    }
}

/// Returns the specification of a filter of this type, without a size.
pub(super) fn spec(
    filter_type: FilterType,
    seed: u64,
    secret: Option<&[u8]>,
    secret_apart: bool,
) -> PyResult<FilterSpec> {
    Ok(FilterSpec { hash: hash(seed, secret, secret_apart)?, ..FilterSpec::new(filter_type) })
}

/// Builds an empty filter.
pub(super) fn build(py: Python<'_>, spec: &FilterSpec) -> PyResult<FilterState> {
    let built = py.detach(|| AnyFilter::build(spec));
    Ok(FilterState::new(built.map_err(IntoPyErr::into_py_err)?))
}

/// Returns the hash function.
pub(crate) fn hash(seed: u64, secret: Option<&[u8]>, secret_apart: bool) -> PyResult<HashSpec> {
    let Some(secret) = secret else {
        return match secret_apart {
            true => Err(PyValueError::new_err("secret_apart=True: pass 16 bytes as secret=")),
            false => Ok(HashSpec::rapid(seed)),
        };
    };
    let key = secret_bytes(secret)?;
    if seed != 0 {
        return Err(PyValueError::new_err("seed= and secret=: leave out one of them"));
    }
    Ok(if secret_apart { HashSpec::keyed_apart(&Secret::new(key)) } else { HashSpec::keyed(key) })
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
