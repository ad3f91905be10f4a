//! Checks of the first bytes of inputs: formats that are not lines, byte order marks, line ends.
//!
//! Compressed files in formats that are not decompressed, archives, Parquet files, petal filters and
//! text in UTF-16 or UTF-32 are errors: read as lines, they would give a wrong result. A UTF-8 byte
//! order mark, CRLF line ends besides LF, in one input or in several, and CR without LF are reported as
//! notes, because they may be intended.
//!
//! Invariant: no text in UTF-8 or in an 8-bit encoding is refused. Every signature has a byte that
//! text does not have, or is confirmed by a later byte. The exception is a text of fewer than 16
//! bytes that begins with a UTF-16 byte order mark, is valid UTF-16 and has no zero byte: it is
//! taken as UTF-16.
//!
//! Cost: one look at the first 64 KiB of a file, or at the first 4 KiB of a stream.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::poll_read::PollRead;
use super::signatures::{Detection, detect};
use super::tables::TableKind;
use crate::error::Result;
use crate::progress::{Note, Progress};

/// Bytes at the start of a stream that are checked.
const STREAM_WINDOW: usize = 4 << 10;

/// The line ends of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Lf,
    Crlf,
    /// Some lines end in LF and others in CRLF.
    Both,
    /// There are CR, but no LF, so that everything is one line.
    Cr,
}

impl Ends {
    /// Returns the line ends of a text; `None` if there is none. A CR that may belong to CRLF is none.
    fn of(begin: &[u8]) -> Option<Self> {
        let (mut lines, mut returns) = (0u64, 0u64);
        for at in memchr::memchr_iter(b'\n', begin) {
            lines += 1;
            returns += u64::from(at > 0 && begin[at - 1] == b'\r');
        }
        match (lines, returns) {
            (0, _) => {
                let cr = memchr::memchr(b'\r', begin).filter(|at| at + 1 < begin.len());
                cr.map(|_| Self::Cr)
            }
            (_, 0) => Some(Self::Lf),
            _ if returns == lines => Some(Self::Crlf),
            _ => Some(Self::Both),
        }
    }
}

/// The content checks of the inputs of one job, and their results.
#[derive(Debug, Default)]
pub(crate) struct ContentChecks {
    delimiter: u8,
    /// Accept any contents.
    any: bool,
    /// Whether marks and line ends have no effect on keys, and are not reported.
    quiet: bool,
    /// Do not look at line ends.
    no_ends: bool,
    /// Whether the keys are columns, so that tables are inputs.
    columns: bool,
    /// Results by name of the input.
    known: Mutex<BTreeMap<String, Known>>,
}

/// The result of one input.
#[derive(Debug)]
struct Known {
    mark: bool,
    ends: Option<Ends>,
    mark_noted: bool,
    ends_noted: bool,
    ends_reported: bool,
}

impl ContentChecks {
    /// Checks for inputs with this delimiter. With `any`, all contents are accepted without notes.
    pub(crate) fn new(delimiter: u8, any: bool) -> Self {
        let known = Mutex::default();
        Self { delimiter, any, quiet: false, no_ends: false, columns: false, known }
    }

    /// Does not report marks and line ends: the keys of records do not depend on them.
    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Accepts tables as inputs, if the build reads them.
    pub(crate) fn with_tables(self) -> Self {
        Self { columns: true, ..self }
    }

    /// Returns the format of a file whose rows are records; `None` if its records are lines.
    pub(super) fn table(&self, begin: &[u8]) -> Option<TableKind> {
        let accepts = cfg!(feature = "parquet") && self.columns && !self.any;
        TableKind::of(begin).filter(|_| accepts)
    }

    /// Disables the notes about line ends, for keys without the CR.
    pub(crate) fn without_line_ends(self) -> Self {
        Self { no_ends: true, ..self }
    }

    /// Returns the line delimiter.
    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Checks the first bytes of a file.
    pub(super) fn check(&self, name: &str, begin: &[u8]) -> Result<()> {
        if self.any {
            return Ok(());
        }
        if let Detection::Refused(found) = detect(begin, self.delimiter, true) {
            return Err(found.error(name, self.columns));
        }
        self.keep(name, begin);
        Ok(())
    }

