//! The report of a set operation.

use std::borrow::Cow;
use std::time::Instant;

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
    /// Lines in the first input; of `dedup` and of the symmetric difference, in all inputs.
    pub first_lines: u64,
    /// Passes over inputs.
    pub passes: u64,
    /// Bytes of input read in all passes.
    pub bytes_read: u64,
    /// Bytes written to the temporary directory.
    pub spilled: u64,
    /// Candidates: lines that filters could not rule out.
    pub candidates: u64,
    /// False positives among the candidates. `None` if there were no candidates, if several inputs
    /// could refuse them, or if lines were selected by their number of appearances.
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
    /// Of a job on the parts of documents, whose lines are the documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartCounts>,
    /// Phases that an earlier run of the job had finished.
    pub resumed: u64,
    /// Wall time of this run.
    pub seconds: f64,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The start of this run.
    #[serde(skip)]
    pub(crate) begun: Option<Instant>,
}

/// The parts of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartCounts {
    /// Parts in all documents.
    pub read: u64,
    /// Parts that occur earlier, in the same document or in another.
    pub repeated: u64,
    /// Parts in the documents of the result.
    pub kept: u64,
}

/// One phase of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Phase {
    /// Name of the phase.
    pub what: Cow<'static, str>,
    /// Seconds from the start of this run to the start of the phase. `None` for a phase of an earlier
    /// run.
    #[serde(default)]
    pub start: Option<f64>,
    /// Wall time.
    pub seconds: f64,
    /// Bytes of input read.
    pub bytes: u64,
    /// Lines read; 0 for phases that do not process lines.
    pub lines: u64,
    /// Lines that the phase did not rule out: candidates, records, or in the last phases lines of the
    /// result. `None` for phases that rule out nothing.
    #[serde(default)]
    pub survivors: Option<u64>,
}

impl Report {
    /// The empty report of a run that began at `begun`.
    pub(crate) fn new(begun: Instant) -> Self {
        Self { begun: Some(begun), ..Self::default() }
    }

    /// Returns the report of an earlier run that had finished `phases` phases.
    pub(crate) fn resumed(&self, phases: u64) -> Self {
        let mut report = Self { resumed: phases, ..self.clone() };
        report.phases.iter_mut().for_each(|phase| phase.start = None);
        report
    }

    /// Adds a pass.
    pub(crate) fn add_pass(&mut self, pass: PassStats) {
        self.passes += 1;
        self.bytes_read += pass.bytes;
        let PassStats { what, seconds, bytes, lines } = pass;
        self.push(Phase { what: what.into(), seconds, bytes, lines, ..Phase::default() });
    }

    /// Adds a phase that is not a pass.
    pub(crate) fn add_phase(&mut self, what: &'static str, seconds: f64) {
        self.push(Phase { what: what.into(), seconds, ..Phase::default() });
    }

    /// Adds a phase that ends now.
    fn push(&mut self, mut phase: Phase) {
        let now = self.begun.map(|begun| begun.elapsed().as_secs_f64());
        phase.start = now.map(|now| (now - phase.seconds).max(0.0));
        self.phases.push(phase);
    }

    /// Sets the survivors of the last phase.
    pub(crate) fn set_survivors(&mut self, lines: u64) {
        if let Some(phase) = self.phases.last_mut() {
            phase.survivors = Some(lines);
        }
    }
}
