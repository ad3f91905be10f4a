//! Filters larger than a worker's memory, sharded by hash range.
//!
//! Of S shards, a hash h belongs to number ⌊h · S / 2⁶⁴⌋, and what is left of it is h · S mod 2⁶⁴:
//! as even as h was, and different for any two hashes of one shard (h · S mod 2⁶⁴ with the shard
//! is the whole product). A shard is an ordinary filter that is asked with what is left. In a
//! filter of S · N blocks h has the block ⌊h · S · N / 2⁶⁴⌋, which in its shard is the block
//! ⌊left · N / 2⁶⁴⌋: a hash range is a byte range of the whole filter, and all shards together have
//! the rate of one filter of all their bytes. (Only the bits within a block are others than those
//! of an undivided filter, as they come from what is left; shards are therefore not to be put
//! together to a file.)
//!
//! | function | reads | writes |
//! |---|---|---|
//! | [`Task::keys`] | ranges | what is left of the hash of each line, in line order, a section a shard |
//! | [`Task::build_shard`] | one section of all files of keys | the filter of a shard |
//! | [`Task::probe`] | one section of files of keys, shard filters | a bit for each key, in the same order |
//! | [`Task::filter`] | ranges, those bits | survivors |
//!
//! The last reads its ranges again and hashes each line: the hash says in which shard the next bit
//! is that answers for the line.
//!
//! Cost: 8 bytes a line written and read, a bit a line back; the ranges are read twice.

use std::path::{Path, PathBuf};

use petal::{Answers, Membership};

use super::fill::{Built, Partial, Size, write};
use super::{Range, Side, Task, numbers};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::input::Temp;
use crate::pass::{Batch, Flow, Scratch};
use crate::sections::{Facts, Kind, Reader, Section, Sections, Writer};
use crate::spill::{Scratchpad, Spill};
use crate::steps::ask_any;

/// The most shards: whoever asks all of them has a file of each open.
const MOST_SHARDS: u64 = 256;

/// What a file of bits says of a file of hashes: its first and last range, and how many bits.
const ENTRY: usize = 24;

/// Bytes of hashes or bits read at a time.
const BLOCK: usize = 48 << 10;
const SMALL_BLOCK: usize = 4 << 10;

/// The shard of a hash among so many, and what is left of the hash.
#[inline]
fn deal(hash: u64, shards: u64) -> (usize, u64) {
    let product = u128::from(hash) * u128::from(shards);
    ((product >> 64) as usize, product as u64)
}

