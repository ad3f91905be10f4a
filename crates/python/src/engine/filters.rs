//! Filters filled from the lines of files, and asked with them.

use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use petal::{Answers, FilterType};
use petal_lines::{
    BadLine, Check, Exceptions, LEAST_MEMORY, LineFilter, LineHash, METADATA, Recipe, Settings,
    Source, check, readable_size,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::job::{Phase, Teller, run};
use super::output::Target;
use super::{Done, Memory, Told, sources};
use crate::error::{Kind, Raise};
use crate::filter::Filter;
use crate::held::{Held, Keyer};

/// What filter is asked for, in Python's words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Asked {
    r#type: String,
    capacity: Option<u64>,
    rate: Option<f64>,
    memory: Option<Memory>,
    seed: u64,
    width: Option<u32>,
    max_capacity: Option<u64>,
    window: Option<u64>,
    last: Option<u64>,
    now: u64,
}

impl Asked {
    /// As the engine takes it.
    fn recipe(&self, not_in: Vec<Source>) -> PyResult<Recipe> {
        let all = FilterType::ALL;
        let kind = all.into_iter().find(|kind| kind.name() == self.r#type).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|kind| kind.name()).collect();
            let names = names.join(", ");
            PyValueError::new_err(format!("type=: no type {:?}; one of {names}", self.r#type))
        })?;
        Ok(Recipe {
            kind: Some(kind),
            keys: self.capacity,
            rate: self.rate,
            memory: self.memory.as_ref().map(Memory::bytes).transpose()?,
            width: self.width,
            max_keys: self.max_capacity,
            window: self.window,
            last: self.last,
            now: self.now,
            not_in,
            seed: self.seed,
            ..Recipe::default()
        })
    }
}

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
    let (inputs, recipe) = (sources(inputs), asked.recipe(sources(not_in))?);
    recipe.kind().map_err(Raise::raise)?;
    let settings = told.settings_for_reading()?;
    let mut files = Vec::new();
    let target = Target::of(Some(out), "out", &mut files)?.unwrap_or(Target::Nowhere);
    let begun = Instant::now();
    let built = run(py, told.progress, files, |teller| {
        let settings = Settings { progress: teller, ..settings };
        let all = [&inputs[..], &recipe.not_in].concat();
        let mut output = target.open(&all, teller)?;
        let made = recipe.make(&settings, &inputs).map_err(Raise::raise)?;
        if let Some(writer) = output.writer() {
            made.filter.write_to(writer, METADATA).map_err(|error| output.failed(error))?;
        }
        output.finish()?;
        let kept = made.filter.face().inserted();
        Ok((Work { lines: made.lines, kept, passes: made.passes }, teller.phases()))
    })?;
    numbers(py, "build", built, begun).map(|fields| (fields, None))
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
