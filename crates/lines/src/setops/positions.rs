//! Sets of line positions: written in any order, read in ascending order.
//!
//! The input is divided into *spans* of positions. A position is written to the stream of its span,
//! in memory while it fits, then on disk. When the last pass reaches a span, its positions become a
//! bitmap with one bit for each byte of input. If the bitmap does not fit, the positions are divided
//! again into smaller spans.
//!
//! Nothing is sorted or merged. The cost does not depend on where the positions are.
//!
//! Cost: 8 bytes per position, written and read once for each level of spans; a few nanoseconds
//! each.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::temp::{RecordStream, SpillFile, SpillWriter};

/// Whether a set of positions lists the lines of the result or the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Polarity {
    #[default]
    Kept,
    Dropped,
}

/// Preferred length of a span: its bitmap stays in the cache.
const SPAN: u64 = 8 << 20;
/// Maximum number of spans of a level.
const MAX_SPANS: u64 = 1024;
/// Positions in a word of a bitmap; span lengths are a multiple of it.
const WORD: u64 = 64;

/// Positions divided into spans of equal length.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spans {
    from: u64,
    to: u64,
    each: u64,
}

impl Spans {
    /// The least length of a span.
    pub(crate) const LEAST: u64 = WORD;

    /// Positions below `length` in at most `max` spans.
    pub(crate) fn new(length: u64, max: u64) -> Self {
        Self::of(0, length, max)
    }

    /// Positions `from..to` in one span.
    pub(crate) fn whole(from: u64, to: u64) -> Self {
        Self { from, to, each: (to - from).next_multiple_of(WORD).max(WORD) }
    }

    /// `count` spans of length `each`, starting at `from`.
    pub(crate) fn even(from: u64, each: u64, count: u64) -> Self {
        Self { from, to: from.saturating_add(each.saturating_mul(count)), each }
    }

    fn of(from: u64, to: u64, max: u64) -> Self {
        let wanted = (to - from).div_ceil(SPAN).clamp(1, MAX_SPANS.min(max).max(1));
        Self { from, to, each: (to - from).div_ceil(wanted).next_multiple_of(WORD).max(WORD) }
    }

    /// Positions `from..to` in at least two spans.
    pub(crate) fn split(from: u64, to: u64, max: u64) -> Self {
        let Self { each, .. } = Self::of(from, to, max);
        Self { from, to, each: each.min(((to - from) / 2).next_multiple_of(WORD)).max(WORD) }
    }

    pub(crate) fn count(&self) -> usize {
        (self.to - self.from).div_ceil(self.each).max(1) as usize
    }

    /// May exceed the number of spans for a position from a damaged record. Writers put it into the
    /// last span, where readers ignore it.
    #[inline]
    pub(crate) fn span_of(&self, position: u64) -> usize {
        (position.saturating_sub(self.from) / self.each) as usize
    }

    pub(crate) fn bounds(&self, span: usize) -> (u64, u64) {
        let from = self.from + span as u64 * self.each;
        (from, self.to.min(from + self.each))
    }
}

/// Collects positions.
pub(crate) struct PositionWriter<'a> {
    spans: Spans,
    last: usize,
    spill: SpillWriter<'a>,
}

impl<'a> PositionWriter<'a> {
    /// Collects positions within `memory` bytes.
    pub(crate) fn new(spans: Spans, spill_file: &'a SpillFile, memory: u64) -> Self {
        let count = spans.count();
        Self { spans, last: count - 1, spill: SpillWriter::new(spill_file, count, memory) }
    }

    #[inline]
    pub(crate) fn push(&mut self, position: u64) -> Result<()> {
        let span = self.spans.span_of(position).min(self.last);
        self.spill.push(span, &position.to_le_bytes())
    }

    /// Returns a stream for each span.
    pub(crate) fn finish(self) -> Vec<RecordStream> {
        self.spill.finish()
    }
}

/// A set of positions for reading.
pub(crate) struct PositionSet<'a> {
    spill_file: &'a SpillFile,
    /// Maximum size of a bitmap in bytes.
    bitmap: u64,
    /// Memory for dividing a span again.
    memory: u64,
    ahead: Mutex<Ahead>,
}

/// The loaded bitmaps, and the spans after them.
struct Ahead {
    loaded: VecDeque<Arc<Bitmap>>,
    /// Memory of a dropped bitmap, for reuse.
    spare: Vec<u64>,
    /// Spans that are not loaded yet, the next one last.
    pending: Vec<Span>,
}

