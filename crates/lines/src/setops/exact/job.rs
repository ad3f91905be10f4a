//! An exact job, before the strategy is chosen.

use super::journal::Journal;
use super::passes::JobPasses;
use super::records::PartitionScheme;
use crate::error::Result;
use crate::fingerprint::{LineHasher, Table};
use crate::input::Input;
use crate::memory::{Budget, least_records};
use crate::progress::Progress;
use crate::scan::Pass;
use crate::setops::planning::{InputSizes, Plan, Sample, Strategy};
use crate::setops::set_semantics::SetOp;
use crate::temp::{SpillWriter, TempDir};

/// Memory of an empty record stream in bytes; twice while streams are combined.
const STREAM_COST: u64 = 256;

/// Maximum size of a table that stays in the cache of a core, in bytes.
const CACHE: u64 = 1 << 20;

/// An exact job.
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

    /// Returns enough partitions for the table of each to stay in the cache. `prior`: fingerprints of
    /// lines that were decided in memory.
    pub(crate) fn partition_scheme(
        &self,
        plan: Plan,
        sizes: &InputSizes,
        prior: u64,
    ) -> PartitionScheme {
        let share = (self.budget.work / self.budget.workers as u64 / 4).min(CACHE);
        let entries = plan.entries + prior * 8;
        let wanted = entries / Table::capacity(share).max(1) + 1;
        // Each partition has a small cost for each input, even if it is empty.
        let each = STREAM_COST * (sizes.others.len() as u64 + 2);
        let affordable = SpillWriter::max_streams(least_records(self.budget.work));
        let affordable = affordable.min(self.budget.work / 16 / each);
        PartitionScheme::new(wanted.clamp(1, affordable.clamp(1, 1024)))
    }
}
