//! Files of sections: the results that tasks pass to each other, possibly on other machines.
//!
//! All numbers are little-endian, 64 bits unless noted.
//!
//! | part | bytes | contents |
//! |---|---|---|
//! | head | 16 | `petalrng`, version (32 bits), kind (32 bits) |
//! | sections | any | one after the other |
//! | index | 24 each | position, length and checksum of each section |
//! | tail | 80 | [`FileSummary`] (7 numbers), number of sections, checksum of head and tail so far, `petalend` |
//!
//! The checksum of a section is the XXH3-64 of its number, position and length, followed by its
//! bytes. A reader therefore verifies only the head, the tail, one index entry and one section.
//! Damage is detected at the end of the section: discard results from its bytes after an error.
//!
//! A file appears complete or not at all, so a task may run twice, even at the same time.
//!
//! Cost: each byte is written, read and hashed once.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, Result};
use crate::files::atomic_file::AtomicFile;

/// Maximum number of ranges of an input.
pub(crate) const MAX_RANGES: u64 = 1 << 24;
/// First and last range of an empty list of ranges.
pub(crate) const NO_RANGES: (u64, u64) = (1, 0);

const BEGIN: &[u8; 8] = b"petalrng";
const END: &[u8; 8] = b"petalend";
/// Increased when the format changes.
const VERSION: u32 = 3;
const HEAD: u64 = 16;
const ENTRY: u64 = 24;
const TAIL: usize = 80;
/// Records read at a time from a section.
const BLOCK_RECORDS: usize = 4096;

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// Records of the first input by partition, then filter keys.
    First = 1,
    /// Records of another input by partition, then filter keys.
    Other = 2,
    /// Positions of kept lines, by groups of ranges.
    Kept = 3,
    /// Positions of dropped lines, by groups of ranges.
    Dropped = 4,
    /// Hashes of lines of the first input within their shard, by shard.
    FirstKeys = 5,
    /// Hashes of lines of another input within their shard, by shard.
    OtherKeys = 6,
    /// A bit for each hash of a shard, for lines of the first input.
    FirstBits = 7,
    /// A bit for each hash of a shard, for lines of another input.
    OtherBits = 8,
}

/// The numbers in the tail of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileSummary {
    /// Number of the job.
    pub(crate) job: u64,
    /// First and last range, or partition and number of partitions.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Lines and bytes read to make the file.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// Number of entries.
    pub(crate) count: u64,
    /// Number of partitions, of shards, or of ranges per group, depending on the kind of file.
    pub(crate) cut: u64,
}

impl FileSummary {
    fn words(self) -> [u64; 7] {
        let Self { job, first, last, lines, bytes, count, cut } = self;
        [job, first, last, lines, bytes, count, cut]
    }
}

/// A file that a task writes.
pub(crate) struct TaskFile {
    path: PathBuf,
    file: BufWriter<AtomicFile>,
}

impl TaskFile {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let file = AtomicFile::create(path).map_err(|e| Error::work_io(path, "made", &e))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::with_capacity(1 << 18, file) })
    }

    /// Syncs the file to disk, so that [`finish_synced`](Self::finish_synced) is fast.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let done = self.file.flush().and_then(|()| self.file.get_mut().file().sync_all());
        done.map_err(|e| Error::work_io(&self.path, "written", &e))
    }

    /// Publishes the file without syncing it, and returns its length. For files that the job reads:
    /// their checksums detect lost bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        self.place(AtomicFile::finish_unsynced)
    }

    /// Publishes a file that is kept after the job: syncs it first.
    pub(crate) fn finish_synced(self) -> Result<u64> {
        self.place(|file| file.finish().map(drop))
    }

    fn place(self, finish: impl FnOnce(AtomicFile) -> io::Result<()>) -> Result<u64> {
        let failed = |e: &io::Error| Error::work_io(&self.path, "written", e);
        let mut file = self.file.into_inner().map_err(|e| failed(e.error()))?;
        let bytes = file.file().metadata().map_err(|e| failed(&e))?.len();
        finish(file).map_err(|e| failed(&e))?;
        Ok(bytes)
    }
}

impl io::Write for TaskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file of sections.
pub(crate) struct SectionWriter {
    out: TaskFile,
    head: [u8; HEAD as usize],
    at: u64,
    index: Vec<[u64; 3]>,
}