struct Span {
    from: u64,
    to: u64,
    streams: Vec<RecordStream>,
}

/// The positions of one span as bits.
struct Bitmap {
    from: u64,
    to: u64,
    words: Vec<u64>,
}

impl<'a> PositionSet<'a> {
    /// The positions of several writers with the same spans, for `workers` threads within `memory`
    /// bytes.
    pub(crate) fn new(
        spans: Spans,
        markers: Vec<Vec<RecordStream>>,
        spill_file: &'a SpillFile,
        memory: u64,
        workers: usize,
    ) -> Self {
        let mut pending: Vec<_> = (0..spans.count())
            .map(|span| {
                let (from, to) = spans.bounds(span);
                Span { from, to, streams: Vec::new() }
            })
            .collect();
        for streams in markers {
            let filled = pending.iter_mut().zip(streams);
            filled.filter(|(_, stream)| stream.bytes() > 0).for_each(|(s, m)| s.streams.push(m));
        }
        pending.reverse();
        Self {
            spill_file,
            // Each worker may read a bitmap of its own, and the end of the one before.
            bitmap: (memory / 2 / (workers as u64 + 2)).max(WORD),
            memory: memory / 2,
            ahead: Mutex::new(Ahead { loaded: VecDeque::new(), spare: Vec::new(), pending }),
        }
    }

    /// Returns the positions in a range, ascending. Ranges must be nearly in ascending order: none
    /// may begin before a [dropped](Self::forget) position.
    pub(crate) fn within(&self, from: u64, to: u64) -> Result<PositionIter> {
        let ahead = self.load(to)?;
        let near = ahead.loaded.iter().filter(|bitmap| bitmap.from < to && bitmap.to > from);
        Ok(PositionIter::new(near.map(Arc::clone).collect(), from, to))
    }

    /// Returns whether a range contains a position.
    pub(crate) fn any(&self, from: u64, to: u64) -> Result<bool> {
        Ok(self.within(from, to)?.next().is_some())
    }

