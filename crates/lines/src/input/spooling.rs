//! Copies of streams in temporary files.

use std::io::{self, Read};
use std::sync::Arc;

use super::content_check::ContentChecks;
use super::open::InputKind;
use super::{Input, Open};
use crate::error::{Error, Result};
use crate::files::ByteRange;
use crate::progress::{Note, Progress};
use crate::temp::{Spool, TempDir};

/// Returns an input that can be read more than once: itself, or a copy of the stream in `temp`.
pub(crate) fn spool(input: Input, temp: &TempDir, progress: &dyn Progress) -> Result<Input> {
    if input.is_repeatable() {
        return Ok(input);
    }
    let Open::Stream(mut stream) = input.open(0, progress)? else { return Ok(input) };
    progress.note(Note::Spooling { input: &input.name, dir: temp.dir() });
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
            Err(e) => return Err(Error::read(&input.name, e)),
        };
        spool.append(&buffer[..got])?;
        progress.advance(got as u64);
    }
    input.checks.note(progress);
    let copy = of_spool(spool, input.name, input.checks).with_keys(&input.keys);
    Ok(Input { number: input.number, skipped: input.skipped, first_line: input.first_line, ..copy })
}

/// Returns the input of a spooled copy.
pub(crate) fn of_spool(spool: Spool, name: String, checks: Arc<ContentChecks>) -> Input {
    let (file, length, usage) = spool.finish();
    let range = ByteRange { start: 0, end: length };
    let (file, identity) = (file.into(), None);
    let kind = InputKind::OpenFile { file, range, identity, codec: None, table: None };
    Input { _usage: Some(usage), ..Input::new(name, kind, checks) }
}
