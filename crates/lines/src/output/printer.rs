//! Buffered output of lines.

use std::io::Write;
use std::ops::Range;

use super::output_start::OutputStart;
use crate::error::{Error, Result};

/// A range of bytes in a text.
pub(crate) type Span = Range<usize>;

/// The outputs of a job.
#[derive(Default)]
pub struct Outputs<'a> {
    /// Receives the lines of the answer; `None`: count them only.
    pub kept: Option<&'a mut (dyn Write + Send)>,
    /// Receives the other lines of the first input in order, including repeated ones; `None`: discard
    /// them.
    pub rest: Option<&'a mut (dyn Write + Send)>,
}

impl<'a> Outputs<'a> {
    /// Writes the answer to `kept` and discards the other lines.
    pub fn to(kept: &'a mut (dyn Write + Send)) -> Self {
        Self { kept: Some(kept), rest: None }
    }
}

/// Bytes written at a time, in whole lines. The page cache takes blocks of 64 KiB that begin anywhere
/// in a page at 2.5 GB/s, of 256 KiB at 3.4 GB/s, of 1 MiB at 4 GB/s. Other workers wait for their
/// turn while one writes to a full pipe, so a block is not larger than an enlarged pipe.
const BLOCK: usize = 256 << 10;

/// Writes lines to the outputs.
pub(crate) struct Printer<'a> {
    kept: Option<Out<'a>>,
    rest: Option<Out<'a>>,
    delimiter: u8,
    /// Number of lines printed or counted.
    pub(crate) lines: u64,
    /// That number at the last mark.
    marked_lines: u64,
}

/// A buffered output.
struct Out<'a> {
    sink: &'a mut (dyn Write + Send),
    /// Converts an I/O error.
    failed: fn(std::io::Error) -> Error,
    block: usize,
    buffer: Vec<u8>,
    /// Bytes to write before the first line.
    start: Vec<u8>,
    /// Bytes since the last mark.
    marked: u64,
    /// Number of the next bytes that have been written before.
    skipped: u64,
}

impl Out<'_> {
    /// Writes bytes.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.start.is_empty() {
            self.buffer.append(&mut self.start);
        }
        self.marked += bytes.len() as u64;
        let skipped = self.skipped.min(bytes.len() as u64);
        self.skipped -= skipped;
        let bytes = &bytes[skipped as usize..];
        if self.buffer.len() + bytes.len() > self.block {
            self.write()?;
            if bytes.len() > self.block {
                return self.sink.write_all(bytes).map_err(self.failed);
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.sink.write_all(&self.buffer).map_err(self.failed)?;
        self.buffer.clear();
        Ok(())
    }

    fn line(&mut self, line: &[u8], delimiter: u8) -> Result<()> {
        self.bytes(line)?;
        self.bytes(&[delimiter])
    }

    /// Writes pieces of whole lines; adds the delimiter of the last line if it lacks one.
    fn pieces(&mut self, text: &[u8], pieces: &[Span], delimiter: u8) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.bytes(&text[piece.clone()]))?;
        match pieces.last() {
            Some(last) if text[..last.end].last() != Some(&delimiter) => self.bytes(&[delimiter]),
            _ => Ok(()),
        }
    }
}

impl<'a> Printer<'a> {
    /// Writes blocks of at most `max` bytes.
    pub(crate) fn new(sinks: Outputs<'a>, delimiter: u8, max: usize) -> Self {
        let block = max.min(BLOCK);
        let out = |sink: Option<_>, failed| {
            sink.map(|sink| {
                let (buffer, start) = (Vec::new(), Vec::new());
                Out { sink, failed, block, buffer, start, marked: 0, skipped: 0 }
            })
        };
        let kept = out(sinks.kept, Error::write as fn(_) -> _);
        Self {
            kept,
            rest: out(sinks.rest, Error::write_rest),
            delimiter,
            lines: 0,
            marked_lines: 0,
        }
    }

    /// Returns whether lines are only counted.
    pub(crate) fn counts_only(&self) -> bool {
        self.kept.is_none() && self.rest.is_none()
    }

    /// Returns whether lines that are not in the answer are written too.
    pub(crate) fn takes_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Begins each output: prints the header, which is no line of the answer. Without a header, a byte
    /// order mark is printed before the first line, so that an output without lines is empty.
    pub(crate) fn print_start(&mut self, start: &OutputStart) -> Result<()> {
        let delimiter = self.delimiter;
        for out in self.kept.iter_mut().chain(&mut self.rest) {
            match start.header {
                Some(_) => out.line(&start.bytes(), delimiter)?,
                None => out.start = start.bytes(),
            }
        }
        Ok(())
    }

    /// Writes bytes before the next line of the answer.
    pub(crate) fn before_line(&mut self, bytes: &[u8]) -> Result<()> {
        self.kept.as_mut().map_or(Ok(()), |out| out.bytes(bytes))
    }

    /// Prints a line of the answer.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines += 1;
        let delimiter = self.delimiter;
        self.kept.as_mut().map_or(Ok(()), |out| out.line(line, delimiter))
    }

    /// Prints whole lines that are not in the answer; the last may lack its delimiter.
    #[inline]
    pub(crate) fn rest(&mut self, lines: &[u8]) -> Result<()> {
        let delimiter = self.delimiter;
        let whole = 0..lines.len();
        let pieces = if lines.is_empty() { &[][..] } else { std::slice::from_ref(&whole) };
        self.rest.as_mut().map_or(Ok(()), |out| out.pieces(lines, pieces, delimiter))
    }

    /// Writes pieces of a text: those of the answer, and those of the other lines.
    pub(crate) fn pieces(&mut self, text: &[u8], kept: &[Span], rest: &[Span]) -> Result<()> {
        let delimiter = self.delimiter;
        for (out, pieces) in [(&mut self.kept, kept), (&mut self.rest, rest)] {
            out.as_mut().map_or(Ok(()), |out| out.pieces(text, pieces, delimiter))?;
        }
        Ok(())
    }

    /// Marks the end of what has been printed.
    pub(crate) fn mark(&mut self) {
        self.marked_lines = self.lines;
        self.kept.iter_mut().chain(&mut self.rest).for_each(|out| out.marked = 0);
    }

    /// Prepares to print everything since the mark once more, of which the part that has been printed is
    /// left out.
    pub(crate) fn print_again(&mut self) {
        self.lines = self.marked_lines;
        for out in self.kept.iter_mut().chain(&mut self.rest) {
            (out.skipped, out.marked) = (out.marked, 0);
        }
    }

    /// Writes the buffers and flushes the outputs.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.kept.iter_mut().chain(&mut self.rest).try_for_each(|out| {
            out.write()?;
            out.sink.flush().map_err(out.failed)
        })
    }
}
