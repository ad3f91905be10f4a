//! Approximate set operations: one pass over each input, decided by filters alone.
//!
//! * `common` prints every right line, and wrong lines of the first input with about the filter's
//!   false-positive rate. The others are chained: each is narrowed by the filter of those before it.
//! * `diff` and `dedup` print no wrong line, but lose lines that the filter reports as present, with
//!   its rate at that time.
//!
//! Printed lines of `common` are kept as fingerprints, so that each is printed once. When the memory
//! for them is full, lines may be repeated, and the report says so.
//!
//! # Estimated wrong lines of `common`
//! Let `F_1 .. F_m` be the filters of the others `B_1 .. B_m`, each with the rate `r_j` that follows
//! from its bits when it is full, and let a line's *chance* `c_j` be the probability that `F_j`
//! contains it. A line enters `F_j` if it is in `B_j` and `F_{j-1}` contains it, so
//!
//! * `c_j = c_{j-1} + (1 - c_{j-1}) r_j` for a line of `B_j`, with `c_0 = 1`;
//! * `c_j = r_j` for all others.
//!
//! The expected number of wrong lines is the sum of `c_m` over the distinct lines of `A` that are
//! not in all others. It has two parts:
//!
//! * Lines that were not inserted into `F_m`: a share `r_m` of them is printed. With `M` distinct
//!   lines of `A` that were not printed, these are about `M r_m / (1 - r_m)`.
//! * Lines that were inserted into `F_m`: the sum of `c_{m-1}` over the lines of `A` and `B_m` that
//!   are not in all others. It is computed from a sample of hashes, the same share of the hashes of
//!   each input: the sample of `B_j` shows which of them it contains, with their `c_{j-1}`. This part
//!   is zero for two inputs.
//!
//! The filters must err independently, so each uses a hash of its own: the hash of the line times a
//! power of [`STEP`]. With one hash for all, a line in `F_1` would share its bits with the lines that
//! `F_1` wrongly passed to `F_2` (a third more wrong lines were measured).
//!
//! Nothing is assumed about which lines `A` shares with which others, or about repeats. The variance
//! has three parts: the number of wrong lines is a count of rare events (variance at most the
//! expected number); the error of `M` once its sample is full ([`HashSample`]); and the sum over the
//! sample, in which each hash represents `2^depth` lines (variance at most the sum of the squares of
//! its terms).
//!
//! For `diff` and `dedup` the number of distinct lines is estimated from the number that were new and
//! the rate meanwhile ([`estimated_insertions`]); the difference is the number of lost lines `L`.
//! Each of `D` lines is lost with the mean rate p, so the variance is about `L / (1 - p)`.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use petal::{BlockedLayout, BloomFilter, ByteSize, Membership as _};

use super::planning::Sample;
use super::planning::{HashSample, depth_of};
use super::planning::{estimated_insertions, filter_bytes};
use super::report::Report;
use super::set_semantics::SetOp;
use crate::error::{Error, Result};
use crate::fingerprint::{LineHasher, Table};
use crate::io::{Input, Printer};
use crate::memory::Budget;
use crate::progress::{Note, Progress};
use crate::scan::{Batch, Pass, Scratch};

/// Share of the memory for each of two samples of hashes.
const SAMPLE_SHARE: u64 = 64;

/// Factor between the hashes of a line in two consecutive filters: an odd number without structure.
const STEP: u64 = 0xd134_2543_de82_ef95;

