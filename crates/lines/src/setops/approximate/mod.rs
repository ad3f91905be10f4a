//! Approximate set operations: one pass over each input, decided by filters alone.
//!
//! * `common` prints every right line, and wrong lines of the first input with about the filter's
//!   false-positive rate. The others are chained: each is narrowed by the filter of those before it.
//! * `diff` and `dedup` print no wrong line, but lose lines that the filter reports as present, with
//!   its rate at that time.
//!
//! For `diff` and `dedup` the number of distinct lines is estimated from the number that were new and
//! the rate meanwhile ([`estimated_insertions`]); the difference is the number of lost lines `L`.
//! Each of `D` lines is lost with the mean rate p, so the variance is about `L / (1 - p)`.

mod common;

use std::ops::ControlFlow;
use std::time::Instant;

use petal::{BloomFilter, ByteSize, Membership as _};

use super::planning::{Sample, estimated_insertions, filter_bytes};
use super::report::Report;
use super::set_semantics::SetOp;
use crate::error::{Advice, Error, Result, Setting};
use crate::fingerprint::LineHasher;
use crate::input::Input;
use crate::memory::Budget;
use crate::output::Printer;
use crate::progress::{Note, Progress};
use crate::scan::{Batch, Pass, Scratch};

/// An approximate job.
pub(super) struct ApproximateJob<'a> {
    pub(super) op: SetOp,
    pub(super) budget: Budget,
    pub(super) delimiter: u8,
    pub(super) progress: &'a dyn Progress,
    pub(super) hasher: LineHasher,
    /// Number of lines to plan for if the size of an input is unknown.
    pub(super) capacity: Option<u64>,
    /// Target false-positive rate; `None`: the lowest that fits.
    pub(super) fpr: Option<f64>,
}

impl ApproximateJob<'_> {
    fn pass(&self) -> Pass<'_> {
        Pass { budget: self.budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }

    pub(super) fn run(
        &self,
        first: &[Input],
        others: &[Input],
        printer: &mut Printer<'_>,
    ) -> Result<Report> {
        let begun = Instant::now();
        let mut report = Report { strategy: "approximate".into(), ..Report::new(begun) };
        let first: Vec<_> = first.iter().collect();
        match self.op {
            SetOp::Common => self.common(&first, others, printer, &mut report)?,
            SetOp::Diff | SetOp::Dedup => self.diff(&first, others, printer, &mut report)?,
            SetOp::AtLeast(_)
            | SetOp::SymDiff
            | SetOp::DedupLast
            | SetOp::Duplicates
            | SetOp::Unique => {
                return Err(Error::no_approximate_mode());
            }
        }
        printer.flush()?;
        report.kept = printer.lines;
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }

    /// Returns the number of lines to plan for, if known.
    fn lines(&self, inputs: &[&Input]) -> Result<Option<u64>> {
        if !inputs.iter().all(|input| input.is_repeatable()) {
            if self.capacity.is_none() && self.fpr.is_some() {
                let problem = "the size of an input that is not a file is unknown";
                return Err(Error::setting_is(Setting::Fpr, problem)
                    .advise(Advice::Specify(Setting::Capacity)));
            }
            return Ok(self.capacity);
        }
        let (hasher, budget) = (&self.hasher, &self.budget);
        let sample = Sample::of(inputs, hasher, self.delimiter, budget, [0, 1], self.progress)?;
        // All lines, not the distinct ones: their estimate may be low, and the filter would then
        // exceed its rate.
        Ok(Some(sample.lines.max(1)))
    }

    fn filter(&self, keys: Option<u64>, memory: u64) -> Result<BloomFilter> {
        filter_within(&self.budget, memory, keys, self.fpr)
    }

    fn keys_of(&self, batch: &Batch<'_>, scratch: &mut Scratch) {
        scratch.hash_lines(batch, self.hasher.spec());
    }

    fn diff(
        &self,
        first: &[&Input],
        others: &[Input],
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let others: Vec<_> = others.iter().collect();
        let (other_lines, first_lines) = (self.lines(&others)?, self.lines(first)?);
        let keys =
            other_lines.zip(first_lines).map(|(a, b)| if others.is_empty() { b } else { a + b });
        let mut filter = self.filter(keys, self.budget.work)?;
        let wrong =
            keys.zip(first_lines).map(|(keys, lines)| expected_losses(&filter, keys, lines));
        let rate = filter.expected_fpr(keys.unwrap_or(filter.capacity()));
        self.progress.note(Note::Expecting { wrong_lines: wrong, fpr: rate });
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results);
            Ok(ControlFlow::Continue(()))
        };
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| self.keys_of(batch, scratch);
        if !others.is_empty() {
            report.add_pass(self.pass().run("filtering", &others, map, fold)?);
        }
        let live = !first.iter().all(|input| input.is_repeatable());
        let before = filter.inserted();
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results);
            let mut gap = 0;
            for line in scratch.results.iter() {
                printer.rest(batch.range(gap..line))?;
                printer.line(batch.line(line))?;
                gap = line + 1;
            }
            printer.rest(batch.range(gap..batch.len()))?;
            if live && !batch.more {
                printer.flush()?;
            }
            Ok(ControlFlow::Continue(()))
        };
        let stats = self.pass().run("matching", first, map, fold)?;
        report.add_pass(stats);
        report.set_survivors(printer.lines);
        report.first_lines = stats.lines;
        (report.wrong, report.wrong_error) = lost_lines(&filter, before);
        Ok(())
    }
}

