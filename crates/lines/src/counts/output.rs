//! Printing lines with their counts.

use super::sorter::Sorter;
use crate::error::{Error, Result};
use crate::output::{KeyLine, OutputStart, Printer};
use crate::progress::Progress;

/// Prints lines with their counts, or sorts them first.
pub(super) struct CountOutput<'a> {
    printer: CountPrinter<'a>,
    sorter: Option<Sorter>,
    /// Leave out lines that occur less often.
    pub(super) min_count: u64,
}

impl<'a> CountOutput<'a> {
    /// Begins the output. A count is separated from a record of CSV as its fields are, and by a tab
    /// from a line. A header gets a name for the counts. `keys`: how keys are printed; `None`: the records are.
    pub(super) fn new(
        mut printer: Printer<'a>,
        sorter: Option<Sorter>,
        min_count: u64,
        mut start: OutputStart,
        keys: Option<KeyLine>,
    ) -> Result<Self> {
        let of_keys = keys.as_ref().and_then(|keys| Some(keys.dialect?.separator));
        let separator = start.separator.or(of_keys).unwrap_or(b'\t');
        if let Some(header) = &mut start.header {
            header.splice(..0, b"count".iter().copied().chain([separator]));
        }
        printer.print_start(&start)?;
        let printer = CountPrinter { printer, separator, keys, key: vec![] };
        Ok(Self { printer, sorter, min_count })
    }

    /// Adds a line that occurs `count` times.
    pub(super) fn add(&mut self, count: u64, line: &[u8]) -> Result<()> {
        if count < self.min_count {
            return Ok(());
        }
        match &mut self.sorter {
            Some(sorter) => sorter.add(count, line),
            None => self.printer.print(count, line),
        }
    }

    /// Prints the sorted lines, if lines are sorted. Returns the number of lines printed.
    pub(super) fn finish(self, progress: &dyn Progress) -> Result<u64> {
        let Self { mut printer, sorter, .. } = self;
        if let Some(sorter) = sorter {
            sorter.finish(progress, |count, line| printer.print(count, line))?;
        }
        printer.printer.flush()?;
        Ok(printer.printer.lines)
    }
}

/// Digits of the largest count.
const MAX_DIGITS: usize = 20;

/// Prints lines with their counts.
struct CountPrinter<'a> {
    printer: Printer<'a>,
    /// The byte between a count and its line.
    separator: u8,
    keys: Option<KeyLine>,
    key: Vec<u8>,
}

impl CountPrinter<'_> {
    fn print(&mut self, count: u64, line: &[u8]) -> Result<()> {
        let line = match &mut self.keys {
            None => line,
            Some(keys) => {
                self.key.clear();
                keys.append(line, &mut self.key).map_err(Error::write)?;
                &self.key
            }
        };
        // The digits from the last to the first, before the separator.
        let mut text = [self.separator; MAX_DIGITS + 1];
        let (mut start, mut rest) = (MAX_DIGITS, count);
        loop {
            start -= 1;
            text[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.printer.before_line(&text[start..])?;
        self.printer.line(line)
    }
}
