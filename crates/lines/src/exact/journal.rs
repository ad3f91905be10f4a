//! The journal of a job that may be killed: what its finished phases have brought, in a folder.
//!
//! | file | what it is |
//! |---|---|
//! | `petal.journal` | the job, its keys and its state, then the checksum of that line; moved into place when a phase is done |
//! | `petal.records` | all streams of records, one after the other, in chained blocks |
//! | `petal.filter-N` | the filter that phase N has filled, while a later phase needs it |
//! | `petal.lock` | held while a job works here |
//!
//! Nothing else may be in a folder when a job is begun in it, and nothing else is touched.
//!
//! A phase is done when everything it brought is durable and the journal says so. Whatever lies
//! behind the end that the journal names was written by a phase that did not finish.
//!
//! The keys of the fingerprints are in it: the folder's files can be read by their owner alone.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use petal::BloomFilter;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::State;
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::{Checksum, Identity, Input, Mark, Range, Temp};
use crate::judge::Verb;
use crate::lock::Lock;
use crate::marks::{Listed, Spans};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::readable::readable_size;
use crate::report::Report;
use crate::resolve::Digits;
use crate::spill::{Chain, Scratchpad, Stream, write_out};

/// Counts up when the meaning of a journal changes.
const FORMAT: u32 = 4;

const JOURNAL: &str = "petal.journal";
const RECORDS: &str = "petal.records";
const FILTER: &str = "petal.filter-";
const LOCK: &str = "petal.lock";
/// What a file is called that is not in its place yet: in a folder that is locked for one job a
/// name of the job's own, which the next run finds, and others' files aside are never its.
const ASIDE: &str = ".new";

/// A folder with a job's journal.
pub(crate) struct Journal {
    dir: PathBuf,
    job: Job,
    /// The largest memory cap that the job has had, in bytes.
    cap: u64,
    saved: Option<Saved>,
    identities: Vec<Arc<Identity>>,
    _lock: Lock,
}

/// What the job is: a journal is for this job alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    verb: String,
    delimiter: u8,
    first: usize,
    inputs: Vec<JobInput>,
}

/// An input as it was when the job was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct JobInput {
    name: String,
    mark: Mark,
    /// Which bytes of the file are the input: saved positions count from the first of them.
    range: Range,
}

impl Job {
    /// Whether it is the same job, on files of the same names.
    fn is_like(&self, other: &Self) -> bool {
        let of = |job: &Self| (job.verb.clone(), job.delimiter, job.first);
        let names =
            |job: &Self| job.inputs.iter().map(|input| input.name.clone()).collect::<Vec<_>>();
        of(self) == of(other) && names(self) == names(other)
    }
}

/// The journal as it is written.
#[derive(Serialize, Deserialize)]
struct Page {
    format: u32,
    job: Job,
    cap: u64,
    /// `None` before the first phase is done.
    saved: Option<Saved>,
}

/// What the finished phases have brought.
#[derive(Serialize, Deserialize)]
struct Saved {
    keys: [u64; 3],
    plan: Plan,
    digits: Digits,
    done: usize,
    listed: Listed,
    first: Vec<Option<Chain>>,
    others: Vec<Vec<Option<Chain>>>,
    keys_log: Option<Chain>,
    /// The phase that has filled the filter, if there is one.
    filter: Option<usize>,
    marks: Vec<Vec<Option<Chain>>>,
    spans: Option<Spans>,
    count: u64,
    /// The checksums of all inputs, as far as they are known.
    checksums: Vec<Option<Checksum>>,
    /// How long the first inputs are, as far as that is known.
    lengths: Vec<Option<u64>>,
    /// How long the file of records is, and where room for more begins: a block is set aside
    /// before it is written.
    length: u64,
    end: u64,
    report: Report,
}

