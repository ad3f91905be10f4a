//! One pass over inputs: lines in parallel, results in order. Every phase is one of these.
//!
//! Workers take chunks of whole lines in turn; `map` looks at a batch of lines on any thread,
//! `fold` is then called with the same batch in input order, one at a time. So `fold` may keep
//! state, write output and insert into tables, and everything comes out the same for any number
//! of workers.
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

use petal::Answers;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::input::{Input, Open, Range, Wait, read_at};
use crate::progress::Progress;

/// How much is asked of a stream at a time: what a pipe holds.
const STREAM_STEP: usize = 64 << 10;

/// What a fold says about going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More, please.
    Go,
    /// Enough: the pass ends well, here.
    Stop,
}

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

    /// All bytes from a line on, delimiters as they were.
    pub(crate) fn tail(&self, line: usize) -> &'a [u8] {
        self.bytes.get(self.start(line)..).unwrap_or_default()
    }
}

/// What a worker keeps from batch to batch, so that no batch allocates.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) keys: Vec<u64>,
    pub(crate) prints: Vec<Fingerprint>,
    pub(crate) answers: Answers,
    /// Lines of the batch that matter, by number.
    pub(crate) picks: Vec<usize>,
}

impl Scratch {
    /// The filter key of every line of a batch.
    #[inline]
    pub(crate) fn take_keys(&mut self, batch: &Batch<'_>, key: impl Fn(&[u8]) -> u64) {
        self.keys.clear();
        self.keys.extend(batch.lines().map(key));
    }
}

/// How a pass is to be made.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) progress: &'a dyn Progress,
}

/// What a pass went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

impl Pass<'_> {
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
        let bytes = inputs.iter().map(|input| input.length()).sum::<Option<u64>>();
        self.progress.phase(what, bytes);
        let chunk = self.budget.chunk as u64;
        let chunks = inputs.iter().map(|i| i.length().map(|l| l.div_ceil(chunk)));
        let chunks = chunks.sum::<Option<u64>>().unwrap_or(u64::MAX);
        let work = Work {
            pass: self,
            inputs,
            map,
            cursor: Mutex::new(Cursor::default()),
            turns: Turns {
                state: Mutex::new(Turn { next: 0, fold, result: Ok(()) }),
                moved: Condvar::new(),
                over: AtomicBool::new(false),
            },
            lines: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let workers = (self.budget.workers as u64).min(chunks).max(1);
        if workers == 1 {
            work.work();
        } else {
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|| work.work());
                }
            });
        }
        let turn = work.turns.state.into_inner().unwrap_or_else(|e| e.into_inner());
        turn.result?;
        // A file that was written to meanwhile may have given half of this and half of that.
        inputs.iter().try_for_each(|input| input.check_unchanged())?;
        Ok(Seen { lines: work.lines.into_inner(), bytes: work.bytes.into_inner() })
    }
}

struct Work<'a, M, F> {
    pass: &'a Pass<'a>,
    inputs: &'a [&'a Input],
    map: M,
    cursor: Mutex<Cursor>,
    turns: Turns<F>,
    lines: AtomicU64,
    bytes: AtomicU64,
}

/// Who may fold: the worker with the lowest chunk, always.
struct Turns<F> {
    state: Mutex<Turn<F>>,
    moved: Condvar,
    /// Nobody need begin another chunk: an error, or enough.
    over: AtomicBool,
}

struct Turn<F> {
    next: u64,
    fold: F,
    result: Result<()>,
}

