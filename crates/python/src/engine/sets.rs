//! `common`, `diff` and `dedup`.

use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;

use petal_lines::{Mode, Report, SetJob, Settings, Sinks, Verb, forget_work};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::job::{Teller, run};
use super::output::{Target, refuse_twice};
use super::{Done, Told, sources};
use crate::error::Raise;

/// What the answer is to be.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Answer<'py> {
    out: Option<Bound<'py, PyAny>>,
    rest: Option<Bound<'py, PyAny>>,
    count: bool,
    approx: bool,
    capacity: Option<u64>,
    rate: Option<f64>,
}

/// Does the verb of that name on paths.
#[pyfunction]
#[pyo3(name = "_set_job")]
pub(super) fn set_job(
    py: Python<'_>,
    verb: &str,
    first: Vec<PathBuf>,
    others: Vec<PathBuf>,
    answer: Answer<'_>,
    told: Told,
) -> PyResult<Done> {
    let verb = match verb {
        "common" => Verb::Common,
        "diff" => Verb::Diff,
        _ => Verb::Dedup,
    };
    let mode = match answer.approx {
        true => Mode::Approx { keys: answer.capacity, rate: answer.rate },
        false => Mode::Exact { strategy: None },
    };
    let job = SetJob { verb, first: sources(first), others: sources(others), mode };
    let settings = told.settings()?;
    let mut files = Vec::new();
    let rest = Target::of(answer.rest, "rest", &mut files)?.unwrap_or(Target::Nowhere);
    let kept = match Target::of(answer.out, "out", &mut files)? {
        Some(_) if answer.count => {
            let words = "count=True: lines are only counted; leave out=, or count=, out";
            return Err(PyValueError::new_err(words));
        }
        Some(target) => target,
        None if answer.count => Target::Nowhere,
        None => Target::Nameless(settings.temp_dir.clone()),
    };
    refuse_twice(&kept, &rest)?;
    let work_dir = settings.work_dir.clone();
    let (report, lines) = run(py, told.progress, files, |teller| {
        work(&job, kept, rest, &Settings { progress: teller, ..settings }, teller)
    })?;
    // Not before the answer is where it belongs.
    work_dir.as_deref().into_iter().for_each(forget_work);
    Ok((in_python(py, &report)?, lines.map(OwnedFd::into_raw_fd)))
}

/// In a thread of its own.
fn work(
    job: &SetJob,
    kept: Target,
    rest: Target,
    settings: &Settings<'_>,
    teller: &Teller,
) -> PyResult<(Report, Option<OwnedFd>)> {
    let inputs: Vec<_> = job.first.iter().chain(&job.others).cloned().collect();
    let (mut kept, mut rest) = (kept.open(&inputs, teller)?, rest.open(&inputs, teller)?);
    let sinks = Sinks { kept: kept.writer(), rest: rest.writer() };
    let report = job.run(settings, sinks).map_err(Raise::raise)?;
    teller.settle()?;
    rest.finish()?;
    Ok((report, kept.finish()?))
}

/// The numbers of a report by their names.
fn in_python(py: Python<'_>, report: &Report) -> PyResult<Py<PyDict>> {
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
