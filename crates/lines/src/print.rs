//! Writing lines out, in the order of the first input.
//!
//! [`Printer`] takes lines as they are decided. [`print_marked`] makes the last pass over the
//! first input, when only positions are known: it reads only chunks that hold something to print.

use std::io::Write;
use std::time::Instant;

use crate::chunks::{Chunks, Flow, Text, Ticket};
use crate::error::{Error, Result};
use crate::input::{Input, Range};
use crate::marks::{Listed, Marks};
use crate::pass::Seen;

/// Where the lines of a job go.
#[derive(Default)]
pub struct Sinks<'a> {
    /// The answer; without a sink its lines are only counted.
    pub kept: Option<&'a mut (dyn Write + Send)>,
    /// The lines of the first input that are not in the answer, repeated ones among them, in
    /// order; nowhere without a sink.
    pub rest: Option<&'a mut (dyn Write + Send)>,
}

impl<'a> Sinks<'a> {
    /// The answer goes there, the rest nowhere.
    pub fn to(kept: &'a mut (dyn Write + Send)) -> Self {
        Self { kept: Some(kept), rest: None }
    }
}

/// Bytes written at a time: what a pipe holds. While one worker writes a block, the others come
/// as far as their turn; in larger blocks they would have to wait there.
const BLOCK: usize = 64 << 10;

/// Writes lines to their sinks.
pub(crate) struct Printer<'a> {
    kept: Option<Out<'a>>,
    rest: Option<Out<'a>>,
    delimiter: u8,
    /// Lines printed, or counted.
    pub(crate) lines: u64,
}

/// A sink, and what waits to be written to it.
struct Out<'a> {
    sink: &'a mut (dyn Write + Send),
    /// What an error of the sink is.
    failed: fn(std::io::Error) -> Error,
    block: usize,
    waiting: Vec<u8>,
}

impl Out<'_> {
    /// Writes bytes that may be any part of lines.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.waiting.len() + bytes.len() > self.block {
            self.write()?;
            if bytes.len() > self.block {
                return self.sink.write_all(bytes).map_err(self.failed);
            }
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.sink.write_all(&self.waiting).map_err(self.failed)?;
        self.waiting.clear();
        Ok(())
    }

    fn line(&mut self, line: &[u8], delimiter: u8) -> Result<()> {
        self.bytes(line)?;
        self.bytes(&[delimiter])
    }

    /// Whole lines of a text, of which the last may lack its end.
    fn pieces(&mut self, text: &[u8], pieces: &[Span], delimiter: u8) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.bytes(&text[piece.clone()]))?;
        match pieces.last() {
            Some(last) if text[..last.end].last() != Some(&delimiter) => self.bytes(&[delimiter]),
            _ => Ok(()),
        }
    }
}

impl<'a> Printer<'a> {
    /// Writes in blocks of at most so many bytes.
    pub(crate) fn new(sinks: Sinks<'a>, delimiter: u8, most: usize) -> Self {
        let block = most.min(BLOCK);
        let out = |sink: Option<_>, failed| {
            sink.map(|sink| Out { sink, failed, block, waiting: Vec::new() })
        };
        let kept = out(sinks.kept, Error::write as fn(_) -> _);
        Self { kept, rest: out(sinks.rest, Error::write_rest), delimiter, lines: 0 }
    }

    /// Whether lines are only counted.
    pub(crate) fn counts_only(&self) -> bool {
        self.kept.is_none() && self.rest.is_none()
    }

    /// Whether lines that are not in the answer are wanted too.
    pub(crate) fn takes_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Prints a line of the answer.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines += 1;
        let delimiter = self.delimiter;
        self.kept.as_mut().map_or(Ok(()), |out| out.line(line, delimiter))
    }

    /// Prints whole lines of the first input that are not in the answer; the last may lack its
    /// end.
    #[inline]
    pub(crate) fn rest(&mut self, lines: &[u8]) -> Result<()> {
        let delimiter = self.delimiter;
        let whole = 0..lines.len();
        let pieces = if lines.is_empty() { &[][..] } else { std::slice::from_ref(&whole) };
        self.rest.as_mut().map_or(Ok(()), |out| out.pieces(lines, pieces, delimiter))
    }

    /// Prints what was chosen of a text.
    fn pieces(&mut self, text: &[u8], pieces: &Pieces, listed: Listed) -> Result<()> {
        let (kept, rest) = match listed {
            Listed::Kept => (&pieces.marked, &pieces.others),
            Listed::Dropped => (&pieces.others, &pieces.marked),
        };
        let delimiter = self.delimiter;
        for (out, pieces) in [(&mut self.kept, kept), (&mut self.rest, rest)] {
            out.as_mut().map_or(Ok(()), |out| out.pieces(text, pieces, delimiter))?;
        }
        Ok(())
    }

    /// Writes out what waits.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.kept.iter_mut().chain(&mut self.rest).try_for_each(|out| {
            out.write()?;
            out.sink.flush().map_err(out.failed)
        })
    }
}