impl SectionWriter {
    pub(crate) fn new(path: &Path, kind: SectionKind) -> Result<Self> {
        let mut head = [0; HEAD as usize];
        head[..8].copy_from_slice(BEGIN);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..].copy_from_slice(&(kind as u32).to_le_bytes());
        let mut writer = Self { out: TaskFile::new(path)?, head, at: 0, index: Vec::new() };
        writer.write(&head)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|e| Error::work_io(&self.out.path, "written", &e))
    }

    /// Appends a section of `length` bytes, which `fill` writes in pieces.
    pub(crate) fn section(
        &mut self,
        length: u64,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let begin = self.at;
        let mut sum = section_hasher(self.index.len() as u64, begin, length);
        fill(&mut |bytes| {
            sum.update(bytes);
            self.write(bytes)
        })?;
        debug_assert_eq!(self.at - begin, length);
        self.index.push([begin, length, sum.digest()]);
        Ok(())
    }

    /// Publishes the file and returns its length.
    pub(crate) fn finish(mut self, summary: FileSummary) -> Result<u64> {
        let index = std::mem::take(&mut self.index);
        for entry in &index {
            self.write(entry.map(u64::to_le_bytes).as_flattened())?;
        }
        let mut tail = Vec::with_capacity(TAIL);
        let words = summary.words().into_iter().chain([index.len() as u64]);
        words.for_each(|word| tail.extend(word.to_le_bytes()));
        tail.extend(checksum(&self.head, &tail).to_le_bytes());
        tail.extend(END);
        self.write(&tail)?;
        self.out.finish()
    }
}

/// The hasher of a section before its first byte.
fn section_hasher(number: u64, begin: u64, length: u64) -> Xxh3 {
    let mut sum = Xxh3::new();
    sum.update([number, begin, length].map(u64::to_le_bytes).as_flattened());
    sum
}

fn checksum(head: &[u8], tail: &[u8]) -> u64 {
    xxh3_64(&[head, tail].concat())
}

/// An open file of sections whose head and tail have been verified.
pub(crate) struct SectionFile {
    path: Arc<Path>,
    file: File,
    index: u64,
    count: u64,
    summary: FileSummary,
}

