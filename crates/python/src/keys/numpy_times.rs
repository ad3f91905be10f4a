//! NumPy's `datetime64`: a number of units since 1970, in an array or alone.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::texts;

/// Not a time.
const NAT: i64 = i64::MIN;

/// The unit of times; without ticks it is a day.
#[derive(Clone, Copy)]
pub(crate) struct NumpyTimes {
    ticks_per_second: Option<i64>,
}

impl NumpyTimes {
    /// Returns an array or a scalar of `datetime64` in a unit that has a text, and the unit.
    ///
    /// # Errors
    /// `TypeError` if the unit is missing, or is less than a nanosecond.
    pub(crate) fn new<'py>(times: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Self)> {
        let py = times.py();
        let dtype = times.getattr("dtype")?;
        let data = py.import("numpy")?.call_method1("datetime_data", (&dtype,))?;
        let unit: String = data.get_item(0)?.extract()?;
        let (unit, ticks_per_second) = match unit.as_str() {
            "Y" | "M" | "W" | "D" => ("D", None),
            "h" | "m" | "s" => ("s", Some(1)),
            "ms" => ("ms", Some(1_000)),
            "us" => ("us", Some(1_000_000)),
            "ns" => ("ns", Some(1_000_000_000)),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "a key of {dtype} has no text; convert it to datetime64[ns]"
                )));
            }
        };
        let times = times.call_method1("astype", (format!("datetime64[{unit}]"),))?;
        Ok((times, Self { ticks_per_second }))
    }

    /// Returns the text of a time, that of a `date` or `datetime` of the same value.
    ///
    /// # Errors
    /// `TypeError` for NaT, `ValueError` if its year is not from 1 to 9999.
    pub(crate) fn text(self, ticks: i64) -> PyResult<String> {
        if ticks == NAT {
            return Err(PyTypeError::new_err("a key is a date or a time, found NaT"));
        }
        match self.ticks_per_second {
            Some(ticks_per_second) => texts::time(ticks, ticks_per_second, false),
            None => texts::date(ticks),
        }
    }
}

/// Returns the text of one `datetime64`.
pub(super) fn encode(key: &Bound<'_, PyAny>) -> PyResult<String> {
    let (time, times) = NumpyTimes::new(key)?;
    let ticks = time.call_method1("astype", ("int64",))?;
    times.text(ticks.call_method0("item")?.extract()?)
}
