//! Sorting lines by their counts, within a memory limit.
//!
//! Lines are collected in memory. When it is full, or has twice the number of lines to print, they are
//! sorted, and those beyond that number are dropped. From then on, lines that are not more frequent
//! than the last one kept are left out. If this frees too little memory, the sorted lines are written
//! to a temporary file as a run. At the end the runs are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::temp::{FileUsage, Spool, TempDir};

/// Bytes of a run that are buffered while it is written.
const BLOCK: usize = 256 << 10;
/// Least bytes of a run that are buffered while it is read.
const MIN_BUFFER: u64 = 4 << 10;
const MAX_BUFFER: u64 = 256 << 10;
/// Lines that are collected at least before they are sorted because of their number.
const MIN_LINES: usize = 1 << 10;

/// A line, its count, and its number in the order of first appearances.
#[derive(Clone, Copy)]
struct Entry {
    count: u64,
    number: u64,
    start: usize,
    length: usize,
}

impl Entry {
    /// Ascending in the order of the output.
    fn rank(&self) -> (Reverse<u64>, u64) {
        (Reverse(self.count), self.number)
    }
}

/// Sorts lines by their counts.
pub(super) struct Sorter {
    /// Number of lines to print.
    top: u64,
    /// Lines that do not occur more often come after all lines to print.
    floor: u64,
    memory: u64,
    temp: TempDir,
    text: Vec<u8>,
    entries: Vec<Entry>,
    /// Lines added.
    added: u64,
    runs: Runs,
}

impl Sorter {
    /// Sorts within `memory` bytes, and keeps the first `top` lines.
    pub(super) fn new(top: u64, memory: u64, temp: &TempDir) -> Self {
        Self {
            top,
            floor: if top == 0 { u64::MAX } else { 0 },
            memory,
            temp: temp.clone(),
            text: vec![],
            entries: vec![],
            added: 0,
            runs: Runs::default(),
        }
    }

    /// Adds a line. Of lines with equal counts, those added earlier come first.
    pub(super) fn add(&mut self, count: u64, line: &[u8]) -> Result<()> {
        if count <= self.floor {
            return Ok(());
        }
        if self.entries.len() >= self.top().saturating_mul(2).max(MIN_LINES) {
            self.sort();
        }
        let bytes_of = |text: usize, entries: usize| (text + entries * size_of::<Entry>()) as u64;
        // Vectors may take twice the bytes that they hold, and dropping lines copies the others.
        if bytes_of(self.text.len() + line.len(), self.entries.len() + 1) > self.memory / 4
            && !self.entries.is_empty()
        {
            self.sort();
            if bytes_of(self.text.len() + line.len(), self.entries.len()) > self.memory / 8 {
                self.write_run()?;
            }
        }
        let refused = |_| Error::alloc(line.len() as u64);
        self.text.try_reserve(line.len()).map_err(refused)?;
        let (number, start, length) = (self.added, self.text.len(), line.len());
        self.entries.push(Entry { count, number, start, length });
        self.text.extend_from_slice(line);
        self.added += 1;
        Ok(())
    }

    fn top(&self) -> usize {
        usize::try_from(self.top).unwrap_or(usize::MAX)
    }

    /// Sorts the lines in memory, and drops those that are not printed.
    fn sort(&mut self) {
        self.entries.sort_unstable_by_key(Entry::rank);
        let top = self.top();
        if self.entries.len() > top {
            self.entries.truncate(top);
            let mut text = Vec::with_capacity(self.entries.iter().map(|entry| entry.length).sum());
            for entry in &mut self.entries {
                let line = entry.start..entry.start + entry.length;
                entry.start = text.len();
                text.extend_from_slice(&self.text[line]);
            }
            self.text = text;
            // Of equally frequent lines, those added earlier come first.
            self.floor = self.entries.last().map_or(self.floor, |last| last.count.max(self.floor));
        }
    }

    /// Writes the sorted lines to a run.
    fn write_run(&mut self) -> Result<()> {
        let mut run = RunWriter::new(&mut self.runs, &self.temp)?;
        for entry in self.entries.drain(..) {
            run.push(&entry, &self.text[entry.start..entry.start + entry.length])?;
        }
        self.text.clear();
        run.finish()
    }

    /// Passes the lines to `print` in order.
    pub(super) fn finish(
        mut self,
        progress: &dyn Progress,
        mut print: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.sort();
        if self.runs.ranges.is_empty() {
            let line = |entry: &Entry| &self.text[entry.start..entry.start + entry.length];
            return self.entries.iter().try_for_each(|entry| print(entry.count, line(entry)));
        }
        if !self.entries.is_empty() {
            self.write_run()?;
        }
        (self.text, self.entries) = (vec![], vec![]);
        progress.phase("merging", None);
        let max = (self.memory / 2 / MIN_BUFFER).max(2) as usize;
        let mut runs = self.runs.finish();
        while runs.ranges.len() > max {
            let mut merged = Runs::default();
            for group in runs.ranges.chunks(max) {
                let mut run = RunWriter::new(&mut merged, &self.temp)?;
                let reading = (&runs.file, group);
                merge(reading, self.memory, self.top, &self.temp, progress, |entry, line| {
                    run.push(entry, line)
                })?;
                run.finish()?;
            }
            runs = merged.finish();
        }
        let reading = (&runs.file, &runs.ranges[..]);
        merge(reading, self.memory, self.top, &self.temp, progress, |entry, line| {
            print(entry.count, line)
        })
    }
}

