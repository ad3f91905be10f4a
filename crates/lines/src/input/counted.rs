//! Lists of keys with counts: lines of `KEY:COUNT`, as of Pwned Passwords. They are read as one input of
//! keys, one a line.
//!
//! A list may be divided by the first five hexadecimal digits of its keys into files such as
//! `0A1B2.txt`, whose lines have the other digits: up to 16^5 files, of which one at a time is open.
//!
//! Cost: a copy of each key, on one thread.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content_check::ContentChecks;
use super::header::MARK;
use super::source::{CountedLists, Source};
use super::stream::{LazyFile, MaybeCompressed};
use crate::error::{Error, Result};
use crate::keys::HexDigits;
use crate::poll_read::PollRead;

/// The digits of a file's name.
type Prefix = [u8; 5];

const EXTENSION: &str = ".txt";

/// Some files of a list.
enum Part {
    /// A file, and the digits of its name.
    File(PathBuf, Prefix),
    /// The files in a directory, by their digits in descending order: the last one is read next.
    Directory(PathBuf, Vec<Prefix>),
}

impl CountedLists {
    /// Opens the lists as a stream of keys. The names of files are checked, and read in a directory.
    pub(super) fn open(&self, memory: u64, checks: &ContentChecks) -> Result<CountedKeys> {
        let mut parts =
            self.paths.iter().map(|path| self.part(path)).collect::<Result<Vec<_>>>()?;
        parts.reverse();
        Ok(CountedKeys {
            parts,
            has_prefix: self.prefix_from_name,
            delimiter: checks.delimiter(),
            memory,
            checks: Arc::new(checks.of_parts()),
            list: None,
            suffix: None,
            bytes: Vec::new(),
            keys: Vec::new(),
            taken: 0,
        })
    }

    fn part(&self, path: &Path) -> Result<Part> {
        if let Source::Object(url) = Source::from_arg(path) {
            let problem = "is an address, expected a file of keys with counts";
            return Err(Error::input(&url.to_string(), problem).advise("download it first"));
        }
        let name = path.display().to_string();
        let failed = |error| Error::read(&name, error);
        let is_stdin = path == Path::new("-");
        if !self.prefix_from_name {
            if !is_stdin && std::fs::metadata(path).map_err(failed)?.is_dir() {
                return Err(Error::directory(&name));
            }
            return Ok(Part::File(path.to_owned(), [0; 5]));
        }
        if is_stdin || !std::fs::metadata(path).map_err(failed)?.is_dir() {
            return Ok(Part::File(path.to_owned(), prefix(path)?));
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            names.push(prefix(&path.join(entry.map_err(failed)?.file_name()))?);
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Part::Directory(path.to_owned(), names))
    }
}

/// Returns the digits of a file's name.
fn prefix(path: &Path) -> Result<Prefix> {
    let digits = path.file_name().and_then(|name| name.to_str()?.strip_suffix(EXTENSION));
    let digits = digits.and_then(|digits| Prefix::try_from(digits.as_bytes()).ok());
    digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).ok_or_else(|| {
        let problem = "its name is not five hexadecimal digits and .txt, as in 0A1B2.txt";
        Error::input(&path.display().to_string(), problem)
            .advise("name only the files of the list, or a directory that has no others")
    })
}

/// The keys of lists, each with a delimiter.
pub(super) struct CountedKeys {
    /// The files that are not read yet; the last is next.
    parts: Vec<Part>,
    has_prefix: bool,
    delimiter: u8,
    memory: u64,
    checks: Arc<ContentChecks>,
    /// The file that is being read.
    list: Option<List>,
    /// The length of the first suffix.
    suffix: Option<usize>,
    /// Bytes of the file that are no whole line yet.
    bytes: Vec<u8>,
    /// Keys, of which some are returned.
    keys: Vec<u8>,
    taken: usize,
}

struct List {
    name: String,
    prefix: Prefix,
    /// The digits of the prefix, and of all keys so far.
    digits: HexDigits,
    stream: MaybeCompressed,
    /// The position of the bytes after the whole lines, and the number of lines before it.
    offset: u64,
    lines: u64,
}

/// Bytes that are read at once.
const BLOCK: usize = 256 << 10;

