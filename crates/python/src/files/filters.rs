//! `build` and `check`: filters of the lines of files, and lines looked up in filters.

use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use petal::{BatchResults, FilterType, HashSpec, Membership};
use petal_lines::{
    AllowList, BadLine, CheckOptions, FilterSpec, KeySpec, LineFilter, LineHash, MIN_MEMORY,
    Settings, Source, check, filter_metadata, format_count, format_keys, format_rate, format_size,
    parse_transforms, with_note, with_query_transforms, with_spelling,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::job::{Phase, ProgressReporter, Records, run, run_with_records};
use super::output::{Target, count_with_output, refuse_bad_file};
use super::{JobOptions, JobResult, Memory, add_phases, files_at, sources};
use crate::classes::Filter;
use crate::classes::options::hash;
use crate::error::{Exception, IntoPyErr};
use crate::keys::KeyHasher;
use crate::state::FilterState;

/// Returns the type of filter with this name.
pub(super) fn filter_type(name: &str) -> PyResult<FilterType> {
    let types = FilterType::ALL;
    types.into_iter().find(|one| one.name() == name).ok_or_else(|| {
        let names: Vec<_> = types.iter().map(|one| one.name()).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("type=: expected one of {names}, found {name:?}"))
    })
}

/// The arguments for the filter that `build` makes.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct FilterArgs {
    r#type: String,
    capacity: Option<u64>,
    fpr: Option<f64>,
    size: Option<Memory>,
    seed: u64,
    bits: Option<u64>,
    probes: Option<u32>,
    least_space: bool,
    width: Option<u32>,
    max_capacity: Option<u64>,
    window: Option<u64>,
    last: Option<u64>,
    now: u64,
    secret: Option<Vec<u8>>,
    secret_apart: bool,
    query_transform: String,
    notes: Notes,
}

/// What the writer of a filter's file notes in its metadata.
pub(super) struct Notes(Vec<(String, String)>);

impl<'py> FromPyObject<'_, 'py> for Notes {
    type Error = PyErr;

    fn extract(notes: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(notes.extract()?))
    }
}

impl Notes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the metadata with the notes.
    pub(super) fn noted(&self, metadata: &str) -> PyResult<String> {
        self.0.iter().try_fold(metadata.to_owned(), |metadata, (name, text)| {
            with_note(&metadata, name, text)
                .map_err(|problem| PyValueError::new_err(format!("metadata=: {problem}")))
        })
    }
}

