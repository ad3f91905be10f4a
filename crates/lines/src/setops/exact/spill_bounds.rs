//! Bounds of the bytes that a job writes to its temporary file.
//!
//! The phases decide by the memory of their streams, which depends on how the records are spread: a
//! stream that is being filled has a block of memory for any number of records, the stream that was
//! filled last is written when memory is short, and a repeated line makes one stream longer than the
//! others. So two jobs are calculated: one keeps as little in memory as the phases can, the other as
//! much.

use crate::fingerprint::Table;
use crate::memory::least_records;
use crate::setops::positions::Spans;
use crate::temp::SpillWriter;

use super::passes::HASH_LOG_MEMORY;

/// A lower and an upper bound.
pub(super) type Range = [u64; 2];

/// The records of a phase.
#[derive(Clone, Copy, Default)]
pub(super) struct RecordBytes {
    pub(super) bytes: Range,
    /// Maximum bytes of the records that repeat a line, all of which may be in one stream.
    pub(super) repeated: u64,
}

/// The bounds of the bytes that the phases so far have written.
#[derive(Clone, Copy, Default)]
pub(super) struct SpillBounds {
    work: u64,
    workers: u64,
    /// Streams of records: one for each partition.
    streams: usize,
    written: Range,
    /// Bytes of all records.
    records: Range,
    /// Links of written blocks, at most.
    links: u64,
    /// Minimum and maximum bytes of records in memory.
    in_memory: Range,
    /// Maximum memory of the streams.
    memory: u64,
    /// Maximum memory of blocks that contain few records.
    sparse: u64,
    repeated: u64,
}

impl SpillBounds {
    pub(super) fn new(work: u64, workers: usize, streams: usize) -> Self {
        Self { work, workers: workers as u64, streams, ..Self::default() }
    }

    /// Writes records besides a filter.
    pub(super) fn write_records(&mut self, records: RecordBytes, filter: Range) {
        let [min_filter, max_filter] = filter;
        let free = [max_filter, min_filter].map(|filter| self.work.saturating_sub(filter));
        let min = least_records(self.work);
        let fits =
            |free: u64, taken: u64| free.saturating_sub(taken) >= min.min(free).max(free / 2);
        let stays = fits(free[0], self.memory);
        let may_stay = fits(free[1], self.in_memory[0]);
        let mut allowance = [free[0].saturating_sub(self.memory), free[1]];
        if stays {
            allowance[1] -= self.in_memory[0].min(allowance[1]);
        } else {
            // Earlier records are written first, or they take less than half.
            allowance[0] = allowance[0].max(free[0] / 2);
            self.lower_min_to(0);
        }
        if !may_stay {
            self.lower_max_to(0);
            (self.memory, self.sparse) = (0, 0);
        }
        let [lower, upper] = records.bytes;
        let streams = self.streams;
        let min_in_memory =
            SpillWriter::min_in_memory(upper, streams, allowance[0], records.repeated);
        let max_in_memory = SpillWriter::max_in_memory(lower, streams, allowance[1]);
        self.add(records.bytes, [min_in_memory, max_in_memory]);
        self.links += SpillWriter::links(upper, streams, allowance[0]);
        self.memory += SpillWriter::max_memory(upper, streams, allowance[1]);
        self.sparse += SpillWriter::filling(upper, streams, allowance[1]);
        self.repeated = self.repeated.max(records.repeated);
    }

    /// Writes records to disk, all of them.
    pub(super) fn write_all(&mut self, bytes: Range) {
        self.add(bytes, [0, 0]);
        self.links += SpillWriter::links(bytes[1], self.streams, 0);
    }

    fn add(&mut self, bytes: Range, in_memory: Range) {
        let [min_in_memory, max_in_memory] = in_memory;
        for (sum, bytes) in self.records.iter_mut().zip(bytes) {
            *sum += bytes;
        }
        self.written[0] += bytes[0].saturating_sub(max_in_memory);
        self.written[1] += bytes[1].saturating_sub(min_in_memory);
        self.in_memory[0] += min_in_memory;
        self.in_memory[1] += max_in_memory;
    }

    fn lower_min_to(&mut self, max: u64) {
        let more = self.in_memory[0].saturating_sub(max);
        self.in_memory[0] -= more;
        self.written[1] += more;
    }

    fn lower_max_to(&mut self, max: u64) {
        let more = self.in_memory[1].saturating_sub(max);
        self.in_memory[1] -= more;
        self.written[0] += more;
    }

    /// Writes records to disk until the memory of their streams is at most `max` bytes.
    pub(super) fn keep(&mut self, max: u64) {
        self.lower_max_to(max);
        if self.memory > max {
            let stream = 8 * max / self.streams.max(1) as u64 + self.repeated;
            self.lower_min_to(max.saturating_sub(self.sparse + stream));
        }
        self.memory = self.memory.min(max);
    }

