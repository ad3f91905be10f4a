//! The filter file of `seen`, and the fingerprint log beside it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use petal::{AnyFilter, BloomFilter, WindowedBloomFilter};
use petal_lines::atomic_file::{AtomicFile, beside, open_whole};
use petal_lines::{
    FilterSpec, FingerprintLog, KeySpec, Lock, SeenFilter, Settings, Source, Spelling,
    filter_metadata, format_count, format_rate, format_size, max_seen_filter, recorded_log_id,
    recorded_spelling, with_keys_of, with_log_id, with_spelling,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::filters::Notes;
use crate::error::{
    Exception, IntoPyErr, cannot_read, cannot_write, finish_file, refuse_compressed,
};
use crate::state::Clock;
use crate::state::open::read_native;
use crate::state::transforms::adopted;

/// What the first job creates. Later jobs may repeat it.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct SeenPlan {
    capacity: Option<u64>,
    fpr: Option<f64>,
    /// Seconds after which lines are forgotten.
    window: Option<u64>,
    /// The number of lines that are remembered.
    last: Option<u64>,
    exact: bool,
    pub(super) notes: Notes,
}

/// The filter file and its fingerprint log.
pub(super) struct SeenFiles {
    path: PathBuf,
    /// The fingerprint log, beside the filter.
    exact: PathBuf,
    metadata: String,
    /// How the keys of earlier jobs are spelled, if the filter records it.
    pub(super) spelling: Option<Spelling>,
    /// Whether the files do not exist yet.
    pub(super) fresh: bool,
}

impl SeenFiles {
    /// Locks a filter file, which need not exist. The program takes the same lock.
    pub(super) fn lock(path: &Path) -> PyResult<Lock> {
        let file = beside(path, "lock");
        Lock::take(&file).map_err(|error| cannot_write(&file, &error))?.ok_or_else(|| {
            Exception::Input.new_err(format_args!(
                "{}: another job is using it; wait for that to end, or use another file",
                path.display()
            ))
        })
    }

