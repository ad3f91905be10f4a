//! The last pass over the first input: prints lines by position. Reads only chunks that contain
//! something to print.

use std::ops::ControlFlow;
use std::time::Instant;

use super::positions::{Polarity, PositionSet};
use crate::error::Result;
use crate::files::ByteRange;
use crate::input::Input;
use crate::output::{Printer, Span};
use crate::scan::{Chunks, LineChunk, PassStats, RecordEnds, Ticket};

/// Prints the lines at the positions, or all other lines, by `polarity`. Positions count from `base`
/// through the inputs as if they were one. The caller adds the number of lines.
pub(crate) fn print_positions(
    chunks: &Chunks<'_>,
    inputs: &[Input],
    base: u64,
    polarity: Polarity,
    positions: &PositionSet<'_>,
    printer: &mut Printer<'_>,
) -> Result<PassStats> {
    let begun = Instant::now();
    let starts = starts(inputs, base)?;
    let all = polarity == Polarity::Dropped || printer.takes_rest();
    let wanted = |input: usize, range: ByteRange| {
        let (from, to) = (starts[input] + range.start, starts[input] + range.end);
        Ok(all || positions.any(from, to)?)
    };
    let max = chunks.budget.batch_lines();
    let ends = inputs.iter().map(|input| RecordEnds::of(input, chunks.delimiter));
    let ends: Vec<_> = ends.collect();
    let each = |text: LineChunk<'_>,
                pieces: &mut Pieces,
                ticket: &mut Ticket<'_, &mut Printer<'_>>| {
        let begin = starts[text.input] + text.offset;
        let marked = positions.within(begin, begin + text.bytes.len() as u64)?;
        let mut marked = marked.map(|at| (at - begin) as usize);
        let mut from = 0;
        loop {
            let end = pieces.choose(text.bytes, from, ends[text.input], &mut marked, all, max);
            let Some(printer) = ticket.wait() else { return Ok(None) };
            if from == 0 {
                positions.forget(begin);
            }
            match polarity {
                Polarity::Kept => printer.pieces(text.bytes, &pieces.marked, &pieces.others)?,
                Polarity::Dropped => printer.pieces(text.bytes, &pieces.others, &pieces.marked)?,
            }
            match end {
                Some(next) => from = next,
                None => return Ok(Some(ControlFlow::Continue(()))),
            }
        }
    };
    let inputs: Vec<_> = inputs.iter().collect();
    let (_, bytes) = chunks.run("printing", &inputs, wanted, printer, each)?;
    Ok(PassStats { what: "printing", lines: 0, bytes, seconds: begun.elapsed().as_secs_f64() })
}

/// Returns the position of each input if they are taken as one.
pub(crate) fn starts(inputs: &[Input], base: u64) -> Result<Vec<u64>> {
    let mut starts = vec![base];
    // The length of the last input is not needed and may be unknown.
    for input in inputs.split_last().map_or(&[][..], |(_, before)| before) {
        starts.push(starts.last().copied().unwrap_or(base) + input.known_length()?);
    }
    Ok(starts)
}

/// The pieces of a text to print: whole lines, consecutive lines joined.
#[derive(Default)]
struct Pieces {
    marked: Vec<Span>,
    /// The lines between them, if needed.
    others: Vec<Span>,
}

impl Pieces {
    /// Collects pieces from `from` on, at most `max`. Returns where to continue if there are more.
    fn choose(
        &mut self,
        text: &[u8],
        from: usize,
        ends: RecordEnds,
        marked: &mut impl Iterator<Item = usize>,
        others: bool,
        max: usize,
    ) -> Option<usize> {
        self.marked.clear();
        self.others.clear();
        let mut gap = from;
        for start in marked {
            let end = ends.first(&text[start..]);
            let end = end.map_or(text.len(), |end| start + end + 1);
            add_piece(&mut self.marked, start..end);
            if others {
                add_piece(&mut self.others, gap..start);
            }
            gap = end;
            if self.marked.len() + self.others.len() >= max {
                return Some(gap);
            }
        }
        if others {
            add_piece(&mut self.others, gap..text.len());
        }
        None
    }
}

/// Adds a piece to those before, joined with the last one if it follows it.
#[inline]
pub(super) fn add_piece(pieces: &mut Vec<Span>, piece: Span) {
    match pieces.last_mut() {
        Some(last) if last.end == piece.start => last.end = piece.end,
        _ if piece.is_empty() => {}
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Source;
    use crate::memory::Budget;
    use crate::output::Outputs;
    use crate::setops::positions::{PositionWriter, Spans};
    use crate::temp::{SpillFile, TempDir};

    #[test]
    fn kept_and_dropped_are_complements_for_any_chunk_size() {
        let dir = tempfile::tempdir().unwrap();
        let texts = ["alpha\n\nbeta\nlong line here\n", "x", "y\n\nzz", "last\n"];
        let paths: Vec<_> = (0..texts.len()).map(|i| dir.path().join(i.to_string())).collect();
        for (path, text) in paths.iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        let sources: Vec<_> = paths.iter().map(Source::from_arg).collect();
        let inputs = Input::open_unchecked(&sources, 0).unwrap();
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
        let spill_file = SpillFile::new(&TempDir::new(dir.path())).unwrap();
        let spans = Spans::new(base, 4);
        for chunk in [1, 2, 3, 7, 64] {
            let budget = Budget { chunk, ..Budget::new(1 << 24, 2).unwrap() };
            let chunks = Chunks { budget, delimiter: b'\n', progress: &() };
            for set in 0..1u32 << lines.len() {
                let polarity = |i: &usize| set >> i & 1 == 1;
                for kind in [Polarity::Kept, Polarity::Dropped] {
                    let mut writer = PositionWriter::new(spans, &spill_file, 1 << 16);
                    for i in (0..lines.len()).filter(polarity) {
                        writer.push(lines[i].0).unwrap();
                    }
                    let positions = vec![writer.finish()];
                    let positions = PositionSet::new(spans, positions, &spill_file, 1 << 16, 2);
                    let (mut kept, mut rest) = (Vec::new(), Vec::new());
                    let both = set % 2 == 0;
                    let sinks = Outputs {
                        kept: Some(&mut kept),
                        rest: if both { Some(&mut rest) } else { None },
                    };
                    let mut printer = Printer::new(sinks, b'\n', chunk);
                    print_positions(&chunks, &inputs, 0, kind, &positions, &mut printer).unwrap();
                    printer.flush().unwrap();
                    let keep = |i: &usize| polarity(i) == (kind == Polarity::Kept);
                    let text = |keep: &dyn Fn(&usize) -> bool| {
                        let lines = (0..lines.len()).filter(keep).map(|i| lines[i].1);
                        lines.map(|line| format!("{line}\n")).collect::<String>()
                    };
                    let context = format!("{chunk} {set:b} {kind:?}");
                    assert_eq!(String::from_utf8(kept).unwrap(), text(&keep), "{context}");
                    let expect = if both { text(&|i| !keep(i)) } else { String::new() };
                    assert_eq!(String::from_utf8(rest).unwrap(), expect, "{context}");
                }
            }
        }
    }
}
