//! Keys in pandas objects: a Series, a DataFrame of one column, an Index or an extension array.
//!
//! This module never imports pandas: if there are pandas objects, the program has imported it. Nulls
//! are the values for which `pandas.isna` is true; they are not keys.
//!
//! Cost: columns that pyarrow stores are hashed in place; other columns of strings, and those of times,
//! are read object by object.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySlice};

/// Keys in a pandas object.
pub(crate) struct Column<'py> {
    pub(crate) values: Values<'py>,
    /// The Series, for its index; `None` for an Index or an extension array.
    pub(crate) series: Option<Bound<'py, PyAny>>,
}

/// The values of a column.
pub(crate) enum Values<'py> {
    Pyarrow(Bound<'py, PyAny>),
    Numpy(Bound<'py, PyAny>),
    /// Objects, and for each a byte that is 1 if it is null.
    Objects(Bound<'py, PyAny>, Bound<'py, PyBytes>),
}

/// Returns true if an object is an instance of a class of a module that need not be imported.
pub(crate) fn is_instance(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    match loaded(object.py(), module)?.map(|module| module.getattr_opt(class)).transpose()? {
        Some(Some(class)) => object.is_instance(&class),
        // Not imported, or an import in progress: there are no such objects yet.
        _ => Ok(false),
    }
}

/// Returns a module if the program has imported it.
fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.get_item(name)
}

/// Returns the keys of a pandas object; `None` for other objects.
///
/// # Errors
/// `TypeError` if it has several columns or levels.
pub(crate) fn column<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Option<Column<'py>>> {
    let py = keys.py();
    if loaded(py, "pandas")?.is_none() {
        return Ok(None);
    }
    let is = |class| is_instance(keys, "pandas", class);
    if is("Series")? {
        return Ok(Some(Column { values: values(keys)?, series: Some(keys.clone()) }));
    }
    if is("DataFrame")? {
        let series = only_column(keys)?;
        return Ok(Some(Column { values: values(&series)?, series: Some(series) }));
    }
    if is("MultiIndex")? {
        return Err(PyTypeError::new_err(
            "keys: expected one level, found a MultiIndex; choose one: index.get_level_values(0)",
        ));
    }
    if is("Index")? || is_instance(keys, "pandas.api.extensions", "ExtensionArray")? {
        return Ok(Some(Column { values: values(keys)?, series: None }));
    }
    Ok(None)
}

/// Returns the only column of a DataFrame.
fn only_column<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = frame.py();
    let names = frame.getattr("columns")?;
    if names.len()? != 1 {
        return Err(several_columns(&names)?);
    }
    frame.getattr("iloc")?.get_item((PySlice::full(py), 0))
}

/// Returns the error for a frame that has not one column but these.
pub(super) fn several_columns(names: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let names: Vec<_> =
        names.try_iter()?.map(|name| Ok(name?.to_string())).collect::<PyResult<_>>()?;
    Ok(PyTypeError::new_err(format!(
        "keys: expected one column, found {} ({}); choose one",
        names.len(),
        names.join(", ")
    )))
}

fn values<'py>(column: &Bound<'py, PyAny>) -> PyResult<Values<'py>> {
    let py = column.py();
    let dtype = column.getattr("dtype")?;
    if is_instance(&dtype, "numpy", "dtype")? {
        let kind: char = dtype.getattr("kind")?.extract()?;
        // NumPy's times may be null, which NumPy does not say.
        if !matches!(kind, 'O' | 'M') {
            return Ok(Values::Numpy(column.call_method0("to_numpy")?));
        }
    } else if is_stored_by_pyarrow(&dtype)? {
        let array = column.getattr_opt("array")?;
        let array = array.as_ref().unwrap_or(column);
        return Ok(Values::Pyarrow(array.call_method0("__arrow_array__")?));
    }
    let nulls = py.import("pandas")?.call_method1("isna", (column,))?;
    let nulls = py.import("numpy")?.call_method1("asarray", (nulls,))?;
    let nulls = nulls.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    let object = PyDict::new(py);
    object.set_item("dtype", "object")?;
    Ok(Values::Objects(column.call_method("to_numpy", (), Some(&object))?, nulls))
}

/// Returns true if pyarrow stores the values of this type.
fn is_stored_by_pyarrow(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    if dtype.hasattr("pyarrow_dtype")? {
        return Ok(true);
    }
    let Some(storage) = dtype.getattr_opt("storage")? else { return Ok(false) };
    Ok(storage.extract::<String>().is_ok_and(|storage| storage.starts_with("pyarrow")))
}
