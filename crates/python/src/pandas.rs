//! Keys in pandas objects: a Series, a frame of one column, an Index or an extension array.
//!
//! pandas is never imported: its objects can only exist if the program has imported it. Nulls are
//! what `pandas.isna` finds, and are no keys.
//!
//! Cost: columns that pyarrow stores are hashed in place; other columns of strings are read object
//! by object.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

/// Keys in a pandas object.
pub(crate) struct Column<'py> {
    pub(crate) values: Values<'py>,
    /// The Series, which has an index; `None` of an Index or an extension array.
    pub(crate) series: Option<Bound<'py, PyAny>>,
}

/// The values of a column.
pub(crate) enum Values<'py> {
    Pyarrow(Bound<'py, PyAny>),
    Numpy(Bound<'py, PyAny>),
    /// Objects, and a byte for each that is 1 if it is null.
    Objects(Bound<'py, PyAny>, Vec<u8>),
}

/// Whether an object is an instance of a class, in a module that may not be imported.
pub(crate) fn is_instance(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    match loaded(object.py(), module)?.map(|module| module.getattr_opt(class)).transpose()? {
        Some(Some(class)) => object.is_instance(&class),
        // Not imported, or not far enough for anybody to have such an object.
        _ => Ok(false),
    }
}

/// A module, if the program has imported it.
fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    py.import("sys")?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?.get_item(name)
}

/// The keys of a pandas object; `None` of other objects.
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

/// The one column of a frame.
fn only_column<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = frame.py();
    let names = frame.getattr(intern!(py, "columns"))?;
    if names.len()? != 1 {
        let names: Vec<_> =
            names.try_iter()?.map(|name| Ok(name?.to_string())).collect::<PyResult<_>>()?;
        return Err(PyTypeError::new_err(format!(
            "keys: expected one column, found {} ({}); choose one",
            names.len(),
            names.join(", ")
        )));
    }
    frame.getattr(intern!(py, "iloc"))?.get_item((PySlice::full(py), 0))
}

fn values<'py>(column: &Bound<'py, PyAny>) -> PyResult<Values<'py>> {
    let py = column.py();
    let dtype = column.getattr(intern!(py, "dtype"))?;
    let to_numpy = intern!(py, "to_numpy");
    if is_instance(&dtype, "numpy", "dtype")? {
        let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
        if kind != 'O' {
            return Ok(Values::Numpy(column.call_method0(to_numpy)?));
        }
    } else if is_of_pyarrow(&dtype)? {
        let array = column.getattr_opt(intern!(py, "array"))?;
        let array = array.as_ref().unwrap_or(column);
        return Ok(Values::Pyarrow(array.call_method0(intern!(py, "__arrow_array__"))?));
    }
    let nulls = py.import("pandas")?.call_method1(intern!(py, "isna"), (column,))?;
    let nulls = py.import("numpy")?.call_method1(intern!(py, "asarray"), (nulls,))?;
    let nulls = nulls.call_method0(intern!(py, "tobytes"))?.extract()?;
    let object = PyDict::new(py);
    object.set_item("dtype", "object")?;
    Ok(Values::Objects(column.call_method(to_numpy, (), Some(&object))?, nulls))
}

/// Whether pyarrow stores the values of this type.
fn is_of_pyarrow(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = dtype.py();
    if dtype.hasattr(intern!(py, "pyarrow_dtype"))? {
        return Ok(true);
    }
    let Some(storage) = dtype.getattr_opt(intern!(py, "storage"))? else { return Ok(false) };
    Ok(storage.extract::<String>().is_ok_and(|storage| storage.starts_with("pyarrow")))
}
