//! The exact memory of lines: the 128-bit fingerprint of every line ever printed, in a sorted
//! file, and those of this run in a table until the file is written anew.
//!
//! It stands beside a filter that knows at least the same lines, so it is asked only about lines
//! that the filter seems to know. Unlike the fingerprints of the set verbs these are keyed once
//! for the life of the file: the key is in it, and whoever can read the file can make lines
//! collide. docs/format.md describes the file.
//!
//! * Opening examines every byte: a damaged file is refused before the first line is printed.
//! * The file is never changed in place. [`Ledger::write_to`] merges it with the table into a
//!   new one; only when that has its name does [`Ledger::settle`] forget the table.
//!
//! Cost: opening reads the file once; a question costs a few looks at 4 KiB, by interpolation,
//! in memory if the file fits half of the allowance, else in the file; saving reads and writes
//! the file once. The other half of the allowance is for the table and to sort it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, Result};
use crate::fingerprint::{Fingerprint, Hashes};
use crate::table::Table;

const MAGIC: [u8; 8] = *b"\x89PSEEN\r\n";
const VERSION: u16 = 1;
const HEADER: usize = 64;
const PRINT: usize = Fingerprint::BYTES;
/// Fingerprints that one look into the file reads: a page of them.
const PAGE: u64 = 4096 / PRINT as u64;
/// What is read or written at a time where the file is gone through from end to end.
const STEP: usize = 256 << 10;

/// The exact memory of lines.
pub struct Ledger {
    pair: u64,
    key: [u64; 2],
    saved: Option<Sorted>,
    fresh: Table,
    allowance: u64,
}

impl Ledger {
    /// An empty one, with a key and a number of its own.
    ///
    /// # Errors
    /// If the system gives no random bytes or no memory.
    pub fn new() -> Result<Self> {
        let word = || getrandom::u64().map_err(|_| Error::random());
        Self::with(word()?, [word()?, word()?], None)
    }

    /// The one in a file, every byte examined. `name` is for messages.
    ///
    /// # Errors
    /// If the file cannot be read, is not one of these, or is damaged in any way.
    pub fn open(file: File, name: &str) -> Result<Self> {
        let mut bytes = [0; HEADER];
        let length = file.metadata().map_err(|e| Error::read(name, e))?.len();
        if length < HEADER as u64 {
            return Err(Error::damaged(name, "it is shorter than its header"));
        }
        file.read_exact_at(&mut bytes, 0).map_err(|e| Error::read(name, e))?;
        let header = Header::from_bytes(&bytes).map_err(|what| Error::damaged(name, what))?;
        let whole = u128::from(header.count) * PRINT as u128 + HEADER as u128;
        if u128::from(length) != whole {
            return Err(Error::damaged(name, "its length is not what its header says"));
        }
        let sorted = Sorted { file, count: header.count, held: Vec::new() };
        sorted.verify(name, header.sum)?;
        Self::with(header.pair, header.key, Some(sorted))
    }

    fn with(pair: u64, key: [u64; 2], saved: Option<Sorted>) -> Result<Self> {
        Ok(Self { pair, key, saved, fresh: Table::new(0, 0)?, allowance: 0 })
    }

    /// The number that names the pair of this and its filter.
    #[must_use]
    pub fn pair(&self) -> u64 {
        self.pair
    }

    /// Fingerprints in it: those of this run may be in the file too.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.saved.as_ref().map_or(0, |saved| saved.count) + self.fresh.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives it so much memory.
    pub(crate) fn allow(&mut self, bytes: u64) -> Result<()> {
        self.allowance = bytes;
        self.renew()
    }

    /// Begins with an empty table, and with the file in memory if it fits.
    fn renew(&mut self) -> Result<()> {
        // The old table goes first: there may not be room for both.
        self.fresh = Table::new(0, 0)?;
        self.fresh = Table::new(self.allowance / 4, 0)?;
        let Some(saved) = &mut self.saved else { return Ok(()) };
        saved.hold(self.allowance / 2).map_err(Error::ledger)
    }

    /// What makes the fingerprints of lines.
    pub(crate) fn hashes(&self) -> Hashes {
        // Its filter has a hash of its own.
        Hashes::with_keys([self.key[0], self.key[1], 0])
    }

    /// Whether a line was printed before, in this run or an earlier one.
    pub(crate) fn knows(&mut self, print: Fingerprint) -> Result<bool> {
        if self.fresh.get_mut(print).is_some() {
            return Ok(true);
        }
        let Some(saved) = &self.saved else { return Ok(false) };
        saved.holds(print).map_err(Error::ledger)
    }

    /// Remembers a line; `false` if the table is full, and must be saved first.
    pub(crate) fn put(&mut self, print: Fingerprint) -> Result<bool> {
        Ok(self.fresh.entry(print, 0)?.is_ok())
    }

    /// An empty file of the same pair: what a new filter has beside it from the start.
    #[must_use]
    pub fn blank(&self) -> Vec<u8> {
        self.header(0, xxh3_64(&[])).to_vec()
    }

