//! The fingerprint log: the 128-bit fingerprints of all printed lines, in a sorted file and, for this
//! run, in a table until the file is rewritten.
//!
//! The filter beside the log contains at least the same lines, so only lines that the filter
//! reports as present are looked up. Unlike those of set operations, the fingerprints have one key
//! for the life of the file. The key is stored in the file: anyone who can read it can write lines
//! that collide. docs/reference/format.md describes the file.
//!
//! * Opening verifies every byte: a damaged file is an error before the first line is printed.
//! * The file is never changed in place. [`FingerprintLog::write_to`] merges it with the table into a
//!   new file; after that file is in place, [`FingerprintLog::reload`] empties the table.
//!
//! Cost: opening reads the file once. A lookup reads a few pages of 4 KiB by interpolation search, in
//! memory if the file fits half of the memory, otherwise in the file. Saving reads and writes the
//! file once. The other half of the memory is for the table and for sorting it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, ErrorKind, Result, io_text};
use crate::fingerprint::{Fingerprint, LineHasher, Table};

const MAGIC: [u8; 8] = *b"\x89PSEEN\r\n";
const VERSION: u16 = 2;
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
    fresh: Table,
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
        let sorted = Sorted { file, count: header.count, in_memory: Vec::new() };
        sorted.verify(name, header.sum)?;
        Self::with(header.pair, header.key, Some(sorted))
    }

    fn with(pair: u64, key: [u64; 2], saved: Option<Sorted>) -> Result<Self> {
        Ok(Self { pair, key, saved, fresh: Table::new(0, 0)?, allowance: 0 })
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
        self.saved.as_ref().map_or(0, |saved| saved.count) + self.fresh.len()
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

    /// Empties the table, and loads the file into memory if it fits.
    fn reset(&mut self) -> Result<()> {
        // Free the old table first: both may not fit.
        self.fresh = Table::new(0, 0)?;
        self.fresh = Table::new(self.allowance / 4, 0)?;
        let Some(saved) = &mut self.saved else { return Ok(()) };
        saved.load(self.allowance / 2).map_err(unreadable)
    }

    /// Returns the hasher of the fingerprints.
    pub(crate) fn hasher(&self) -> LineHasher {
        // The filter has a hash of its own.
        LineHasher::with_keys([self.key[0], self.key[1], 0])
    }

    /// Returns whether a line was printed before, in this run or an earlier one.
    pub(crate) fn contains(&mut self, fingerprint: Fingerprint) -> Result<bool> {
        if self.fresh.get_mut(fingerprint).is_some() {
            return Ok(true);
        }
        let Some(saved) = &self.saved else { return Ok(false) };
        saved.contains(fingerprint).map_err(unreadable)
    }

    /// Adds a line. `false` if the table is full and must be saved first.
    pub(crate) fn insert(&mut self, fingerprint: Fingerprint) -> Result<bool> {
        Ok(self.fresh.entry(fingerprint, 0)?.is_ok())
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
    /// If the old file cannot be read, the new one cannot be written, or memory to sort is refused.
    pub fn write_to(&self, mut out: impl Write + Seek) -> io::Result<u64> {
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(self.fresh.len() as usize)?;
        fresh.extend(self.fresh.iter().map(|(fingerprint, _)| fingerprint));
        fresh.sort_unstable_by_key(|fingerprint| (fingerprint.high, fingerprint.low));
        let mut fresh = fresh.into_iter().peekable();
        let mut new = LogWriter::new(&mut out)?;
        if let Some(saved) = &self.saved {
            saved.each_page(|page| {
                for old in page.iter().map(Fingerprint::from_bytes) {
                    while let Some(fingerprint) =
                        fresh.next_if(|fingerprint| as_number(*fingerprint) < as_number(old))
                    {
                        new.push(fingerprint)?;
                    }
                    // After a crash, or with an older filter, a line may be in both.
                    let _ = fresh.next_if_eq(&old);
                    new.push(old)?;
                }
                Ok(())
            })?;
        }
        fresh.try_for_each(|fingerprint| new.push(fingerprint))?;
        let (count, sum) = new.finish()?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&self.header(count, sum))?;
        out.flush()?;
        Ok(count)
    }

    /// Switches to the file that [`write_to`](Self::write_to) has written, and empties the table.
    ///
    /// # Errors
    /// If memory for a new table is refused, or the file cannot be read.
    pub fn reload(&mut self, file: File, count: u64) -> Result<()> {
        self.saved = Some(Sorted { file, count, in_memory: Vec::new() });
        self.reset()
    }
}

