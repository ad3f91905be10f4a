//! The fingerprint log: the 128-bit fingerprints of all printed lines, in a sorted file and in a table.
//!
//! The filter beside the log contains at least the same lines, so only lines that the filter
//! reports as present are looked up. Unlike those of set operations, the fingerprints have one key
//! for the life of the file. The key is stored in the file: anyone who can read it can write lines
//! that collide. docs/reference/format.md describes the file.
//!
//! * Opening verifies every byte: a damaged file is an error before the first line is printed.
//! * The file is never changed in place. [`FingerprintLog::write_to`] writes a new file; after that
//!   file is in place, [`FingerprintLog::reload`] switches to it.
//! * The file has the order of the table's slots, so loading and writing access memory in order.
//!
//! Cost: opening reads the file once. If it fits the memory with a quarter more, it is loaded into
//! the table, and a lookup reads one or two cache lines. Otherwise the table has only the
//! fingerprints since the last save, a lookup reads a few pages of the file by interpolation search,
//! and saving merges both. Saving writes the file once.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, ErrorKind, Result, io_text};
use crate::fingerprint::{Fingerprint, FingerprintSet, LineHasher};

const MAGIC: [u8; 8] = *b"\x89PSEEN\r\n";
const VERSION: u16 = 3;
const HEADER: usize = 64;
const PRINT: usize = Fingerprint::BYTES;
/// Fingerprints read by one probe of the file: a page.
const PAGE: u64 = 4096 / PRINT as u64;
/// Bytes read or written at a time in sequential access.
const STEP: usize = 256 << 10;

/// The fingerprints of all printed lines.
pub struct FingerprintLog {
    pair: u64,
    key: [u64; 2],
    saved: Option<Sorted>,
    /// The fingerprints since the last save; if `whole`, all fingerprints.
    table: FingerprintSet,
    whole: bool,
    /// Whether the table had no room for a fingerprint.
    full: bool,
    allowance: u64,
}

/// The error of a log that is damaged; `problem` is a clause.
fn damaged(name: &str, problem: &str) -> Error {
    Error::new(ErrorKind::File, problem)
        .of(name)
        .advise("restore it")
        .advise("remove it and its filter to start over")
}

/// The error of a log that cannot be read again.
fn unreadable(source: io::Error) -> Error {
    let problem = format!("the fingerprint log: cannot read: {}", io_text(&source));
    Error::new(ErrorKind::File, problem).caused_by(source)
}

impl FingerprintLog {
    /// Returns an empty log with a random key and pair number.
    ///
    /// # Errors
    /// If the system has no random bytes or no memory.
    pub fn new() -> Result<Self> {
        let word = || getrandom::u64().map_err(|_| Error::random());
        Self::with(word()?, [word()?, word()?], None)
    }

    /// Opens and verifies a log file. `name` is for error messages.
    ///
    /// # Errors
    /// If the file cannot be read, is not a fingerprint log, or is damaged.
    pub fn open(file: File, name: &str) -> Result<Self> {
        let mut bytes = [0; HEADER];
        let length = file.metadata().map_err(|e| Error::read(name, e))?.len();
        if length < HEADER as u64 {
            return Err(damaged(name, "it is shorter than its header"));
        }
        file.read_exact_at(&mut bytes, 0).map_err(|e| Error::read(name, e))?;
        let header = Header::from_bytes(&bytes).map_err(|what| damaged(name, what))?;
        let whole = u128::from(header.count) * PRINT as u128 + HEADER as u128;
        if u128::from(length) != whole {
            return Err(damaged(name, "its length is not what its header says"));
        }
        let sorted = Sorted { file, count: header.count };
        sorted.verify(name, header.sum)?;
        Self::with(header.pair, header.key, Some(sorted))
    }

    fn with(pair: u64, key: [u64; 2], saved: Option<Sorted>) -> Result<Self> {
        let table = FingerprintSet::new(0, 0)?;
        Ok(Self { pair, key, whole: saved.is_none(), saved, table, full: false, allowance: 0 })
    }

    /// Returns the random number that identifies the log and its filter as a pair.
    #[must_use]
    pub fn pair_id(&self) -> u64 {
        self.pair
    }