    fn header(&self, count: u64, sum: u64) -> [u8; HEADER] {
        Header { pair: self.pair, key: self.key, count, sum }.to_bytes()
    }

    /// Writes all of it as a new file, and says how many fingerprints that holds.
    ///
    /// # Errors
    /// If the old file cannot be read, the new one cannot be written, or memory to sort is refused.
    pub fn write_to(&self, mut out: impl Write + Seek) -> io::Result<u64> {
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(self.fresh.len() as usize)?;
        fresh.extend(self.fresh.iter().map(|(print, _)| print));
        fresh.sort_unstable_by_key(|print| (print.high, print.low));
        let mut fresh = fresh.into_iter().peekable();
        let mut new = Growing::new(&mut out)?;
        if let Some(saved) = &self.saved {
            saved.each_page(|page| {
                for old in page.iter().map(Fingerprint::from_bytes) {
                    while let Some(print) = fresh.next_if(|print| wide(*print) < wide(old)) {
                        new.push(print)?;
                    }
                    // After a crash, or with an older filter beside it, a line may come twice.
                    let _ = fresh.next_if_eq(&old);
                    new.push(old)?;
                }
                Ok(())
            })?;
        }
        fresh.try_for_each(|print| new.push(print))?;
        let (count, sum) = new.finish()?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&self.header(count, sum))?;
        out.flush()?;
        Ok(count)
    }

    /// Takes the file that [`write_to`](Self::write_to) wrote for its own, and empties the table.
    ///
    /// # Errors
    /// If memory for a new table is refused, or the file cannot be read.
    pub fn settle(&mut self, file: File, count: u64) -> Result<()> {
        self.saved = Some(Sorted { file, count, held: Vec::new() });
        self.renew()
    }
}

/// As a number: the order of the file.
fn wide(print: Fingerprint) -> u128 {
    u128::from(print.high) << 64 | u128::from(print.low)
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

/// Ascending fingerprints in a file, behind its header.
struct Sorted {
    file: File,
    count: u64,
    /// All of them, if there is room.
    held: Vec<u8>,
}

impl Sorted {
    /// Goes through all of it.
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

    /// Reads all of it into memory, unless that takes more than the allowance.
    fn hold(&mut self, allowance: u64) -> io::Result<()> {
        let Some(bytes) = self.count.checked_mul(PRINT as u64).filter(|all| *all <= allowance)
        else {
            return Ok(());
        };
        self.held.try_reserve_exact(bytes as usize)?;
        self.held.resize(bytes as usize, 0);
        self.file.read_exact_at(&mut self.held, HEADER as u64)
    }

    /// So many fingerprints from one on, from memory or through the buffer.
    fn page<'a>(
        &'a self,
        start: u64,
        length: u64,
        buffer: &'a mut [u8; PAGE as usize * PRINT],
    ) -> io::Result<&'a [[u8; PRINT]]> {
        let (at, bytes) = (start as usize * PRINT, length as usize * PRINT);
        if let Some(page) = self.held.get(at..at + bytes) {
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
            for print in page.iter().map(|bytes| wide(Fingerprint::from_bytes(bytes))) {
                ascending &= last.replace(print).is_none_or(|last| last < print);
            }
            Ok(())
        });
        read.map_err(|e| Error::read(name, e))?;
        if sum.digest() != expected {
            return Err(Error::damaged(name, "its fingerprints do not match their checksum"));
        }
        if !ascending {
            return Err(Error::damaged(name, "its fingerprints are not in order"));
        }
        Ok(())
    }

    /// Looks a fingerprint up. They are uniform, so a guess is off by about the root of their
    /// number; halving comes after, in case they are not.
    fn holds(&self, print: Fingerprint) -> io::Result<bool> {
        let want = wide(print);
        let (mut low, mut high) = (0, self.count);
        let (mut least, mut most) = (0, u64::MAX);
        let mut buffer = [0; PAGE as usize * PRINT];
        for step in 0.. {
            let room = high - low;
            if room == 0 {
                break;
            }
            let guess = if step < 4 {
                let share = u128::from(print.high.saturating_sub(least)) * u128::from(room);
                (share / u128::from((most - least).max(1))) as u64
            } else {
                room / 2
            };
            let length = room.min(PAGE);
            let start = low + guess.saturating_sub(length / 2).min(room - length);
            let page = self.page(start, length, &mut buffer)?;
            let at = |i: usize| Fingerprint::from_bytes(&page[i]);
            let (first, last) = (at(0), at(page.len() - 1));
            if want < wide(first) {
                (high, most) = (start, first.high);
            } else if want > wide(last) {
                (low, least) = (start + length, last.high);
            } else {
                let found = page.binary_search_by_key(&want, |b| wide(Fingerprint::from_bytes(b)));
                return Ok(found.is_ok());
            }
        }
        Ok(false)
    }
}

/// A sorted file in the making, its header still to come.
struct Growing<'a, W> {
    out: &'a mut W,
    waiting: Vec<u8>,
    sum: Xxh3,
    count: u64,
}