/// The fingerprint as a number, by which the file is sorted.
fn as_number(fingerprint: Fingerprint) -> u128 {
    u128::from(fingerprint.high) << 64 | u128::from(fingerprint.low)
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
    /// The fingerprints in memory, if they fit.
    in_memory: Vec<u8>,
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

    /// Loads all fingerprints into memory if they fit.
    fn load(&mut self, allowance: u64) -> io::Result<()> {
        let Some(bytes) = self.count.checked_mul(PRINT as u64).filter(|all| *all <= allowance)
        else {
            return Ok(());
        };
        self.in_memory.try_reserve_exact(bytes as usize)?;
        self.in_memory.resize(bytes as usize, 0);
        self.file.read_exact_at(&mut self.in_memory, HEADER as u64)
    }

    /// Returns `length` fingerprints from `start` on, from memory or through the buffer.
    fn page<'a>(
        &'a self,
        start: u64,
        length: u64,
        buffer: &'a mut [u8; PAGE as usize * PRINT],
    ) -> io::Result<&'a [[u8; PRINT]]> {
        let (at, bytes) = (start as usize * PRINT, length as usize * PRINT);
        if let Some(page) = self.in_memory.get(at..at + bytes) {
            return Ok(page.as_chunks().0);
        }
        let page = &mut buffer[..bytes];
        self.file.read_exact_at(page, HEADER as u64 + start * PRINT as u64)?;
        Ok(page.as_chunks().0)
    }

    fn verify(&self, name: &str, expected: u64) -> Result<()> {
        let mut sum = Xxh3::new();
        let (mut last, mut ascending) = (None, true);
        let read = self.each_page(|page| {
            sum.update(page.as_flattened());
            for fingerprint in page.iter().map(|bytes| as_number(Fingerprint::from_bytes(bytes))) {
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
        let want = as_number(fingerprint);
        let (mut low, mut high) = (0, self.count);
        let (mut min, mut max) = (0, u64::MAX);
        let mut buffer = [0; PAGE as usize * PRINT];
        for step in 0.. {
            let room = high - low;
            if room == 0 {
                break;
            }
            let guess = if step < 4 {
                let share = u128::from(fingerprint.high.saturating_sub(min)) * u128::from(room);
                (share / u128::from((max - min).max(1))) as u64
            } else {
                room / 2
            };
            let length = room.min(PAGE);
            let start = low + guess.saturating_sub(length / 2).min(room - length);
            let page = self.page(start, length, &mut buffer)?;
            let at = |i: usize| Fingerprint::from_bytes(&page[i]);
            let (first, last) = (at(0), at(page.len() - 1));
            if want < as_number(first) {
                (high, max) = (start, first.high);
            } else if want > as_number(last) {
                (low, min) = (start + length, last.high);
            } else {
                let found =
                    page.binary_search_by_key(&want, |b| as_number(Fingerprint::from_bytes(b)));
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
        let mut log = FingerprintLog::open(File::open(path).unwrap(), "x")?;
        log.set_memory(1 << 20)?;
        Ok(log)
    }

    #[test]
    fn log_contains_only_inserted_fingerprints_across_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut log = FingerprintLog::new().unwrap();
        std::fs::write(&path, log.empty_file()).unwrap();
        assert!(open(&path).unwrap().is_empty());
        log.set_memory(1 << 20).unwrap();
        let hasher = log.hasher();
        let fingerprint = |line: &[u8]| hasher.fingerprint(line);
        let line = |i: u64| format!("line {i}");
        for round in 0..4 {
            for i in (round..20_000).step_by(5) {
                assert!(!log.contains(fingerprint(line(i).as_bytes())).unwrap(), "{round} {i}");
                assert!(log.insert(fingerprint(line(i).as_bytes())).unwrap());
                assert!(log.contains(fingerprint(line(i).as_bytes())).unwrap());
            }
            if round == 2 {
                // Put again although the file has it: once in the file all the same.
                log.insert(fingerprint(line(0).as_bytes())).unwrap();
            }
            saved(&mut log, &path);
            log = open(&path).unwrap();
            assert_eq!(log.len(), 4000 * (round + 1));
            let in_memory = &mut log.saved.as_mut().unwrap().in_memory;
            assert!(!in_memory.is_empty());
            if round % 2 == 0 {
                // As if there were no room for it.
                *in_memory = Vec::new();
            }
            for i in 0..20_000 {
                let known = log.contains(fingerprint(line(i).as_bytes())).unwrap();
                assert_eq!(known, i % 5 <= round, "{round} {i}");
            }
        }
    }

    /// docs/reference/format.md, with its example of a fingerprint.
    #[test]
    fn file_matches_the_format_document() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let mut log = FingerprintLog::with(0x1122, key, None).unwrap();
        log.set_memory(1 << 20).unwrap();
        assert!(log.insert(log.hasher().fingerprint(b"petal")).unwrap());
        let mut file = io::Cursor::new(Vec::new());
        assert_eq!(log.write_to(&mut file).unwrap(), 1);
        let fingerprint = [
            0x5d, 0x3f, 0x6b, 0x37, 0xcc, 0x92, 0xb2, 0x93, 0xb2, 0x2e, 0xab, 0x69, 0x0e, 0x68,
            0xa3, 0x57,
        ];
        let mut expected = b"\x89PSEEN\r\n\x02\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0".to_vec();
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
            log.insert(fingerprint(line)).unwrap();
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
        while log.insert(fingerprint(&count.to_le_bytes())).unwrap() {
            count += 1;
        }
        assert!(count > 500, "{count}");
        assert!(log.contains(fingerprint(&0u64.to_le_bytes())).unwrap());
    }
}
