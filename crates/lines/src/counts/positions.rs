//! Positions with counts: written in any order, read in ascending order.
//!
//! They are divided into spans, like the positions of set operations. When a span is reached, its
//! records are sorted in memory; if they do not fit, they are divided into smaller spans.

use crate::error::{Error, Result};
use crate::setops::Spans;
use crate::temp::{RecordStream, SpillFile, SpillWriter};

/// Length of a record: position and count.
pub(super) const COUNTED_RECORD: usize = 16;

/// Returns the record of a position and its count.
pub(super) fn encode(position: u64, count: u64) -> [u8; COUNTED_RECORD] {
    let mut record = [0; COUNTED_RECORD];
    record[..8].copy_from_slice(&position.to_le_bytes());
    record[8..].copy_from_slice(&count.to_le_bytes());
    record
}

fn decode(record: &[u8; COUNTED_RECORD]) -> (u64, u64) {
    let (position, count) = record.split_at(8);
    let word = |half: &[u8]| half.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (word(position), word(count))
}

/// Positions with counts, in ascending order.
pub(super) struct CountedPositions<'a> {
    spill_file: &'a SpillFile,
    /// Memory of the records of a span.
    memory: u64,
    /// The records of the current span, the next one last.
    loaded: Vec<(u64, u64)>,
    /// The spans after it, the next one last.
    pending: Vec<Span>,
}

struct Span {
    from: u64,
    to: u64,
    records: Vec<RecordStream>,
}

impl<'a> CountedPositions<'a> {
    /// The records of several writers with the same spans.
    pub(super) fn new(
        spans: Spans,
        writers: Vec<Vec<RecordStream>>,
        spill_file: &'a SpillFile,
        memory: u64,
    ) -> Self {
        let mut pending = Self::empty_spans(spans);
        for streams in writers {
            let filled = pending.iter_mut().zip(streams).filter(|(_, records)| records.bytes() > 0);
            filled.for_each(|(span, records)| span.records.push(records));
        }
        pending.reverse();
        Self { spill_file, memory, loaded: vec![], pending }
    }

    fn empty_spans(spans: Spans) -> Vec<Span> {
        let bounds = (0..spans.count()).map(|span| spans.bounds(span));
        bounds.map(|(from, to)| Span { from, to, records: vec![] }).collect()
    }

    /// Returns the next position, if it is below `to`, and its count.
    pub(super) fn next_below(&mut self, to: u64) -> Result<Option<(u64, u64)>> {
        while self.loaded.is_empty() && self.pending.last().is_some_and(|span| span.from < to) {
            if let Some(span) = self.pending.pop() {
                self.load(span)?;
            }
        }
        let next = self.loaded.pop_if(|(position, _)| *position < to);
        Ok(next)
    }

    fn load(&mut self, span: Span) -> Result<()> {
        let bytes = span.records.iter().map(RecordStream::bytes).sum::<u64>();
        if bytes > self.memory && span.to - span.from > Spans::LEAST {
            let parts = self.divide(&span)?;
            self.pending.extend(parts.into_iter().rev().filter(|part| !part.records.is_empty()));
            return Ok(());
        }
        let count = (bytes / COUNTED_RECORD as u64) as usize;
        self.loaded.try_reserve_exact(count).map_err(|_| Error::alloc(bytes))?;
        let Self { loaded, spill_file, .. } = self;
        for_each(&span, spill_file, |record| {
            loaded.push(decode(record));
            Ok(())
        })?;
        loaded.sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    /// Divides a span into smaller ones.
    fn divide(&self, span: &Span) -> Result<Vec<Span>> {
        let spans = Spans::split(span.from, span.to, SpillWriter::max_streams(self.memory));
        let mut spill = SpillWriter::new(self.spill_file, spans.count(), self.memory);
        for_each(span, self.spill_file, |record| {
            spill.push(spans.span_of(decode(record).0).min(spans.count() - 1), record)
        })?;
        let mut parts = Self::empty_spans(spans);
        let streams = parts.iter_mut().zip(spill.finish());
        streams.filter(|(_, s)| s.bytes() > 0).for_each(|(part, s)| part.records.push(s));
        Ok(parts)
    }
}

fn for_each(
    span: &Span,
    spill_file: &SpillFile,
    mut each: impl FnMut(&[u8; COUNTED_RECORD]) -> Result<()>,
) -> Result<()> {
    span.records.iter().try_for_each(|stream| {
        stream.for_each_block(spill_file, |block| {
            block.as_chunks::<COUNTED_RECORD>().0.iter().try_for_each(&mut each)
        })
    })
}
