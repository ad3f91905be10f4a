//! Portions of an input: byte ranges, the rest after a position, and the input of an earlier run.

use super::Input;
use crate::error::{Error, Result};
use crate::io::byte_range::ByteRange;
use crate::io::file_stat::FileStat;
use crate::io::identity::Checksum;
use crate::io::open::InputKind;
use crate::keys::Fields;
use crate::progress::Progress;

impl Input {
    /// Continues with the input of an earlier run, given its metadata, range and checksum. Returns
    /// false if its bytes have changed since.
    pub(crate) fn resume(
        &mut self,
        then: FileStat,
        old: ByteRange,
        checksum: Option<Checksum>,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let (file, range, identity) = self.whole_file()?;
        let Some(identity) = identity else { return Ok(false) };
        if old.start != range.start || old.start > old.end || old.end > range.end {
            return Ok(false);
        }
        // The checksum is that of the bytes that a pass reads.
        let read = self.read_range(old);
        let same = identity.resume(&file.sequential(), read, then, checksum, progress)?;
        match &mut self.kind {
            InputKind::Named { length, .. } if same => *length = old.end,
            InputKind::OpenFile { range, .. } if same => *range = old,
            _ => {}
        }
        Ok(same)
    }

    /// Returns the rest of the input from a position on.
    pub(crate) fn from(mut self, position: u64) -> Self {
        self.portion.start += position;
        if position > 0 {
            self.first_line = None;
        }
        // The checksum of the whole input does not apply to the rest.
        if self.is_file() {
            self.identity().into_iter().for_each(|identity| identity.set_checksum(None));
        }
        self
    }

    /// Returns the portion of a file whose lines start in `range`. A compressed file cannot be
    /// divided.
    pub(crate) fn portion(mut self, range: ByteRange) -> Result<Self> {
        let bad = |problem| Err(Error::range(&self.name, range.start, range.end, problem));
        let length = match &self.kind {
            InputKind::Named { length, .. } => *length,
            _ => return bad("it is no file that can be read again; save it to one first"),
        };
        if range.start > range.end || range.end > length {
            return bad("the file is shorter; it has changed, or the range is of another one");
        }
        if matches!(self.keys.fields, Fields::Columns(_) | Fields::Rows(_)) {
            return bad(
                "columns of records cannot be found from within a file; compare them on one machine",
            );
        }
        if self.codec().is_none() {
            self.portion = range;
            self.first_line = self.first_line.filter(|_| range.start == 0);
        } else if (range.start, range.end) != (0, length) {
            return bad("a packed file cannot be divided; take all of it as one range");
        }
        Ok(self)
    }
}