    /// Opens the files, or plans new ones. An existing filter determines how keys are changed.
    pub(super) fn open(
        path: &Path,
        plan: &SeenPlan,
        inputs: &[Source],
        settings: &mut Settings<'_>,
    ) -> PyResult<(SeenFilter, Self)> {
        let exact = beside(path, "exact");
        let mut files = Self {
            path: path.to_owned(),
            exact,
            metadata: String::new(),
            spelling: None,
            fresh: false,
        };
        let memory = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                files.plan(plan, inputs, settings)
            }
            _ => files.open_existing(plan, settings),
        }?;
        files.metadata = plan.notes.noted(&files.metadata)?;
        Ok((memory, files))
    }

    /// The files, for the check that an output is none of them.
    pub(super) fn sources(&self) -> [Source; 2] {
        [&self.path, &self.exact].map(|path| Source::Path(path.clone()))
    }

    /// Makes the filter and the log of a first job, in memory.
    fn plan(
        &mut self,
        plan: &SeenPlan,
        inputs: &[Source],
        settings: &Settings<'_>,
    ) -> PyResult<SeenFilter> {
        let shown = self.path.display();
        if let Some(orphan) = self.open_log()?
            && !orphan.is_empty()
        {
            return Err(Exception::Input.new_err(format_args!(
                "{}: has {} fingerprints, but its filter {shown} is missing; restore the filter, or \
                 remove the log to start over",
                self.exact.display(),
                format_count(orphan.len()),
            )));
        }
        let keys = plan.last.or(plan.capacity).ok_or_else(|| {
            let period = if plan.window.is_some() { "in the window" } else { "in all jobs" };
            PyValueError::new_err(format!(
                "{shown}: does not exist yet; specify with capacity= the number of lines {period}"
            ))
        })?;
        let filter = plan.new_filter(keys, settings)?;
        let log = plan.exact.then(FingerprintLog::new).transpose();
        let log = log.map_err(IntoPyErr::into_py_err)?;
        self.metadata = filter_metadata(&settings.keys, inputs);
        if let Some(log) = &log {
            self.metadata = with_log_id(&self.metadata, log.pair_id());
        }
        self.spelling = Some(Spelling::default());
        self.fresh = true;
        Ok(SeenFilter { filter, log, clock: Box::new(|| Clock::System.now()) })
    }

    /// Opens the files of a later job.
    fn open_existing(
        &mut self,
        plan: &SeenPlan,
        settings: &mut Settings<'_>,
    ) -> PyResult<SeenFilter> {
        let available = max_seen_filter(settings).map_err(IntoPyErr::into_py_err)?;
        let size = fs::metadata(&self.path).map_or(0, |data| data.len());
        if size > available {
            return Err(too_large(&self.path, size, available));
        }
        let (filter, metadata) = read_native(&self.path)?;
        plan.check(&filter, &self.path)?;
        let transforms = adopted(&metadata, &settings.keys.transforms)?;
        settings.keys = Arc::new(KeySpec { transforms, ..KeySpec::clone(&settings.keys) });
        let log = self.open_log()?;
        let (shown, exact) = (self.path.display(), self.exact.display());
        let problem = match (recorded_log_id(&metadata), &log) {
            (Some(id), Some(log)) if id == log.pair_id() => None,
            (None, None) if !plan.exact => None,
            (None, None) => {
                return Err(PyValueError::new_err(format!(
                    "{shown}: was created without exact=True, so it has no fingerprints; leave out \
                     exact=, or use another file"
                )));
            }
            (Some(_), None) => Some(format!(
                "{exact}: is missing, and {shown} is not exact without it; restore it, or remove \
                 {shown} to start over"
            )),
            (_, Some(_)) => Some(format!(
                "{exact}: does not belong to {shown}; restore the right log, or move this one away"
            )),
        };
        self.spelling = recorded_spelling(&metadata, filter.as_dyn().inserted());
        self.metadata = metadata;
        match problem {
            Some(problem) => Err(Exception::Input.new_err(problem)),
            None => Ok(SeenFilter { filter, log, clock: Box::new(|| Clock::System.now()) }),
        }
    }

    /// Opens the fingerprint log, if it exists.
    fn open_log(&self) -> PyResult<Option<FingerprintLog>> {
        let shown = self.exact.display().to_string();
        match fs::metadata(&self.exact) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(data) if !data.is_file() => Err(Exception::Input
                .new_err(format_args!("{shown}: is not a regular file; move it away"))),
            _ => {
                let file = open_whole(&self.exact).map_err(|e| cannot_read(&self.exact, &e))?;
                FingerprintLog::open(file, &shown).map(Some).map_err(IntoPyErr::into_py_err)
            }
        }
    }

    /// Returns an error if the filter file cannot be replaced, or is an input.
    pub(super) fn check_writable(&self, inputs: &[Source]) -> PyResult<()> {
        let failed = |error| cannot_write(&self.path, &error);
        refuse_compressed(&self.path)?;
        if let Ok(data) = fs::metadata(&self.path) {
            super::output::check_not_input(&self.path, &data, inputs)?;
            File::options().append(true).open(&self.path).map_err(failed)?;
        }
        AtomicFile::create(&self.path).map(drop).map_err(failed)
    }

    /// Moves the fingerprints to an unnamed temporary file, so that memory for more is free.
    pub(super) fn move_fingerprints_to_disk(
        &self,
        memory: &mut SeenFilter,
        temp_dir: &Path,
    ) -> io::Result<()> {
        let Some(log) = &mut memory.log else { return Ok(()) };
        log.move_to(tempfile::tempfile_in(temp_dir)?).map_err(io::Error::other)
    }

    /// Saves the files.
    pub(super) fn save(
        &mut self,
        memory: &mut SeenFilter,
        (keys, inputs): (&KeySpec, &[Source]),
        spelling: Spelling,
    ) -> PyResult<()> {
        let metadata = with_keys_of(&self.metadata, &filter_metadata(keys, inputs));
        let metadata = with_spelling(&metadata, spelling, memory.filter.as_dyn().inserted());
        match &memory.log {
            // The log must exist before a filter that refers to it.
            Some(log) if self.fresh => {
                replace(&self.exact, |file| file.write_all(&log.empty_file()))?;
            }
            // Left by a first job that was interrupted.
            None if self.exact.exists() => {
                fs::remove_file(&self.exact).map_err(|error| cannot_write(&self.exact, &error))?;
            }
            _ => {}
        }
        replace(&self.path, |file| {
            let mut file = io::BufWriter::with_capacity(1 << 20, file);
            memory.filter.as_dyn().write_to(&mut file, &metadata).map_err(io::Error::other)?;
            file.flush()
        })?;
        match &mut memory.log {
            Some(log) if log.appends() => {
                let file = File::options().write(true).open(&self.exact);
                file.and_then(|file| log.append_to(&file))
                    .map_err(|error| cannot_write(&self.exact, &error))
            }
            Some(log) => replace(&self.exact, |file| log.write_to(file)),
            None => Ok(()),
        }
    }
}