impl<F> Turns<F> {
    /// Waits for a turn; `None` if the pass ended first.
    fn wait(&self, ticket: u64) -> Option<MutexGuard<'_, Turn<F>>> {
        let mut turn = self.state.lock().ok()?;
        while turn.next != ticket {
            if self.over.load(Ordering::Relaxed) {
                return None;
            }
            turn = self.moved.wait(turn).ok()?;
        }
        (!self.over.load(Ordering::Relaxed)).then_some(turn)
    }

    fn end(&self, mut turn: MutexGuard<'_, Turn<F>>) {
        turn.next += 1;
        drop(turn);
        self.moved.notify_all();
    }

    /// Ends the pass, with the error of the lowest chunk that had one: it holds the turn.
    fn stop(&self, turn: Option<MutexGuard<'_, Turn<F>>>, result: Result<()>) {
        let turn = turn.or_else(|| self.state.lock().ok());
        if let Some(mut turn) = turn {
            if turn.result.is_ok() && !self.over.load(Ordering::Relaxed) {
                turn.result = result;
            }
            self.over.store(true, Ordering::Relaxed);
        }
        self.moved.notify_all();
    }
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
        next: u64,
    },
    /// What was read behind the last line end, and where in the stream that is.
    Stream {
        stream: Box<dyn Wait + Send>,
        carry: Vec<u8>,
        offset: u64,
    },
}

/// A worker's buffer and what is in it.
#[derive(Default)]
struct Chunk {
    ticket: u64,
    input: usize,
    buffer: Vec<u8>,
    /// Where the lines begin in `buffer`.
    start: usize,
    /// Where `buffer` begins in the input.
    offset: u64,
    /// How far the input is done when this chunk is.
    advance: u64,
    /// To be read by position still.
    span: Option<(Arc<File>, Range, Range)>,
}

