//! The set verbs, exactly. The phases, and how they follow from the strategy.
//!
//! * **Memory**: a judge is shown the lines as they are read, and answers are printed at once.
//!   Should the table fill up under `diff` or `dedup` while lines are being printed, what was
//!   printed stands: its fingerprints become one more "other" and the rest of the input goes on
//!   as `Partition`.
//! * **Partition**: every line becomes a record, records are resolved by partition, and a last
//!   pass over the first input prints the positions kept.
//! * **Narrow**, `common`: filter one side, keep the other side's hits, filter those, keep the
//!   first side's hits; resolve and print as above.
//! * **Narrow**, `diff` and `dedup`: put all lines through one filter; a line that it has not
//!   seen is certainly new. The lines it has seen are *questioned*: filter their keys, collect
//!   every line with such a key, resolve, and print all lines but those dropped.

mod forecast;
mod gather;
mod journal;
mod memory;

use std::time::Instant;

use petal::BloomFilter;

use crate::budget::{Budget, least_records};
use crate::error::Result;
use crate::fingerprint::Hashes;
use crate::input::{Input, Temp};
use crate::judge::Verb;
use crate::marks::{Listed, Marks, Spans};
use crate::pass::Pass;
use crate::plan::{Plan, Sample, Sizes, Strategy};
use crate::print::{Printer, print_marked};
use crate::progress::Progress;
use crate::report::Report;
use crate::resolve::Digits;
use crate::spill::{Scratchpad, Spill, Stream};
use crate::steps::Steps;
use crate::table::Table;

pub use forecast::{Forecast, Sampled};
use gather::Gather;
pub(crate) use journal::Journal;
pub use journal::forget_work;

/// Bytes that a stream of records takes when it is empty, twice while streams are put together.
const STREAM_COST: u64 = 256;

/// What a table should take to stay in a core's own cache, in bytes.
const CACHE: u64 = 1 << 20;

/// One exact job.
pub(crate) struct Exact<'a> {
    pub(crate) verb: Verb,
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) temp: Temp,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) hashes: Hashes,
    /// Where finished phases are written down.
    pub(crate) journal: Option<&'a Journal>,
}

/// What the phases so far have brought: all that later ones need.
#[derive(Default)]
struct State {
    /// Phases that are done.
    done: usize,
    digits: Digits,
    listed: Listed,
    /// Records of the first input, by partition, and of each other.
    first: Vec<Stream>,
    others: Vec<Vec<Stream>>,
    /// Keys of lines that hit, for the next filter.
    keys: Stream,
    filter: Option<BloomFilter>,
    /// The phase that has filled the filter; 0 if it is not known yet.
    filled: usize,
    /// Which lines are listed, in spans, and how many.
    marks: Vec<Vec<Stream>>,
    spans: Option<Spans>,
    count: u64,
    report: Report,
}