impl SectionFile {
    /// Opens a file of this job and verifies its kind.
    pub(crate) fn open(
        path: &Path,
        kinds: &[SectionKind],
        job: u64,
    ) -> Result<(Self, SectionKind)> {
        let reading = |e| Error::work_io(path, "read", &e);
        let file = File::open(path).map_err(reading)?;
        let length = file.metadata().map_err(reading)?.len();
        let Some(tail_at) = length.checked_sub(TAIL as u64).filter(|at| *at >= HEAD) else {
            return Err(damaged(path, "it is too short"));
        };
        let (mut head, mut tail) = ([0; HEAD as usize], [0; TAIL]);
        file.read_exact_at(&mut head, 0).map_err(reading)?;
        file.read_exact_at(&mut tail, tail_at).map_err(reading)?;
        let word = |at: usize| -> u64 {
            tail[at * 8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        if head[..8] != *BEGIN || tail[72..] != *END {
            return Err(damaged(path, "it does not begin or end as such a file does"));
        }
        let number =
            |at: usize| head[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if number(8) != VERSION {
            return Err(damaged(path, "it was written by another version of petal"));
        }
        if word(8) != checksum(&head, &tail[..64]) {
            return Err(damaged(path, "its checksum is wrong"));
        }
        let Some(&kind) = kinds.iter().find(|kind| **kind as u32 == number(12)) else {
            return Err(Error::work(
                path,
                "holds something else than this function reads; check the order of the arguments",
            ));
        };
        if word(0) != job {
            return Err(Error::work(
                path,
                "is of another job, with other keys; empty the work directory and start again",
            ));
        }
        let count = word(7);
        let index = count.checked_mul(ENTRY).and_then(|bytes| tail_at.checked_sub(bytes));
        let Some(index) = index.filter(|at| *at >= HEAD) else {
            return Err(damaged(path, "it is shorter than its index says"));
        };
        let summary = FileSummary {
            job: word(0),
            first: word(1),
            last: word(2),
            lines: word(3),
            bytes: word(4),
            count: word(5),
            cut: word(6),
        };
        // Ranges are in order or empty; sums of these numbers do not overflow.
        let ranges = (summary.first, summary.last);
        let sound = match kind {
            SectionKind::First | SectionKind::Other => {
                (ranges == NO_RANGES || ranges.0 <= ranges.1 && ranges.1 < MAX_RANGES)
                    && summary.cut.checked_add(1) == Some(count)
            }
            SectionKind::Kept | SectionKind::Dropped => true,
            SectionKind::FirstKeys
            | SectionKind::OtherKeys
            | SectionKind::FirstBits
            | SectionKind::OtherBits => true,
        };
        if !sound {
            return Err(damaged(path, "it tells of ranges or of sections that cannot be"));
        }
        Ok((Self { path: path.into(), file, index, count, summary }, kind))
    }

    pub(crate) fn summary(&self) -> FileSummary {
        self.summary
    }

    /// Returns a section of records of `record` bytes.
    pub(crate) fn section(&self, number: u64, record: u64) -> Result<Section> {
        if number >= self.count {
            let found = format!(
                "has {} sections, expected one with the number {number}; is it of this job?",
                self.count
            );
            return Err(Error::work(&self.path, found));
        }
        let mut entry = [0; ENTRY as usize];
        let at = self.index + number * ENTRY;
        self.file
            .read_exact_at(&mut entry, at)
            .map_err(|e| Error::work_io(&self.path, "read", &e))?;
        let word = |at: usize| -> u64 {
            entry[at * 8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let (begin, bytes, sum) = (word(0), word(1), word(2));
        let fits = begin >= HEAD && begin.checked_add(bytes).is_some_and(|end| end <= self.index);
        if !fits || !bytes.is_multiple_of(record) {
            return Err(damaged(&self.path, "its index is wrong"));
        }
        // An empty section is never read, so verify its checksum here.
        if bytes == 0 && section_hasher(number, begin, 0).digest() != sum {
            return Err(damaged(&self.path, "a section's checksum is wrong"));
        }
        Ok(Section { path: Arc::clone(&self.path), number, begin, bytes, sum })
    }

    /// Reads a section of records of `record` bytes in blocks, without opening the file again.
    pub(crate) fn for_each_block(
        &self,
        number: u64,
        record: u64,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let section = self.section(number, record)?;
        let file = self.file.try_clone().map_err(|e| Error::work_io(&self.path, "read", &e))?;
        let (mut reader, mut block) = (section.reader_of(file), Vec::new());
        while reader.next(BLOCK_RECORDS * record as usize, &mut block)? {
            each(&block)?;
        }
        Ok(())
    }
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::work(path, format!("is damaged: {what}; remove it and run the job again"))
}

/// A section of a file, which is opened when the section is read.
#[derive(Clone)]
pub(crate) struct Section {
    path: Arc<Path>,
    number: u64,
    begin: u64,
    bytes: u64,
    sum: u64,
}

impl Section {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn reader(&self) -> Result<SectionReader<'_>> {
        let file = File::open(&self.path).map_err(|e| Error::work_io(&self.path, "read", &e))?;
        Ok(self.reader_of(file))
    }

    fn reader_of(&self, file: File) -> SectionReader<'_> {
        let sum = section_hasher(self.number, self.begin, self.bytes);
        SectionReader { section: self, file, done: 0, sum }
    }
}

/// Reads a section sequentially.
pub(crate) struct SectionReader<'a> {
    section: &'a Section,
    file: File,
    done: u64,
    sum: Xxh3,
}

impl SectionReader<'_> {
    /// Reads the next bytes, at most `max`. `false` at the end.
    pub(crate) fn next(&mut self, max: usize, buffer: &mut Vec<u8>) -> Result<bool> {
        let Section { path, begin, bytes, sum, .. } = self.section;
        let length = (bytes - self.done).min(max as u64) as usize;
        buffer.resize(length, 0);
        let at = begin + self.done;
        self.file.read_exact_at(buffer, at).map_err(|e| Error::work_io(path, "read", &e))?;
        self.sum.update(buffer);
        self.done += length as u64;
        if self.done == *bytes && self.sum.digest() != *sum {
            return Err(damaged(path, "a section's checksum is wrong"));
        }
        Ok(length > 0)
    }
}
