//! Approximate `common`: a chain of filters of the other inputs, then one pass over the first.
//!
//! Each other input fills a filter with those of its lines that the filter before contains. The last
//! filter decides which lines of the first input are printed.
//!
//! Printed lines are kept as fingerprints, so that each is printed once. When the memory
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

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use petal::{BloomFilter, Membership as _};

use super::ApproximateJob;
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::Input;
use crate::output::Printer;
use crate::progress::Note;
use crate::scan::{Batch, Scratch};
use crate::setops::planning::{HashSample, depth_of};
use crate::setops::report::Report;

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

impl ApproximateJob<'_> {
    pub(super) fn common(
        &self,
        first: &[&Input],
        others: &[Input],
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let Some(last) = self.filter_others(others, report)? else { return Ok(()) };
        self.note_expected(first, &last)?;
        self.print_contained(first, last, others.len() as u32 - 1, printer, report)
    }

    fn sample_bytes(&self) -> u64 {
        self.budget.work / SAMPLE_SHARE
    }

    /// Fills the filters of the other inputs. Returns the last one.
    fn filter_others(&self, others: &[Input], report: &mut Report) -> Result<Option<Link>> {
        // With a single other input no sample is needed.
        let chained = others.len() > 1;
        // A chain has two filters at a time; the last one leaves memory for printed lines.
        let share = self.budget.work / if chained { 8 } else { 4 } * 3;
        let mut last: Option<Link> = None;
        for (number, other) in (0u32..).zip(others) {
            let filter = self.filter(self.lines(&[other])?, share)?;
            last = Some(self.fill(filter, number, other, last.take(), chained, report)?);
        }
        Ok(last)
    }

    /// Fills the filter of an input with those of its lines that the filter before contains.
    fn fill(
        &self,
        mut filter: BloomFilter,
        number: u32,
        input: &Input,
        before: Option<Link>,
        chained: bool,
        report: &mut Report,
    ) -> Result<Link> {
        let depth = before.as_ref().map_or(0, |before| before.sample.depth());
        let mut sample = HashSample::new(self.sample_bytes(), depth);
        let reached = AtomicU32::new(depth);
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.keys_of(batch, scratch);
            scratch.sampled.clear();
            if chained {
                let depth = reached.load(Ordering::Relaxed);
                let deep = scratch.hashes.iter().filter(|&&key| depth_of(key) >= depth);
                scratch.sampled.extend(deep.map(|&key| (key, true)));
            }
            if let Some(before) = &before {
                before.retain_contained(number - 1, scratch);
            }
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for &(key, _) in &scratch.sampled {
                sample.insert(key, before.as_ref().map_or(1.0, |before| before.chance(key)));
            }
            reached.store(sample.depth(), Ordering::Relaxed);
            filter.put_mixed_hashes(&scratch.hashes);
            Ok(ControlFlow::Continue(()))
        };
        report.add_pass(self.pass().run("filtering", &[input], map, fold)?);
        Ok(Link { rate: filter.stats().estimated_fpr, filter, sample })
    }

    /// Reports an upper bound of the number of wrong lines, which is reached if no line of the first
    /// input is in the others and all wrongly inserted lines are in it.
    fn note_expected(&self, first: &[&Input], last: &Link) -> Result<()> {
        let Link { rate, sample, .. } = last;
        let strays = sample.numbers().filter(|chance| *chance < 1.0).sum::<f64>() * sample.weight();
        let wrong =
            self.lines(first)?.map(|lines| (rate * lines as f64 + strays).min(lines as f64));
        self.progress.note(Note::Expecting { wrong_lines: wrong, fpr: *rate });
        Ok(())
    }

    /// Prints the lines of the first input that the last filter contains, and estimates how many of
    /// them are wrong. `steps`: number of the filters before the last one.
    fn print_contained(
        &self,
        first: &[&Input],
        last: Link,
        steps: u32,
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let Link { filter, rate, sample } = last;
        let memory = self.budget.work.saturating_sub(filter.size_bytes());
        let mut printed = Table::new(memory.saturating_sub(2 * self.sample_bytes()), 0)?;
        let selection = SampleSelection {
            chained: steps > 0,
            inverse: STEP_BACK.wrapping_pow(steps),
            depth: sample.depth(),
            missed_depth: AtomicU32::new(0),
        };
        let mut wrong = WrongLines::new(sample, HashSample::new(self.sample_bytes(), 0));
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.keys_of(batch, scratch);
            if steps > 0 {
                multiply(&mut scratch.hashes, STEP.wrapping_pow(steps));
            }
            filter.contains_mixed_hashes(&scratch.hashes, &mut scratch.results);
            scratch.selected.clear();
            scratch.selected.extend(scratch.results.iter());
            scratch.fingerprints.clear();
            let picked = scratch.selected.iter().map(|&line| batch.key(line));
            self.hasher.fingerprints(picked, &mut scratch.fingerprints);
            selection.select(scratch);
        };
        let live = !first.iter().all(|input| input.is_repeatable());
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            wrong.add(&scratch.sampled);
            selection.missed_depth.store(wrong.missed.depth(), Ordering::Relaxed);
            report.repeats_possible |= print_new(batch, scratch, &mut printed, printer)?;
            if live && !batch.more {
                printer.flush()?;
            }
            Ok(ControlFlow::Continue(()))
        };
        let stats = self.pass().run("matching", first, map, fold)?;
        report.add_pass(stats);
        report.set_survivors(printer.lines);
        report.first_lines = stats.lines;
        (report.wrong, report.wrong_error) = wrong.estimate(rate);
        Ok(())
    }
}

