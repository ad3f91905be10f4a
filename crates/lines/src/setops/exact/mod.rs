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
//! * **Narrow**, the other operations: insert the first input into a filter. A line that was absent is
//!   no repeated one; the others are *candidates*, and so are lines of other inputs that the filter may
//!   contain. Fill a filter with the candidates, write records of all lines that it may contain, join,
//!   and print all lines except the dropped ones. `duplicates` and `unique` are done the same way: a
//!   line that is not a record occurs once. `duplicates` prints the kept positions.
//! * **Narrow, at once**: if the table of the candidates fits in memory, the first input is decided
//!   and printed while it is read again. If it fits twice, the candidates of the others are inserted as
//!   they are found, without records; if it becomes full all the same, its entries become records.
//!
//! | file | contents |
//! |---|---|
//! | `in_memory` | the strategy for data that fits in memory |
//! | `at_once` | deciding about lines while they are read |
//! | `with_records`, `phases`, `narrowing` | the strategies that write records |
//! | `records`, `passes`, `join` | records of lines, and the steps on records |
//! | `journal`, `state` | resuming a job |
//! | `estimate`, `simulation`, `spill_bounds` | what a job would cost |

mod at_once;
mod estimate;
mod in_memory;
mod join;
mod journal;
mod narrowing;
mod passes;
mod phases;
mod records;
mod simulation;
mod spill_bounds;
mod state;
mod with_records;

pub use estimate::{Bounds, Counting, InputEstimate, JobEstimate};
pub(crate) use join::{JoinResult, Partition, PartitionJoin};
pub(super) use journal::Journal;
pub use journal::forget_work;
pub(crate) use passes::{
    HASH_LOG_MEMORY, HashSink, JobPasses, LineSelector, RecordSink, contains_any,
};
pub(crate) use phases::write_table;
pub use records::Side;
pub(crate) use records::{FIRST_RECORD, Partitioning};

use std::time::Instant;

use crate::error::Result;
use crate::fingerprint::{LineHasher, Table};
use crate::input::{Input, spool};
use crate::memory::{Budget, least_records};
use crate::output::Printer;
use crate::progress::Progress;
use crate::scan::Pass;
use crate::setops::planning::{InputSizes, Plan, Sample, Strategy};
use crate::setops::report::Report;
use crate::setops::set_semantics::SetOp;
use crate::temp::{SpillWriter, TempDir};
use with_records::Others;

/// Memory of an empty record stream in bytes; twice while streams are combined.
const STREAM_COST: u64 = 256;

/// Maximum size of a table that stays in the cache of a core, in bytes.
const CACHE: u64 = 1 << 20;

/// An exact job, before its strategy is chosen.
pub(crate) struct ExactJob<'a> {
    pub(crate) op: SetOp,
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) temp: TempDir,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) hasher: LineHasher,
    /// Saves finished phases.
    pub(crate) journal: Option<&'a Journal>,
    /// For a symmetric difference: number of the inputs that are its first side.
    pub(crate) boundary: usize,
}

/// Returns enough partitions of `entries` fingerprints for the table of each to stay in the cache.
pub(crate) fn partitioning(budget: &Budget, entries: u64, others: u64) -> Partitioning {
    let share = (budget.work / budget.workers as u64 / 4).min(CACHE);
    let wanted = entries / Table::capacity(share).max(1) + 1;
    // Each partition has a small cost for each input, even if it is empty.
    let each = STREAM_COST * (others + 2);
    let affordable = SpillWriter::max_streams(least_records(budget.work));
    let affordable = affordable.min(budget.work / 16 / each);
    Partitioning::new(wanted.clamp(1, affordable.clamp(1, 1024)))
}

impl ExactJob<'_> {
    pub(crate) fn pass(&self) -> Pass<'_> {
        Pass { budget: self.budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }

    pub(crate) fn passes(&self) -> JobPasses<'_> {
        JobPasses { pass: self.pass(), hasher: &self.hasher }
    }

    pub(crate) fn sizes(&self, first: &[Input], others: &[Input]) -> Result<InputSizes> {
        let among = others.len() + 1;
        let sample = |inputs: &[&Input], number| {
            let (hasher, numbers) = (&self.hasher, [number, among]);
            Sample::of(inputs, hasher, self.delimiter, &self.budget, numbers, self.progress)
        };
        let files: Vec<_> = first.iter().filter(|input| input.is_repeatable()).collect();
        let others = || -> Result<Vec<_>> {
            others.iter().zip(1..).map(|(other, number)| sample(&[other], number)).collect()
        };
        if self.budget.workers == 1 {
            return Ok(InputSizes::new(self.op, sample(&files, 0)?, others()?));
        }
        let first = || sample(&files, 0);
        std::thread::scope(|scope| {
            let Ok(thread) = std::thread::Builder::new().spawn_scoped(scope, first) else {
                return Ok(InputSizes::new(self.op, first()?, others()?));
            };
            let others = others()?;
            let first = thread.join().expect("the sampling of the first input panicked")?;
            Ok(InputSizes::new(self.op, first, others))
        })
    }

    /// Returns the partitions of the job. `prior`: fingerprints of lines that were decided in memory.
    pub(crate) fn partitioning(&self, plan: Plan, sizes: &InputSizes, prior: u64) -> Partitioning {
        partitioning(&self.budget, plan.entries + prior * 8, sizes.others.len() as u64)
    }

    pub(super) fn run(
        &self,
        first: Vec<Input>,
        others: Vec<Input>,
        printer: &mut Printer<'_>,
    ) -> Result<Report> {
        let begun = Instant::now();
        let mut report = Report::new(begun);
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
            // Unknown size: start in memory.
            None if streams && self.can_start_in_memory(&sizes) => {
                sizes.plan(Strategy::Memory, false, &self.budget)
            }
            None if streams => {
                drop(sizes);
                let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
                return self.run(first, others, printer);
            }
            strategy => sizes.choose(strategy, &self.budget),
        };
        // A resumed job has done a part of it.
        if !streams && self.journal.and_then(Journal::plan).is_none() {
            let bytes = self.expected_bytes(&sizes, plan, !printer.counts_only());
            self.progress.expect_total(bytes);
        }
        report.strategy = plan.strategy.name().into();
        report.add_phase("sampling", begun.elapsed().as_secs_f64());
        if plan.strategy == Strategy::Memory {
            in_memory::run(self, first, others, &sizes, printer, &mut report)?;
        } else {
            let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
            let others = Others::new(others);
            with_records::run(
                self,
                plan,
                first,
                others,
                &sizes,
                printer,
                &mut report,
                self.journal,
            )?;
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
