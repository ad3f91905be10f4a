//! Stands for objects in a build without the feature `object-store`: every address is refused.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use super::{ObjectUrl, Opened};

/// Has no values.
#[derive(Debug)]
enum Never {}

/// An object; there is none in this build.
pub(crate) struct ObjectInput(Never);

impl ObjectInput {
    pub(crate) fn length(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn version(&self) -> (u64, i64) {
        match self.0 {}
    }

    pub(crate) fn read_ranges(&self, _: &[Range<u64>]) -> io::Result<Vec<u8>> {
        match self.0 {}
    }

    pub(crate) fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        match self.0 {}
    }
}

/// An object that is read in blocks; there is none in this build.
pub(crate) struct ReadAhead(Never);

impl ReadAhead {
    pub(crate) fn new(object: &Arc<ObjectInput>) -> Self {
        match object.0 {}
    }

    pub(crate) fn object(&self) -> &ObjectInput {
        match self.0 {}
    }

    pub(crate) fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        match self.0 {}
    }
}

fn unsupported() -> io::Error {
    let text = "this petal was built without object storage; build it with its default features, or \
                copy the object to a file";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

pub(crate) fn open(_: &ObjectUrl, _: u64) -> io::Result<Opened> {
    Err(unsupported())
}

/// An object that is written; there is none in this build.
#[derive(Debug)]
pub struct Upload(Never);

impl Upload {
    /// Refuses the address.
    ///
    /// # Errors
    /// Always: the feature `object-store` is missing.
    pub fn create(_: &ObjectUrl, _: u64) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Completes the upload.
    ///
    /// # Errors
    /// If a part or the completion fails.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

/// Aborts all uploads: none in this build.
pub fn abort_uploads() {}
