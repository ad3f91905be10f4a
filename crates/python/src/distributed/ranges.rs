//! Tasks on byte ranges of files. Arguments and results are plain data, which any cluster can send.
//!
//! - A byte range is a tuple `(number, path, start, end, (length, seconds, nanoseconds))`; the last
//!   item is the length and modification time of the file.
//! - Settings are `(memory_limit, jobs, temp_dir, delimiter, key_transform, json_key)`:
//!   `key_transform` has the names of the changes to keys, separated by commas, and `json_key` the
//!   pointers of JSON records, none for lines.
//! - Job keys are bytes, paths are str, filters are paths of their files.
//! - The size of a filter is `(bytes, capacity, fpr)`.
//! - Results are dicts of numbers.
//!
//! `petal/_distributed/tasks.py` calls these functions in the workers; `stages.py` and `jobs.py` are
//! the driver.
//!
//! All functions run without the interpreter's lock and end soon after a signal handler raises.

use std::path::PathBuf;
use std::sync::Arc;

use petal::{AnyFilter, Mapped, Membership};
use petal_lines::distributed::{
    self, FileRange, FileStamp, FilterSize, JobKeys, Narrowing, PartialFilter, Side, SurvivorFiles,
    Task,
};
use petal_lines::{Fields, KeySpec, SetOp, Settings, filter_metadata};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::verified_filters::open_verified;
use crate::error::IntoPyErr;
use crate::files::transforms::transforms;
use crate::files::{Memory, job, json_fields};

type PlainRange = (u64, PathBuf, u64, u64, (u64, i64, i64));
type PlainSettings = (u64, usize, Option<PathBuf>, u8, String, Vec<String>);
type PlainSize = (u64, u64, Option<f64>);
type PlainAll = (Vec<PathBuf>, u64);
type PlainPartial = (PathBuf, Option<PathBuf>);

fn to_settings(
    (memory_limit, jobs, temp_dir, delimiter, key_transform, json_key): PlainSettings,
) -> PyResult<Settings<'static>> {
    let settings = Settings::new(memory_limit);
    let temp_dir = temp_dir.unwrap_or_else(|| settings.temp_dir.clone());
    let fields = if json_key.is_empty() { Fields::Line } else { json_fields(&json_key)? };
    let keys =
        Arc::new(KeySpec { fields, transforms: transforms(&key_transform)?, ..KeySpec::default() });
    Ok(Settings { jobs, temp_dir, delimiter, keys, ..settings })
}

/// Returns a memory limit in bytes.
#[pyfunction]
fn parse_memory_limit(memory_limit: Memory) -> PyResult<u64> {
    memory_limit.bytes()
}

fn to_range((number, path, start, end, (length, seconds, nanos)): PlainRange) -> FileRange {
    FileRange { number, path, start, end, stamp: FileStamp { length, changed: (seconds, nanos) } }
}

fn to_ranges(plain: Vec<PlainRange>) -> Vec<FileRange> {
    plain.into_iter().map(to_range).collect()
}

fn to_partial((seen, repeated): PlainPartial) -> PartialFilter {
    PartialFilter { seen, twice: repeated }
}

fn to_candidates((files, ranges): &PlainAll) -> SurvivorFiles<'_> {
    SurvivorFiles { files, ranges: *ranges }
}

fn to_side(first: bool) -> Side {
    if first { Side::First } else { Side::Other }
}

fn to_size((bytes, capacity, fpr): PlainSize) -> FilterSize {
    FilterSize { bytes, capacity, fpr }
}

/// Filters in mapped files.
struct Filters(Vec<AnyFilter<Mapped>>);

impl Filters {
    fn open(paths: &[PathBuf]) -> PyResult<Self> {
        Ok(Self(paths.iter().map(|path| open_verified(path)).collect::<PyResult<_>>()?))
    }

    fn as_dyn(&self) -> Vec<&dyn Membership> {
        self.0.iter().map(AnyFilter::as_dyn).collect()
    }
}