    /// Returns the number of fingerprints. Those of this run may be counted twice if the file has
    /// them.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.apart().map_or(0, |saved| saved.count) + self.table.len()
    }

    /// Returns whether there are no fingerprints.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the memory limit in bytes.
    pub(super) fn set_memory(&mut self, bytes: u64) -> Result<()> {
        self.allowance = bytes;
        self.reset()
    }

    /// Empties the table, and loads the file into it if it fits.
    fn reset(&mut self) -> Result<()> {
        let count = self.saved.as_ref().map_or(0, |saved| saved.count);
        // Without room for new fingerprints, the table would be full again soon.
        let room = FingerprintSet::capacity_after_growth(self.allowance, count);
        (self.whole, self.full) = (count + count / 4 <= room, false);
        // Free the old table first: both may not fit.
        self.table = FingerprintSet::new(0, 0)?;
        self.table = FingerprintSet::new(self.allowance, if self.whole { count } else { 0 })?;
        let Some(saved) = self.saved.as_ref().filter(|_| self.whole) else { return Ok(()) };
        // The table has room for all of them, and does not become full.
        let mut added = Ok(());
        let read = saved.each_page(|page| {
            for fingerprint in page.iter().map(Fingerprint::from_bytes) {
                added = self.table.entry(fingerprint, ()).map(drop);
                if added.is_err() {
                    break;
                }
            }
            Ok(())
        });
        added.and(read.map_err(unreadable))
    }

    /// Returns the file if the table lacks its fingerprints.
    fn apart(&self) -> Option<&Sorted> {
        self.saved.as_ref().filter(|_| !self.whole)
    }

    /// Returns the hasher of the fingerprints.
    pub(crate) fn hasher(&self) -> LineHasher {
        // The filter has a hash of its own.
        LineHasher::with_keys([self.key[0], self.key[1], 0])
    }

    /// Loads the slots of fingerprints into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprints: &[Fingerprint]) {
        self.table.prefetch(fingerprints);
    }

    /// Adds a line. Returns whether it is new: it was not printed before, in this run or an earlier
    /// one, or is `certain` to be new. `None` if the table is full and must be saved first.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        fingerprint: Fingerprint,
        certain: bool,
    ) -> Result<Option<bool>> {
        if let Some(saved) = self.apart()
            && !certain
            && !self.table.contains(fingerprint)
            && saved.contains(fingerprint).map_err(unreadable)?
        {
            return Ok(Some(false));
        }
        let entry = self.table.entry(fingerprint, ())?;
        self.full = entry.is_err();
        Ok(entry.ok().map(|(fresh, ())| fresh || certain))
    }

    /// Returns the contents of an empty log file of the same pair.
    #[must_use]
    pub fn empty_file(&self) -> Vec<u8> {
        self.header(0, xxh3_64(&[])).to_vec()
    }

    fn header(&self, count: u64, sum: u64) -> [u8; HEADER] {
        Header { pair: self.pair, key: self.key, count, sum }.to_bytes()
    }

    /// Writes the log as a new file. Returns its number of fingerprints.
    ///
    /// # Errors
    /// If the old file cannot be read, or the new one cannot be written.
    pub fn write_to(&self, mut out: impl Write + Seek) -> io::Result<u64> {
        let mut new = LogWriter::new(&mut out)?;
        let mut table = self.table.sorted().peekable();
        if let Some(saved) = self.apart() {
            saved.each_page(|page| {
                for old in page.iter().map(Fingerprint::from_bytes) {
                    while let Some(fingerprint) =
                        table.next_if(|fingerprint| fingerprint.order() < old.order())
                    {
                        new.push(fingerprint)?;
                    }
                    // After a crash, or with an older filter, a line may be in both.
                    let _ = table.next_if_eq(&old);
                    new.push(old)?;
                }
                Ok(())
            })?;
        }
        table.try_for_each(|fingerprint| new.push(fingerprint))?;
        let (count, sum) = new.finish()?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&self.header(count, sum))?;
        out.flush()?;
        Ok(count)
    }

    /// Switches to the file that [`write_to`](Self::write_to) has written, and makes room in the table.
    ///
    /// # Errors
    /// If memory for a new table is refused, or the file cannot be read.
    pub fn reload(&mut self, file: File, count: u64) -> Result<()> {
        self.saved = Some(Sorted { file, count });
        if self.whole && !self.full { Ok(()) } else { self.reset() }
    }
}

struct Header {
    pair: u64,
    key: [u64; 2],
    count: u64,
    sum: u64,
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        let words = [self.pair, self.key[0], self.key[1], self.count, self.sum];
        for (slot, word) in bytes[16..56].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        let sum = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> Result<Self, &'static str> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        if words[0] != MAGIC {
            return Err("it is no file of fingerprints");
        }
        // The version and six bytes that are zero.
        if word(1) != u64::from(VERSION) {
            return Err("its version is not known to this program");
        }
        if word(7) != xxh3_64(&bytes[..56]) {
            return Err("its header does not match its checksum");
        }
        Ok(Self { pair: word(2), key: [word(3), word(4)], count: word(5), sum: word(6) })
    }
}

