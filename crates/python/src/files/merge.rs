//! `merge`: the union of filter files.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use petal::AnyFilter;
use petal_interop::GZIP;
use petal_lines::{MemoryLimit, Progress as _, Source, format_size};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::filters::{Counted, Counts, Notes, report_fields, warn_if_overfull};
use super::job::{ProgressReporter, run};
use super::output::Target;
use super::{JobResult, Memory, files_at};
use crate::error::{Exception, IntoPyErr, cannot_read, with_path};
use crate::state::open::{OpenOptions, load, open};
use crate::state::{FilterState, Storage};

/// The arguments of `merge`.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct MergeArgs<'py> {
    out: Bound<'py, PyAny>,
    fold: bool,
    /// The format of other programs' files; `None`: detected.
    format: Option<String>,
    memory_limit: Option<Memory>,
    secret: Option<Vec<u8>>,
    notes: Notes,
    progress: Option<Py<PyAny>>,
}

/// Writes the union of filter files.
#[pyfunction]
#[pyo3(name = "_merge_job")]
pub(super) fn merge_job(
    py: Python<'_>,
    filters: Vec<PathBuf>,
    merge_args: MergeArgs<'_>,
) -> PyResult<JobResult> {
    let MergeArgs { out, fold, format, memory_limit, secret, notes, progress } = merge_args;
    notes.noted("{}")?;
    let memory_limit = match memory_limit {
        Some(memory_limit) => memory_limit.bytes()?,
        None => MemoryLimit::DEFAULT.bytes(),
    };
    let mut files = Vec::new();
    let target = Target::new(Some(out), "out", &mut files)?.unwrap_or(Target::Discard);
    let inputs = files_at(filters.clone());
    let merge = Merge { fold, format, memory_limit, secret, notes };
    let started = Instant::now();
    let merged =
        run(py, progress, files, |reporter| merge.run(&filters, target, &inputs, reporter))?;
    let fields: Py<PyDict> = report_fields(py, "merge", merged, started)?;
    Ok((fields, None))
}

struct Merge {
    fold: bool,
    format: Option<String>,
    memory_limit: u64,
    secret: Option<Vec<u8>>,
    notes: Notes,
}

impl Merge {
    /// Runs the job in the current thread.
    fn run(
        &self,
        filters: &[PathBuf],
        target: Target,
        inputs: &[Source],
        reporter: &ProgressReporter,
    ) -> PyResult<Counted> {
        let Some((first, rest)) = filters.split_first() else {
            return Err(PyValueError::new_err("expected at least one filter"));
        };
        let gzip = is_gzip(first)?;
        let mut output = match gzip {
            true => target.open_as_named(inputs, reporter)?,
            false => target.open(inputs, reporter)?,
        };
        let sizes = filters.iter().map(|path| fs::metadata(path).map_or(0, |data| data.len()));
        reporter.phase("merging", Some(sizes.sum()));
        // One filter is in memory, and the pages of another are mapped.
        let mut union = self.open_within(first, self.memory_limit / 2, true)?;
        if self.fold && union.as_dyn().is_none() {
            let text = "fold=: only petal's own filters can be folded; leave it out";
            return Err(PyValueError::new_err(text));
        }
        let size = union.size_bytes();
        for path in rest {
            self.check_cancelled(reporter)?;
            self.add(&mut union, path, reporter)?;
            reporter.advance(fs::metadata(path).map_or(0, |data| data.len()));
        }
        if union.size_bytes() < size
            && let Some(filter) = union.as_dyn()
        {
            reporter.warn(format!(
                "folded from {} to {}, which divides the sizes of all filters; the estimated \
                 false-positive rate is {}",
                format_size(size),
                format_size(filter.size_bytes()),
                petal_lines::format_rate(filter.stats().estimated_fpr),
            ));
        }
        match union.as_dyn() {
            Some(filter) => warn_if_overfull(filter, false, Path::new("out="), reporter),
            None => union
                .foreign_stats()?
                .warnings
                .into_iter()
                .for_each(|text| reporter.warn(text.to_owned())),
        }
        if !self.notes.is_empty() {
            let metadata = self.notes.noted(union.metadata())?;
            union.set_metadata(metadata)?;
        }
        if union.file_has_secret() {
            output.make_private()?;
        }
        if let Some(writer) = output.writer() {
            write(&union, gzip, writer)?;
        }
        reporter.flush()?;
        output.finish()?;
        let kept = union.as_dyn().map_or(0, |filter| filter.inserted());
        Ok((Counts { lines: 0, kept, passes: 1 }, reporter.phases()))
    }

