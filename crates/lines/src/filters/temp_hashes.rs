//! Hashes of lines in temporary files, for filters of more lines than memory holds.

use petal::embed::{HashRanges, HashStore};

use crate::error::{Error, Result};
use crate::temp::{RecordStream, SpillFile, SpillWriter, TempDir};

/// The memory of a block that is being filled.
const BLOCK: u64 = 8 << 10;
const MAX_BITS: u32 = 11;

/// Temporary files for hashes.
pub(super) struct TempHashes {
    spill_file: SpillFile,
    /// The memory of the ranges of one layer and list.
    allowance: u64,
}

impl TempHashes {
    /// The part of a memory limit that all ranges take together: those of two lists, and those of their
    /// next layer.
    const PARTS: u64 = 8;

    pub(super) fn new(temp: &TempDir, limit: u64) -> Result<Self> {
        Ok(Self { spill_file: SpillFile::new(temp)?, allowance: limit / Self::PARTS / 4 })
    }

    /// Returns what is left of a memory limit for keys and filters.
    pub(super) fn memory_beside(limit: u64) -> u64 {
        limit - limit / Self::PARTS
    }
}

impl HashStore for TempHashes {
    fn ranges(&self) -> petal::Result<Box<dyn HashRanges + '_>> {
        let bits = (self.allowance / 2 / BLOCK).max(2).ilog2().min(MAX_BITS);
        let (spill_file, allowance) = (&self.spill_file, self.allowance);
        Ok(Box::new(TempRanges { spill_file, allowance, bits, writer: None, streams: Vec::new() }))
    }
}

/// Ranges of hashes.
struct TempRanges<'a> {
    spill_file: &'a SpillFile,
    allowance: u64,
    bits: u32,
    /// `None` before the first hash, and when they are read.
    writer: Option<SpillWriter<'a>>,
    streams: Vec<RecordStream>,
}

impl HashRanges for TempRanges<'_> {
    fn bits(&self) -> u32 {
        self.bits
    }

    fn extend(&mut self, places: &[u64], hashes: &[u64]) -> petal::Result<()> {
        let writer = self.writer.get_or_insert_with(|| {
            SpillWriter::new(self.spill_file, 1 << self.bits, self.allowance)
        });
        let shift = 64 - self.bits;
        for (place, hash) in places.iter().zip(hashes) {
            writer.push((place >> shift) as usize, &hash.to_le_bytes()).map_err(wrapped)?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        range: u64,
        take: &mut dyn FnMut(&[u64]) -> petal::Result<()>,
    ) -> petal::Result<()> {
        if let Some(writer) = self.writer.take() {
            self.streams = writer.finish();
        }
        let Some(stream) = self.streams.get(range as usize) else { return Ok(()) };
        let mut hashes = Vec::new();
        let look = |block: &[u8]| {
            let (words, _) = block.as_chunks::<8>();
            hashes.clear();
            hashes.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
            take(&hashes).map_err(Error::from)
        };
        stream.for_each_block(self.spill_file, look).map_err(wrapped)
    }
}

/// Carries an error through the library; `From` unwraps it.
fn wrapped(error: Error) -> petal::Error {
    std::io::Error::other(error).into()
}