impl FilterArgs {
    /// Returns the specification for the file engine.
    fn to_spec(&self, not_in: Vec<Source>) -> PyResult<FilterSpec> {
        Ok(FilterSpec {
            filter_type: Some(filter_type(&self.r#type)?),
            capacity: self.capacity,
            fpr: self.fpr,
            size: self.size.as_ref().map(|size| size.bytes_of("size=")).transpose()?,
            bits: self.bits,
            probes: self.probes,
            least_space: self.least_space,
            width: self.width,
            max_capacity: self.max_capacity,
            window: self.window,
            last: self.last,
            now: self.now,
            not_in,
            seed: self.seed,
            own_hash: Some(hash(self.seed, self.secret.as_deref(), self.secret_apart)?)
                .filter(HashSpec::is_keyed),
            ..FilterSpec::default()
        })
    }
}

/// Builds a filter of all lines of files and writes its file.
#[pyfunction]
#[pyo3(name = "_build_job")]
pub(super) fn build_job(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    out: Bound<'_, PyAny>,
    not_in: Vec<PathBuf>,
    filter_spec: FilterArgs,
    options: JobOptions,
) -> PyResult<JobResult> {
    let (inputs, spec) = (sources(inputs)?, filter_spec.to_spec(sources(not_in)?)?);
    let FilterArgs { query_transform, notes, .. } = filter_spec;
    spec.filter_type().map_err(IntoPyErr::into_py_err)?;
    notes.noted("{}")?;
    let query_transforms = parse_transforms(&query_transform)
        .map_err(|problem| PyValueError::new_err(format!("query_transform=: {problem}")))?;
    let mut settings = options.settings(&[&inputs[..], &spec.not_in].concat())?;
    settings.keys = Arc::new(settings.keys.queried_after(&query_transforms));
    let mut files = Vec::new();
    let target = Target::new(Some(out), "out", &mut files)?.unwrap_or(Target::Discard);
    let started = Instant::now();
    let left_out = settings.left_out.clone();
    let built = run(py, options.progress, files, |reporter| {
        let settings = Settings { progress: reporter, ..settings };
        let all = [&inputs[..], &spec.not_in].concat();
        if let Target::File(path) = &target {
            refuse_bad_file(path, &settings)?;
        }
        let mut output = target.open(&all, reporter)?;
        let built =
            petal_lines::build(&spec, &settings, &inputs).map_err(IntoPyErr::into_py_err)?;
        let hash = built.filter.as_dyn().hash_spec();
        if hash.is_keyed() && !hash.is_secret_apart() {
            output.make_private()?;
        }
        if let Some(writer) = output.writer() {
            let spelling = settings.spellings.of(&inputs);
            let inserted = built.filter.as_dyn().inserted();
            let metadata =
                with_spelling(&filter_metadata(&settings.keys, &inputs), spelling, inserted);
            let metadata = notes.noted(&with_query_transforms(&metadata, &query_transforms))?;
            built.filter.write_to(writer, &metadata).map_err(|error| output.failed(error))?;
        }
        output.finish()?;
        reporter.warn_of_left_out(&left_out);
        let kept = built.filter.as_dyn().inserted();
        Ok((Counts { lines: built.lines, kept, passes: built.passes }, reporter.phases()))
    })?;
    report_fields(py, "build", built, started).map(|fields| (fields, None))
}

/// The arguments of `check`.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct CheckArgs<'py> {
    out: Option<Bound<'py, PyAny>>,
    invert: bool,
    count: bool,
    allow: Vec<PathBuf>,
    /// The path of the filter file, if the filter was given by path.
    filter_paths: Vec<PathBuf>,
}

/// Looks up every line of files in a filter.
#[pyfunction]
#[pyo3(name = "_check_job")]
pub(super) fn check_job(
    py: Python<'_>,
    filter: Py<Filter>,
    inputs: Vec<PathBuf>,
    check_options: CheckArgs<'_>,
    options: JobOptions,
) -> PyResult<JobResult> {
    let (inputs, allow) = (sources(inputs)?, sources(check_options.allow)?);
    let mut settings = options.settings(&[&inputs[..], &allow].concat())?;
    settings.memory_limit = memory_beside(&*filter.get().read(py)?, settings.memory_limit)?;
    let transforms = filter.get().read(py)?.adopted_for_queries(&settings.keys.transforms)?;
    settings.keys = Arc::new(KeySpec { transforms, ..KeySpec::clone(&settings.keys) });
    let recorded = filter.get().read(py)?.recorded_spelling();
    let filter_paths = files_at(check_options.filter_paths);
    let mut files = Vec::new();
    let target = match Target::new(check_options.out, "out", &mut files)? {
        Some(_) if check_options.count => {
            return Err(count_with_output());
        }
        Some(target) => target,
        None if check_options.count => Target::Discard,
        None => Target::Unnamed(settings.temp_dir.clone()),
    };
    let keys = Arc::clone(&settings.keys);
    let (left_out, keys_only) = (settings.left_out.clone(), settings.keys_only);
    let printed = matches!(target, Target::Unnamed(_)).then_some(&inputs[..]);
    let records = Records { keys: &keys, printed, left_out: &left_out, keys_only };
    let started = Instant::now();
    let ((checked, lines), csv) =
        run_with_records(py, options.progress, files, records, |reporter: &ProgressReporter| {
            let mut settings = Settings { progress: reporter, ..settings };
            let all: Vec<_> = inputs.iter().chain(&allow).chain(&filter_paths).cloned().collect();
            let mut output = target.open_lines(&all, &mut settings, reporter)?;
            let allow =
                (!allow.is_empty()).then(|| read_allow_list(&settings, &allow)).transpose()?;
            let (invert, allow) = (check_options.invert, allow.as_ref());
            let query = CheckOptions { invert, allow, ..CheckOptions::default() };
            let filter = filter.get();
            let hash = {
                let state = filter.read_detached()?;
                Hash { hasher: state.key_hasher(), words_per_hash: state.words_per_hash() }
            };
            let shared = Shared { filter, hash };
            let checked = check(&settings, &shared, &inputs, query, output.writer());
            let checked = checked.map_err(IntoPyErr::into_py_err)?;
            let found = match check_options.invert {
                true => checked.found < checked.lines,
                false => checked.found > 0,
            };
            reporter.warn_if_spelled_differently(&settings, recorded, found, "the filter");
            let counts = Counts { lines: checked.lines, kept: checked.found, passes: 1 };
            Ok(((counts, reporter.phases()), output.finish()?))
        })?;
    let fields = report_fields(py, "check", checked, started)?;
    fields.bind(py).set_item("csv", csv)?;
    Ok((fields, lines.map(OwnedFd::into_raw_fd)))
}

/// Reads an allow list: keys, one per line.
fn read_allow_list(settings: &Settings<'_>, allow: &[Source]) -> PyResult<AllowList> {
    let keys = Arc::new(settings.keys.of_listed_keys());
    let settings = Settings { keys, ..settings.clone() };
    AllowList::read(&settings, allow).map_err(IntoPyErr::into_py_err)
}

/// Returns the memory limit less the size of a mapped filter, at least `MIN_MEMORY`.
fn memory_beside(filter: &FilterState, memory: u64) -> PyResult<u64> {
    if !filter.is_mapped() || memory < MIN_MEMORY {
        return Ok(memory);
    }
    let size = filter.as_dyn().map_or_else(|| filter.size_bytes(), |face| face.size_bytes());
    if size > memory {
        return Err(Exception::MemoryLimit.new_err(format_args!(
            "memory_limit=: the filter takes {}, more than {}; raise memory_limit=",
            format_size(size),
            format_size(memory),
        )));
    }
    Ok((memory - size).max(MIN_MEMORY))
}

/// Warns if a filter has more keys than it was planned for. With a fingerprint log that costs only
/// time.
pub(super) fn warn_if_overfull(
    filter: &dyn Membership,
    has_log: bool,
    path: &Path,
    reporter: &ProgressReporter,
) {
    let (planned, inserted) = (filter.capacity(), filter.inserted());
    let shown = path.display();
    // The margin is for the estimate after a merge. Growing filters exceed their capacity as planned.
    let kind = filter.filter_type();
    let grows = kind == FilterType::Scalable;
    let exceeds = !grows && planned > 0 && inserted as f64 > planned as f64 * 1.01;
    if has_log && exceeds {
        reporter.warn(format!(
            "{shown}: the filter was planned for {} and has about {}: results stay exact, but \
             lookups are slower; start another file with a higher capacity=",
            format_keys(planned),
            format_count(inserted),
        ));
    }
    if has_log || !(exceeds || grows || kind == FilterType::Windowed) {
        return;
    }
    let stats = filter.stats();
    if !stats.is_overfull {
        return;
    }
    let rate = format_rate(stats.estimated_fpr);
    reporter.warn(match kind {
        FilterType::Windowed => format!(
            "{shown}: a part of the window has more lines than planned for; the estimated \
             false-positive rate is {rate}; make a larger filter with a higher capacity=",
        ),
        FilterType::Scalable => format!(
            "{shown}: hashes of 64 bits do not keep the rate of {} for this number of lines; the estimated \
             false-positive rate is {rate}; choose a higher fpr=",
            format_rate(stats.target_fpr),
        ),
        _ => format!(
            "{shown}: the filter was planned for {} and has about {}; its estimated \
             false-positive rate is {rate}; make a larger filter with a higher capacity=",
            format_keys(planned),
            format_count(inserted),
        ),
    });
}

/// A filter that other threads may change during the job. It is locked for one batch of lines at a
/// time, by threads that hold no other lock.
struct Shared<'a> {
    filter: &'a Filter,
    hash: Hash,
}