impl CountedKeys {
    /// Opens the next file. False if there is none.
    fn next_list(&mut self) -> io::Result<bool> {
        let (path, prefix) = loop {
            match self.parts.pop() {
                None => return Ok(false),
                Some(Part::File(path, prefix)) => break (path, prefix),
                Some(Part::Directory(path, mut names)) => {
                    let Some(prefix) = names.pop() else { continue };
                    let digits = String::from_utf8_lossy(&prefix);
                    let file = path.join(format!("{digits}{EXTENSION}"));
                    self.parts.push(Part::Directory(path, names));
                    break (file, prefix);
                }
            }
        };
        let name = path.display().to_string();
        let stream: Box<dyn PollRead + Send> = match path == Path::new("-") {
            true => {
                use std::os::fd::AsFd as _;
                Box::new(std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?))
            }
            false => Box::new(LazyFile::new(path)),
        };
        let stream = MaybeCompressed::new(stream, &name, Arc::clone(&self.checks), self.memory);
        let mut digits = HexDigits::default();
        if self.has_prefix {
            digits.add(&prefix);
        }
        self.list = Some(List { name, prefix, digits, stream, offset: 0, lines: 0 });
        Ok(true)
    }

    /// Reads more of the file, and makes the keys of its whole lines. False at the end of all files.
    fn fill(&mut self) -> io::Result<bool> {
        if self.list.is_none() && !self.next_list()? {
            return Ok(false);
        }
        let Some(list) = &mut self.list else { return Ok(false) };
        let before = self.bytes.len();
        self.bytes.resize(before + BLOCK, 0);
        let read = list.stream.read(&mut self.bytes[before..]);
        let read = read.map_err(|error| io::Error::other(Error::read(&list.name, error)))?;
        self.bytes.truncate(before + read);
        let is_end = read == 0;
        let whole = match memchr::memrchr(self.delimiter, &self.bytes[before..]) {
            Some(last) => before + last + 1,
            None if is_end => self.bytes.len(),
            None if self.bytes.len() > 1 << 20 => {
                return Err(io::Error::other(list.error(0, "is longer than 1 MiB")));
            }
            None => return Ok(true),
        };
        let mut start = 0;
        while start < whole {
            let rest = &self.bytes[start..whole];
            let end = memchr::memchr(self.delimiter, rest).unwrap_or(rest.len());
            let line = &rest[..end];
            let line = if list.lines == 0 { line.strip_prefix(MARK).unwrap_or(line) } else { line };
            let key = counted_key(line).map_err(|problem| list.error(start, problem));
            if let Some(key) = key.map_err(io::Error::other)? {
                if self.has_prefix {
                    let problem = list.suffix_problem(key, *self.suffix.get_or_insert(key.len()));
                    if let Some(problem) = problem {
                        return Err(io::Error::other(list.error(start, &problem)));
                    }
                    self.keys.extend_from_slice(&list.prefix);
                }
                self.keys.extend_from_slice(key);
                self.keys.push(self.delimiter);
            }
            list.lines += 1;
            start += end + 1;
        }
        list.offset += whole as u64;
        self.bytes.drain(..whole);
        if is_end {
            self.list = None;
        }
        Ok(true)
    }
}

impl List {
    /// Returns what is wrong with the rest of a key; others have `length` bytes.
    fn suffix_problem(&mut self, suffix: &[u8], length: usize) -> Option<String> {
        let found = suffix.len();
        if found != length {
            return Some(format!("has {found} digits before its count, others have {length}"));
        }
        self.digits.add(suffix);
        if !self.digits.is_digits() {
            return Some(
                "has other characters than hexadecimal digits before its count".to_owned(),
            );
        }
        let mixed = "has digits in another case than those of the file's name, or of other lines";
        (!self.digits.is_one_case()).then(|| mixed.to_owned())
    }

    /// The error of the line at this position in the bytes.
    fn error(&self, at: usize, problem: &str) -> Error {
        Error::input(&self.name, format!(" {problem}"))
            .at_numbered_line(self.offset + at as u64, self.lines + 1)
            .advise("expected lines of KEY:COUNT")
    }
}

/// Returns the key of a line with a count; `None` if the count is 0, which pads a list.
fn counted_key(line: &[u8]) -> std::result::Result<Option<&[u8]>, &'static str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let missing = "has no count after its key";
    let colon = memchr::memrchr(b':', line).ok_or(missing)?;
    let (key, count) = (&line[..colon], &line[colon + 1..]);
    if count.is_empty() || !count.iter().all(u8::is_ascii_digit) {
        return Err(missing);
    }
    if key.is_empty() {
        return Err("has no key before its count");
    }
    Ok(count.iter().any(|digit| *digit != b'0').then_some(key))
}

