//! The state of an exact job between its phases.

use petal::BloomFilter;

use super::records::Partitioning;
use crate::setops::planning::{Plan, Strategy};
use crate::setops::positions::{Polarity, Spans};
use crate::setops::report::Report;
use crate::setops::set_semantics::{SetMatcher, SetOp};
use crate::temp::RecordStream;

/// The results of the finished phases: all that later phases need.
#[derive(Default)]
pub(super) struct State {
    /// Number of finished phases.
    pub(super) done: usize,
    pub(super) partitioning: Partitioning,
    pub(super) polarity: Polarity,
    /// Records of the first input by partition, and of each other input.
    pub(super) first: Vec<RecordStream>,
    pub(super) others: Vec<Vec<RecordStream>>,
    /// The table of the others instead of their records, which are then empty; never saved.
    pub(super) matcher: Option<SetMatcher>,
    /// Hashes of the candidates, for the next filter: those of one side, then those of the other.
    pub(super) keys: Vec<RecordStream>,
    pub(super) filter: Option<BloomFilter>,
    /// The phase that filled the filter; 0 if unset.
    pub(super) filled: usize,
    /// Listed positions by span, and their number.
    pub(super) positions: Vec<Vec<RecordStream>>,
    pub(super) spans: Option<Spans>,
    pub(super) count: u64,
    pub(super) report: Report,
}

impl State {
    /// Reports the false positives among the candidates. `dropped`: the lines of the first input that
    /// `diff` or `dedup` drops, of which `refused` are the first of their kind; for `common` the
    /// candidates of the first input that are `refused`. `unclaimed`: those of the other one.
    pub(super) fn set_false_found(
        &mut self,
        plan: Plan,
        op: SetOp,
        others: usize,
        dropped: u64,
        refused: u64,
        unclaimed: u64,
    ) {
        // Lines of the first input that the filter of the lines before them may contain.
        let repeated = self.keys.first().map_or(0, |keys| keys.bytes() / 8);
        self.report.false_found = match op {
            _ if plan.strategy != Strategy::Narrow || self.report.candidates == 0 => None,
            SetOp::Common if others > 1 => None,
            SetOp::Common if plan.build_from_first => Some(unclaimed),
            SetOp::Common => Some(refused),
            SetOp::Diff | SetOp::Dedup => {
                Some(repeated.saturating_sub(dropped - refused) + unclaimed)
            }
            _ => None,
        };
    }
}
