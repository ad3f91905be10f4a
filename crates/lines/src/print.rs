//! Writing lines out, in the order of the first input.
//!
//! [`Printer`] takes lines as they are decided. [`print_marked`] makes the last pass over the
//! first input, when only positions are known: it reads only chunks that hold something to print.

use std::io::Write;

use crate::chunks::{Chunks, Flow, Text, Ticket};
use crate::error::{Error, Result};
use crate::input::{Input, Range};
use crate::marks::Marks;

/// Which lines the marks stand for: those in the answer, or those that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Kept,
    Dropped,
}

/// Where lines go; nowhere if they are only counted.
pub(crate) struct Printer<'a> {
    sink: Option<&'a mut (dyn Write + Send)>,
    delimiter: u8,
    block: usize,
    out: Vec<u8>,
    /// Lines printed, or counted.
    pub(crate) lines: u64,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(
        sink: Option<&'a mut (dyn Write + Send)>,
        delimiter: u8,
        block: usize,
    ) -> Self {
        Self { sink, delimiter, block, out: Vec::new(), lines: 0 }
    }

    /// Whether lines are only counted.
    pub(crate) fn counts_only(&self) -> bool {
        self.sink.is_none()
    }

    /// Prints a line and its delimiter.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines += 1;
        self.bytes(line)?;
        self.end_line()
    }

    fn end_line(&mut self) -> Result<()> {
        let delimiter = [self.delimiter];
        self.bytes(&delimiter)
    }

    /// Writes bytes that may be any part of lines.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        if self.out.len() + bytes.len() > self.block {
            sink.write_all(&self.out).map_err(Error::write)?;
            self.out.clear();
            if bytes.len() > self.block {
                return sink.write_all(bytes).map_err(Error::write);
            }
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes out what waits.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        sink.write_all(&self.out).map_err(Error::write)?;
        self.out.clear();
        sink.flush().map_err(Error::write)
    }
}

/// Prints the lines that start at marked positions, or all lines but those. Positions count
/// through the inputs as if they were one. The caller knows how many lines that is.
pub(crate) fn print_marked(
    chunks: &Chunks<'_>,
    inputs: &[Input],
    listed: Listed,
    marks: &Marks<'_>,
    printer: &mut Printer<'_>,
) -> Result<()> {
    let starts = starts(inputs);
    // What goes wrong while looking ahead is met again by whoever reads the chunk.
    let wanted = |input: usize, range: Range| {
        let (from, to) = (starts[input] + range.start, starts[input] + range.end);
        listed == Listed::Dropped || marks.any(from, to).unwrap_or(true)
    };
    let each = |text: Text<'_>, pieces: &mut Pieces, ticket: &mut Ticket<'_, &mut Printer<'_>>| {
        let begin = starts[text.input] + text.offset;
        let marked = marks.within(begin, begin + text.bytes.len() as u64)?;
        pieces.choose(text.bytes, chunks.delimiter, listed, marked.map(|at| (at - begin) as usize));
        let Some(printer) = ticket.wait() else { return Ok(None) };
        marks.forget(begin);
        pieces.print(text.bytes, printer)?;
        Ok(Some(Flow::Go))
    };
    let inputs: Vec<_> = inputs.iter().collect();
    chunks.run("printing", &inputs, wanted, printer, each)?;
    Ok(())
}

/// Where each input begins when they are taken as one.
fn starts(inputs: &[Input]) -> Vec<u64> {
    let mut next = 0;
    let start = |input: &Input| {
        let start = next;
        next += input.length().unwrap_or(0);
        start
    };
    inputs.iter().map(start).collect()
}

/// What is to be printed of a text: whole lines, neighbours together.
#[derive(Default)]
struct Pieces {
    pieces: Vec<std::ops::Range<usize>>,
}

impl Pieces {
    fn choose(
        &mut self,
        text: &[u8],
        delimiter: u8,
        listed: Listed,
        marked: impl Iterator<Item = usize>,
    ) {
        self.pieces.clear();
        let mut gap = 0;
        for start in marked {
            let end = memchr::memchr(delimiter, &text[start..]).map_or(text.len(), |e| start + e + 1);
            match listed {
                Listed::Kept => self.add(start, end),
                Listed::Dropped => self.add(gap, start),
            }
            gap = end;
        }
        if listed == Listed::Dropped {
            self.add(gap, text.len());
        }
    }

    fn add(&mut self, start: usize, end: usize) {
        match self.pieces.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ if start < end => self.pieces.push(start..end),
            _ => {}
        }
    }

    fn print(&self, text: &[u8], printer: &mut Printer<'_>) -> Result<()> {
        for piece in &self.pieces {
            printer.bytes(&text[piece.clone()])?;
        }
        // Only the last line of an input may lack its end.
        match self.pieces.last() {
            Some(last) if text[..last.end].last() != Some(&printer.delimiter) => printer.end_line(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::input::{Source, Temp};
    use crate::marks::{Marker, Spans};
    use crate::spill::Scratchpad;

    #[test]
    fn kept_and_dropped_are_complements_for_any_chunk_size() {
        let dir = tempfile::tempdir().unwrap();
        let texts = ["alpha\n\nbeta\nlong line here\n", "x", "y\n\nzz", "last\n"];
        let paths: Vec<_> = (0..texts.len()).map(|i| dir.path().join(i.to_string())).collect();
        for (path, text) in paths.iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        let sources: Vec<_> = paths.iter().map(Source::from_arg).collect();
        let inputs = Input::look_at(&sources, 0).unwrap();
        // Every line with its position in all of it.
        let (mut lines, mut base) = (Vec::new(), 0);
        for text in texts {
            let mut at = 0;
            for line in text.split_inclusive('\n') {
                lines.push((base + at as u64, line.trim_end_matches('\n')));
                at += line.len();
            }
            base += text.len() as u64;
        }
        let pad = Scratchpad::new(&Temp::new(dir.path())).unwrap();
        let spans = Spans::new(base, 4);
        for chunk in [1, 2, 3, 7, 64] {
            let budget = Budget { chunk, ..Budget::new(1 << 24, 2).unwrap() };
            let chunks = Chunks { budget, delimiter: b'\n', progress: &() };
            for set in 0..1u32 << lines.len() {
                let listed = |i: &usize| set >> i & 1 == 1;
                for kind in [Listed::Kept, Listed::Dropped] {
                    let mut marker = Marker::new(spans, &pad, 1 << 16);
                    for i in (0..lines.len()).filter(listed) {
                        marker.mark(lines[i].0).unwrap();
                    }
                    let marks = vec![marker.finish().unwrap()];
                    let marks = Marks::new(spans, marks, &pad, 1 << 16, 2);
                    let mut out = Vec::new();
                    let mut printer = Printer::new(Some(&mut out), b'\n', chunk);
                    print_marked(&chunks, &inputs, kind, &marks, &mut printer).unwrap();
                    printer.flush().unwrap();
                    let keep = |i: &usize| listed(i) == (kind == Listed::Kept);
                    let expect: String = (0..lines.len())
                        .filter(keep)
                        .map(|i| format!("{}\n", lines[i].1))
                        .collect();
                    assert_eq!(String::from_utf8(out).unwrap(), expect, "{chunk} {set:b} {kind:?}");
                }
            }
        }
    }
}
