//! Reading of blocks of inputs, for samples: the hashes of the lines that start in a block.
//!
//! A line belongs to the block in which it starts, whatever its length, so that every line is in
//! exactly one block.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustix::io::{ReadWriteFlags, preadv2};

use crate::error::{Error, Result};
use crate::files::read_at;
use crate::fingerprint::LineHasher;
use crate::input::{Input, Open};
use crate::keys::{Alike, KeySpec, Spare};
use crate::progress::Progress;
use crate::scan::RecordEnds;

/// Bytes that are read beyond a block to complete its last line, at first.
const BEYOND: u64 = 1 << 10;
/// Maximum length of a sampled line; the rest of a longer one is ignored.
pub(super) const LONGEST: usize = 1 << 20;
/// Lines that are found at a time.
const SOME: usize = 4096;

/// A line in a sample.
pub(super) struct SampledLine {
    /// The hash of its key.
    pub(super) hash: u64,
    /// Its length with its delimiter.
    pub(super) bytes: u64,
}

/// Reads blocks and hashes their lines.
pub(super) struct BlockReader<'a> {
    hasher: &'a LineHasher,
    pub(super) delimiter: u8,
    /// How the keys of the current input's lines are made.
    spec: Arc<KeySpec>,
    /// The key of a line, and memory for making it.
    key: Vec<u8>,
    spare: Spare,
    buffer: Vec<u8>,
    ends: Vec<usize>,
    /// Keys so far that differ from all others.
    distinct: u64,
    /// Blocks read, and those that were not in the page cache.
    blocks: u64,
    cold: u64,
    pub(super) progress: &'a dyn Progress,
}

impl<'a> BlockReader<'a> {
    pub(super) fn new(hasher: &'a LineHasher, delimiter: u8, progress: &'a dyn Progress) -> Self {
        Self {
            hasher,
            delimiter,
            spec: Arc::default(),
            key: vec![],
            spare: Spare::default(),
            buffer: vec![],
            ends: vec![],
            distinct: 0,
            blocks: 0,
            cold: 0,
            progress,
        }
    }

    /// Returns the share of the blocks that were not in the page cache.
    pub(super) fn cold(&self) -> f64 {
        self.cold as f64 / self.blocks.max(1) as f64
    }

