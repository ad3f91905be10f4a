//! The file engine: set operations on files of lines, filters filled from and asked with them.
//!
//! `python/petal/_files.py` is the face of this room; here are the functions that it calls, with
//! plain data. [`job`] does the work in a thread of its own while the calling one listens,
//! [`output`] is where lines go.
//!
//! Means what the program `petal` means by the same words, and gives the same bytes. A path is a
//! path, `-` too: who wants standard input says `/dev/stdin`.

mod filters;
pub(crate) mod job;
mod output;
mod sets;

use std::os::fd::RawFd;
use std::path::PathBuf;

use petal_lines::{Cap, LEAST_MEMORY, Settings, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What every job is told.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Told {
    memory: Option<Memory>,
    jobs: Option<usize>,
    temp_dir: Option<PathBuf>,
    work_dir: Option<PathBuf>,
    resume: bool,
    delimiter: Vec<u8>,
    text: bool,
    progress: Option<Py<PyAny>>,
}

/// A cap on memory: bytes, or as people write them.
#[derive(FromPyObject)]
pub(crate) enum Memory {
    Bytes(u64),
    Text(String),
}

impl Memory {
    pub(crate) fn bytes(&self) -> PyResult<u64> {
        match self {
            Self::Bytes(bytes) => Ok(*bytes),
            Self::Text(text) => Cap::parse(text)
                .map(Cap::bytes)
                .map_err(|problem| PyValueError::new_err(format!("memory=: {problem}"))),
        }
    }
}

impl Told {
    /// As the engine takes it.
    fn settings(&self) -> PyResult<Settings<'static>> {
        let cap = self.memory.as_ref().map_or_else(|| Ok(Cap::DEFAULT.bytes()), Memory::bytes)?;
        let mut settings = Settings::new(cap);
        if let Some(jobs) = self.jobs {
            settings.jobs = jobs;
        }
        if let Some(dir) = &self.temp_dir {
            settings.temp_dir.clone_from(dir);
        }
        settings.work_dir.clone_from(&self.work_dir);
        settings.resume = self.resume;
        let [delimiter] = self.delimiter[..] else {
            return Err(PyValueError::new_err(format!(
                "delimiter=: expected one byte, found {}; lines end in b\"\\n\", or in b\"\\0\"",
                self.delimiter.len()
            )));
        };
        settings.delimiter = delimiter;
        settings.text = self.text;
        Ok(settings)
    }

    /// The same where the cap is on the filter alone, and work takes what it takes.
    fn settings_for_reading(&self) -> PyResult<Settings<'static>> {
        let mut settings = self.settings()?;
        settings.memory = Cap::DEFAULT.bytes().max(LEAST_MEMORY);
        Ok(settings)
    }
}

/// Paths are paths.
fn sources(paths: Vec<PathBuf>) -> Vec<Source> {
    paths.into_iter().map(Source::Path).collect()
}

/// What was done, as it goes to Python: numbers by name, and the file of lines if it is nameless,
/// which is then the caller's to close.
type Done = (Py<pyo3::types::PyDict>, Option<RawFd>);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sets::set_job, module)?)?;
    module.add_function(wrap_pyfunction!(filters::build_job, module)?)?;
    module.add_function(wrap_pyfunction!(filters::check_job, module)?)
}
