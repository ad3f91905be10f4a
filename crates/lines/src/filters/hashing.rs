//! The hashes of the lines of a batch, as a filter computes them.

use super::line_filter::LineHash;
use crate::error::{Error, ErrorKind, Result};
use crate::input::Input;
use crate::scan::{Batch, Scratch};

/// Returns a function that hashes the key of every line of a batch.
pub(super) fn hashing(hash: impl LineHash) -> impl Fn(&Batch<'_>, &mut Scratch) + Sync {
    move |batch, scratch| {
        scratch.hashes.clear();
        scratch.bad_line = hash.hash_lines(batch.keys(), &mut scratch.hashes).err();
    }
}

/// Returns an error if a line of the batch is not a valid key.
pub(super) fn refuse_bad_line(
    inputs: &[&Input],
    batch: &Batch<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    match scratch.bad_line.take() {
        None => Ok(()),
        Some(bad) => {
            let input = inputs[batch.input];
            Err(Error::new(ErrorKind::Key, format!(": {}", bad.why))
                .of(input.name())
                .at_line(input.byte(batch.offset(bad.line))))
        }
    }
}
