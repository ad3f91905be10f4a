//! The set verbs, approximately: one pass over each input, filters alone decide.
//!
//! * `common` never loses a line; it may print lines of the first input that are not in the
//!   others, each with about the filter's false-positive rate. The others are chained: each is
//!   narrowed by the filter of those before it.
//! * `diff` and `dedup` never print a wrong line; they may lose one whose key the filter seems
//!   to have seen, with the filter's rate at that time.
//!
//! Lines that `common` prints are kept as fingerprints, so that each is printed once; when that
//! memory is used up, lines may be repeated, and the report says so.
//!
//! # How many lines of `common` are wrong
//! Let `F_1 .. F_m` be the filters of the others `B_1 .. B_m`, each with the rate `r_j` that its
//! bits give when it is full, and let a line's *chance* `c_j` be the probability that `F_j`
//! contains it. A line enters `F_j` if it is in `B_j` and `F_{j-1}` contains it, so
//!
//! * `c_j = c_{j-1} + (1 - c_{j-1}) r_j` for a line of `B_j`, with `c_0 = 1`;
//! * `c_j = r_j` for all others.
//!
//! The expected number of wrong lines is the sum of `c_m` over the distinct lines of `A` that are
//! not in all others. It has two parts:
//!
//! * Lines that `F_m` did not take in: of those a share `r_m` is printed all the same. With `M`
//!   distinct lines of `A` that were not printed, these are about `M r_m / (1 - r_m)`.
//! * Lines that `F_m` took in: the sum of `c_{m-1}` over the lines of `A` and `B_m` that are not in
//!   all others. It is taken over a sample of keys, the same share of the hashes of each input: for
//!   those, the sample of `B_j` says which are in it, and what `c_{j-1}` is. This part is zero for
//!   two inputs.
//!
//! This needs filters that err independently. So each has keys of its own, the line's key times a
//! power of [`STEP`]: with one key for all, a line that `F_1` took in has its bits in common with
//! the lines that `F_1` wrongly let through to `F_2` (a third more wrong lines were seen).
//!
//! Nothing is assumed of which lines `A` shares with which others, or how often lines repeat. The
//! standard error has three parts, added as squares: the true number is a count of rare events of
//! which each happens or not (variance at most the expected number); `M`, once its sample is full
//! ([`sampled`]); and the sum over the sample, of which each key stands for `2^depth`
//! (variance at most the sum of the squares of what they add).
//!
//! For `diff` and `dedup` the number of distinct lines that came is estimated from the number that
//! seemed new and the rate meanwhile ([`given`]); the difference are the lines lost, `L`. Of `D`
//! lines each is lost with the mean rate p, so the variance is about `L / (1 - p)`.

mod sampled;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use petal::{BloomFilter, Shape};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::Input;
use crate::judge::Verb;
use crate::pass::{Batch, Flow, Pass, Scratch};
use crate::plan::{Sample, filter_bytes, given};
use crate::print::Printer;
use crate::progress::{Note, Progress};
use crate::report::Report;
use crate::table::Table;
use sampled::{Sampled, depth_of};

/// The part of the memory for each of two samples of keys.
const SAMPLE_SHARE: u64 = 64;

/// From the key of a line in a filter of the chain to that in the next; any odd number without
/// structure serves.
const STEP: u64 = 0xd134_2543_de82_ef95;

/// The way back.
const STEP_BACK: u64 = {
    // Newton's iteration: each round doubles the bits that are right.
    let mut inverse = STEP;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(STEP.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

/// One approximate job.
pub(crate) struct Approx<'a> {
    pub(crate) verb: Verb,
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) hashes: Hashes,
    /// Lines to expect of inputs whose size cannot be known.
    pub(crate) keys: Option<u64>,
    /// The false-positive rate to plan for; without one, the best that fits.
    pub(crate) rate: Option<f64>,
}

