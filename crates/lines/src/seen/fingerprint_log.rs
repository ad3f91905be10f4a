//! The fingerprint log: the 128-bit fingerprints of all printed lines, in a file of pages.
//!
//! The filter beside the log contains at least the same lines, so only lines that the filter
//! reports as present are looked up. Unlike those of set operations, the fingerprints have one key
//! for the life of the file. The key is stored in the file: anyone who can read it can write lines
//! that collide. docs/reference/format-other.md describes the file.
//!
//! * The **sorted pages** have most fingerprints. The page of a fingerprint follows from its bits, so
//!   a lookup reads one page, rarely two. A cache keeps the pages that were read. A page is checked when
//!   it is read.
//! * The **appended pages** have those of later saves. They are checked when the log is opened, and
//!   are in a table in memory.
//!
//! Cost: opening reads the header and the appended pages. A lookup reads one or two cache lines of the
//! table, and as many of a page in the cache. A save appends the new fingerprints. If the appended
//! pages would be more than an eighth of the sorted ones, or the table is full, it merges all into a
//! new file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;

use crate::error::{Advice, Error, ErrorKind, Result, Setting, io_text};
use crate::fingerprint::{Fingerprint, FingerprintSet, LineHasher, ahead};

use super::pages::{
    CELLS, Header, PAGE, PageWriter, STEP, SortedPages, USUAL, check, damaged, fingerprints,
    to_page,
};

/// The appended pages are at most this part of the sorted ones, or `MIN_APPENDED`.
const APPENDED_PART: u64 = 8;
const MIN_APPENDED: u64 = 64;

/// The fingerprints of all printed lines.
pub struct FingerprintLog {
    key: [u64; 2],
    sorted: SortedPages,
    /// The appended pages of complete saves, and their number of fingerprints.
    appended: (u64, u64),
    /// The fingerprints that are not in the sorted pages.
    table: FingerprintSet,
    /// The fingerprints since the last save; `None` if the next save writes a new file.
    unsaved: Option<Vec<Fingerprint>>,
    /// Maximum number of unsaved fingerprints.
    unsaved_limit: u64,
    allowance: u64,
}

impl FingerprintLog {
    /// Returns an empty log with a random key and pair number.
    ///
    /// # Errors
    /// If the system has no random bytes or no memory.
    pub fn new() -> Result<Self> {
        let word = || getrandom::u64().map_err(|_| Error::random());
        Self::with(&Header { pair: word()?, key: [word()?, word()?], ..Header::default() }, None)
    }

    /// Opens a log file. `name` is for error messages.
    ///
    /// # Errors
    /// If the file cannot be read, is not a fingerprint log, or its header or an appended page is
    /// damaged. Sorted pages are checked when they are read.
    pub fn open(file: File, name: &str) -> Result<Self> {
        let failed = |e| Error::read(name, e);
        let length = file.metadata().map_err(failed)?.len();
        let mut page = [0; PAGE];
        if length < PAGE as u64 {
            return Err(damaged(name, "it is shorter than its header"));
        }
        file.read_exact_at(&mut page, 0).map_err(failed)?;
        let header = Header::from_page(&page).map_err(|what| damaged(name, what))?;
        let pages = length / PAGE as u64 - 1;
        if header.pages > pages {
            return Err(damaged(name, "it is shorter than its header says"));
        }
        // An interrupted save leaves pages after those of the last complete one.
        let (mut appended, mut intact, mut count) = ((0, 0), 0, 0);
        for number in header.pages + 1..=pages {
            file.read_exact_at(&mut page, number * PAGE as u64).map_err(failed)?;
            let Some((more, is_last)) = check(&page, header.pair, number) else { continue };
            (intact, count) = (intact + 1, count + more as u64);
            if is_last {
                appended = (number - header.pages, count);
                // It was written after the other pages of its save.
                if intact < appended.0 {
                    return Err(damaged(name, "a page does not match its checksum"));
                }
            }
        }
        let mut log = Self::with(&header, Some((file, name)))?;
        (log.appended, log.unsaved) = (appended, Some(Vec::new()));
        Ok(log)
    }