/// Ascending fingerprints in a file, after its header.
struct Sorted {
    file: File,
    count: u64,
}

impl Sorted {
    /// Calls a function with each page.
    fn each_page(&self, mut page: impl FnMut(&[[u8; PRINT]]) -> io::Result<()>) -> io::Result<()> {
        let all = self.count * PRINT as u64;
        let mut buffer = vec![0; all.min(STEP as u64) as usize];
        let mut at = 0;
        while at < all {
            let bytes = &mut buffer[..(all - at).min(STEP as u64) as usize];
            self.file.read_exact_at(bytes, HEADER as u64 + at)?;
            at += bytes.len() as u64;
            page(bytes.as_chunks().0)?;
        }
        Ok(())
    }

    fn verify(&self, name: &str, expected: u64) -> Result<()> {
        let mut sum = Xxh3::new();
        let (mut last, mut ascending) = (None, true);
        let read = self.each_page(|page| {
            sum.update(page.as_flattened());
            for fingerprint in page.iter().map(|bytes| Fingerprint::from_bytes(bytes).order()) {
                ascending &= last.replace(fingerprint).is_none_or(|last| last < fingerprint);
            }
            Ok(())
        });
        read.map_err(|e| Error::read(name, e))?;
        if sum.digest() != expected {
            return Err(damaged(name, "its fingerprints do not match their checksum"));
        }
        if !ascending {
            return Err(damaged(name, "its fingerprints are not in order"));
        }
        Ok(())
    }

    /// Looks up a fingerprint. Fingerprints are uniform, so interpolation misses by about the square
    /// root of their number. Bisection follows in case they are not.
    fn contains(&self, fingerprint: Fingerprint) -> io::Result<bool> {
        let want = fingerprint.order();
        let (mut low, mut high) = (0, self.count);
        let (mut min, mut max) = (0, u64::MAX);
        let mut buffer = [0; PAGE as usize * PRINT];
        for step in 0.. {
            let room = high - low;
            if room == 0 {
                break;
            }
            let guess = if step < 4 {
                let share = u128::from(fingerprint.low.saturating_sub(min)) * u128::from(room);
                (share / u128::from((max - min).max(1))) as u64
            } else {
                room / 2
            };
            let length = room.min(PAGE);
            let start = low + guess.saturating_sub(length / 2).min(room - length);
            let page = &mut buffer[..length as usize * PRINT];
            self.file.read_exact_at(page, HEADER as u64 + start * PRINT as u64)?;
            let page = page.as_chunks::<PRINT>().0;
            let at = |i: usize| Fingerprint::from_bytes(&page[i]);
            let (first, last) = (at(0), at(page.len() - 1));
            if want < first.order() {
                (high, max) = (start, first.low);
            } else if want > last.order() {
                (low, min) = (start + length, last.low);
            } else {
                let found =
                    page.binary_search_by_key(&want, |b| Fingerprint::from_bytes(b).order());
                return Ok(found.is_ok());
            }
        }
        Ok(false)
    }
}

/// A sorted file being written; the header is written last.
struct LogWriter<'a, W> {
    out: &'a mut W,
    buffer: Vec<u8>,
    sum: Xxh3,
    count: u64,
}

impl<'a, W: Write> LogWriter<'a, W> {
    fn new(out: &'a mut W) -> io::Result<Self> {
        out.write_all(&[0; HEADER])?;
        Ok(Self { out, buffer: Vec::with_capacity(STEP), sum: Xxh3::new(), count: 0 })
    }

