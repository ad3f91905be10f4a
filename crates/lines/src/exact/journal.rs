//! The journal of a job that may be killed: what its finished phases have brought, in a folder.
//!
//! | file | what it is |
//! |---|---|
//! | `journal.json` | the job, its keys and its state, then the checksum of that line; moved into place when a phase is done |
//! | `records` | all streams of records, one after the other, in chained blocks |
//! | `filter.petal` | the filter of the last phase, if the next one needs it |
//! | `lock` | held while a job works here |
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

use petal::BloomFilter;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::State;
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::{Input, Temp};
use crate::judge::Verb;
use crate::marks::{Listed, Spans};
use crate::plan::Plan;
use crate::report::Report;
use crate::resolve::Digits;
use crate::spill::{Chain, Scratchpad, Stream, write_out};

/// Counts up when the meaning of a journal changes.
const FORMAT: u32 = 2;

/// A folder with a job's journal.
pub(crate) struct Journal {
    dir: PathBuf,
    job: Job,
    page: Option<Page>,
    _lock: File,
}

/// What the job is: a journal is for this job alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    verb: String,
    delimiter: u8,
    first: usize,
    /// Name, size, identity and time of change of every input.
    inputs: Vec<(String, String)>,
}

/// The journal as it is written.
#[derive(Serialize, Deserialize)]
struct Page {
    format: u32,
    job: Job,
    keys: [u64; 3],
    plan: Plan,
    digits: Digits,
    done: usize,
    listed: Listed,
    first: Vec<Option<Chain>>,
    others: Vec<Vec<Option<Chain>>>,
    keys_log: Option<Chain>,
    filter: bool,
    marks: Vec<Vec<Option<Chain>>>,
    spans: Option<Spans>,
    count: u64,
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

