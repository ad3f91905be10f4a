//! Which lines to print: positions, marked in any order, looked up in ascending order.
//!
//! All of the input is cut into *spans* of positions. Marks are dealt to the span they lie in, in
//! memory while they fit, then on disk. When the last pass comes to a span, its marks become a
//! bitmap, a bit for each byte; if that does not fit, the marks are dealt again to smaller spans.
//!
//! Nothing is sorted or merged, and how many marks there are, or where, does not matter: the
//! bitmap of a span takes what it takes.
//!
//! Cost: 8 bytes a mark, written and read once for each level of spans; a few nanoseconds each.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::spill::{Scratchpad, Spill, Stream};

/// Which lines the marks stand for: those in the answer, or those that are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Listed {
    #[default]
    Kept,
    Dropped,
}

/// Text that one bitmap is for, if memory allows: it then stays in the cache.
const SPAN: u64 = 8 << 20;
/// The most spans of a level.
const MOST_SPANS: u64 = 1024;
/// Positions of a word of a bitmap; spans are a multiple of it.
const WORD: u64 = 64;

/// Positions cut into spans of equal size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spans {
    from: u64,
    to: u64,
    each: u64,
}

impl Spans {
    /// Positions below `length` in at most so many spans.
    pub(crate) fn new(length: u64, most: u64) -> Self {
        Self::of(0, length, most)
    }

    /// Positions from one to before another, not cut.
    pub(crate) fn whole(from: u64, to: u64) -> Self {
        Self { from, to, each: (to - from).next_multiple_of(WORD).max(WORD) }
    }

    /// So many spans of equal size, from a position on.
    pub(crate) fn even(from: u64, each: u64, count: u64) -> Self {
        Self { from, to: from.saturating_add(each.saturating_mul(count)), each }
    }

    fn of(from: u64, to: u64, most: u64) -> Self {
        let wanted = (to - from).div_ceil(SPAN).clamp(1, MOST_SPANS.min(most).max(1));
        Self { from, to, each: (to - from).div_ceil(wanted).next_multiple_of(WORD).max(WORD) }
    }

    /// The same, cut in two at least.
    fn split(from: u64, to: u64, most: u64) -> Self {
        let Self { each, .. } = Self::of(from, to, most);
        Self { from, to, each: each.min(((to - from) / 2).next_multiple_of(WORD)).max(WORD) }
    }

    pub(crate) fn count(&self) -> usize {
        (self.to - self.from).div_ceil(self.each).max(1) as usize
    }

    /// Positions that a damaged record might have, outside of all spans, go to the last: whoever
    /// looks marks up there passes over them.
    #[inline]
    fn span_of(&self, position: u64) -> usize {
        (position.saturating_sub(self.from) / self.each) as usize
    }

    fn bounds(&self, span: usize) -> (u64, u64) {
        let from = self.from + span as u64 * self.each;
        (from, self.to.min(from + self.each))
    }
}

/// Takes marks.
pub(crate) struct Marker<'a> {
    spans: Spans,
    last: usize,
    spill: Spill<'a>,
}

impl<'a> Marker<'a> {
    /// Takes marks within `memory` bytes.
    pub(crate) fn new(spans: Spans, pad: &'a Scratchpad, memory: u64) -> Self {
        let count = spans.count();
        Self { spans, last: count - 1, spill: Spill::new(pad, count, memory) }
    }

    #[inline]
    pub(crate) fn mark(&mut self, position: u64) -> Result<()> {
        let span = self.spans.span_of(position).min(self.last);
        self.spill.push(span, &position.to_le_bytes())
    }

    /// The marks, a stream for each span.
    pub(crate) fn finish(self) -> Vec<Stream> {
        self.spill.finish()
    }
}

/// Marks to be looked up.
pub(crate) struct Marks<'a> {
    pad: &'a Scratchpad,
    /// Bytes that a bitmap may take.
    bitmap: u64,
    /// Bytes for dealing marks again.
    memory: u64,
    ahead: Mutex<Ahead>,
}

/// What is loaded, and what comes after it.
struct Ahead {
    loaded: VecDeque<Arc<Bitmap>>,
    /// Memory of a bitmap that was forgotten, for the next: new memory costs more.
    spare: Vec<u64>,
    /// Spans whose marks are not loaded yet, the next one last.
    pending: Vec<Span>,
}

struct Span {
    from: u64,
    to: u64,
    marks: Vec<Stream>,
}

/// The marks of one span.
struct Bitmap {
    from: u64,
    to: u64,
    words: Vec<u64>,
}

impl<'a> Marks<'a> {
    /// Marks that several markers of the same spans took, to be looked up by so many workers
    /// within `memory` bytes.
    pub(crate) fn new(
        spans: Spans,
        markers: Vec<Vec<Stream>>,
        pad: &'a Scratchpad,
        memory: u64,
        workers: usize,
    ) -> Self {
        let mut pending: Vec<_> = (0..spans.count())
            .map(|span| {
                let (from, to) = spans.bounds(span);
                Span { from, to, marks: Vec::new() }
            })
            .collect();
        for streams in markers {
            let filled = pending.iter_mut().zip(streams);
            filled.filter(|(_, marks)| marks.bytes() > 0).for_each(|(s, m)| s.marks.push(m));
        }
        pending.reverse();
        Self {
            pad,
            // Every worker may be in a bitmap of its own, and at the end of the one before.
            bitmap: (memory / 2 / (workers as u64 + 2)).max(WORD),
            memory: memory / 2,
            ahead: Mutex::new(Ahead { loaded: VecDeque::new(), spare: Vec::new(), pending }),
        }
    }

