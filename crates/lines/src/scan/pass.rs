//! One pass over the lines of inputs: `map` in parallel, `fold` in order.
//!
//! `map` processes a batch of lines on any thread. `fold` is then called with the same batch, in
//! input order, one at a time. `fold` may keep state, write output and insert into tables; the
//! result is the same for any number of workers.
//!
//! Cost: that of [`Chunks`] and of finding line ends.

use std::ops::ControlFlow;
use std::time::Instant;

use super::batch::{Batch, Scratch};
use super::record_ends::RecordEnds;
use crate::error::{Error, Result};
use crate::input::{Input, no_key};
use crate::keys::Keys;
use crate::memory::Budget;
use crate::progress::Progress;
use crate::scan::{Chunks, LineChunk, Ticket};

/// Settings of a pass.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) progress: &'a dyn Progress,
    /// Words of a line's hash.
    pub(crate) words: usize,
}

/// The counts and the time of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PassStats {
    pub(crate) what: &'static str,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// What a pass does with a batch on any thread.
type Map<'a> = dyn Fn(&Batch<'_>, &mut Scratch) + Sync + 'a;

/// What a pass does with a batch in input order. `Break` ends the pass, with the number of lines of the
/// batch that were processed.
type Fold<'a> = dyn FnMut(&Batch<'_>, &mut Scratch) -> Result<ControlFlow<usize>> + Send + 'a;

/// State shared by all batches.
struct Folding<'a> {
    fold: &'a mut Fold<'a>,
    lines: u64,
}

/// Buffers of a worker.
#[derive(Default)]
struct Own {
    ends: Vec<usize>,
    keys: Keys,
    scratch: Scratch,
}

impl Pass<'_> {
    /// Sets the number of words of a line's hash, which limits the batch size.
    pub(crate) fn with_words(self, words: usize) -> Self {
        Self { words, ..self }
    }

    /// Returns the reader of the inputs.
    pub(crate) fn chunks(&self) -> Chunks<'_> {
        Chunks { budget: self.budget, delimiter: self.delimiter, progress: self.progress }
    }

    /// Processes the lines of all inputs, one input after the other.
    pub(crate) fn run<M, F>(
        &self,
        what: &'static str,
        inputs: &[&Input],
        map: M,
        mut fold: F,
    ) -> Result<PassStats>
    where
        M: Fn(&Batch<'_>, &mut Scratch) + Sync,
        F: FnMut(&Batch<'_>, &mut Scratch) -> Result<ControlFlow<usize>> + Send,
    {
        self.run_dyn(what, inputs, &map, &mut fold)
    }

    /// [`run`](Self::run), compiled once: a call through a pointer per batch costs nothing, and
    /// a copy of the reader for each pass would take a third of the time to compile this crate.
    fn run_dyn<'a>(
        &self,
        what: &'static str,
        inputs: &[&Input],
        map: &Map<'_>,
        fold: &'a mut Fold<'a>,
    ) -> Result<PassStats> {
        let begun = Instant::now();
        let each = |text: LineChunk<'_>, own: &mut Own, ticket: &mut Ticket<'_, Folding<'a>>| {
            self.lines(inputs, text, own, ticket, map)
        };
        let folding = Folding { fold, lines: 0 };
        let (folding, bytes) = self.chunks().run(what, inputs, |_, _| Ok(true), folding, each)?;
        Ok(PassStats { what, lines: folding.lines, bytes, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Maps and folds the lines of a chunk. `None` if the pass ended before the turn of this chunk.
    fn lines(
        &self,
        inputs: &[&Input],
        text: LineChunk<'_>,
        own: &mut Own,
        ticket: &mut Ticket<'_, Folding<'_>>,
        map: &Map<'_>,
    ) -> Result<Option<ControlFlow<u64>>> {
        let max = (self.budget.batch_lines() / self.words.max(1)).max(1);
        let longest = self.budget.longest_line as usize;
        let Own { ends, keys, scratch } = own;
        let input = inputs[text.input];
        let record_ends = RecordEnds::of(input, self.delimiter);
        let mut start = 0;
        loop {
            let bytes = &text.bytes[start..];
            ends.clear();
            record_ends.find(bytes, max, ends);
            let mut end = ends.last().map_or(0, |end| end + 1);
            if ends.len() < max && end < bytes.len() {
                ends.push(bytes.len());
                end = bytes.len();
            }
            let mut batch = Batch {
                input: text.input,
                bytes: &bytes[..end],
                ends,
                offset: text.offset + start as u64,
                keys: None,
                more: end < bytes.len(),
            };
            if bytes.len() > longest
                && let Some(line) = (0..batch.len()).find(|&l| batch.line(l).len() > longest)
            {
                let at = input.byte(batch.offset(line));
                let fields = &input.keys().fields;
                return Err(Error::line_too_long(input.name(), at, longest as u64, fields));
            }
            let lines = (0..batch.len()).map(|line| batch.line(line));
            if !input.keys().keeps(lines.clone()) {
                keys.shrink(self.budget.chunk);
                let place = |line| [input.number(), input.byte(batch.offset(line))];
                keys.take(input.keys(), lines, place).map_err(|(line, problem)| {
                    let at = input.byte(batch.offset(line));
                    no_key(input.name(), &input.keys().fields, problem, at, None)
                })?;
                let records =
                    (0..batch.len()).map(|line| (input.byte(batch.offset(line)), batch.line(line)));
                input.found().look_at(input.keys(), records, keys);
                batch.keys = Some(keys);
            }
            let unended = batch.bytes.last() != Some(&self.delimiter);
            input.spelling().look_at(input.keys(), self.delimiter, batch.keys(), unended);
            map(&batch, scratch);
            let Some(folding) = ticket.wait() else { return Ok(None) };
            if let ControlFlow::Break(lines) = (folding.fold)(&batch, scratch)? {
                folding.lines += lines as u64;
                return Ok(Some(ControlFlow::Break(batch.offset(lines))));
            }
            folding.lines += batch.len() as u64;
            if !batch.more {
                return Ok(Some(ControlFlow::Continue(())));
            }
            start += end;
        }
    }
}
