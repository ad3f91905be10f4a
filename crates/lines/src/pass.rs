//! One pass over the lines of inputs: mapped in parallel, folded in order.
//!
//! `map` looks at a batch of lines on any thread; `fold` is then called with the same batch in
//! input order, one at a time. So `fold` may keep state, write output and insert into tables, and
//! everything comes out the same for any number of workers.
//!
//! Cost: that of [`chunks`](crate::chunks), and finding the line ends.

use std::time::Instant;

use petal::{Answers, HashSpec};

use crate::budget::Budget;
use crate::chunks::{Chunks, Text, Ticket};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::input::Input;
use crate::line_filter::BadLine;
use crate::progress::Progress;
use crate::vector::line_ends;

pub(crate) use crate::chunks::Flow;

/// Lines next to each other in one input.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    /// Which of the inputs.
    pub(crate) input: usize,
    bytes: &'a [u8],
    /// Where each line ends in `bytes`; the delimiter or the end of the input is there.
    ends: &'a [usize],
    /// Where `bytes` begins in the input.
    offset: u64,
    /// Whether more batches of the same chunk come after this one.
    pub(crate) more: bool,
}

impl<'a> Batch<'a> {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn start(&self, line: usize) -> usize {
        if line == 0 { 0 } else { self.ends[line - 1] + 1 }
    }

    /// A line, without its delimiter.
    #[inline]
    pub(crate) fn line(&self, line: usize) -> &'a [u8] {
        &self.bytes[self.start(line)..self.ends[line]]
    }

    /// Where a line starts in its input.
    #[inline]
    pub(crate) fn offset(&self, line: usize) -> u64 {
        self.offset + self.start(line) as u64
    }

    #[inline]
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.len()).map(|line| self.line(line))
    }

    /// The bytes of lines next to each other, with their delimiters; the last may lack its own.
    pub(crate) fn range(&self, lines: std::ops::Range<usize>) -> &'a [u8] {
        let end = if lines.is_empty() { self.start(lines.start) } else { self.start(lines.end) };
        &self.bytes[self.start(lines.start).min(self.bytes.len())..end.min(self.bytes.len())]
    }

    /// All bytes from a line on, delimiters as they were.
    pub(crate) fn tail(&self, line: usize) -> &'a [u8] {
        self.bytes.get(self.start(line)..).unwrap_or_default()
    }
}

/// What a worker keeps from batch to batch, so that no batch allocates.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Hashes of lines: of each as many words as its filter takes, mostly one.
    pub(crate) keys: Vec<u64>,
    pub(crate) prints: Vec<Fingerprint>,
    pub(crate) answers: Answers,
    /// The first line of the batch that cannot be a key.
    pub(crate) bad_line: Option<BadLine>,
    /// Lines of the batch that matter, by number.
    pub(crate) picks: Vec<usize>,
    /// Keys that may be in a sample, each with whether a filter holds it.
    pub(crate) sampled: Vec<(u64, bool)>,
}

impl Scratch {
    /// The filter key of every line of a batch.
    #[inline]
    pub(crate) fn take_keys(&mut self, batch: &Batch<'_>, hash: &HashSpec) {
        self.keys.clear();
        hash.hash_all(batch.lines(), &mut self.keys);
    }
}

/// How a pass is to be made.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) progress: &'a dyn Progress,
    /// Words that a line is hashed to.
    pub(crate) words: usize,
}

/// What a pass went through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) what: &'static str,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// What all batches share.
struct Folding<F> {
    fold: F,
    lines: u64,
}

/// What a worker has of its own.
#[derive(Default)]
struct Own {
    ends: Vec<usize>,
    scratch: Scratch,
}

impl Pass<'_> {
    /// The same for lines that are hashed to so many words each.
    pub(crate) fn with_words(self, words: usize) -> Self {
        Self { words, ..self }
    }

    /// How its inputs are read.
    pub(crate) fn chunks(&self) -> Chunks<'_> {
        Chunks { budget: self.budget, delimiter: self.delimiter, progress: self.progress }
    }

    /// Goes through the lines of all inputs, one input after the other.
    pub(crate) fn run<M, F>(
        &self,
        what: &'static str,
        inputs: &[&Input],
        map: M,
        fold: F,
    ) -> Result<Seen>
    where
        M: Fn(&Batch<'_>, &mut Scratch) + Sync,
        F: FnMut(&Batch<'_>, &mut Scratch) -> Result<Flow> + Send,
    {
        let begun = Instant::now();
        let each = |text: Text<'_>, own: &mut Own, ticket: &mut Ticket<'_, Folding<F>>| {
            self.lines(inputs, text, own, ticket, &map)
        };
        let folding = Folding { fold, lines: 0 };
        let (folding, bytes) = self.chunks().run(what, inputs, |_, _| Ok(true), folding, each)?;
        Ok(Seen { what, lines: folding.lines, bytes, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Maps and folds the lines of a chunk; `None` if the pass ended before its turn came.
    fn lines<F>(
        &self,
        inputs: &[&Input],
        text: Text<'_>,
        own: &mut Own,
        ticket: &mut Ticket<'_, Folding<F>>,
        map: &(impl Fn(&Batch<'_>, &mut Scratch) + Sync),
    ) -> Result<Option<Flow>>
    where
        F: FnMut(&Batch<'_>, &mut Scratch) -> Result<Flow> + Send,
    {
        let most = (self.budget.batch_lines() / self.words.max(1)).max(1);
        let longest = self.budget.longest_line as usize;
        let Own { ends, scratch } = own;
        let mut start = 0;
        loop {
            let bytes = &text.bytes[start..];
            ends.clear();
            line_ends(self.delimiter, bytes, most, ends);
            let mut end = ends.last().map_or(0, |end| end + 1);
            if ends.len() < most && end < bytes.len() {
                ends.push(bytes.len());
                end = bytes.len();
            }
            let batch = Batch {
                input: text.input,
                bytes: &bytes[..end],
                ends,
                offset: text.offset + start as u64,
                more: end < bytes.len(),
            };
            if bytes.len() > longest
                && let Some(line) = (0..batch.len()).find(|&l| batch.line(l).len() > longest)
            {
                let input = inputs[text.input];
                let at = input.byte(batch.offset(line));
                return Err(Error::line_too_long(input.name(), at, longest as u64));
            }
            map(&batch, scratch);
            let Some(folding) = ticket.wait() else { return Ok(None) };
            folding.lines += batch.len() as u64;
            let flow = (folding.fold)(&batch, scratch)?;
            if flow == Flow::Stop || !batch.more {
                return Ok(Some(flow));
            }
            start += end;
        }
    }
}