/// The inverse of [`STEP`].
const STEP_BACK: u64 = {
    // Newton's iteration: each round doubles the number of correct bits.
    let mut inverse = STEP;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(STEP.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

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
        let mut report = Report { strategy: "approximate".into(), ..Report::begin(begun) };
        let first: Vec<_> = first.iter().collect();
        match self.op {
            SetOp::Common => self.common(&first, others, printer, &mut report)?,
            SetOp::Diff | SetOp::Dedup => self.diff(&first, others, printer, &mut report)?,
            SetOp::AtLeast(_) | SetOp::SymDiff | SetOp::Duplicates | SetOp::Unique => {
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
                return Err(Error::unknown_size());
            }
            return Ok(self.capacity);
        }
        let (hasher, budget) = (&self.hasher, &self.budget);
        let sample = Sample::of(inputs, hasher, self.delimiter, budget, [0, 1], self.progress)?;
        // All lines, not the distinct ones: their estimate may be low, and the filter would then
        // exceed its rate.
        Ok(Some(sample.lines.max(1)))
    }

    /// Returns a filter for `keys` keys; `None`: a filter that uses all memory.
    fn filter(&self, keys: Option<u64>, memory: u64) -> Result<BloomFilter> {
        let Some(keys) = keys else {
            // Assume ten bits per key, so that all memory is used.
            return Ok(BloomFilter::with_memory(memory * 8 / 10, ByteSize::bytes(memory))?);
        };
        let Some(rate) = self.fpr else {
            return Ok(BloomFilter::with_memory(
                keys,
                ByteSize::bytes(filter_bytes(keys, memory)),
            )?);
        };
        let needed = BlockedLayout::for_fpr(keys, rate)?.size_bytes();
        if needed > memory {
            return Err(Error::filter_too_large(keys, rate, needed, self.budget.limit));
        }
        Ok(BloomFilter::with_fpr(keys, rate)?)
    }

    fn keys_of(&self, batch: &Batch<'_>, scratch: &mut Scratch) {
        scratch.hash_lines(batch, self.hasher.spec());
    }

    fn common(
        &self,
        first: &[&Input],
        others: &[Input],
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        // A chain has two filters at a time; the last one leaves memory for printed lines.
        let share = self.budget.work / if others.len() > 1 { 8 } else { 4 } * 3;
        let sample_bytes = self.budget.work / SAMPLE_SHARE;
        let mut chain: Option<Link> = None;
        for (number, other) in (0u32..).zip(others) {
            let mut filter = self.filter(self.lines(&[other])?, share)?;
            let before = chain.take();
            // With a single other input no sample is needed.
            let samples = others.len() > 1;
            let depth = before.as_ref().map_or(0, |before| before.sample.depth());
            let mut sample = HashSample::new(sample_bytes, depth);
            let reached = AtomicU32::new(depth);
            let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
                self.keys_of(batch, scratch);
                scratch.sampled.clear();
                if samples {
                    let depth = reached.load(Ordering::Relaxed);
                    let deep = scratch.hashes.iter().filter(|&&key| depth_of(key) >= depth);
                    scratch.sampled.extend(deep.map(|&key| (key, true)));
                }
                if let Some(before) = &before {
                    multiply(&mut scratch.hashes, STEP.wrapping_pow(number - 1));
                    before.filter.contains_mixed_hashes(&scratch.hashes, &mut scratch.results);
                    let mut at = 0;
                    scratch.hashes.retain(|_| {
                        at += 1;
                        scratch.results.get(at - 1)
                    });
                    multiply(&mut scratch.hashes, STEP);
                }
            };
            let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
                for &(key, _) in &scratch.sampled {
                    sample.insert(key, before.as_ref().map_or(1.0, |before| before.chance(key)));
                }
                reached.store(sample.depth(), Ordering::Relaxed);
                filter.insert_mixed_hashes_uncounted(&scratch.hashes);
                Ok(ControlFlow::Continue(()))
            };
            report.add_pass(self.pass().run("filtering", &[other], map, fold)?);
            chain = Some(Link { rate: filter.estimated_fpr(), filter, sample });
        }
        let Some(Link { filter, rate, mut sample }) = chain else { return Ok(()) };
        // Upper bound: no line of the first input is in the others, and all wrongly inserted lines
        // are in the first input.
        let strays = sample.numbers().filter(|chance| *chance < 1.0).sum::<f64>() * sample.weight();
        let wrong =
            self.lines(first)?.map(|lines| (rate * lines as f64 + strays).min(lines as f64));
        self.progress.note(Note::Expecting { wrong_lines: wrong, fpr: rate });
        let memory = self.budget.work.saturating_sub(filter.size_bytes());
        let mut printed = Table::new(memory.saturating_sub(2 * sample_bytes), 0)?;
        let mut missed = HashSample::new(sample_bytes, 0);
        let (missed_depth, sample_depth) = (AtomicU32::new(0), sample.depth());
        let chained = others.len() > 1;
        let steps = others.len() as u32 - 1;
        let back = STEP_BACK.wrapping_pow(steps);
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.keys_of(batch, scratch);
            if chained {
                multiply(&mut scratch.hashes, STEP.wrapping_pow(steps));
            }
            filter.contains_mixed_hashes(&scratch.hashes, &mut scratch.results);
            scratch.selected.clear();
            scratch.selected.extend(scratch.results.iter());
            scratch.fingerprints.clear();
            let picked = scratch.selected.iter().map(|&line| batch.key(line));
            self.hasher.fingerprints(picked, &mut scratch.fingerprints);
            scratch.sampled.clear();
            let missed_depth = missed_depth.load(Ordering::Relaxed);
            for (at, key) in scratch.hashes.iter().enumerate() {
                let (key, held) = (key.wrapping_mul(back), scratch.results.get(at));
                if held && !chained {
                    continue;
                }
                let depth = depth_of(key);
                if depth >= missed_depth && !held || depth >= sample_depth && chained {
                    scratch.sampled.push((key, held));
                }
            }
        };
        let live = !first.iter().all(|input| input.is_repeatable());
        // Sums of the chances, and of their squares, of sampled lines that are in the first input and
        // not in all others.
        let (mut strays, mut squares) = (0.0, 0.0);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            for &(key, held) in &scratch.sampled {
                if !held {
                    missed.insert(key, 0.0);
                }
                // Removed, so that a line counts once.
                if let Some(chance) = sample.remove(key).filter(|chance| *chance < 1.0) {
                    strays += chance;
                    squares += chance * chance;
                }
            }
            missed_depth.store(missed.depth(), Ordering::Relaxed);
            // Start of the lines before the next printed one.
            let mut gap = 0;
            for (&line, &fingerprint) in scratch.selected.iter().zip(&scratch.fingerprints) {
                let new = match printed.entry(fingerprint, 0)? {
                    Ok((new, _)) => new,
                    Err(_) => {
                        report.repeats_possible = true;
                        true
                    }
                };
                if new {
                    printer.rest(batch.range(gap..line))?;
                    printer.line(batch.line(line))?;
                    gap = line + 1;
                }
            }
            printer.rest(batch.range(gap..batch.len()))?;
            if live && !batch.more {
                printer.flush()?;
            }
            Ok(ControlFlow::Continue(()))
        };
        let seen = self.pass().run("matching", first, map, fold)?;
        report.add_pass(seen);
        report.set_survivors(printer.lines);
        report.first_lines = seen.lines;
        let odds = rate / (1.0 - rate).max(f64::MIN_POSITIVE);
        let (misses, error) = missed.distinct();
        let weight = f64::from(sample_depth).exp2();
        report.wrong = misses * odds + strays * weight;
        let sampling = if sample_depth == 0 { 0.0 } else { squares * weight * weight };
        let variance = report.wrong + (error * odds).powi(2) + sampling;
        report.wrong_error = if report.wrong == 0.0 { 0.0 } else { variance.sqrt() };
        Ok(())
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
        // The filter fills while lines are tested: take the mean rate.
        let wrong = keys.zip(first_lines).map(|(keys, lines)| {
            let before = keys - lines.min(keys);
            let at = |step: u64| filter.expected_fpr(before + lines / 16 * step);
            let mean = (0..16).map(|step| (at(step) + at(step + 1)) / 2.0).sum::<f64>() / 16.0;
            mean * lines as f64
        });
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
        let seen = self.pass().run("matching", first, map, fold)?;
        report.add_pass(seen);
        report.set_survivors(printer.lines);
        report.first_lines = seen.lines;
        // A filter that reports most absent lines as present allows no estimate.
        let overfull = filter.expected_fpr(filter.inserted()) > 0.5;
        let (held, new) = (estimated_insertions(&filter, 0.0, before), filter.inserted() - before);
        let lost = estimated_insertions(&filter, held, new) - held - new as f64;
        // `max` would make 0 of NaN.
        let error = (lost.max(0.0) * (1.0 + lost / (new as f64).max(1.0))).sqrt();
        let unknown = overfull || lost.is_nan();
        (report.wrong, report.wrong_error) =
            if unknown { (f64::NAN, f64::NAN) } else { (lost, error) };
        Ok(())
    }
}

fn multiply(keys: &mut [u64], factor: u64) {
    keys.iter_mut().for_each(|key| *key = key.wrapping_mul(factor));
}

/// The complete filter of another input, and a sample of that input's lines.
struct Link {
    filter: BloomFilter,
    rate: f64,
    /// The chance of each line to be in the filter because the filters before contained it: 1 if it
    /// is in all inputs before.
    sample: HashSample,
}

impl Link {
    /// Returns the chance that the filter contains a hash that is as deep as the sample.
    fn chance(&self, key: u64) -> f64 {
        self.sample.get(key).map_or(self.rate, |chance| chance + (1.0 - chance) * self.rate)
    }
}
