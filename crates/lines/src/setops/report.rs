//! The report of a set operation.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::scan::PassStats;

/// The report of a set operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The strategy.
    pub strategy: Cow<'static, str>,
    /// Lines printed or counted.
    pub kept: u64,
    /// Lines in the first input.
    pub first_lines: u64,
    /// Passes over inputs.
    pub passes: u64,
    /// Bytes of input read in all passes.
    pub bytes_read: u64,
    /// Bytes written to the temporary directory.
    pub spilled: u64,
    /// Candidates: lines that filters could not rule out.
    pub candidates: u64,
    /// False positives among the candidates. `None` if there were no candidates, or if several inputs
    /// could refuse them.
    pub false_found: Option<u64>,
    /// Expected false positives, calculated from the filter.
    pub false_promised: Option<f64>,
    /// Records that were compared by fingerprint.
    pub records: u64,
    /// Estimated wrong lines of an approximate job: printed but not in the exact result (`common`),
    /// or in it but not printed (`diff`, `dedup`). NaN if the filter was too full for an estimate.
    /// Zero for an exact job.
    pub wrong: f64,
    /// Standard error of `wrong`: the true number is within two standard errors in 19 of 20 jobs. NaN
    /// if `wrong` is.
    pub wrong_error: f64,
    /// Lines of an approximate job may be repeated, because the memory for printed lines was full.
    pub repeats_possible: bool,
    /// Phases that an earlier run of the job had finished.
    pub resumed: u64,
    /// Wall time of this run.
    pub seconds: f64,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

/// One phase of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Phase {
    /// Name of the phase.
    pub what: Cow<'static, str>,
    /// Wall time.
    pub seconds: f64,
    /// Bytes of input read.
    pub bytes: u64,
    /// Lines read; 0 for phases that do not process lines.
    pub lines: u64,
}

impl Report {
    /// Adds a pass.
    pub(super) fn add_pass(&mut self, pass: PassStats) {
        self.passes += 1;
        self.bytes_read += pass.bytes;
        let PassStats { what, seconds, bytes, lines } = pass;
        self.phases.push(Phase { what: what.into(), seconds, bytes, lines });
    }

    /// Adds a phase that is not a pass.
    pub(super) fn add_phase(&mut self, what: &'static str, seconds: f64) {
        self.phases.push(Phase { what: what.into(), seconds, ..Phase::default() });
    }
}