/// Runs a task in a thread of its own, without the interpreter's lock, while the calling thread
/// handles signals. Returns a dict of the results.
fn run<const N: usize>(
    py: Python<'_>,
    plain: PlainSettings,
    job_keys: &[u8],
    task: impl FnOnce(&Task<'_>) -> PyResult<[(&'static str, u64); N]> + Send,
) -> PyResult<Py<PyDict>> {
    let job_keys = job_keys.try_into().map_err(|_| {
        let (expected, found) = (JobKeys::BYTES, job_keys.len());
        PyValueError::new_err(format!("job_keys: expected {expected} bytes, found {found}"))
    })?;
    let settings = to_settings(plain)?;
    let numbers = job::run(py, None, vec![], |reporter| {
        let settings = Settings { progress: reporter, ..settings };
        task(&Task::with_keys(&settings, JobKeys::from_bytes(job_keys)))
    })?;
    dict(py, numbers)
}

fn dict<const N: usize>(py: Python<'_>, numbers: [(&'static str, u64); N]) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    numbers.into_iter().try_for_each(|(name, number)| dict.set_item(name, number))?;
    Ok(dict.unbind())
}

fn built(
    built: petal_lines::Result<distributed::BuildCounts>,
) -> PyResult<[(&'static str, u64); 3]> {
    let built = built.map_err(IntoPyErr::into_py_err)?;
    Ok([("lines", built.lines), ("bytes", built.bytes), ("written", built.written)])
}

/// Returns random keys for one job.
#[pyfunction]
fn job_keys(py: Python<'_>) -> PyResult<Py<PyBytes>> {
    Ok(PyBytes::new(py, &JobKeys::random().map_err(IntoPyErr::into_py_err)?.to_bytes()).unbind())
}

/// Splits files into byte ranges of about `size` bytes.
#[pyfunction]
fn split(py: Python<'_>, paths: Vec<PathBuf>, size: u64) -> PyResult<Vec<PlainRange>> {
    let ranges = job::run(py, None, vec![], |reporter| {
        distributed::split(&paths, size, reporter).map_err(IntoPyErr::into_py_err)
    })?;
    let plain = |FileRange { number, path, start, end, stamp }: FileRange| {
        let FileStamp { length, changed: (seconds, nanos) } = stamp;
        (number, path, start, end, (length, seconds, nanos))
    };
    Ok(ranges.into_iter().map(plain).collect())
}

/// Returns fixed keys, for filters that anyone may query.
#[pyfunction]
fn public_keys(py: Python<'_>) -> Py<PyBytes> {
    PyBytes::new(py, &JobKeys::public().to_bytes()).unbind()
}

/// Estimates a job from samples of byte ranges: `lines`; `wanted_bytes`, the size of their filter;
/// `filter_memory`, the memory of a worker that is available for filters; `partitions`.
#[pyfunction]
fn plan(py: Python<'_>, settings: PlainSettings, ranges: Vec<PlainRange>) -> PyResult<Py<PyDict>> {
    let (ranges, settings) = (to_ranges(ranges), to_settings(settings)?);
    let planned = job::run(py, None, vec![], |reporter| {
        let settings = Settings { progress: reporter, ..settings };
        distributed::plan(&settings, &ranges).map_err(IntoPyErr::into_py_err)
    })?;
    dict(
        py,
        [
            ("lines", planned.lines),
            ("wanted_bytes", planned.wanted.bytes),
            ("filter_memory", planned.memory),
            ("partitions", planned.partitions),
        ],
    )
}

/// Returns the size of a filter for a capacity and a rate.
#[pyfunction]
fn size_for(capacity: u64, fpr: f64) -> PyResult<PlainSize> {
    let FilterSize { bytes, capacity, fpr } =
        FilterSize::for_fpr(capacity, fpr).map_err(IntoPyErr::into_py_err)?;
    Ok((bytes, capacity, fpr))
}

/// Raises `InputError` if the name of an output says that it is compressed.
#[pyfunction]
fn refuse_compressed(path: PathBuf) -> PyResult<()> {
    crate::error::refuse_compressed(&path)
}

/// Counts the lines of byte ranges.
#[pyfunction]
fn count(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    ranges: Vec<PlainRange>,
) -> PyResult<Py<PyDict>> {
    let ranges = to_ranges(ranges);
    run(py, settings, job_keys, |task| built(task.count(&ranges)))
}

/// Builds a partial filter of the lines of byte ranges. `out` is the path of its file and, if it is
/// needed, that of the filter of repeated lines.
#[pyfunction]
fn build(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    ranges: Vec<PlainRange>,
    size: PlainSize,
    out: PlainPartial,
) -> PyResult<Py<PyDict>> {
    let (ranges, size, out) = (to_ranges(ranges), to_size(size), to_partial(out));
    run(py, settings, job_keys, |task| built(task.build(&ranges, size, &out)))
}

/// Builds the union of partial filters.
#[pyfunction]
fn union(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    partials: Vec<PlainPartial>,
    out: PlainPartial,
) -> PyResult<Py<PyDict>> {
    let (partials, out) =
        (partials.into_iter().map(to_partial).collect::<Vec<_>>(), to_partial(out));
    run(py, settings, job_keys, |task| built(task.union(&partials, &out)))
}

/// Writes the union of all partial filters as a filter file.
#[pyfunction]
fn publish(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    partial: PathBuf,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let metadata = filter_metadata(&to_settings(settings.clone())?.keys, &[]);
    run(py, settings, job_keys, |task| built(task.publish(&partial, &metadata, &out)))
}

/// Builds a partial filter of the records of candidates.
#[pyfunction]
fn build_from_candidates(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    candidates: Vec<PathBuf>,
    size: PlainSize,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let size = to_size(size);
    run(py, settings, job_keys, |task| built(task.build_from_survivors(&candidates, size, &out)))
}

/// Writes records of candidates: the lines of byte ranges that filters, or bits from `probe`, may
/// contain. Without either, of all lines.
#[pyfunction]
#[pyo3(signature = (settings, job_keys, ranges, first, partitions, out, filters=None, bits=None))]
#[expect(clippy::too_many_arguments, reason = "plain data of different types")]
fn filter(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    ranges: Vec<PlainRange>,
    first: bool,
    partitions: u64,
    out: PathBuf,
    filters: Option<Vec<PathBuf>>,
    bits: Option<Vec<PathBuf>>,
) -> PyResult<Py<PyDict>> {
    let (side, ranges) = (to_side(first), to_ranges(ranges));
    run(py, settings, job_keys, |task| {
        let opened = Filters::open(filters.as_deref().unwrap_or_default())?;
        let views = opened.as_dyn();
        let narrow = match (&filters, &bits) {
            (Some(_), Some(_)) => {
                let text = "filters, bits: leave out one of them";
                return Err(PyValueError::new_err(text));
            }
            (Some(_), None) => Narrowing::Filters(&views),
            (None, Some(bits)) => Narrowing::Bits(bits),
            (None, None) => Narrowing::Nothing,
        };
        let done =
            task.filter(&ranges, side, narrow, partitions, &out).map_err(IntoPyErr::into_py_err)?;
        Ok([
            ("lines", done.lines),
            ("bytes", done.bytes),
            ("candidates", done.survivors),
            ("written", done.written),
        ])
    })
}

/// Joins one partition of the candidates exactly. An input is a tuple: the files of its candidates,
/// and the number of its byte ranges. With `at_least`, a line of `common` must be in this number of the
/// others.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "plain data of different types")]
fn exact(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    operation: &str,
    partition: u64,
    first: PlainAll,
    others: Vec<PlainAll>,
    at_least: Option<u8>,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let op = match (operation, at_least) {
        ("common", None) => SetOp::Common,
        ("common", Some(number)) => SetOp::AtLeast(number),
        ("diff", _) => SetOp::Diff,
        ("dedup", _) => SetOp::Dedup,
        ("duplicates", _) => SetOp::Duplicates,
        ("unique", _) => SetOp::Unique,
        (other, _) => {
            let text = format!("operation: expected the name of a set operation, found {other:?}");
            return Err(PyValueError::new_err(text));
        }
    };
    run(py, settings, job_keys, |task| {
        let others: Vec<_> = others.iter().map(to_candidates).collect();
        let done = task
            .join_partition(op, partition, to_candidates(&first), &others, &out)
            .map_err(IntoPyErr::into_py_err)?;
        Ok([
            ("first", done.first),
            ("others", done.others),
            ("listed", done.listed),
            ("refused", done.refused),
            ("bytes", done.bytes),
            ("written", done.written),
        ])
    })
}

/// Writes the output lines of consecutive byte ranges to one file each, while the work directory
/// exists.
#[pyfunction]
fn write_lines(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    parts: Vec<(PlainRange, PathBuf)>,
    answers: Vec<PathBuf>,
    work: PathBuf,
) -> PyResult<Py<PyDict>> {
    let parts: Vec<_> = parts.into_iter().map(|(of, out)| (to_range(of), out)).collect();
    run(py, settings, job_keys, |task| {
        let done =
            task.write_answer_files(&parts, &answers, &work).map_err(IntoPyErr::into_py_err)?;
        Ok([("bytes", done.bytes), ("written", done.written)])
    })
}

/// Writes the lines of a byte range that a filter may contain, or with `invert` the others. `out` is
/// the output file and the work directory; without it the lines are only counted.
#[pyfunction]
fn check(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    range: PlainRange,
    filter: PathBuf,
    invert: bool,
    out: Option<(PathBuf, PathBuf)>,
) -> PyResult<Py<PyDict>> {
    let range = to_range(range);
    run(py, settings, job_keys, |task| {
        let filter = open_verified(&filter)?;
        let out = out.as_ref().map(|(path, work)| (path.as_path(), work.as_path()));
        let done = task
            .check_to_file(&range, filter.as_dyn(), invert, out)
            .map_err(IntoPyErr::into_py_err)?;
        Ok([("lines", done.lines), ("found", done.found)])
    })
}

/// Writes the hashes of the lines of byte ranges, grouped by shard.
#[pyfunction]
fn hash_lines(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    ranges: Vec<PlainRange>,
    first: bool,
    shards: u64,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let (side, ranges) = (to_side(first), to_ranges(ranges));
    run(py, settings, job_keys, |task| built(task.hash_lines(&ranges, side, shards, &out)))
}

/// Builds the filter of one shard from its hashes.
#[pyfunction]
fn build_shard(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    shard: u64,
    size: PlainSize,
    hashes: Vec<PathBuf>,
    out: PlainPartial,
) -> PyResult<Py<PyDict>> {
    let (size, out) = (to_size(size), to_partial(out));
    run(py, settings, job_keys, |task| built(task.build_shard(shard, size, &hashes, &out)))
}

/// Looks up the hashes of one shard in its filters.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "plain data of different types")]
fn probe(
    py: Python<'_>,
    settings: PlainSettings,
    job_keys: &[u8],
    shard: u64,
    first: bool,
    filters: Vec<PathBuf>,
    hashes: Vec<PathBuf>,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    run(py, settings, job_keys, |task| {
        let opened = Filters::open(&filters)?;
        built(task.probe(shard, to_side(first), &opened.as_dyn(), &hashes, &out))
    })
}

/// Adds the submodule `ranges`.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let ranges = PyModule::new(module.py(), "ranges")?;
    ranges.add_function(wrap_pyfunction!(job_keys, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(public_keys, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(split, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(plan, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(size_for, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(refuse_compressed, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(count, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(build, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(union, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(parse_memory_limit, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(publish, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(build_from_candidates, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(filter, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(exact, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(write_lines, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(check, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(hash_lines, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(build_shard, &ranges)?)?;
    ranges.add_function(wrap_pyfunction!(probe, &ranges)?)?;
    module.add_submodule(&ranges)
}
