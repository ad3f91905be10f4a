//! Records on their way to a later phase: in memory while they fit, then in one temporary file.
//!
//! A [`RecordStream`] is a sequence of blocks of records, each in memory or in the [`SpillFile`] of
//! the job. A [`SpillWriter`] fills a set of streams, one for each partition. When it exceeds its
//! memory limit, the stream that was filled last writes its blocks to the file. Blocks contain whole
//! records, so streams are read block by block.
//!
//! The written blocks of a stream are a linked list: each block is followed by the position of the
//! next one, which is reserved in advance. A stream stores only the first and the next position, so
//! its memory does not grow with the number of written blocks.
//!
//! A stream may also begin with sections of files that other tasks have written.
//!
//! Cost: each byte is written once and read once, in blocks; 8 bytes more a block.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::TempDir;
use super::section_file::{self, Section};
use super::temp_dir::FileUsage;
use crate::error::{Error, Result};

/// Block sizes are a multiple of this, which record sizes (8, 16 or 24 bytes) divide.
const GRAIN: usize = 48;
const MIN_BLOCK: usize = 16 * GRAIN;
const MAX_BLOCK: usize = 1000 * GRAIN;

/// Length of the link after each block: the position of the next block.
const LINK: usize = 8;

/// The spill file of a job. Any thread may write to it.
pub(crate) struct SpillFile {
    file: File,
    /// End of the reserved space.
    end: AtomicU64,
    /// End of the last written byte.
    length: AtomicU64,
    written: AtomicU64,
    usage: FileUsage,
    temp: TempDir,
}

impl SpillFile {
    pub(crate) fn new(temp: &TempDir) -> Result<Self> {
        Ok(Self::of_file(temp.file()?, 0, temp))
    }

    /// A file whose first `end` bytes are in use.
    pub(crate) fn of_file(file: File, end: u64, temp: &TempDir) -> Self {
        let [end, length, written] = [end, end, 0].map(AtomicU64::new);
        let usage = FileUsage::new(temp.usage(), end.load(Ordering::Relaxed));
        Self { file, end, length, written, usage, temp: temp.clone() }
    }

    /// Returns the minimum length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// End of the reserved space.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Syncs the file to disk.
    pub(crate) fn sync(&self) -> Result<()> {
        let syncing = |e| self.temp.error("spilling records", e);
        self.file.sync_data().map_err(syncing)
    }

    /// Returns the number of bytes written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Reserves space and returns its position.
    fn reserve(&self, bytes: usize) -> u64 {
        self.end.fetch_add(bytes as u64, Ordering::Relaxed)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let spilling = |e| self.temp.error("spilling records", e);
        self.file.write_all_at(bytes, at).map_err(spilling)?;
        self.length.fetch_max(at + bytes.len() as u64, Ordering::Relaxed);
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.usage.add(bytes.len() as u64);
        Ok(())
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let reading = |e| self.temp.error("reading spilled records", e);
        self.file.read_exact_at(buffer, at).map_err(reading)
    }
}

/// The written blocks of a stream. All have the same size except the last, which may be shorter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Chain {
    block: usize,
    first: u64,
    /// Reserved for the block after the last.
    next: u64,
    bytes: u64,
}

/// A sequence of records in insertion order: sections of files, written blocks, blocks in memory, and
/// the block being filled.
#[derive(Default)]
pub(crate) struct RecordStream {
    sections: Vec<Section>,
    chain: Option<Chain>,
    blocks: Vec<Vec<u8>>,
    tail: Vec<u8>,
    bytes: u64,
}

impl RecordStream {
    /// Returns the length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The stream of consecutive sections.
    pub(crate) fn of_sections(sections: Vec<Section>) -> Self {
        let bytes = sections.iter().map(Section::bytes).sum();
        Self { sections, bytes, ..Self::default() }
    }

    /// Returns the written blocks of a stream that has no blocks in memory; `None` if it is empty.
    pub(crate) fn written(&self) -> Option<Chain> {
        debug_assert!(self.blocks.is_empty() && self.tail.is_empty());
        self.chain
    }