    /// Adds the keys of another file.
    fn add(
        &self,
        union: &mut FilterState,
        path: &Path,
        reporter: &ProgressReporter,
    ) -> PyResult<()> {
        let size_now = union.size_bytes();
        let available = self.memory_limit.saturating_sub(size_now);
        let other = self.open_within(path, available, false)?;
        other.verify().map_err(|error| with_path(path, error))?;
        union.check_same_transforms(&other).map_err(|error| with_path(path, error))?;
        let keys = other.recorded_spelling().unwrap_or_default();
        for difference in keys.differences(union.recorded_spelling()) {
            reporter.warn_of(difference, &path.display().to_string(), "the files before it");
        }
        if other.size_bytes() != size_now
            && let Some(folded) = folded(union, &other)
        {
            // Folding writes to a third filter, which is not larger than either.
            self.check_size(path, other.size_bytes(), available / 2)?;
            let folded = folded.map_err(|error| error.into_py_err_at(path))?;
            let smaller = size_now.min(other.size_bytes());
            let size = folded.as_dyn().size_bytes();
            if size < smaller && !self.fold {
                return Err(Exception::Incompatible.new_err(format_args!(
                    "{}: the filters would be folded to {}, the largest size that divides both; the \
                     smaller one has {}; build both with the same capacity= and fpr=, or accept it \
                     with fold=True",
                    path.display(),
                    format_size(size),
                    format_size(smaller),
                )));
            }
            let before = union.inserted();
            union.storage = Storage::Memory(folded);
            union.add_metadata_of(&other, before);
            return Ok(());
        }
        union.merge(&other).map_err(|error| with_path(path, error))
    }

    /// Opens a filter file: read into memory if it will be changed or is compressed, else mapped.
    fn open_within(&self, path: &Path, available: u64, change: bool) -> PyResult<FilterState> {
        let size = fs::metadata(path).map_or(0, |data| data.len());
        self.check_size(path, size, available)?;
        let (format, secret) = (self.format.as_deref(), self.secret.as_deref());
        let options = OpenOptions::parse(format, "text", secret)?;
        let read = change || is_gzip(path)?;
        let state = Python::attach(|py| match read {
            true => load(py, path.to_owned(), options),
            false => open(py, path.to_owned(), options),
        })?;
        self.check_size(path, state.size_bytes(), available)?;
        Ok(state)
    }

    fn check_size(&self, path: &Path, size: u64, available: u64) -> PyResult<()> {
        if size <= available {
            return Ok(());
        }
        Err(Exception::MemoryLimit.new_err(format_args!(
            "{}: the filter takes {}, more than the {} that memory_limit= leaves for it; raise \
             memory_limit=",
            path.display(),
            format_size(size),
            format_size(available),
        )))
    }

    fn check_cancelled(&self, reporter: &ProgressReporter) -> PyResult<()> {
        match reporter.cancelled() {
            true => Err(Exception::Petal.new_err("cancelled")),
            false => Ok(()),
        }
    }
}

/// Returns whether a file is compressed with gzip.
fn is_gzip(path: &Path) -> PyResult<bool> {
    // A folder or a FIFO is refused when it is opened as a filter.
    if !fs::metadata(path).is_ok_and(|data| data.is_file()) {
        return Ok(false);
    }
    let mut start = Vec::new();
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    let read = file.take(GZIP.len() as u64).read_to_end(&mut start);
    read.map_err(|error| cannot_read(path, &error))?;
    Ok(start == GZIP)
}

/// Writes the filter; one of another program is compressed if the first file was.
fn write(
    union: &FilterState,
    gzip: bool,
    mut out: &mut (dyn std::io::Write + Send),
) -> PyResult<()> {
    match &union.storage {
        Storage::Foreign(filter) => filter.write_to(&mut out, gzip).map_err(IntoPyErr::into_py_err),
        _ => union.write_to(&mut out),
    }
}

/// Returns the union at the largest size that divides both; `None` for types that do not fold.
fn folded(ours: &FilterState, theirs: &FilterState) -> Option<petal::Result<AnyFilter>> {
    match (&ours.storage, &theirs.storage) {
        (Storage::Memory(AnyFilter::Bloom(ours)), Storage::Mapped(AnyFilter::Bloom(theirs))) => {
            Some(ours.union_folded(theirs).map(AnyFilter::from))
        }
        (
            Storage::Memory(AnyFilter::Classic(ours)),
            Storage::Mapped(AnyFilter::Classic(theirs)),
        ) => Some(ours.union_folded(theirs).map(AnyFilter::from)),
        _ => None,
    }
}
