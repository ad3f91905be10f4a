//! The journal of a job that can be resumed: the results of its finished phases, in a work directory.
//!
//! | file | contents |
//! |---|---|
//! | `petal.journal` | the job, its keys and its state, then the checksum of that line; replaced when a phase is finished |
//! | `petal.records` | all record streams, in linked blocks |
//! | `petal.filter-N` | the filter that phase N has filled, while a later phase needs it |
//! | `petal.lock` | locked while a job uses the directory |
//!
//! The directory must not contain other files when a job starts, and other files are never changed.
//!
//! A phase is finished when its result is synced to disk and the journal lists it. Data after the
//! end that the journal records belongs to an unfinished phase.
//!
//! The journal contains the keys of the fingerprints, so only the owner may read the files.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use petal::BloomFilter;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::records::Partitioning;
use super::state::State;
use crate::error::{Advice, Error, Result, Setting};
use crate::files::{ByteRange, Checksum, FileIdentity, FileStat, Lock};
use crate::fingerprint::LineHasher;
use crate::input::Input;
use crate::numbers::format_size;
use crate::progress::{Note, Progress};
use crate::setops::planning::Plan;
use crate::setops::positions::{Polarity, Spans};
use crate::setops::report::Report;
use crate::setops::set_semantics::SetOp;
use crate::temp::{Chain, DiskUsage, RecordStream, SpillFile, TempDir, write_out};

/// Increased when the format changes.
const FORMAT: u32 = 7;

const JOURNAL: &str = "petal.journal";
const RECORDS: &str = "petal.records";
const FILTER: &str = "petal.filter-";
const LOCK: &str = "petal.lock";
/// Suffix of files being written. A fixed name suffices in a locked directory, and the next run finds
/// the file.
const NEW_SUFFIX: &str = ".new";

/// A work directory with the journal of a job.
pub(crate) struct Journal {
    dir: PathBuf,
    job: Job,
    /// The largest memory limit of the job's runs, in bytes.
    memory_limit: u64,
    saved: Option<Saved>,
    identities: Vec<Arc<FileIdentity>>,
    _lock: Lock,
}

/// The job that a journal belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    op: String,
    delimiter: u8,
    /// How keys are made.
    keys: String,
    first: usize,
    inputs: Vec<JobInput>,
}

/// An input when the job was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct JobInput {
    name: String,
    stat: FileStat,
    /// Range of the input in the file: saved positions count from its start.
    range: ByteRange,
}

impl Job {
    /// Returns whether the jobs are the same, on files of the same names.
    fn is_like(&self, other: &Self) -> bool {
        let of = |job: &Self| (job.op.clone(), job.delimiter, job.keys.clone(), job.first);
        let names =
            |job: &Self| job.inputs.iter().map(|input| input.name.clone()).collect::<Vec<_>>();
        of(self) == of(other) && names(self) == names(other)
    }
}

/// The contents of the journal file.
#[derive(Serialize, Deserialize)]
struct Page {
    format: u32,
    job: Job,
    memory_limit: u64,
    /// `None` before the first phase is finished.
    saved: Option<Saved>,
}

/// The results of the finished phases.
#[derive(Serialize, Deserialize)]
struct Saved {
    keys: [u64; 3],
    plan: Plan,
    scheme: Partitioning,
    done: usize,
    polarity: Polarity,
    first: Vec<Option<Chain>>,
    others: Vec<Vec<Option<Chain>>>,
    keys_logs: Vec<Option<Chain>>,
    /// The phase that filled the filter, if there is one.
    filter: Option<usize>,
    positions: Vec<Vec<Option<Chain>>>,
    spans: Option<Spans>,
    count: u64,
    /// The known checksums of the inputs.
    checksums: Vec<Option<Checksum>>,
    /// The known lengths of the first inputs.
    lengths: Vec<Option<u64>>,
    /// Length of the records file, and end of the reserved space: blocks are reserved before they are
    /// written.
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

