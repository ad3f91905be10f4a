//! The last step: the lines of the answer, range by range.

use std::path::{Path, PathBuf};

use petal::Membership;

use super::{OFFSET_BITS, Range, Task, base};
use crate::error::{Error, Result};
use crate::filters::{Check, Checked, check_inputs};
use crate::input::{Input, Temp};
use crate::marks::{Listed, Marks, Spans};
use crate::print::{Printer, Sinks, print_marked};
use crate::sections::{Facts, Kind, Sections, TaskFile};
use crate::spill::{Scratchpad, Stream};

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
    /// answer the section with the range.
    ///
    /// # Errors
    /// If the range cannot be read or a sink not written; if an answer is missing, damaged or of
    /// another job.
    pub fn take(&self, range: &Range, answers: &[PathBuf], sinks: Sinks<'_>) -> Result<Taken> {
        let (budget, inputs) = self.open(std::slice::from_ref(range))?;
        let mut listed = None;
        let mut partitions = Vec::new();
        let mut sections = Vec::new();
        for path in answers {
            let (file, kind) = Sections::open(path, &[Kind::Kept, Kind::Dropped], self.job)?;
            let Facts { first, last, cut, .. } = file.facts();
            if *listed.get_or_insert(kind) != kind {
                return Err(Error::work(path, "is of another verb than the answer before it"));
            }
            partitions.push((first, last));
            let group = range.number.checked_div(cut).unwrap_or(u64::MAX);
            sections.push(Stream::of_sections(vec![file.section(group, 8)?]));
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
        let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
        let spans = Spans::whole(base(range), self.end(range, &inputs[0], &sections, &pad)?);
        let marks = sections.into_iter().map(|stream| vec![stream]).collect();
        let marks = Marks::new(spans, marks, &pad, budget.work, budget.workers);
        let mut printer = Printer::new(sinks, self.settings.delimiter, budget.chunk);
        let pass = self.settings.pass(budget);
        let seen =
            print_marked(&pass.chunks(), &inputs, base(range), listed, &marks, &mut printer)?;
        printer.flush()?;
        Ok(Taken { bytes: seen.bytes, written: 0 })
    }

    /// [`take`](Self::take) to a file of its own, which appears under its name when all of it is
    /// there.
    ///
    /// # Errors
    /// As `take`, or if the file cannot be written.
    pub fn take_to(&self, range: &Range, answers: &[PathBuf], out: &Path) -> Result<Taken> {
        let mut file = TaskFile::new(out)?;
        let taken = self.take(range, answers, Sinks::to(&mut file))?;
        Ok(Taken { written: file.finish_for_good()?, ..taken })
    }

    /// Writes the lines that start in a range and that a filter of any job may hold, or, inverted,
    /// those that it certainly does not; without a file they are only counted.
    ///
    /// # Errors
    /// If the range cannot be read, the filter leaves too little memory, or the file cannot be
    /// written.
    pub fn check_to(
        &self,
        range: &Range,
        filter: &dyn Membership,
        invert: bool,
        out: Option<&Path>,
    ) -> Result<Checked> {
        let (budget, inputs) = self.open(std::slice::from_ref(range))?;
        self.room_beside(&[filter], &budget)?;
        let mut file = out.map(TaskFile::new).transpose()?;
        let asked = Check { invert, ..Check::default() };
        let sink = file.as_mut().map(|file| file as &mut (dyn std::io::Write + Send));
        let checked = check_inputs(self.settings, budget, filter, &inputs, asked, sink)?;
        file.map(TaskFile::finish_for_good).transpose()?;
        Ok(checked)
    }

    /// Where the positions of a range end: of a packed one, as far as any was marked.
    fn end(&self, range: &Range, input: &Input, marks: &[Stream], pad: &Scratchpad) -> Result<u64> {
        let base = base(range);
        if let Some(length) = input.length() {
            return Ok(base + length);
        }
        let within = |at: &u64| at >> OFFSET_BITS == range.number;
        let mut last = base;
        for stream in marks {
            stream.for_each_block(pad, |block| {
                let positions = block.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
                last = positions.filter(within).fold(last, u64::max);
                Ok(())
            })?;
        }
        Ok(last.saturating_add(1))
    }
}