/// Sorted runs in a temporary file.
#[derive(Default)]
struct Runs {
    spool: Option<Spool>,
    length: u64,
    ranges: Vec<Range<u64>>,
}

impl Runs {
    /// Returns the runs for reading. There is at least one.
    fn finish(self) -> WrittenRuns {
        let (file, usage) = match self.spool.map(Spool::finish) {
            Some((file, _, usage)) => (Some(file), Some(usage)),
            None => (None, None),
        };
        WrittenRuns { file, ranges: self.ranges, _usage: usage }
    }
}

struct WrittenRuns {
    file: Option<File>,
    ranges: Vec<Range<u64>>,
    _usage: Option<FileUsage>,
}

/// Writes one run.
struct RunWriter<'a> {
    runs: &'a mut Runs,
    start: u64,
    block: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    fn new(runs: &'a mut Runs, temp: &TempDir) -> Result<Self> {
        if runs.spool.is_none() {
            runs.spool = Some(Spool::of_sorted_lines(temp)?);
        }
        let start = runs.length;
        Ok(Self { runs, start, block: vec![] })
    }

    fn push(&mut self, entry: &Entry, line: &[u8]) -> Result<()> {
        for word in [entry.count, entry.number, line.len() as u64] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(line);
        if self.block.len() >= BLOCK { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.runs.length += self.block.len() as u64;
        if let Some(spool) = &mut self.runs.spool {
            spool.append(&self.block)?;
        }
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        self.runs.ranges.push(self.start..self.runs.length);
        Ok(())
    }
}

/// Merges runs of a file, and passes the first `top` lines to `each` in order.
fn merge(
    (file, ranges): (&Option<File>, &[Range<u64>]),
    memory: u64,
    top: u64,
    temp: &TempDir,
    progress: &dyn Progress,
    mut each: impl FnMut(&Entry, &[u8]) -> Result<()>,
) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let failed = |error| temp.error("reading sorted lines", error);
    let buffer = (memory / 2 / ranges.len().max(1) as u64).clamp(MIN_BUFFER, MAX_BUFFER);
    let reader = |range: &Range<u64>| {
        let range = RangeReader { file, at: range.start, end: range.end };
        BufReader::with_capacity(buffer as usize, range)
    };
    let mut readers: Vec<_> = ranges.iter().map(reader).collect();
    let mut next = BinaryHeap::new();
    for (run, reader) in readers.iter_mut().enumerate() {
        next.extend(read_entry(reader).map_err(failed)?.map(|entry| Reverse(Next { entry, run })));
    }
    let mut line = Vec::new();
    for number in 0..top {
        let Some(Reverse(Next { entry, run })) = next.pop() else { break };
        if number % 1024 == 0 && progress.cancelled() {
            return Err(Error::cancelled());
        }
        line.clear();
        line.try_reserve(entry.length).map_err(|_| Error::alloc(entry.length as u64))?;
        line.resize(entry.length, 0);
        readers[run].read_exact(&mut line).map_err(failed)?;
        each(&entry, &line)?;
        let following = read_entry(&mut readers[run]).map_err(failed)?;
        next.extend(following.map(|entry| Reverse(Next { entry, run })));
    }
    Ok(())
}

/// The next line of a run.
struct Next {
    entry: Entry,
    run: usize,
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.entry.rank() == other.entry.rank()
    }
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.entry.rank().cmp(&other.entry.rank())
    }
}

/// Reads the start of the next line's record; `None` at the end of the run.
fn read_entry(reader: &mut BufReader<RangeReader<'_>>) -> io::Result<Option<Entry>> {
    if io::BufRead::fill_buf(reader)?.is_empty() {
        return Ok(None);
    }
    let mut words = [[0; 8]; 3];
    words.iter_mut().try_for_each(|word| reader.read_exact(word))?;
    let [count, number, length] = words.map(u64::from_le_bytes);
    let length = usize::try_from(length).map_err(io::Error::other)?;
    Ok(Some(Entry { count, number, start: 0, length }))
}

/// Reads a range of a file.
struct RangeReader<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let max = (self.end - self.at).min(buffer.len() as u64) as usize;
        let got = self.file.read_at(&mut buffer[..max], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn lines_are_sorted_in_any_memory() {
        let dir = tempfile::tempdir().unwrap();
        let temp = TempDir::new(dir.path());
        let mut rng = Rng::new(3);
        let lines: Vec<_> = (0..3000)
            .map(|number| {
                (1 + rng.below(40) as u64, format!("{number}{}", "x".repeat(rng.below(50))))
            })
            .collect();
        let mut expected = lines.clone();
        expected.sort_by_key(|(count, _)| Reverse(*count));
        // With 64 bytes each line is a run, and runs are merged in several rounds.
        for memory in [64, 5000, 100_000, 1 << 30] {
            for top in [0, 1, 7, 1000, u64::MAX] {
                let mut sorter = Sorter::new(top, memory, &temp);
                for (count, line) in &lines {
                    sorter.add(*count, line.as_bytes()).unwrap();
                }
                let mut found = Vec::new();
                let print = |count, line: &[u8]| {
                    found.push((count, String::from_utf8(line.to_vec()).unwrap()));
                    Ok(())
                };
                sorter.finish(&(), print).unwrap();
                let max = usize::try_from(top).unwrap().min(expected.len());
                assert!(found == expected[..max], "{memory} {top}");
            }
        }
    }
}
