//! The argument `secret`.

use petal::Secret;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Reads the secret of a filter whose file does not have it.
pub(crate) fn secret(bytes: Option<&[u8]>) -> PyResult<Option<Secret>> {
    bytes.map(|bytes| secret_bytes(bytes).map(Secret::new)).transpose()
}

/// Returns the bytes of a secret.
pub(crate) fn secret_bytes(secret: &[u8]) -> PyResult<[u8; 16]> {
    secret.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "secret=: expected 16 bytes, such as os.urandom(16), found {}",
            secret.len()
        ))
    })
}
