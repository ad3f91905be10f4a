//! Temporary files, and copies of inputs in them.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The directory for temporary files. Files in it have no name from the start where the file
/// system can do that, and lose it at once elsewhere: a kill leaves nothing behind.
#[derive(Clone, Debug)]
pub(crate) struct Temp {
    dir: PathBuf,
}

impl Temp {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn file(&self) -> Result<File> {
        tempfile::tempfile_in(&self.dir).map_err(|e| Error::temp(&self.dir, "making it", e))
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
        let spooling = |e| Error::temp(self.temp.dir(), "copying an input that is no file", e);
        self.file.write_all(bytes).map_err(spooling)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The file, and how long it is.
    pub(super) fn finish(self) -> (File, u64) {
        (self.file, self.length)
    }
}
