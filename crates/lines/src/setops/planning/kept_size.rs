//! Sizes of what an exact job keeps in memory instead of reading an input again.

use serde::{Deserialize, Serialize};

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

/// Returns the size of a block, of which at least 16 fit into a limit.
pub(crate) fn block_bytes(limit: u64) -> u64 {
    (limit / 16).min(1 << 20)
}

/// Takes from `free` the limit for about `bytes` bytes; 0 if it is not free.
pub(super) fn take(free: &mut u64, bytes: f64) -> u64 {
    // One block in 16 may be almost empty.
    let limit = (bytes * margin() * 16.0 / 15.0) as u64 + 16 * 128;
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
    let block = block_bytes(limit) as f64;
    let full = (block / each.max(1.0)).floor() * each.max(1.0);
    full > 0.0 && (bytes / full).ceil() * block <= limit as f64
}

/// Samples estimate the lines of files within a few percent.
const MARGIN: f64 = 1.125;

#[cfg(not(test))]
fn margin() -> f64 {
    MARGIN
}

#[cfg(test)]
thread_local! {
    /// The margin that a test wants.
    pub(crate) static TEST_MARGIN: std::cell::Cell<f64> = const { std::cell::Cell::new(MARGIN) };
}

#[cfg(test)]
fn margin() -> f64 {
    TEST_MARGIN.get()
}
