//! Keys in polars objects: a Series, or a DataFrame of one column.
//!
//! This module never imports polars, as [`pandas`](super::pandas) does not import pandas.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::pandas::{is_instance, several_columns};

/// Keys in a polars object.
pub(super) struct Column<'py> {
    pub(super) name: Bound<'py, PyAny>,
    pub(super) values: Values<'py>,
}

/// The values of a column.
pub(super) enum Values<'py> {
    /// An object that exports Arrow arrays.
    Arrow(Bound<'py, PyAny>),
    /// Python's objects, and for each a byte that is 1 if it is null. As an Arrow array a column of
    /// objects has their addresses; Arrow has no integers of 128 bits.
    Objects(Bound<'py, PyAny>, Bound<'py, PyBytes>),
}

/// Returns the keys of a polars object; `None` for other objects.
///
/// # Errors
/// `TypeError` for several columns and for a frame without rows.
pub(super) fn column<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Option<Column<'py>>> {
    let py = keys.py();
    if is_instance(keys, "polars", "LazyFrame")? {
        return Err(PyTypeError::new_err(
            "keys: found a LazyFrame, which has no rows yet; use keys.collect()",
        ));
    }
    let series = if is_instance(keys, "polars", "Series")? {
        keys.clone()
    } else if is_instance(keys, "polars", "DataFrame")? {
        let names = keys.getattr("columns")?;
        if names.len()? != 1 {
            return Err(several_columns(&names)?);
        }
        keys.call_method1("to_series", (0,))?
    } else {
        return Ok(None);
    };
    let name = series.getattr("name")?;
    let dtype = series.getattr("dtype")?;
    let polars = py.import("polars")?;
    let is = |name| match polars.getattr_opt(name)? {
        Some(other) => dtype.eq(other),
        None => Ok(false),
    };
    let values = if is("Object")? || is("Int128")? || is("UInt128")? {
        let nulls = series.call_method0("is_null")?;
        let nulls = nulls.call_method0("to_list")?;
        let nulls = py.get_type::<PyBytes>().call1((nulls,))?.cast_into::<PyBytes>()?;
        Values::Objects(series, nulls)
    } else if is("Null")? {
        // polars exports such a column with a buffer, which Arrow's interface does not allow for null
        // arrays.
        let string = polars.getattr("String")?;
        Values::Arrow(series.call_method1("cast", (string,))?)
    } else {
        Values::Arrow(keys.clone())
    };
    Ok(Some(Column { name, values }))
}