impl Page {
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.extend(checksum(&bytes).as_bytes());
        Ok(bytes)
    }

    /// `None` if it is of another format, or if a single byte is not as it was written: a number
    /// may be any number, and a wrong one would be a wrong answer.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (page, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        let sound = checksum(page).as_bytes() == sum;
        let page: Self = sound.then(|| serde_json::from_slice(page).ok())??;
        (page.format == FORMAT).then_some(page)
    }
}

/// Bytes of a checksum's line.
const CHECKSUM: usize = 18;

/// The line that follows these bytes.
fn checksum(bytes: &[u8]) -> String {
    format!("\n{:016x}\n", xxh3_64(bytes))
}

impl Journal {
    /// Opens the folder, which is made if it is not there, for a job on these inputs. Finds a
    /// journal there: goes on from it if that is what is wanted, or refuses. Without one it must
    /// be empty.
    #[expect(clippy::too_many_arguments, reason = "what a job is, each of another kind")]
    pub(crate) fn open(
        dir: &Path,
        resume: bool,
        cap: u64,
        verb: Verb,
        delimiter: u8,
        inputs: &mut [Input],
        first: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let failed = |problem: &str| Error::work_dir(dir, problem);
        let file = |input: &Input| {
            let identity = Arc::clone(input.identity()?);
            let (name, mark) = (input.name().to_owned(), identity.opened());
            Some((identity, JobInput { name, mark, range: input.range()? }))
        };
        let files = inputs.iter().map(file).collect();
        let Some((identities, files)): Option<(Vec<_>, Vec<_>)> = files else {
            return Err(failed(
                "a job on a pipe cannot be resumed; save the input to a file first",
            ));
        };
        let job = Job { verb: format!("{verb:?}"), delimiter, first, inputs: files };
        let trouble = |e: io::Error| Error::in_work_dir(dir, "opening the journal", e);
        fs::create_dir_all(dir).map_err(trouble)?;
        let path = dir.join(JOURNAL);
        let real = |path: &Path| fs::canonicalize(path).ok();
        let parent = |input: &JobInput| real(Path::new(&input.name))?.parent().map(Path::to_owned);
        if job.inputs.iter().any(|input| parent(input).is_some_and(|at| Some(at) == real(dir))) {
            return Err(failed("an input lies in it; name a folder for petal alone"));
        }
        if !path.exists() && foreign(dir).map_err(trouble)? {
            return Err(failed("it holds files that are not petal's; name a new or empty folder"));
        }
        let lock = Lock::take(&dir.join(LOCK)).map_err(trouble)?.ok_or_else(|| {
            failed("another job is working there; wait for it, or name another folder")
        })?;
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            other => Some(other.map_err(trouble)?),
        };
        let dir_name = dir.to_owned();
        let mut journal = Self { dir: dir_name, job, cap, saved: None, identities, _lock: lock };
        let page = match text.as_deref().map(Page::of_bytes) {
            // What is there is left of a job that is done, or has not finished a phase. Now the
            // folder is this one's, whatever comes.
            None | Some(Some(Page { saved: None, .. })) => {
                journal.clear().map_err(trouble)?;
                journal.write(None)?;
                return Ok(journal);
            }
            Some(_) if !resume => {
                return Err(failed(
                    "it holds an unfinished job; go on with --resume, or remove it",
                ));
            }
            Some(None) => {
                return Err(failed(
                    "its journal is damaged, or of another version of petal; remove the folder",
                ));
            }
            Some(Some(page)) => page,
        };
        if !page.job.is_like(&journal.job) {
            return Err(failed("its job is another one; start anew in an empty folder"));
        }
        // The inputs go on as they were when the job was begun.
        let sums = page.saved.iter().flat_map(|saved| saved.checksums.iter().copied());
        let sums = sums.chain(std::iter::repeat(None));
        for ((input, then), sum) in inputs.iter_mut().zip(&page.job.inputs).zip(sums) {
            let (name, begun) = (&then.name, then.range.start);
            if let Some(Range { start, .. }) = input.range().filter(|now| now.start != begun) {
                return Err(failed(&format!(
                    "its job read {name} from byte {begun} of the file on, and it begins at byte \
                     {start} now; redirect it as before, or start anew in an empty folder"
                )));
            }
            if !input.resume(then.mark, then.range, sum, progress)? {
                return Err(failed(&format!(
                    "{name}, an input of its job, has changed since; start anew in an empty folder"
                )));
            }
        }
        journal.job = page.job;
        if page.cap > cap {
            let least = readable_size(page.cap);
            return Err(failed(&format!("its job was begun with -m {least}; give at least that")));
        }
        journal.saved = page.saved;
        Ok(journal)
    }

    /// The keys of the job that was begun here.
    pub(crate) fn hashes(&self) -> Option<Hashes> {
        self.saved.as_ref().map(|saved| Hashes::with_keys(saved.keys))
    }

    pub(super) fn plan(&self) -> Option<Plan> {
        self.saved.as_ref().map(|saved| saved.plan)
    }

    /// The file of records, up to where the journal says.
    pub(super) fn pad(&self) -> Result<Scratchpad> {
        let (length, end) = self.saved.as_ref().map_or((0, 0), |saved| (saved.length, saved.end));
        let trouble = |e| Error::in_work_dir(&self.dir, "opening the records", e);
        let file = secret(&self.dir.join(RECORDS)).map_err(trouble)?;
        if file.metadata().map_err(trouble)?.len() < length {
            let problem = "its records are shorter than its journal says; remove the folder";
            return Err(Error::work_dir(&self.dir, problem));
        }
        file.set_len(end).map_err(trouble)?;
        Ok(Scratchpad::of_file(file, end, &Temp::of_work(&self.dir)))
    }

    /// What the finished phases have brought.
    pub(super) fn state(&self, first: &[Input]) -> Result<Option<State>> {
        let Some(saved) = &self.saved else { return Ok(None) };
        let damaged = || Error::work_dir(&self.dir, "its journal is damaged; remove the folder");
        let stream =
            |chain: &Option<Chain>| Stream::of_written(*chain, saved.end).ok_or_else(damaged);
        let streams = |chains: &Vec<_>| chains.iter().map(stream).collect::<Result<Vec<_>>>();
        let sets = |sets: &Vec<_>| sets.iter().map(streams).collect::<Result<Vec<_>>>();
        for (input, length) in first.iter().zip(&saved.lengths) {
            length.iter().for_each(|length| input.has_length(*length));
        }
        let filter = saved.filter.map(|phase| self.read_filter(phase)).transpose()?;
        Ok(Some(State {
            done: saved.done,
            digits: saved.digits.clone(),
            listed: saved.listed,
            first: streams(&saved.first)?,
            others: sets(&saved.others)?,
            keys: stream(&saved.keys_log)?,
            filter,
            filled: saved.filter.unwrap_or(0),
            marks: sets(&saved.marks)?,
            spans: saved.spans,
            count: saved.count,
            report: Report { resumed: saved.done as u64, ..saved.report.clone() },
        }))
    }

    /// Writes down what is done.
    pub(super) fn save(
        &self,
        hashes: &Hashes,
        plan: Plan,
        first: &[&Input],
        state: &mut State,
        pad: &Scratchpad,
    ) -> Result<()> {
        write_out(&mut state.first, pad)?;
        write_out(std::slice::from_mut(&mut state.keys), pad)?;
        for streams in state.others.iter_mut().chain(&mut state.marks) {
            write_out(streams, pad)?;
        }
        pad.sync()?;
        let kept = state.filter.as_ref().map(|_| state.filled);
        if let Some(filter) = &state.filter {
            self.write_filter(filter, state.filled)?;
        }
        let chains = |streams: &Vec<Stream>| streams.iter().map(Stream::written).collect();
        self.write(Some(Saved {
            keys: hashes.keys(),
            plan,
            digits: state.digits.clone(),
            done: state.done,
            listed: state.listed,
            first: chains(&state.first),
            others: state.others.iter().map(chains).collect(),
            keys_log: state.keys.written(),
            filter: kept,
            marks: state.marks.iter().map(chains).collect(),
            spans: state.spans,
            count: state.count,
            checksums: self.identities.iter().map(|identity| identity.checksum()).collect(),
            lengths: first.iter().map(|input| input.length()).collect(),
            length: pad.length(),
            end: pad.end(),
            report: state.report.clone(),
        }))?;
        // Those of earlier phases are needed no more.
        for phase in (1..=state.done).filter(|phase| Some(*phase) != kept) {
            let _ = fs::remove_file(self.filter(phase));
        }
        Ok(())
    }

    fn write(&self, saved: Option<Saved>) -> Result<()> {
        let write = || {
            let page = Page { format: FORMAT, job: self.job.clone(), cap: self.cap, saved };
            let bytes = page.to_bytes()?;
            self.replace(JOURNAL, |file| io::Write::write_all(file, &bytes))
        };
        write().map_err(|e| Error::in_work_dir(&self.dir, "writing the journal", e))
    }

    /// Removes what another job has left.
    fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if is_ours(&name.to_string_lossy()) && name != *LOCK {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn filter(&self, phase: usize) -> PathBuf {
        self.dir.join(format!("{FILTER}{phase}"))
    }

    /// Writes a filter, unless it was written when its phase ended.
    fn write_filter(&self, filter: &BloomFilter, phase: usize) -> Result<()> {
        if self.filter(phase).exists() {
            return Ok(());
        }
        let write = |file: &mut File| {
            filter.write_to(io::BufWriter::new(file), "").map_err(io::Error::other)
        };
        let done = self.replace(&format!("{FILTER}{phase}"), write);
        done.map_err(|e| Error::in_work_dir(&self.dir, "writing the filter", e))
    }

    fn read_filter(&self, phase: usize) -> Result<BloomFilter> {
        let failed = |why: &dyn fmt::Display| {
            Error::work_dir(&self.dir, &format!("its filter is lost ({why}); remove the folder"))
        };
        let file = File::open(self.filter(phase)).map_err(|e| failed(&e.kind()))?;
        let read = BloomFilter::read_from(io::BufReader::with_capacity(1 << 20, file));
        Ok(read.map_err(|e| failed(&e))?.0)
    }

    /// Writes a file, for its owner alone.
    fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let aside = self.dir.join(format!("{name}{ASIDE}"));
        let mut file = secret(&aside)?;
        file.set_len(0)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&aside, self.dir.join(name))?;
        File::open(&self.dir)?.sync_all()
    }
}

