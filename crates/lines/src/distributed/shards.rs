//! Filters larger than a worker's memory, sharded by hash range.
//!
//! Of S shards, a hash h belongs to number ⌊h · S / 2⁶⁴⌋, and its *remainder* is h · S mod 2⁶⁴: as
//! uniform as h, and distinct for any two hashes of one shard. A shard is an ordinary filter that
//! is queried with remainders. In a filter of S · N blocks h has the block ⌊h · S · N / 2⁶⁴⌋, which
//! in its shard is the block ⌊remainder · N / 2⁶⁴⌋: a hash range is a byte range of the whole
//! filter, and all shards together have the rate of one filter of all their bytes. (The bits within
//! a block differ from those of an undivided filter, because they come from the remainder; so
//! shards cannot be joined into one file.)
//!
//! | function | reads | writes |
//! |---|---|---|
//! | [`Task::hash_lines`] | ranges | the remainder of the hash of each line, in line order, one section per shard |
//! | [`Task::build_shard`] | one section of all files of hashes | the filter of a shard |
//! | [`Task::probe`] | one section of files of hashes, shard filters | a bit for each hash, in the same order |
//! | [`Task::filter`] | ranges, those bits | survivors |
//!
//! `filter` reads its ranges again and hashes each line; the hash determines the shard whose next
//! bit is the line's.
//!
//! Cost: 8 bytes per line written and read, one bit per line back; the ranges are read twice.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use petal::{BatchResults, Membership};

use super::build::{BuildCounts, FilterSize, PartialFilter, write};
use super::range::{FileRange, numbers};
use super::task::Task;
use crate::error::{Error, Result};
use crate::scan::{Batch, Scratch};
use crate::setops::{Side, contains_any};
use crate::temp::{FileSummary, Section, SectionFile, SectionKind, SectionWriter, SpillWriter};

/// Maximum number of shards: a task that reads all of them has a file of each open.
pub(super) const MAX_SHARDS: u64 = 256;

/// Bytes of a summary entry: the first and last range of a file of hashes, and the number of bits.
pub(super) const SUMMARY_ENTRY: usize = 24;

/// Bytes of hashes or bits per read.
pub(super) const BLOCK: usize = 48 << 10;
pub(super) const SMALL_BLOCK: usize = 4 << 10;

/// Returns the shard of a hash and its remainder.
#[inline]
pub(super) fn shard_of(hash: u64, shards: u64) -> (usize, u64) {
    let product = u128::from(hash) * u128::from(shards);
    ((product >> 64) as usize, product as u64)
}

