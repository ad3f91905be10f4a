//! Filters filled from the lines of files, and asked with them.

use std::num::NonZeroUsize;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use petal::{Answers, AnyFilter, FilterCascade, FilterType, StaticFilter};
use petal_lines::{
    BadLine, Check, Exceptions, LEAST_MEMORY, LineFilter, LineHash, Settings, Source, check,
    count_lines, fill, hashes, readable_size,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::job::{Phase, Teller, run};
use super::make::Asked;
use super::output::Target;
use super::{Done, Told, sources};
use crate::error::{Kind, Raise, cannot_write};
use crate::filter::Filter;
use crate::held::{Held, Keyer};

/// What filters built from lines say of themselves, as the program has it. No time and no names:
/// the same lines give the same file.
pub(crate) const METADATA: &str = concat!(
    r#"{"producer":"petal "#,
    env!("CARGO_PKG_VERSION"),
    r#"","keys":"lines as bytes, without their delimiter"}"#
);

/// Parts that a window is planned in: one generation less than there are.
const PARTS: u64 = 3;

/// Makes a filter file of all lines of paths.
#[pyfunction]
#[pyo3(name = "_build_job")]
pub(super) fn build_job(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    out: Bound<'_, PyAny>,
    not_in: Vec<PathBuf>,
    asked: Asked,
    told: Told,
) -> PyResult<Done> {
    let kind = asked.kind()?;
    if not_in.is_empty() == (kind == FilterType::Cascade) {
        let words =
            "not_in=: a cascade, and no other type, is told the lines that it must not hold";
        return Err(PyValueError::new_err(words));
    }
    let settings = told.settings_for_reading()?;
    let (inputs, not_in) = (sources(inputs), sources(not_in));
    let mut files = Vec::new();
    let target = Target::of(Some(out), "out", &mut files)?.unwrap_or(Target::Nowhere);
    let begun = Instant::now();
    let built = run(py, told.progress, files, |teller| {
        let settings = Settings { progress: teller, ..settings };
        let all: Vec<_> = inputs.iter().chain(&not_in).cloned().collect();
        let mut output = target.open(&all, teller)?;
        let (filter, lines) = match kind.is_fixed() {
            true => at_once(&asked, kind, &settings, &inputs, &not_in)?,
            false => filled(&asked, kind, &settings, &inputs)?,
        };
        if let Some(writer) = output.writer() {
            filter.write_to(writer, METADATA).map_err(|error| {
                let source = std::error::Error::source(&error).and_then(|e| e.downcast_ref());
                match source {
                    Some(source) => cannot_write("out=".as_ref(), source),
                    None => error.raise(),
                }
            })?;
        }
        output.finish()?;
        // Lines are counted first where nothing tells how many to plan for.
        let counted = !kind.is_fixed() && asked.keys(kind).is_none();
        let kept = filter.face().inserted();
        Ok((Work { lines, kept, passes: 1 + u64::from(counted) }, teller.phases()))
    })?;
    numbers(py, "build", built, begun).map(|fields| (fields, None))
}

/// A filter that takes line after line, and how many there were.
fn filled(
    asked: &Asked,
    kind: FilterType,
    settings: &Settings<'_>,
    inputs: &[Source],
) -> PyResult<(AnyFilter, u64)> {
    let keys = match asked.keys(kind) {
        Some(keys) => keys,
        None => {
            let lines = count_lines(settings, inputs).map_err(Raise::raise)?.ok_or_else(|| {
                PyValueError::new_err(
                    "capacity=: an input that can be read only once cannot be counted first; say \
                     how many lines to plan for",
                )
            })?;
            // All of them come at once, and that may be no more than a part of the window.
            let parts = if kind == FilterType::Windowed { PARTS } else { 1 };
            lines.max(1).saturating_mul(parts)
        }
    };
    let mut filter = asked.filter(kind, keys)?;
    let face = filter.face_mut().map_err(Raise::raise)?;
    let filled =
        fill(settings, face, inputs, asked.cap()?).map_err(|error| match error.is_full() {
            true => Kind::Full.with(format_args!(
                "the filter is full at {} keys, planned for {keys}; raise capacity=, or give \
             max_capacity= to one of type quotient",
                filter.face().inserted()
            )),
            false => error.raise(),
        })?;
    Ok((filter, filled.lines))
}

/// A filter that is made once of all lines, and how many there were.
fn at_once(
    asked: &Asked,
    kind: FilterType,
    settings: &Settings<'_>,
    inputs: &[Source],
    not_in: &[Source],
) -> PyResult<(AnyFilter, u64)> {
    let (hash, rate) = (asked.hash(kind), asked.rate());
    let threads = NonZeroUsize::new(settings.jobs).unwrap_or(NonZeroUsize::MIN);
    let members = hashes(settings, &hash, inputs, 0).map_err(Raise::raise)?;
    let lines = members.len() as u64;
    let built = if kind == FilterType::Static {
        let builder = StaticFilter::builder().hash(hash).rate(rate).threads(threads);
        builder.from_hashes(members).map(AnyFilter::from)
    } else {
        let others = hashes(settings, &hash, not_in, lines).map_err(Raise::raise)?;
        let builder = FilterCascade::builder(rate).hash(hash).threads(threads);
        builder.from_hashes(members, others).map(AnyFilter::from)
    };
    let filter = built.map_err(|error| match error.contradictions().len() {
        0 => error.raise(),
        both => PyValueError::new_err(format!(
            "not_in=: {both} of its lines are in the inputs too; take them out of one of both \
             (petal.common finds them)"
        )),
    })?;
    asked.refuse_above(asked.cap()?, filter.face().size_bytes(), filter.face().inserted())?;
    Ok((filter, lines))
}

/// What to ask.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Question<'py> {
    out: Option<Bound<'py, PyAny>>,
    invert: bool,
    count: bool,
    allow: Vec<PathBuf>,
    /// Where the filter lies, if it came by path.
    asked: Vec<PathBuf>,
}

