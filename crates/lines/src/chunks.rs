//! One reading of inputs, in chunks of whole lines: read and worked on in parallel, taken in
//! order. Every phase is one of these.
//!
//! Workers claim chunks in turn. What is done with one happens on any thread, until its *ticket*
//! is called: then its worker holds what all chunks share (state of a fold, output), in input
//! order, one at a time. So everything comes out the same for any number of workers.
//!
//! * A file is cut at fixed byte positions; **a line belongs to the chunk in which it starts**.
//!   Workers read by position, independently.
//! * A stream is read under a lock, as much as has arrived, cut at the last line end.
//! * A line longer than a chunk makes its worker wait for its turn and only then grow its
//!   buffer: at most one over-long line is in memory at a time. Nobody waits for a later chunk,
//!   so this cannot deadlock.
//!
//! Cost: one read of the input; memory as in [`Budget`]; one lock for each chunk, none a line.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rustix::fs::Advice;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::input::{Input, Open, Range, Wait, read_at};
use crate::progress::Progress;

/// What is said about going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More, please.
    Go,
    /// Enough: the reading ends well, here.
    Stop,
}

/// Whole lines next to each other in one input.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    /// Which of the inputs.
    pub(crate) input: usize,
    /// The lines; only the last of an input may lack its delimiter.
    pub(crate) bytes: &'a [u8],
    /// Where they begin in the input.
    pub(crate) offset: u64,
}

/// How inputs are to be read.
#[derive(Clone, Copy)]
pub(crate) struct Chunks<'a> {
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) progress: &'a dyn Progress,
}

impl Chunks<'_> {
    /// Goes through all inputs, one after the other, and gives back what was shared and the
    /// number of bytes gone through. Of files, chunks that are not `wanted` are not read.
    ///
    /// `each` gets the lines, something of its worker's own, and its ticket; `None` from it means
    /// that the reading ended before its ticket was called.
    pub(crate) fn run<S, W, E>(
        &self,
        what: &'static str,
        inputs: &[&Input],
        wanted: impl Fn(usize, Range) -> Result<bool> + Sync,
        shared: S,
        each: E,
    ) -> Result<(S, u64)>
    where
        S: Send,
        W: Default,
        E: Fn(Text<'_>, &mut W, &mut Ticket<'_, S>) -> Result<Option<Flow>> + Sync,
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
            turns: Turns::new(shared, workers as usize),
            bytes: AtomicU64::new(0),
        };
        if workers == 1 {
            reading.work(&each);
        } else {
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|| reading.work(&each));
                }
            });
        }
        let turn = reading.turns.state.into_inner().unwrap_or_else(|e| e.into_inner());
        turn.result?;
        inputs.iter().take(1).for_each(|input| input.contents().note(self.progress));
        // A file that was written to meanwhile may have given half of this and half of that.
        inputs.iter().try_for_each(|input| input.check_unchanged())?;
        Ok((turn.shared, reading.bytes.into_inner()))
    }
}

// ---- Turns --------------------------------------------------------------------------------------

/// Whose turn it is: that of the lowest chunk, always.
struct Turns<S> {
    state: Mutex<Turn<S>>,
    /// Where the holder of a ticket waits: its number modulo these, one for each worker.
    called: Vec<Condvar>,
    /// Nobody need begin another chunk: an error, or enough.
    over: AtomicBool,
}

struct Turn<S> {
    next: u64,
    shared: S,
    result: Result<()>,
}

/// A chunk's place in the order.
pub(crate) struct Ticket<'a, S> {
    turns: &'a Turns<S>,
    number: u64,
    turn: Option<MutexGuard<'a, Turn<S>>>,
}

impl<S> Ticket<'_, S> {
    /// Waits for the turn and holds it from then on; `None` if the reading ended first.
    pub(crate) fn wait(&mut self) -> Option<&mut S> {
        if self.turn.is_none() {
            self.turn = self.turns.wait(self.number);
        }
        self.turn.as_mut().map(|turn| &mut turn.shared)
    }
}

impl<S> Turns<S> {
    fn new(shared: S, workers: usize) -> Self {
        Self {
            state: Mutex::new(Turn { next: 0, shared, result: Ok(()) }),
            called: std::iter::repeat_with(Condvar::new).take(workers).collect(),
            over: AtomicBool::new(false),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn place(&self, number: u64) -> &Condvar {
        &self.called[(number % self.called.len() as u64) as usize]
    }

    fn wait(&self, number: u64) -> Option<MutexGuard<'_, Turn<S>>> {
        let mut turn = self.state.lock().ok()?;
        while turn.next != number {
            if self.is_over() {
                return None;
            }
            turn = self.place(number).wait(turn).ok()?;
        }
        (!self.is_over()).then_some(turn)
    }

    fn end(&self, mut turn: MutexGuard<'_, Turn<S>>) {
        turn.next += 1;
        let next = turn.next;
        drop(turn);
        self.place(next).notify_one();
    }

    /// Ends the reading, with the error of the lowest chunk that had one: it holds the turn.
    fn stop(&self, turn: Option<MutexGuard<'_, Turn<S>>>, result: Result<()>) {
        let turn = turn.or_else(|| self.state.lock().ok());
        if let Some(mut turn) = turn {
            if turn.result.is_ok() && !self.is_over() {
                turn.result = result;
            }
            self.over.store(true, Ordering::Relaxed);
        }
        self.wake_all();
    }

    fn wake_all(&self) {
        self.called.iter().for_each(Condvar::notify_all);
    }
}

/// Wakes everybody when a worker unwinds: they would wait for its turn forever.
struct Wake<'a, S>(&'a Turns<S>);