impl<'a, W: Write> Growing<'a, W> {
    fn new(out: &'a mut W) -> io::Result<Self> {
        out.write_all(&[0; HEADER])?;
        Ok(Self { out, waiting: Vec::with_capacity(STEP), sum: Xxh3::new(), count: 0 })
    }

    fn push(&mut self, print: Fingerprint) -> io::Result<()> {
        if self.waiting.len() == STEP {
            self.write()?;
        }
        self.waiting.extend_from_slice(&print.to_bytes());
        self.count += 1;
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.sum.update(&self.waiting);
        self.out.write_all(&self.waiting)?;
        self.waiting.clear();
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

    fn saved(ledger: &mut Ledger, path: &std::path::Path) {
        let aside = path.with_extension("new");
        let count = ledger.write_to(File::create(&aside).unwrap()).unwrap();
        std::fs::rename(aside, path).unwrap();
        ledger.settle(File::open(path).unwrap(), count).unwrap();
    }

    fn open(path: &std::path::Path) -> Result<Ledger> {
        let mut ledger = Ledger::open(File::open(path).unwrap(), "x")?;
        ledger.allow(1 << 20)?;
        Ok(ledger)
    }

    #[test]
    fn knows_what_was_put_and_nothing_else_across_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut ledger = Ledger::new().unwrap();
        std::fs::write(&path, ledger.blank()).unwrap();
        assert!(open(&path).unwrap().is_empty());
        ledger.allow(1 << 20).unwrap();
        let hashes = ledger.hashes();
        let print = |line: &[u8]| hashes.fingerprint(line);
        let line = |i: u64| format!("line {i}");
        for round in 0..4 {
            for i in (round..20_000).step_by(5) {
                assert!(!ledger.knows(print(line(i).as_bytes())).unwrap(), "{round} {i}");
                assert!(ledger.put(print(line(i).as_bytes())).unwrap());
                assert!(ledger.knows(print(line(i).as_bytes())).unwrap());
            }
            if round == 2 {
                // Put again although the file has it: once in the file all the same.
                ledger.put(print(line(0).as_bytes())).unwrap();
            }
            saved(&mut ledger, &path);
            ledger = open(&path).unwrap();
            assert_eq!(ledger.len(), 4000 * (round + 1));
            let held = &mut ledger.saved.as_mut().unwrap().held;
            assert!(!held.is_empty());
            if round % 2 == 0 {
                // As if there were no room for it.
                *held = Vec::new();
            }
            for i in 0..20_000 {
                let known = ledger.knows(print(line(i).as_bytes())).unwrap();
                assert_eq!(known, i % 5 <= round, "{round} {i}");
            }
        }
    }

    /// docs/format.md, with the first vector of SipHash's reference code: key 00..0f, no bytes.
    #[test]
    fn the_file_is_what_the_document_says() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let mut ledger = Ledger::with(0x1122, key, None).unwrap();
        ledger.allow(1 << 20).unwrap();
        assert!(ledger.put(ledger.hashes().fingerprint(b"")).unwrap());
        let mut file = io::Cursor::new(Vec::new());
        assert_eq!(ledger.write_to(&mut file).unwrap(), 1);
        let print = [
            0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55,
            0x02, 0x93,
        ];
        let mut expected = b"\x89PSEEN\r\n\x01\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0".to_vec();
        expected.extend(0..16);
        expected.extend(b"\x01\0\0\0\0\0\0\0");
        expected.extend(xxh3_64(&print).to_le_bytes());
        expected.extend(xxh3_64(&expected).to_le_bytes());
        expected.extend(print);
        assert_eq!(file.into_inner(), expected);
    }

    #[test]
    fn any_damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.exact");
        let mut ledger = Ledger::new().unwrap();
        ledger.allow(1 << 20).unwrap();
        let hashes = ledger.hashes();
        let print = |line: &[u8]| hashes.fingerprint(line);
        for line in [b"a", b"b", b"c"] {
            ledger.put(print(line)).unwrap();
        }
        saved(&mut ledger, &path);
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
        let header = ledger.header(3, xxh3_64(&swapped[HEADER..]));
        swapped[..HEADER].copy_from_slice(&header);
        std::fs::write(&path, swapped).unwrap();
        assert!(open(&path).err().unwrap().to_string().contains("not in order"));
        // A count that no file could have.
        std::fs::write(&path, ledger.header(u64::MAX, 0)).unwrap();
        assert!(open(&path).err().unwrap().to_string().contains("length"));
    }

    #[test]
    fn a_full_table_says_so() {
        let mut ledger = Ledger::new().unwrap();
        ledger.allow(128 << 10).unwrap();
        let hashes = ledger.hashes();
        let print = |line: &[u8]| hashes.fingerprint(line);
        let mut count = 0u64;
        while ledger.put(print(&count.to_le_bytes())).unwrap() {
            count += 1;
        }
        assert!(count > 500, "{count}");
        assert!(ledger.knows(print(&0u64.to_le_bytes())).unwrap());
    }
}