    fn keep(&self, name: &str, begin: &[u8]) {
        let mark = !self.quiet && begin.starts_with(b"\xef\xbb\xbf");
        let ends = if self.delimiter == b'\n' { Ends::of(begin) } else { None };
        // Keys without the CR do not depend on the line ends, unless all lines are one.
        let ends = ends.filter(|ends| *ends == Ends::Cr || !self.quiet && !self.no_ends);
        if mark || ends.is_some() {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let new =
                Known { mark, ends, mark_noted: false, ends_noted: false, ends_reported: false };
            known.entry(name.to_owned()).or_insert(new);
        }
    }

    /// Reports results that have not been reported.
    pub(crate) fn note(&self, progress: &dyn Progress) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (input, known) in known.iter_mut().filter(|(_, input)| !input.ends_reported) {
            known.ends_reported = true;
            if let Some(ends @ (Ends::Lf | Ends::Crlf)) = known.ends {
                progress.note(Note::LineEnds { input, crlf: ends == Ends::Crlf });
            }
        }
        let mut marks = known.iter_mut().filter(|(_, input)| input.mark && !input.mark_noted);
        if let Some((name, first)) = marks.next() {
            first.mark_noted = true;
            let more = marks.map(|(_, input)| input.mark_noted = true).count() as u64;
            progress.note(Note::ByteOrderMark { input: name, more });
        }
        let is_new = |input: &Known| input.ends == Some(Ends::Cr) && !input.ends_noted;
        let mut cr = known.iter_mut().filter(|(_, input)| is_new(input));
        if let Some((name, first)) = cr.next() {
            first.ends_noted = true;
            let more = cr.map(|(_, input)| input.ends_noted = true).count() as u64;
            progress.note(Note::CrLineEnds { input: name, more });
        }
        let mut both = known
            .iter_mut()
            .filter(|(_, input)| input.ends == Some(Ends::Both) && !input.ends_noted);
        if let Some((name, first)) = both.next() {
            first.ends_noted = true;
            let more = both.map(|(_, input)| input.ends_noted = true).count() as u64;
            progress.note(Note::MixedLineEnds { crlf: name, more, lf: name });
        }
        let lf = known.iter().find(|(_, input)| input.ends == Some(Ends::Lf));
        let Some(lf) = lf.map(|(name, _)| name.clone()) else { return };
        let is_new = |input: &Known| input.ends == Some(Ends::Crlf) && !input.ends_noted;
        let mut crlf = known.iter_mut().filter(|(_, input)| is_new(input));
        if let Some((name, first)) = crlf.next() {
            first.ends_noted = true;
            let more = crlf.map(|(_, input)| input.ends_noted = true).count() as u64;
            progress.note(Note::MixedLineEnds { crlf: name, more, lf: &lf });
        }
    }
}

/// A stream whose first bytes are checked as they are read.
pub(super) struct Checked<S> {
    stream: S,
    name: String,
    checks: Arc<ContentChecks>,
    /// The first bytes; `None` after they have been checked.
    begin: Option<Vec<u8>>,
    /// Whether the stream is of files that are followed.
    followed: bool,
}

impl<S: Read> Checked<S> {
    pub(super) fn new(stream: S, name: &str, checks: &Arc<ContentChecks>) -> Self {
        let begin = (!checks.any).then(Vec::new);
        let (name, checks) = (name.to_owned(), Arc::clone(checks));
        Self { stream, name, checks, begin, followed: false }
    }

    /// The same for files that are followed: the errors give other advice.
    pub(super) fn followed(self) -> Self {
        Self { followed: true, ..self }
    }

    /// Checks bytes that were read; empty means the end. Returns whether more bytes are needed before
    /// these may be returned.
    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        let Some(begin) = &mut self.begin else { return Ok(false) };
        begin.extend_from_slice(&bytes[..bytes.len().min(STREAM_WINDOW - begin.len())]);
        let ended = begin.len() == STREAM_WINDOW || bytes.is_empty();
        let detection = detect(begin, self.checks.delimiter, ended);
        if let Detection::Refused(found) = detection {
            return Err(match self.followed {
                true => found.error_of_followed(&self.name),
                false => found.error(&self.name, self.checks.columns),
            });
        }
        if ended {
            self.checks.keep(&self.name, begin);
            self.begin = None;
            return Ok(false);
        }
        Ok(detection == Detection::Undecided)
    }
}

