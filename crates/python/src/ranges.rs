//! The functions over byte ranges of files, with plain data only: whatever carries a task to a
//! worker carries its arguments and its answer.
//!
//! A range is a tuple `(number, path, start, end, (length, seconds, nanoseconds))`, of which the
//! last tells of its file and when that was changed; settings are `(memory, jobs, temp_dir,
//! delimiter)`, keys of a job are bytes, paths are str; answers are dicts of numbers. Filters are
//! named by their files, which are mapped; their sizes are tuples `(bytes, keys, rate)`. The driver
//! that puts these together is `petal/_stages.py` and `petal/_jobs.py`, the tasks are in
//! `petal/_tasks.py`.
//!
//! All of them work without the interpreter's lock, and end soon after a signal whose handler raises.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use petal::{AnyFilter, Mapped, Membership};
use petal_lines::ranges::{self, AllOf, JobKeys, Narrow, Partial, Range, Side, Size, Stamp, Task};
use petal_lines::{METADATA, Settings, Verb};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::engine::{Memory, job};
use crate::error::Raise;
use crate::open::map;

type PlainRange = (u64, PathBuf, u64, u64, (u64, i64, i64));
type PlainSettings = (u64, usize, Option<PathBuf>, u8);
type PlainSize = (u64, u64, Option<f64>);
type PlainAll = (Vec<PathBuf>, u64);
type PlainPartial = (PathBuf, Option<PathBuf>);

fn settings((memory, jobs, temp_dir, delimiter): PlainSettings) -> Settings<'static> {
    let settings = Settings::new(memory);
    let temp_dir = temp_dir.unwrap_or_else(|| settings.temp_dir.clone());
    Settings { jobs, temp_dir, delimiter, ..settings }
}

/// The bytes that a cap on memory is, as `settings` take it.
#[pyfunction]
fn memory(memory: Memory) -> PyResult<u64> {
    memory.bytes()
}

fn range((number, path, start, end, (length, seconds, nanos)): PlainRange) -> Range {
    Range { number, path, start, end, stamp: Stamp { length, changed: (seconds, nanos) } }
}

fn ranges_of(plain: Vec<PlainRange>) -> Vec<Range> {
    plain.into_iter().map(range).collect()
}

fn partial((seen, twice): PlainPartial) -> Partial {
    Partial { seen, twice }
}

fn all((files, ranges): &PlainAll) -> AllOf<'_> {
    AllOf { files, ranges: *ranges }
}

fn side(first: bool) -> Side {
    if first { Side::First } else { Side::Other }
}

fn size((bytes, keys, rate): PlainSize) -> Size {
    Size { bytes, keys, rate }
}

/// Filters in files, mapped. Every byte is examined: a bit that was lost on the way is a line lost.
struct Filters(Vec<AnyFilter<Mapped>>);

impl Filters {
    fn open(paths: &[PathBuf]) -> PyResult<Self> {
        Ok(Self(paths.iter().map(|path| sound(path)).collect::<PyResult<_>>()?))
    }

    fn faces(&self) -> Vec<&dyn Membership> {
        self.0.iter().map(AnyFilter::face).collect()
    }
}

/// What tells a file from any other, and from itself after a change.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    changed: [(i64, i64); 2],
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            changed: [(data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec())],
        })
    }
}

/// The files of which this process has examined every byte: tasks of a job that run in one worker
/// name the same filter again and again.
static EXAMINED: LazyLock<Mutex<HashSet<Identity>>> = LazyLock::new(Mutex::default);

/// So many are remembered; then it begins anew.
const MOST_EXAMINED: usize = 4096;