impl Task<'_> {
    /// Deals the hashes of all lines of ranges to so many shards, in line order.
    ///
    /// Cost: one pass; 8 bytes a line.
    ///
    /// # Errors
    /// If a range cannot be read, the shards are more than 256 or too many for the memory, or the
    /// file cannot be written.
    pub fn keys(&self, ranges: &[Range], side: Side, shards: u64, out: &Path) -> Result<Built> {
        let (budget, inputs) = self.open(ranges)?;
        let most = Spill::most_streams(budget.work).min(MOST_SHARDS);
        if !(1..=most).contains(&shards) {
            let found =
                format!("is to have {shards} shards, expected 1 to {most} with this memory");
            return Err(Error::work(out, found));
        }
        let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
        let mut spill = Spill::new(&pad, shards as usize, budget.work);
        let refs: Vec<_> = inputs.iter().collect();
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.take_keys(batch, self.hashes.spec());
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for &key in &scratch.keys {
                let (shard, left) = deal(key, shards);
                spill.push(shard, &left.to_le_bytes())?;
            }
            Ok(Flow::Go)
        };
        let seen = self.settings.pass(budget).run("hashing", &refs, map, fold)?;
        let mut writer = Writer::new(out, side.keys())?;
        for stream in &spill.finish() {
            writer.section(stream.bytes(), |give| stream.for_each_block(&pad, give))?;
        }
        let (first, last) = numbers(ranges);
        let written = writer.finish(Facts {
            job: self.job,
            first,
            last,
            lines: seen.lines,
            bytes: seen.bytes,
            count: seen.lines,
            cut: shards,
        })?;
        Ok(Built { lines: seen.lines, bytes: seen.bytes, written })
    }

    /// Fills the filter of one shard with its hashes of all files: it is complete, nothing is to
    /// be united. `size` is that of one shard.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another job; if the filters are larger than the memory,
    /// or cannot be written.
    pub fn build_shard(
        &self,
        shard: u64,
        size: Size,
        keys: &[PathBuf],
        out: &Partial,
    ) -> Result<Built> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let held = 1 + u64::from(out.twice.is_some());
        let mut seen = self.empty(size, &budget, held)?;
        let mut twice = out.twice.is_some().then(|| self.empty(size, &budget, held)).transpose()?;
        let (mut answers, mut known) = (Answers::new(), Vec::new());
        let mut built = Built::default();
        for path in keys {
            let either = [Kind::FirstKeys, Kind::OtherKeys];
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

    /// Asks the filters of one shard for its hashes in some files of one side: a bit for each,
    /// whether any of the filters may hold it.
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
    ) -> Result<Built> {
        for filter in filters {
            self.check_job(*filter, Path::new("the filter of the shard"))?;
        }
        self.room_beside(filters, &Budget::new(self.settings.memory, self.settings.jobs)?)?;
        let (mut built, mut shards, mut entries) = (Built::default(), 1, Vec::new());
        let mut writer = Writer::new(out, side.bits())?;
        for path in keys {
            let (Facts { first, last, cut, .. }, section) =
                self.hashes_of(path, &[side.keys()], shard)?;
            let count = section.bytes() / 8;
            entries.extend_from_slice([first, last, count].map(u64::to_le_bytes).as_flattened());
            (shards, built.lines) = (cut, built.lines + count);
            writer.section(count.div_ceil(64) * 8, |give| {
                let (mut found, mut words) = (Answers::new(), Vec::new());
                self.each_hashes(&section, |hashes| {
                    ask_any(filters, hashes, &mut found);
                    words.clear();
                    found.as_words().iter().for_each(|word| words.extend(word.to_le_bytes()));
                    give(&words)
                })
            })?;
        }
        writer.section(entries.len() as u64, |give| give(&entries))?;
        built.bytes = built.lines * 8;
        built.written = writer.finish(Facts {
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

    /// The hashes of a shard in a file.
    fn hashes_of(&self, path: &Path, kinds: &[Kind], shard: u64) -> Result<(Facts, Section)> {
        let (file, _) = Sections::open(path, kinds, self.job)?;
        Ok((file.facts(), file.section(shard, 8)?))
    }

    /// Gives hashes a few at a time: a multiple of 64 of them, but for the last.
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

    /// The bits that tell of these ranges, by shard.
    pub(super) fn bits_of(
        &self,
        ranges: &[Range],
        side: Side,
        files: &[PathBuf],
    ) -> Result<Vec<BitsOf>> {
        let wanted = numbers(ranges);
        let mut found: Vec<Option<BitsOf>> = Vec::new();
        for path in files {
            let (file, _) = Sections::open(path, &[side.bits()], self.job)?;
            let Facts { first: shard, cut: shards, count: keys, .. } = file.facts();
            if found.is_empty() && shards <= MOST_SHARDS {
                found.resize_with(shards as usize, || None);
            }
            if shard >= shards || shards != found.len() as u64 {
                let number = found.len();
                let problem =
                    format!("tells of shard {shard} of {shards}, expected one of {number}");
                return Err(Error::work(path, problem));
            }
            let (index, mut bytes) = (file.section(keys, ENTRY as u64)?, Vec::new());
            let mut reader = index.reader()?;
            let mut number = 0;
            while reader.next(BLOCK / ENTRY * ENTRY, &mut bytes)? {
                for entry in bytes.as_chunks::<ENTRY>().0 {
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

/// The bits of one shard that tell of some ranges.
pub(super) struct BitsOf {
    path: PathBuf,
    section: Section,
    count: u64,
}

/// Tells of line after line, from the bits of all shards.
pub(super) struct Told<'a>(Vec<Cursor<'a>>);

struct Cursor<'a> {
    bits: &'a BitsOf,
    reader: Reader<'a>,
    block: Vec<u8>,
    /// Bits told, and how many of them are in this block.
    told: u64,
    at: usize,
}

impl<'a> Told<'a> {
    pub(super) fn new(bits: &'a [BitsOf]) -> Result<Self> {
        let cursor = |bits: &'a BitsOf| {
            let reader = bits.section.reader()?;
            Ok(Cursor { bits, reader, block: Vec::new(), told: 0, at: 0 })
        };
        Ok(Self(bits.iter().map(cursor).collect::<Result<_>>()?))
    }

    /// Whether the next line, with this hash, survives.
    #[inline]
    pub(super) fn next(&mut self, hash: u64) -> Result<bool> {
        let (shard, _) = deal(hash, self.0.len() as u64);
        let Cursor { bits, reader, block, told, at } = &mut self.0[shard];
        if *told == bits.count {
            return Err(bits.other_lines());
        }
        if *at == block.len() * 8 {
            if !reader.next(SMALL_BLOCK, block)? {
                return Err(bits.other_lines());
            }
            *at = 0;
        }
        let bit = block[*at / 8] >> (*at % 8) & 1;
        (*told, *at) = (*told + 1, *at + 1);
        Ok(bit == 1)
    }

    /// Checks that all was told.
    pub(super) fn end(&mut self) -> Result<()> {
        for cursor in &mut self.0 {
            let more = cursor.reader.next(SMALL_BLOCK, &mut cursor.block)?;
            if more || cursor.told != cursor.bits.count {
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