/// Asks a filter about every line of paths.
#[pyfunction]
#[pyo3(name = "_check_job")]
pub(super) fn check_job(
    py: Python<'_>,
    filter: Py<Filter>,
    inputs: Vec<PathBuf>,
    question: Question<'_>,
    told: Told,
) -> PyResult<Done> {
    let mut settings = told.settings()?;
    settings.memory = left(&*filter.get().read(py)?, settings.memory)?;
    let (inputs, allow) = (sources(inputs), sources(question.allow));
    let asked = sources(question.asked);
    let mut files = Vec::new();
    let target = match Target::of(question.out, "out", &mut files)? {
        Some(_) if question.count => {
            let words = "count=True: lines are only counted; leave out=, or count=, out";
            return Err(PyValueError::new_err(words));
        }
        Some(target) => target,
        None if question.count => Target::Nowhere,
        None => Target::Nameless(settings.temp_dir.clone()),
    };
    let begun = Instant::now();
    let (checked, lines) = run(py, told.progress, files, |teller: &Teller| {
        let settings = Settings { progress: teller, ..settings };
        let all: Vec<_> = inputs.iter().chain(&allow).chain(&asked).cloned().collect();
        let mut output = target.open(&all, teller)?;
        let allow = (!allow.is_empty()).then(|| Exceptions::read(&settings, &allow));
        let allow = allow.transpose().map_err(Raise::raise)?;
        let asked = Check { invert: question.invert, allow: allow.as_ref() };
        let filter = filter.get();
        let hash = {
            let held = filter.read_detached()?;
            Hash { keyer: held.keyer(), words: held.words() }
        };
        let shared = Shared { filter, hash };
        let checked = check(&settings, &shared, &inputs, asked, output.writer());
        let checked = checked.map_err(Raise::raise)?;
        let work = Work { lines: checked.lines, kept: checked.found, passes: 1 };
        Ok(((work, teller.phases()), output.finish()?))
    })?;
    let fields = numbers(py, "check", checked, begun)?;
    Ok((fields, lines.map(OwnedFd::into_raw_fd)))
}

/// What a mapped filter leaves of the memory, at least what any work needs.
fn left(filter: &Held, memory: u64) -> PyResult<u64> {
    if !filter.is_mapped() || memory < LEAST_MEMORY {
        return Ok(memory);
    }
    let size = filter.face().map_or_else(|| filter.file_bytes(), |face| face.size_bytes());
    if size > memory {
        return Err(Kind::MemoryCap.with(format_args!(
            "memory=: the filter takes {}, more than {}; raise memory=",
            readable_size(size),
            readable_size(memory),
        )));
    }
    Ok((memory - size).max(LEAST_MEMORY))
}

/// A filter that others may change meanwhile: its lock is held for a batch of lines at a time, by
/// threads that wait for nothing else.
struct Shared<'a> {
    filter: &'a Filter,
    hash: Hash,
}

impl LineFilter for Shared<'_> {
    type Hash = Hash;

    fn line_hash(&self) -> Hash {
        self.hash.clone()
    }

    fn holds(&self, words: &[u64], found: &mut Answers) {
        match self.filter.read_detached() {
            Ok(held) => held.contains_words(words, found),
            // Of a filter that a thread left half changed, any line may be in it.
            Err(_) => found.answer(words.len() / self.hash.words, |_| true),
        }
    }
}

/// How lines become the words of a filter.
#[derive(Clone)]
struct Hash {
    keyer: Keyer,
    words: usize,
}

impl LineHash for Hash {
    fn words(&self) -> usize {
        self.words
    }

    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        match &self.keyer {
            Keyer::Native(spec) => spec.hash_all(lines, words),
            Keyer::Foreign(hasher, _) => {
                let mut hasher = hasher.clone();
                for (line, key) in lines.enumerate() {
                    let hashed = hasher.hash(key, words);
                    hashed.map_err(|error| BadLine { line, why: error.to_string() })?;
                }
            }
        }
        Ok(())
    }
}

/// What a job on a filter did.
struct Work {
    lines: u64,
    kept: u64,
    passes: u64,
}

/// The numbers of a job on a filter, by the names that set operations have for them.
fn numbers(
    py: Python<'_>,
    strategy: &str,
    (work, phases): (Work, Vec<Phase>),
    begun: Instant,
) -> PyResult<Py<PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("strategy", strategy)?;
    fields.set_item("kept", work.kept)?;
    fields.set_item("first_lines", work.lines)?;
    fields.set_item("passes", work.passes)?;
    fields.set_item("bytes_read", phases.iter().map(|phase| phase.bytes).sum::<u64>())?;
    fields.set_item("seconds", begun.elapsed().as_secs_f64())?;
    let list = PyList::empty(py);
    for phase in &phases {
        let seconds = (phase.ended - phase.begun).as_secs_f64();
        list.append((phase.what, seconds, phase.bytes, py.None()))?;
    }
    fields.set_item("phases", list)?;
    Ok(fields.unbind())
}