    fn with(header: &Header, file: Option<(File, &str)>) -> Result<Self> {
        Ok(Self {
            key: header.key,
            sorted: SortedPages::new(header, file)?,
            appended: (0, 0),
            table: FingerprintSet::new(0, 0)?,
            unsaved: None,
            unsaved_limit: 0,
            allowance: 0,
        })
    }

    /// Returns the random number that identifies the log and its filter as a pair.
    #[must_use]
    pub fn pair_id(&self) -> u64 {
        self.sorted.pair
    }

    /// Returns the number of fingerprints. Those of this run may be counted twice if the file has
    /// them.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.sorted.count + self.table.len().max(self.appended.1)
    }

    /// Returns whether there are no fingerprints.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the memory limit in bytes, and loads the appended pages.
    pub(super) fn set_memory(&mut self, bytes: u64) -> Result<()> {
        self.allowance = bytes;
        // Free the old table first: both may not fit.
        self.table = FingerprintSet::new(0, 0)?;
        let rest = bytes - self.sorted.set_memory(bytes / 8 * 5)?;
        let unsaved = if self.unsaved.is_some() { rest / 5 } else { 0 };
        // While it grows, a vector takes up to three times its length.
        self.unsaved_limit = unsaved / 3 / Fingerprint::BYTES as u64;
        self.table = FingerprintSet::new(rest - unsaved, self.appended.1)?;
        let mut page = [0; PAGE];
        for at in 0..self.appended.0 {
            let number = self.sorted.pages + 1 + at;
            self.sorted.read(number, &mut page)?;
            for fingerprint in fingerprints(&page) {
                if self.table.entry(fingerprint, ())?.is_err() {
                    let problem = "its last lines have more fingerprints than fit the memory limit";
                    return Err(Error::new(ErrorKind::Memory, problem)
                        .of(&self.sorted.name)
                        .advise(Advice::Raise(Setting::MemoryLimit)));
                }
            }
        }
        Ok(())
    }

    /// Announces that as many new fingerprints may be added, so that the table grows at once.
    pub(super) fn expect(&mut self, more: u64) {
        self.table.expect(self.table.len().saturating_add(more));
    }

    /// Returns the hasher of the fingerprints.
    pub(crate) fn hasher(&self) -> LineHasher {
        // The filter has a hash of its own.
        LineHasher::with_keys([self.key[0], self.key[1], 0])
    }

    /// In a loop that inserts fingerprints in order, at index `at`: prefetches what a later one reads.
    #[inline]
    pub(crate) fn prefetch_ahead(&self, fingerprints: &[Fingerprint], at: usize) {
        let ahead = ahead(fingerprints, at);
        self.table.prefetch(ahead);
        self.sorted.prefetch(ahead);
    }

    /// Adds a line. Returns whether it is new: it was not printed before, in this run or an earlier
    /// one, or is `certain` to be new. `None` if the table is full and must be saved first.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        fingerprint: Fingerprint,
        certain: bool,
    ) -> Result<Option<bool>> {
        if !certain
            && self.sorted.pages > 0
            && (self.table.len() == 0 || !self.table.contains(fingerprint))
            && self.sorted.contains(fingerprint)?
        {
            return Ok(Some(false));
        }
        let Ok((fresh, ())) = self.table.entry(fingerprint, ())? else {
            self.unsaved = None;
            return Ok(None);
        };
        if fresh && let Some(unsaved) = &mut self.unsaved {
            unsaved.push(fingerprint);
            let pages = self.appended.0 + unsaved.len().div_ceil(CELLS) as u64;
            let most = (self.sorted.pages / APPENDED_PART).max(MIN_APPENDED);
            if pages > most || unsaved.len() as u64 > self.unsaved_limit {
                self.unsaved = None;
            }
        }
        Ok(Some(fresh || certain))
    }

    /// Returns the contents of an empty log file of the same pair.
    #[must_use]
    pub fn empty_file(&self) -> Vec<u8> {
        self.header(0, 0, 0).to_page().to_vec()
    }

    fn header(&self, count: u64, parts: u64, pages: u64) -> Header {
        Header { pair: self.sorted.pair, key: self.key, count, parts, pages }
    }

    /// Returns whether the next save appends to the file. Otherwise it writes a new one.
    #[must_use]
    pub fn appends(&self) -> bool {
        self.unsaved.is_some()
    }

    /// Saves by appending the new fingerprints to the log's file, and syncs it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_to(&mut self, file: &File) -> io::Result<()> {
        let Some(unsaved) = &mut self.unsaved else { return Ok(()) };
        let mut number = self.sorted.pages + 1 + self.appended.0;
        // The rest of an interrupted save must not follow new pages.
        if file.metadata()?.len() != number * PAGE as u64 {
            file.set_len(number * PAGE as u64)?;
            file.sync_all()?;
        }
        let pages = unsaved.chunks(CELLS);
        let mut left = pages.len();
        let mut bytes = Vec::with_capacity(STEP * PAGE);
        for page in pages {
            left -= 1;
            if left == 0 || bytes.len() == STEP * PAGE {
                file.write_all_at(&bytes, number * PAGE as u64)?;
                number += (bytes.len() / PAGE) as u64;
                bytes.clear();
            }
            // The last page tells that the others are complete.
            if left == 0 && number > self.sorted.pages + 1 + self.appended.0 {
                file.sync_data()?;
            }
            let at = number + (bytes.len() / PAGE) as u64;
            bytes.extend(to_page(page, 1, self.sorted.pair, at, left == 0));
        }
        file.write_all_at(&bytes, number * PAGE as u64)?;
        file.sync_data()?;
        self.appended.0 += unsaved.len().div_ceil(CELLS) as u64;
        self.appended.1 += unsaved.len() as u64;
        unsaved.clear();
        Ok(())
    }

    /// Writes all fingerprints as a new file.
    ///
    /// # Errors
    /// If the old file cannot be read, or the new one cannot be written.
    pub fn write_to(&self, mut out: impl Write + Seek) -> io::Result<()> {
        let most = self.sorted.count + self.table.len();
        let mut new = PageWriter::new(&mut out, self.sorted.pair, most.div_ceil(USUAL))?;
        let mut table = self.table.sorted().peekable();
        self.sorted.each(|old| {
            while let Some(fingerprint) =
                table.next_if(|fingerprint| fingerprint.order() < old.order())
            {
                new.push(fingerprint)?;
            }
            // After a crash, or with an older filter, a line may be in both.
            let _ = table.next_if_eq(&old);
            new.push(old)
        })?;
        table.try_for_each(|fingerprint| new.push(fingerprint))?;
        let (count, parts, pages) = new.finish()?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&self.header(count, parts, pages).to_page())?;
        out.flush()
    }

    /// Switches to the file that [`write_to`](Self::write_to) has written, and empties the table.
    ///
    /// # Errors
    /// If memory for a new table is refused, or the file cannot be read.
    pub fn reload(&mut self, file: File, name: &str) -> Result<()> {
        let allowance = self.allowance;
        // Free the memory first: both may not fit.
        self.table = FingerprintSet::new(0, 0)?;
        self.sorted.set_memory(0)?;
        *self = Self::open(file, name)?;
        self.set_memory(allowance)
    }

    /// Moves all fingerprints to a temporary file. The next save writes a new file.
    ///
    /// # Errors
    /// If a file cannot be read or written, or memory for a new table is refused.
    pub fn move_to(&mut self, mut file: File) -> Result<()> {
        let name = std::mem::take(&mut self.sorted.name);
        self.write_to(&mut file)
            .map_err(|e| Error::new(ErrorKind::File, io_text(&e)).caused_by(e))?;
        self.reload(file, &name)?;
        self.unsaved = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::seen::pages::{COUNT_AT, add_sum};
    use petal_testkit::corrupt::{bit_flips, truncations};
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    /// Saves as the program does.
    fn save(log: &mut FingerprintLog, path: &Path) {
        if log.appends() {
            return log.append_to(&File::options().write(true).open(path).unwrap()).unwrap();
        }
        let new = path.with_extension("new");
        log.write_to(File::create(&new).unwrap()).unwrap();
        std::fs::rename(new, path).unwrap();
        log.reload(File::open(path).unwrap(), "x").unwrap();
    }

    fn open_with(path: &Path, memory: u64) -> Result<FingerprintLog> {
        let mut log = FingerprintLog::open(File::open(path).unwrap(), "x")?;
        log.set_memory(memory)?;
        Ok(log)
    }

    fn open(path: &Path) -> Result<FingerprintLog> {
        open_with(path, 1 << 20)
    }

    /// A new log in a file.
    fn new_log(path: &Path, memory: u64) -> FingerprintLog {
        let log = FingerprintLog::new().unwrap();
        std::fs::write(path, log.empty_file()).unwrap();
        let mut log = FingerprintLog::open(File::open(path).unwrap(), "x").unwrap();
        log.set_memory(memory).unwrap();
        log
    }

    /// Adds a line, and saves if the table is full. Returns whether it was new.
    fn add(log: &mut FingerprintLog, path: &Path, line: u64, certain: bool) -> bool {
        let fingerprint = log.hasher().fingerprint(&line.to_le_bytes());
        loop {
            match log.insert(fingerprint, certain).unwrap() {
                Some(new) => return new,
                None => save(log, path),
            }
        }
    }

    fn has(log: &mut FingerprintLog, line: u64) -> Result<bool> {
        let fingerprint = log.hasher().fingerprint(&line.to_le_bytes());
        Ok(log.table.contains(fingerprint) || log.sorted.contains(fingerprint)?)
    }

    /// With memory for all fingerprints, for a part of the pages, and for two pages.
    #[test]
    fn log_contains_only_inserted_fingerprints_across_files() {
        for memory in [4 << 20, 200 << 10, 20 << 10] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("f.exact");
            let mut log = new_log(&path, memory);
            assert!(log.is_empty());
            for round in 0..4 {
                for i in (round..20_000).step_by(5) {
                    let certain = i % 2 == 0;
                    assert!(add(&mut log, &path, i, certain), "{round} {i}");
                    assert!(!add(&mut log, &path, i, false), "{round} {i}");
                }
                if round == 2 {
                    // Put again although the file has it.
                    assert!(add(&mut log, &path, 0, true));
                }
                save(&mut log, &path);
                // The log goes on with its file, or with that of an earlier run.
                if round % 2 == 0 {
                    log = open_with(&path, memory).unwrap();
                }
                for i in (0..20_000).filter(|i| i % 5 <= round) {
                    assert!(!add(&mut log, &path, i, false), "{round} {i}");
                }
                for i in (0..20_000).filter(|i| i % 5 > round) {
                    assert!(!has(&mut log, i).unwrap(), "{round} {i}");
                }
                let extra = log.len() - 4000 * (round + 1);
                assert!(extra <= u64::from(round >= 2), "{extra}");
            }
            log.unsaved = None;
            save(&mut log, &path);
            // Merged, a fingerprint is in the file once.
            assert_eq!(log.len(), 16_000);
            for i in (4..20_000).step_by(5) {
                assert!(add(&mut log, &path, i, false), "{i}");
            }
        }
    }

    /// The last page of some parts overflows; fingerprints close to each other fill several pages.
    #[test]
    fn fingerprints_that_overflow_pages_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = new_log(&path, 1 << 20);
        let near = |i: u64| Fingerprint { high: i + 1, low: u64::MAX - i % 2 };
        for i in 0..1000 {
            assert_eq!(log.insert(near(i), false).unwrap(), Some(true));
        }
        log.unsaved = None;
        save(&mut log, &path);
        assert!(log.sorted.pages > log.sorted.parts && log.table.len() == 0);
        for i in 0..1000 {
            assert_eq!(log.insert(near(i), false).unwrap(), Some(false), "{i}");
            assert_eq!(log.insert(near(1000 + i), false).unwrap(), Some(true), "{i}");
        }
    }

    /// docs/reference/format-other.md, with its example of a fingerprint.
    #[test]
    fn file_matches_the_format_document() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let header = Header { pair: 0x1122, key, ..Header::default() };
        let mut log = FingerprintLog::with(&header, None).unwrap();
        log.set_memory(1 << 20).unwrap();
        let fingerprint = log.hasher().fingerprint(b"petal");
        assert_eq!(log.insert(fingerprint, false).unwrap(), Some(true));
        let mut file = io::Cursor::new(Vec::new());
        log.write_to(&mut file).unwrap();
        let page = |at: usize, bytes: &[u8], word: u64, number: u64| {
            let mut page = vec![0; at];
            page.extend(bytes);
            page.resize(4080, 0);
            page.extend(word.to_le_bytes());
            page.extend(xxh3_64_with_seed(&page, 0x1122 ^ number).to_le_bytes());
            page
        };
        let mut header = b"\x89PSEEN\r\n\x05\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0".to_vec();
        header.extend(0..16);
        header.extend([1u64, 1, 1].map(u64::to_le_bytes).concat());
        let fingerprint = [
            0x5d, 0x3f, 0x6b, 0x37, 0xcc, 0x92, 0xb2, 0x93, 0xb2, 0x2e, 0xab, 0x69, 0x0e, 0x68,
            0xa3, 0x57,
        ];
        // ⌊0x57a3680e69ab2eb2 · 63 / 2^64⌋ = 21
        let sorted = page(21 * 64, &fingerprint, 1, 1);
        assert!(file.get_ref()[..] == [page(0, &header, 0, 0), sorted].concat());
        // An appended page.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, file.get_ref()).unwrap();
        let mut log = open(&path).unwrap();
        let other = log.hasher().fingerprint(b"other");
        log.insert(other, true).unwrap();
        save(&mut log, &path);
        let line = (u128::from(other.low) * 63) >> 64;
        let expected = page(line as usize * 64, &other.to_bytes(), 1 + (1 << 16), 2);
        assert!(std::fs::read(&path).unwrap() == [file.into_inner(), expected].concat());
    }

    #[test]
    fn damaged_header_or_sorted_page_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = new_log(&path, 1 << 20);
        for line in 0..3 {
            add(&mut log, &path, line, false);
        }
        log.unsaved = None;
        save(&mut log, &path);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), 2 * PAGE);
        let flips = bit_flips(&whole).step_by(97).map(|(_, bytes)| bytes);
        let cuts = truncations(&whole).step_by(61).map(<[u8]>::to_vec);
        for bytes in flips.chain(cuts) {
            std::fs::write(&path, bytes).unwrap();
            let found = open(&path).and_then(|mut log| has(&mut log, 1));
            assert!(found.err().unwrap().to_string().starts_with("x: "));
        }
        // The pages of two logs, and of two places, cannot be exchanged.
        let pages = [to_page(&[], 1, log.sorted.pair, 2, false), to_page(&[], 1, 7, 1, false)];
        for page in pages {
            std::fs::write(&path, [&whole[..PAGE], &page].concat()).unwrap();
            assert!(has(&mut open(&path).unwrap(), 1).is_err());
        }
        // Numbers that no file could have, with the right checksum.
        for (count, parts, pages) in
            [(u64::MAX, 1, 1), (1, 2, 1), (1, 0, 1), (0, 1, 0), (1, 1, u64::MAX), (253, 1, 1)]
        {
            let page = log.header(count, parts, pages).to_page();
            std::fs::write(&path, [&page, &whole[PAGE..]].concat()).unwrap();
            assert!(open(&path).is_err(), "{count} {parts} {pages}");
        }
        // A wrong order is not merged into a new file.
        let page = |number| {
            let list = [Fingerprint { high: 1, low: 3 - number }];
            to_page(&list, 1, log.sorted.pair, number, false)
        };
        std::fs::write(&path, [log.header(2, 1, 2).to_page(), page(1), page(2)].concat()).unwrap();
        let error = open(&path).unwrap().write_to(io::Cursor::new(Vec::new())).unwrap_err();
        assert!(error.to_string().contains("not in order"), "{error}");
    }

    /// Its number of fingerprints says that it has free cells.
    #[test]
    fn search_in_page_without_free_cells_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let log = new_log(&path, 1 << 20);
        let mut page = to_page(&[], 1, log.sorted.pair, 1, false);
        page[..COUNT_AT].fill(1);
        add_sum(&mut page, log.sorted.pair, 1);
        std::fs::write(&path, [log.header(1, 1, 1).to_page(), page].concat()).unwrap();
        assert!(!has(&mut open(&path).unwrap(), 1).unwrap());
    }

    /// Cut anywhere, the file has all complete saves, and goes on with the next one.
    #[test]
    fn interrupted_save_is_cut_and_complete_saves_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = new_log(&path, 1 << 20);
        // Lines below 10 in sorted pages, below 100 in one page, below 700 in three.
        let mut lengths = Vec::new();
        for (from, to) in [(0, 10), (10, 100), (100, 700)] {
            (from..to).for_each(|line| assert!(add(&mut log, &path, line, false)));
            if from == 0 {
                log.unsaved = None;
            }
            save(&mut log, &path);
            lengths.push((std::fs::metadata(&path).unwrap().len() as usize, to));
        }
        assert_eq!(lengths, [(2 * PAGE, 10), (3 * PAGE, 100), (6 * PAGE, 700)]);
        let whole = std::fs::read(&path).unwrap();
        for length in (2 * PAGE..6 * PAGE).step_by(PAGE / 4).chain([6 * PAGE - 1, 6 * PAGE]) {
            // What was not written yet may be missing or zero.
            for zeros in [0, 6 * PAGE - length, 7 * PAGE - length] {
                std::fs::write(&path, [&whole[..length], &vec![0; zeros]].concat()).unwrap();
                let kept = lengths.iter().rfind(|(end, _)| *end <= length).unwrap().1;
                let mut log = open(&path).unwrap();
                assert_eq!(log.len(), kept, "{length} {zeros}");
                assert!((0..700).all(|line| has(&mut log, line).unwrap() == (line < kept)));
                // Fewer pages than the interrupted save had.
                assert!(add(&mut log, &path, 9999, false));
                save(&mut log, &path);
                let mut log = open(&path).unwrap();
                assert_eq!(log.len(), kept + 1);
                assert!(has(&mut log, 9999).unwrap() && !has(&mut log, kept).unwrap());
            }
        }
        // Without the page that completes the save, the others do not count.
        let mut torn = whole.clone();
        torn[5 * PAGE] ^= 1;
        std::fs::write(&path, torn).unwrap();
        assert_eq!(open(&path).unwrap().len(), 100);
        // Before a complete save, a page was complete.
        for number in 2..5 {
            let mut damaged = whole.clone();
            damaged[number * PAGE + 100] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            let error = open(&path).err().unwrap().to_string();
            assert!(error.starts_with("x: a page does not match"), "{error}");
        }
    }

    #[test]
    fn many_appended_pages_are_merged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = new_log(&path, 1 << 20);
        let mut merges = 0;
        for line in 0..1000 {
            assert!(add(&mut log, &path, line, true));
            merges += u64::from(!log.appends());
            save(&mut log, &path);
            let pages = std::fs::metadata(&path).unwrap().len() / PAGE as u64;
            assert!(pages <= 1 + log.sorted.pages + MIN_APPENDED);
        }
        assert_eq!(merges, 1000 / (MIN_APPENDED + 1));
        let mut log = open(&path).unwrap();
        assert_eq!(log.len(), 1000);
        assert!((0..1000).all(|line| has(&mut log, line).unwrap()));
    }

    #[test]
    fn full_table_is_reported() {
        let mut log = FingerprintLog::new().unwrap();
        log.set_memory(128 << 10).unwrap();
        let hasher = log.hasher();
        let fingerprint = |line: &[u8]| hasher.fingerprint(line);
        let mut count = 0u64;
        while let Some(new) = log.insert(fingerprint(&count.to_le_bytes()), false).unwrap() {
            assert!(new);
            count += 1;
        }
        assert!(count > 500, "{count}");
        assert_eq!(log.insert(fingerprint(&0u64.to_le_bytes()), false).unwrap(), Some(false));
    }

    #[test]
    fn too_little_memory_for_the_appended_pages_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = new_log(&path, 3 << 20);
        (0..10_000).for_each(|line| assert!(add(&mut log, &path, line, true)));
        save(&mut log, &path);
        assert!(log.appends() && log.sorted.pages == 0);
        let error = open_with(&path, 128 << 10).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Memory);
        assert_eq!(open(&path).unwrap().len(), 10_000);
    }
}
