//! Parallel reading of inputs in chunks of whole lines.
//!
//! Workers claim chunks in order and process them on any thread. When a worker waits for its
//! *ticket*, it gets the shared state (of a fold, or the output) in input order, one chunk at a
//! time. The result is therefore the same for any number of workers.
//!
//! * A file is divided at fixed byte positions; **a line belongs to the chunk in which it starts**.
//!   Workers read independently, by position.
//! * A stream is read under a lock, as much as has arrived, and divided at the last line end. So is
//!   a CSV file: whether a position is inside quotes depends on all bytes before it.
//! * For a line longer than a chunk the worker waits for its turn before it grows its buffer, so at
//!   most one over-long line is in memory. No worker waits for a later chunk, so this cannot
//!   deadlock.
//!
//! Cost: one read of the input; memory as in [`Budget`]; one lock per chunk, none per line.

use std::io;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::buffer::Buffer;
use super::record_ends::RecordEnds;
use super::sequencer::{Sequencer, Ticket, WakeOnPanic};
use crate::error::{Error, Result};
use crate::files::{BlockSum, ByteRange, InputFile};
use crate::input::{Input, Open};
use crate::keys::{Fields, Finding, note_findings};
use crate::memory::Budget;
use crate::poll_read::PollRead;
use crate::progress::{Note, Progress};
use crate::workers;

/// Consecutive whole lines of one input.
#[derive(Clone, Copy)]
pub(crate) struct LineChunk<'a> {
    /// Index of the input.
    pub(crate) input: usize,
    /// The lines; only the last of an input may lack its delimiter.
    pub(crate) bytes: &'a [u8],
    /// Position of `bytes` in the input.
    pub(crate) offset: u64,
}

/// Reads inputs in chunks.
#[derive(Clone, Copy)]
pub(crate) struct Chunks<'a> {
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) progress: &'a dyn Progress,
}

impl Chunks<'_> {
    /// Reads all inputs, one after the other, and returns the shared state and the number of bytes.
    /// Chunks of files that are not `wanted` are skipped.
    ///
    /// `each` gets the lines, the buffers of its worker, and its ticket. It returns `None` if
    /// reading ended before its turn, and `Break` with a position in the input to end reading there.
    pub(crate) fn run<S, W, E>(
        &self,
        what: &'static str,
        inputs: &[&Input],
        wanted: impl Fn(usize, ByteRange) -> Result<bool> + Sync,
        shared: S,
        each: E,
    ) -> Result<(S, u64)>
    where
        S: Send,
        W: Default,
        E: Fn(LineChunk<'_>, &mut W, &mut Ticket<'_, S>) -> Result<Option<ControlFlow<u64>>> + Sync,
    {
        let bytes = inputs.iter().map(|input| input.length()).sum::<Option<u64>>();
        self.progress.phase(what, bytes);
        let chunk = self.budget.chunk as u64;
        let chunks = |input: &&Input| input.is_file().then(|| input.length())?;
        let chunks = inputs.iter().map(|input| chunks(input).map(|bytes| bytes.div_ceil(chunk)));
        let chunks = chunks.sum::<Option<u64>>().unwrap_or(u64::MAX);
        let workers = (self.budget.workers as u64).min(chunks).max(1);
        let reading = Reading {
            chunks: self,
            inputs,
            wanted,
            cursor: Mutex::new(Cursor::default()),
            turns: Sequencer::new(shared, workers as usize),
            bytes: AtomicU64::new(0),
            sums: inputs.iter().map(|input| input.block_sum(self.budget.chunk)).collect(),
        };
        workers::run(workers as usize, || reading.work(&each));
        let over = reading.turns.is_over() || self.progress.stopped();
        let turn = reading.turns.state.into_inner().unwrap_or_else(|e| e.into_inner());
        turn.result?;
        if !over {
            inputs.iter().for_each(|input| input.set_keys_complete());
        }
        inputs.iter().take(1).for_each(|input| input.content_checks().note(self.progress));
        if !over {
            let found =
                inputs.iter().map(|input| (input.name(), &**input.keys(), &**input.found()));
            note_findings(found, |finding, input, more| {
                self.progress.note(match finding {
                    Finding::MissingValue(pointer) => Note::MissingValue { input, more, pointer },
                    Finding::Undivided { separator, found, title } => {
                        Note::Undivided { input, more, separator, found, title }
                    }
                    Finding::LiteralQuotes => Note::LiteralQuotes { input, more },
                    Finding::LongField { byte, lines } => {
                        Note::LongField { input, more, byte, lines }
                    }
                    Finding::HashedDigests(digest) => Note::HashedDigests { input, more, digest },
                    Finding::HashedCr(digest) => Note::HashedCr { input, more, digest },
                });
            });
        }
        for (input, sum) in inputs.iter().zip(&reading.sums) {
            sum.iter().for_each(|sum| input.keep_block_sum(sum));
        }
        // A file that was rewritten during the pass may have returned a mix of old and new bytes.
        inputs.iter().try_for_each(|input| input.check_unchanged(self.progress))?;
        Ok((turn.shared, reading.bytes.into_inner()))
    }
}

