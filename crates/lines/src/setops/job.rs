//! Set operations on files, as a caller specifies them.

use super::approximate::ApproximateJob;
use super::exact::{Counting, ExactJob, JobEstimate, Journal};
use super::planning::Strategy;
use super::report::Report;
use super::set_semantics::SetOp;
use crate::error::{Error, Result};
use crate::fingerprint::LineHasher;
use crate::input::{Input, Source};
use crate::job_context::JobContext;
use crate::output::Outputs;
use crate::settings::Settings;

/// Exact or approximate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// No wrong line and no missing line.
    Exact {
        /// The strategy; `None`: chosen by the cost model.
        strategy: Option<Strategy>,
    },
    /// One pass over each input; filters decide.
    Approx {
        /// Number of lines to plan for if the size of an input is unknown.
        capacity: Option<u64>,
        /// Target false-positive rate; `None`: the lowest that the memory limit allows.
        fpr: Option<f64>,
    },
}

/// A set operation on the lines of files.
#[derive(Clone, Debug)]
pub struct SetJob {
    /// The operation.
    pub op: SetOp,
    /// The first input, whose lines are printed in order. Several files are taken as one input.
    pub first: Vec<Source>,
    /// The other inputs of [`SetOp::Common`], [`SetOp::AtLeast`], [`SetOp::Diff`] and
    /// [`SetOp::SymDiff`]; ignored by the other operations. Without any, `Common` and `Diff` are [`SetOp::Dedup`].
    pub others: Vec<Source>,
    /// Exact or approximate.
    pub mode: Mode,
}

impl SetJob {
    /// Runs the job and writes the result.
    ///
    /// # Errors
    /// If an input cannot be read, changes during the job, or has a line longer than a quarter of the
    /// memory limit; if the output or a temporary file cannot be written; if the memory limit is too
    /// low; if the work directory contains another job; if the operation has no approximate mode. The
    /// output so far is then correct but incomplete.
    pub fn run(&self, settings: &Settings<'_>, outputs: Outputs<'_>) -> Result<Report> {
        let sources = self.sources();
        let (context, mut inputs) = JobContext::open(settings, &sources)?;
        let budget = context.budget;
        let op = self.op.with_others(sources.len() - self.first.len());
        let (delimiter, progress) = (settings.delimiter, settings.progress);
        let printed = if op.prints_others() { inputs.len() } else { self.first.len() };
        let mut rows = context.row_outputs(outputs, &inputs[..printed])?;
        let mut printer = context.started_printer(rows.outputs(), &inputs[..printed])?;
        let report = match self.mode {
            Mode::Exact { strategy } => {
                let journal = |dir| {
                    let (resume, limit, first) = (settings.resume, budget.limit, self.first.len());
                    let (keys, inputs) = (keys_text(settings, &sources), &mut inputs);
                    Journal::open(dir, resume, limit, op, delimiter, keys, inputs, first, progress)
                };
                let journal = settings.work_dir.as_deref().map(journal).transpose()?;
                let begun = journal.as_ref().and_then(Journal::hasher);
                if begun.is_some() {
                    // Passes of the earlier run are not repeated.
                    let count = |input: &Input| input.count_left_out(budget.decoder, progress);
                    inputs.iter().try_for_each(count)?;
                }
                let job = ExactJob {
                    op,
                    budget,
                    delimiter,
                    temp: context.temp_dir(),
                    progress,
                    strategy,
                    hasher: begun.map_or_else(LineHasher::random, Ok)?,
                    journal: journal.as_ref(),
                    boundary: self.first.len(),
                };
                let (first, others) = self.split(inputs);
                job.run(first, others, &mut printer)
            }
            Mode::Approx { .. } if op.needs_whole_first() => Err(Error::no_approximate_mode()),
            Mode::Approx { capacity, fpr } => {
                let hasher = LineHasher::random()?;
                let job = ApproximateJob { op, budget, delimiter, progress, hasher, capacity, fpr };
                let (first, others) = self.split(inputs);
                job.run(&first, &others, &mut printer)
            }
        }?;
        drop(printer);
        rows.finish()?;
        Ok(report)
    }

    /// Estimates an exact job. `with_output`: include the cost of printing.
    ///
    /// # Errors
    /// If an input cannot be read or is not a file; if the memory limit is too low.
    pub fn estimate(
        &self,
        settings: &Settings<'_>,
        with_output: bool,
        counting: Counting,
    ) -> Result<JobEstimate> {
        let sources = self.sources();
        let (context, inputs) = JobContext::open(settings, &sources)?;
        let strategy = match self.mode {
            Mode::Exact { strategy } => strategy,
            Mode::Approx { .. } => None,
        };
        let job = ExactJob {
            op: self.op.with_others(sources.len() - self.first.len()),
            budget: context.budget,
            delimiter: settings.delimiter,
            temp: context.temp_dir(),
            progress: settings.progress,
            strategy,
            hasher: LineHasher::random()?,
            journal: None,
            boundary: self.first.len(),
        };
        let (first, others) = self.split(inputs);
        job.estimate(&first, &others, with_output, counting)
    }

    /// Returns all inputs, those of the first input first.
    fn sources(&self) -> Vec<Source> {
        let others = if self.op.takes_others() { &self.others } else { &[][..] };
        self.first.iter().chain(others).cloned().collect()
    }

    fn split(&self, mut first: Vec<Input>) -> (Vec<Input>, Vec<Input>) {
        let printed = if self.op.prints_others() { first.len() } else { self.first.len() };
        let others = first.split_off(printed);
        (first, others)
    }
}

/// Returns how the keys of a job are made, for its journal.
fn keys_text(settings: &Settings<'_>, sources: &[Source]) -> String {
    let mut text = settings.keys.to_string();
    for (number, source) in sources.iter().enumerate() {
        if let Source::Keyed(..) = source {
            let fields = &source.keys(&settings.keys).fields;
            text.push_str(&format!("; {number}: {fields}"));
        }
    }
    text
}
