//! What an input is read from by position: a file, or an object of a store.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use rustix::fs::Advice;

use super::file_stat::FileStat;
use super::remote::{ObjectInput, ReadAhead};
use crate::error::{Error, Result};

/// A file or an object that is read by position, from many threads.
#[derive(Clone)]
pub(crate) enum InputFile {
    /// A file that is open.
    File(Arc<File>),
    /// An object; each read is a request.
    Object(Arc<ObjectInput>),
    /// An object that is read in order, in blocks that are requested ahead.
    ReadAhead(Arc<ReadAhead>),
}

impl InputFile {
    /// Reads from a position; returns 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(buffer, at),
            Self::Object(object) => object.read_at(buffer, at),
            Self::ReadAhead(object) => object.read_at(buffer, at),
        }
    }

    /// Fills the buffer from a position.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        if let Self::File(file) = self {
            return file.read_exact_at(buffer, at);
        }
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], at + filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => filled += got,
            }
        }
        Ok(())
    }

    /// Returns identity, length and times. Those of an object are of the version that was opened:
    /// every request demands it.
    pub(super) fn stat(&self) -> io::Result<FileStat> {
        match self {
            Self::File(file) => Ok(FileStat::of(&file.metadata()?)),
            Self::Object(object) => Ok(object.stat()),
            Self::ReadAhead(object) => Ok(object.stat()),
        }
    }

    /// Prepares a pass in order: more is read ahead.
    pub(crate) fn sequential(self) -> Self {
        match self {
            Self::File(file) => {
                // Errors do not matter.
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
                Self::File(file)
            }
            Self::Object(object) => Self::ReadAhead(Arc::new(ReadAhead::new(&object))),
            Self::ReadAhead(object) => Self::ReadAhead(object),
        }
    }

    /// Returns the file; `None` for an object.
    pub(crate) fn as_file(&self) -> Option<&File> {
        match self {
            Self::File(file) => Some(file),
            Self::Object(_) | Self::ReadAhead(_) => None,
        }
    }
}

impl From<File> for InputFile {
    fn from(file: File) -> Self {
        Self::File(Arc::new(file))
    }
}

/// Fills the buffer from a position. Returns an error if the file has become shorter.
pub(crate) fn read_at(file: &InputFile, name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
    file.read_exact_at(buffer, at).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::changed(name, "it is shorter than it was when it was opened")
        }
        _ => Error::read(name, e),
    })
}
