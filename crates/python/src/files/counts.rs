//! `count`: how often each distinct line occurs.

use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use petal_lines::{CountJob, CountOrder, Settings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::job::{Records, run_with_records};
use super::output::Target;
use super::{JobOptions, JobResult, add_phases, sources};
use crate::error::IntoPyErr;

/// The arguments of `count`.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct CountArgs<'py> {
    out: Option<Bound<'py, PyAny>>,
    by_count: bool,
    top: Option<u64>,
    min_count: u64,
}

/// Counts the distinct lines of files.
#[pyfunction]
#[pyo3(name = "_count_job")]
pub(super) fn count_job(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    count: CountArgs<'_>,
    options: JobOptions,
) -> PyResult<JobResult> {
    let order = match (count.by_count, count.top) {
        (false, None) => CountOrder::Appearance,
        (_, top) => CountOrder::Count { top },
    };
    let job = CountJob { inputs: sources(inputs)?, order, min_count: count.min_count };
    let settings = options.settings(&job.inputs)?;
    let mut files = Vec::new();
    let target = Target::new(count.out, "out", &mut files)?;
    let target = target.unwrap_or_else(|| Target::Unnamed(settings.temp_dir.clone()));
    let keys = Arc::clone(&settings.keys);
    let (left_out, keys_only) = (settings.left_out.clone(), settings.keys_only);
    let printed = matches!(target, Target::Unnamed(_)).then_some(&job.inputs[..]);
    let records = Records { keys: &keys, printed, left_out: &left_out, keys_only };
    let started = Instant::now();
    let ((counted, phases, lines), csv) =
        run_with_records(py, options.progress, files, records, |reporter| {
            let mut settings = Settings { progress: reporter, ..settings };
            let mut output = target.open_lines(&job.inputs, &mut settings, reporter)?;
            let mut nowhere = std::io::sink();
            let writer = output.writer().unwrap_or(&mut nowhere);
            let counted = job.run(&settings, writer).map_err(IntoPyErr::into_py_err)?;
            reporter.flush()?;
            Ok((counted, reporter.phases(), output.finish()?))
        })?;
    let fields = PyDict::new(py);
    fields.set_item("kept", counted.printed)?;
    fields.set_item("first_lines", counted.lines)?;
    fields.set_item("seconds", started.elapsed().as_secs_f64())?;
    fields.set_item("csv", csv)?;
    add_phases(&fields, &phases)?;
    Ok((fields.unbind(), lines.map(OwnedFd::into_raw_fd)))
}
