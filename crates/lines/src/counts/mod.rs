//! How often each distinct line occurs.
//!
//! * **In memory**, if a sample says that the repeated lines fit: a Bloom filter finds them, a table
//!   counts them, and a second pass prints each line where it occurs first.
//! * **By partition** otherwise: every line becomes a record of its fingerprint and position, the
//!   records of a partition are counted in a table, the first position and the count of each distinct
//!   line are written to spans of positions, and a last pass over the inputs prints the lines.
//!
//! By their number the lines are sorted as they are printed, in memory or by merging sorted runs on
//! disk. Of the most frequent lines, those that cannot be among them are left out before.
//!
//! | module | contents |
//! |---|---|
//! | `in_memory` | counting in memory |
//! | `events` | lines where one occurs first, in little memory |
//! | `partitions` | counting the records of partitions |
//! | `positions` | positions with counts, in ascending order |
//! | `top` | the lowest count of the most frequent lines |
//! | `sorter` | sorting lines by their counts |
//! | `output` | printing lines with their counts |

mod events;
mod in_memory;
mod output;
mod partitions;
mod positions;
mod sorter;
#[cfg(test)]
mod tests;
mod top;

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::fingerprint::{FingerprintMap, LineHasher};
use crate::input::{Input, Source, spool};
use crate::job_context::JobContext;
use crate::output::Outputs;
use crate::scan::{LineChunk, RecordEnds, Ticket};
use crate::setops::{
    FIRST_RECORD, JobPasses, LineSelector, Partitioning, RecordSink, Sample, Side, Spans,
    positions_of_inputs,
};
use crate::settings::Settings;
use crate::temp::{SpillFile, SpillWriter, TempDir};
use in_memory::RepeatCounter;
use output::CountOutput;
use partitions::{Counted, PartitionCounter};
use positions::CountedPositions;
use sorter::Sorter;
use top::TopCounts;

/// The order of counted lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountOrder {
    /// In the order in which they occur first.
    #[default]
    Appearance,
    /// By their number of appearances, the most frequent first; equal ones in the order in which they
    /// occur first.
    Count {
        /// Print at most this number of lines.
        top: Option<u64>,
    },
}

/// Counts how often each distinct line occurs in all inputs together.
#[derive(Clone, Debug)]
pub struct CountJob {
    /// The inputs, taken as one.
    pub inputs: Vec<Source>,
    /// The order of the output.
    pub order: CountOrder,
    /// Print only lines that occur at least this number of times.
    pub min_count: u64,
}

/// The result of counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountReport {
    /// Lines read.
    pub lines: u64,
    /// Distinct lines printed.
    pub printed: u64,
}

impl CountJob {
    /// Prints the number of appearances of each distinct line, a tab, and the line. The number of a CSV
    /// record is its first field, named `count` in the header.
    ///
    /// Exact: two lines count as equal if their 128-bit fingerprints under a random key are. Inputs
    /// that can be read only once are copied to the temporary directory.
    ///
    /// Cost: at most two passes over the inputs, and 3 bytes of memory per distinct line and 28 to 60
    /// per repeated one; if these do not fit the memory limit, 24 bytes of temporary data per line and
    /// 16 per distinct line.
    ///
    /// # Errors
    /// If an input cannot be read, changes during the job, or has a line longer than a quarter of the
    /// memory limit; if the output or a temporary file cannot be written; if the memory limit is too
    /// low.
    pub fn run(
        &self,
        settings: &Settings<'_>,
        output: &mut (dyn Write + Send),
    ) -> Result<CountReport> {
        self.run_within(settings, output, Assumed::default())
    }

    /// Runs with what a test assumes.
    fn run_within(
        &self,
        settings: &Settings<'_>,
        output: &mut (dyn Write + Send),
        Assumed { table, distinct }: Assumed,
    ) -> Result<CountReport> {
        let (context, inputs) = JobContext::open(settings, &self.inputs)?;
        let budget = context.budget;
        let start = context.output_start(&inputs)?;
        let temp = context.temp_dir();
        let spool = |input: Input| spool(input, &temp, settings.progress);
        let inputs = inputs.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
        let (memory, sorter) = match self.order {
            CountOrder::Appearance => (budget.work, None),
            CountOrder::Count { top } => {
                let half = budget.work / 2;
                (half, Some(Sorter::new(top.unwrap_or(u64::MAX), table.unwrap_or(half), &temp)))
            }
        };
        let printer = context.printer(Outputs::to(output));
        let keys = context.key_line(&inputs)?;
        let mut out = CountOutput::new(printer, sorter, self.min_count, start, keys)?;
        let memory = table.map_or(memory, |table| table.min(memory));
        let top = match self.order {
            CountOrder::Count { top } => top,
            CountOrder::Appearance => None,
        };
        let counter = Counter {
            context,
            temp: &temp,
            memory,
            hasher: LineHasher::random()?,
            top: TopCounts::new(top),
        };
        let lines = counter.count(&inputs, distinct, &mut out)?;
        Ok(CountReport { lines, printed: out.finish(settings.progress)? })
    }
}

/// What a test assumes instead of measuring it.
#[derive(Clone, Copy, Debug, Default)]
struct Assumed {
    /// Maximum size of a table; `None`: what the memory limit allows.
    table: Option<u64>,
    /// Number of distinct lines; `None`: estimated by a sample.
    distinct: Option<u64>,
}

