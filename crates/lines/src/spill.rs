//! Records on their way to a later phase: in memory while they fit, then in one temporary file.
//!
//! A [`Stream`] is a sequence of bytes in blocks; a block is held in memory or lies somewhere in
//! the [`Scratchpad`], the one nameless file of a job. A [`Spill`] is a set of streams filled
//! together, one for each partition; it starts writing blocks out when what it holds exceeds its
//! allowance. Blocks hold whole records, so streams are read block by block.
//!
//! Cost: each byte is written once and read once, in blocks; 32 bytes of memory for each block.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::input::Temp;

/// Blocks are a multiple of this many bytes, and records a divisor: 8, 16 or 24 bytes.
const GRAIN: usize = 48;
const LEAST_BLOCK: usize = 16 * GRAIN;
const MOST_BLOCK: usize = 5000 * GRAIN;

/// The temporary file of a job. Any thread may append.
pub(crate) struct Scratchpad {
    file: File,
    length: AtomicU64,
    temp: Temp,
}

impl Scratchpad {
    pub(crate) fn new(temp: &Temp) -> Result<Self> {
        Ok(Self { file: temp.file()?, length: AtomicU64::new(0), temp: temp.clone() })
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let at = self.length.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let spilling = |e| Error::temp(self.temp.dir(), "spilling records", e);
        self.file.write_all_at(bytes, at).map_err(spilling)?;
        Ok(at)
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let reading = |e| Error::temp(self.temp.dir(), "reading spilled records", e);
        self.file.read_exact_at(buffer, at).map_err(reading)
    }
}

enum Block {
    Held(Vec<u8>),
    Written { at: u64, length: usize },
}

/// A sequence of records, in the order they came.
#[derive(Default)]
pub(crate) struct Stream {
    blocks: Vec<Block>,
    /// The block being filled.
    tail: Vec<u8>,
    bytes: u64,
}

impl Stream {
    /// Bytes in it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn held(&self) -> u64 {
        let held = |block: &Block| match block {
            Block::Held(bytes) => bytes.capacity(),
            Block::Written { .. } => 0,
        };
        (self.blocks.iter().map(held).sum::<usize>() + self.tail.capacity()) as u64
    }

    /// Adds a record; when that fills a block, the block's size.
    #[inline]
    fn push(&mut self, record: &[u8], block: usize) -> Result<Option<usize>> {
        if self.tail.capacity() == 0 {
            self.tail.try_reserve_exact(block).map_err(|_| Error::alloc(block as u64))?;
        }
        self.tail.extend_from_slice(record);
        self.bytes += record.len() as u64;
        if self.tail.len() + record.len() <= block {
            return Ok(None);
        }
        let full = std::mem::take(&mut self.tail);
        let held = full.capacity();
        self.blocks.push(Block::Held(full));
        Ok(Some(held))
    }

    /// Writes out what is held, full blocks and, if asked, the one being filled.
    fn write_out(&mut self, pad: &Scratchpad, tail: bool) -> Result<()> {
        // What is held is always behind what is written.
        let held = self.blocks.iter().rposition(|b| matches!(b, Block::Written { .. }));
        for block in &mut self.blocks[held.map_or(0, |at| at + 1)..] {
            if let Block::Held(bytes) = block {
                *block = Block::Written { at: pad.append(bytes)?, length: bytes.len() };
            }
        }
        if tail && !self.tail.is_empty() {
            let at = pad.append(&self.tail)?;
            self.blocks.push(Block::Written { at, length: self.tail.len() });
            self.tail = Vec::new();
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
    next: usize,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(stream: &'a Stream) -> Self {
        Self { stream, next: 0, buffer: Vec::new() }
    }

    pub(crate) fn next_block(&mut self, pad: &Scratchpad) -> Result<Option<&[u8]>> {
        let at = self.next;
        self.next += 1;
        match self.stream.blocks.get(at) {
            Some(Block::Held(bytes)) => Ok(Some(bytes)),
            Some(Block::Written { at, length }) => {
                self.buffer.resize(*length, 0);
                pad.read(*at, &mut self.buffer)?;
                Ok(Some(&self.buffer))
            }
            None if at == self.stream.blocks.len() && !self.stream.tail.is_empty() => {
                Ok(Some(&self.stream.tail))
            }
            None => Ok(None),
        }
    }
}

/// Streams filled together, within an allowance of memory.
pub(crate) struct Spill<'a> {
    pad: &'a Scratchpad,
    streams: Vec<Stream>,
    block: usize,
    /// Bytes it may hold, and holds in full blocks.
    allowance: u64,
    full: u64,
    spilling: bool,
}

impl<'a> Spill<'a> {
    pub(crate) fn new(pad: &'a Scratchpad, streams: usize, allowance: u64) -> Self {
        // Half for blocks being filled, half for full ones.
        let block = (allowance / 2 / streams.max(1) as u64) as usize / GRAIN * GRAIN;
        Self {
            pad,
            streams: std::iter::repeat_with(Stream::default).take(streams).collect(),
            block: block.clamp(LEAST_BLOCK, MOST_BLOCK),
            allowance,
            full: 0,
            spilling: false,
        }
    }

    /// The most streams that an allowance of so many bytes can fill together.
    pub(crate) fn most_streams(allowance: u64) -> u64 {
        (allowance / 2 / (LEAST_BLOCK as u64 * 4)).max(2)
    }

    #[inline]
    pub(crate) fn push(&mut self, stream: usize, record: &[u8]) -> Result<()> {
        let Some(full) = self.streams[stream].push(record, self.block)? else { return Ok(()) };
        if self.spilling {
            return self.streams[stream].write_out(self.pad, false);
        }
        self.full += full as u64;
        let tails = self.streams.len() as u64 * self.block as u64;
        if self.full + tails.min(self.allowance / 2) > self.allowance {
            self.spilling = true;
            for stream in &mut self.streams {
                stream.write_out(self.pad, false)?;
            }
        }
        Ok(())
    }

    /// Bytes of all records so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.streams.iter().map(Stream::bytes).sum()
    }

    /// The filled streams. What began to go to disk goes there wholly; what fits stays.
    pub(crate) fn finish(mut self) -> Result<Vec<Stream>> {
        if self.spilling {
            for stream in &mut self.streams {
                stream.write_out(self.pad, true)?;
            }
        }
        Ok(self.streams)
    }
}

/// Bytes of memory that streams hold.
pub(crate) fn held(streams: &[Stream]) -> u64 {
    streams.iter().map(Stream::held).sum()
}

/// Writes out all that streams hold in memory.
pub(crate) fn write_out(streams: &mut [Stream], pad: &Scratchpad) -> Result<()> {
    streams.iter_mut().try_for_each(|stream| stream.write_out(pad, true))
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
            let mut streams = spill.finish().unwrap();
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