struct Reading<'a, S, N> {
    chunks: &'a Chunks<'a>,
    inputs: &'a [&'a Input],
    wanted: N,
    cursor: Mutex<Cursor>,
    turns: Sequencer<S>,
    bytes: AtomicU64,
    /// The checksums of inputs whose checksum is unknown.
    sums: Vec<Option<BlockSum>>,
}

/// The position of the next chunk.
#[derive(Default)]
struct Cursor {
    /// Index of the current input.
    input: usize,
    open: Option<At>,
    ticket: u64,
}

enum At {
    File {
        file: InputFile,
        range: ByteRange,
        whole: ByteRange,
        next: u64,
    },
    /// The bytes after the last line end, and their position in the stream.
    Stream {
        stream: Box<dyn PollRead + Send>,
        carry: Vec<u8>,
        offset: u64,
    },
}

/// The chunk of a worker.
#[derive(Default)]
struct Chunk {
    input: usize,
    buffer: Buffer,
    /// Position of the first line in `buffer`.
    start: usize,
    /// Positions of `buffer` and of the input in the file or stream.
    offset: u64,
    base: u64,
    /// Position in the input at which the progress of the chunk begins.
    begin: u64,
    /// Bytes of progress when the chunk is done.
    advance: u64,
    /// Line ends, if an error of a record may name its line.
    line_ends: u64,
    /// The file, its readable range, and the range of the chunk, until the chunk is read.
    span: Option<(InputFile, ByteRange, ByteRange)>,
}