    /// Returns the stream of written blocks; `None` if a file of `end` bytes cannot contain it.
    pub(crate) fn of_written(chain: Option<Chain>, end: u64) -> Option<Self> {
        let Some(Chain { block, first, bytes, .. }) = chain else { return Some(Self::default()) };
        let possible = (1..=MAX_BLOCK).contains(&block) && first < end && (1..end).contains(&bytes);
        possible.then_some(Self { chain, bytes, ..Self::default() })
    }

    fn memory_usage(&self) -> u64 {
        self.full() + self.tail.capacity() as u64
    }

    /// Memory of the full blocks in bytes.
    fn full(&self) -> u64 {
        self.blocks.iter().map(Vec::capacity).sum::<usize>() as u64
    }

    /// Appends a record. Returns the block's size if the record fills a block.
    #[inline]
    fn push<const SIZE: usize>(
        &mut self,
        record: &[u8; SIZE],
        block: usize,
        spare: &mut Vec<Vec<u8>>,
    ) -> Result<Option<usize>> {
        if self.tail.capacity() == 0 {
            let room = block + LINK;
            self.tail = spare.pop().unwrap_or_default();
            self.tail.try_reserve_exact(room).map_err(|_| Error::alloc(room as u64))?;
        }
        self.tail.extend_from_slice(record);
        self.bytes += SIZE as u64;
        if self.tail.len() + SIZE <= block {
            return Ok(None);
        }
        let full = std::mem::take(&mut self.tail);
        let capacity = full.capacity();
        self.blocks.push(full);
        Ok(Some(capacity))
    }

    /// Writes the full blocks and, with `tail`, the block being filled, to the file. No record may be
    /// appended after the tail.
    fn write_out(
        &mut self,
        spill_file: &SpillFile,
        tail: bool,
        spare: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        if tail && !self.tail.is_empty() {
            self.blocks.push(std::mem::take(&mut self.tail));
        }
        for mut bytes in std::mem::take(&mut self.blocks) {
            let length = bytes.len();
            let chain = self.chain.get_or_insert_with(|| {
                let first = spill_file.reserve(length + LINK);
                Chain { block: length, first, next: first, bytes: 0 }
            });
            debug_assert!(chain.bytes.is_multiple_of(chain.block as u64) && length <= chain.block);
            let at = chain.next;
            chain.next = spill_file.reserve(chain.block + LINK);
            chain.bytes += length as u64;
            bytes.extend_from_slice(&chain.next.to_le_bytes());
            spill_file.write(at, &bytes)?;
            // Keep one block for reuse: faster than new memory.
            if spare.is_empty() {
                bytes.clear();
                spare.push(bytes);
            }
        }
        Ok(())
    }

    /// Calls a function with each block of whole records.
    pub(crate) fn for_each_block(
        &self,
        spill_file: &SpillFile,
        mut look: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut reader = RecordReader::new(self);
        while let Some(bytes) = reader.next_block(spill_file)? {
            look(bytes)?;
        }
        Ok(())
    }
}

/// Reads a stream block by block.
pub(super) struct RecordReader<'a> {
    stream: &'a RecordStream,
    /// Index and reader of the current section.
    section: usize,
    open: Option<section_file::SectionReader<'a>>,
    /// Position of the next written block, and the bytes left.
    at: u64,
    left: u64,
    /// Index of the next block in memory.
    next: usize,
    buffer: Vec<u8>,
}

impl<'a> RecordReader<'a> {
    pub(super) fn new(stream: &'a RecordStream) -> Self {
        let (at, left) = stream.chain.map_or((0, 0), |chain| (chain.first, chain.bytes));
        Self { stream, section: 0, open: None, at, left, next: 0, buffer: Vec::new() }
    }

