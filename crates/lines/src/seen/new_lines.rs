//! Prints lines that were not seen before, in this run or in an earlier one.
//!
//! Seen lines are stored in a filter and, for exact results, in a [`FingerprintLog`]. They are saved
//! only after the printed lines have been flushed. After a crash a line may therefore be printed
//! again, but none is lost, except for the false positives of a filter without a log.
//!
//! The result is that of processing one line at a time, although lines go through the filter in
//! batches: each key is looked up and inserted before the next.
//!
//! Cost: one pass, and one insertion into the filter per line; with a log also one fingerprint and
//! one lookup in its table per line. A line that the filter reports as present is also looked up
//! in the log's pages.

use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use petal::{AnyFilter, HashSpec};

use super::fingerprint_log::FingerprintLog;
use crate::error::{Advice, Error, ErrorKind, Result, Setting, io_text};
use crate::fingerprint::Fingerprint;
use crate::input::{Input, Source};
use crate::job_context::JobContext;
use crate::memory::Budget;
use crate::output::{Outputs, Printer};
use crate::progress::{Note, Progress};
use crate::scan::{Batch, Scratch};
use crate::settings::Settings;

/// The lines seen so far: a filter and, for exact results, a fingerprint log. The filter must contain
/// the lines of the log; a line that it lacks is printed again.
pub struct SeenFilter {
    /// Lines that may have been seen.
    pub filter: AnyFilter,
    /// Lines that have been seen.
    pub log: Option<FingerprintLog>,
    /// Returns the current time for a windowed filter.
    pub clock: Box<dyn Fn() -> u64 + Send>,
}

impl SeenFilter {
    /// Returns the hash of a new filter, with a random key, because lines are often chosen by others.
    ///
    /// With a log a false positive costs a lookup, and a fast hash will do. Without one it loses a line,
    /// and what is printed must tell nothing about the key.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new_hash(exact: bool) -> Result<HashSpec> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|_| Error::random())?;
        Ok(if exact { HashSpec::rapid_keyed(key) } else { HashSpec::keyed(key) })
    }
}

/// The result of [`seen`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenCounts {
    /// Lines read.
    pub lines: u64,
    /// Lines printed or counted.
    pub new: u64,
}

/// Minimum memory of a fingerprint log in bytes.
const MIN_LOG_MEMORY: u64 = 1 << 20;

/// Saving takes at most one part in this many of the time.
const SAVING_SHARE: u32 = 10;

/// Interval of [`Note::Tally`].
const TALLY_INTERVAL: Duration = Duration::from_millis(500);

/// Returns the maximum size of a filter for [`seen`] in bytes.
///
/// # Errors
/// If the memory limit is too low.
pub fn max_seen_filter(settings: &Settings<'_>) -> Result<u64> {
    let budget = Budget::new(settings.memory_limit, settings.jobs)?;
    Ok(budget.with_decoder().work - MIN_LOG_MEMORY)
}

/// Prints the lines that have not been seen, and adds them to the seen lines. Without `output` they
/// are only counted.
///
/// `save` syncs the output and then saves the seen lines. It is called at intervals of at least
/// `every`, and when the memory of the log is full. **The caller makes the last save**, after it has
/// printed the count.
///
/// Ends early and successfully if [`Progress::stopped`] returns true; inputs that are followed have
/// no other end.
///
/// # Errors
/// If an input cannot be read, the output cannot be written, or saving fails. Lines printed before an
/// input error are saved; lines that could not be written are not.
pub fn seen(
    settings: &Settings<'_>,
    seen: &mut SeenFilter,
    inputs: &[Source],
    output: Option<&mut (dyn Write + Send)>,
    every: Duration,
    save: impl FnMut(&mut SeenFilter) -> io::Result<()> + Send,
) -> Result<SeenCounts> {
    let (context, inputs) = JobContext::open_or_follow(settings, inputs)?;
    let live = !inputs.iter().all(Input::is_repeatable);
    let pass = context.pass();
    if let Some(log) = &mut seen.log {
        let room = pass.budget.work.saturating_sub(seen.filter.as_dyn().size_bytes());
        log.set_memory(room.max(MIN_LOG_MEMORY))?;
    }
    let hash = seen.filter.as_dyn().hash_spec();
    let hasher = seen.log.as_ref().map(FingerprintLog::hasher);
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        scratch.hash_lines(batch, &hash);
        if let Some(hasher) = &hasher {
            scratch.fingerprint(batch, hasher);
        }
    };
    let outputs = Outputs { kept: output, rest: None };
    // A file of rows is complete only at its end, so nothing is saved before.
    let rows_only = !settings.keys_only && inputs.iter().any(Input::is_table);
    let mut rows = context.row_outputs(outputs, &inputs)?;
    let missing_end = || context.missing_end(&inputs);
    let mut missing_end = Some(&missing_end as &(dyn Fn() -> Result<Vec<u8>> + Sync));
    if settings.keys_only {
        // It is no part of a record.
        rows.begin_with(context.missing_end(&inputs)?);
        missing_end = None;
    }
    let printer = context.started_printer(rows.outputs(), &inputs)?;
    let length: Option<u64> = inputs.iter().map(Input::length).sum();
    let mut left = length.unwrap_or(0);
    let inputs: Vec<_> = inputs.iter().collect();
    let saved = Instant::now();
    let mut run = Run { seen, printer, missing_end, save, every, saved, unsaved: false, rows_only };
    let (mut lines, mut last_tally) = (0, Instant::now());
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        run.add_batch(batch, scratch)?;
        if live && !batch.more {
            run.printer.flush()?;
        }
        run.save_if_due()?;
        lines += batch.len() as u64;
        left = left.saturating_sub(batch.tail(0).len() as u64);
        if let (Some(length), Some(log)) = (length, &mut run.seen.log) {
            // As many as so far, in proportion to the bytes.
            let read = (length - left).max(1) as f64;
            log.expect((run.printer.lines as f64 * (left as f64 / read)) as u64);
        }
        if last_tally.elapsed() >= TALLY_INTERVAL {
            last_tally = Instant::now();
            run.note_tally(lines, settings.progress);
        }
        Ok(ControlFlow::Continue(()))
    };
    let passed = pass.run("looking", &inputs, map, fold);
    // After an error of an input, the lines before it are in the filter and in the output.
    if passed.as_ref().is_err_and(|error| error.kind() != ErrorKind::Input) {
        return passed.map(|_| SeenCounts::default());
    }
    run.printer.flush()?;
    if passed.is_err() && !run.printer.counts_only() && !rows_only {
        run.save()?;
    }
    let new = run.printer.lines;
    drop(run);
    let lines = passed?.lines;
    rows.finish()?;
    Ok(SeenCounts { lines, new })
}

