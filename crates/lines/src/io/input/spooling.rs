//! Copies of streams in temporary files.

use std::io::{self, Read};
use std::sync::Arc;

use super::{Input, Open};
use crate::error::{Error, Result};
use crate::io::byte_range::ByteRange;
use crate::io::content_check::ContentChecks;
use crate::io::open::InputKind;
use crate::io::temp_dir::{Spool, TempDir};
use crate::progress::{Note, Progress};

impl Input {
    /// Returns an input that can be read more than once: itself, or a copy of the stream in `temp`.
    pub(crate) fn spool(self, temp: &TempDir, progress: &dyn Progress) -> Result<Self> {
        if self.is_repeatable() {
            return Ok(self);
        }
        let Open::Stream(mut stream) = self.open(0, progress)? else { return Ok(self) };
        progress.note(Note::Spooling { input: &self.name, dir: temp.dir() });
        progress.phase("spooling", None);
        let mut spool = Spool::new(temp)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            while !stream.ready() {
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
            }
            let got = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::read(&self.name, e)),
            };
            spool.append(&buffer[..got])?;
            progress.advance(got as u64);
        }
        self.checks.note(progress);
        let input = Self::of_spool(spool, self.name, self.checks).with_keys(&self.keys);
        Ok(Self { skipped: self.skipped, first_line: self.first_line, ..input })
    }

    /// Returns the input of a spooled copy.
    pub(crate) fn of_spool(spool: Spool, name: String, checks: Arc<ContentChecks>) -> Self {
        let (file, length, usage) = spool.finish();
        let range = ByteRange { start: 0, end: length };
        let (file, identity) = (file.into(), None);
        let body = InputKind::OpenFile { file, range, identity, codec: None, table: None };
        Self { _usage: Some(usage), ..Self::with_kind(name, body, checks) }
    }
}