/// Bytes of a text.
type Span = std::ops::Range<usize>;

/// Prints the lines that start at marked positions, or all lines but those. Positions count
/// through the inputs as if they were one, from `base` on. The caller knows how many lines that is.
pub(crate) fn print_marked(
    chunks: &Chunks<'_>,
    inputs: &[Input],
    base: u64,
    listed: Listed,
    marks: &Marks<'_>,
    printer: &mut Printer<'_>,
) -> Result<Seen> {
    let begun = Instant::now();
    let starts = starts(inputs, base)?;
    let all = listed == Listed::Dropped || printer.takes_rest();
    let wanted = |input: usize, range: Range| {
        let (from, to) = (starts[input] + range.start, starts[input] + range.end);
        Ok(all || marks.any(from, to)?)
    };
    let most = chunks.budget.batch_lines();
    let each = |text: Text<'_>, pieces: &mut Pieces, ticket: &mut Ticket<'_, &mut Printer<'_>>| {
        let begin = starts[text.input] + text.offset;
        let marked = marks.within(begin, begin + text.bytes.len() as u64)?;
        let mut marked = marked.map(|at| (at - begin) as usize);
        let mut from = 0;
        loop {
            let end = pieces.choose(text.bytes, from, chunks.delimiter, &mut marked, all, most);
            let Some(printer) = ticket.wait() else { return Ok(None) };
            if from == 0 {
                marks.forget(begin);
            }
            printer.pieces(text.bytes, pieces, listed)?;
            match end {
                Some(next) => from = next,
                None => return Ok(Some(Flow::Go)),
            }
        }
    };
    let inputs: Vec<_> = inputs.iter().collect();
    let (_, bytes) = chunks.run("printing", &inputs, wanted, printer, each)?;
    Ok(Seen { what: "printing", lines: 0, bytes, seconds: begun.elapsed().as_secs_f64() })
}

/// Where each input begins when they are taken as one.
fn starts(inputs: &[Input], base: u64) -> Result<Vec<u64>> {
    let mut starts = vec![base];
    // How long the last one is does not matter, and need not be known.
    for input in inputs.split_last().map_or(&[][..], |(_, before)| before) {
        starts.push(starts.last().copied().unwrap_or(base) + input.known_length()?);
    }
    Ok(starts)
}

/// Whole lines of a text, neighbours together.
#[derive(Default)]
struct Pieces {
    marked: Vec<Span>,
    /// The lines between; only if they are wanted.
    others: Vec<Span>,
}

impl Pieces {
    /// Chooses from a place on, at most so many marked lines; where to go on, if there is more.
    fn choose(
        &mut self,
        text: &[u8],
        from: usize,
        delimiter: u8,
        marked: &mut impl Iterator<Item = usize>,
        others: bool,
        most: usize,
    ) -> Option<usize> {
        self.marked.clear();
        self.others.clear();
        let mut gap = from;
        for start in marked {
            let end = memchr::memchr(delimiter, &text[start..]);
            let end = end.map_or(text.len(), |end| start + end + 1);
            add(&mut self.marked, start..end);
            if others {
                add(&mut self.others, gap..start);
            }
            gap = end;
            if self.marked.len() + self.others.len() >= most {
                return Some(gap);
            }
        }
        if others {
            add(&mut self.others, gap..text.len());
        }
        None
    }
}

fn add(pieces: &mut Vec<Span>, piece: Span) {
    match pieces.last_mut() {
        Some(last) if last.end == piece.start => last.end = piece.end,
        _ if piece.is_empty() => {}
        _ => pieces.push(piece),
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
                    let marks = vec![marker.finish()];
                    let marks = Marks::new(spans, marks, &pad, 1 << 16, 2);
                    let (mut kept, mut rest) = (Vec::new(), Vec::new());
                    let both = set % 2 == 0;
                    let sinks = Sinks {
                        kept: Some(&mut kept),
                        rest: if both { Some(&mut rest) } else { None },
                    };
                    let mut printer = Printer::new(sinks, b'\n', chunk);
                    print_marked(&chunks, &inputs, 0, kind, &marks, &mut printer).unwrap();
                    printer.flush().unwrap();
                    let keep = |i: &usize| listed(i) == (kind == Listed::Kept);
                    let text = |keep: &dyn Fn(&usize) -> bool| {
                        let lines = (0..lines.len()).filter(keep).map(|i| lines[i].1);
                        lines.map(|line| format!("{line}\n")).collect::<String>()
                    };
                    let told = format!("{chunk} {set:b} {kind:?}");
                    assert_eq!(String::from_utf8(kept).unwrap(), text(&keep), "{told}");
                    let expect = if both { text(&|i| !keep(i)) } else { String::new() };
                    assert_eq!(String::from_utf8(rest).unwrap(), expect, "{told}");
                }
            }
        }
    }
}
