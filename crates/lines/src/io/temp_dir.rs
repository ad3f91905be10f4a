//! The directory for temporary files, and copies of streams in it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The directory for temporary files.
///
/// Files are created without a name, or their name is removed at once if the file system does not
/// support that, so a killed process leaves nothing behind.
#[derive(Clone, Debug)]
pub(crate) struct TempDir {
    dir: PathBuf,
    /// Whether this is the work directory of a job that can be resumed.
    work: bool,
}

impl TempDir {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), work: false }
    }

    /// The work directory of a job that can be resumed.
    pub(crate) fn of_work(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), work: true }
    }

    /// The error of a file in this directory.
    pub(crate) fn error(&self, doing: &'static str, source: io::Error) -> Error {
        match self.work {
            true => Error::in_work_dir(&self.dir, doing, source),
            false => Error::temp(&self.dir, doing, source),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn file(&self) -> Result<File> {
        tempfile::tempfile_in(&self.dir).map_err(|e| self.error("making it", e))
    }
}

/// A copy of a stream, being written.
pub(crate) struct Spool {
    file: File,
    length: u64,
    temp: TempDir,
}

impl Spool {
    pub(crate) fn new(temp: &TempDir) -> Result<Self> {
        Ok(Self { file: temp.file()?, length: 0, temp: temp.clone() })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let spooling = |e| self.temp.error("copying an input that is no file", e);
        self.file.write_all(bytes).map_err(spooling)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Returns the file and its length.
    pub(super) fn finish(self) -> (File, u64) {
        (self.file, self.length)
    }
}
