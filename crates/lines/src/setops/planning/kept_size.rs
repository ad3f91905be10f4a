//! Sizes of what an exact job keeps in memory instead of reading an input again.

use serde::{Deserialize, Serialize};

/// Bytes of the blocks in which it is kept.
pub(crate) const KEPT_BLOCK: usize = 1 << 20;

/// Bytes kept before the text of a line: its position and its length.
pub(crate) const KEPT_HEAD: usize = 12;

/// Limits in bytes; 0: nothing is kept, and the input is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptSizes {
    /// Of the records of the first input.
    pub(crate) first: u64,
    /// Of the records of the other inputs.
    pub(crate) others: u64,
    /// Of the text of the candidates.
    pub(crate) lines: u64,
}

impl KeptSizes {
    pub(crate) fn total(self) -> u64 {
        self.first + self.others + self.lines
    }
}

/// Samples estimate the lines of files within a few percent.
const MARGIN: f64 = 1.125;

/// Takes from `free` the limit for about `bytes` bytes; 0 if it is not free.
pub(super) fn take(free: &mut u64, bytes: f64) -> u64 {
    let block = KEPT_BLOCK as u64;
    let limit = ((bytes * MARGIN) as u64 / block + 2) * block;
    match free.checked_sub(limit) {
        Some(rest) => {
            *free = rest;
            limit
        }
        None => 0,
    }
}

/// Returns whether `bytes` bytes of entries of `each` bytes are within a limit.
pub(crate) fn is_within(limit: u64, bytes: f64, each: f64) -> bool {
    let block = KEPT_BLOCK as f64;
    let full = (block / each.max(1.0)).floor().max(1.0) * each.max(1.0);
    limit > 0 && (bytes / full).ceil() * block <= limit as f64
}
