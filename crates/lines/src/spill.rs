//! Records on their way to a later phase: in memory while they fit, then in one temporary file.
//!
//! A [`Stream`] is a sequence of bytes in blocks; a block is held in memory or lies somewhere in
//! the [`Scratchpad`], the one file of a job. A [`Spill`] is a set of streams filled together, one
//! for each partition; when what it holds exceeds its allowance, the stream that was filled last
//! writes out its blocks, so that memory stays full and no more is written than must be. Blocks
//! hold whole records, so streams are read block by block.
//!
//! Written blocks of a stream are a chain: behind each lies the place of the next, which is set
//! aside beforehand. So a stream knows where it begins and ends, and no more: what it has written
//! costs no memory, however much it is.
//!
//! A stream may also lie in sections of files that other tasks have written: those come first.
//!
//! Cost: each byte is written once and read once, in blocks; 8 bytes more for each block.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::Temp;
use crate::sections::{self, Section};

/// Blocks are a multiple of this many bytes, and records a divisor: 8, 16 or 24 bytes.
const GRAIN: usize = 48;
const LEAST_BLOCK: usize = 16 * GRAIN;
const MOST_BLOCK: usize = 1000 * GRAIN;

/// The place of the next block, behind a block that is written.
const LINK: usize = 8;

/// The temporary file of a job. Any thread may write to it.
pub(crate) struct Scratchpad {
    file: File,
    /// Where the room that was given away ends.
    end: AtomicU64,
    /// Where the last byte written lies.
    length: AtomicU64,
    written: AtomicU64,
    temp: Temp,
}

impl Scratchpad {
    pub(crate) fn new(temp: &Temp) -> Result<Self> {
        Ok(Self::of_file(temp.file()?, 0, temp))
    }

    /// A file whose first bytes, up to `end`, are in use already.
    pub(crate) fn of_file(file: File, end: u64, temp: &Temp) -> Self {
        let [end, length, written] = [end, end, 0].map(AtomicU64::new);
        Self { file, end, length, written, temp: temp.clone() }
    }

    /// Bytes that its file must have.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Where the room that was given away ends.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Makes durable what was written.
    pub(crate) fn sync(&self) -> Result<()> {
        let syncing = |e| self.temp.error("spilling records", e);
        self.file.sync_data().map_err(syncing)
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Room for so many bytes, for whoever asked.
    fn set_aside(&self, bytes: usize) -> u64 {
        self.end.fetch_add(bytes as u64, Ordering::Relaxed)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let spilling = |e| self.temp.error("spilling records", e);
        self.file.write_all_at(bytes, at).map_err(spilling)?;
        self.length.fetch_max(at + bytes.len() as u64, Ordering::Relaxed);
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let reading = |e| self.temp.error("reading spilled records", e);
        self.file.read_exact_at(buffer, at).map_err(reading)
    }
}

/// The blocks of a stream that are written: all of one size, but the last may be shorter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Chain {
    block: usize,
    first: u64,
    /// Set aside for the block after the last.
    next: u64,
    bytes: u64,
}

/// A sequence of records, in the order they came: sections of files, written blocks, held ones,
/// the one being filled.
#[derive(Default)]
pub(crate) struct Stream {
    sections: Vec<Section>,
    chain: Option<Chain>,
    blocks: Vec<Vec<u8>>,
    tail: Vec<u8>,
    bytes: u64,
}

impl Stream {
    /// Bytes in it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The stream of these sections, one behind the other.
    pub(crate) fn of_sections(sections: Vec<Section>) -> Self {
        let bytes = sections.iter().map(Section::bytes).sum();
        Self { sections, bytes, ..Self::default() }
    }

    /// Where it lies, when all of it is written; `None` if it is empty.
    pub(crate) fn written(&self) -> Option<Chain> {
        debug_assert!(self.blocks.is_empty() && self.tail.is_empty());
        self.chain
    }

    /// The stream that lies there, if a file of `end` bytes can hold it.
    pub(crate) fn of_written(chain: Option<Chain>, end: u64) -> Option<Self> {
        let Some(Chain { block, first, bytes, .. }) = chain else { return Some(Self::default()) };
        let possible =
            (1..=MOST_BLOCK).contains(&block) && first < end && (1..end).contains(&bytes);
        possible.then_some(Self { chain, bytes, ..Self::default() })
    }

    fn held(&self) -> u64 {
        self.full() + self.tail.capacity() as u64
    }

