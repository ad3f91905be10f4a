//! Changes to keys, by the names of `key_transform`.

use petal_lines::{Transform, parse_transforms, transform_key, transforms_text};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::memory::py_bytes;
use crate::state::Filter;

/// Reads names of transforms, separated by commas.
pub(crate) fn transforms(names: &str) -> PyResult<Vec<Transform>> {
    let problem = |problem| PyValueError::new_err(format!("key_transform=: {problem}"));
    parse_transforms(names).map_err(problem)
}

fn transformed(key: &[u8], transforms: &[Transform]) -> PyResult<Vec<u8>> {
    let problem = |problem| PyValueError::new_err(format!("key_transform=: {problem}"));
    transform_key(key, transforms).map_err(problem)
}

/// Returns a key after transforms.
#[pyfunction]
#[pyo3(name = "_transform_key")]
pub(super) fn transform_bytes<'py>(
    py: Python<'py>,
    key: &[u8],
    names: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    py_bytes(py, &transformed(key, &transforms(names)?)?)
}

/// Returns keys, bytes or text, after transforms, as bytes. `None` stays.
#[pyfunction]
#[pyo3(name = "_transform_keys")]
pub(super) fn transform_list<'py>(
    keys: &Bound<'py, PyAny>,
    names: &str,
) -> PyResult<Bound<'py, PyList>> {
    let (py, transforms) = (keys.py(), transforms(names)?);
    let list = PyList::empty(py);
    for key in keys.try_iter()? {
        let key = key?;
        if key.is_none() {
            list.append(key)?;
            continue;
        }
        let changed = match key.extract::<&str>() {
            Ok(text) => transformed(text.as_bytes(), &transforms),
            Err(_) => transformed(key.extract::<&[u8]>()?, &transforms),
        }?;
        list.append(py_bytes(py, &changed)?)?;
    }
    Ok(list)
}

/// Returns the names for keys that are looked up in a filter: those that it records, which must be those
/// given, if any are.
#[pyfunction]
#[pyo3(name = "_adopted_transforms")]
pub(super) fn adopted_names(
    py: Python<'_>,
    filter: &Bound<'_, Filter>,
    names: &str,
) -> PyResult<String> {
    let given = transforms(names)?;
    Ok(transforms_text(&filter.get().read(py)?.adopted_for_queries(&given)?))
}