    /// Writes records to disk unless the next table fits besides their memory.
    pub(super) fn make_room(&mut self, fits: impl Fn(u64) -> bool) {
        if !fits(self.memory) {
            self.lower_min_to(0);
        }
        if !fits(self.in_memory[0]) {
            self.lower_max_to(0);
            (self.memory, self.sparse) = (0, 0);
        }
    }

    /// Writes hashes to a log.
    pub(super) fn log(&mut self, bytes: Range) {
        let in_memory = SpillWriter::max_in_memory(bytes[0], 1, HASH_LOG_MEMORY);
        let lower = SpillWriter::min_in_memory(bytes[1], 1, HASH_LOG_MEMORY, bytes[1]);
        self.written[0] += bytes[0].saturating_sub(in_memory);
        self.written[1] += bytes[1].saturating_sub(lower);
        self.links += SpillWriter::links(bytes[1], 1, HASH_LOG_MEMORY);
    }

    /// Returns the bounds of the memory for the decision of a worker, of `workers`.
    fn memory_of_worker(&self, workers: u64) -> Range {
        let in_memory = [self.memory.min(self.work / 2), self.in_memory[0]];
        in_memory.map(|in_memory| self.work.saturating_sub(in_memory) / workers.max(1))
    }

    /// Joins partitions whose tables have `entries` entries in all. Returns whether a partition may
    /// be divided, because its table does not fit: then its records are written again.
    pub(super) fn join(&mut self, entries: Range) -> bool {
        let workers = self.workers.min(self.streams as u64).max(1);
        let memory = self.memory_of_worker(workers).map(|memory| memory / 4 * 3);
        let capacity = memory.map(Table::capacity);
        let mut divided = false;
        // Partitions are not of equal size.
        let margin = |mean: f64| 6.0 * mean.sqrt() + 8.0;
        let mut parts = self.streams as f64;
        loop {
            let [lower, upper] = entries.map(|entries| entries as f64 / parts);
            if upper + margin(upper) <= capacity[0] as f64 {
                return divided;
            }
            divided = true;
            self.written[1] += self.records[1];
            let streams = parts * 64.0;
            self.links += SpillWriter::links(self.records[1], streams as usize, 0);
            if lower - margin(lower) > capacity[1] as f64 * 1.05 {
                self.written[0] += self.records[0];
            }
            parts *= SpillWriter::max_streams(memory[0]).min(64) as f64;
        }
    }

    /// Writes positions that take `size` bytes, of an input of `length` bytes.
    pub(super) fn write_positions(&mut self, size: Range, length: u64) {
        let share = self.work / 8 / self.workers;
        let spans = Spans::new(length, SpillWriter::max_streams(share));
        let memory = self.memory_of_worker(self.workers).map(|memory| memory / 8);
        let [lower, upper] = size;
        // One worker may find all of them.
        self.written[1] +=
            upper - SpillWriter::min_in_memory(upper, spans.count(), memory[0], upper);
        self.links += SpillWriter::links(upper, spans.count(), memory[0]);
        let in_memory =
            SpillWriter::max_in_memory(u64::MAX, spans.count(), memory[1]) * self.workers;
        self.written[0] += lower.saturating_sub(in_memory);
        self.divide_spans(size, length, spans);
    }

    /// Writes the positions of spans again whose bitmaps do not fit in memory.
    fn divide_spans(&mut self, size: Range, length: u64, mut spans: Spans) {
        let bitmap = (self.work / 2 / (self.workers + 2)).max(Spans::LEAST);
        let memory = self.work / 2;
        loop {
            let (from, to) = spans.bounds(0);
            let span = to - from;
            if span.div_ceil(8) <= bitmap || span <= Spans::LEAST {
                return;
            }
            let parts = Spans::split(from, to, SpillWriter::max_streams(memory));
            let [lower, upper] = size;
            // A line has at least a byte.
            let in_span = upper.min(span.saturating_mul(8));
            let in_memory = SpillWriter::min_in_memory(in_span, parts.count(), memory, in_span);
            if in_memory < in_span {
                self.written[1] += upper;
                self.links += SpillWriter::links(upper, parts.count(), memory);
            }
            let in_memory = SpillWriter::max_in_memory(u64::MAX, parts.count(), memory);
            self.written[0] +=
                lower.saturating_sub(in_memory.saturating_mul(length.div_ceil(span)));
            spans = parts;
        }
    }

    /// Returns the bounds of the bytes written.
    pub(super) fn written(&self) -> Range {
        let [lower, upper] = self.written;
        [lower, if upper > 0 { upper + self.links } else { 0 }]
    }
}
