//! The bits of all shards, read line by line.

use std::path::PathBuf;

use super::range::{FileRange, numbers};
use super::shards::{BLOCK, MAX_SHARDS, SMALL_BLOCK, SUMMARY_ENTRY, shard_of};
use super::task::Task;
use crate::error::{Error, Result};
use crate::setops::Side;
use crate::temp::{FileSummary, Section, SectionFile, SectionReader};

impl Task<'_> {
    /// Returns the bits for these ranges, by shard.
    pub(super) fn bits_of(
        &self,
        ranges: &[FileRange],
        side: Side,
        files: &[PathBuf],
    ) -> Result<Vec<BitsOf>> {
        let wanted = numbers(ranges);
        let mut found: Vec<Option<BitsOf>> = Vec::new();
        for path in files {
            let (file, _) = SectionFile::open(path, &[side.bits()], self.job)?;
            let FileSummary { first: shard, cut: shards, count: keys, .. } = file.summary();
            if found.is_empty() && shards <= MAX_SHARDS {
                found.resize_with(shards as usize, || None);
            }
            if shard >= shards || shards != found.len() as u64 {
                let number = found.len();
                let problem =
                    format!("tells of shard {shard} of {shards}, expected one of {number}");
                return Err(Error::work(path, problem));
            }
            let (index, mut bytes) = (file.section(keys, SUMMARY_ENTRY as u64)?, Vec::new());
            let mut reader = index.reader()?;
            let mut number = 0;
            while reader.next(BLOCK / SUMMARY_ENTRY * SUMMARY_ENTRY, &mut bytes)? {
                for entry in bytes.as_chunks::<SUMMARY_ENTRY>().0 {
                    let word = |at: usize| {
                        entry[at * 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
                    };
                    if (word(0), word(1)) == wanted {
                        let (section, count) = (file.section(number, 8)?, word(2));
                        let path = path.clone();
                        found[shard as usize] = Some(BitsOf { path, section, count });
                    }
                    number += 1;
                }
            }
        }
        let missing = |shard: usize| {
            let name = files.first().cloned().unwrap_or_default();
            let (first, last) = wanted;
            let problem = format!(
                "and the files of bits named with it do not tell of the ranges {first} to {last} \
                 in shard {shard}; probe the hashes of the same ranges, in all shards"
            );
            Error::work(&name, problem)
        };
        if found.is_empty() {
            return Err(missing(0));
        }
        let found = found.into_iter().enumerate();
        found.map(|(shard, bits)| bits.ok_or_else(|| missing(shard))).collect()
    }
}

/// The bits of one shard for some ranges.
pub(super) struct BitsOf {
    path: PathBuf,
    section: Section,
    count: u64,
}

/// A reader of the bits of all shards, in line order.
pub(super) struct ShardBits<'a>(Vec<Cursor<'a>>);

struct Cursor<'a> {
    bits: &'a BitsOf,
    reader: SectionReader<'a>,
    block: Vec<u8>,
    /// Number of bits read, and how many of them are in this block.
    read: u64,
    at: usize,
}

impl<'a> ShardBits<'a> {
    pub(super) fn new(bits: &'a [BitsOf]) -> Result<Self> {
        let cursor = |bits: &'a BitsOf| {
            let reader = bits.section.reader()?;
            Ok(Cursor { bits, reader, block: Vec::new(), read: 0, at: 0 })
        };
        Ok(Self(bits.iter().map(cursor).collect::<Result<_>>()?))
    }

    /// Returns true if the next line, with this hash, survives.
    #[inline]
    pub(super) fn next(&mut self, hash: u64) -> Result<bool> {
        let (shard, _) = shard_of(hash, self.0.len() as u64);
        let Cursor { bits, reader, block, read, at } = &mut self.0[shard];
        if *read == bits.count {
            return Err(bits.other_lines());
        }
        if *at == block.len() * 8 {
            if !reader.next(SMALL_BLOCK, block)? {
                return Err(bits.other_lines());
            }
            *at = 0;
        }
        let bit = block[*at / 8] >> (*at % 8) & 1;
        (*read, *at) = (*read + 1, *at + 1);
        Ok(bit == 1)
    }

    /// Checks that all bits were read.
    pub(super) fn end(&mut self) -> Result<()> {
        for cursor in &mut self.0 {
            let more = cursor.reader.next(SMALL_BLOCK, &mut cursor.block)?;
            if more || cursor.read != cursor.bits.count {
                return Err(cursor.bits.other_lines());
            }
        }
        Ok(())
    }
}

impl BitsOf {
    fn other_lines(&self) -> Error {
        let problem = "tells of more lines, or fewer, than there are; did the input change?";
        Error::work(&self.path, problem)
    }
}