    /// Drops positions before this one.
    pub(crate) fn forget(&self, before: u64) {
        let mut ahead = self.lock();
        while ahead.loaded.front().is_some_and(|bitmap| bitmap.to <= before) {
            let Some(Ok(gone)) = ahead.loaded.pop_front().map(Arc::try_unwrap) else { continue };
            ahead.spare = gone.words;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Loads all spans up to a position.
    fn load(&self, to: u64) -> Result<MutexGuard<'_, Ahead>> {
        let mut ahead = self.lock();
        while ahead.pending.last().is_some_and(|span| span.from < to) {
            // The span stays pending until it is loaded, so that it is not taken as empty after an
            // error.
            let Ahead { loaded, spare, pending } = &mut *ahead;
            let Some(span) = pending.last() else { break };
            if span.streams.is_empty() {
                pending.pop();
            } else if (span.to - span.from).div_ceil(8) > self.bitmap && span.to - span.from > WORD
            {
                let parts = self.divide(span)?;
                pending.pop();
                pending.extend(parts.into_iter().rev());
            } else {
                loaded.push_back(Arc::new(self.bitmap(span, std::mem::take(spare))?));
                pending.pop();
            }
        }
        Ok(ahead)
    }

    /// Divides a span into smaller ones.
    fn divide(&self, span: &Span) -> Result<Vec<Span>> {
        let spans = Spans::split(span.from, span.to, SpillWriter::max_streams(self.memory));
        let mut writer = PositionWriter::new(spans, self.spill_file, self.memory);
        self.each(span, |position| writer.push(position))?;
        let parts = writer.finish().into_iter().enumerate().map(|(part, stream)| {
            let (from, to) = spans.bounds(part);
            Span { from, to, streams: if stream.bytes() > 0 { vec![stream] } else { vec![] } }
        });
        Ok(parts.collect())
    }

    fn bitmap(&self, span: &Span, mut words: Vec<u64>) -> Result<Bitmap> {
        let count = (span.to - span.from).div_ceil(WORD) as usize;
        words.clear();
        words.try_reserve_exact(count).map_err(|_| Error::alloc(count as u64 * 8))?;
        words.resize(count, 0);
        self.each(span, |position| {
            let at = position - span.from;
            words[(at / WORD) as usize] |= 1 << (at % WORD);
            Ok(())
        })?;
        Ok(Bitmap { from: span.from, to: span.to, words })
    }

    fn each(&self, span: &Span, mut each: impl FnMut(u64) -> Result<()>) -> Result<()> {
        span.streams.iter().try_for_each(|stream| {
            stream.for_each_block(self.spill_file, |block| {
                let positions = block.as_chunks().0.iter().map(|p| u64::from_le_bytes(*p));
                positions.filter(|at| (span.from..span.to).contains(at)).try_for_each(&mut each)
            })
        })
    }
}

/// The positions in a range, ascending.
pub(crate) struct PositionIter {
    bitmaps: Vec<Arc<Bitmap>>,
    /// Indices of the bitmap and of the word in it.
    at: usize,
    word: usize,
    /// Remaining bits of the word.
    bits: u64,
    from: u64,
    to: u64,
}

impl PositionIter {
    fn new(bitmaps: Vec<Arc<Bitmap>>, from: u64, to: u64) -> Self {
        let mut iter = Self { bitmaps, at: 0, word: 0, bits: 0, from, to };
        if let Some(first) = iter.bitmaps.first() {
            // The first word may start before the range.
            let skip = from.saturating_sub(first.from);
            iter.word = (skip / WORD) as usize;
            let bits = first.words.get(iter.word).copied().unwrap_or(0);
            iter.bits = bits & u64::MAX << (skip % WORD);
        }
        iter
    }
}

impl Iterator for PositionIter {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            let bitmap = self.bitmaps.get(self.at)?;
            if self.bits != 0 {
                let bit = u64::from(self.bits.trailing_zeros());
                let position = bitmap.from + self.word as u64 * WORD + bit;
                self.bits &= self.bits - 1;
                debug_assert!(position >= self.from);
                return (position < self.to).then_some(position);
            }
            let rest = bitmap.words.get(self.word + 1..).unwrap_or_default();
            match rest.iter().position(|word| *word != 0) {
                Some(ahead) => {
                    self.word += 1 + ahead;
                    self.bits = bitmap.words[self.word];
                }
                None => {
                    self.at += 1;
                    self.word = 0;
                    self.bits = self.bitmaps.get(self.at).map_or(0, |next| next.words[0]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temp::TempDir;
    use petal_testkit::rng::Rng;

    #[test]
    fn positions_are_ascending_for_any_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(5);
        for length in [0, 1, 63, 64, 1000, 100_000, 30 << 20] {
            for (memory, max) in [(1 << 24, 1024), (5000, 7), (300, 2), (0, 1)] {
                if memory < 5000 && length > 100_000 {
                    continue;
                }
                let spill_file = SpillFile::new(&TempDir::new(dir.path())).unwrap();
                let spans = Spans::new(length, max);
                let mut positions: Vec<_> = (0..length.min(3000))
                    .map(|_| rng.below(length as usize) as u64)
                    .filter(|at| *at < length / 3 || *at > length / 2)
                    .collect();
                let mut markers = Vec::new();
                for half in positions.chunks(positions.len() / 2 + 1) {
                    let mut writer = PositionWriter::new(spans, &spill_file, memory);
                    half.iter().for_each(|&position| writer.push(position).unwrap());
                    markers.push(writer.finish());
                }
                let set = PositionSet::new(spans, markers, &spill_file, memory, 2);
                positions.sort_unstable();
                positions.dedup();
                let step = 1 + length / 37;
                let mut found = Vec::new();
                for from in (0..length).step_by(step as usize) {
                    let to = length.min(from + step);
                    let expect = positions.iter().any(|at| (from..to).contains(at));
                    assert_eq!(set.any(from, to).unwrap(), expect);
                    found.extend(set.within(from, to).unwrap());
                    set.forget(from);
                }
                assert_eq!(found, positions, "{length} {memory}");
            }
        }
    }

    #[test]
    fn unreadable_positions_are_an_error_on_every_read() {
        let file = tempfile::tempfile().unwrap();
        let temp = TempDir::new(std::path::Path::new("/"));
        let spill_file = SpillFile::of_file(file.try_clone().unwrap(), 0, &temp);
        let spans = Spans::new(100_000, 4);
        let mut writer = PositionWriter::new(spans, &spill_file, 0);
        (0..3000).for_each(|at| writer.push(at * 30).unwrap());
        let set = PositionSet::new(spans, vec![writer.finish()], &spill_file, 1 << 20, 1);
        file.set_len(10).unwrap();
        for _ in 0..3 {
            assert!(set.any(0, 100_000).is_err() && set.within(0, 50).is_err());
        }
    }
}