/// Returns a filter for `keys` keys within `memory` bytes; `None`: a filter that uses all of them.
pub(crate) fn filter_within(
    budget: &Budget,
    memory: u64,
    keys: Option<u64>,
    fpr: Option<f64>,
) -> Result<BloomFilter> {
    let Some(keys) = keys else {
        // Assume ten bits per key, so that all memory is used.
        return Ok(BloomFilter::with_memory(memory * 8 / 10, ByteSize::bytes(memory))?);
    };
    let Some(rate) = fpr else {
        return Ok(BloomFilter::with_memory(keys, ByteSize::bytes(filter_bytes(keys, memory)))?);
    };
    let needed = BloomFilter::builder().capacity(keys).fpr(rate).plan()?.size_bytes();
    if needed > memory {
        return Err(Error::filter_too_large(
            keys,
            rate,
            needed,
            budget.limit,
            "the limit",
            Setting::MemoryLimit,
        )
        .advise(Advice::Raise(Setting::Fpr)));
    }
    Ok(BloomFilter::with_fpr(keys, rate)?)
}

/// Returns how many of the last `lines` of `keys` keys a filter is expected to lose.
pub(crate) fn expected_losses(filter: &BloomFilter, keys: u64, lines: u64) -> f64 {
    // The filter fills while lines are tested: take the mean rate.
    let before = keys - lines.min(keys);
    let at = |step: u64| filter.expected_fpr(before + lines / 16 * step);
    let mean = (0..16).map(|step| (at(step) + at(step + 1)) / 2.0).sum::<f64>() / 16.0;
    mean * lines as f64
}

/// Estimates how many distinct lines were lost after the first `before` keys of a filter, and the standard
/// error. NaN if the filter is too full.
pub(crate) fn lost_lines(filter: &BloomFilter, before: u64) -> (f64, f64) {
    // A filter that reports most absent lines as present allows no estimate.
    let overfull = filter.expected_fpr(filter.inserted()) > 0.5;
    let (present, new) = (estimated_insertions(filter, 0.0, before), filter.inserted() - before);
    let lost = estimated_insertions(filter, present, new) - present - new as f64;
    // `max` would make 0 of NaN.
    let error = (lost.max(0.0) * (1.0 + lost / (new as f64).max(1.0))).sqrt();
    if overfull || lost.is_nan() { (f64::NAN, f64::NAN) } else { (lost, error) }
}