/// Prints the selected lines of a batch that were not printed before. Returns whether the table of
/// printed lines is full, so that a line may be repeated.
fn print_new(
    batch: &Batch<'_>,
    scratch: &Scratch,
    printed: &mut Table,
    printer: &mut Printer<'_>,
) -> Result<bool> {
    let mut full = false;
    // Start of the lines before the next printed one.
    let mut gap = 0;
    for (&line, &fingerprint) in scratch.selected.iter().zip(&scratch.fingerprints) {
        let new = match printed.entry(fingerprint, 0)? {
            Ok((new, _)) => new,
            Err(_) => {
                full = true;
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
    Ok(full)
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

    /// Keeps the hashes of lines that the filter contains, multiplied for the next filter. `number`:
    /// number of the filters before this one.
    fn retain_contained(&self, number: u32, scratch: &mut Scratch) {
        multiply(&mut scratch.hashes, STEP.wrapping_pow(number));
        self.filter.contains_mixed_hashes(&scratch.hashes, &mut scratch.results);
        let mut at = 0;
        scratch.hashes.retain(|_| {
            at += 1;
            scratch.results.get(at - 1)
        });
        multiply(&mut scratch.hashes, STEP);
    }
}

/// Selects hashes of the first input for the samples of [`WrongLines`].
struct SampleSelection {
    /// Whether there are several filters.
    chained: bool,
    /// Factor from the hash for the last filter to the hash of the line.
    inverse: u64,
    /// Depth of the last filter's sample.
    depth: u32,
    /// Depth of the sample of lines that the last filter does not contain.
    missed_depth: AtomicU32,
}

impl SampleSelection {
    /// Selects the hashes of a batch that a sample may contain.
    fn select(&self, scratch: &mut Scratch) {
        scratch.sampled.clear();
        let missed_depth = self.missed_depth.load(Ordering::Relaxed);
        for (at, key) in scratch.hashes.iter().enumerate() {
            let (key, found) = (key.wrapping_mul(self.inverse), scratch.results.get(at));
            if found && !self.chained {
                continue;
            }
            let depth = depth_of(key);
            if depth >= missed_depth && !found || depth >= self.depth && self.chained {
                scratch.sampled.push((key, found));
            }
        }
    }
}

/// Sums over the lines of the first input, from which the number of wrong lines is estimated.
struct WrongLines {
    /// The sample of the last filter, without the lines that are in the first input.
    sample: HashSample,
    /// A sample of the lines that the last filter does not contain.
    missed: HashSample,
    /// Sum of the chances of sampled lines that are in the first input and not in all others.
    chances: f64,
    /// Sum of the squares of these chances.
    squares: f64,
}

impl WrongLines {
    fn new(sample: HashSample, missed: HashSample) -> Self {
        Self { sample, missed, chances: 0.0, squares: 0.0 }
    }

    /// Adds hashes of the first input, each with whether the last filter contains it.
    fn add(&mut self, sampled: &[(u64, bool)]) {
        for &(key, found) in sampled {
            if !found {
                self.missed.insert(key, 0.0);
            }
            // Removed, so that a line counts once.
            if let Some(chance) = self.sample.remove(key).filter(|chance| *chance < 1.0) {
                self.chances += chance;
                self.squares += chance * chance;
            }
        }
    }

    /// Returns the estimated number of wrong lines and its standard error. `rate`: the last filter's.
    fn estimate(&self, rate: f64) -> (f64, f64) {
        let odds = rate / (1.0 - rate).max(f64::MIN_POSITIVE);
        let (misses, error) = self.missed.distinct();
        let weight = self.sample.weight();
        let wrong = misses * odds + self.chances * weight;
        let sampling = match self.sample.depth() {
            0 => 0.0,
            _ => self.squares * weight * weight,
        };
        let variance = wrong + (error * odds).powi(2) + sampling;
        (wrong, if wrong == 0.0 { 0.0 } else { variance.sqrt() })
    }
}
