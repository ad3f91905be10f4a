//! Lines never seen before, by a memory that outlives the run.
//!
//! A line is printed if the memory does not know it, and remembered from then on. The order of
//! things is what makes a crash harmless: a line is in a *saved* memory only if it was printed
//! and flushed before. So a line may come twice, and never not at all, except for those that a
//! filter without a [`Ledger`] wrongly takes for known, at its false-positive rate.
//!
//! The answer is that of one line at a time, however many go through the filter at once: every
//! operation on it queries and inserts a key before it looks at the next.
//!
//! Cost: one pass; an insert into the filter for each line, with a ledger a fingerprint too, and
//! a look into the ledger for each line that the filter seems to know.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use petal::AnyFilter;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::input::{Input, Source};
use crate::ledger::Ledger;
use crate::pass::{Batch, Flow, Scratch};
use crate::print::{Printer, Sinks};
use crate::progress::{Note, Progress};
use crate::settings::Settings;

/// What runs remember: a filter, and for exact answers a ledger. The filter knows at least what
/// the ledger knows; where it is behind, lines come twice.
pub struct Memory {
    /// Which lines may be known.
    pub filter: AnyFilter,
    /// Which lines are.
    pub ledger: Option<Ledger>,
    /// What time it is, for a filter that forgets by a clock.
    pub clock: Box<dyn Fn() -> u64 + Send>,
}

/// What came in and what of it was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Novel {
    /// Lines read.
    pub lines: u64,
    /// Lines printed, or counted.
    pub new: u64,
}

/// The least that a ledger's lines of one run are given, in bytes.
const LEAST_LEDGER: u64 = 1 << 20;

/// Saving may take this share of the time.
const SAVING_SHARE: u32 = 10;

/// How often a listener hears how many lines were new.
const BETWEEN_TALLIES: Duration = Duration::from_millis(500);

impl Settings<'_> {
    /// Bytes that a filter may take under the cap, beside lines and buffers.
    ///
    /// # Errors
    /// If the cap is too small for any work.
    pub fn room_for_filter(&self) -> Result<u64> {
        Ok(Budget::new(self.memory, self.jobs)?.with_decoder().work - LEAST_LEDGER)
    }
}

/// Prints the lines that the memory does not know, and remembers them; without a sink they are
/// only counted. `save` makes durable what was printed and then the memory of it: now and then,
/// at intervals of at least `every`, and when the ledger's memory is full. **The last save is the
/// caller's**: a count must be out before it is remembered that it was.
///
/// Ends early, and well, when [`Progress::stopped`].
///
/// # Errors
/// When an input cannot be read, the output cannot be written, or saving fails. What was printed
/// before an input went wrong is saved; what could not be written is not.
pub fn seen(
    settings: &Settings<'_>,
    memory: &mut Memory,
    inputs: &[Source],
    sink: Option<&mut (dyn Write + Send)>,
    every: Duration,
    save: impl FnMut(&mut Memory) -> io::Result<()> + Send,
) -> Result<Novel> {
    let (budget, inputs) = settings.open(inputs)?;
    let live = !inputs.iter().all(Input::is_repeatable);
    let inputs: Vec<_> = inputs.iter().collect();
    let pass = settings.pass(budget);
    if let Some(ledger) = &mut memory.ledger {
        let room = pass.budget.work.saturating_sub(memory.filter.face().size_bytes());
        ledger.allow(room.max(LEAST_LEDGER))?;
    }
    let hash = memory.filter.face().hash_spec();
    let prints = memory.ledger.as_ref().map(Ledger::hashes);
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        scratch.take_keys(batch, &hash);
        if let Some(hashes) = &prints {
            scratch.prints.clear();
            hashes.fingerprints(batch.lines(), &mut scratch.prints);
        }
    };
    let printer =
        Printer::new(Sinks { kept: sink, rest: None }, settings.delimiter, pass.budget.chunk);
    let mut run = Run { memory, printer, save, every, saved: Instant::now(), unsaved: false };
    let (mut lines, mut told) = (0, Instant::now());
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        run.take(batch, scratch)?;
        if live && !batch.more {
            run.printer.flush()?;
        }
        run.save_if_due()?;
        lines += batch.len() as u64;
        if told.elapsed() >= BETWEEN_TALLIES {
            told = Instant::now();
            run.tell(lines, settings.progress);
        }
        Ok(Flow::Go)
    };
    let passed = pass.run("looking", &inputs, map, fold);
    if passed.as_ref().is_err_and(|error| !error.is_of_inputs()) {
        return passed.map(|_| Novel::default());
    }
    run.printer.flush()?;
    if passed.is_err() && !run.printer.counts_only() {
        run.save()?;
    }
    Ok(Novel { lines: passed?.lines, new: run.printer.lines })
}

/// A run under way.
struct Run<'m, 'p, S> {
    memory: &'m mut Memory,
    printer: Printer<'p>,
    save: S,
    every: Duration,
    saved: Instant,
    unsaved: bool,
}

impl<S: FnMut(&mut Memory) -> io::Result<()>> Run<'_, '_, S> {
    /// Prints and remembers the new lines of a batch.
    fn take(&mut self, batch: &Batch<'_>, scratch: &mut Scratch) -> Result<()> {
        match &mut self.memory.filter {
            // As into a set: a line that keeps coming must not fill it with copies of itself.
            AnyFilter::Quotient(filter) => {
                filter.insert_mixed_hashes(&scratch.keys, &mut scratch.answers)?;
            }
            AnyFilter::Windowed(filter) => {
                filter.advance_to((self.memory.clock)());
                // A line that keeps coming is printed again when the window is over.
                filter.insert_mixed_hashes_if_absent(&scratch.keys, &mut scratch.answers);
            }
            filter => {
                filter.face_mut()?.insert_mixed_hashes(&scratch.keys, &mut scratch.answers)?
            }
        }
        for line in 0..batch.len() {
            let mut new = scratch.answers.get(line);
            if self.memory.ledger.is_some() {
                new = self.enter(scratch.prints[line], new)?;
            }
            if new {
                self.printer.line(batch.line(line))?;
                self.unsaved = true;
            }
        }
        Ok(())
    }

    /// Puts a line into the ledger, and says whether it was new.
    fn enter(&mut self, print: Fingerprint, certain: bool) -> Result<bool> {
        loop {
            let Some(ledger) = &mut self.memory.ledger else { return Ok(certain) };
            if !certain && ledger.knows(print)? {
                return Ok(false);
            }
            if ledger.put(print)? {
                return Ok(true);
            }
            // Full. The filter knows lines of this batch that are not printed yet; that does no
            // harm, for the ledger, which decides, does not.
            self.save()?;
        }
    }

    /// A number that is not out yet is as good as a line that is not printed.
    fn save_if_due(&mut self) -> Result<()> {
        if self.unsaved && !self.printer.counts_only() && self.saved.elapsed() >= self.every {
            self.save()?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        self.printer.flush()?;
        let begun = Instant::now();
        (self.save)(self.memory).map_err(Error::save)?;
        self.every = self.every.max(begun.elapsed() * SAVING_SHARE);
        (self.saved, self.unsaved) = (Instant::now(), false);
        Ok(())
    }

    fn tell(&self, lines: u64, progress: &dyn Progress) {
        let filter = self.memory.filter.face();
        let rate = filter.expected_rate(filter.inserted());
        progress.note(Note::Tally { lines, new: self.printer.lines, rate });
    }
}