    pub(super) fn check_cancelled(&self) -> Result<()> {
        if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Sets the input whose lines are hashed.
    pub(super) fn set_input(&mut self, input: &Input) {
        self.spec = Arc::clone(input.keys());
    }

    /// Returns the hash of a line's key. A line without a key counts as itself: the pass over all
    /// lines reports it.
    pub(super) fn hash(&mut self, line: &[u8]) -> u64 {
        if self.spec.is_line() {
            return self.hasher.filter_hash(line);
        }
        let key = &mut self.key;
        key.clear();
        match self.spec.append_kind(line, &mut self.spare, key) {
            Ok(kind) if self.spec.records.alike(kind) == Alike::Distinct => {
                self.distinct += 1;
                self.hasher.filter_hash(&self.distinct.to_le_bytes())
            }
            Ok(_) => self.hasher.filter_hash(key),
            Err(_) => self.hasher.filter_hash(line),
        }
    }

    /// Calls `each` with the lines that start in a block of an input, until it breaks. In a block of
    /// CSV the quotes show where the first record begins; if there are none, it is the next line.
    pub(super) fn read(
        &mut self,
        input: &Input,
        open: &Open,
        [start, size]: [u64; 2],
        mut each: impl FnMut(SampledLine) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check_cancelled()?;
        self.set_input(input);
        let Open::File { file, range, whole } = open else { return Ok(()) };
        let at = range.start + start;
        let end = at.saturating_add(size).min(range.end);
        if at >= end {
            return Ok(());
        }
        self.blocks += 1;
        self.cold += u64::from(!file.as_file().is_some_and(|file| is_in_memory(file, at)));
        let at_start = at == whole.start;
        // The byte before tells whether a line starts here.
        let from = if at_start { at } else { at - 1 };
        let limit = (end - from) as usize;
        let kind = RecordEnds::of(input, self.delimiter);
        let last = end.saturating_add(LONGEST as u64).min(whole.end);
        let mut to = end.saturating_add(BEYOND).min(last);
        let read_to = |to: u64, buffer: &mut Vec<u8>| {
            let filled = buffer.len();
            buffer.resize((to - from) as usize, 0);
            read_at(file, input.name(), &mut buffer[filled..], from + filled as u64)
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        read_to(to, &mut buffer)?;
        let after = |end: usize| end + 1;
        let first = if at_start { Some(0) } else { kind.first_from_anywhere(&buffer).map(after) };
        let mut start = first.unwrap_or(limit);
        let mut ends = std::mem::take(&mut self.ends);
        'lines: while start < limit {
            ends.clear();
            let base = start;
            kind.find(&buffer[base..], SOME, &mut ends);
            if ends.is_empty() && to < last {
                to = from.saturating_add(buffer.len() as u64 * 8).min(last);
                read_to(to, &mut buffer)?;
                continue;
            }
            if ends.is_empty() {
                ends.push(buffer.len() - base);
            }
            for end in &ends {
                let line = &buffer[start..base + end];
                let bytes = line.len() as u64 + 1;
                let hash = self.hash(line);
                if each(SampledLine { hash, bytes }).is_break() {
                    break 'lines;
                }
                start = base + end + 1;
                if start >= limit {
                    break;
                }
            }
        }
        (self.buffer, self.ends) = (buffer, ends);
        Ok(())
    }
}

/// Returns whether a byte of a file is in the page cache; false if that is unknown.
fn is_in_memory(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Source;
    use crate::keys::{Columns, Fields};

    /// Every record is in the block of its first byte, although half of the line ends are in quotes.
    #[test]
    fn each_csv_record_is_in_one_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        let records: Vec<_> = (0..2000)
            .map(|row| {
                let comment = "a line\n".repeat(row % 3) + &"long ".repeat(row % 97);
                format!("{row},\"{comment}\",\"say \"\"yes\"\"\"")
            })
            .collect();
        let text = records.join("\n") + "\n";
        std::fs::write(&path, &text).unwrap();
        let columns = Columns::parse_list("1").unwrap();
        let columns = Columns { columns, separator: Some(b','), ..Columns::default() };
        let keys = Arc::new(KeySpec { fields: Fields::Columns(columns), ..KeySpec::default() });
        let inputs = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
        let input = &inputs.into_iter().next().unwrap().with_keys(&keys);
        let hasher = LineHasher::random().unwrap();
        let mut reader = BlockReader::new(&hasher, b'\n', &());
        let open = input.open_sample(&()).unwrap();
        for size in [1 << 10, 4 << 10, 1 << 20] {
            let mut found = Vec::new();
            for start in (0..text.len() as u64).step_by(size as usize) {
                let each = |line: SampledLine| {
                    found.push((line.hash, line.bytes));
                    ControlFlow::Continue(())
                };
                reader.read(input, &open, [start, size], each).unwrap();
            }
            let hashed = |(row, record): (usize, &String)| {
                (hasher.filter_hash(row.to_string().as_bytes()), record.len() as u64 + 1)
            };
            let expected: Vec<_> = records.iter().enumerate().map(hashed).collect();
            let differ =
                expected.iter().zip(&found).position(|(expected, found)| expected != found);
            assert_eq!((differ, found.len()), (None, expected.len()), "{size}");
        }
    }

    /// Every line is in the block of its first byte, and is read completely.
    #[test]
    fn each_line_is_in_one_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let lengths = [0, 5, 0, 300, 1, 2000, 9000, 7, 0, 0, 255, 256];
        for ends in [true, false] {
            let mut text = Vec::new();
            let mut lines = Vec::new();
            for (nth, &length) in lengths.iter().cycle().take(24).enumerate() {
                let line = vec![b'a' + nth as u8 % 26; length];
                lines.push(line.clone());
                text.extend([&line[..], b"\n"].concat());
            }
            if !ends {
                text.pop();
            }
            std::fs::write(&path, &text).unwrap();
            let input = &Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap()[0];
            let hasher = LineHasher::random().unwrap();
            let mut reader = BlockReader::new(&hasher, b'\n', &());
            let open = input.open_sample(&()).unwrap();
            for size in [13, 64, 256, 1 << 20] {
                let mut found = Vec::new();
                for start in (0..text.len() as u64).step_by(size as usize) {
                    let block = [start, size];
                    let each = |line: SampledLine| {
                        found.push(line.hash);
                        ControlFlow::Continue(())
                    };
                    reader.read(input, &open, block, each).unwrap();
                }
                let hashed = |line: &Vec<u8>| hasher.filter_hash(line);
                assert_eq!(found, lines.iter().map(hashed).collect::<Vec<_>>(), "{size} {ends}");
            }
        }
    }
}