    /// Bytes of memory in its full blocks.
    fn full(&self) -> u64 {
        self.blocks.iter().map(Vec::capacity).sum::<usize>() as u64
    }

    /// Adds a record; when that fills a block, the block's size.
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
        let held = full.capacity();
        self.blocks.push(full);
        Ok(Some(held))
    }

    /// Writes out what is held, full blocks and, if asked, the one being filled: nothing may be
    /// added then.
    fn write_out(&mut self, pad: &Scratchpad, tail: bool, spare: &mut Vec<Vec<u8>>) -> Result<()> {
        if tail && !self.tail.is_empty() {
            self.blocks.push(std::mem::take(&mut self.tail));
        }
        for mut bytes in std::mem::take(&mut self.blocks) {
            let length = bytes.len();
            let chain = self.chain.get_or_insert_with(|| {
                let first = pad.set_aside(length + LINK);
                Chain { block: length, first, next: first, bytes: 0 }
            });
            debug_assert!(chain.bytes.is_multiple_of(chain.block as u64) && length <= chain.block);
            let at = chain.next;
            chain.next = pad.set_aside(chain.block + LINK);
            chain.bytes += length as u64;
            bytes.extend_from_slice(&chain.next.to_le_bytes());
            pad.write(at, &bytes)?;
            // Memory that is in use costs less than new: one block waits to be filled again.
            if spare.is_empty() {
                bytes.clear();
                spare.push(bytes);
            }
        }
        Ok(())
    }

    /// Gives each block of whole records in turn.
    pub(crate) fn for_each_block(
        &self,
        pad: &Scratchpad,
        mut look: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut reader = Reader::new(self);
        while let Some(bytes) = reader.next_block(pad)? {
            look(bytes)?;
        }
        Ok(())
    }
}

/// Goes through a stream block by block.
pub(crate) struct Reader<'a> {
    stream: &'a Stream,
    /// Of the sections: the next one, and the one being read.
    section: usize,
    open: Option<sections::Reader<'a>>,
    /// Of the written blocks: where the next one is, and how many bytes are left.
    at: u64,
    left: u64,
    /// Of the held blocks.
    next: usize,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(stream: &'a Stream) -> Self {
        let (at, left) = stream.chain.map_or((0, 0), |chain| (chain.first, chain.bytes));
        Self { stream, section: 0, open: None, at, left, next: 0, buffer: Vec::new() }
    }

    pub(crate) fn next_block(&mut self, pad: &Scratchpad) -> Result<Option<&[u8]>> {
        while let Some(section) = self.stream.sections.get(self.section) {
            let reader = match &mut self.open {
                Some(reader) => reader,
                none => none.insert(section.reader()?),
            };
            if reader.next(MOST_BLOCK, &mut self.buffer)? {
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
            pad.read(self.at, &mut self.buffer)?;
            let (block, link) = self.buffer.split_at(length);
            self.at = link.first_chunk().map_or(0, |link| u64::from_le_bytes(*link));
            self.left -= length as u64;
            return Ok(Some(block));
        }
        // What is held is always behind what is written.
        let block = match self.stream.blocks.get(self.next) {
            None if self.next == self.stream.blocks.len() => &self.stream.tail,
            None => return Ok(None),
            Some(block) => block,
        };
        self.next += 1;
        Ok((!block.is_empty()).then_some(block))
    }
}

/// Streams filled together, within an allowance of memory.
pub(crate) struct Spill<'a> {
    pad: &'a Scratchpad,
    streams: Vec<Stream>,
    block: usize,
    /// Bytes it may hold in full blocks, and holds.
    most_full: u64,
    full: u64,
    /// A block that was written and waits to be filled again.
    spare: Vec<Vec<u8>>,
}

impl<'a> Spill<'a> {
    pub(crate) fn new(pad: &'a Scratchpad, streams: usize, allowance: u64) -> Self {
        let block = Self::block(streams, allowance);
        Self {
            pad,
            most_full: Self::most_full(streams, block, allowance),
            streams: std::iter::repeat_with(Stream::default).take(streams).collect(),
            block,
            full: 0,
            spare: Vec::new(),
        }
    }

    fn block(streams: usize, allowance: u64) -> usize {
        // Half for blocks being filled, half for full ones.
        let block = (allowance / 2 / streams.max(1) as u64) as usize / GRAIN * GRAIN;
        block.clamp(LEAST_BLOCK, MOST_BLOCK)
    }

