//! The set operations `common`, `diff`, `symdiff` and `dedup`.

use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use petal_lines::{Mode, Outputs, Report, SetJob, SetOp, Settings, forget_work};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::job::{ProgressReporter, Records, run_with_records};
use super::output::{Target, check_distinct, count_with_output};
use super::{JobOptions, JobResult, sources};
use crate::error::IntoPyErr;

/// The arguments for the outputs of a set operation.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct OutputArgs<'py> {
    out: Option<Bound<'py, PyAny>>,
    rest: Option<Bound<'py, PyAny>>,
    count: bool,
    approx: bool,
    capacity: Option<u64>,
    fpr: Option<f64>,
    at_least: Option<u8>,
}

/// Returns the operation with this name.
pub(super) fn operation(name: &str, at_least: Option<u8>) -> SetOp {
    match (name, at_least) {
        ("common", None) => SetOp::Common,
        ("common", Some(number)) => SetOp::AtLeast(number),
        ("diff", _) => SetOp::Diff,
        ("symdiff", _) => SetOp::SymDiff,
        ("last", _) => SetOp::DedupLast,
        ("duplicates", _) => SetOp::Duplicates,
        ("unique", _) => SetOp::Unique,
        _ => SetOp::Dedup,
    }
}

/// Runs a set operation, by name, on files.
#[pyfunction]
#[pyo3(name = "_set_operation_job")]
pub(super) fn set_operation_job(
    py: Python<'_>,
    operation: &str,
    first: Vec<PathBuf>,
    others: Vec<PathBuf>,
    outputs: OutputArgs<'_>,
    options: JobOptions,
) -> PyResult<JobResult> {
    let op = self::operation(operation, outputs.at_least);
    let mode = match outputs.approx {
        true => Mode::Approx { capacity: outputs.capacity, fpr: outputs.fpr },
        false => Mode::Exact { strategy: None },
    };
    let job = SetJob { op, first: sources(first)?, others: sources(others)?, mode };
    let settings = options.settings(&[&job.first[..], &job.others].concat())?;
    let mut files = Vec::new();
    let rest = Target::new(outputs.rest, "rest", &mut files)?.unwrap_or(Target::Discard);
    let kept = match Target::new(outputs.out, "out", &mut files)? {
        Some(_) if outputs.count => {
            return Err(count_with_output());
        }
        Some(target) => target,
        None if outputs.count => Target::Discard,
        None => Target::Unnamed(settings.temp_dir.clone()),
    };
    check_distinct(&kept, &rest)?;
    let others = if op == SetOp::SymDiff { &job.others[..] } else { &[] };
    let printed = matches!(kept, Target::Unnamed(_)).then(|| [&job.first, others].concat());
    let keys = Arc::clone(&settings.keys);
    let (left_out, keys_only) = (settings.left_out.clone(), settings.keys_only);
    let records =
        Records { keys: &keys, printed: printed.as_deref(), left_out: &left_out, keys_only };
    let work_dir = settings.work_dir.clone();
    let ((report, lines), csv) =
        run_with_records(py, options.progress, files, records, |reporter| {
            run_job(&job, kept, rest, Settings { progress: reporter, ..settings }, reporter)
        })?;
    // Only now, when the output is complete.
    work_dir.as_deref().into_iter().for_each(forget_work);
    let fields = report_fields(py, &report)?;
    fields.bind(py).set_item("csv", csv)?;
    Ok((fields, lines.map(OwnedFd::into_raw_fd)))
}

/// Runs the job in the current thread.
fn run_job(
    job: &SetJob,
    kept: Target,
    rest: Target,
    mut settings: Settings<'_>,
    reporter: &ProgressReporter,
) -> PyResult<(Report, Option<OwnedFd>)> {
    let inputs: Vec<_> = job.first.iter().chain(&job.others).cloned().collect();
    let mut kept = kept.open_lines(&inputs, &mut settings, reporter)?;
    let mut rest = rest.open_lines(&inputs, &mut settings, reporter)?;
    let sinks = Outputs { kept: kept.writer(), rest: rest.writer() };
    let report = job.run(&settings, sinks).map_err(IntoPyErr::into_py_err)?;
    reporter.flush()?;
    rest.finish()?;
    Ok((report, kept.finish()?))
}

/// Returns the fields of a report.
fn report_fields(py: Python<'_>, report: &Report) -> PyResult<Py<PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("strategy", report.strategy.as_ref())?;
    fields.set_item("kept", report.kept)?;
    fields.set_item("first_lines", report.first_lines)?;
    fields.set_item("passes", report.passes)?;
    fields.set_item("bytes_read", report.bytes_read)?;
    fields.set_item("spilled", report.spilled)?;
    fields.set_item("candidates", report.candidates)?;
    fields.set_item("false_found", report.false_found)?;
    fields.set_item("false_promised", report.false_promised)?;
    fields.set_item("records", report.records)?;
    fields.set_item("wrong", report.wrong)?;
    fields.set_item("wrong_error", report.wrong_error)?;
    fields.set_item("repeats_possible", report.repeats_possible)?;
    fields.set_item("resumed", report.resumed)?;
    fields.set_item("seconds", report.seconds)?;
    let phases = PyList::empty(py);
    for phase in &report.phases {
        phases.append((phase.what.as_ref(), phase.seconds, phase.bytes, phase.lines))?;
    }
    fields.set_item("phases", phases)?;
    Ok(fields.unbind())
}
