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
        let mut chain: Option<BloomFilter> = None;
        // The share of the last filter's keys that only seemed to be in the inputs before.
        let mut strays = 0.0;
        for other in others {
            let mut filter = self.filter(self.lines(&[other])?, share)?;
            let before = chain.take();
            let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
                self.keys_of(batch, scratch);
                if let Some(before) = &before {
                    before.contains_mixed_hashes(&scratch.keys, &mut scratch.answers);
                    let mut at = 0;
                    scratch.keys.retain(|_| {
                        at += 1;
                        scratch.answers.get(at - 1)
                    });
                }
            };
            let mut hits = 0;
            let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
                hits += scratch.keys.len() as u64;
                filter.insert_mixed_hashes(&scratch.keys, &mut scratch.answers);
                Ok(Flow::Go)
            };
            let seen = self.pass().run("filtering", &[other], map, fold)?;
            report.saw(seen);
            if let Some(before) = before {
                let wrong = false_hits(seen.lines - hits, before.estimated_rate());
                let right = (hits as f64 - wrong).max(0.0);
                strays = (wrong + right * strays) / (hits as f64).max(1.0);
            }
            chain = Some(filter);
        }
        let Some(filter) = chain else { return Ok(()) };
        let rate = filter.estimated_rate();
        let most = |lines| rate * lines as f64 + strays * filter.inserted() as f64;
        let wrong = self.lines(first)?.map(most);
        self.progress.note(Note::Expecting { wrong, rate });
        let memory = self.budget.work.saturating_sub(filter.size_bytes());
        let mut printed = Table::new(memory, 0)?;
        let mut misses = 0;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.keys_of(batch, scratch);
            filter.contains_mixed_hashes(&scratch.keys, &mut scratch.answers);
            scratch.picks.clear();
            scratch.picks.extend(scratch.answers.iter());
            scratch.prints.clear();
            let picked = scratch.picks.iter().map(|&line| batch.line(line));
            self.hashes.fingerprints(picked, &mut scratch.prints);
        };
        let live = !first.iter().all(|input| input.is_repeatable());
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            misses += (batch.len() - scratch.picks.len()) as u64;
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
        let wrong = false_hits(misses, rate);
        report.wrong = wrong + (printer.lines as f64 - wrong).max(0.0) * strays;
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
        report.wrong = if overfull { f64::NAN } else { lost };
        Ok(())
    }
}

/// How many lines hit a filter by mistake, when so many missed it: of lines that it does not
/// hold, a share of 1 - rate misses.
fn false_hits(misses: u64, rate: f64) -> f64 {
    misses as f64 * rate / (1.0 - rate).max(f64::MIN_POSITIVE)
}
