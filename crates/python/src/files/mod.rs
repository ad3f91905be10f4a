//! Set operations on files of lines, and filters of lines.
//!
//! `petal/_set_operations.py` and `petal/_line_filters.py` check the arguments and call the functions of
//! this module. [`job`] runs the work in a thread of its own; [`output`] is the destination of lines.
//!
//! Results are the same bytes as those of the program `petal`. A path is a path, even `-`; standard
//! input is `/dev/stdin`.

mod counts;
mod display;
mod filters;
pub(crate) mod job;
mod keys;
mod merge;
mod output;
mod plan;
mod seen;
mod seen_files;
mod set_operations;
pub(crate) mod transforms;

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;

use petal_lines::{MemoryLimit, Settings, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::IntoPyErr;
use job::Phase;
use keys::KeyArgs;
pub(crate) use keys::json_fields;

/// PyO3 for derived arguments, with names that are not static values of Python: a fork could leave those unfinished in
/// the child ([`fork`](crate::state::fork)).
mod plain {
    pub(super) use pyo3::*;

    macro_rules! intern {
        ($py:expr, $name:expr) => {
            $name
        };
    }
    pub(super) use intern;
}

/// The arguments of every job.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
struct JobOptions {
    memory_limit: Option<Memory>,
    jobs: Option<usize>,
    temp_dir: Option<PathBuf>,
    work_dir: Option<PathBuf>,
    resume: bool,
    delimiter: Vec<u8>,
    text: bool,
    keys: KeyArgs,
    keys_only: bool,
    progress: Option<Py<PyAny>>,
}

/// An amount of memory: bytes, or a text such as "512M" or "25%".
#[derive(FromPyObject)]
pub(crate) enum Memory {
    Bytes(u64),
    Text(String),
}

impl Memory {
    pub(crate) fn bytes(&self) -> PyResult<u64> {
        self.bytes_of("memory_limit=")
    }

    /// Returns the bytes of an argument, which an error names.
    fn bytes_of(&self, argument: &str) -> PyResult<u64> {
        match self {
            Self::Bytes(bytes) => Ok(*bytes),
            Self::Text(text) => MemoryLimit::parse(text)
                .map(MemoryLimit::bytes)
                .map_err(|problem| PyValueError::new_err(format!("{argument}: {problem}"))),
        }
    }
}

impl JobOptions {
    /// Returns the settings of the file engine for a job on these inputs.
    fn settings(&self, inputs: &[Source]) -> PyResult<Settings<'static>> {
        let memory_limit = match &self.memory_limit {
            Some(memory_limit) => memory_limit.bytes()?,
            None => MemoryLimit::DEFAULT.bytes(),
        };
        let mut settings = Settings::new(memory_limit);
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
                "delimiter=: expected one byte, found {}; use b\"\\n\" or b\"\\0\"",
                self.delimiter.len()
            )));
        };
        settings.delimiter = delimiter;
        settings.text = self.text;
        settings.keys_only = self.keys_only;
        settings.keys = Arc::new(self.keys.spec()?);
        if Source::leave_csv_unused(inputs, &settings.keys) {
            return Err(PyValueError::new_err(
                "separator=, quote=, escape=, header=: only for CSV; add column=, or name columns after # \
                 of a path",
            ));
        }
        if let Some(path) = &self.keys.bad_file {
            settings.left_out.write_bad_to(path, inputs).map_err(IntoPyErr::into_py_err)?;
        }
        Ok(settings)
    }
}

/// Returns inputs, whose names may have fragments.
fn sources(names: Vec<PathBuf>) -> PyResult<Vec<Source>> {
    let source = |name| Source::of_name(name, Source::Path).map_err(IntoPyErr::into_py_err);
    names.into_iter().map(source).collect()
}

/// Returns the files at these paths.
fn files_at(paths: Vec<PathBuf>) -> Vec<Source> {
    paths.into_iter().map(Source::Path).collect()
}

/// The result of a job: the fields of its report, and the unnamed temporary file of its lines,
/// which Python closes.
type JobResult = (Py<PyDict>, Option<RawFd>);

/// Adds the phases of a job to the fields of its report.
fn add_phases(fields: &Bound<'_, PyDict>, phases: &[Phase]) -> PyResult<()> {
    let list = PyList::empty(fields.py());
    for phase in phases {
        let seconds = (phase.ended - phase.started).as_secs_f64();
        list.append((phase.what, seconds, phase.bytes, fields.py().None()))?;
    }
    fields.set_item("phases", list)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_operations::set_operation_job, module)?)?;
    module.add_function(wrap_pyfunction!(transforms::transform_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(transforms::transform_list, module)?)?;
    module.add_function(wrap_pyfunction!(transforms::adopted_names, module)?)?;
    module.add_function(wrap_pyfunction!(keys::csv_records_of, module)?)?;
    module.add_function(wrap_pyfunction!(counts::count_job, module)?)?;
    module.add_function(wrap_pyfunction!(filters::build_job, module)?)?;
    module.add_function(wrap_pyfunction!(filters::check_job, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_job, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_filter, module)?)?;
    module.add_function(wrap_pyfunction!(seen::seen_job, module)?)?;
    module.add_function(wrap_pyfunction!(merge::merge_job, module)?)
}