impl Read for CountedKeys {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.keys.len() {
            self.keys.clear();
            self.taken = 0;
            if !self.fill()? {
                return Ok(0);
            }
        }
        let rest = &self.keys[self.taken..];
        let few = rest.len().min(buffer.len());
        buffer[..few].copy_from_slice(&rest[..few]);
        self.taken += few;
        Ok(few)
    }
}

impl PollRead for CountedKeys {
    fn ready(&mut self) -> bool {
        self.taken < self.keys.len() || self.list.as_mut().is_none_or(|list| list.stream.ready())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lists: &CountedLists) -> std::result::Result<String, String> {
        let checks = ContentChecks::new(b'\n', false);
        let mut keys = lists.open(1 << 20, &checks).map_err(|error| error.to_string())?;
        let mut text = String::new();
        match keys.read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn keys_end_before_the_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let lists = CountedLists { paths: vec![path.clone()], prefix_from_name: false };
            keys(&lists).map_err(|text| text.replace(&path.display().to_string(), "list"))
        };
        assert_eq!(of("AB:1\nC:D:20\r\nX:0\nY:00\r\nZ:01"), Ok("AB\nC:D\nZ\n".to_owned()));
        assert_eq!(of("\u{feff}AB:1\n"), Ok("AB\n".to_owned()));
        assert_eq!(of(""), Ok(String::new()));
        let error = |at, line, problem: &str| {
            let at = format!("list: the line at byte {at} (line {line})");
            Err(format!("{at} {problem}; expected lines of KEY:COUNT"))
        };
        assert_eq!(of("A:1\nB\n"), error(4, 2, "has no count after its key"));
        assert_eq!(of("A:1\nB:2x"), error(4, 2, "has no count after its key"));
        assert_eq!(of("A:1\nB:\n"), error(4, 2, "has no count after its key"));
        assert_eq!(of("A:1\n\nB:1\n"), error(4, 2, "has no count after its key"));
        assert_eq!(of(":1\n"), error(0, 1, "has no key before its count"));
        // Lines at the ends of blocks.
        let lines: Vec<_> = (0..60_000).map(|number| format!("{number:07}")).collect();
        let text: String = lines.iter().map(|key| format!("{key}:7\r\n")).collect();
        assert_eq!(of(&text).unwrap().lines().collect::<Vec<_>>(), lines);
        let last = of(&format!("{text}x\n"));
        assert_eq!(last, error(660_000, 60_001, "has no count after its key"));
        let long = of(&"x".repeat(2 << 20)).unwrap_err();
        assert!(long.contains("(line 1) is longer than 1 MiB"), "{long}");
    }

    #[test]
    fn names_of_files_are_the_first_digits() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let lists = CountedLists { paths: vec![dir.path().to_owned()], prefix_from_name: true };
        let of = || keys(&lists).map_err(|e| e.replace(&format!("{}/", dir.path().display()), ""));
        assert_eq!(of(), Ok(String::new()));
        write("0000B.txt", "CD:2\nEF:0\n");
        write("00001.txt", "AB:1\r\n12:3\r\n");
        write("FFFFF.txt", "");
        assert_eq!(of(), Ok("00001AB\n0000112\n0000BCD\n".to_owned()));
        let paths = ["0000B.txt", "00001.txt"].map(|name| dir.path().join(name)).to_vec();
        let named = keys(&CountedLists { paths, prefix_from_name: true });
        assert_eq!(named, Ok("0000BCD\n00001AB\n0000112\n".to_owned()));
        for (text, problem) in [
            ("AB:1\nABC:1\n", "has 3 digits before its count, others have 2"),
            ("AB:1\nXY:1\n", "has other characters than hexadecimal digits before its count"),
            ("AB:1\nA:1:1\n", "has 3 digits before its count, others have 2"),
            (
                "12:1\nab:1\n",
                "has digits in another case than those of the file's name, or of other lines",
            ),
        ] {
            write("0000F.txt", text);
            let error = of().unwrap_err();
            let expected = format!("0000F.txt: the line at byte 5 (line 2) {problem};");
            assert!(error.starts_with(&expected), "{error}");
        }
        std::fs::remove_file(dir.path().join("0000F.txt")).unwrap();
        for name in ["README", "0000.txt", "00001.TXT", "0000G.txt", "000001.txt"] {
            write(name, "");
            let error = of().unwrap_err();
            assert!(error.starts_with(&format!("{name}: its name is not five hex")), "{error}");
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        let stdin = CountedLists { paths: vec!["-".into()], prefix_from_name: true };
        assert!(keys(&stdin).unwrap_err().starts_with("-: its name is not five"));
    }
}
