//! Exact set operations: the phases of each strategy.
//!
//! * **Memory**: a matcher gets the lines as they are read, and kept lines are printed at once. If
//!   the table fills up during `diff` or `dedup`, the printed lines stay valid: their fingerprints
//!   become one more "other" input, and the rest of the first input continues as `Partition`.
//! * **Partition**: every line becomes a record, the records are joined by partition, and a last
//!   pass over the first input prints the kept positions.
//! * **Narrow**, `common`: fill a filter with one side (build side), write records of the lines of
//!   the other side (probe side) that it may contain, fill a filter with those, and write records of
//!   the build side's lines that this filter may contain. Join and print as above.
//! * **Narrow**, the other operations: insert all lines into one filter. A line that was absent is
//!   certainly new; the others are *candidates*. Fill a filter with the candidates, write records of
//!   all lines that it may contain, join, and print all lines except the dropped ones. `duplicates`
//!   and `unique` are done the same way: a line that is not a record occurs once. `duplicates` prints
//!   the kept positions.
//!
//! | file | contents |
//! |---|---|
//! | `job` | an exact job |
//! | `in_memory` | the strategy for data that fits in memory |
//! | `with_records`, `phases`, `narrowing`, `partitioned` | the strategies that write records |
//! | `records`, `passes`, `join` | records of lines, and the steps on records |
//! | `journal`, `state` | resuming a job |
//! | `estimate`, `simulation`, `spill_bounds` | what a job would cost |

mod estimate;
mod in_memory;
mod job;
mod join;
mod journal;
mod narrowing;
mod partitioned;
mod passes;
mod phases;
mod records;
mod simulation;
mod spill_bounds;
mod state;
mod with_records;

pub use estimate::{Bounds, Counting, InputEstimate, JobEstimate};
pub(super) use job::ExactJob;
pub(crate) use join::{Partition, PartitionJoin};
pub(super) use journal::Journal;
pub use journal::forget_work;
pub(crate) use passes::{HASH_LOG_MEMORY, HashSink, JobPasses, LineSelector, contains_any};
pub use records::Side;
pub(crate) use records::{FIRST_RECORD, PartitionScheme};

use std::time::Instant;

use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::{Input, spool};
use crate::output::Printer;
use crate::setops::planning::{InputSizes, Strategy};
use crate::setops::report::Report;
use crate::setops::set_semantics::SetOp;
use with_records::Others;

impl ExactJob<'_> {
    pub(super) fn run(
        &self,
        first: Vec<Input>,
        others: Vec<Input>,
        printer: &mut Printer<'_>,
    ) -> Result<Report> {
        let begun = Instant::now();
        let mut report = Report::begin(begun);
        // Some strategies read the others twice, and their sizes determine the strategy.
        let spool = |input: Input| spool(input, &self.temp, self.progress);
        let others = others.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
        let first = if self.op.needs_whole_first() {
            first.into_iter().map(spool).collect::<Result<Vec<_>>>()?
        } else {
            first
        };
        let streams = !first.iter().all(Input::is_repeatable);
        let sizes = self.sizes(&first, &others)?;
        let plan = match self.strategy {
            _ if let Some(begun) = self.journal.and_then(Journal::plan) => begun,
            Some(strategy) => sizes.plan(strategy, false, &self.budget),
            // Unknown size: start in memory.
            None if streams && self.can_start_in_memory(&sizes) => {
                sizes.plan(Strategy::Memory, false, &self.budget)
            }
            None if streams => {
                drop(sizes);
                let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
                return self.run(first, others, printer);
            }
            None => sizes.choose(&self.budget),
        };
        // A resumed job has done a part of it.
        if !streams && self.journal.and_then(Journal::plan).is_none() {
            let bytes = self.expected_bytes(&sizes, plan, !printer.counts_only());
            self.progress.expect_total(bytes);
        }
        report.strategy = plan.strategy.name().into();
        report.add_phase("sampling", begun.elapsed().as_secs_f64());
        if plan.strategy == Strategy::Memory {
            self.in_memory(first, others, &sizes, printer, &mut report)?;
        } else {
            let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
            let others = Others::new(others);
            self.with_records(plan, first, others, &sizes, printer, &mut report, self.journal)?;
        }
        printer.flush()?;
        report.kept = printer.lines;
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }

    /// Returns whether a first input of unknown size can be processed in memory.
    fn can_start_in_memory(&self, sizes: &InputSizes) -> bool {
        let capacity = Table::capacity(self.budget.work) / 10 * 9;
        match self.op {
            SetOp::Dedup => true,
            SetOp::Diff => sizes.others.iter().map(|o| o.distinct).sum::<u64>() <= capacity / 2,
            SetOp::Common => {
                sizes.others.iter().map(|o| o.distinct).min().is_some_and(|d| d <= capacity)
            }
            _ => false,
        }
    }
}