impl<M, F> Work<'_, M, F>
where
    M: Fn(&Batch<'_>, &mut Scratch) + Sync,
    F: FnMut(&Batch<'_>, &mut Scratch) -> Result<Flow> + Send,
{
    fn work(&self) {
        // A panic in one worker must wake the others, or they would wait for its turn forever.
        let _wake = Wake(self);
        let mut chunk = Chunk::default();
        let mut scratch = Scratch::default();
        let mut ends = Vec::new();
        while !self.turns.over.load(Ordering::Relaxed) {
            let mut turn = None;
            let done = self
                .claim(&mut chunk, &mut turn)
                .and_then(|some| if some { self.fill(&mut chunk, &mut turn) } else { Ok(None) })
                .and_then(|fill| match fill {
                    None => Ok(None),
                    Some(()) => self.lines(&chunk, &mut ends, &mut scratch, &mut turn),
                });
            match done {
                Ok(Some(Flow::Go)) => {
                    self.pass.progress.advance(chunk.advance);
                    self.bytes.fetch_add(chunk.advance, Ordering::Relaxed);
                    // An over-long line goes before the next may come.
                    if chunk.buffer.capacity() > 3 * self.pass.budget.chunk {
                        chunk.buffer = Vec::new();
                    }
                    if let Some(turn) = turn {
                        self.turns.end(turn);
                    }
                }
                Ok(Some(Flow::Stop)) => return self.turns.stop(turn, Ok(())),
                // No more chunks, or the pass ended while this worker waited.
                Ok(None) => return,
                Err(error) => {
                    // Of several errors, report the one that comes first in the input.
                    let turn = turn.or_else(|| self.turns.wait(chunk.ticket));
                    return self.turns.stop(turn, Err(error));
                }
            }
        }
    }

    /// Takes the next chunk: a byte range of a file, or what a stream has. `false` at the end.
    fn claim<'t>(
        &'t self,
        chunk: &mut Chunk,
        turn: &mut Option<MutexGuard<'t, Turn<F>>>,
    ) -> Result<bool> {
        let size = self.pass.budget.chunk as u64;
        let Ok(mut cursor) = self.cursor.lock() else { return Ok(false) };
        let some = self.claim_at(&mut cursor, size, chunk, turn);
        if some.is_err() {
            // The ticket stays with this worker, which reports the error when its turn comes.
            cursor.input = self.inputs.len();
        }
        some
    }

    fn claim_at<'t>(
        &'t self,
        cursor: &mut Cursor,
        size: u64,
        chunk: &mut Chunk,
        turn: &mut Option<MutexGuard<'t, Turn<F>>>,
    ) -> Result<bool> {
        loop {
            if self.pass.progress.stopped() {
                return Ok(false);
            }
            let Some(input) = self.inputs.get(cursor.input) else { return Ok(false) };
            (chunk.ticket, chunk.input) = (cursor.ticket, cursor.input);
            let at = match &mut cursor.open {
                Some(at) => at,
                none => none.insert(match input.open()? {
                    Open::File { file, range } => At::File { file, range, next: range.start },
                    Open::Stream(stream) => At::Stream { stream, carry: vec![], offset: 0 },
                }),
            };
            let some = match at {
                At::File { file, range, next } if *next < range.end => {
                    let span = Range { start: *next, end: range.end.min(*next + size) };
                    chunk.span = Some((Arc::clone(file), *range, span));
                    *next = span.end;
                    true
                }
                At::File { .. } => false,
                At::Stream { stream, carry, offset } => {
                    self.read_stream(stream.as_mut(), carry, offset, chunk, turn)?
                }
            };
            if some {
                cursor.ticket += 1;
                return Ok(true);
            }
            if self.turns.over.load(Ordering::Relaxed) {
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
        turn: &mut Option<MutexGuard<'t, Turn<F>>>,
    ) -> Result<bool> {
        let name = self.inputs[chunk.input].name();
        let size = self.pass.budget.chunk;
        let buffer = &mut chunk.buffer;
        buffer.clear();
        buffer.append(carry);
        (chunk.start, chunk.offset, chunk.span) = (0, *offset, None);
        let mut searched = 0;
        loop {
            let found = memchr::memrchr(self.pass.delimiter, &buffer[searched..]);
            if let Some(end) = found.map(|at| searched + at + 1) {
                carry.extend_from_slice(&buffer[end..]);
                buffer.truncate(end);
                break;
            }
            searched = buffer.len();
            if searched as u64 > self.pass.budget.longest_line {
                let limit = self.pass.budget.longest_line;
                return Err(Error::line_too_long(name, *offset, limit));
            }
            if searched >= size && turn.is_none() {
                *turn = self.turns.wait(chunk.ticket);
                if turn.is_none() {
                    return Ok(false);
                }
            }
            while !stream.ready() {
                // Nobody wants more: do not wait for a writer that may never write.
                if self.turns.over.load(Ordering::Relaxed) || self.pass.progress.stopped() {
                    return Ok(false);
                }
            }
            let got = loop {
                grow(buffer, searched + size.min(STREAM_STEP))?;
                match stream.read(&mut buffer[searched..]) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other.map_err(|e| Error::read(name, e))?,
                }
            };
            buffer.truncate(searched + got);
            if got == 0 {
                break;
            }
        }
        *offset += buffer.len() as u64;
        chunk.advance = buffer.len() as u64;
        Ok(!buffer.is_empty())
    }

    /// Reads the lines that start in the chunk's span; `None` if the pass ended meanwhile.
    fn fill<'t>(
        &'t self,
        chunk: &mut Chunk,
        turn: &mut Option<MutexGuard<'t, Turn<F>>>,
    ) -> Result<Option<()>> {
        let Some((file, whole, span)) = chunk.span.take() else { return Ok(Some(())) };
        let name = self.inputs[chunk.input].name();
        let delimiter = self.pass.delimiter;
        // One byte before tells whether a line starts right here.
        let from = if span.start > whole.start { span.start - 1 } else { span.start };
        chunk.offset = from - whole.start;
        chunk.advance = span.end - span.start;
        let buffer = &mut chunk.buffer;
        buffer.clear();
        grow(buffer, (span.end - from) as usize)?;
        read_at(&file, name, buffer, from)?;
        chunk.start = if from == span.start {
            0
        } else {
            match memchr::memchr(delimiter, buffer) {
                Some(at) if at + 1 < buffer.len() || span.end == whole.end => at + 1,
                // No line starts here: all of it belongs to one that started before.
                _ => {
                    buffer.clear();
                    chunk.start = 0;
                    return Ok(Some(()));
                }
            }
        };
        // Finish the last line.
        let mut read = span.end;
        let mut step = 4096;
        while read < whole.end && buffer.last() != Some(&delimiter) {
            let length = (buffer.len() - chunk.start) as u64;
            if length >= 2 * self.pass.budget.chunk as u64 && turn.is_none() {
                *turn = self.turns.wait(chunk.ticket);
                if turn.is_none() {
                    return Ok(None);
                }
            }
            let old = buffer.len();
            let next = whole.end.min(read + step);
            grow(buffer, old + (next - read) as usize)?;
            read_at(&file, name, &mut buffer[old..], read)?;
            read = next;
            if let Some(end) = memchr::memchr(delimiter, &buffer[old..]) {
                buffer.truncate(old + end + 1);
                break;
            }
            // The line may have begun anywhere in the chunk: the exact check comes with its end.
            if length > self.pass.budget.longest_line + self.pass.budget.chunk as u64 {
                break;
            }
            step = (step * 2).min(self.pass.budget.chunk as u64);
        }
        Ok(Some(()))
    }

    /// Maps and folds the lines of a chunk; `None` if the pass ended before its turn came.
    fn lines<'t>(
        &'t self,
        chunk: &Chunk,
        ends: &mut Vec<usize>,
        scratch: &mut Scratch,
        turn: &mut Option<MutexGuard<'t, Turn<F>>>,
    ) -> Result<Option<Flow>> {
        let most = self.pass.budget.batch_lines();
        let longest = self.pass.budget.longest_line as usize;
        let mut start = chunk.start;
        let mut flow = Flow::Go;
        loop {
            let bytes = chunk.buffer.get(start..).unwrap_or_default();
            ends.clear();
            ends.extend(memchr::memchr_iter(self.pass.delimiter, bytes).take(most));
            let mut end = ends.last().map_or(0, |end| end + 1);
            if ends.len() < most && end < bytes.len() {
                ends.push(bytes.len());
                end = bytes.len();
            }
            let batch = Batch {
                input: chunk.input,
                bytes: &bytes[..end],
                ends,
                offset: chunk.offset + start as u64,
                more: end < bytes.len(),
            };
            if bytes.len() > longest
                && let Some(line) = (0..batch.len()).find(|&l| batch.line(l).len() > longest)
            {
                let name = self.inputs[chunk.input].name();
                return Err(Error::line_too_long(name, batch.offset(line), longest as u64));
            }
            if batch.len() > 0 {
                (self.map)(&batch, scratch);
            }
            if turn.is_none() {
                *turn = self.turns.wait(chunk.ticket);
            }
            let Some(turn) = turn else { return Ok(None) };
            if batch.len() > 0 {
                self.lines.fetch_add(batch.len() as u64, Ordering::Relaxed);
                flow = (turn.fold)(&batch, scratch)?;
            }
            if flow == Flow::Stop || !batch.more {
                return Ok(Some(flow));
            }
            start += end;
        }
    }
}

/// Makes the buffer `length` bytes long; failing to is an error, not an abort.
fn grow(buffer: &mut Vec<u8>, length: usize) -> Result<()> {
    let more = length.saturating_sub(buffer.len());
    // Exact: an over-long line must not cost twice its length.
    buffer.try_reserve_exact(more).map_err(|_| Error::alloc(length as u64))?;
    buffer.resize(length, 0);
    Ok(())
}

/// Wakes everybody when a worker unwinds.
struct Wake<'a, 'b, M, F>(&'a Work<'b, M, F>);

impl<M, F> Drop for Wake<'_, '_, M, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // With the lock, or somebody between looking and waiting would miss it.
            let turn = self.0.turns.state.lock();
            self.0.turns.over.store(true, Ordering::Relaxed);
            drop(turn);
            self.0.turns.moved.notify_all();
        }
    }
}
