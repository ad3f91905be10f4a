//! `seen`: the lines that no earlier job has returned, which a filter file remembers.
//!
//! A job changes nothing before all lines are read: a job that fails returns the same lines when it
//! is repeated. Then it completes the output, replaces the filter file, and last the fingerprint log.
//! A line may be returned again after a crash in between, but none is lost.

use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use petal_lines::atomic_file::{beside, resolve_links};
use petal_lines::{Settings, Source, explain_full, seen};
use pyo3::prelude::*;

use super::filters::{Counted, Counts, report_fields, warn_if_overfull};
use super::job::{ProgressReporter, Records, run_with_records};
use super::output::{Target, count_with_output, refuse_bad_file};
use super::seen_files::{SeenFiles, SeenPlan};
use super::{JobOptions, JobResult, sources};
use crate::error::{IntoPyErr, cannot_write};

/// The arguments of `seen`.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct SeenArgs<'py> {
    filter: PathBuf,
    out: Option<Bound<'py, PyAny>>,
    count: bool,
    dry_run: bool,
    plan: SeenPlan,
}

/// Returns the lines of files that no earlier job has returned, and adds them to a filter file.
#[pyfunction]
#[pyo3(name = "_seen_job")]
pub(super) fn seen_job(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    seen_args: SeenArgs<'_>,
    options: JobOptions,
) -> PyResult<JobResult> {
    let SeenArgs { filter, out, count, dry_run, plan } = seen_args;
    let inputs = sources(inputs)?;
    let settings = options.settings(&inputs)?;
    let mut files = Vec::new();
    let target = match Target::new(out, "out", &mut files)? {
        Some(_) if count => return Err(count_with_output()),
        Some(target) => target,
        None if count => Target::Discard,
        None => Target::Unnamed(settings.temp_dir.clone()),
    };
    let path = resolve_links(&filter).map_err(|error| cannot_write(&filter, &error))?;
    let job = SeenJob { path, inputs, plan, dry_run };
    let started = Instant::now();
    let keys = Arc::clone(&settings.keys);
    let (left_out, keys_only) = (settings.left_out.clone(), settings.keys_only);
    let printed = matches!(target, Target::Unnamed(_)).then_some(&job.inputs[..]);
    let records = Records { keys: &keys, printed, left_out: &left_out, keys_only };
    let ((counted, lines), csv) =
        run_with_records(py, options.progress, files, records, |reporter| {
            job.run(target, Settings { progress: reporter, ..settings }, reporter)
        })?;
    let fields = report_fields(py, "seen", counted, started)?;
    fields.bind(py).set_item("csv", csv)?;
    Ok((fields, lines.map(OwnedFd::into_raw_fd)))
}

struct SeenJob {
    path: PathBuf,
    inputs: Vec<Source>,
    plan: SeenPlan,
    dry_run: bool,
}

impl SeenJob {
    /// Runs the job in the current thread.
    fn run(
        &self,
        target: Target,
        mut settings: Settings<'_>,
        reporter: &ProgressReporter,
    ) -> PyResult<(Counted, Option<OwnedFd>)> {
        [&self.path, &beside(&self.path, "exact")]
            .into_iter()
            .try_for_each(|file| refuse_bad_file(file, &settings))?;
        let _lock = (!self.dry_run).then(|| SeenFiles::lock(&self.path)).transpose()?;
        let (mut memory, mut files) =
            SeenFiles::open(&self.path, &self.plan, &self.inputs, &mut settings)?;
        if !self.dry_run {
            files.check_writable(&self.inputs)?;
        }
        let all: Vec<_> = self.inputs.iter().cloned().chain(files.sources()).collect();
        let mut output = target.open_lines(&all, &mut settings, reporter)?;
        // Called only when the memory for fingerprints is full.
        let save = |memory: &mut _| files.move_fingerprints_to_disk(memory, &settings.temp_dir);
        let counts =
            seen(&settings, &mut memory, &self.inputs, output.writer(), Duration::MAX, save);
        let counts = counts.map_err(|error| explain_full(error, memory.filter.as_dyn()));
        let counts = counts.map_err(IntoPyErr::into_py_err)?;
        let filter = self.path.display().to_string();
        reporter.warn_if_spelled_differently(&settings, files.spelling, true, &filter);
        reporter.flush()?;
        let lines = output.finish()?;
        if !self.dry_run && (counts.new > 0 || files.fresh || !self.plan.notes.is_empty()) {
            let spelling = settings.spellings.all().union(files.spelling.unwrap_or_default());
            files.save(&mut memory, (&settings.keys, &self.inputs), spelling)?;
        }
        warn_if_overfull(memory.filter.as_dyn(), memory.log.is_some(), &self.path, reporter);
        let counts = Counts { lines: counts.lines, kept: counts.new, passes: 1 };
        Ok(((counts, reporter.phases()), lines))
    }
}
