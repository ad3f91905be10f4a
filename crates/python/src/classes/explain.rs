//! `petal.explain`: how a filter answers a query of one key.

use petal::{ExplainedPart, Explanation};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::Filter;
use crate::error::Exception;

/// Returns how a filter answers a query of a key, by the names that `petal explain --json` uses. The key is
/// taken as it is.
#[pyfunction]
#[pyo3(name = "_explain")]
pub(super) fn explain<'py>(
    py: Python<'py>,
    filter: &Bound<'py, Filter>,
    key: &[u8],
) -> PyResult<Bound<'py, PyDict>> {
    let state = filter.get().read(py)?;
    let (Some(own), Some((hash, explanation))) = (state.as_dyn(), state.explain(key)) else {
        return Err(Exception::Unsupported
            .new_err("explain: only for petal's own filters, not for those of other programs"));
    };
    let spec = own.hash_spec();
    let seed = spec.seed().first_chunk().map(|seed| u64::from_le_bytes(*seed));
    let Explanation { contains, parts, .. } = explanation;
    let answer = PyDict::new(py);
    answer.set_item("type", own.filter_type().name())?;
    answer.set_item("hash_function", spec.name())?;
    // That of a keyed hash is a secret.
    answer.set_item("seed", seed.filter(|_| !spec.is_keyed()))?;
    answer.set_item("hash", format!("{hash:#018x}"))?;
    answer.set_item("contains", contains)?;
    answer.set_item("estimated_fpr", contains.then(|| own.stats().estimated_fpr))?;
    let list = PyList::empty(py);
    for part in parts {
        list.append(to_dict(py, &part)?)?;
    }
    answer.set_item("parts", list)?;
    Ok(answer)
}

fn to_dict<'py>(py: Python<'py>, part: &ExplainedPart) -> PyResult<Bound<'py, PyDict>> {
    let (fields, numbers, probes) = (PyDict::new(py), PyDict::new(py), PyList::empty(py));
    for (name, number) in &part.numbers {
        numbers.set_item(name, number)?;
    }
    for probe in &part.probes {
        let fields = PyDict::new(py);
        fields.set_item("position", probe.position)?;
        fields.set_item("value", probe.value)?;
        probes.append(fields)?;
    }
    fields.set_item("name", &part.name)?;
    fields.set_item("contains", part.contains)?;
    fields.set_item("numbers", numbers)?;
    fields.set_item("probes", probes)?;
    Ok(fields)
}
