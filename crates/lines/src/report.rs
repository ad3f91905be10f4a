//! What a job did, in numbers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::pass::Seen;

/// What a set verb did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How it was done.
    pub strategy: Cow<'static, str>,
    /// Lines printed, or counted.
    pub kept: u64,
    /// Lines in the first input, or in all of them taken as one.
    pub first_lines: u64,
    /// Passes over an input, or over several taken as one.
    pub passes: u64,
    /// Bytes of input read, all passes together.
    pub bytes_read: u64,
    /// Bytes written to the directory for temporary files.
    pub spilled: u64,
    /// Lines that filters could not rule out, before they were decided exactly.
    pub candidates: u64,
    /// Of the candidates, those that the exact decision refused: the filter's false positives.
    /// `None` if there were no candidates, or several inputs to refuse them.
    pub false_found: Option<u64>,
    /// The false positives that the filter's arithmetic promised for these candidates.
    pub false_promised: Option<f64>,
    /// Records that were decided by fingerprint.
    pub records: u64,
    /// Of an approximate job, the best estimate of wrong lines: printed but not in the answer
    /// (`common`), or in the answer but not printed (`diff`, `dedup`); not a number if the filter
    /// was too full to tell. Zero of an exact job.
    pub wrong: f64,
    /// The standard error of `wrong`: the true number is within two of it in 19 of 20 jobs. Not a
    /// number if `wrong` is none.
    pub wrong_error: f64,
    /// Of an approximate job: lines were repeated because memory for what was printed ran out.
    pub repeats_possible: bool,
    /// Phases that an earlier run of this job had finished.
    pub resumed: u64,
    /// Wall time of this run.
    pub seconds: f64,
    /// The phases, in order.
    pub phases: Vec<Phase>,
}

/// One phase of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Phase {
    /// What was done, in a word.
    pub what: Cow<'static, str>,
    /// Wall time.
    pub seconds: f64,
    /// Bytes of input gone through.
    pub bytes: u64,
    /// Lines gone through; 0 of phases that do not look at lines.
    pub lines: u64,
}

impl Report {
    /// Notes a pass.
    pub(crate) fn saw(&mut self, seen: Seen) {
        self.passes += 1;
        self.bytes_read += seen.bytes;
        let Seen { what, seconds, bytes, lines } = seen;
        self.phases.push(Phase { what: what.into(), seconds, bytes, lines });
    }

    /// Notes a phase that is no pass.
    pub(crate) fn did(&mut self, what: &'static str, seconds: f64) {
        self.phases.push(Phase { what: what.into(), seconds, ..Phase::default() });
    }
}
