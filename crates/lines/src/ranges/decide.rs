//! From ranges to survivors, and from those to answers.

use std::path::{Path, PathBuf};

use petal::Membership;

use super::shards::Told;
use super::{NO_RANGES, OFFSET_BITS, Range, Task, base, check_order, numbers};
use crate::budget::{Budget, least_records};
use crate::error::{Error, Result};
use crate::input::{Input, Temp};
use crate::judge::Verb;
use crate::marks::{Listed, Spans};
use crate::resolve::{Digits, Part, Resolver};
use crate::sections::{Facts, Kind, Section, Sections, Writer};
use crate::spill::{Scratchpad, Spill, Stream};
use crate::steps::{Asked, KEY_LOG, Keys, Role};

/// On which side of a verb an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The lines that are printed: where they are is kept as well.
    First,
    /// What they are compared with.
    Other,
}

impl Side {
    fn role(self) -> Role {
        match self {
            Self::First => Role::First,
            Self::Other => Role::Other,
        }
    }

    /// Of its survivors.
    fn kind(self) -> Kind {
        match self {
            Self::First => Kind::First,
            Self::Other => Kind::Other,
        }
    }

    /// Of its hashes.
    pub(super) fn keys(self) -> Kind {
        match self {
            Self::First => Kind::FirstKeys,
            Self::Other => Kind::OtherKeys,
        }
    }

    /// Of the bits for these.
    pub(super) fn bits(self) -> Kind {
        match self {
            Self::First => Kind::FirstBits,
            Self::Other => Kind::OtherBits,
        }
    }
}

/// What rules lines out.
#[derive(Clone, Copy)]
pub enum Narrow<'a> {
    /// Nothing: all lines survive.
    Nothing,
    /// Filters; a line survives that any of them may hold.
    Filters(&'a [&'a dyn Membership]),
    /// Files of bits, of all shards, that tell of these ranges: made by [`Task::probe`] of what
    /// [`Task::keys`] has made of the same ranges.
    Bits(&'a [PathBuf]),
}

/// All survivors of one input, in any order.
#[derive(Clone, Copy, Debug)]
pub struct AllOf<'a> {
    /// Their files: [`Task::filter`] made them.
    pub files: &'a [PathBuf],
    /// How many ranges the input has: each is in one of the files.
    pub ranges: u64,
}

/// What filters could not rule out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survivors {
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Lines that became records.
    pub survivors: u64,
    /// Bytes written.
    pub written: u64,
}

/// What was decided of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Records of the first input.
    pub first: u64,
    /// Records of all others.
    pub others: u64,
    /// Lines of the first input that the answer lists: of `common` those kept, else those dropped.
    pub listed: u64,
    /// Of `common`: records of the first input that are not in every other.
    pub refused: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes written.
    pub written: u64,
}