/// Whether a folder holds anything that a job of petal's does not leave there.
fn foreign(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if !is_ours(&entry?.file_name().to_string_lossy()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(ASIDE).unwrap_or(name);
    matches!(name, JOURNAL | RECORDS | LOCK) || name.starts_with(FILTER)
}

/// Removes what an exact job has kept in its work directory, and the directory if nothing else is
/// in it. For when the answer is where it belongs. Does nothing where no job was begun, or if
/// another one works there by now.
pub fn forget_work(dir: &Path) {
    if !dir.join(JOURNAL).exists() {
        return;
    }
    let Ok(Some(lock)) = Lock::take(&dir.join(LOCK)) else { return };
    let Ok(entries) = fs::read_dir(dir) else { return };
    // What cannot be removed is in nobody's way: without a journal it counts for nothing.
    for entry in entries.flatten() {
        let name = entry.file_name();
        if is_ours(&name.to_string_lossy()) && name != *LOCK {
            let _ = fs::remove_file(entry.path());
        }
    }
    drop(lock);
    let _ = fs::remove_dir(dir);
}

/// Opens a file for reading and writing, making it if it is not there, for its owner alone.
fn secret(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(owners())?;
    Ok(file)
}

/// The owner alone may read and write.
fn owners() -> Permissions {
    Permissions::from_mode(0o600)
}