/// The state of a run.
struct Run<'m, 'p, S> {
    seen: &'m mut SeenFilter,
    printer: Printer<'p>,
    /// Returns what ends the last record of the file that lines are appended to, before the first line.
    missing_end: Option<&'p (dyn Fn() -> Result<Vec<u8>> + Sync)>,
    save: S,
    every: Duration,
    saved: Instant,
    unsaved: bool,
    /// Whether rows are printed, which are complete only at the end.
    rows_only: bool,
}

impl<S: FnMut(&mut SeenFilter) -> io::Result<()>> Run<'_, '_, S> {
    /// Prints and adds the new lines of a batch.
    fn add_batch(&mut self, batch: &Batch<'_>, scratch: &mut Scratch) -> Result<()> {
        match &mut self.seen.filter {
            // Insert as into a set, so that a repeated line does not fill the filter.
            AnyFilter::Quotient(filter) => {
                filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results)?;
            }
            AnyFilter::VectorQuotient(filter) => {
                filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results)?;
            }
            AnyFilter::Windowed(filter) => {
                filter.advance_to((self.seen.clock)());
                // A repeated line is printed again after the window.
                filter.insert_mixed_hashes_if_absent(&scratch.hashes, &mut scratch.results);
            }
            filter => {
                filter.as_dyn_mut()?.insert_mixed_hashes(&scratch.hashes, &mut scratch.results)?
            }
        }
        // New lines that are not printed yet.
        let mut new = 0..0;
        for line in 0..batch.len() {
            let mut is_new = scratch.results.get(line);
            if let Some(log) = &mut self.seen.log {
                log.prefetch_ahead(&scratch.fingerprints, line);
                let fingerprint = scratch.fingerprints[line];
                is_new = match log.insert(fingerprint, is_new)? {
                    Some(is_new) => is_new,
                    None => {
                        self.print(batch, &mut new)?;
                        self.insert_after_saving(fingerprint, is_new)?
                    }
                };
            }
            if !is_new {
                continue;
            }
            if line != new.end {
                self.print(batch, &mut new)?;
                new.start = line;
            }
            new.end = line + 1;
        }
        self.print(batch, &mut new)
    }

    /// Prints consecutive lines. The range is then empty.
    fn print(&mut self, batch: &Batch<'_>, lines: &mut Range<usize>) -> Result<()> {
        let lines = std::mem::replace(lines, lines.end..lines.end);
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(missing_end) = self.missing_end.take() {
            self.printer.before_line(&missing_end()?)?;
        }
        self.printer.lines += lines.len() as u64;
        self.printer.pieces(batch.tail(0), &[batch.span(lines)], &[])?;
        self.unsaved = true;
        Ok(())
    }

    /// Saves the lines of a full log, and adds one. Returns whether it was new. The filter already
    /// contains lines of the batch that are not printed yet. That is harmless, because the log
    /// decides, and does not contain them.
    fn insert_after_saving(&mut self, fingerprint: Fingerprint, certain: bool) -> Result<bool> {
        loop {
            if self.rows_only {
                let problem = "the new rows have more fingerprints than fit the memory limit, and \
                               none can be saved before the output is complete";
                return Err(Error::new(ErrorKind::Output, problem)
                    .advise(Advice::Raise(Setting::MemoryLimit))
                    .advise(Advice::Enable(Setting::KeysOnly)));
            }
            self.save()?;
            let Some(log) = &mut self.seen.log else { return Ok(certain) };
            if let Some(is_new) = log.insert(fingerprint, certain)? {
                return Ok(is_new);
            }
        }
    }

    /// Saves at intervals, unless lines are only counted: the count is not printed yet.
    fn save_if_due(&mut self) -> Result<()> {
        if self.unsaved
            && !self.rows_only
            && !self.printer.counts_only()
            && self.saved.elapsed() >= self.every
        {
            self.save()?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        self.printer.flush()?;
        let begun = Instant::now();
        // The caller adds the name of the file.
        (self.save)(self.seen)
            .map_err(|e| Error::new(ErrorKind::File, io_text(&e)).caused_by(e))?;
        self.every = self.every.max(begun.elapsed() * SAVING_SHARE);
        (self.saved, self.unsaved) = (Instant::now(), false);
        Ok(())
    }

    fn note_tally(&self, lines: u64, progress: &dyn Progress) {
        let filter = self.seen.filter.as_dyn();
        let rate = filter.expected_fpr(filter.inserted());
        progress.note(Note::Tally { lines, new: self.printer.lines, fpr: rate });
    }
}
