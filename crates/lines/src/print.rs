//! Writing lines out, in the order of the first input.
//!
//! [`Printer`] takes lines as they are decided. [`print_listed`] makes the last sequential pass
//! over the first input, when only positions are known: it reads what it needs and copies bytes,
//! so that a line of any length costs no more memory than a short one.

use std::io::Write;

use crate::error::{Error, Result};
use crate::input::{Input, Open, read_at};
use crate::progress::Progress;
use crate::resolve::Listed;

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

/// Prints the lines that start at the listed positions, or all lines but those. Positions are
/// ascending and count through the inputs as if they were one.
pub(crate) fn print_listed(
    inputs: &[Input],
    listed: Listed,
    mut next: impl FnMut() -> Result<Option<u64>>,
    printer: &mut Printer<'_>,
    progress: &dyn Progress,
) -> Result<()> {
    progress.phase("printing", inputs.iter().map(Input::length).sum());
    let mut position = next()?;
    let mut base = 0;
    for input in inputs {
        let length = input.length().unwrap_or(0);
        let end = base + length;
        if listed == Listed::Kept && position.is_none_or(|at| at >= end) {
            progress.advance(length);
            base = end;
            continue;
        }
        let mut window = Window::open(input, printer.block)?;
        let mut told = 0;
        // In step: up to the next listed line one way, that line the other way.
        while window.at < length {
            let until = position.map_or(length, |at| at.min(end) - base);
            match listed {
                Listed::Kept => window.skip(until),
                Listed::Dropped => window.copy(until, printer)?,
            }
            if until < length {
                match listed {
                    Listed::Kept => {
                        printer.lines += 1;
                        window.line(printer.delimiter, |bytes| printer.bytes(bytes))?;
                        if window.last != Some(printer.delimiter) {
                            printer.end_line()?;
                        }
                    }
                    Listed::Dropped => {
                        window.line(printer.delimiter, |_| Ok(()))?;
                        // A dropped last line without an end leaves nothing to end.
                        window.last = Some(printer.delimiter);
                    }
                }
                position = next()?;
                if listed == Listed::Kept && position.is_none_or(|at| at >= end) {
                    break;
                }
            }
            if window.at - told >= printer.block as u64 {
                progress.advance(window.at - told);
                told = window.at;
            }
        }
        if listed == Listed::Dropped && window.last.is_some_and(|b| b != printer.delimiter) {
            printer.end_line()?;
        }
        progress.advance(length - told);
        input.check_unchanged()?;
        base = end;
    }
    Ok(())
}

/// A moving view of an input, read ahead in blocks.
struct Window<'a> {
    name: &'a str,
    file: std::sync::Arc<std::fs::File>,
    start: u64,
    length: u64,
    buffer: Vec<u8>,
    block: usize,
    /// Where in the input `buffer` begins, and where we are.
    offset: u64,
    at: u64,
    /// The last byte gone over by `copy` or `line`.
    last: Option<u8>,
}

impl<'a> Window<'a> {
    fn open(input: &'a Input, block: usize) -> Result<Self> {
        let Open::File { file, range } = input.open()? else {
            unreachable!("streams are spooled before they are read twice");
        };
        Ok(Self {
            name: input.name(),
            file,
            start: range.start,
            length: range.end - range.start,
            buffer: Vec::new(),
            block,
            offset: 0,
            at: 0,
            last: None,
        })
    }

    /// What is read already from here on, at least a byte of it unless at the end.
    fn ahead(&mut self) -> Result<&[u8]> {
        if self.at >= self.offset + self.buffer.len() as u64 && self.at < self.length {
            let size = (self.length - self.at).min(self.block as u64) as usize;
            self.buffer.resize(size, 0);
            self.offset = self.at;
            read_at(&self.file, self.name, &mut self.buffer, self.start + self.at)?;
        }
        Ok(&self.buffer[(self.at - self.offset).min(self.buffer.len() as u64) as usize..])
    }

    /// Goes on to a position without reading what lies between.
    fn skip(&mut self, until: u64) {
        self.at = self.at.max(until);
    }

    fn copy(&mut self, until: u64, printer: &mut Printer<'_>) -> Result<()> {
        while self.at < until {
            let most = until - self.at;
            let ahead = self.ahead()?;
            let bytes = &ahead[..ahead.len().min(most as usize)];
            printer.bytes(bytes)?;
            let (length, last) = (bytes.len() as u64, bytes.last().copied());
            self.at += length;
            self.last = last;
        }
        Ok(())
    }

    /// Goes over one line, its delimiter included, in as many pieces as it takes.
    fn line(&mut self, delimiter: u8, mut piece: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        loop {
            let ahead = self.ahead()?;
            let end = memchr::memchr(delimiter, ahead);
            let bytes = &ahead[..end.map_or(ahead.len(), |at| at + 1)];
            piece(bytes)?;
            let (length, last) = (bytes.len() as u64, bytes.last().copied());
            self.at += length;
            self.last = last;
            if end.is_some() || self.at == self.length {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Source;

    #[test]
    fn kept_and_dropped_are_complements_for_any_block_size() {
        let dir = tempfile::tempdir().unwrap();
        let texts = ["alpha\n\nbeta\nlong line here\n", "x", "y\n\nzz", "last\n"];
        let paths: Vec<_> = (0..texts.len()).map(|i| dir.path().join(i.to_string())).collect();
        for (path, text) in paths.iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        let sources: Vec<_> = paths.iter().map(Source::from_arg).collect();
        let inputs = Input::look_at(&sources).unwrap();
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
        for block in [1, 2, 3, 7, 64] {
            for set in 0..1u32 << lines.len() {
                let listed = |i: &usize| set >> i & 1 == 1;
                for kind in [Listed::Kept, Listed::Dropped] {
                    let (mut out, mut i) = (Vec::new(), 0);
                    let mut printer = Printer::new(Some(&mut out), b'\n', block);
                    let next = || {
                        while i < lines.len() && !listed(&i) {
                            i += 1;
                        }
                        i += 1;
                        Ok(lines.get(i - 1).map(|line| line.0))
                    };
                    print_listed(&inputs, kind, next, &mut printer, &()).unwrap();
                    printer.flush().unwrap();
                    let keep = |i: &usize| listed(i) == (kind == Listed::Kept);
                    let expect: String = (0..lines.len())
                        .filter(keep)
                        .map(|i| format!("{}\n", lines[i].1))
                        .collect();
                    assert_eq!(String::from_utf8(out).unwrap(), expect, "{block} {set:b} {kind:?}");
                }
            }
        }
    }
}
