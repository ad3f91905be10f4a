//! Temporary files, and copies of inputs in them.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The directory for temporary files. Files in it have no name from the start where the file
/// system can do that, and lose it at once elsewhere: a kill leaves nothing behind.
#[derive(Clone, Debug)]
pub(crate) struct Temp {
    dir: PathBuf,
    /// Whether it is the work directory of a job that can be resumed.
    work: bool,
}

impl Temp {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), work: false }
    }

    /// The work directory of a job that can be resumed.
    pub(crate) fn of_work(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), work: true }
    }

    /// Something with a file in it went wrong.
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

/// A copy of a stream in the making.
pub(crate) struct Spool {
    file: File,
    length: u64,
    temp: Temp,
}

impl Spool {
    pub(crate) fn new(temp: &Temp) -> Result<Self> {
        Ok(Self { file: temp.file()?, length: 0, temp: temp.clone() })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let spooling = |e| self.temp.error("copying an input that is no file", e);
        self.file.write_all(bytes).map_err(spooling)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The file, and how long it is.
    pub(super) fn finish(self) -> (File, u64) {
        (self.file, self.length)
    }
}