    /// The marked positions of a range, ascending. Ranges are asked for in ascending order, or
    /// nearly: nothing may be asked for that was [forgotten](Self::forget).
    pub(crate) fn within(&self, from: u64, to: u64) -> Result<Marked> {
        let ahead = self.load(to)?;
        let near = ahead.loaded.iter().filter(|bitmap| bitmap.from < to && bitmap.to > from);
        Ok(Marked::new(near.map(Arc::clone).collect(), from, to))
    }

    /// Whether any position of a range is marked.
    pub(crate) fn any(&self, from: u64, to: u64) -> Result<bool> {
        Ok(self.within(from, to)?.next().is_some())
    }

    /// Nothing before this position will be asked for again.
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

    /// Loads everything up to a position.
    fn load(&self, to: u64) -> Result<MutexGuard<'_, Ahead>> {
        let mut ahead = self.lock();
        while ahead.pending.last().is_some_and(|span| span.from < to) {
            // It stays pending until it is loaded: after an error nobody may take it for empty.
            let Ahead { loaded, spare, pending } = &mut *ahead;
            let Some(span) = pending.last() else { break };
            if span.marks.is_empty() {
                pending.pop();
            } else if (span.to - span.from).div_ceil(8) > self.bitmap && span.to - span.from > WORD
            {
                let parts = self.deal(span)?;
                pending.pop();
                pending.extend(parts.into_iter().rev());
            } else {
                loaded.push_back(Arc::new(self.bitmap(span, std::mem::take(spare))?));
                pending.pop();
            }
        }
        Ok(ahead)
    }

    /// The marks of a span, dealt to smaller ones.
    fn deal(&self, span: &Span) -> Result<Vec<Span>> {
        let spans = Spans::split(span.from, span.to, Spill::most_streams(self.memory));
        let mut marker = Marker::new(spans, self.pad, self.memory);
        self.each(span, |position| marker.mark(position))?;
        let parts = marker.finish().into_iter().enumerate().map(|(part, marks)| {
            let (from, to) = spans.bounds(part);
            Span { from, to, marks: if marks.bytes() > 0 { vec![marks] } else { vec![] } }
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
        span.marks.iter().try_for_each(|stream| {
            stream.for_each_block(self.pad, |block| {
                let positions = block.as_chunks().0.iter().map(|p| u64::from_le_bytes(*p));
                positions.filter(|at| (span.from..span.to).contains(at)).try_for_each(&mut each)
            })
        })
    }
}

/// The marked positions of a range, ascending.
pub(crate) struct Marked {
    bitmaps: Vec<Arc<Bitmap>>,
    /// Which bitmap, and which of its words.
    at: usize,
    word: usize,
    /// What is left of that word.
    bits: u64,
    from: u64,
    to: u64,
}

impl Marked {
    fn new(bitmaps: Vec<Arc<Bitmap>>, from: u64, to: u64) -> Self {
        let mut marked = Self { bitmaps, at: 0, word: 0, bits: 0, from, to };
        if let Some(first) = marked.bitmaps.first() {
            // The first word may begin before the range.
            let skip = from.saturating_sub(first.from);
            marked.word = (skip / WORD) as usize;
            let bits = first.words.get(marked.word).copied().unwrap_or(0);
            marked.bits = bits & u64::MAX << (skip % WORD);
        }
        marked
    }
}

impl Iterator for Marked {
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
    use crate::input::Temp;
    use petal_testkit::rng::Rng;

    #[test]
    fn marks_come_back_in_order_for_any_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(5);
        for length in [0, 1, 63, 64, 1000, 100_000, 30 << 20] {
            for (memory, most) in [(1 << 24, 1024), (5000, 7), (300, 2), (0, 1)] {
                if memory < 5000 && length > 100_000 {
                    continue;
                }
                let pad = Scratchpad::new(&Temp::new(dir.path())).unwrap();
                let spans = Spans::new(length, most);
                let mut positions: Vec<_> = (0..length.min(3000))
                    .map(|_| rng.below(length as usize) as u64)
                    .filter(|at| *at < length / 3 || *at > length / 2)
                    .collect();
                let mut markers = Vec::new();
                for half in positions.chunks(positions.len() / 2 + 1) {
                    let mut marker = Marker::new(spans, &pad, memory);
                    half.iter().for_each(|&position| marker.mark(position).unwrap());
                    markers.push(marker.finish());
                }
                let marks = Marks::new(spans, markers, &pad, memory, 2);
                positions.sort_unstable();
                positions.dedup();
                let step = 1 + length / 37;
                let mut found = Vec::new();
                for from in (0..length).step_by(step as usize) {
                    let to = length.min(from + step);
                    let expect = positions.iter().any(|at| (from..to).contains(at));
                    assert_eq!(marks.any(from, to).unwrap(), expect);
                    found.extend(marks.within(from, to).unwrap());
                    marks.forget(from);
                }
                assert_eq!(found, positions, "{length} {memory}");
            }
        }
    }

    #[test]
    fn marks_that_cannot_be_read_are_an_error_as_often_as_they_are_asked_for() {
        let file = tempfile::tempfile().unwrap();
        let temp = Temp::new(std::path::Path::new("/"));
        let pad = Scratchpad::of_file(file.try_clone().unwrap(), 0, &temp);
        let spans = Spans::new(100_000, 4);
        let mut marker = Marker::new(spans, &pad, 0);
        (0..3000).for_each(|at| marker.mark(at * 30).unwrap());
        let marks = Marks::new(spans, vec![marker.finish()], &pad, 1 << 20, 1);
        file.set_len(10).unwrap();
        for _ in 0..3 {
            assert!(marks.any(0, 100_000).is_err() && marks.within(0, 50).is_err());
        }
    }
}