    /// What may be held in full blocks.
    fn most_full(streams: usize, block: usize, allowance: u64) -> u64 {
        allowance - (streams as u64 * block as u64).min(allowance / 2)
    }

    /// About how many bytes of so many, evenly spread over its streams, a spill would write.
    pub(crate) fn written(bytes: u64, streams: usize, allowance: u64) -> u64 {
        let block = Self::block(streams, allowance);
        let filling = streams as u64 * block as u64 / 2;
        let held = Self::most_full(streams, block, allowance) + filling;
        let written = bytes.saturating_sub(held);
        written + written / block as u64 * LINK as u64
    }

    /// The most streams that an allowance of so many bytes can fill together.
    pub(crate) fn most_streams(allowance: u64) -> u64 {
        (allowance / 2 / (LEAST_BLOCK as u64 * 4)).max(2)
    }

    /// Adds a record to a stream; its size is known to the compiler, so that it is moved in a
    /// few instructions and not by a call.
    #[inline]
    pub(crate) fn push<const SIZE: usize>(
        &mut self,
        stream: usize,
        record: &[u8; SIZE],
    ) -> Result<()> {
        let filled = &mut self.streams[stream];
        let Some(full) = filled.push(record, self.block, &mut self.spare)? else { return Ok(()) };
        self.full += full as u64;
        if self.full > self.most_full {
            self.full -= filled.full();
            filled.write_out(self.pad, false, &mut self.spare)?;
        }
        Ok(())
    }

    /// Bytes of all records so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.streams.iter().map(Stream::bytes).sum()
    }

    /// The filled streams. What fits the allowance stays in memory.
    pub(crate) fn finish(self) -> Vec<Stream> {
        self.streams
    }
}

/// Bytes of memory that streams hold.
pub(crate) fn held(streams: &[Stream]) -> u64 {
    streams.iter().map(Stream::held).sum()
}

/// Writes out all that streams hold in memory.
pub(crate) fn write_out(streams: &mut [Stream], pad: &Scratchpad) -> Result<()> {
    streams.iter_mut().try_for_each(|stream| stream.write_out(pad, true, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &Stream, pad: &Scratchpad) -> Vec<u64> {
        let mut found = Vec::new();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let look = |bytes: &[u8]| {
            found.extend(bytes.chunks_exact(24).map(|record| word(&record[16..])));
            Ok(())
        };
        stream.for_each_block(pad, look).unwrap();
        found
    }

    /// The memory a stream takes must not grow with what it has written.
    #[test]
    fn what_is_written_costs_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let pad = Scratchpad::new(&Temp::new(dir.path())).unwrap();
        let mut spill = Spill::new(&pad, 1, 0);
        for i in 0..100_000u64 {
            let mut record = [0; 24];
            record[16..].copy_from_slice(&i.to_le_bytes());
            spill.push(0, &record).unwrap();
            assert!(spill.streams[0].blocks.capacity() <= 4);
        }
        let streams = spill.finish();
        assert_eq!((held(&streams), streams[0].blocks.capacity()), (0, 0));
        assert_eq!(read(&streams[0], &pad), (0..100_000).collect::<Vec<_>>());
    }

    #[test]
    fn streams_keep_their_records_in_order_held_or_written() {
        let dir = tempfile::tempdir().unwrap();
        for (allowance, records) in [(1 << 20, 1000), (1 << 14, 5000), (0, 3000), (1 << 14, 0)] {
            let pad = Scratchpad::new(&Temp::new(dir.path())).unwrap();
            let mut spill = Spill::new(&pad, 3, allowance);
            for i in 0..records {
                let mut record = [7; 24];
                record[16..].copy_from_slice(&(i as u64).to_le_bytes());
                spill.push(i % 3, &record).unwrap();
            }
            assert_eq!(spill.bytes(), 24 * records as u64);
            let mut streams = spill.finish();
            assert_eq!(pad.written() > 0, 24 * records as u64 > allowance, "{allowance}");
            for _ in 0..2 {
                for (s, stream) in streams.iter().enumerate() {
                    let expect: Vec<_> = (s as u64..records as u64).step_by(3).collect();
                    assert_eq!(read(stream, &pad), expect);
                }
                write_out(&mut streams, &pad).unwrap();
                assert_eq!(held(&streams), 0);
            }
        }
    }
}