/// A filter in a file, of which every byte is sound.
fn sound(path: &Path) -> PyResult<AnyFilter<Mapped>> {
    let before = Identity::of(path);
    let filter = AnyFilter::open_mapped(map(path)?).map_err(|error| error.raise_of(path))?;
    // If it is the same file before and after, that is the one which was opened.
    let identity = Identity::of(path).filter(|now| before.as_ref() == Some(now));
    let examined = || EXAMINED.lock().unwrap_or_else(PoisonError::into_inner);
    if identity.as_ref().is_some_and(|identity| examined().contains(identity)) {
        return Ok(filter);
    }
    filter.verify().map_err(|error| error.raise_of(path))?;
    if let Some(identity) = identity {
        let mut examined = examined();
        if examined.len() >= MOST_EXAMINED {
            examined.clear();
        }
        examined.insert(identity);
    }
    Ok(filter)
}

/// Does a task in a thread of its own, without the interpreter's lock, while the calling thread
/// listens for signals; makes a dict of the numbers it comes to.
fn run<const N: usize>(
    py: Python<'_>,
    plain: PlainSettings,
    keys: &[u8],
    work: impl FnOnce(&Task<'_>) -> PyResult<[(&'static str, u64); N]> + Send,
) -> PyResult<Py<PyDict>> {
    let keys = keys.try_into().map_err(|_| {
        let (expected, found) = (JobKeys::BYTES, keys.len());
        PyValueError::new_err(format!("the keys of a job are {expected} bytes, found {found}"))
    })?;
    let numbers = job::run(py, None, vec![], |teller| {
        let settings = Settings { progress: teller, ..settings(plain) };
        work(&Task::with_keys(&settings, JobKeys::from_bytes(keys)))
    })?;
    dict(py, numbers)
}

fn dict<const N: usize>(py: Python<'_>, numbers: [(&'static str, u64); N]) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    numbers.into_iter().try_for_each(|(name, number)| dict.set_item(name, number))?;
    Ok(dict.unbind())
}