impl LineFilter for Shared<'_> {
    type Hash = Hash;

    fn line_hash(&self) -> Hash {
        self.hash.clone()
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut BatchResults) -> petal_lines::Result<()> {
        match self.filter.read_detached() {
            Ok(state) => state.contains_hashes(hashes, found),
            // A panic in another thread: any line may be in the filter.
            Err(_) => found.fill_with(hashes.len() / self.hash.words_per_hash, |_| true),
        }
        Ok(())
    }
}

/// The hash function of a filter, for lines.
#[derive(Clone)]
struct Hash {
    hasher: KeyHasher,
    words_per_hash: usize,
}

impl LineHash for Hash {
    fn words(&self) -> usize {
        self.words_per_hash
    }

    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        hashes: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        match &self.hasher {
            KeyHasher::Native(spec) => spec.hash_all(lines, hashes),
            KeyHasher::Foreign(hasher, _) | KeyHasher::SparkSql(hasher) => {
                let mut hasher = hasher.clone();
                for (line, key) in lines.enumerate() {
                    let hashed = hasher.hash(key, hashes);
                    hashed.map_err(|error| BadLine { line, why: error.to_string() })?;
                }
            }
        }
        Ok(())
    }
}

/// The counts of a job.
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) kept: u64,
    pub(super) passes: u64,
}

/// The counts and the phases of a job.
pub(super) type Counted = (Counts, Vec<Phase>);

/// Returns the fields of a report, with the names that set operations use.
pub(super) fn report_fields(
    py: Python<'_>,
    strategy: &str,
    (counts, phases): Counted,
    started: Instant,
) -> PyResult<Py<PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("strategy", strategy)?;
    fields.set_item("kept", counts.kept)?;
    fields.set_item("first_lines", counts.lines)?;
    fields.set_item("passes", counts.passes)?;
    fields.set_item("bytes_read", phases.iter().map(|phase| phase.bytes).sum::<u64>())?;
    fields.set_item("seconds", started.elapsed().as_secs_f64())?;
    add_phases(&fields, &phases)?;
    Ok(fields.unbind())
}