impl<S, N> Reading<'_, S, N>
where
    S: Send,
    N: Fn(usize, ByteRange) -> Result<bool> + Sync,
{
    fn work<W: Default>(
        &self,
        each: &(
             impl Fn(LineChunk<'_>, &mut W, &mut Ticket<'_, S>) -> Result<Option<ControlFlow<u64>>>
             + Sync
         ),
    ) {
        let _wake = WakeOnPanic(&self.turns);
        let mut chunk = Chunk::default();
        let mut own = W::default();
        while !self.turns.is_over() {
            let mut ticket = Ticket { turns: &self.turns, number: 0, turn: None };
            let done =
                self.one(&mut chunk, &mut ticket, |text, ticket| each(text, &mut own, ticket));
            match done {
                Ok(Some(ControlFlow::Continue(()))) => {
                    // Free the memory of an over-long line before the next turn.
                    chunk.buffer.shrink(3 * self.chunks.budget.chunk);
                    match ticket.turn.or_else(|| self.turns.wait(ticket.number)) {
                        Some(mut turn) => {
                            let line_ends = turn.line_ends(chunk.input) + chunk.line_ends;
                            turn.line_ends = (chunk.input, line_ends);
                            // Only at its turn: chunks after the end of reading do not count.
                            self.advance(chunk.advance);
                            self.turns.end(turn);
                        }
                        None => return,
                    }
                }
                Ok(Some(ControlFlow::Break(end))) => {
                    self.advance(end.saturating_sub(chunk.begin));
                    return self.turns.stop(ticket.turn, Ok(()));
                }
                // No more chunks, or reading ended while this worker waited.
                Ok(None) => return,
                Err(mut error) => {
                    // Of several errors, report the first in input order.
                    let turn = ticket.turn.or_else(|| self.turns.wait(ticket.number));
                    if let Some(turn) = &turn {
                        self.name_line(&mut error, &chunk, turn.line_ends(chunk.input));
                    }
                    return self.turns.stop(turn, Err(error));
                }
            }
        }
    }

    /// Adds the line to the error of a record, given the line ends in the chunks before.
    fn name_line(&self, error: &mut Error, chunk: &Chunk, before: u64) {
        let input = self.inputs[chunk.input];
        error.count_line(|byte| {
            let first = input.first_line()?;
            let start = input.byte(chunk.offset + chunk.start as u64 - chunk.base);
            let bytes = chunk.buffer.get().get(chunk.start..).unwrap_or_default();
            let bytes = bytes.get(..byte.saturating_sub(start) as usize).unwrap_or_default();
            Some(first + before + memchr::memchr_iter(b'\n', bytes).count() as u64)
        });
    }

    /// Claims, reads and processes one chunk. `None` if there is none or reading ended.
    fn one<'t>(
        &'t self,
        chunk: &mut Chunk,
        ticket: &mut Ticket<'t, S>,
        each: impl FnOnce(LineChunk<'_>, &mut Ticket<'t, S>) -> Result<Option<ControlFlow<u64>>>,
    ) -> Result<Option<ControlFlow<u64>>> {
        chunk.line_ends = 0;
        if !self.claim(chunk, ticket)? || self.fill(chunk, ticket)?.is_none() {
            return Ok(None);
        }
        let bytes = chunk.buffer.get().get(chunk.start..).unwrap_or_default();
        if bytes.is_empty() {
            // No line starts in this chunk.
            return Ok(Some(ControlFlow::Continue(())));
        }
        // Other records have no errors that name a line.
        let keys = self.inputs[chunk.input].keys();
        let is_lines = !matches!(keys.fields, Fields::Rows(_));
        let counted = is_lines && (keys.fields != Fields::Line || keys.refuses_keys());
        let line_ends = || memchr::memchr_iter(b'\n', bytes).count() as u64;
        chunk.line_ends = if counted { line_ends() } else { 0 };
        let offset = chunk.offset + chunk.start as u64 - chunk.base;
        each(LineChunk { input: chunk.input, bytes, offset }, ticket)
    }

    fn advance(&self, bytes: u64) {
        self.chunks.progress.advance(bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Claims the next chunk: a byte range of a file, or the available bytes of a stream. `false` at
    /// the end.
    fn claim<'t>(&'t self, chunk: &mut Chunk, ticket: &mut Ticket<'t, S>) -> Result<bool> {
        let Ok(mut cursor) = self.cursor.lock() else { return Ok(false) };
        let some = self.claim_at(&mut cursor, chunk, ticket);
        if some.is_err() {
            // This worker keeps the ticket and reports the error at its turn.
            cursor.input = self.inputs.len();
        }
        some
    }

    fn claim_at<'t>(
        &'t self,
        cursor: &mut Cursor,
        chunk: &mut Chunk,
        ticket: &mut Ticket<'t, S>,
    ) -> Result<bool> {
        let budget = &self.chunks.budget;
        loop {
            if self.chunks.progress.stopped() {
                return Ok(false);
            }
            let Some(input) = self.inputs.get(cursor.input) else { return Ok(false) };
            (ticket.number, chunk.input) = (cursor.ticket, cursor.input);
            if self.chunks.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let at = match &mut cursor.open {
                Some(at) => at,
                none => none.insert(match input.open(budget.decoder, self.chunks.progress)? {
                    Open::File { file, range, whole } => {
                        let file = file.sequential();
                        At::File { file, range, whole, next: range.start }
                    }
                    Open::Stream(stream) => At::Stream { stream, carry: vec![], offset: 0 },
                }),
            };
            let some = match at {
                At::File { file, range, whole, next } => {
                    let mut some = false;
                    while !some && *next < range.end {
                        let end = range.end.min(*next + budget.chunk as u64);
                        let span = ByteRange { start: *next, end };
                        *next = end;
                        let (start, end) = (span.start - range.start, end - range.start);
                        some = (self.wanted)(cursor.input, ByteRange { start, end })?;
                        if some {
                            chunk.base = range.start;
                            chunk.span = Some((file.clone(), *whole, span));
                        } else {
                            self.chunks.progress.advance(end - start);
                        }
                    }
                    some
                }
                At::Stream { stream, carry, offset } => {
                    let some = self.read_stream(stream.as_mut(), carry, offset, chunk, ticket)?;
                    if !some && !self.turns.is_over() && !self.chunks.progress.stopped() {
                        input.set_length(*offset);
                    }
                    some
                }
            };
            if some {
                cursor.ticket += 1;
                return Ok(true);
            }
            if self.turns.is_over() {
                return Ok(false);
            }
            cursor.open = None;
            cursor.input += 1;
        }
    }

    /// Reads the available bytes of a stream, at least one line. `false` at its end.
    fn read_stream<'t>(
        &'t self,
        stream: &mut dyn PollRead,
        carry: &mut Vec<u8>,
        offset: &mut u64,
        chunk: &mut Chunk,
        ticket: &mut Ticket<'t, S>,
    ) -> Result<bool> {
        let name = self.inputs[chunk.input].name();
        let Budget { chunk: size, longest_line, .. } = self.chunks.budget;
        let buffer = &mut chunk.buffer;
        // A pipe whose writer fills pages has the bytes at these positions of its pages.
        buffer.clear(*offset);
        buffer.spare(carry.len())?.copy_from_slice(carry);
        buffer.len = carry.len();
        carry.clear();
        (chunk.start, chunk.offset, chunk.base, chunk.span) = (0, *offset, 0, None);
        let input = self.inputs[chunk.input];
        let mut ends = RecordEnds::of(input, self.chunks.delimiter).last();
        let mut searched = 0;
        loop {
            let found = ends.find(&buffer.get()[searched..]);
            if let Some(end) = found.map(|at| searched + at + 1) {
                carry.extend_from_slice(&buffer.get()[end..]);
                buffer.len = end;
                break;
            }
            searched = buffer.len;
            if searched as u64 > longest_line {
                let offset = input.byte(*offset);
                return Err(match ends.is_quoted() {
                    true => Error::long_quotes(name, offset, longest_line),
                    false => Error::line_too_long(name, offset, longest_line, &input.keys().fields),
                });
            }
            if searched >= size && ticket.wait().is_none() {
                return Ok(false);
            }
            while !stream.ready() {
                if self.chunks.progress.cancelled() {
                    return Err(Error::cancelled());
                }
                // Reading has ended: do not wait for a writer that may never write.
                if self.turns.is_over() || self.chunks.progress.stopped() {
                    return Ok(false);
                }
            }
            // Up to a chunk, or half a chunk more of a long line.
            let spare = buffer.spare(size.saturating_sub(searched).max(size / 2))?;
            let got = loop {
                match stream.read(spare) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other.map_err(|e| Error::read(name, e))?,
                }
            };
            buffer.len += got;
            if got == 0 {
                if ends.is_quoted() {
                    return Err(input.advised(Error::open_quotes(name, input.byte(*offset))));
                }
                break;
            }
        }
        chunk.begin = *offset;
        *offset += buffer.len as u64;
        chunk.advance = buffer.len as u64;
        Ok(buffer.len > 0)
    }

    /// Reads the lines that start in the range of the chunk. `None` if reading ended meanwhile.
    fn fill<'t>(&'t self, chunk: &mut Chunk, ticket: &mut Ticket<'t, S>) -> Result<Option<()>> {
        let Some((file, whole, span)) = chunk.span.take() else { return Ok(Some(())) };
        let name = self.inputs[chunk.input].name();
        let Chunks { delimiter, budget, .. } = *self.chunks;
        // The byte before shows whether a line starts at the first position.
        let from = if span.start > whole.start { span.start - 1 } else { span.start };
        chunk.offset = from;
        chunk.advance = span.end - span.start;
        chunk.begin = span.start - chunk.base;
        let buffer = &mut chunk.buffer;
        buffer.clear(from);
        buffer.read(&file, name, from, span.end)?;
        if let Some(sum) = &self.sums[chunk.input] {
            sum.add(span.start - chunk.base, &buffer.get()[(span.start - from) as usize..]);
        }
        chunk.start = if from == span.start {
            0
        } else {
            match memchr::memchr(delimiter, buffer.get()) {
                Some(at) if at + 1 < buffer.len || span.end == whole.end => at + 1,
                // No line starts here: all bytes belong to a line that started before.
                _ => {
                    (buffer.len, chunk.start) = (0, 0);
                    return Ok(Some(()));
                }
            }
        };
        // Finish the last line.
        let last = memchr::memrchr(delimiter, &buffer.get()[chunk.start..]);
        let line = chunk.start + last.map_or(0, |at| at + 1);
        let mut read = span.end;
        let mut step = 4096;
        while read < whole.end && buffer.get().last() != Some(&delimiter) {
            let length = (buffer.len - chunk.start) as u64;
            if length >= 2 * budget.chunk as u64 && ticket.wait().is_none() {
                return Ok(None);
            }
            let old = buffer.len;
            let next = whole.end.min(read + step);
            buffer.read(&file, name, read, next)?;
            read = next;
            if let Some(end) = memchr::memchr(delimiter, &buffer.get()[old..]) {
                buffer.len = old + end + 1;
                break;
            }
            if (buffer.len - line) as u64 > budget.longest_line {
                let offset = chunk.offset - whole.start + line as u64;
                let fields = &self.inputs[chunk.input].keys().fields;
                return Err(Error::line_too_long(name, offset, budget.longest_line, fields));
            }
            step = (step * 2).min(budget.chunk as u64);
        }
        Ok(Some(()))
    }
}
