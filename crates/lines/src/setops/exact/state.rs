//! The state of an exact job between its phases.

use petal::BloomFilter;

use super::records::Partitioning;
use crate::setops::positions::{Polarity, Spans};
use crate::setops::report::Report;
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
    /// Hashes of the candidates, for the next filter.
    pub(super) keys: RecordStream,
    pub(super) filter: Option<BloomFilter>,
    /// The phase that filled the filter; 0 if unset.
    pub(super) filled: usize,
    /// Listed positions by span, and their number.
    pub(super) positions: Vec<Vec<RecordStream>>,
    pub(super) spans: Option<Spans>,
    pub(super) count: u64,
    pub(super) report: Report,
}