/// Replaces a file atomically; only the owner can read a new one, which has the secret key of a hash.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> PyResult<()> {
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.make_private()?;
        write(file.file())?;
        Ok(file)
    });
    finish_file(written.map_err(|error| cannot_write(path, &error))?, path)
}

fn too_large(path: &Path, size: u64, available: u64) -> PyErr {
    Exception::MemoryLimit.new_err(format_args!(
        "{}: the filter takes {}, more than the {} that memory_limit= leaves for it; raise \
         memory_limit=",
        path.display(),
        format_size(size),
        format_size(available),
    ))
}

impl SeenPlan {
    /// Returns an empty filter.
    fn new_filter(&self, keys: u64, settings: &Settings<'_>) -> PyResult<AnyFilter> {
        let fpr = self.fpr.unwrap_or(FilterSpec::DEFAULT_FPR);
        let available = max_seen_filter(settings).map_err(IntoPyErr::into_py_err)?;
        let fits = |needed: u64| {
            match needed <= available {
            true => Ok(()),
            false => Err(Exception::MemoryLimit.new_err(format_args!(
                "capacity=: {} keys at {} take {}, more than the {} that memory_limit= leaves for a \
                 filter; raise memory_limit=, or raise fpr=",
                format_count(keys),
                format_rate(fpr),
                format_size(needed),
                format_size(available),
            ))),
        }
        };
        // A windowed filter takes a little more; it is checked again below.
        let plan = BloomFilter::builder().capacity(keys).fpr(fpr).plan();
        fits(plan.map_err(IntoPyErr::into_py_err)?.size_bytes())?;
        let hash = SeenFilter::new_hash(self.exact).map_err(IntoPyErr::into_py_err)?;
        if self.window.is_none() && self.last.is_none() {
            let filter = BloomFilter::builder().capacity(keys).fpr(fpr).hash(hash).build();
            return Ok(filter.map_err(IntoPyErr::into_py_err)?.into());
        }
        let builder = WindowedBloomFilter::builder().capacity(keys).fpr(fpr).hash(hash);
        let builder = self.window.map_or(builder, |seconds| builder.window(seconds));
        let filter = AnyFilter::from(builder.build().map_err(IntoPyErr::into_py_err)?);
        fits(filter.as_dyn().size_bytes())?;
        Ok(filter)
    }

    /// Returns an error if an argument differs from what the existing filter was created with.
    fn check(&self, filter: &AnyFilter, path: &Path) -> PyResult<()> {
        let (planned, target) = (filter.as_dyn().capacity(), filter.as_dyn().target_fpr());
        let (window, last) = match filter {
            AnyFilter::Windowed(filter) => match filter.window_ticks() {
                Some(time) => (Some(time), None),
                None => (None, Some(planned)),
            },
            _ => (None, None),
        };
        let same_rate = |rate: f64| (rate / target - 1.0).abs() < 1e-9;
        let different: Vec<_> = [
            ("capacity=", self.capacity.is_some_and(|keys| keys != planned || last.is_some())),
            ("fpr=", self.fpr.is_some_and(|rate| !same_rate(rate))),
            ("window=", self.window.is_some_and(|seconds| window != Some(seconds))),
            ("last=", self.last.is_some_and(|keys| last != Some(keys))),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect();
        if different.is_empty() {
            return Ok(());
        }
        let period = match (window, last) {
            (Some(seconds), _) => format!(" in {seconds} seconds"),
            (_, Some(_)) => " (the last ones)".to_owned(),
            _ => String::new(),
        };
        let plan = match planned {
            0 => "without a capacity".to_owned(),
            _ => format!("for {} lines{period} at {}", format_count(planned), format_rate(target)),
        };
        Err(PyValueError::new_err(format!(
            "{}: was created {plan}; leave out {}, or use another file",
            path.display(),
            different.join(" and "),
        )))
    }
}
