//! Narrowing: from ranges to survivors, the records of lines that no filter excludes.

use std::path::{Path, PathBuf};

use petal::Membership;

use super::range::{FileRange, OFFSET_BITS, base, check_order, numbers};
use super::shard_bits::ShardBits;
use super::task::Task;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::memory::{Budget, least_records};
use crate::setops::{HASH_LOG_MEMORY, HashSink, LineSelector, Partitioning, RecordSink, Side};
use crate::temp::{FileSummary, RecordStream, SectionWriter, SpillWriter};

/// The filters that exclude lines.
#[derive(Clone, Copy)]
pub enum Narrowing<'a> {
    /// None: all lines survive.
    Nothing,
    /// Filters; a line survives if any of them reports it as present.
    Filters(&'a [&'a dyn Membership]),
    /// Files of bits of all shards for these ranges: written by [`Task::probe`] from the output of
    /// [`Task::hash_lines`] for the same ranges.
    Bits(&'a [PathBuf]),
}

/// Counts of narrowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivorCounts {
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Lines that became records.
    pub survivors: u64,
    /// Bytes written.
    pub written: u64,
}

impl Task<'_> {
    /// Writes records of the lines of ranges that cannot be excluded, distributed to `partitions`,
    /// the same number in all of a job. The ranges must be consecutive.
    ///
    /// Cost: one pass; a fingerprint and 24 bytes for each survivor (16 for other inputs), and 8
    /// for its hash unless all lines survive.
    ///
    /// # Errors
    /// If a range cannot be read, the filters are of another job or leave too little memory, or the
    /// file cannot be written.
    pub fn filter(
        &self,
        ranges: &[FileRange],
        side: Side,
        narrow: Narrowing<'_>,
        partitions: u64,
        out: &Path,
    ) -> Result<SurvivorCounts> {
        let filters = match narrow {
            Narrowing::Filters(filters) => filters,
            Narrowing::Nothing | Narrowing::Bits(_) => &[],
        };
        for filter in filters {
            self.check_job(*filter, Path::new("the filter to narrow with"))?;
        }
        // Otherwise missing survivors could not be detected.
        check_order(ranges)?;
        let (context, inputs) = self.open(ranges)?;
        let allowance = self.memory_beside(filters, &context.budget)?;
        let partitioning = self.partitioning(partitions, allowance, out)?;
        let spill_file = self.spill_file()?;
        let spill = SpillWriter::new(&spill_file, partitioning.partitions(), allowance);
        let mut records = RecordSink::new(&partitioning, spill);
        let narrows = !matches!(narrow, Narrowing::Nothing);
        let mut keys =
            narrows.then(|| HashSink::Log(SpillWriter::new(&spill_file, 1, HASH_LOG_MEMORY)));
        let refs: Vec<_> = inputs.iter().collect();
        let passes = self.passes(&context);
        let start = |input: usize| Ok(base(&ranges[input]));
        let mut write_records = |selector: LineSelector<'_>| {
            let (records, keys) = (&mut records, keys.as_mut());
            passes.write_records("matching", &refs, side, selector, start, records, keys)
        };
        let seen = match narrow {
            Narrowing::Nothing => write_records(LineSelector::All)?,
            Narrowing::Filters(filters) => write_records(LineSelector::Filters(filters))?,
            Narrowing::Bits(files) => {
                let sections = self.bits_of(ranges, side, files)?;
                let mut bits = ShardBits::new(&sections)?;
                let seen = write_records(LineSelector::PerHash(&mut |hash| bits.next(hash)))?;
                bits.end()?;
                seen
            }
        };
        let too_long = |input: &Input| input.length().is_some_and(|bytes| bytes > 1 << OFFSET_BITS);
        if side == Side::First
            && let Some(at) = inputs.iter().position(too_long)
        {
            let FileRange { path, start, end, .. } = &ranges[at];
            let problem = "it holds more than 2^40 bytes when unpacked; pack it in several files";
            return Err(Error::range(&path.to_string_lossy(), *start, *end, problem));
        }
        let survivors = records.lines();
        let keys = keys.map_or_else(RecordStream::default, HashSink::into_log);
        let mut writer = SectionWriter::new(out, side.survivors())?;
        for stream in records.into_records().iter().chain([&keys]) {
            writer.section(stream.bytes(), |give| stream.for_each_block(&spill_file, give))?;
        }
        let (first, last) = numbers(ranges);
        let written = writer.finish(FileSummary {
            job: self.job,
            first,
            last,
            lines: seen.lines,
            bytes: seen.bytes,
            count: survivors,
            cut: partitions,
        })?;
        Ok(SurvivorCounts { lines: seen.lines, bytes: seen.bytes, survivors, written })
    }

    /// Returns the memory that remains beside filters. Mapped filters are accessed everywhere, so
    /// all their pages count.
    pub(super) fn memory_beside(
        &self,
        filters: &[&dyn Membership],
        budget: &Budget,
    ) -> Result<u64> {
        let taken = filters.iter().map(|filter| filter.memory_usage().max(filter.size_bytes()));
        let taken = taken.fold(0, u64::saturating_add);
        let min = least_records(budget.work);
        match budget.work.checked_sub(taken) {
            Some(left) if left >= min => Ok(left),
            _ => {
                let needed = taken.saturating_add(min).saturating_mul(2);
                Err(Error::memory_too_small(self.settings.memory_limit, needed))
            }
        }
    }

    fn partitioning(&self, partitions: u64, allowance: u64, out: &Path) -> Result<Partitioning> {
        let max = SpillWriter::max_streams(allowance);
        if (1..=max).contains(&partitions) {
            return Ok(Partitioning::new(partitions));
        }
        let found = format!(
            "is to be in {partitions} partitions, expected 1 to {max} with this memory; raise it, \
             or use fewer (what does not fit the memory is cut further)"
        );
        Err(Error::work(out, found))
    }
}