impl<S> Drop for Wake<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // With the lock, or somebody between looking and waiting would miss it.
            let turn = self.0.state.lock();
            self.0.over.store(true, Ordering::Relaxed);
            drop(turn);
            self.0.wake_all();
        }
    }
}

// ---- Reading ------------------------------------------------------------------------------------

struct Reading<'a, S, N> {
    chunks: &'a Chunks<'a>,
    inputs: &'a [&'a Input],
    wanted: N,
    cursor: Mutex<Cursor>,
    turns: Turns<S>,
    bytes: AtomicU64,
}

/// Where the next chunk is.
#[derive(Default)]
struct Cursor {
    /// The input being read, and how.
    input: usize,
    open: Option<At>,
    ticket: u64,
}

enum At {
    File {
        file: Arc<File>,
        range: Range,
        whole: Range,
        next: u64,
    },
    /// What was read behind the last line end, and where in the stream that is.
    Stream {
        stream: Box<dyn Wait + Send>,
        carry: Vec<u8>,
        offset: u64,
    },
}

/// A worker's chunk.
#[derive(Default)]
struct Chunk {
    input: usize,
    buffer: Buffer,
    /// Where the lines begin in `buffer`.
    start: usize,
    /// Where `buffer` begins in the file or stream, and where the input does.
    offset: u64,
    base: u64,
    /// How far the input is done when this chunk is.
    advance: u64,
    /// To be read by position still.
    span: Option<(Arc<File>, Range, Range)>,
}

