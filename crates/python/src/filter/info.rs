//! What is known of a filter, as a dict and in one line.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Filter;
use crate::error::in_python;
use crate::held::Held;

/// All that is known of it, by name.
pub(super) fn info<'py>(filter: &Filter, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let info = PyDict::new(py);
    // The bits are counted without the interpreter; its objects are made after.
    let facts = py.detach(|| Ok::<_, PyErr>(Known::of(&*filter.read_detached()?)))?;
    for (name, value) in facts.words {
        info.set_item(name, value)?;
    }
    for (name, value) in facts.counts {
        info.set_item(name, value)?;
    }
    for (name, value) in facts.shares {
        info.set_item(name, value)?;
    }
    for (name, value) in facts.flags {
        info.set_item(name, value)?;
    }
    Ok(info)
}

/// Facts by kind and name.
#[derive(Default)]
struct Known {
    words: Vec<(&'static str, String)>,
    counts: Vec<(&'static str, u64)>,
    shares: Vec<(&'static str, f64)>,
    flags: Vec<(&'static str, bool)>,
}

impl Known {
    fn of(held: &Held) -> Self {
        let mut known = Self::default();
        known.flags.push(("is_mapped", held.is_mapped()));
        if let Some(face) = held.face() {
            known.words = vec![
                ("type", face.filter_type().name().to_owned()),
                ("shape", face.describe()),
                ("hash", face.hash_spec().name().to_owned()),
                ("metadata", held.metadata.clone()),
            ];
            known.counts = face.geometry();
            known.counts.extend([
                ("size_bytes", face.size_bytes()),
                ("memory_bytes", face.memory_usage()),
                ("capacity", face.planned_keys()),
                ("inserted", face.inserted()),
            ]);
            known.shares = vec![
                ("rate", face.target_rate()),
                ("estimated_rate", face.estimated_rate()),
                ("estimated_len", face.estimated_len()),
                ("fill_ratio", face.fill_ratio()),
            ];
            known.flags.push(("is_overfull", face.is_overfull()));
        } else if let Ok(facts) = held.facts() {
            known.words.push(("type", "foreign".to_owned()));
            known.words.push(("format", facts.format.name().to_owned()));
            known.words.extend(facts.choices);
            known.words.push(("untold", in_python(&facts.untold.join("; "))));
            known.words.push(("warnings", in_python(&facts.warnings.join("; "))));
            known.counts = vec![
                ("size_bytes", held.file_bytes()),
                ("bits", facts.bits),
                ("probes", facts.probes.into()),
                ("layers", facts.layers),
            ];
            known.counts.extend(facts.planned_keys.map(|keys| ("capacity", keys)));
            known.counts.extend(facts.counted.map(|keys| ("inserted", keys)));
            known.shares = vec![("estimated_rate", facts.rate_now)];
            known.shares.extend(facts.target_rate.map(|rate| ("rate", rate)));
            known.shares.extend(facts.estimated_keys.map(|keys| ("estimated_len", keys)));
            known.shares.push(("fill_ratio", facts.set as f64 / facts.bits.max(1) as f64));
        }
        known
    }
}

/// One line: `<petal.BloomFilter capacity=1000 rate=0.01 size_bytes=1280>`.
pub(super) fn words(filter: &Filter, py: Python<'_>, class: &str) -> PyResult<String> {
    let held = filter.read(py)?;
    let place = if held.is_mapped() { " mapped" } else { "" };
    Ok(match held.face() {
        Some(face) => format!(
            "<petal.{class} capacity={} rate={} size_bytes={}{place}>",
            face.planned_keys(),
            face.target_rate(),
            face.size_bytes()
        ),
        None => {
            let format = held.told_by().map_or("", |(format, _)| format);
            format!("<petal.{class} format={format} size_bytes={}{place}>", held.file_bytes())
        }
    })
}
