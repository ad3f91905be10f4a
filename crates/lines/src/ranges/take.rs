//! The last step: the lines of the answer, range by range.

use std::path::{Path, PathBuf};

use petal::Membership;

use super::{OFFSET_BITS, Range, Task, base, check_order};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::filters::{Check, Checked, check_inputs};
use crate::input::{Input, Temp};
use crate::marks::{Listed, Marker, Marks, Spans};
use crate::print::{Printer, Sinks, print_marked};
use crate::sections::{Facts, Kind, Sections, TaskFile};
use crate::spill::{Scratchpad, Spill, Stream};

/// What was taken from a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of the range that were read.
    pub bytes: u64,
    /// Bytes of lines that were written, if to a file.
    pub written: u64,
}

impl Task<'_> {
    /// Gives the lines of the answer that start in a range to a sink, in order, and to the other
    /// sink those that are not in it. `answers` are those of all partitions.
    ///
    /// Cost: reads those parts of the range in which there is something to give, and of each
    /// answer the section with the range; 8 bytes a line of that go to a temporary file if they
    /// have no room in a quarter of the memory.
    ///
    /// # Errors
    /// If the range cannot be read or a sink not written; if an answer is missing, damaged or of
    /// another job.
    pub fn take(&self, range: &Range, answers: &[PathBuf], sinks: Sinks<'_>) -> Result<Taken> {
        let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
        let (listed, mut marks) = self.marks(&[range], answers, &pad)?;
        self.print(range, listed, marks.pop().unwrap_or_default(), &pad, sinks)
    }

    /// [`take`](Self::take) of ranges that follow each other, each to a file of its own, which
    /// appears when all of it is there. The answers are read once for all of them. `work` is the
    /// folder of the job: if that is gone when a file is there, so is the job, and the file is not
    /// to appear where another job may write by now.
    ///
    /// # Errors
    /// As `take`, or if a file cannot be written.
    pub fn take_to(
        &self,
        takes: &[(Range, PathBuf)],
        answers: &[PathBuf],
        work: &Path,
    ) -> Result<Taken> {
        let mut all = Taken::default();
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        for takes in takes.chunks(Spill::most_streams(budget.work / 4) as usize) {
            let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
            let ranges: Vec<_> = takes.iter().map(|(range, _)| range).collect();
            let (listed, marks) = self.marks(&ranges, answers, &pad)?;
            for ((range, out), marks) in takes.iter().zip(marks) {
                let mut file = TaskFile::new(out)?;
                let taken = self.print(range, listed, marks, &pad, Sinks::to(&mut file))?;
                file.sync()?;
                check_there(work)?;
                all.written += file.finish_for_good()?;
                all.bytes += taken.bytes;
            }
        }
        Ok(all)
    }

    /// What all answers list of ranges that follow each other, a stream for each, and what that
    /// stands for.
    fn marks(
        &self,
        ranges: &[&Range],
        answers: &[PathBuf],
        pad: &Scratchpad,
    ) -> Result<(Listed, Vec<Stream>)> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let Some((first, last)) = ranges.first().zip(ranges.last()) else {
            return Ok((Listed::Kept, Vec::new()));
        };
        check_order(ranges.iter().copied())?;
        let wanted = base(first)..=base(last) | ((1 << OFFSET_BITS) - 1);
        let spans = Spans::even(base(first), 1 << OFFSET_BITS, ranges.len() as u64);
        let mut marker = Marker::new(spans, pad, budget.work / 4);
        let mut listed = None;
        let mut partitions = Vec::new();
        for path in answers {
            self.check_cancelled()?;
            let (file, kind) = Sections::open(path, &[Kind::Kept, Kind::Dropped], self.job)?;
            let Facts { first: partition, last: of, cut, .. } = file.facts();
            if *listed.get_or_insert(kind) != kind {
                return Err(Error::work(path, "is of another verb than the answer before it"));
            }
            partitions.push((partition, of));
            let group = |range: &Range| range.number.checked_div(cut).unwrap_or(u64::MAX);
            for group in group(first)..=group(last) {
                file.for_each_block(group, 8, |block| {
                    let positions = block.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
                    let mut within = positions.filter(|at| wanted.contains(at));
                    within.try_for_each(|at| marker.mark(at))
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
        let listed = match listed {
            Some(Kind::Dropped) => Listed::Dropped,
            _ => Listed::Kept,
        };
        Ok((listed, marker.finish()))
    }

    /// Prints the lines of a range that its marks stand for.
    fn print(
        &self,
        range: &Range,
        listed: Listed,
        marks: Stream,
        pad: &Scratchpad,
        sinks: Sinks<'_>,
    ) -> Result<Taken> {
        let (budget, inputs) = self.open(std::slice::from_ref(range))?;
        let spans = Spans::whole(base(range), end(range, &inputs[0], &marks, pad)?);
        let marks = Marks::new(spans, vec![vec![marks]], pad, budget.work / 2, budget.workers);
        let mut printer = Printer::new(sinks, self.settings.delimiter, budget.chunk);
        let pass = self.settings.pass(budget);
        let seen =
            print_marked(&pass.chunks(), &inputs, base(range), listed, &marks, &mut printer)?;
        printer.flush()?;
        Ok(Taken { bytes: seen.bytes, written: 0 })
    }

    /// Writes the lines that start in a range and that a filter of any job may hold, or, inverted,
    /// those that it certainly does not, with the folder of the job as for
    /// [`take_to`](Self::take_to); without a file they are only counted.
    ///
    /// # Errors
    /// If the range cannot be read, the filter leaves too little memory, or the file cannot be
    /// written.
    pub fn check_to(
        &self,
        range: &Range,
        filter: &dyn Membership,
        invert: bool,
        out: Option<(&Path, &Path)>,
    ) -> Result<Checked> {
        let (budget, inputs) = self.open(std::slice::from_ref(range))?;
        self.room_beside(&[filter], &budget)?;
        let mut file = out.map(|(path, _)| TaskFile::new(path)).transpose()?;
        let asked = Check { invert, ..Check::default() };
        let sink = file.as_mut().map(|file| file as &mut (dyn std::io::Write + Send));
        let checked = check_inputs(self.settings, budget, filter, &inputs, asked, sink)?;
        if let Some((mut file, (_, work))) = file.zip(out) {
            file.sync()?;
            check_there(work)?;
            file.finish_for_good()?;
        }
        Ok(checked)
    }
}

/// Where the positions of a range end: of a packed one, as far as any was marked.
fn end(range: &Range, input: &Input, marks: &Stream, pad: &Scratchpad) -> Result<u64> {
    let base = base(range);
    if let Some(length) = input.length() {
        return Ok(base + length);
    }
    let mut last = base;
    marks.for_each_block(pad, |block| {
        let positions = block.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
        last = positions.fold(last, u64::max);
        Ok(())
    })?;
    Ok(last.saturating_add(1))
}

/// An error if the folder of the job is gone.
fn check_there(work: &Path) -> Result<()> {
    match work.symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::work(work, "is gone, and its job with it; nothing more is written")),
    }
}