impl Exact<'_> {
    fn pass(&self) -> Pass<'_> {
        Pass { budget: self.budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }

    fn steps(&self) -> Steps<'_> {
        Steps { pass: self.pass(), hashes: &self.hashes }
    }

    pub(crate) fn run(
        &self,
        first: Vec<Input>,
        others: Vec<Input>,
        printer: &mut Printer<'_>,
    ) -> Result<Report> {
        let begun = Instant::now();
        let mut report = Report::default();
        // Others are read twice by some strategies, and their sizes choose among them.
        let spool = |input: Input| input.spool(&self.temp, self.progress);
        let others = others.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
        let streams = !first.iter().all(Input::is_repeatable);
        let sizes = self.sizes(&first, &others)?;
        let plan = match self.strategy {
            _ if let Some(begun) = self.journal.and_then(Journal::plan) => begun,
            Some(strategy) => sizes.plan(strategy, false, &self.budget),
            // Of unknown size: begin in memory, and see.
            None if streams && self.begins_in_memory(&sizes) => {
                sizes.plan(Strategy::Memory, false, &self.budget)
            }
            None if streams => {
                drop(sizes);
                let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
                return self.run(first, others, printer);
            }
            None => sizes.choose(&self.budget),
        };
        report.strategy = plan.strategy.name().into();
        report.did("sampling", begun.elapsed().as_secs_f64());
        if plan.strategy == Strategy::Memory {
            self.in_memory(first, others, &sizes, printer, &mut report)?;
        } else {
            let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
            let others = Others::new(others);
            self.on_disk(plan, first, others, &sizes, printer, &mut report, self.journal)?;
        }
        printer.flush()?;
        report.kept = printer.lines;
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }

    fn sizes(&self, first: &[Input], others: &[Input]) -> Result<Sizes> {
        let among = others.len() + 1;
        let sample = |inputs: &[&Input]| {
            Sample::of(inputs, &self.hashes, self.delimiter, &self.budget, among, self.progress)
        };
        let files: Vec<_> = first.iter().filter(|input| input.is_repeatable()).collect();
        let others = || others.iter().map(|other| sample(&[other])).collect::<Result<_>>();
        if self.budget.workers == 1 {
            return Ok(Sizes::new(self.verb, sample(&files)?, others()?));
        }
        std::thread::scope(|scope| {
            let first = scope.spawn(|| sample(&files));
            let others = others()?;
            let first = first.join().expect("the sampling of the first input panicked")?;
            Ok(Sizes::new(self.verb, first, others))
        })
    }

    /// Whether a first input of unknown size can be judged while it streams by.
    fn begins_in_memory(&self, sizes: &Sizes) -> bool {
        let capacity = Table::capacity(self.budget.work) / 10 * 9;
        match self.verb {
            Verb::Dedup => true,
            Verb::Diff => sizes.others.iter().map(|o| o.distinct).sum::<u64>() <= capacity / 2,
            Verb::Common => {
                sizes.others.iter().map(|o| o.distinct).min().is_some_and(|d| d <= capacity)
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a job has, each of another kind")]
    fn on_disk(
        &self,
        plan: Plan,
        first: Vec<Input>,
        others: Others,
        sizes: &Sizes,
        printer: &mut Printer<'_>,
        report: &mut Report,
        journal: Option<&Journal>,
    ) -> Result<()> {
        let resumed = journal.map(|journal| journal.state(&first)).transpose()?.flatten();
        let state = resumed.unwrap_or_else(|| State {
            digits: self.digits(plan, sizes, others.prior.as_ref()),
            report: std::mem::take(report),
            ..State::default()
        });
        let pad = match journal {
            Some(journal) => journal.pad()?,
            None => Scratchpad::new(&self.temp)?,
        };
        let refs: Vec<_> = first.iter().collect();
        let mut work = Gather { job: self, journal, plan, first: &refs, pad: &pad, state, step: 0 };
        match (plan.strategy, self.verb) {
            (Strategy::Narrow, Verb::Common) if !others.lines.is_empty() => {
                work.narrow_common(&others.lines, sizes)?;
            }
            (Strategy::Narrow, Verb::Diff | Verb::Dedup) => {
                work.narrow_diff(&others.lines, sizes)?
            }
            _ => work.everything(&others.lines, others.prior)?,
        }
        let length = first.iter().map(Input::known_length).sum::<Result<u64>>()?;
        let share = self.budget.work / 8 / self.budget.workers as u64;
        // A job that began as a count may go on as one that prints.
        let marked = !printer.counts_only() || journal.is_some();
        work.decide(marked.then(|| Spans::new(length, Spill::most_streams(share))))?;
        *report = work.state.report;
        let State { listed, count, marks, spans, .. } = work.state;
        let kept = match listed {
            Listed::Kept => count,
            Listed::Dropped => report.first_lines - count,
        };
        let before = printer.lines;
        if let Some(spans) = spans
            && !printer.counts_only()
            && (kept > 0 || printer.takes_rest())
        {
            let marks = Marks::new(spans, marks, &pad, self.budget.work, self.budget.workers);
            report.saw(print_marked(&self.pass().chunks(), &first, 0, listed, &marks, printer)?);
        }
        printer.lines = before + kept;
        report.spilled += pad.written();
        Ok(())
    }

    /// Enough partitions that the table of each is likely to stay in the cache.
    fn digits(&self, plan: Plan, sizes: &Sizes, prior: Option<&Table>) -> Digits {
        let share = (self.budget.work / self.budget.workers as u64 / 4).min(CACHE);
        let entries = plan.entries + prior.map_or(0, |prior| prior.len() * 8);
        let wanted = entries / Table::capacity(share).max(1) + 1;
        // Each partition costs a little for each of the others, whether it holds anything or not.
        let each = STREAM_COST * (sizes.others.len() as u64 + 2);
        let affordable = Spill::most_streams(least_records(self.budget.work));
        let affordable = affordable.min(self.budget.work / 16 / each);
        Digits::new(wanted.clamp(1, affordable.clamp(1, 1024)))
    }
}

/// What the first input is compared with.
struct Others {
    lines: Vec<Input>,
    /// Lines that were printed already.
    prior: Option<Table>,
}

impl Others {
    fn new(lines: Vec<Input>) -> Self {
        Self { lines, prior: None }
    }
}
