//! The pages of a fingerprint log. Each has a checksum, bound to the log and its place.
//!
//! A page is a hash table of [`CELLS`] cells, probed from the beginning of a cache line on, and is queried as it is in
//! the file. Sorted pages ascend: the page of a fingerprint follows from its bits, and what it has no room for is in
//! the next one. docs/reference/format-other.md describes the bytes.
//!
//! Cost: a lookup reads one page, rarely two, and one or two cache lines of it once it is in memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

use petal::embed::{Words, prefetch};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;

const MAGIC: [u8; 8] = *b"\x89PSEEN\r\n";
const VERSION: u64 = 5;
/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Cells of a page, of one fingerprint each; those that are not used are zero. The last cache line of a page has none.
pub(super) const CELLS: usize = PAGE / Fingerprint::BYTES - 4;
/// Cells of a cache line. A fingerprint is in the first free cell from the beginning of a line on.
const LINE: usize = 4;
/// Where a page has its number of fingerprints.
pub(super) const COUNT_AT: usize = PAGE - 16;
/// Where a page has its checksum, of all bytes before.
const SUM_AT: usize = PAGE - 8;
/// Added to the count of the last page of a save.
const LAST_OF_SAVE: u64 = 1 << 16;
/// Fingerprints per page that a new file is made for. With more, more pages overflow into the next one.
pub(super) const USUAL: u64 = 200;
/// Pages read or written at a time in sequential access.
pub(super) const STEP: usize = 64;

/// The error of a log that is damaged; `problem` is a clause.
pub(super) fn damaged(name: &str, problem: &str) -> Error {
    Error::new(ErrorKind::File, problem)
        .of(name)
        .advise("restore it")
        .advise("remove it and its filter to start over")
}

/// The first page of a log.
#[derive(Default)]
pub(super) struct Header {
    pub(super) pair: u64,
    pub(super) key: [u64; 2],
    /// Fingerprints in the sorted pages.
    pub(super) count: u64,
    /// Parts of the range of fingerprints, one for each page.
    pub(super) parts: u64,
    /// Sorted pages: those of the parts, and those that the last ones overflow into.
    pub(super) pages: u64,
}

impl Header {
    pub(super) fn to_page(&self) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[..8].copy_from_slice(&MAGIC);
        let Self { pair, key: [first, second], count, parts, pages } = *self;
        let words = [VERSION, pair, first, second, count, parts, pages];
        for (slot, word) in page[8..].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        add_sum(&mut page, self.pair, 0);
        page
    }

    pub(super) fn from_page(page: &[u8; PAGE]) -> Result<Self, &'static str> {
        if page[..8] != MAGIC {
            return Err("it is no file of fingerprints");
        }
        if word(page, 8) != VERSION {
            return Err("its version is not known to this program");
        }
        let [pair, first, second, count, parts, pages] =
            std::array::from_fn(|i| word(page, 16 + 8 * i));
        if sum(page, pair, 0) != word(page, SUM_AT) {
            return Err("its header does not match its checksum");
        }
        if count > pages.saturating_mul(CELLS as u64)
            || parts > pages
            || (parts == 0) != (pages == 0)
        {
            return Err("its header has numbers that do not fit together");
        }
        Ok(Self { pair, key: [first, second], count, parts, pages })
    }
}