    fn push(&mut self, fingerprint: Fingerprint) -> io::Result<()> {
        if self.buffer.len() == STEP {
            self.write()?;
        }
        self.buffer.extend_from_slice(&fingerprint.to_bytes());
        self.count += 1;
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.sum.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<(u64, u64)> {
        self.write()?;
        Ok((self.count, self.sum.digest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::corrupt::{bit_flips, extensions, truncations};

    fn saved(log: &mut FingerprintLog, path: &std::path::Path) {
        let new = path.with_extension("new");
        let count = log.write_to(File::create(&new).unwrap()).unwrap();
        std::fs::rename(new, path).unwrap();
        log.reload(File::open(path).unwrap(), count).unwrap();
    }

    fn open(path: &std::path::Path) -> Result<FingerprintLog> {
        open_with(path, 1 << 20)
    }

    fn open_with(path: &std::path::Path, memory: u64) -> Result<FingerprintLog> {
        let mut log = FingerprintLog::open(File::open(path).unwrap(), "x")?;
        log.set_memory(memory)?;
        Ok(log)
    }

    /// Adds a line, and saves if the table is full. Returns whether it was new.
    fn add(log: &mut FingerprintLog, path: &std::path::Path, line: u64, certain: bool) -> bool {
        let fingerprint = log.hasher().fingerprint(&line.to_le_bytes());
        loop {
            match log.insert(fingerprint, certain).unwrap() {
                Some(new) => return new,
                None => saved(log, path),
            }
        }
    }

    /// With memory for all fingerprints, for less than the last file has, and for a few.
    #[test]
    fn log_contains_only_inserted_fingerprints_across_files() {
        for (memory, all_in_memory) in [(4 << 20, 4), (200 << 10, 2), (20 << 10, 0)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("f.exact");
            let mut log = FingerprintLog::new().unwrap();
            std::fs::write(&path, log.empty_file()).unwrap();
            assert!(open(&path).unwrap().is_empty());
            log.set_memory(memory).unwrap();
            for round in 0..4 {
                assert_eq!(log.whole, round <= all_in_memory, "{memory} {round}");
                for i in (round..20_000).step_by(5) {
                    let certain = i % 2 == 0;
                    assert!(add(&mut log, &path, i, certain), "{round} {i}");
                    assert!(!add(&mut log, &path, i, false), "{round} {i}");
                }
                if round == 2 {
                    // Put again although the file has it: once in the file all the same.
                    assert!(add(&mut log, &path, 0, true));
                }
                saved(&mut log, &path);
                assert_eq!(open_with(&path, memory).unwrap().len(), 4000 * (round + 1));
                // The log goes on with its file, or with that of an earlier run.
                if round % 2 == 0 {
                    log = open_with(&path, memory).unwrap();
                }
                for i in (0..20_000).filter(|i| i % 5 <= round) {
                    assert!(!add(&mut log, &path, i, false), "{round} {i}");
                }
                assert_eq!(log.len(), 4000 * (round + 1));
            }
            for i in (4..20_000).step_by(5) {
                assert!(add(&mut log, &path, i, false), "{i}");
            }
        }
    }

    /// docs/reference/format.md, with its example of a fingerprint.
    #[test]
    fn file_matches_the_format_document() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let mut log = FingerprintLog::with(0x1122, key, None).unwrap();
        log.set_memory(1 << 20).unwrap();
        assert_eq!(log.insert(log.hasher().fingerprint(b"petal"), false).unwrap(), Some(true));
        let mut file = io::Cursor::new(Vec::new());
        assert_eq!(log.write_to(&mut file).unwrap(), 1);
        let fingerprint = [
            0x5d, 0x3f, 0x6b, 0x37, 0xcc, 0x92, 0xb2, 0x93, 0xb2, 0x2e, 0xab, 0x69, 0x0e, 0x68,
            0xa3, 0x57,
        ];
        let mut expected = b"\x89PSEEN\r\n\x03\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0".to_vec();
        expected.extend(0..16);
        expected.extend(b"\x01\0\0\0\0\0\0\0");
        expected.extend(xxh3_64(&fingerprint).to_le_bytes());
        expected.extend(xxh3_64(&expected).to_le_bytes());
        expected.extend(fingerprint);
        assert_eq!(file.into_inner(), expected);
    }

    #[test]
    fn any_damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = FingerprintLog::new().unwrap();
        log.set_memory(1 << 20).unwrap();
        let hasher = log.hasher();
        let fingerprint = |line: &[u8]| hasher.fingerprint(line);
        for line in [b"a", b"b", b"c"] {
            log.insert(fingerprint(line), false).unwrap();
        }
        saved(&mut log, &path);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), HEADER + 3 * PRINT);
        let flips = bit_flips(&whole).map(|(_, bytes)| bytes);
        let cuts = truncations(&whole).map(<[u8]>::to_vec);
        for bytes in flips.chain(cuts).chain(extensions(&whole)) {
            std::fs::write(&path, bytes).unwrap();
            assert!(open(&path).err().unwrap().to_string().starts_with("x: "));
        }
        // Sums that are right do not make the order right.
        let mut swapped = whole.clone();
        swapped[HEADER..].rotate_left(PRINT);
        let header = log.header(3, xxh3_64(&swapped[HEADER..]));
        swapped[..HEADER].copy_from_slice(&header);
        std::fs::write(&path, swapped).unwrap();
        assert!(open(&path).err().unwrap().to_string().contains("not in order"));
        // A count that no file could have.
        std::fs::write(&path, log.header(u64::MAX, 0)).unwrap();
        assert!(open(&path).err().unwrap().to_string().contains("length"));
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
}
