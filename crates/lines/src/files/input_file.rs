//! What an input is read from by position: a file, or an object of a store.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use rustix::fs::Advice;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::remote::{ObjectInput, ReadAhead};

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
    pub(crate) fn stat(&self) -> io::Result<FileStat> {
        match self {
            Self::File(file) => Ok(FileStat::of(&file.metadata()?)),
            Self::Object(object) => Ok(FileStat::of_object(object)),
            Self::ReadAhead(blocks) => Ok(FileStat::of_object(blocks.object())),
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

/// Identity, length and times of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStat {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) length: u64,
    /// Modification time and change time, in seconds and nanoseconds.
    pub(crate) changed: [(i64, i64); 2],
}

impl FileStat {
    pub(crate) fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            changed: [(data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec())],
        }
    }

    /// The version of an object: its length, the hash of its ETag, its time in seconds.
    fn of_object(object: &ObjectInput) -> Self {
        let (etag, modified) = object.version();
        Self { device: 0, inode: etag, length: object.length(), changed: [(modified, 0); 2] }
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
