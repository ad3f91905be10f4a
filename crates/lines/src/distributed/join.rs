//! The exact decision: from survivors to answers.

use std::path::{Path, PathBuf};

use super::range::OFFSET_BITS;
use super::task::Task;
use crate::error::{Error, Result};
use crate::setops::{Partition, PartitionJoin, Partitioning, Polarity, SetOp, Side, Spans};
use crate::temp::{
    FileSummary, NO_RANGES, RecordStream, Section, SectionFile, SectionKind, SectionWriter,
    SpillWriter,
};

/// All survivors of one input, in any order.
#[derive(Clone, Copy, Debug)]
pub struct SurvivorFiles<'a> {
    /// The files, written by [`Task::filter`].
    pub files: &'a [PathBuf],
    /// The number of ranges of the input; each is in one of the files.
    pub ranges: u64,
}

/// Counts of a decided partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinCounts {
    /// Records of the first input.
    pub first: u64,
    /// Records of all others.
    pub others: u64,
    /// Lines of the first input in the answer file: those kept for `common`, else those dropped.
    pub listed: u64,
    /// For `common`: records of the first input that are not in every other.
    pub refused: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes written.
    pub written: u64,
}

impl Task<'_> {
    /// Decides which lines of the first input in one partition are in the answer. `first` has all
    /// survivors of the first input, `others` those of each other input; for `common` a line must
    /// be in every one.
    ///
    /// Cost: reads the partition's section of every file at most twice; what does not fit in memory
    /// goes to temporary files.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another job, if ranges of an input are missing or occur
    /// twice, or if files cannot be written.
    pub fn join_partition(
        &self,
        op: SetOp,
        partition: u64,
        first: SurvivorFiles<'_>,
        others: &[SurvivorFiles<'_>],
        out: &Path,
    ) -> Result<JoinCounts> {
        let budget = self.budget()?;
        let mut partitions = None;
        let ranges = first.ranges;
        let first = self.covered(first, Side::First, partition, &mut partitions)?;
        let first = RecordStream::of_sections(first);
        let mut streams = Vec::new();
        for other in others {
            streams.push(self.covered(*other, Side::Other, partition, &mut partitions)?);
        }
        if !op.separates_others() && !streams.is_empty() {
            streams = vec![streams.concat()];
        }
        let streams: Vec<_> = streams.into_iter().map(RecordStream::of_sections).collect();
        let op = op.with_others(streams.len());
        let (polarity, kind) = match op {
            SetOp::Common | SetOp::AtLeast(_) | SetOp::Duplicates => {
                (Polarity::Kept, SectionKind::Kept)
            }
            SetOp::Diff | SetOp::SymDiff | SetOp::Dedup | SetOp::DedupLast | SetOp::Unique => {
                (Polarity::Dropped, SectionKind::Dropped)
            }
        };
        let other_bytes: u64 = streams.iter().map(RecordStream::bytes).sum();
        let mut decided = JoinCounts {
            first: first.bytes() / Side::First.record_bytes() as u64,
            others: other_bytes / Side::Other.record_bytes() as u64,
            // Without records of the first input there is nothing to decide, and nothing is read.
            bytes: if first.bytes() == 0 { 0 } else { first.bytes() + other_bytes },
            ..JoinCounts::default()
        };
        // A section for as many ranges as there is memory for.
        let group = ranges.div_ceil(SpillWriter::max_streams(budget.work / 8)).max(1);
        let groups = ranges.div_ceil(group).max(1);
        let spans = Spans::even(0, group << OFFSET_BITS, groups);
        let spill_file = self.spill_file()?;
        let partitioning = Partitioning::new(partitions.unwrap_or(1));
        let join = PartitionJoin {
            op,
            polarity,
            boundary: 0,
            spans: Some(spans),
            spill_file: &spill_file,
            memory: budget.work,
            workers: 1,
            progress: self.settings.progress,
        };
        self.settings.progress.phase("deciding", Some(decided.bytes));
        let part = Partition { first, others: streams };
        let mut result = join.join(vec![part], &partitioning)?;
        let positions = result.positions.pop().unwrap_or_default();
        let mut writer = SectionWriter::new(out, kind)?;
        for stream in &positions {
            writer.section(stream.bytes(), |give| stream.for_each_block(&spill_file, give))?;
        }
        (decided.listed, decided.refused) = (result.count, result.refused);
        decided.written = writer.finish(FileSummary {
            job: self.job,
            first: partition,
            last: partitions.unwrap_or(1),
            lines: decided.first,
            bytes: decided.bytes,
            count: result.count,
            cut: group,
        })?;
        Ok(decided)
    }

    /// Returns the sections of a partition in all survivors of an input, in the order of its
    /// ranges, if they cover each range once. `partitions` is the job's number of partitions, set
    /// by the first file.
    fn covered(
        &self,
        all: SurvivorFiles<'_>,
        side: Side,
        partition: u64,
        partitions: &mut Option<u64>,
    ) -> Result<Vec<Section>> {
        let mut found = Vec::new();
        for path in all.files {
            self.check_cancelled()?;
            let (file, _) = SectionFile::open(path, &[side.survivors()], self.job)?;
            let FileSummary { first, last, cut, .. } = file.summary();
            let expected = *partitions.get_or_insert(cut);
            if cut != expected || partition >= cut {
                let found = format!(
                    "is in {cut} partitions, expected {expected} and number {partition} among \
                     them; use one number for all of a job"
                );
                return Err(Error::work(path, found));
            }
            found.push((first, last, path, file.section(partition, side.record_bytes() as u64)?));
        }
        // Files without ranges may be anywhere.
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
}