    /// `None` if the format differs or the checksum does not match: an undetected change of a number
    /// would give a wrong result.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (page, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        let sound = checksum(page).as_bytes() == sum;
        let page: Self = sound.then(|| serde_json::from_slice(page).ok())??;
        (page.format == FORMAT).then_some(page)
    }
}

/// Length of the checksum line.
const CHECKSUM: usize = 18;

/// Returns the checksum line.
fn checksum(bytes: &[u8]) -> String {
    format!("\n{:016x}\n", xxh3_64(bytes))
}

impl Journal {
    /// Opens the directory, which is created if necessary. With an unfinished job it is resumed if
    /// `resume` is set, otherwise an error. Without a journal the directory must be empty.
    #[expect(clippy::too_many_arguments, reason = "each has a different type")]
    pub(crate) fn open(
        dir: &Path,
        resume: bool,
        memory_limit: u64,
        op: SetOp,
        delimiter: u8,
        keys: String,
        inputs: &mut [Input],
        first: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let failed = |problem: &str| Error::work_dir(dir, problem);
        let file = |input: &Input| {
            let identity = Arc::clone(input.identity()?);
            let (name, stat) = (input.name().to_owned(), identity.opened());
            Some((identity, JobInput { name, stat, range: input.range()? }))
        };
        let files = inputs.iter().map(file).collect();
        let Some((identities, files)): Option<(Vec<_>, Vec<_>)> = files else {
            return Err(failed(
                "a job on a pipe cannot be resumed; save the input to a file first",
            ));
        };
        let job = Job { op: format!("{op:?}"), delimiter, keys, first, inputs: files };
        let trouble = |e: io::Error| Error::in_work_dir(dir, "opening the journal", e);
        fs::create_dir_all(dir).map_err(trouble)?;
        let path = dir.join(JOURNAL);
        let real = |path: &Path| fs::canonicalize(path).ok();
        let parent = |input: &JobInput| real(Path::new(&input.name))?.parent().map(Path::to_owned);
        if job.inputs.iter().any(|input| parent(input).is_some_and(|at| Some(at) == real(dir))) {
            return Err(failed("it contains an input of the job; use an empty directory"));
        }
        if !path.exists() && foreign(dir).map_err(trouble)? {
            return Err(failed(
                "it contains files that are not petal's; use a new or empty directory",
            ));
        }
        let lock = Lock::take(&dir.join(LOCK)).map_err(trouble)?.ok_or_else(|| {
            failed("another job is working there; wait for it, or name another folder")
        })?;
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            other => Some(other.map_err(trouble)?),
        };
        let dir_name = dir.to_owned();
        let mut journal =
            Self { dir: dir_name, job, memory_limit, saved: None, identities, _lock: lock };
        let page = match text.as_deref().map(Page::of_bytes) {
            // Remains of a job that is complete or has finished no phase. The directory now belongs
            // to this job.
            None | Some(Some(Page { saved: None, .. })) => {
                journal.clear().map_err(trouble)?;
                journal.write(None)?;
                return Ok(journal);
            }
            Some(_) if !resume => {
                return Err(failed("it contains an unfinished job")
                    .advise(Advice::Enable(Setting::Resume))
                    .advise("remove the directory"));
            }
            Some(None) => {
                return Err(failed(
                    "its journal is damaged, or of another version of petal; remove the folder",
                ));
            }
            Some(Some(page)) => page,
        };
        if !page.job.is_like(&journal.job) {
            return Err(failed("it belongs to another job; use an empty directory"));
        }
        // Continue with the inputs as they were when the job was started.
        let sums = page.saved.iter().flat_map(|saved| saved.checksums.iter().copied());
        let sums = sums.chain(std::iter::repeat(None));
        for ((input, then), sum) in inputs.iter_mut().zip(&page.job.inputs).zip(sums) {
            let (name, begun) = (&then.name, then.range.start);
            if let Some(ByteRange { start, .. }) = input.range().filter(|now| now.start != begun) {
                return Err(failed(&format!(
                    "its job read {name} from byte {begun} of the file on, and it begins at byte \
                     {start} now; redirect it as before, or start again in an empty folder"
                )));
            }
            if !input.resume(then.stat, then.range, sum, progress)? {
                return Err(failed(&format!(
                    "{name}, an input of its job, has changed since; start again in an empty folder"
                )));
            }
        }
        journal.job = page.job;
        if page.memory_limit > memory_limit {
            let minimum = page.memory_limit;
            let problem = format!("its job began with a memory limit of {}", format_size(minimum));
            return Err(failed(&problem).advise(Advice::raise_limit_to(minimum)));
        }
        journal.saved = page.saved;
        if let Some(saved) = &journal.saved {
            progress.note(Note::Resuming { dir, phases: saved.done as u64 });
        }
        Ok(journal)
    }

    /// Returns the hasher of the resumed job.
    pub(crate) fn hasher(&self) -> Option<LineHasher> {
        self.saved.as_ref().map(|saved| LineHasher::with_keys(saved.keys))
    }

    pub(crate) fn plan(&self) -> Option<Plan> {
        self.saved.as_ref().map(|saved| saved.plan)
    }

    /// Opens the records file and truncates it to the end of the finished phases.
    pub(crate) fn spill_file(&self, usage: &DiskUsage) -> Result<SpillFile> {
        let (length, end) = self.saved.as_ref().map_or((0, 0), |saved| (saved.length, saved.end));
        let trouble = |e| Error::in_work_dir(&self.dir, "opening the records", e);
        let file = secret(&self.dir.join(RECORDS)).map_err(trouble)?;
        if file.metadata().map_err(trouble)?.len() < length {
            let problem = "its records are shorter than its journal says; remove the folder";
            return Err(Error::work_dir(&self.dir, problem));
        }
        file.set_len(end).map_err(trouble)?;
        let dir = TempDir::of_work(&self.dir).counted_in(usage);
        Ok(SpillFile::of_file(file, end, &dir))
    }

    /// Returns the results of the finished phases.
    pub(super) fn state(&self, first: &[Input]) -> Result<Option<State>> {
        let Some(saved) = &self.saved else { return Ok(None) };
        let damaged = || Error::work_dir(&self.dir, "its journal is damaged; remove the folder");
        let stream =
            |chain: &Option<Chain>| RecordStream::of_written(*chain, saved.end).ok_or_else(damaged);
        let streams = |chains: &Vec<_>| chains.iter().map(stream).collect::<Result<Vec<_>>>();
        let sets = |sets: &Vec<_>| sets.iter().map(streams).collect::<Result<Vec<_>>>();
        for (input, length) in first.iter().zip(&saved.lengths) {
            length.iter().for_each(|length| input.set_length(*length));
        }
        let filter = saved.filter.map(|phase| self.read_filter(phase)).transpose()?;
        Ok(Some(State {
            done: saved.done,
            partitioning: saved.scheme.clone(),
            polarity: saved.polarity,
            first: streams(&saved.first)?,
            others: sets(&saved.others)?,
            matcher: None,
            keys: streams(&saved.keys_logs)?,
            filter,
            filled: saved.filter.unwrap_or(0),
            positions: sets(&saved.positions)?,
            spans: saved.spans,
            count: saved.count,
            report: saved.report.resumed(saved.done as u64),
        }))
    }

    /// Saves the results of the finished phases.
    pub(super) fn save(
        &self,
        hasher: &LineHasher,
        plan: Plan,
        first: &[&Input],
        state: &mut State,
        spill_file: &SpillFile,
    ) -> Result<()> {
        write_out(&mut state.first, spill_file)?;
        write_out(&mut state.keys, spill_file)?;
        for streams in state.others.iter_mut().chain(&mut state.positions) {
            write_out(streams, spill_file)?;
        }
        spill_file.sync()?;
        let kept = state.filter.as_ref().map(|_| state.filled);
        if let Some(filter) = &state.filter {
            self.write_filter(filter, state.filled)?;
        }
        let chains =
            |streams: &Vec<RecordStream>| streams.iter().map(RecordStream::written).collect();
        self.write(Some(Saved {
            keys: hasher.secret_keys(),
            plan,
            scheme: state.partitioning.clone(),
            done: state.done,
            polarity: state.polarity,
            first: chains(&state.first),
            others: state.others.iter().map(chains).collect(),
            keys_logs: chains(&state.keys),
            filter: kept,
            positions: state.positions.iter().map(chains).collect(),
            spans: state.spans,
            count: state.count,
            checksums: self.identities.iter().map(|identity| identity.checksum()).collect(),
            lengths: first.iter().map(|input| input.length()).collect(),
            length: spill_file.length(),
            end: spill_file.end(),
            report: state.report.clone(),
        }))?;
        // Remove the filters of earlier phases.
        for phase in (1..=state.done).filter(|phase| Some(*phase) != kept) {
            let _ = fs::remove_file(self.filter(phase));
        }
        Ok(())
    }

    fn write(&self, saved: Option<Saved>) -> Result<()> {
        let write = || {
            let page = Page {
                format: FORMAT,
                job: self.job.clone(),
                memory_limit: self.memory_limit,
                saved,
            };
            let bytes = page.to_bytes()?;
            self.replace(JOURNAL, |file| io::Write::write_all(file, &bytes))
        };
        write().map_err(|e| Error::in_work_dir(&self.dir, "writing the journal", e))
    }

    /// Removes the files of another job.
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

    /// Writes a filter unless it has been written.
    fn write_filter(&self, filter: &BloomFilter, phase: usize) -> Result<()> {
        if self.filter(phase).exists() {
            return Ok(());
        }
        let write = |file: &mut File| {
            filter.write_to(&mut io::BufWriter::new(file), "").map_err(io::Error::other)
        };
        let done = self.replace(&format!("{FILTER}{phase}"), write);
        done.map_err(|e| Error::in_work_dir(&self.dir, "writing the filter", e))
    }

    fn read_filter(&self, phase: usize) -> Result<BloomFilter> {
        let failed = |why: &dyn fmt::Display| {
            Error::work_dir(&self.dir, format!("its filter is lost ({why}); remove the folder"))
        };
        let file = File::open(self.filter(phase)).map_err(|e| failed(&e.kind()))?;
        let read = BloomFilter::read_from(io::BufReader::with_capacity(1 << 20, file));
        Ok(read.map_err(|e| failed(&e))?.0)
    }

    /// Writes a file that only the owner may read.
    fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let new = self.dir.join(format!("{name}{NEW_SUFFIX}"));
        let mut file = secret(&new)?;
        file.set_len(0)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&new, self.dir.join(name))?;
        File::open(&self.dir)?.sync_all()
    }
}

/// Returns whether a directory contains files that do not belong to a job.
fn foreign(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if !is_ours(&entry?.file_name().to_string_lossy()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(NEW_SUFFIX).unwrap_or(name);
    matches!(name, JOURNAL | RECORDS | LOCK) || name.starts_with(FILTER)
}

/// Removes the files of a job from its work directory, and the directory if it is then empty. Call it
/// when the output is complete. Does nothing if there is no job, or if another job is running there.
pub fn forget_work(dir: &Path) {
    if !dir.join(JOURNAL).exists() {
        return;
    }
    let Ok(Some(lock)) = Lock::take(&dir.join(LOCK)) else { return };
    let Ok(entries) = fs::read_dir(dir) else { return };
    // Files that cannot be removed are ignored by later jobs without a journal.
    for entry in entries.flatten() {
        let name = entry.file_name();
        if is_ours(&name.to_string_lossy()) && name != *LOCK {
            let _ = fs::remove_file(entry.path());
        }
    }
    drop(lock);
    let _ = fs::remove_dir(dir);
}

/// Opens or creates a file that only the owner may read and write.
fn secret(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(owners())?;
    Ok(file)
}

/// Read and write permission for the owner only.
fn owners() -> Permissions {
    Permissions::from_mode(0o600)
}
