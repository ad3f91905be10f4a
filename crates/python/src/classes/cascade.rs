//! `FilterCascade`, which is built once from all keys and never changed. Memory holds only the hashes of
//! the keys until the filter is built.

use pyo3::prelude::*;

use super::options::hash;
use super::{Filter, with_state};
use crate::batch;
use crate::error::IntoPyErr;
use crate::keys::KeyHasher;
use crate::state::FilterState;

/// A filter that is exact for two sets of keys: it contains all `members` and none of `others`. For
/// any other key its false-positive rate is `fpr`. It is built once and takes no more keys.
/// `ValueError` if a key is in both sets. Keys as for `contains_batch`, other arguments as for
/// `BloomFilter`.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct FilterCascade;

#[pymethods]
impl FilterCascade {
    #[new]
    #[pyo3(signature = (members, others, fpr = 0.01, *, seed = 0, secret = None, secret_apart = false))]
    fn new(
        members: &Bound<'_, PyAny>,
        others: &Bound<'_, PyAny>,
        fpr: f64,
        seed: u64,
        secret: Option<&[u8]>,
        secret_apart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hash = hash(seed, secret, secret_apart)?;
        let ours = batch::hashes(members, KeyHasher::Native(hash))?;
        let theirs = batch::hashes(others, KeyHasher::Native(hash))?;
        let builder = petal::FilterCascade::builder().fpr(fpr).hash(hash);
        let built = members.py().detach(|| builder.from_mixed_hashes(&ours, &theirs));
        Ok(with_state(FilterState::new(built.map_err(IntoPyErr::into_py_err)?), Self))
    }
}