impl Approx<'_> {
    fn pass(&self) -> Pass<'_> {
        Pass { budget: self.budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }

    pub(crate) fn run(
        &self,
        first: &[Input],
        others: &[Input],
        printer: &mut Printer<'_>,
    ) -> Result<Report> {
        let begun = Instant::now();
        let mut report = Report { strategy: "approximate".into(), ..Report::default() };
        let first: Vec<_> = first.iter().collect();
        match self.verb {
            Verb::Common => self.common(&first, others, printer, &mut report)?,
            Verb::Diff | Verb::Dedup => self.diff(&first, others, printer, &mut report)?,
        }
        printer.flush()?;
        report.kept = printer.lines;
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }

    /// Lines to plan for, if anything is known of them.
    fn lines(&self, inputs: &[&Input]) -> Result<Option<u64>> {
        if !inputs.iter().all(|input| input.is_repeatable()) {
            if self.keys.is_none() && self.rate.is_some() {
                return Err(Error::unknown_size());
            }
            return Ok(self.keys);
        }
        let (hashes, budget) = (&self.hashes, &self.budget);
        let sample = Sample::of(inputs, hashes, self.delimiter, budget, 1, self.progress)?;
        // Lines and not distinct ones: of those a sample can tell too few, and then the filter
        // would not keep its rate.
        Ok(Some(sample.lines.max(1)))
    }

    /// A filter for so many keys, or for who knows how many: then all of the memory.
    fn filter(&self, keys: Option<u64>, memory: u64) -> Result<BloomFilter> {
        let Some(keys) = keys else {
            // Ten bits a key is a fair guess; what matters is that all memory is used.
            return Ok(BloomFilter::with_memory(memory, memory * 8 / 10)?);
        };
        let Some(rate) = self.rate else {
            return Ok(BloomFilter::with_memory(filter_bytes(keys, memory), keys)?);
        };
        let needed = Shape::for_rate(keys, rate)?.size_bytes();
        if needed > memory {
            return Err(Error::filter_too_large(keys, rate, needed, self.budget.cap));
        }
        Ok(BloomFilter::with_rate(keys, rate)?)
    }

    fn keys_of(&self, batch: &Batch<'_>, scratch: &mut Scratch) {
        scratch.take_keys(batch, self.hashes.spec());
    }

    fn common(
        &self,
        first: &[&Input],
        others: &[Input],
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        // While chaining there are two filters; the last leaves room for what was printed.
        let share = self.budget.work / if others.len() > 1 { 8 } else { 4 } * 3;
        let sample_bytes = self.budget.work / SAMPLE_SHARE;
        let mut chain: Option<Link> = None;
        for (number, other) in (0u32..).zip(others) {
            let mut filter = self.filter(self.lines(&[other])?, share)?;
            let before = chain.take();
            // Of a single input all lines are right: there is nothing to sample.
            let samples = others.len() > 1;
            let depth = before.as_ref().map_or(0, |before| before.sample.depth());
            let mut sample = Sampled::new(sample_bytes, depth);
            let reached = AtomicU32::new(depth);
            let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
                self.keys_of(batch, scratch);
                scratch.sampled.clear();
                if samples {
                    let depth = reached.load(Ordering::Relaxed);
                    let deep = scratch.keys.iter().filter(|&&key| depth_of(key) >= depth);
                    scratch.sampled.extend(deep.map(|&key| (key, true)));
                }
                if let Some(before) = &before {
                    multiply(&mut scratch.keys, STEP.wrapping_pow(number - 1));
                    before.filter.contains_mixed_hashes(&scratch.keys, &mut scratch.answers);
                    let mut at = 0;
                    scratch.keys.retain(|_| {
                        at += 1;
                        scratch.answers.get(at - 1)
                    });
                    multiply(&mut scratch.keys, STEP);
                }
            };
            let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
                for &(key, _) in &scratch.sampled {
                    sample.put(key, before.as_ref().map_or(1.0, |before| before.chance(key)));
                }
                reached.store(sample.depth(), Ordering::Relaxed);
                filter.insert_mixed_hashes(&scratch.keys, &mut scratch.answers);
                Ok(Flow::Go)
            };
            report.saw(self.pass().run("filtering", &[other], map, fold)?);
            chain = Some(Link { rate: filter.estimated_rate(), filter, sample });
        }
        let Some(Link { filter, rate, mut sample }) = chain else { return Ok(()) };
        // At most: if no line of the first is in the others, and all that the filter wrongly took
        // in are in the first.
        let strays = sample.numbers().filter(|chance| *chance < 1.0).sum::<f64>() * sample.weight();
        let wrong =
            self.lines(first)?.map(|lines| (rate * lines as f64 + strays).min(lines as f64));
        self.progress.note(Note::Expecting { wrong, rate });
        let memory = self.budget.work.saturating_sub(filter.size_bytes());
        let mut printed = Table::new(memory.saturating_sub(2 * sample_bytes), 0)?;
        let mut missed = Sampled::new(sample_bytes, 0);
        let (missed_depth, sample_depth) = (AtomicU32::new(0), sample.depth());
        let chained = others.len() > 1;
        let steps = others.len() as u32 - 1;
        let back = STEP_BACK.wrapping_pow(steps);
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.keys_of(batch, scratch);
            if chained {
                multiply(&mut scratch.keys, STEP.wrapping_pow(steps));
            }
            filter.contains_mixed_hashes(&scratch.keys, &mut scratch.answers);
            scratch.picks.clear();
            scratch.picks.extend(scratch.answers.iter());
            scratch.prints.clear();
            let picked = scratch.picks.iter().map(|&line| batch.line(line));
            self.hashes.fingerprints(picked, &mut scratch.prints);
            scratch.sampled.clear();
            let missed_depth = missed_depth.load(Ordering::Relaxed);
            for (at, key) in scratch.keys.iter().enumerate() {
                let (key, held) = (key.wrapping_mul(back), scratch.answers.get(at));
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
        // Lines of the sample that are in the first input and not in all others: the sum of their
        // chances to be in the filter, and of the squares.
        let (mut strays, mut squares) = (0.0, 0.0);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            for &(key, held) in &scratch.sampled {
                if !held {
                    missed.put(key, 0.0);
                }
                // Removed, so that a line counts once.
                if let Some(chance) = sample.remove(key).filter(|chance| *chance < 1.0) {
                    strays += chance;
                    squares += chance * chance;
                }
            }
            missed_depth.store(missed.depth(), Ordering::Relaxed);
            // Where the lines begin that come before the next one printed.
            let mut gap = 0;
            for (&line, &print) in scratch.picks.iter().zip(&scratch.prints) {
                let new = match printed.entry(print, 0)? {
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
            Ok(Flow::Go)
        };
        let seen = self.pass().run("matching", first, map, fold)?;
        report.saw(seen);
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
        // The filter fills up while lines are tested: the mean rate over that time.
        let wrong = keys.zip(first_lines).map(|(keys, lines)| {
            let before = keys - lines.min(keys);
            let at = |step: u64| filter.expected_rate(before + lines / 16 * step);
            let mean = (0..16).map(|step| (at(step) + at(step + 1)) / 2.0).sum::<f64>() / 16.0;
            mean * lines as f64
        });
        let rate = filter.expected_rate(keys.unwrap_or(filter.planned_keys()));
        self.progress.note(Note::Expecting { wrong, rate });
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_mixed_hashes(&scratch.keys, &mut scratch.answers);
            Ok(Flow::Go)
        };
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| self.keys_of(batch, scratch);
        if !others.is_empty() {
            report.saw(self.pass().run("filtering", &others, map, fold)?);
        }
        let live = !first.iter().all(|input| input.is_repeatable());
        let before = filter.inserted();
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_mixed_hashes(&scratch.keys, &mut scratch.answers);
            let mut gap = 0;
            for line in scratch.answers.iter() {
                printer.rest(batch.range(gap..line))?;
                printer.line(batch.line(line))?;
                gap = line + 1;
            }
            printer.rest(batch.range(gap..batch.len()))?;
            if live && !batch.more {
                printer.flush()?;
            }
            Ok(Flow::Go)
        };
        let seen = self.pass().run("matching", first, map, fold)?;
        report.saw(seen);
        report.first_lines = seen.lines;
        // Of a filter that says yes to most of what it never saw, nothing can be estimated.
        let overfull = filter.expected_rate(filter.inserted()) > 0.5;
        let (held, new) = (given(&filter, 0.0, before), filter.inserted() - before);
        let lost = given(&filter, held, new) - held - new as f64;
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

/// The filter of one of the others, full, and a sample of that input's lines.
struct Link {
    filter: BloomFilter,
    rate: f64,
    /// Of each line the probability that it is in the filter, because the filters before contained
    /// it: 1 if it is in all inputs before.
    sample: Sampled,
}

impl Link {
    /// The probability that the filter contains a key, for keys as deep as the sample.
    fn chance(&self, key: u64) -> f64 {
        self.sample.get(key).map_or(self.rate, |chance| chance + (1.0 - chance) * self.rate)
    }
}