impl<S, N> Reading<'_, S, N>
where
    S: Send,
    N: Fn(usize, Range) -> Result<bool> + Sync,
{
    fn work<W: Default>(
        &self,
        each: &(impl Fn(Text<'_>, &mut W, &mut Ticket<'_, S>) -> Result<Option<Flow>> + Sync),
    ) {
        let _wake = Wake(&self.turns);
        let mut chunk = Chunk::default();
        let mut own = W::default();
        while !self.turns.is_over() {
            let mut ticket = Ticket { turns: &self.turns, number: 0, turn: None };
            let done =
                self.one(&mut chunk, &mut ticket, |text, ticket| each(text, &mut own, ticket));
            match done {
                Ok(Some(Flow::Go)) => {
                    self.advance(chunk.advance);
                    // An over-long line goes before the next may come.
                    chunk.buffer.shrink(3 * self.chunks.budget.chunk);
                    match ticket.turn.or_else(|| self.turns.wait(ticket.number)) {
                        Some(turn) => self.turns.end(turn),
                        None => return,
                    }
                }
                Ok(Some(Flow::Stop)) => return self.turns.stop(ticket.turn, Ok(())),
                // No more chunks, or the reading ended while this worker waited.
                Ok(None) => return,
                Err(error) => {
                    // Of several errors, report the one that comes first in the input.
                    let turn = ticket.turn.or_else(|| self.turns.wait(ticket.number));
                    return self.turns.stop(turn, Err(error));
                }
            }
        }
    }

    /// Claims, reads and works on one chunk; `None` if there is none, or the reading ended.
    fn one<'t>(
        &'t self,
        chunk: &mut Chunk,
        ticket: &mut Ticket<'t, S>,
        each: impl FnOnce(Text<'_>, &mut Ticket<'t, S>) -> Result<Option<Flow>>,
    ) -> Result<Option<Flow>> {
        if !self.claim(chunk, ticket)? || self.fill(chunk, ticket)?.is_none() {
            return Ok(None);
        }
        let bytes = chunk.buffer.get().get(chunk.start..).unwrap_or_default();
        if bytes.is_empty() {
            // A long line passes through here.
            return Ok(Some(Flow::Go));
        }
        let offset = chunk.offset + chunk.start as u64 - chunk.base;
        each(Text { input: chunk.input, bytes, offset }, ticket)
    }

    fn advance(&self, bytes: u64) {
        self.chunks.progress.advance(bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes the next chunk: a byte range of a file, or what a stream has. `false` at the end.
    fn claim<'t>(&'t self, chunk: &mut Chunk, ticket: &mut Ticket<'t, S>) -> Result<bool> {
        let Ok(mut cursor) = self.cursor.lock() else { return Ok(false) };
        let some = self.claim_at(&mut cursor, chunk, ticket);
        if some.is_err() {
            // The ticket stays with this worker, which reports the error when its turn comes.
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
                none => none.insert(match input.open(budget.decoder)? {
                    Open::File { file, range, whole } => {
                        // The system reads twice as far ahead; if it does not, nothing is lost.
                        let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
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
                        let span = Range { start: *next, end };
                        *next = end;
                        let (start, end) = (span.start - range.start, end - range.start);
                        some = (self.wanted)(cursor.input, Range { start, end })?;
                        if some {
                            chunk.base = range.start;
                            chunk.span = Some((Arc::clone(file), *whole, span));
                        } else {
                            self.chunks.progress.advance(end - start);
                        }
                    }
                    some
                }
                At::Stream { stream, carry, offset } => {
                    let some = self.read_stream(stream.as_mut(), carry, offset, chunk, ticket)?;
                    if !some && !self.turns.is_over() && !self.chunks.progress.stopped() {
                        input.has_length(*offset);
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

    /// Reads what a stream has, at least one line; `false` at its end.
    fn read_stream<'t>(
        &'t self,
        stream: &mut dyn Wait,
        carry: &mut Vec<u8>,
        offset: &mut u64,
        chunk: &mut Chunk,
        ticket: &mut Ticket<'t, S>,
    ) -> Result<bool> {
        let name = self.inputs[chunk.input].name();
        let Budget { chunk: size, longest_line, .. } = self.chunks.budget;
        let buffer = &mut chunk.buffer;
        buffer.len = 0;
        buffer.room(carry.len())?.copy_from_slice(carry);
        buffer.len = carry.len();
        carry.clear();
        (chunk.start, chunk.offset, chunk.base, chunk.span) = (0, *offset, 0, None);
        let mut searched = 0;
        loop {
            let found = memchr::memrchr(self.chunks.delimiter, &buffer.get()[searched..]);
            if let Some(end) = found.map(|at| searched + at + 1) {
                carry.extend_from_slice(&buffer.get()[end..]);
                buffer.len = end;
                break;
            }
            searched = buffer.len;
            if searched as u64 > longest_line {
                let offset = self.inputs[chunk.input].byte(*offset);
                return Err(Error::line_too_long(name, offset, longest_line));
            }
            if searched >= size && ticket.wait().is_none() {
                return Ok(false);
            }
            while !stream.ready() {
                if self.chunks.progress.cancelled() {
                    return Err(Error::cancelled());
                }
                // Nobody wants more: do not wait for a writer that may never write.
                if self.turns.is_over() || self.chunks.progress.stopped() {
                    return Ok(false);
                }
            }
            // As much as a chunk holds, or as much again as there is of a long line.
            let room = buffer.room(size.saturating_sub(searched).max(size / 2))?;
            let got = loop {
                match stream.read(room) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other.map_err(|e| Error::read(name, e))?,
                }
            };
            buffer.len += got;
            if got == 0 {
                break;
            }
        }
        *offset += buffer.len as u64;
        chunk.advance = buffer.len as u64;
        Ok(buffer.len > 0)
    }

    /// Reads the lines that start in the chunk's span; `None` if the reading ended meanwhile.
    fn fill<'t>(&'t self, chunk: &mut Chunk, ticket: &mut Ticket<'t, S>) -> Result<Option<()>> {
        let Some((file, whole, span)) = chunk.span.take() else { return Ok(Some(())) };
        let name = self.inputs[chunk.input].name();
        let Chunks { delimiter, budget, .. } = *self.chunks;
        // One byte before tells whether a line starts right here.
        let from = if span.start > whole.start { span.start - 1 } else { span.start };
        chunk.offset = from;
        chunk.advance = span.end - span.start;
        let buffer = &mut chunk.buffer;
        buffer.len = 0;
        buffer.read(&file, name, from, span.end)?;
        chunk.start = if from == span.start {
            0
        } else {
            match memchr::memchr(delimiter, buffer.get()) {
                Some(at) if at + 1 < buffer.len || span.end == whole.end => at + 1,
                // No line starts here: all of it belongs to one that started before.
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
                return Err(Error::line_too_long(name, offset, budget.longest_line));
            }
            step = (step * 2).min(budget.chunk as u64);
        }
        Ok(Some(()))
    }
}

/// Bytes read, in memory that is made once and not cleared for each use.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many of them count.
    len: usize,
}

impl Buffer {
    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// So many bytes behind those that count, to be read into.
    fn room(&mut self, more: usize) -> Result<&mut [u8]> {
        let length = self.len + more;
        if length > self.bytes.len() {
            let grow = length - self.bytes.len();
            // Exact: an over-long line must not cost twice its length.
            let reserved = self.bytes.try_reserve_exact(grow);
            reserved.map_err(|_| Error::alloc(length as u64))?;
            self.bytes.resize(length, 0);
        }
        Ok(&mut self.bytes[self.len..length])
    }

    /// Reads a byte range of a file behind what is there.
    fn read(&mut self, file: &File, name: &str, from: u64, to: u64) -> Result<()> {
        let room = self.room((to - from) as usize)?;
        read_at(file, name, room, from)?;
        self.len += (to - from) as usize;
        Ok(())
    }

    /// Gives back the memory if it is more than `most`.
    fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            *self = Self::default();
        }
    }
}