/// A running job.
struct Counter<'a> {
    context: JobContext<'a>,
    temp: &'a TempDir,
    /// Memory for tables and records.
    memory: u64,
    hasher: LineHasher,
    /// The counts of the most frequent lines.
    top: TopCounts,
}

impl Counter<'_> {
    /// Counts and prints; returns the number of lines. `distinct`: number of distinct lines, instead of
    /// an estimate.
    fn count(
        mut self,
        inputs: &[Input],
        distinct: Option<u64>,
        out: &mut CountOutput<'_>,
    ) -> Result<u64> {
        let refs: Vec<_> = inputs.iter().collect();
        let Settings { delimiter, progress, .. } = *self.context.settings;
        let mut sample =
            Sample::of(&refs, &self.hasher, delimiter, &self.context.budget, [0, 1], progress)?;
        if let Some(distinct) = distinct {
            sample = Sample { distinct, keys: vec![], sampled_distinct: 0, ..sample };
        }
        let counter = RepeatCounter::new(&sample, self.memory)?;
        // Two passes; by partition, the records are counted in between.
        let records = if counter.is_some() { 0 } else { sample.lines * FIRST_RECORD as u64 };
        progress.expect_total((2 * sample.bytes).saturating_add(records));
        let distinct = sample.distinct;
        drop(sample);
        if let Some(counter) = counter
            && let Some(lines) = self.in_memory(&refs, counter, out)?
        {
            return Ok(lines);
        }
        self.by_partition(inputs, distinct, out)
    }

    /// Counts records, partition by partition.
    fn by_partition(
        mut self,
        inputs: &[Input],
        distinct: u64,
        out: &mut CountOutput<'_>,
    ) -> Result<u64> {
        let refs: Vec<_> = inputs.iter().collect();
        let spill_file = SpillFile::new(self.temp)?;
        let half = self.memory / 2;
        let workers = self.context.budget.workers as u64;
        let capacity = FingerprintMap::<Counted>::capacity(half / 4 * 3 / workers);
        let max = SpillWriter::max_streams(half).min(MAX_PARTITIONS);
        let partitioning = Partitioning::new((2 * distinct / capacity.max(1) + 1).clamp(1, max));
        let spill = SpillWriter::new(&spill_file, partitioning.partitions(), half);
        let mut records = RecordSink::new(&partitioning, spill);
        let starts = |input: usize| positions_of_inputs(&inputs[..=input], 0).map(|all| all[input]);
        let pass = self.context.pass();
        let passes = JobPasses { pass, hasher: &self.hasher };
        let read = passes.write_records(
            "reading",
            &refs,
            Side::First,
            LineSelector::All,
            starts,
            &mut records,
            None,
        )?;
        let length = inputs.iter().map(Input::known_length).sum::<Result<u64>>()?;
        let spans = Spans::new(length, SpillWriter::max_streams(half / 4 / workers));
        let counter = PartitionCounter {
            spill_file: &spill_file,
            spans,
            memory: half,
            workers: self.context.budget.workers,
            min_count: out.min_count,
            top: Mutex::new(std::mem::take(&mut self.top)),
            progress: self.context.settings.progress,
        };
        let counted = counter.count(records.into_records(), &partitioning)?;
        let top = counter.top.into_inner().unwrap_or_else(PoisonError::into_inner);
        out.min_count = out.min_count.max(top.least());
        let positions = CountedPositions::new(spans, counted, &spill_file, half);
        self.print(inputs, positions, out)?;
        Ok(read.lines)
    }

    /// Prints the lines at positions.
    fn print<'p, 'm, 'o>(
        &self,
        inputs: &[Input],
        positions: CountedPositions<'p>,
        out: &'m mut CountOutput<'o>,
    ) -> Result<()> {
        let starts = positions_of_inputs(inputs, 0)?;
        let ends =
            inputs.iter().map(|input| RecordEnds::of(input, self.context.settings.delimiter));
        let ends: Vec<_> = ends.collect();
        let each = |text: LineChunk<'_>,
                    (): &mut (),
                    ticket: &mut Ticket<'_, Printing<'p, 'm, 'o>>| {
            let Some((positions, out)) = ticket.wait() else { return Ok(None) };
            let begin = starts[text.input] + text.offset;
            while let Some((at, count)) = positions.next_below(begin + text.bytes.len() as u64)? {
                // No line starts before its chunk.
                let Some(line) = at.checked_sub(begin).and_then(|at| text.bytes.get(at as usize..))
                else {
                    continue;
                };
                let end = ends[text.input].first(line).unwrap_or(line.len());
                out.add(count, &line[..end])?;
            }
            Ok(Some(ControlFlow::Continue(())))
        };
        let refs: Vec<_> = inputs.iter().collect();
        let pass = self.context.pass();
        pass.chunks().run("printing", &refs, |_, _| Ok(true), (positions, out), each)?;
        Ok(())
    }
}

/// What the chunks of the last pass share.
type Printing<'p, 'm, 'o> = (CountedPositions<'p>, &'m mut CountOutput<'o>);

const MAX_PARTITIONS: u64 = 1024;