fn word(page: &[u8; PAGE], at: usize) -> u64 {
    page[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn sum(page: &[u8; PAGE], pair: u64, number: u64) -> u64 {
    xxh3_64_with_seed(&page[..SUM_AT], pair ^ number)
}

pub(super) fn add_sum(page: &mut [u8; PAGE], pair: u64, number: u64) {
    let sum = sum(page, pair, number);
    page[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
}

/// Returns a page of at most `CELLS` fingerprints. Appended pages are made as if they were the only part.
pub(super) fn to_page(
    list: &[Fingerprint],
    parts: u64,
    pair: u64,
    number: u64,
    last_of_save: bool,
) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    let cells = &mut page.as_chunks_mut().0[..CELLS];
    for fingerprint in list {
        let mut at = locate(*fingerprint, parts).1;
        while cells[at] != [0; Fingerprint::BYTES] {
            at = next(at);
        }
        cells[at] = fingerprint.to_bytes();
    }
    let count = list.len() as u64 + if last_of_save { LAST_OF_SAVE } else { 0 };
    page[COUNT_AT..SUM_AT].copy_from_slice(&count.to_le_bytes());
    add_sum(&mut page, pair, number);
    page
}

/// Returns the number of fingerprints of a page, and whether it is the last of a save; `None` if the
/// page is damaged.
pub(super) fn check(page: &[u8; PAGE], pair: u64, number: u64) -> Option<(usize, bool)> {
    let (count, last) = (word(page, COUNT_AT) % LAST_OF_SAVE, word(page, COUNT_AT) / LAST_OF_SAVE);
    let intact = sum(page, pair, number) == word(page, SUM_AT);
    (intact && count <= CELLS as u64 && last <= 1).then_some((count as usize, last == 1))
}

/// Returns the fingerprints of a page in no particular order.
pub(super) fn fingerprints(page: &[u8; PAGE]) -> impl Iterator<Item = Fingerprint> + '_ {
    let cells = page.as_chunks().0[..CELLS].iter().map(Fingerprint::from_bytes);
    cells.filter(|fingerprint| *fingerprint != Fingerprint::default())
}

/// Returns the cell after a cell.
#[inline]
fn next(cell: usize) -> usize {
    if cell + 1 == CELLS { 0 } else { cell + 1 }
}

/// Ascending fingerprints in the pages of a file. The page of each follows from its high bits; what a
/// page has no room for is in the next one.
pub(super) struct SortedPages {
    file: Option<File>,
    pub(super) name: String,
    pub(super) pair: u64,
    pub(super) parts: u64,
    pub(super) pages: u64,
    pub(super) count: u64,
    /// Pages that were read.
    cache: Words,
    /// Twice the number of the page in each place of the cache (0 if there is none), and 1 if the page
    /// is full. Page i, counted from 0, is in place i modulo their number.
    cached: Vec<u64>,
}

/// Words of a page.
const WORDS: usize = PAGE / 8;

impl SortedPages {
    pub(super) fn new(header: &Header, file: Option<(File, &str)>) -> Result<Self> {
        let Header { pair, parts, pages, count, .. } = *header;
        let (file, name) = file.map_or((None, ""), |(file, name)| (Some(file), name));
        let (cache, cached, name) = (Words::zeroed(0)?, Vec::new(), name.to_owned());
        Ok(Self { file, name, pair, parts, pages, count, cache, cached })
    }

    /// Sets the memory limit of the cache in bytes. Returns what the cache takes.
    pub(super) fn set_memory(&mut self, bytes: u64) -> Result<u64> {
        let each = (PAGE + size_of::<u64>()) as u64;
        let places = self.pages.min((bytes / each).max(1));
        (self.cache, self.cached) = (Words::zeroed(0)?, Vec::new());
        self.cache = Words::zeroed(places * WORDS as u64)?;
        self.cached.resize(places as usize, 0);
        Ok((places * each).min(bytes))
    }

    /// Returns the place of a page in the cache.
    #[inline]
    fn place(&self, page: u64) -> usize {
        let places = self.cached.len() as u64;
        (if page < places { page } else { page % places }) as usize
    }

    /// Returns the cells of a place in the cache.
    #[inline]
    fn cells(&self, place: usize) -> &[[u64; 2]] {
        self.cache.get()[place * WORDS..][..2 * CELLS].as_chunks().0
    }

    fn damaged(&self) -> Error {
        damaged(&self.name, "a page does not match its checksum")
    }

    /// Reads and checks a page. Returns its number of fingerprints, and whether it is the last of a save.
    pub(super) fn read(&self, number: u64, page: &mut [u8; PAGE]) -> Result<(usize, bool)> {
        let Some(file) = &self.file else { return Ok((0, false)) };
        file.read_exact_at(page, number * PAGE as u64).map_err(|e| Error::read(&self.name, e))?;
        check(page, self.pair, number).ok_or_else(|| self.damaged())
    }

    /// Calls a function with each fingerprint.
    pub(super) fn each(
        &self,
        mut each: impl FnMut(Fingerprint) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (mut buffer, mut sorted) = (vec![[0; PAGE]; STEP], Vec::with_capacity(CELLS));
        let mut last = 0;
        for first in (0..self.pages).step_by(STEP) {
            let pages = &mut buffer[..(self.pages - first).min(STEP as u64) as usize];
            file.read_exact_at(pages.as_flattened_mut(), (first + 1) * PAGE as u64)?;
            for (page, number) in pages.iter().zip(first + 1..) {
                check(page, self.pair, number).ok_or_else(|| io::Error::other(self.damaged()))?;
                sorted.clear();
                sorted.extend(fingerprints(page));
                sorted.sort_unstable_by_key(|fingerprint: &Fingerprint| fingerprint.order());
                for &fingerprint in &sorted {
                    // A wrong order would be saved with right checksums.
                    if fingerprint.order() <= std::mem::replace(&mut last, fingerprint.order()) {
                        let error = damaged(&self.name, "its fingerprints are not in order");
                        return Err(io::Error::other(error));
                    }
                    each(fingerprint)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a page into its place in the cache.
    #[cold]
    fn load(&mut self, page: u64) -> Result<()> {
        let (place, mut bytes) = (self.place(page), [0; PAGE]);
        let (count, _) = self.read(page + 1, &mut bytes)?;
        let words = &mut self.cache.get_mut()[place * WORDS..][..WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        self.cached[place] = (page + 1) * 2 + u64::from(count == CELLS);
        Ok(())
    }

    #[inline]
    pub(super) fn prefetch(&self, fingerprints: &[Fingerprint]) {
        if self.pages == 0 {
            return;
        }
        for fingerprint in fingerprints {
            let (page, cell) = locate(*fingerprint, self.parts);
            let place = self.place(page);
            prefetch(&self.cached, place);
            prefetch(self.cells(place), cell);
        }
    }

    /// Looks up a fingerprint.
    #[inline]
    pub(super) fn contains(&mut self, fingerprint: Fingerprint) -> Result<bool> {
        let (mut page, first) = locate(fingerprint, self.parts);
        while page < self.pages {
            let place = self.place(page);
            if self.cached[place] / 2 != page + 1 {
                self.load(page)?;
            }
            let (cells, mut at) = (self.cells(place), first);
            while cells[at] != [0; 2] {
                if cells[at] == [fingerprint.high, fingerprint.low] {
                    return Ok(true);
                }
                at = next(at);
                if at == first {
                    break;
                }
            }
            if self.cached[place].is_multiple_of(2) {
                break;
            }
            page += 1;
        }
        Ok(false)
    }
}

/// Returns the first page that may have a fingerprint, counted from 0, and its first cell there.
#[inline]
fn locate(fingerprint: Fingerprint, parts: u64) -> (u64, usize) {
    let product = u128::from(fingerprint.low) * u128::from(parts);
    let line = (u128::from(product as u64) * (CELLS / LINE) as u128) >> 64;
    ((product >> 64) as u64, line as usize * LINE)
}

/// Sorted pages being written, after a page for the header, which is written last.
pub(super) struct PageWriter<'a, W> {
    out: &'a mut W,
    pair: u64,
    parts: u64,
    /// Complete pages that are not written yet.
    buffer: Vec<u8>,
    /// The fingerprints of the next page.
    page: Vec<Fingerprint>,
    pages: u64,
    count: u64,
}

impl<'a, W: Write> PageWriter<'a, W> {
    pub(super) fn new(out: &'a mut W, pair: u64, parts: u64) -> io::Result<Self> {
        out.write_all(&[0; PAGE])?;
        let (buffer, page) = (Vec::with_capacity(STEP * PAGE), Vec::with_capacity(CELLS));
        Ok(Self { out, pair, parts, buffer, page, pages: 0, count: 0 })
    }

    pub(super) fn push(&mut self, fingerprint: Fingerprint) -> io::Result<()> {
        let (first, _) = locate(fingerprint, self.parts);
        while self.pages < first || self.page.len() == CELLS {
            self.end_page()?;
        }
        self.page.push(fingerprint);
        self.count += 1;
        Ok(())
    }

    fn end_page(&mut self) -> io::Result<()> {
        self.pages += 1;
        self.buffer.extend(to_page(&self.page, self.parts, self.pair, self.pages, false));
        self.page.clear();
        if self.buffer.len() == STEP * PAGE { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the numbers of fingerprints, parts and pages.
    pub(super) fn finish(mut self) -> io::Result<(u64, u64, u64)> {
        while self.pages < self.parts || !self.page.is_empty() {
            self.end_page()?;
        }
        self.write()?;
        Ok((self.count, self.parts, self.pages))
    }
}
