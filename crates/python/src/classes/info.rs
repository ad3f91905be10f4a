//! `Filter.info()` and `repr()`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Filter;
use crate::state::FilterState;

/// Returns the properties of a filter by name. Cost: reads the whole filter.
pub(super) fn info<'py>(filter: &Filter, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let info = PyDict::new(py);
    // Bits are counted without the interpreter's lock.
    let properties = py.detach(|| Ok::<_, PyErr>(Properties::new(&*filter.read_detached()?)))?;
    for (name, value) in properties.texts {
        info.set_item(name, value)?;
    }
    for (name, value) in properties.integers {
        info.set_item(name, value)?;
    }
    for (name, value) in properties.floats {
        info.set_item(name, value)?;
    }
    for (name, value) in properties.flags {
        info.set_item(name, value)?;
    }
    Ok(info)
}

/// Properties of a filter by name.
#[derive(Default)]
struct Properties {
    texts: Vec<(&'static str, String)>,
    integers: Vec<(&'static str, u64)>,
    floats: Vec<(&'static str, f64)>,
    flags: Vec<(&'static str, bool)>,
}

impl Properties {
    fn new(state: &FilterState) -> Self {
        let mut properties = Self::default();
        properties.flags.push(("is_mapped", state.is_mapped()));
        if let Some(filter) = state.as_dyn() {
            let stats = filter.stats();
            properties.texts = vec![
                ("type", stats.filter_type.name().to_owned()),
                ("layout", stats.layout),
                ("hash", filter.hash_spec().name().to_owned()),
                ("metadata", state.metadata().to_owned()),
            ];
            properties.integers = stats.parameters;
            properties.integers.extend([
                ("size_bytes", stats.size_bytes),
                ("memory_bytes", stats.memory_usage),
                ("capacity", stats.capacity),
                ("inserted", stats.inserted),
            ]);
            properties.floats = vec![
                ("target_fpr", stats.target_fpr),
                ("estimated_fpr", stats.estimated_fpr),
                ("estimated_len", stats.estimated_len),
                ("fill_ratio", stats.fill_ratio),
            ];
            properties.flags.push(("is_overfull", stats.is_overfull));
            properties.flags.push(("is_keyed", filter.hash_spec().is_keyed()));
            properties.flags.push(("is_secret_apart", state.is_secret_apart()));
        } else if let Ok(stats) = state.foreign_stats() {
            properties.texts.push(("type", "foreign".to_owned()));
            properties.texts.push(("format", stats.format.name().to_owned()));
            properties.texts.extend(stats.choices);
            let advice = match stats.key_types.len() {
                0 | 1 => "",
                _ => "; pass the type of the keys as key_type=",
            };
            properties.texts.push(("not_recorded", stats.not_recorded.join("; ") + advice));
            properties.texts.push(("warnings", stats.warnings.join("; ")));
            properties.integers = vec![
                ("size_bytes", state.size_bytes()),
                ("bits", stats.bits),
                ("probes", stats.probes.into()),
                ("layers", stats.layers),
            ];
            properties.integers.extend(stats.capacity.map(|keys| ("capacity", keys)));
            properties.integers.extend(stats.counted.map(|keys| ("inserted", keys)));
            properties.floats = vec![("estimated_fpr", stats.estimated_fpr)];
            properties.floats.extend(stats.target_fpr.map(|fpr| ("target_fpr", fpr)));
            properties.floats.extend(stats.estimated_keys.map(|keys| ("estimated_len", keys)));
            let fill_ratio = stats.set as f64 / stats.bits.max(1) as f64;
            properties.floats.push(("fill_ratio", fill_ratio));
        }
        properties
    }
}

/// Returns one line: `<petal.BloomFilter capacity=1000 fpr=0.01 size_bytes=1280>`.
pub(super) fn repr(filter: &Filter, py: Python<'_>, class: &str) -> PyResult<String> {
    let state = filter.read(py)?;
    let mapped = if state.is_mapped() { " mapped" } else { "" };
    Ok(match state.as_dyn() {
        Some(filter) => format!(
            "<petal.{class} capacity={} fpr={} size_bytes={}{mapped}>",
            filter.capacity(),
            filter.target_fpr(),
            filter.size_bytes()
        ),
        None => {
            let format = state.format_and_key_type().map_or("", |(format, _)| format);
            format!("<petal.{class} format={format} size_bytes={}{mapped}>", state.size_bytes())
        }
    })
}