    /// `None` if a single byte is not as it was written: a number may be any number, and a wrong
    /// one would be a wrong answer.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (page, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        (checksum(page).as_bytes() == sum).then(|| serde_json::from_slice(page).ok())?
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
    /// journal there: goes on from it if that is what is wanted, or refuses.
    pub(crate) fn open(
        dir: &Path,
        resume: bool,
        verb: Verb,
        delimiter: u8,
        inputs: &[Input],
        first: usize,
    ) -> Result<Self> {
        let failed = |problem: &str| Error::work_dir(dir, problem);
        let marks = inputs.iter().map(|input| Some((input.name().to_owned(), input.mark()?)));
        let Some(inputs) = marks.collect() else {
            return Err(failed(
                "a job on a pipe cannot be resumed; save the input to a file first",
            ));
        };
        let job = Job { verb: format!("{verb:?}"), delimiter, first, inputs };
        let trouble = |e: io::Error| Error::temp(dir, "opening the journal", e);
        fs::create_dir_all(dir).map_err(trouble)?;
        let lock = secret(&dir.join("lock")).map_err(trouble)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(failed(
                "another job is working there; wait for it, or name another folder",
            ));
        }
        let path = dir.join("journal.json");
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            other => Some(other.map_err(trouble)?),
        };
        let mut journal = Self { dir: dir.to_owned(), job, page: None, _lock: lock };
        let Some(text) = text else { return Ok(journal) };
        if !resume {
            return Err(failed("it holds an unfinished job; go on with --resume, or remove it"));
        }
        let page = Page::of_bytes(&text)
            .ok_or_else(|| failed("its journal is damaged, or not petal's; remove the folder"))?;
        if page.format != FORMAT {
            return Err(failed("its journal is of another version of petal; remove the folder"));
        }
        if page.job != journal.job {
            return Err(failed(
                "its job is another one, or an input has changed since; start anew in an empty \
                 folder",
            ));
        }
        journal.page = Some(page);
        Ok(journal)
    }

    /// The keys of the job that was begun here.
    pub(crate) fn hashes(&self) -> Option<Hashes> {
        self.page.as_ref().map(|page| Hashes::with_keys(page.keys))
    }

    pub(super) fn plan(&self) -> Option<Plan> {
        self.page.as_ref().map(|page| page.plan)
    }

    /// The file of records, up to where the journal says.
    pub(super) fn pad(&self) -> Result<Scratchpad> {
        let (length, end) = self.page.as_ref().map_or((0, 0), |page| (page.length, page.end));
        let trouble = |e| Error::temp(&self.dir, "opening the records", e);
        let file = secret(&self.dir.join("records")).map_err(trouble)?;
        if file.metadata().map_err(trouble)?.len() < length {
            let problem = "its records are shorter than its journal says; remove the folder";
            return Err(Error::work_dir(&self.dir, problem));
        }
        file.set_len(end).map_err(trouble)?;
        Ok(Scratchpad::of_file(file, end, &Temp::new(&self.dir)))
    }

    /// What the finished phases have brought.
    pub(super) fn state(&self, first: &[Input]) -> Result<Option<State>> {
        let Some(page) = &self.page else { return Ok(None) };
        let damaged = || Error::work_dir(&self.dir, "its journal is damaged; remove the folder");
        let stream =
            |chain: &Option<Chain>| Stream::of_written(*chain, page.end).ok_or_else(damaged);
        let streams = |chains: &Vec<_>| chains.iter().map(stream).collect::<Result<Vec<_>>>();
        let sets = |sets: &Vec<_>| sets.iter().map(streams).collect::<Result<Vec<_>>>();
        for (input, length) in first.iter().zip(&page.lengths) {
            length.iter().for_each(|length| input.has_length(*length));
        }
        let filter = page.filter.then(|| self.read_filter()).transpose()?;
        Ok(Some(State {
            done: page.done,
            digits: page.digits.clone(),
            listed: page.listed,
            first: streams(&page.first)?,
            others: sets(&page.others)?,
            keys: stream(&page.keys_log)?,
            filter,
            marks: sets(&page.marks)?,
            spans: page.spans,
            count: page.count,
            report: Report { resumed: page.done as u64, ..page.report.clone() },
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
        if let Some(filter) = &state.filter {
            self.write_filter(filter)?;
        }
        let chains = |streams: &Vec<Stream>| streams.iter().map(Stream::written).collect();
        let page = Page {
            format: FORMAT,
            job: self.job.clone(),
            keys: hashes.keys(),
            plan,
            digits: state.digits.clone(),
            done: state.done,
            listed: state.listed,
            first: chains(&state.first),
            others: state.others.iter().map(chains).collect(),
            keys_log: state.keys.written(),
            filter: state.filter.is_some(),
            marks: state.marks.iter().map(chains).collect(),
            spans: state.spans,
            count: state.count,
            lengths: first.iter().map(|input| input.length()).collect(),
            length: pad.length(),
            end: pad.end(),
            report: state.report.clone(),
        };
        let write = || {
            let bytes = page.to_bytes()?;
            self.replace("journal.json", |file| io::Write::write_all(file, &bytes))
        };
        write().map_err(|e| Error::temp(&self.dir, "writing the journal", e))
    }

    fn write_filter(&self, filter: &BloomFilter) -> Result<()> {
        let write = |file: &mut File| {
            filter.write_to(io::BufWriter::new(file), "").map_err(io::Error::other)
        };
        let done = self.replace("filter.petal", write);
        done.map_err(|e| Error::temp(&self.dir, "writing the filter", e))
    }

    fn read_filter(&self) -> Result<BloomFilter> {
        let failed = |why: &dyn fmt::Display| {
            Error::work_dir(&self.dir, &format!("its filter is lost ({why}); remove the folder"))
        };
        let file = File::open(self.dir.join("filter.petal")).map_err(|e| failed(&e.kind()))?;
        let read = BloomFilter::read_from(io::BufReader::with_capacity(1 << 20, file));
        Ok(read.map_err(|e| failed(&e))?.0)
    }

    /// Writes a file aside and moves it into place, durably.
    fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let aside = self.dir.join(format!("{name}.new"));
        let mut file = secret(&aside)?;
        file.set_len(0)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&aside, self.dir.join(name))?;
        File::open(&self.dir)?.sync_all()
    }
}

/// Removes what an exact job has kept in its work directory, and the directory if nothing else is
/// in it. For when the answer is where it belongs. Does nothing if another job works there by now.
pub fn forget_work(dir: &Path) {
    let Ok(lock) = File::open(dir.join("lock")) else { return };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    // What cannot be removed is in nobody's way: without a journal it counts for nothing.
    for name in ["journal.json", "filter.petal", "records", "lock"] {
        let _ = fs::remove_file(dir.join(name));
        // Of a run that was killed while it wrote.
        let _ = fs::remove_file(dir.join(format!("{name}.new")));
    }
    let _ = fs::remove_dir(dir);
}

/// Opens a file for reading and writing, making it if it is not there, for its owner alone.
fn secret(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