impl Task<'_> {
    /// Writes the hashes of all lines of ranges by shard, in line order.
    ///
    /// Cost: one pass; 8 bytes per line.
    ///
    /// # Errors
    /// If a range cannot be read, there are more than 256 shards or too many for the memory, or the
    /// file cannot be written.
    pub fn hash_lines(
        &self,
        ranges: &[FileRange],
        side: Side,
        shards: u64,
        out: &Path,
    ) -> Result<BuildCounts> {
        let (context, inputs) = self.open(ranges)?;
        let max = SpillWriter::max_streams(context.budget.work).min(MAX_SHARDS);
        if !(1..=max).contains(&shards) {
            let found = format!("is to have {shards} shards, expected 1 to {max} with this memory");
            return Err(Error::work(out, found));
        }
        let spill_file = self.spill_file()?;
        let mut spill = SpillWriter::new(&spill_file, shards as usize, context.budget.work);
        let refs: Vec<_> = inputs.iter().collect();
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.hash_lines(batch, self.hasher.spec());
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for &key in &scratch.hashes {
                let (shard, left) = shard_of(key, shards);
                spill.push(shard, &left.to_le_bytes())?;
            }
            Ok(ControlFlow::Continue(()))
        };
        let stats = context.pass().run("hashing", &refs, map, fold)?;
        let mut writer = SectionWriter::new(out, side.hashes())?;
        for stream in &spill.finish() {
            writer.section(stream.bytes(), |give| stream.for_each_block(&spill_file, give))?;
        }
        let (first, last) = numbers(ranges);
        let written = writer.finish(FileSummary {
            job: self.job,
            first,
            last,
            lines: stats.lines,
            bytes: stats.bytes,
            count: stats.lines,
            cut: shards,
        })?;
        Ok(BuildCounts { lines: stats.lines, bytes: stats.bytes, written })
    }

    /// Fills the filter of one shard with its hashes of all files. It is complete; no union is
    /// needed. `size` is that of one shard.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another job; if the filters exceed the memory limit or
    /// cannot be written.
    pub fn build_shard(
        &self,
        shard: u64,
        size: FilterSize,
        keys: &[PathBuf],
        out: &PartialFilter,
    ) -> Result<BuildCounts> {
        let budget = self.budget()?;
        let filters = 1 + u64::from(out.twice.is_some());
        let mut seen = self.empty(size, &budget, filters)?;
        let mut twice =
            out.twice.is_some().then(|| self.empty(size, &budget, filters)).transpose()?;
        let (mut answers, mut known) = (BatchResults::new(), Vec::new());
        let mut built = BuildCounts::default();
        for path in keys {
            self.check_cancelled()?;
            let either = [SectionKind::FirstKeys, SectionKind::OtherKeys];
            let section = self.hashes_of(path, &either, shard)?.1;
            built.lines += section.bytes() / 8;
            self.each_hashes(&section, |hashes| {
                seen.insert_mixed_hashes(hashes, &mut answers);
                if let Some(twice) = &mut twice {
                    known.clear();
                    let old = hashes.iter().enumerate().filter(|(at, _)| !answers.get(*at));
                    known.extend(old.map(|(_, hash)| *hash));
                    twice.insert_mixed_hashes(&known, &mut answers);
                }
                Ok(())
            })?;
        }
        built.bytes = built.lines * 8;
        built.written = write(&seen, &out.seen)?;
        if let (Some(twice), Some(path)) = (&twice, &out.twice) {
            built.written += write(twice, path)?;
        }
        Ok(built)
    }

    /// Looks up the hashes of one shard in some files of one side; writes a bit for each, set if
    /// any of the filters reports it as present.
    ///
    /// # Errors
    /// If a file is missing, damaged, of another job or of the other side, if a filter is of
    /// another job, if the filters leave too little memory, or if the file cannot be written.
    pub fn probe(
        &self,
        shard: u64,
        side: Side,
        filters: &[&dyn Membership],
        keys: &[PathBuf],
        out: &Path,
    ) -> Result<BuildCounts> {
        for filter in filters {
            self.check_job(*filter, Path::new("the filter of the shard"))?;
        }
        self.memory_beside(filters, &self.budget()?)?;
        let (mut built, mut shards, mut entries) = (BuildCounts::default(), 1, Vec::new());
        let mut writer = SectionWriter::new(out, side.bits())?;
        for path in keys {
            self.check_cancelled()?;
            let (FileSummary { first, last, cut, .. }, section) =
                self.hashes_of(path, &[side.hashes()], shard)?;
            let count = section.bytes() / 8;
            entries.extend_from_slice([first, last, count].map(u64::to_le_bytes).as_flattened());
            (shards, built.lines) = (cut, built.lines + count);
            writer.section(count.div_ceil(64) * 8, |give| {
                let (mut found, mut words) = (BatchResults::new(), Vec::new());
                self.each_hashes(&section, |hashes| {
                    contains_any(filters, hashes, &mut found);
                    words.clear();
                    found.as_words().iter().for_each(|word| words.extend(word.to_le_bytes()));
                    give(&words)
                })
            })?;
        }
        writer.section(entries.len() as u64, |give| give(&entries))?;
        built.bytes = built.lines * 8;
        built.written = writer.finish(FileSummary {
            job: self.job,
            first: shard,
            last: shard,
            lines: built.lines,
            bytes: built.bytes,
            count: keys.len() as u64,
            cut: shards,
        })?;
        Ok(built)
    }

    /// Returns the hashes of a shard in a file.
    fn hashes_of(
        &self,
        path: &Path,
        kinds: &[SectionKind],
        shard: u64,
    ) -> Result<(FileSummary, Section)> {
        let (file, _) = SectionFile::open(path, kinds, self.job)?;
        Ok((file.summary(), file.section(shard, 8)?))
    }

    /// Passes hashes on in multiples of 64, except for the last.
    fn each_hashes(
        &self,
        section: &Section,
        mut each: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let (mut reader, mut bytes, mut hashes) = (section.reader()?, Vec::new(), Vec::new());
        while reader.next(BLOCK, &mut bytes)? {
            self.check_cancelled()?;
            hashes.clear();
            hashes.extend(bytes.as_chunks().0.iter().map(|hash| u64::from_le_bytes(*hash)));
            each(&hashes)?;
        }
        Ok(())
    }
}