    pub(super) fn next_block(&mut self, spill_file: &SpillFile) -> Result<Option<&[u8]>> {
        while let Some(section) = self.stream.sections.get(self.section) {
            let reader = match &mut self.open {
                Some(reader) => reader,
                none => none.insert(section.reader()?),
            };
            if reader.next(MAX_BLOCK, &mut self.buffer)? {
                return Ok(Some(&self.buffer));
            }
            self.open = None;
            self.section += 1;
        }
        if let Some(chain) = self.stream.chain
            && self.left > 0
        {
            let length = self.left.min(chain.block as u64) as usize;
            self.buffer.resize(length + LINK, 0);
            spill_file.read(self.at, &mut self.buffer)?;
            let (block, link) = self.buffer.split_at(length);
            self.at = link.first_chunk().map_or(0, |link| u64::from_le_bytes(*link));
            self.left -= length as u64;
            return Ok(Some(block));
        }
        // Blocks in memory follow the written ones.
        let block = match self.stream.blocks.get(self.next) {
            None if self.next == self.stream.blocks.len() => &self.stream.tail,
            None => return Ok(None),
            Some(block) => block,
        };
        self.next += 1;
        Ok((!block.is_empty()).then_some(block))
    }
}

/// A set of streams that are filled together within a memory limit.
pub(crate) struct SpillWriter<'a> {
    spill_file: &'a SpillFile,
    streams: Vec<RecordStream>,
    block: usize,
    /// Maximum and current bytes of full blocks.
    max_full: u64,
    full: u64,
    /// A written block for reuse.
    spare: Vec<Vec<u8>>,
}

impl<'a> SpillWriter<'a> {
    pub(crate) fn new(spill_file: &'a SpillFile, streams: usize, allowance: u64) -> Self {
        let block = Self::block(streams, allowance);
        Self {
            spill_file,
            max_full: Self::max_full(streams, block, allowance),
            streams: std::iter::repeat_with(RecordStream::default).take(streams).collect(),
            block,
            full: 0,
            spare: Vec::new(),
        }
    }

    fn block(streams: usize, allowance: u64) -> usize {
        // Half for the blocks being filled, half for full ones.
        let block = (allowance / 2 / streams.max(1) as u64) as usize / GRAIN * GRAIN;
        block.clamp(MIN_BLOCK, MAX_BLOCK)
    }

    /// Maximum bytes of full blocks.
    fn max_full(streams: usize, block: usize, allowance: u64) -> u64 {
        allowance - (streams as u64 * block as u64).min(allowance / 2)
    }

    /// Estimates the bytes written to the file for `bytes` of records, evenly spread over streams.
    pub(crate) fn written(bytes: u64, streams: usize, allowance: u64) -> u64 {
        let block = Self::block(streams, allowance);
        let filling = streams as u64 * block as u64 / 2;
        let in_memory = Self::max_full(streams, block, allowance) + filling;
        let written = bytes.saturating_sub(in_memory);
        written + written / block as u64 * LINK as u64
    }

    /// Returns the maximum bytes of records in memory after `bytes` of them were written.
    pub(crate) fn max_in_memory(bytes: u64, streams: usize, allowance: u64) -> u64 {
        let block = Self::block(streams, allowance);
        let full = Self::max_full(streams, block, allowance);
        bytes.min(full + streams as u64 * block as u64)
    }

    /// Returns the minimum bytes of records in memory after `bytes` of them were written, of which
    /// `repeated` may belong to one stream and the others are spread evenly over the streams.
    pub(crate) fn min_in_memory(bytes: u64, streams: usize, allowance: u64, repeated: u64) -> u64 {
        let block = Self::block(streams, allowance) as u64;
        let full = Self::max_full(streams, block as usize, allowance);
        if bytes + bytes / block * LINK as u64 <= full {
            return bytes;
        }
        // The stream that was filled last is written. Streams that were not written for long are
        // several times as long as the mean.
        let each = full / streams.max(1) as u64;
        full.saturating_sub(repeated.saturating_add(8 * each + 2 * block))
    }

    /// Returns the maximum bytes of links after written blocks, for `bytes` of records.
    pub(crate) fn links(bytes: u64, streams: usize, allowance: u64) -> u64 {
        let block = Self::block(streams, allowance) as u64;
        // The last block of a stream may be a short one.
        (bytes / block + (streams as u64).min(bytes)) * LINK as u64
    }

    /// Returns the maximum memory of the blocks being filled, for `bytes` of records.
    pub(crate) fn filling(bytes: u64, streams: usize, allowance: u64) -> u64 {
        let filling = (streams as u64).min(bytes / LINK as u64);
        filling * (Self::block(streams, allowance) + LINK) as u64
    }

