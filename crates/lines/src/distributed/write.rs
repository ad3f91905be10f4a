//! Writing the lines of the answer, range by range.

use std::path::{Path, PathBuf};

use petal::Membership;

use super::range::{FileRange, OFFSET_BITS, base, check_order};
use super::task::Task;
use crate::error::{Error, Result};
use crate::filters::{CheckCounts, CheckOptions, check_inputs};
use crate::input::Input;
use crate::output::Outputs;
use crate::setops::{Polarity, PositionSet, PositionWriter, Spans, print_positions};
use crate::temp::{
    FileSummary, RecordStream, SectionFile, SectionKind, SpillFile, SpillWriter, TaskFile,
};

/// Counts of a written range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputCounts {
    /// Bytes of the range that were read.
    pub bytes: u64,
    /// Bytes of lines written to a file.
    pub written: u64,
}

impl Task<'_> {
    /// Writes the lines of the answer that start in a range to one output, in order, and the other
    /// lines to the second output. `answers` are those of all partitions.
    ///
    /// Cost: reads the parts of the range with lines to write, and the range's section of each
    /// answer; 8 bytes per line of it go to a temporary file if they do not fit in a quarter of the
    /// memory.
    ///
    /// # Errors
    /// If the range cannot be read or an output cannot be written; if an answer is missing, damaged
    /// or of another job.
    pub fn write_answer(
        &self,
        range: &FileRange,
        answers: &[PathBuf],
        sinks: Outputs<'_>,
    ) -> Result<OutputCounts> {
        let spill_file = self.spill_file()?;
        let (polarity, mut positions) = self.positions(&[range], answers, &spill_file)?;
        self.print(range, polarity, positions.pop().unwrap_or_default(), &spill_file, sinks)
    }

    /// Writes the answers of consecutive ranges, each to its own file, which appears when it is
    /// complete. The answers are read once for all of them. `work` is the folder of the job: if it
    /// no longer exists when a file is complete, the job has ended, and the file does not appear,
    /// because another job may use the output folder.
    ///
    /// # Errors
    /// As [`write_answer`](Self::write_answer), or if a file cannot be written.
    pub fn write_answer_files(
        &self,
        takes: &[(FileRange, PathBuf)],
        answers: &[PathBuf],
        work: &Path,
    ) -> Result<OutputCounts> {
        let mut all = OutputCounts::default();
        let budget = self.budget()?;
        for takes in takes.chunks(SpillWriter::max_streams(budget.work / 4) as usize) {
            let spill_file = self.spill_file()?;
            let ranges: Vec<_> = takes.iter().map(|(range, _)| range).collect();
            let (polarity, positions) = self.positions(&ranges, answers, &spill_file)?;
            for ((range, out), positions) in takes.iter().zip(positions) {
                let mut file = TaskFile::new(out)?;
                let taken =
                    self.print(range, polarity, positions, &spill_file, Outputs::to(&mut file))?;
                file.sync()?;
                check_there(work)?;
                all.written += file.finish_synced()?;
                all.bytes += taken.bytes;
            }
        }
        Ok(all)
    }

    /// Returns the positions that all answers have for consecutive ranges, one stream each, and
    /// whether they are kept or dropped.
    fn positions(
        &self,
        ranges: &[&FileRange],
        answers: &[PathBuf],
        spill_file: &SpillFile,
    ) -> Result<(Polarity, Vec<RecordStream>)> {
        let budget = self.budget()?;
        let Some((first, last)) = ranges.first().zip(ranges.last()) else {
            return Ok((Polarity::Kept, Vec::new()));
        };
        check_order(ranges.iter().copied())?;
        let wanted = base(first)..=base(last) | ((1 << OFFSET_BITS) - 1);
        let spans = Spans::even(base(first), 1 << OFFSET_BITS, ranges.len() as u64);
        let mut writer = PositionWriter::new(spans, spill_file, budget.work / 4);
        let mut polarity = None;
        let mut partitions = Vec::new();
        for path in answers {
            self.check_cancelled()?;
            let (file, kind) =
                SectionFile::open(path, &[SectionKind::Kept, SectionKind::Dropped], self.job)?;
            let FileSummary { first: partition, last: of, cut, .. } = file.summary();
            if *polarity.get_or_insert(kind) != kind {
                return Err(Error::work(path, "is of another op than the answer before it"));
            }
            partitions.push((partition, of));
            let group = |range: &FileRange| range.number.checked_div(cut).unwrap_or(u64::MAX);
            for group in group(first)..=group(last) {
                file.for_each_block(group, 8, |block| {
                    let positions = block.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
                    let mut within = positions.filter(|at| wanted.contains(at));
                    within.try_for_each(|at| writer.push(at))
                })?;
            }
        }
        partitions.sort_unstable();
        let expected = (0..answers.len() as u64).map(|p| (p, answers.len() as u64));
        if answers.is_empty() || !partitions.iter().copied().eq(expected) {
            let name = answers.first().cloned().unwrap_or_default();
            let found = format!(
                "and the answers named with it, {} in all, are not those of all partitions; name \
                 every one, once",
                answers.len()
            );
            return Err(Error::work(&name, found));
        }
        let polarity = match polarity {
            Some(SectionKind::Dropped) => Polarity::Dropped,
            _ => Polarity::Kept,
        };
        Ok((polarity, writer.finish()))
    }

    /// Prints the lines of a range that its positions select.
    fn print(
        &self,
        range: &FileRange,
        polarity: Polarity,
        positions: RecordStream,
        spill_file: &SpillFile,
        sinks: Outputs<'_>,
    ) -> Result<OutputCounts> {
        let (context, inputs) = self.open(std::slice::from_ref(range))?;
        let spans = Spans::whole(base(range), end(range, &inputs[0], &positions, spill_file)?);
        let positions = PositionSet::new(
            spans,
            vec![vec![positions]],
            spill_file,
            context.budget.work / 2,
            context.budget.workers,
        );
        let mut printer = context.printer(sinks);
        let pass = context.pass();
        let stats = print_positions(
            &pass.chunks(),
            &inputs,
            base(range),
            polarity,
            &positions,
            &mut printer,
        )?;
        printer.flush()?;
        Ok(OutputCounts { bytes: stats.bytes, written: 0 })
    }

    /// Writes the lines that start in a range and that a filter reports as present, or as absent if
    /// the job is inverted, with the folder of the job as for
    /// [`write_answer_files`](Self::write_answer_files). Without an output file the lines are only
    /// counted.
    ///
    /// # Errors
    /// If the range cannot be read, the filter leaves too little memory, or the file cannot be
    /// written.
    pub fn check_to_file(
        &self,
        range: &FileRange,
        filter: &dyn Membership,
        invert: bool,
        out: Option<(&Path, &Path)>,
    ) -> Result<CheckCounts> {
        let (context, inputs) = self.open(std::slice::from_ref(range))?;
        self.memory_beside(&[filter], &context.budget)?;
        let mut file = out.map(|(path, _)| TaskFile::new(path)).transpose()?;
        let options = CheckOptions { invert, ..CheckOptions::default() };
        let sink = file.as_mut().map(|file| file as &mut (dyn std::io::Write + Send));
        let checked = check_inputs(&context, filter, &inputs, options, sink)?;
        if let Some((mut file, (_, work))) = file.zip(out) {
            file.sync()?;
            check_there(work)?;
            file.finish_synced()?;
        }
        Ok(checked)
    }
}

/// Returns the end of the positions of a range; for a compressed one, the last position.
fn end(
    range: &FileRange,
    input: &Input,
    positions: &RecordStream,
    spill_file: &SpillFile,
) -> Result<u64> {
    let base = base(range);
    if let Some(length) = input.length() {
        return Ok(base + length);
    }
    let mut last = base;
    positions.for_each_block(spill_file, |block| {
        let positions = block.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
        last = positions.fold(last, u64::max);
        Ok(())
    })?;
    Ok(last.saturating_add(1))
}

/// Checks that the folder of the job exists.
fn check_there(work: &Path) -> Result<()> {
    match work.symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::work(work, "is gone, and its job with it; nothing more is written")),
    }
}
