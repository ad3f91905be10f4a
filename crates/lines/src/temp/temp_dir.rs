//! The directory for temporary files, and copies of streams in it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Advice, Error, ErrorKind, Result, Setting, io_text, is_disk_full};

/// The bytes of a job on temporary disk: records and copies of inputs, now and at most.
///
/// Clones share the same counters.
#[derive(Clone, Debug, Default)]
pub struct DiskUsage(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    now: AtomicU64,
    peak: AtomicU64,
}

impl DiskUsage {
    /// Returns the bytes on disk now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// Returns the largest number of bytes so far.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }
}

/// The bytes of one temporary file, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct FileUsage {
    of_job: DiskUsage,
    bytes: AtomicU64,
}

impl FileUsage {
    /// Counts a file that has `bytes` bytes.
    pub(super) fn new(of_job: &DiskUsage, bytes: u64) -> Self {
        let usage = Self { of_job: of_job.clone(), bytes: AtomicU64::new(0) };
        usage.add(bytes);
        usage
    }

    /// Counts `bytes` more.
    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let Counters { now, peak } = &*self.of_job.0;
        let sum = now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        peak.fetch_max(sum, Ordering::Relaxed);
    }
}

impl Drop for FileUsage {
    fn drop(&mut self) {
        self.of_job.0.now.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// The directory for temporary files.
///
/// Files are created without a name, or their name is removed at once if the file system does not
/// support that, so a killed process leaves nothing behind.
#[derive(Clone, Debug)]
pub(crate) struct TempDir {
    dir: PathBuf,
    /// Whether this is the work directory of a job that can be resumed.
    work: bool,
    usage: DiskUsage,
}

/// Checks that files can be created in a directory for temporary files.
///
/// # Errors
/// If they cannot.
pub fn check_temp_dir(dir: &Path) -> Result<()> {
    TempDir::new(dir).file().map(drop)
}

impl TempDir {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), work: false, usage: DiskUsage::default() }
    }

    /// The work directory of a job that can be resumed.
    pub(crate) fn of_work(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), work: true, usage: DiskUsage::default() }
    }

    /// Counts the bytes of its files in `usage`.
    pub(crate) fn counted_in(self, usage: &DiskUsage) -> Self {
        Self { usage: usage.clone(), ..self }
    }

    pub(crate) fn usage(&self) -> &DiskUsage {
        &self.usage
    }

    /// The error of a file in this directory.
    pub(crate) fn error(&self, doing: &'static str, source: io::Error) -> Error {
        match self.work {
            true => Error::in_work_dir(&self.dir, doing, source),
            false => {
                let (problem, advice) = match is_disk_full(&source) {
                    true => ("no space left".to_owned(), Some("free some space".into())),
                    false => (format!("temporary file: {}", io_text(&source)), None),
                };
                let more_memory = advice.is_some().then_some(Advice::Raise(Setting::MemoryLimit));
                Error::new(ErrorKind::File, format!("{problem} while {doing}"))
                    .of(self.dir.display())
                    .advise_any(advice)
                    .advise(Advice::Change(Setting::TempDir))
                    .advise_any(more_memory)
                    .caused_by(source)
            }
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn file(&self) -> Result<File> {
        tempfile::tempfile_in(&self.dir).map_err(|e| self.error("making it", e))
    }
}

/// A temporary file being written: a copy of a stream, or lines that are sorted.
pub(crate) struct Spool {
    file: File,
    length: u64,
    temp: TempDir,
    usage: FileUsage,
    /// What is done when writing fails.
    doing: &'static str,
}

impl Spool {
    pub(crate) fn new(temp: &TempDir) -> Result<Self> {
        Self::of(temp, "copying an input that is no file")
    }

    /// A file of lines that are being sorted.
    pub(crate) fn of_sorted_lines(temp: &TempDir) -> Result<Self> {
        Self::of(temp, "writing sorted lines")
    }

    fn of(temp: &TempDir, doing: &'static str) -> Result<Self> {
        let usage = FileUsage::new(&temp.usage, 0);
        Ok(Self { file: temp.file()?, length: 0, temp: temp.clone(), usage, doing })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| self.temp.error(self.doing, e))?;
        self.length += bytes.len() as u64;
        self.usage.add(bytes.len() as u64);
        Ok(())
    }

    /// Returns the file, its length, and the count of its bytes, which ends when it is dropped.
    pub(crate) fn finish(self) -> (File, u64, FileUsage) {
        (self.file, self.length, self.usage)
    }
}