    /// Returns the maximum memory of all blocks, for `bytes` of records.
    pub(crate) fn max_memory(bytes: u64, streams: usize, allowance: u64) -> u64 {
        let block = Self::block(streams, allowance);
        let full = Self::max_full(streams, block, allowance) + (block + LINK) as u64;
        (bytes + bytes / 64).min(full) + Self::filling(bytes, streams, allowance)
    }

    /// Returns the maximum number of streams for a memory limit.
    pub(crate) fn max_streams(allowance: u64) -> u64 {
        (allowance / 2 / (MIN_BLOCK as u64 * 4)).max(2)
    }

    /// Appends a record to a stream. The constant size lets the compiler copy it without a call.
    #[inline]
    pub(crate) fn push<const SIZE: usize>(
        &mut self,
        stream: usize,
        record: &[u8; SIZE],
    ) -> Result<()> {
        let filled = &mut self.streams[stream];
        let Some(full) = filled.push(record, self.block, &mut self.spare)? else { return Ok(()) };
        self.full += full as u64;
        if self.full > self.max_full {
            self.full -= filled.full();
            filled.write_out(self.spill_file, false, &mut self.spare)?;
        }
        Ok(())
    }

    /// Returns the streams. Blocks that fit the memory limit stay in memory.
    pub(crate) fn finish(self) -> Vec<RecordStream> {
        self.streams
    }
}

/// Returns the memory of streams in bytes.
pub(crate) fn memory_usage(streams: &[RecordStream]) -> u64 {
    streams.iter().map(RecordStream::memory_usage).sum()
}

/// Writes all blocks of streams to the file.
pub(crate) fn write_out(streams: &mut [RecordStream], spill_file: &SpillFile) -> Result<()> {
    streams.iter_mut().try_for_each(|stream| stream.write_out(spill_file, true, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &RecordStream, spill_file: &SpillFile) -> Vec<u64> {
        let mut found = Vec::new();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let look = |bytes: &[u8]| {
            found.extend(bytes.chunks_exact(24).map(|record| word(&record[16..])));
            Ok(())
        };
        stream.for_each_block(spill_file, look).unwrap();
        found
    }

    /// The memory a stream takes must not grow with what it has written.
    #[test]
    fn written_blocks_take_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let spill_file = SpillFile::new(&TempDir::new(dir.path())).unwrap();
        let mut spill = SpillWriter::new(&spill_file, 1, 0);
        for i in 0..100_000u64 {
            let mut record = [0; 24];
            record[16..].copy_from_slice(&i.to_le_bytes());
            spill.push(0, &record).unwrap();
            assert!(spill.streams[0].blocks.capacity() <= 4);
        }
        let streams = spill.finish();
        assert_eq!((memory_usage(&streams), streams[0].blocks.capacity()), (0, 0));
        assert_eq!(read(&streams[0], &spill_file), (0..100_000).collect::<Vec<_>>());
    }

    #[test]
    fn records_stay_in_order_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for (allowance, records) in [(1 << 20, 1000), (1 << 14, 5000), (0, 3000), (1 << 14, 0)] {
            let spill_file = SpillFile::new(&TempDir::new(dir.path())).unwrap();
            let mut spill = SpillWriter::new(&spill_file, 3, allowance);
            for i in 0..records {
                let mut record = [7; 24];
                record[16..].copy_from_slice(&(i as u64).to_le_bytes());
                spill.push(i % 3, &record).unwrap();
            }
            let mut streams = spill.finish();
            let bytes: u64 = streams.iter().map(RecordStream::bytes).sum();
            assert_eq!(bytes, 24 * records as u64);
            assert_eq!(spill_file.written() > 0, 24 * records as u64 > allowance, "{allowance}");
            for _ in 0..2 {
                for (s, stream) in streams.iter().enumerate() {
                    let expect: Vec<_> = (s as u64..records as u64).step_by(3).collect();
                    assert_eq!(read(stream, &spill_file), expect);
                }
                write_out(&mut streams, &spill_file).unwrap();
                assert_eq!(memory_usage(&streams), 0);
            }
        }
    }
}