impl<S: Read> Read for Checked<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        loop {
            let got = match self.stream.read(&mut buffer[filled..]) {
                Ok(got) => got,
                // Do not lose the bytes that were already read.
                Err(e) if e.kind() == io::ErrorKind::Interrupted && filled > 0 => continue,
                Err(e) => return Err(e),
            };
            let read = filled..filled + got;
            filled += got;
            let more = self.take(&buffer[read]).map_err(io::Error::other)?;
            if !more || got == 0 || filled == buffer.len() {
                return Ok(filled);
            }
        }
    }
}

impl<S: PollRead> PollRead for Checked<S> {
    fn ready(&mut self) -> bool {
        self.stream.ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Advice, Error, Setting};

    /// A stream that returns a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let few = buffer.len().min(self.1);
            self.0.read(&mut buffer[..few])
        }
    }

    fn read(bytes: &[u8], few: usize) -> io::Result<Vec<u8>> {
        let checks = Arc::new(ContentChecks::new(b'\n', false));
        let mut read = Vec::new();
        Checked::new(Trickle(bytes, few), "-", &checks).read_to_end(&mut read)?;
        Ok(read)
    }

    fn wide<const N: usize>(text: &str, unit: impl Fn(u16) -> [u8; N]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn followed_table_is_refused_as_one() {
        for checks in
            [ContentChecks::new(b'\n', false), ContentChecks::new(b'\n', false).with_tables()]
        {
            let parquet = &b"PAR1\x15\x04\x15\x10"[..];
            let mut checked = Checked::new(parquet, "a", &Arc::new(checks)).followed();
            let error = checked.read_to_end(&mut Vec::new()).unwrap_err().to_string();
            let expected = "a Parquet file, expected lines; it cannot be followed; read it when it is complete";
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn other_formats_are_errors_in_files_and_streams() {
        let text = "first line\nsecond line\n";
        let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x30\x98";
        let utf32: Vec<u8> =
            "\u{feff}one".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        let cases: [(&[u8], &str); 17] = [
            (b"\x02\x21\x4c\x18\0\0\0\0", "lz4"),
            (b"\x1f\x9d\x90ab", "compress"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "7-Zip"),
            (b"PK\x03\x04\x14\0\0\0", "zip"),
            (lzma, "lzma"),
            (b"PAR1\x15\x04\x15\x10", "Parquet"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01", "JPEG"),
            (b"\x7fELF\x02\x01\x01\0", "ELF"),
            (b"SQLite format 3\0\x10\0\x01\x01\0", "SQLite"),
            (b"\x89PETAL\r\n\x01\0", "petal filter"),
            (b"\x89PSEEN\r\n\x01\0", "fingerprints"),
            (&wide(&format!("\u{feff}{text}"), u16::to_le_bytes), "UTF-16"),
            (&wide("\u{feff}\u{4e2d}\u{1f338}", u16::to_be_bytes), "UTF-16"),
            (&wide(text, u16::to_le_bytes), "UTF-16"),
            (&wide(text, u16::to_be_bytes), "UTF-16"),
            (&utf32, "UTF-32"),
        ];
        let any = ContentChecks::new(b'\n', true);
        for (bytes, what) in cases {
            let error = ContentChecks::new(b'\n', false).check("-", bytes).unwrap_err();
            assert!(error.is_input() && error.to_string().contains(what), "{error}");
            for few in [1, 3, 1 << 16] {
                let error = Error::read("-", read(bytes, few).unwrap_err());
                assert!(error.to_string().contains(what), "{few}: {error}");
                assert!(error.advice().contains(&Advice::Enable(Setting::Text)), "{few}: {error}");
            }
            assert!(any.check("-", bytes).is_ok());
        }
    }

    #[test]
    fn text_is_accepted() {
        let long = "line\n".repeat(5000);
        let cases: [&[u8]; 29] = [
            b"",
            b"\n",
            b"P",
            b"PK\n",
            b"PAR1",
            b"PAR1\nPAR2\n",
            b"SQLite format 3 is the format of these files\n",
            b"\x89PNG\n",
            b"SQLite format 3\0and so on, in lines that end in NUL\0",
            b"BZh9",
            b"BZh91AY&SY",
            b"BZh91AY&SYNC and so on, which is all text\nand more of it\n",
            "BZh91AY&SYÄÖÜ äöü\n".as_bytes(),
            b"7zip\n",
            b"]\n",
            b"]\0\0\n",
            b"\xff\n",
            b"\xff\xfe\xdc\xd8ab\n",
            b"a\0b\0c\n",
            b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\n",
            b"\xef\xbb\xbfline\r\n",
            b"\x04\x22\x4d\x18\x0a",
            "Zeile äöü\n中文\n".as_bytes(),
            b"Z\xe4hlen auf Deutsch, in Latin-1\n",
            b"BZh91AY&SY z\xe4hlt bis f\xfcnf, in Latin-1\n",
            b"\xff\xfe sind zwei Buchstaben in Latin-1\nund das ist die zweite Zeile\n",
            b"\xfe\xff sind zwei Buchstaben in Latin-1\nund das ist die zweite Zeile\n",
            b"\xff\xfe ab\nab\n",
            long.as_bytes(),
        ];
        for bytes in cases {
            assert!(ContentChecks::new(b'\n', false).check("-", bytes).is_ok(), "{bytes:?}");
            for few in [1, 3, 1 << 16] {
                assert_eq!(read(bytes, few).unwrap(), bytes, "{few}");
            }
        }
        let list = b"\xff\xfe sind zwei\0Buchstaben in\0Latin-1\0";
        assert!(ContentChecks::new(0, false).check("-", list).is_ok());
        // Lines of one byte that end in NUL.
        let list = b"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0";
        assert!(ContentChecks::new(0, false).check("-", list).is_ok());
        assert!(ContentChecks::new(b'\n', false).check("-", list).is_err());
    }

    #[test]
    fn random_bytes_are_rarely_refused() {
        let mut rng = petal_testkit::rng::Rng::new(5);
        let random = |_| {
            let bytes: Vec<u8> = (0..4096).map(|_| rng.below(256) as u8).collect();
            usize::from(ContentChecks::new(b'\n', false).check("-", &bytes).is_err())
        };
        assert_eq!((0..2000).map(random).sum::<usize>(), 0);
    }

    /// Keeps notes as text.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Progress for Notes {
        fn note(&self, note: Note<'_>) {
            if !matches!(note, Note::LineEnds { .. }) {
                self.0.lock().unwrap().push(format!("{note:?}"));
            }
        }
    }

    #[test]
    fn marks_and_line_ends_are_noted_once() {
        let notes = Notes::default();
        let noted = || notes.0.lock().unwrap().drain(..).collect::<Vec<_>>().join(" ");
        let checks = ContentChecks::new(b'\n', false);
        let check = |name: &str, text: &str| checks.check(name, text.as_bytes()).unwrap();
        check("a", "one\r\ntwo\r\n");
        check("b", "\u{feff}no line end");
        checks.note(&notes);
        assert_eq!(noted(), "ByteOrderMark { input: \"b\", more: 0 }");
        check("c", "one\ntwo\n");
        check("d", "\u{feff}one\r\n");
        checks.note(&notes);
        let mark = "ByteOrderMark { input: \"d\", more: 0 }";
        let ends = "MixedLineEnds { crlf: \"a\", more: 1, lf: \"c\" }";
        assert_eq!(noted(), format!("{mark} {ends}"));
        check("c", "one\ntwo\n");
        checks.note(&notes);
        assert_eq!(noted(), "");
        check("e", "one\r\ntwo\n");
        checks.note(&notes);
        assert_eq!(noted(), "MixedLineEnds { crlf: \"e\", more: 0, lf: \"e\" }");
        // Also if the CR is no part of keys.
        for checks in [
            ContentChecks::new(b'\n', false),
            ContentChecks::new(b'\n', false).quiet(),
            ContentChecks::new(b'\n', false).without_line_ends(),
        ] {
            checks.check("f", b"one\rtwo\r").unwrap();
            checks.check("g", b"one\r").unwrap();
            checks.note(&notes);
            assert_eq!(noted(), "CrLineEnds { input: \"f\", more: 0 }");
        }
        // NUL ends lines: CR and LF are bytes like any other.
        let checks = ContentChecks::new(0, false);
        checks.check("a", b"one\r\n\0").unwrap();
        checks.check("b", b"one\n\0").unwrap();
        checks.note(&notes);
        assert_eq!(noted(), "");
    }
}
