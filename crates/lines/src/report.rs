//! What a job did, in numbers.

use crate::pass::Seen;

/// What a set verb did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Lines printed, or counted.
    pub kept: u64,
    /// How it was done.
    pub strategy: &'static str,
    /// Passes over an input, or over several taken as one.
    pub passes: u64,
    /// Bytes of input read, all passes together.
    pub bytes_read: u64,
    /// Bytes written to the directory for temporary files.
    pub spilled: u64,
    /// Lines that filters could not rule out, before they were decided exactly.
    pub candidates: u64,
    /// Records that were decided by fingerprint.
    pub records: u64,
    /// Lines in the first input.
    pub first_lines: u64,
    /// Of an approximate job, the best estimate of wrong lines: printed but not in the answer
    /// (`common`), or in the answer but not printed (`diff`, `dedup`); not a number if the filter
    /// was too full to tell. Zero of an exact job.
    pub wrong: f64,
    /// Of an approximate job: lines were repeated because memory for what was printed ran out.
    pub repeats_possible: bool,
    /// Wall time.
    pub seconds: f64,
}

impl Report {
    /// Notes a pass.
    pub(crate) fn saw(&mut self, seen: Seen) {
        self.passes += 1;
        self.bytes_read += seen.bytes;
    }
}