impl Task<'_> {
    /// Makes records of the lines of ranges that cannot be ruled out. They are dealt to so many
    /// partitions, the same number in all of a job. The ranges must follow each other.
    ///
    /// Cost: one pass; a fingerprint and 24 bytes for each survivor (16 of others), and 8 for its
    /// key unless all lines survive.
    ///
    /// # Errors
    /// If a range cannot be read, the filters are of another job or leave too little memory, or
    /// the file cannot be written.
    pub fn filter(
        &self,
        ranges: &[Range],
        side: Side,
        narrow: Narrow<'_>,
        partitions: u64,
        out: &Path,
    ) -> Result<Survivors> {
        let filters = match narrow {
            Narrow::Filters(filters) => filters,
            Narrow::Nothing | Narrow::Bits(_) => &[],
        };
        for filter in filters {
            self.check_job(*filter, Path::new("the filter to narrow with"))?;
        }
        // Or nobody could tell whether survivors are complete.
        check_order(ranges)?;
        let (budget, inputs) = self.open(ranges)?;
        let allowance = self.room_beside(filters, &budget)?;
        let digits = self.digits(partitions, allowance, out)?;
        let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
        let mut spill = Spill::new(&pad, digits.parts(), allowance);
        let narrows = !matches!(narrow, Narrow::Nothing);
        let mut keys = narrows.then(|| Keys::Log(Spill::new(&pad, 1, KEY_LOG)));
        let refs: Vec<_> = inputs.iter().collect();
        let (role, steps) = (side.role(), self.steps(budget));
        let start = |input: usize| Ok(base(&ranges[input]));
        let mut gather = |asked: Asked<'_>| {
            let (spill, keys) = (&mut spill, keys.as_mut());
            steps.gather("matching", &refs, role, asked, &digits, start, spill, keys)
        };
        let seen = match narrow {
            Narrow::Nothing => gather(Asked::All)?,
            Narrow::Filters(filters) => gather(Asked::Any(filters))?,
            Narrow::Bits(files) => {
                let sections = self.bits_of(ranges, side, files)?;
                let mut told = Told::new(&sections)?;
                let seen = gather(Asked::Told(&mut |hash| told.next(hash)))?;
                told.end()?;
                seen
            }
        };
        let too_long = |input: &Input| input.length().is_some_and(|bytes| bytes > 1 << OFFSET_BITS);
        if side == Side::First
            && let Some(at) = inputs.iter().position(too_long)
        {
            let Range { path, start, end, .. } = &ranges[at];
            let problem = "it holds more than 2^40 bytes when unpacked; pack it in several files";
            return Err(Error::range(&path.to_string_lossy(), *start, *end, problem));
        }
        let survivors = spill.bytes() / side.role().record() as u64;
        let keys = keys.map_or_else(Stream::default, Keys::into_log);
        let mut writer = Writer::new(out, side.kind())?;
        for stream in spill.finish().iter().chain([&keys]) {
            writer.section(stream.bytes(), |give| stream.for_each_block(&pad, give))?;
        }
        let (first, last) = numbers(ranges);
        let written = writer.finish(Facts {
            job: self.job,
            first,
            last,
            lines: seen.lines,
            bytes: seen.bytes,
            count: survivors,
            cut: partitions,
        })?;
        Ok(Survivors { lines: seen.lines, bytes: seen.bytes, survivors, written })
    }

    /// Decides one partition: which lines of the first input are in the answer. `first` are all
    /// survivors of the first input, `others` all those of each other; for `common` a line must be
    /// in every one.
    ///
    /// Cost: reads the partition's section of every file, twice at most, and what does not fit the
    /// memory goes to temporary files as on one machine.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another job, if ranges of an input are missing or there
    /// twice, or if files cannot be written.
    pub fn exact(
        &self,
        verb: Verb,
        partition: u64,
        first: AllOf<'_>,
        others: &[AllOf<'_>],
        out: &Path,
    ) -> Result<Decided> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let mut partitions = None;
        let ranges = first.ranges;
        let first = self.covered(first, Side::First, partition, &mut partitions)?;
        let first = Stream::of_sections(first);
        let mut streams = Vec::new();
        for other in others {
            streams.push(self.covered(*other, Side::Other, partition, &mut partitions)?);
        }
        // Of `diff`, it does not matter in which of the others a line is.
        if verb != Verb::Common && !streams.is_empty() {
            streams = vec![streams.concat()];
        }
        let streams: Vec<_> = streams.into_iter().map(Stream::of_sections).collect();
        let verb = verb.with_others(streams.len());
        let (listed, kind) = match verb {
            Verb::Common => (Listed::Kept, Kind::Kept),
            Verb::Diff | Verb::Dedup => (Listed::Dropped, Kind::Dropped),
        };
        let mut decided = Decided {
            first: first.bytes() / Role::First.record() as u64,
            others: streams.iter().map(Stream::bytes).sum::<u64>() / Role::Other.record() as u64,
            bytes: first.bytes() + streams.iter().map(Stream::bytes).sum::<u64>(),
            ..Decided::default()
        };
        // Sections for so many ranges together that there is memory for them.
        let group = ranges.div_ceil(Spill::most_streams(budget.work / 8)).max(1);
        let groups = ranges.div_ceil(group).max(1);
        let spans = Spans::even(0, group << OFFSET_BITS, groups);
        let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
        let digits = Digits::new(partitions.unwrap_or(1));
        let resolver = Resolver {
            verb,
            listed,
            spans: Some(spans),
            pad: &pad,
            memory: budget.work,
            workers: 1,
            progress: self.settings.progress,
        };
        self.settings.progress.phase("deciding", Some(decided.bytes));
        let part = Part { first, others: streams };
        let mut resolved = resolver.resolve(vec![part], &digits)?;
        let marks = resolved.marks.pop().unwrap_or_default();
        let mut writer = Writer::new(out, kind)?;
        for marks in &marks {
            writer.section(marks.bytes(), |give| marks.for_each_block(&pad, give))?;
        }
        (decided.listed, decided.refused) = (resolved.count, resolved.refused);
        decided.written = writer.finish(Facts {
            job: self.job,
            first: partition,
            last: partitions.unwrap_or(1),
            lines: decided.first,
            bytes: decided.bytes,
            count: resolved.count,
            cut: group,
        })?;
        Ok(decided)
    }

    /// The sections of a partition in all survivors of an input, in the order of its ranges, if
    /// they tell of each range once. `partitions` are the job's, once any file has told.
    fn covered(
        &self,
        all: AllOf<'_>,
        side: Side,
        partition: u64,
        partitions: &mut Option<u64>,
    ) -> Result<Vec<Section>> {
        let mut found = Vec::new();
        for path in all.files {
            let (file, _) = Sections::open(path, &[side.kind()], self.job)?;
            let Facts { first, last, cut, .. } = file.facts();
            let expected = *partitions.get_or_insert(cut);
            if cut != expected || partition >= cut {
                let found = format!(
                    "is in {cut} partitions, expected {expected} and number {partition} among \
                     them; use one number for all of a job"
                );
                return Err(Error::work(path, found));
            }
            found.push((first, last, path, file.section(partition, side.role().record() as u64)?));
        }
        // Those of no range may be anywhere.
        found.sort_by_key(|(first, last, ..)| (*first, *last));
        let (mut next, mut end) = (0, Path::new("the list of survivors"));
        let hint = "name the survivors of every range, once";
        for (first, last, path, _) in &found {
            if (*first, *last) == NO_RANGES {
                continue;
            }
            if *first != next {
                let problem =
                    format!("begins with range {first} of its input, expected {next}; {hint}");
                return Err(Error::work(path, problem));
            }
            (next, end) = (last + 1, path);
        }
        if next != all.ranges {
            let ranges = all.ranges;
            let problem =
                format!("ends after {next} ranges of its input, expected {ranges}; {hint}");
            return Err(Error::work(end, problem));
        }
        Ok(found.into_iter().map(|(.., section)| section).collect())
    }

    /// What is left of the memory beside filters. Those that are mapped are asked all over, so all
    /// of their pages come into memory.
    pub(super) fn room_beside(&self, filters: &[&dyn Membership], budget: &Budget) -> Result<u64> {
        let held = filters.iter().map(|filter| filter.memory_usage().max(filter.size_bytes()));
        let held = held.fold(0, u64::saturating_add);
        let least = least_records(budget.work);
        match budget.work.checked_sub(held) {
            Some(left) if left >= least => Ok(left),
            _ => {
                let needed = held.saturating_add(least).saturating_mul(2);
                Err(Error::memory_too_small(self.settings.memory, needed))
            }
        }
    }

    fn digits(&self, partitions: u64, allowance: u64, out: &Path) -> Result<Digits> {
        let most = Spill::most_streams(allowance);
        if (1..=most).contains(&partitions) {
            return Ok(Digits::new(partitions));
        }
        let found = format!(
            "is to be in {partitions} partitions, expected 1 to {most} with this memory; raise it, \
             or use fewer (what does not fit the memory is cut further)"
        );
        Err(Error::work(out, found))
    }
}
