//! `StaticFilter`, which is built once from all keys and never changed. Memory holds only the
//! hashes of the keys until the filter is built.

use pyo3::prelude::*;

use super::options::hash;
use super::{Filter, with_state};
use crate::batch;
use crate::error::IntoPyErr;
use crate::keys::KeyHasher;
use crate::state::FilterState;

/// A filter that is built once from all its `keys` and takes no more. It needs little more than the
/// least possible space: about `1.01 * log2(1/fpr)` bits per key. With `fuse` it is a binary
/// fuse filter, whose `type` is `"static-fuse"`: faster to query and to build, about `1.1 *
/// log2(1/fpr)` bits per key. Keys as for `contains_batch`, other arguments as for `BloomFilter`.
///
/// Cost: about 100 ns and 16 bytes of memory per key while it is built.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct StaticFilter;

#[pymethods]
impl StaticFilter {
    #[new]
    #[pyo3(signature = (keys, fpr = 0.01, *, fuse = false, seed = 0, secret = None, secret_apart = false))]
    fn new(
        keys: &Bound<'_, PyAny>,
        fpr: f64,
        fuse: bool,
        seed: u64,
        secret: Option<&[u8]>,
        secret_apart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hash = hash(seed, secret, secret_apart)?;
        let hashes = batch::hashes(keys, KeyHasher::Native(hash))?;
        let builder = petal::StaticFilter::builder().hash(hash).fpr(fpr).fuse(fuse);
        let built = keys
            .py()
            .detach(|| builder.from_mixed_hashes(hashes))
            .map_err(IntoPyErr::into_py_err)?;
        Ok(with_state(FilterState::new(built), Self))
    }
}