fn built(built: petal_lines::Result<ranges::Built>) -> PyResult<[(&'static str, u64); 3]> {
    let built = built.map_err(Raise::raise)?;
    Ok([("lines", built.lines), ("bytes", built.bytes), ("written", built.written)])
}

/// Fresh keys for one job.
#[pyfunction]
fn job_keys(py: Python<'_>) -> PyResult<Py<PyBytes>> {
    Ok(PyBytes::new(py, &JobKeys::random().map_err(Raise::raise)?.to_bytes()).unbind())
}

/// Cuts files into ranges of about `size` bytes.
#[pyfunction]
fn split(py: Python<'_>, paths: Vec<PathBuf>, size: u64) -> PyResult<Vec<PlainRange>> {
    let ranges = job::run(py, None, vec![], |teller| {
        ranges::split(&paths, size, teller).map_err(Raise::raise)
    })?;
    let plain = |Range { number, path, start, end, stamp }: Range| {
        let Stamp { length, changed: (seconds, nanos) } = stamp;
        (number, path, start, end, (length, seconds, nanos))
    };
    Ok(ranges.into_iter().map(plain).collect())
}

/// Keys that everybody knows, for filters that everybody may ask.
#[pyfunction]
fn public_keys(py: Python<'_>) -> Py<PyBytes> {
    PyBytes::new(py, &JobKeys::public().to_bytes()).unbind()
}

/// Estimates of the lines of ranges: `wanted_bytes` for a filter of them, and the `room` that a
/// worker's memory has for filters.
#[pyfunction]
fn plan(py: Python<'_>, settings: PlainSettings, ranges: Vec<PlainRange>) -> PyResult<Py<PyDict>> {
    let ranges = ranges_of(ranges);
    let planned = job::run(py, None, vec![], |teller| {
        let settings = Settings { progress: teller, ..self::settings(settings) };
        ranges::plan(&settings, &ranges).map_err(Raise::raise)
    })?;
    dict(
        py,
        [
            ("lines", planned.lines),
            ("wanted_bytes", planned.wanted.bytes),
            ("room", planned.room),
            ("partitions", planned.partitions),
        ],
    )
}

/// The size of the filter that everybody makes for so many keys at a rate.
#[pyfunction]
fn size_for(keys: u64, rate: f64) -> PyResult<PlainSize> {
    let Size { bytes, keys, rate } = Size::for_rate(keys, rate).map_err(Raise::raise)?;
    Ok((bytes, keys, rate))
}

/// Counts the lines of ranges.
#[pyfunction]
fn count(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    ranges: Vec<PlainRange>,
) -> PyResult<Py<PyDict>> {
    let ranges = ranges_of(ranges);
    run(py, settings, keys, |task| built(task.count(&ranges)))
}

/// Fills a partial filter with the lines of ranges; `out` names its file and, if lines seen twice
/// are wanted, theirs.
#[pyfunction]
fn build(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    ranges: Vec<PlainRange>,
    size: PlainSize,
    out: PlainPartial,
) -> PyResult<Py<PyDict>> {
    let (ranges, size, out) = (ranges_of(ranges), self::size(size), partial(out));
    run(py, settings, keys, |task| built(task.build(&ranges, size, &out)))
}

/// Unites partial filters.
#[pyfunction]
fn union(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    partials: Vec<PlainPartial>,
    out: PlainPartial,
) -> PyResult<Py<PyDict>> {
    let (partials, out) = (partials.into_iter().map(partial).collect::<Vec<_>>(), partial(out));
    run(py, settings, keys, |task| built(task.union(&partials, &out)))
}

/// Makes a filter file for others of the union of all partials.
#[pyfunction]
fn publish(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    partial: PathBuf,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    run(py, settings, keys, |task| built(task.publish(&partial, METADATA, &out)))
}

/// Fills a partial filter with the keys of survivors.
#[pyfunction]
fn build_back(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    survivors: Vec<PathBuf>,
    size: PlainSize,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let size = self::size(size);
    run(py, settings, keys, |task| built(task.build_back(&survivors, size, &out)))
}

/// Makes records of the lines of ranges that filters in files, or bits, cannot rule out; with
/// neither, of all lines.
#[pyfunction]
#[pyo3(signature = (settings, keys, ranges, first, partitions, out, filters=None, bits=None))]
#[expect(clippy::too_many_arguments, reason = "plain data, each of another kind")]
fn filter(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    ranges: Vec<PlainRange>,
    first: bool,
    partitions: u64,
    out: PathBuf,
    filters: Option<Vec<PathBuf>>,
    bits: Option<Vec<PathBuf>>,
) -> PyResult<Py<PyDict>> {
    let (side, ranges) = (side(first), ranges_of(ranges));
    run(py, settings, keys, |task| {
        let opened = Filters::open(filters.as_deref().unwrap_or_default())?;
        let faces = opened.faces();
        let narrow = match (&filters, &bits) {
            (Some(_), Some(_)) => {
                let words = "filters or bits can narrow lines, not both: give one of them";
                return Err(PyValueError::new_err(words));
            }
            (Some(_), None) => Narrow::Filters(&faces),
            (None, Some(bits)) => Narrow::Bits(bits),
            (None, None) => Narrow::Nothing,
        };
        let done = task.filter(&ranges, side, narrow, partitions, &out).map_err(Raise::raise)?;
        Ok([
            ("lines", done.lines),
            ("bytes", done.bytes),
            ("survivors", done.survivors),
            ("written", done.written),
        ])
    })
}

/// Decides one partition of the survivors. Inputs are tuples: the survivors of all of its ranges,
/// and how many ranges it has.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "plain data, each of another kind")]
fn exact(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    verb: &str,
    partition: u64,
    first: PlainAll,
    others: Vec<PlainAll>,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let verb = match verb {
        "common" => Verb::Common,
        "diff" => Verb::Diff,
        "dedup" => Verb::Dedup,
        other => {
            let words = format!("verb {other:?}: expected 'common', 'diff' or 'dedup'");
            return Err(PyValueError::new_err(words));
        }
    };
    run(py, settings, keys, |task| {
        let others: Vec<_> = others.iter().map(all).collect();
        let done = task.exact(verb, partition, all(&first), &others, &out).map_err(Raise::raise)?;
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

/// Writes the lines of the answer that start in ranges, which follow each other, to a file each, as
/// long as the folder of the job is there.
#[pyfunction]
fn take(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    takes: Vec<(PlainRange, PathBuf)>,
    answers: Vec<PathBuf>,
    work: PathBuf,
) -> PyResult<Py<PyDict>> {
    let takes: Vec<_> = takes.into_iter().map(|(of, out)| (range(of), out)).collect();
    run(py, settings, keys, |task| {
        let done = task.take_to(&takes, &answers, &work).map_err(Raise::raise)?;
        Ok([("bytes", done.bytes), ("written", done.written)])
    })
}

/// Writes the lines of a range that a filter in a file may hold, or inverted those it does not;
/// without `out`, its file and the folder of the job, they are only counted.
#[pyfunction]
fn check(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    range: PlainRange,
    filter: PathBuf,
    invert: bool,
    out: Option<(PathBuf, PathBuf)>,
) -> PyResult<Py<PyDict>> {
    let range = self::range(range);
    run(py, settings, keys, |task| {
        let filter = sound(&filter)?;
        let out = out.as_ref().map(|(path, work)| (path.as_path(), work.as_path()));
        let done = task.check_to(&range, filter.face(), invert, out).map_err(Raise::raise)?;
        Ok([("lines", done.lines), ("found", done.found)])
    })
}

/// Deals the hashes of the lines of ranges to shards.
#[pyfunction]
fn keys(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    ranges: Vec<PlainRange>,
    first: bool,
    shards: u64,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    let (side, ranges) = (side(first), ranges_of(ranges));
    run(py, settings, keys, |task| built(task.keys(&ranges, side, shards, &out)))
}

/// Fills the filter of one shard with its hashes.
#[pyfunction]
fn build_shard(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    shard: u64,
    size: PlainSize,
    hashes: Vec<PathBuf>,
    out: PlainPartial,
) -> PyResult<Py<PyDict>> {
    let (size, out) = (self::size(size), partial(out));
    run(py, settings, keys, |task| built(task.build_shard(shard, size, &hashes, &out)))
}

/// Asks the filters of one shard, in files, for its hashes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "plain data, each of another kind")]
fn probe(
    py: Python<'_>,
    settings: PlainSettings,
    keys: &[u8],
    shard: u64,
    first: bool,
    filters: Vec<PathBuf>,
    hashes: Vec<PathBuf>,
    out: PathBuf,
) -> PyResult<Py<PyDict>> {
    run(py, settings, keys, |task| {
        let opened = Filters::open(&filters)?;
        built(task.probe(shard, side(first), &opened.faces(), &hashes, &out))
    })
}

/// Adds them as the module `ranges` of the extension.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let ours = PyModule::new(module.py(), "ranges")?;
    ours.add_function(wrap_pyfunction!(job_keys, &ours)?)?;
    ours.add_function(wrap_pyfunction!(public_keys, &ours)?)?;
    ours.add_function(wrap_pyfunction!(split, &ours)?)?;
    ours.add_function(wrap_pyfunction!(plan, &ours)?)?;
    ours.add_function(wrap_pyfunction!(size_for, &ours)?)?;
    ours.add_function(wrap_pyfunction!(count, &ours)?)?;
    ours.add_function(wrap_pyfunction!(build, &ours)?)?;
    ours.add_function(wrap_pyfunction!(union, &ours)?)?;
    ours.add_function(wrap_pyfunction!(memory, &ours)?)?;
    ours.add_function(wrap_pyfunction!(publish, &ours)?)?;
    ours.add_function(wrap_pyfunction!(build_back, &ours)?)?;
    ours.add_function(wrap_pyfunction!(filter, &ours)?)?;
    ours.add_function(wrap_pyfunction!(exact, &ours)?)?;
    ours.add_function(wrap_pyfunction!(take, &ours)?)?;
    ours.add_function(wrap_pyfunction!(check, &ours)?)?;
    ours.add_function(wrap_pyfunction!(keys, &ours)?)?;
    ours.add_function(wrap_pyfunction!(build_shard, &ours)?)?;
    ours.add_function(wrap_pyfunction!(probe, &ours)?)?;
    module.add_submodule(&ours)
}
