//! The classes that are made once of all their keys: `StaticFilter` and `FilterCascade`. Keys are
//! hashed as they come; only their hashes are kept until the filter is made.

use pyo3::prelude::*;

use super::size::hash;
use super::{Filter, parts};
use crate::batch;
use crate::error::Raise;
use crate::held::{Held, Keyer};

/// Made once of all its keys, in near the least space there can be: some 1.01 times
/// log2(1/rate) bits a key. Keys are given as to contains_batch().
///
/// Cost: about 100 ns and 16 bytes of memory a key while it is made.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct StaticFilter;

/// Made once, of its members and of all others that will be asked for: right about each of them.
/// Of other keys it errs at `rate`. ValueError if a key is in both.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct FilterCascade;

#[pymethods]
impl StaticFilter {
    #[new]
    #[pyo3(signature = (keys, rate = 0.01, *, seed = 0, secret = None))]
    fn new(
        keys: &Bound<'_, PyAny>,
        rate: f64,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hash = hash(seed, secret, false)?;
        let hashes = batch::words(keys, Keyer::Native(hash))?;
        let builder = petal::StaticFilter::builder().hash(hash).rate(rate);
        let made = keys.py().detach(|| builder.from_mixed_hashes(hashes)).map_err(Raise::raise)?;
        Ok(parts(Held::new(made), Self))
    }
}

#[pymethods]
impl FilterCascade {
    #[new]
    #[pyo3(signature = (members, others, rate = 0.01, *, seed = 0, secret = None))]
    fn new(
        members: &Bound<'_, PyAny>,
        others: &Bound<'_, PyAny>,
        rate: f64,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hash = hash(seed, secret, false)?;
        let ours = batch::words(members, Keyer::Native(hash))?;
        let theirs = batch::words(others, Keyer::Native(hash))?;
        let builder = petal::FilterCascade::builder(rate).hash(hash);
        let made = members.py().detach(|| builder.from_mixed_hashes(ours, theirs));
        Ok(parts(Held::new(made.map_err(Raise::raise)?), Self))
    }
}
