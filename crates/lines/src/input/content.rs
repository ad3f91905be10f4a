//! The first bytes of an input: formats that are not lines, byte order marks, line ends.
//!
//! An input whose first bytes are certainly those of a compressed file that is not decompressed
//! here, of an archive, of a Parquet file, of a petal filter, or of text in UTF-16 or UTF-32 is
//! refused: read as lines it would give a wrong answer without an error. A UTF-8 byte order mark,
//! and CRLF line ends beside inputs with LF, are noted: they may be what the user wants.
//!
//! Invariant: no text in UTF-8 or in an 8-bit encoding is refused. Every signature below has a
//! byte that text does not have, or is confirmed by one behind it. The exception is a text of fewer
//! than 16 bytes that begins with a byte order mark of UTF-16, is valid UTF-16, and has no zero
//! byte: it is taken for UTF-16.
//!
//! Cost: one look at the first 64 KiB of a file, at the first 4 KiB of a stream.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::stream::Wait;
use crate::error::{About, Error, Result};
use crate::progress::{Note, Progress};

/// Bytes of a stream that are looked at.
const STREAM_WINDOW: usize = 4 << 10;

/// A format that is not lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NotLines {
    /// What the input is.
    what: &'static str,
    remedy: Remedy,
}

/// How to make lines of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// A command that prints the lines; its last argument is the file.
    Command(&'static str),
    /// Advice in words.
    Advice(&'static str),
}

impl NotLines {
    fn error(self, name: &str) -> Error {
        let Self { what, remedy } = self;
        let advice = match remedy {
            Remedy::Command(command) if name == "-" => format!("pipe it through `{command}`"),
            Remedy::Command(command) => format!("pipe in the output of `{command} {name}`"),
            Remedy::Advice(advice) => advice.to_owned(),
        };
        let name = name.to_owned();
        Error::worded(About::Input, move |names| {
            let text = names.text;
            format!("{name}: is {what}, expected lines; {advice}, or read it as it is with {text}")
        })
    }
}

const fn packed(what: &'static str, command: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Command(command) }
}

const fn binary(what: &'static str, advice: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Advice(advice) }
}

const XZ: NotLines = packed("compressed with xz", "xz -dc");
const LZMA: NotLines = packed("compressed with lzma", "xz -dc");
const BZIP2: NotLines = packed("compressed with bzip2", "bzip2 -dc");
const LZ4: NotLines = packed("compressed with lz4", "lz4 -dc");
const COMPRESS: NotLines = packed("compressed with compress", "gzip -dc");
const SEVEN_ZIP: NotLines = packed("a 7-Zip archive", "7z x -so");
const ZIP: NotLines = packed("a zip archive", "unzip -p");
const PARQUET: NotLines = binary("a Parquet file", "write the column to a file of lines first");
const FILTER: NotLines = binary("a petal filter", "name a file of lines in its place");
const LEDGER: NotLines =
    binary("a petal file of exact fingerprints", "name a file of lines in its place");
const UTF16: NotLines = packed("text in UTF-16", "iconv -f UTF-16 -t UTF-8");
const UTF16_LE: NotLines = packed("text in UTF-16", "iconv -f UTF-16LE -t UTF-8");
const UTF16_BE: NotLines = packed("text in UTF-16", "iconv -f UTF-16BE -t UTF-8");
const UTF32: NotLines = packed("text in UTF-32", "iconv -f UTF-32 -t UTF-8");

/// Whether the bytes behind a signature confirm it; `None`: more bytes are needed.
type Confirm = fn(&[u8]) -> Option<bool>;

/// A signature: bytes, each with a mask, and what confirms them.
type Signature = (NotLines, &'static [(u8, u8)], Confirm);

const fn certain(_: &[u8]) -> Option<bool> {
    Some(true)
}

macro_rules! bytes {
    ($($byte:literal)*) => { &[$(($byte, 0xff)),*] };
}

/// Signatures of formats: those of the programs' own format descriptions.
const SIGNATURES: [Signature; 13] = [
    (XZ, bytes!(0xfd 0x37 0x7a 0x58 0x5a 0x00), certain),
    // The header's version is 1.
    (LZ4, &[(4, 0xff), (0x22, 0xff), (0x4d, 0xff), (0x18, 0xff), (0x40, 0xc0)], certain),
    (LZ4, bytes!(0x02 0x21 0x4c 0x18), certain),
    (COMPRESS, &[(0x1f, 0xff), (0x9d, 0xff), (0x80, 0xe0)], certain),
    (SEVEN_ZIP, bytes!(0x37 0x7a 0xbc 0xaf 0x27 0x1c), certain),
    (ZIP, bytes!(b'P' b'K' 0x03 0x04), certain),
    (ZIP, bytes!(b'P' b'K' 0x05 0x06), certain),
    // A digit for the block size, then the number of a block, all of it printable text.
    (
        BZIP2,
        &[
            (b'B', 0xff),
            (b'Z', 0xff),
            (b'h', 0xff),
            (0x30, 0xf0),
            (0x31, 0xff),
            (0x41, 0xff),
            (0x59, 0xff),
            (0x26, 0xff),
            (0x53, 0xff),
            (0x59, 0xff),
        ],
        has_bzip2_block,
    ),
    // The same of an empty file: the number of its end.
    (
        BZIP2,
        &[
            (b'B', 0xff),
            (b'Z', 0xff),
            (b'h', 0xff),
            (0x30, 0xf0),
            (0x17, 0xff),
            (0x72, 0xff),
            (0x45, 0xff),
        ],
        certain,
    ),
    (LZMA, bytes!(0x5d 0x00 0x00), has_lzma_sizes),
    // A page header or the footer: field 1, an i32 from 0 to 3.
    (
        PARQUET,
        &[(b'P', 0xff), (b'A', 0xff), (b'R', 0xff), (b'1', 0xff), (0x15, 0xff), (0x00, 0xf9)],
        certain,
    ),
    (FILTER, bytes!(0x89 b'P' b'E' b'T' b'A' b'L' 0x0d 0x0a), certain),
    (LEDGER, bytes!(0x89 b'P' b'S' b'E' b'E' b'N' 0x0d 0x0a), certain),
];

/// A bzip2 block: behind its number a checksum of 4 bytes, then a bit that is 0 (obsolete versions
/// could write 1) and a number of 24 bits below 900,000. So the byte after the checksum is a
/// control byte below 7, which text does not have.
fn has_bzip2_block(begin: &[u8]) -> Option<bool> {
    const AFTER_CHECKSUM: usize = 14;
    begin.get(AFTER_CHECKSUM).map(|byte| *byte < 7)
}

/// An lzma header: a dictionary size that encoders write, and a length that is unknown or below
/// 2^40.
fn has_lzma_sizes(begin: &[u8]) -> Option<bool> {
    let dictionary = begin.get(1..5)?.first_chunk().map(|size| u32::from_le_bytes(*size))?;
    let length = begin.get(5..13)?.first_chunk().map(|length| u64::from_le_bytes(*length))?;
    let usual = dictionary >= 1 << 12
        && (dictionary.is_power_of_two()
            || (dictionary / 3).is_power_of_two() && dictionary % 3 == 0);
    Some(usual && (length == u64::MAX || length < 1 << 40))
}

/// The result of a look at the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// A format that is not lines.
    Refused(NotLines),
    /// Lines, as far as these bytes show.
    Lines,
    /// More bytes are needed to decide.
    Undecided,
}

/// Bytes by which text in UTF-16 or UTF-32 is recognised, unless the input is shorter.
const WIDE: usize = 16;

/// Byte order marks of UTF-32 and UTF-16.
const WIDE_MARKS: [&[u8]; 3] = [&[0xff, 0xfe], &[0xfe, 0xff], &[0, 0, 0xfe, 0xff]];

/// Looks at the first bytes of an input whose lines end in `delimiter`; `ended` if they are all
/// that can be looked at.
fn look(begin: &[u8], delimiter: u8, ended: bool) -> Look {
    let mut undecided = false;
    for (found, pattern, confirm) in SIGNATURES {
        if !begin.iter().zip(pattern).all(|(byte, (value, mask))| byte & mask == *value) {
            continue;
        }
        match (begin.len() >= pattern.len()).then(|| confirm(begin)).flatten() {
            Some(true) => return Look::Refused(found),
            Some(false) => {}
            None => undecided = true,
        }
    }
    let may_be_wide = |mark: &&[u8]| begin.iter().zip(*mark).all(|(byte, of_mark)| byte == of_mark);
    if begin.len() < WIDE && !ended {
        undecided |= WIDE_MARKS.iter().any(may_be_wide);
    } else {
        match wide_text(begin, delimiter) {
            Wide::Is(found) => return Look::Refused(found),
            Wide::Maybe => undecided = true,
            Wide::No => {}
        }
    }
    if undecided && !ended { Look::Undecided } else { Look::Lines }
}

/// Whether bytes are text in UTF-16 or UTF-32.
enum Wide {
    Is(NotLines),
    No,
    /// They begin with a mark and are valid, but nothing that only UTF-16 has is among them.
    Maybe,
}

/// Whether the first bytes are text in UTF-16 or UTF-32.
fn wide_text(begin: &[u8], delimiter: u8) -> Wide {
    let words = |size: usize| begin.chunks_exact(size).skip(1);
    let is_utf32 = |of: fn([u8; 4]) -> u32| {
        words(4)
            .all(|word| word.first_chunk().is_some_and(|word| char::from_u32(of(*word)).is_some()))
    };
    // Latin-1 has the marks as letters, and most pairs of its letters are valid UTF-16.
    let utf16 = |of: fn([u8; 2]) -> u16| {
        let units = || words(2).filter_map(|unit| unit.first_chunk()).map(|unit| of(*unit));
        let mut characters = char::decode_utf16(units()).peekable();
        while let Some(character) = characters.next() {
            // The other half of the last character may be behind what there is.
            if character.is_err() && characters.peek().is_some() {
                return Wide::No;
            }
        }
        // Where lines end in NUL, a zero byte shows nothing, but a line end of UTF-16 does.
        let is_proof = |unit: u16| match delimiter {
            0 => unit == u16::from(b'\n'),
            _ => unit.to_le_bytes().contains(&0),
        };
        // Too short for a proof.
        let is_short = begin.len() < WIDE && begin.len().is_multiple_of(2);
        if is_short || units().any(is_proof) { Wide::Is(UTF16) } else { Wide::Maybe }
    };
    match begin {
        [0xff, 0xfe, 0, 0, ..] if is_utf32(u32::from_le_bytes) => return Wide::Is(UTF32),
        [0, 0, 0xfe, 0xff, ..] if is_utf32(u32::from_be_bytes) => return Wide::Is(UTF32),
        [0xff, 0xfe, ..] => return utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => return utf16(u16::from_be_bytes),
        _ => {}
    }
    // Without a mark: nearly every second byte is zero. Lines that end in NUL may look like that.
    if delimiter == 0 || begin.len() < WIDE {
        return Wide::No;
    }
    let pairs = begin.len() / 2;
    let zeros = |odd: usize| begin.chunks_exact(2).filter(|pair| pair[odd] == 0).count();
    let (most, few) = (pairs - pairs / 10, pairs / 10);
    match (zeros(0), zeros(1)) {
        (first, second) if first <= few && second >= most => Wide::Is(UTF16_LE),
        (first, second) if first >= most && second <= few => Wide::Is(UTF16_BE),
        _ => Wide::No,
    }
}

/// How the lines of an input end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Lf,
    Crlf,
}

impl Ends {
    /// The line ends of most lines; `None` without one.
    fn of(begin: &[u8]) -> Option<Self> {
        let (mut lines, mut returns) = (0u64, 0u64);
        for at in memchr::memchr_iter(b'\n', begin) {
            lines += 1;
            returns += u64::from(at > 0 && begin[at - 1] == b'\r');
        }
        (lines > 0).then_some(if returns * 2 > lines { Self::Crlf } else { Self::Lf })
    }
}

/// The contents of the inputs of one job, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    delimiter: u8,
    /// Whether inputs are taken as lines, whatever they look like.
    any: bool,
    /// By name.
    known: Mutex<BTreeMap<String, Known>>,
}

/// What is known of one input.
#[derive(Debug)]
struct Known {
    mark: bool,
    ends: Option<Ends>,
    mark_noted: bool,
    ends_noted: bool,
}

impl Contents {
    /// For inputs with this delimiter. With `any`, nothing is refused and nothing is noted.
    pub(crate) fn new(delimiter: u8, any: bool) -> Self {
        Self { delimiter, any, known: Mutex::default() }
    }

    /// Checks the first bytes of a file.
    pub(super) fn check(&self, name: &str, begin: &[u8]) -> Result<()> {
        if self.any {
            return Ok(());
        }
        if let Look::Refused(found) = look(begin, self.delimiter, true) {
            return Err(found.error(name));
        }
        self.keep(name, begin);
        Ok(())
    }

    fn keep(&self, name: &str, begin: &[u8]) {
        let mark = begin.starts_with(b"\xef\xbb\xbf");
        let ends = if self.delimiter == b'\n' { Ends::of(begin) } else { None };
        if mark || ends.is_some() {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let new = Known { mark, ends, mark_noted: false, ends_noted: false };
            known.entry(name.to_owned()).or_insert(new);
        }
    }

    /// Notes what was found since the last time.
    pub(crate) fn note(&self, progress: &dyn Progress) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marks = known.iter_mut().filter(|(_, input)| input.mark && !input.mark_noted);
        if let Some((name, first)) = marks.next() {
            first.mark_noted = true;
            let more = marks.map(|(_, input)| input.mark_noted = true).count() as u64;
            progress.note(Note::ByteOrderMark { input: name, more });
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
    contents: Arc<Contents>,
    /// The first bytes, until there are enough; `None` when they were checked.
    begin: Option<Vec<u8>>,
}

impl<S: Read> Checked<S> {
    pub(super) fn new(stream: S, name: &str, contents: &Arc<Contents>) -> Self {
        let begin = (!contents.any).then(Vec::new);
        Self { stream, name: name.to_owned(), contents: Arc::clone(contents), begin }
    }

    /// Takes bytes that were read, none at the end; whether more are needed before they may be
    /// used.
    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        let Some(begin) = &mut self.begin else { return Ok(false) };
        begin.extend_from_slice(&bytes[..bytes.len().min(STREAM_WINDOW - begin.len())]);
        let ended = begin.len() == STREAM_WINDOW || bytes.is_empty();
        let look = look(begin, self.contents.delimiter, ended);
        if let Look::Refused(found) = look {
            return Err(found.error(&self.name));
        }
        if ended {
            self.contents.keep(&self.name, begin);
            self.begin = None;
            return Ok(false);
        }
        Ok(look == Look::Undecided)
    }
}

impl<S: Read> Read for Checked<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        loop {
            let got = match self.stream.read(&mut buffer[filled..]) {
                Ok(got) => got,
                // Bytes that are there already must not be lost.
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

impl<S: Wait> Wait for Checked<S> {
    fn ready(&mut self) -> bool {
        self.stream.ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that gives a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let few = buffer.len().min(self.1);
            self.0.read(&mut buffer[..few])
        }
    }

    fn read(bytes: &[u8], few: usize) -> io::Result<Vec<u8>> {
        let contents = Arc::new(Contents::new(b'\n', false));
        let mut read = Vec::new();
        Checked::new(Trickle(bytes, few), "-", &contents).read_to_end(&mut read)?;
        Ok(read)
    }

    fn wide<const N: usize>(text: &str, unit: impl Fn(u16) -> [u8; N]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn other_formats_are_refused_from_a_file_and_from_a_stream() {
        let text = "first line\nsecond line\n";
        let bzip2 = b"BZh91AY&SY\x5a\x55\xc4\x1e\0\0\0\x41\0\0\x10\x20\0\x21\0\x82\xb1w$S\x85\t";
        let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x30\x98";
        let utf32: Vec<u8> =
            "\u{feff}one".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        let cases: [(&[u8], &str); 17] = [
            (b"\xfd7zXZ\0\0\x04", "xz"),
            (b"\x04\x22\x4d\x18\x64\x40\xa7", "lz4"),
            (b"\x02\x21\x4c\x18\0\0\0\0", "lz4"),
            (b"\x1f\x9d\x90ab", "compress"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "7-Zip"),
            (b"PK\x03\x04\x14\0\0\0", "zip"),
            (bzip2, "bzip2"),
            (b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0", "bzip2"),
            (lzma, "lzma"),
            (b"PAR1\x15\x04\x15\x10", "Parquet"),
            (b"\x89PETAL\r\n\x01\0", "petal filter"),
            (b"\x89PSEEN\r\n\x01\0", "fingerprints"),
            (&wide(&format!("\u{feff}{text}"), u16::to_le_bytes), "UTF-16"),
            (&wide("\u{feff}\u{4e2d}\u{1f338}", u16::to_be_bytes), "UTF-16"),
            (&wide(text, u16::to_le_bytes), "UTF-16"),
            (&wide(text, u16::to_be_bytes), "UTF-16"),
            (&utf32, "UTF-32"),
        ];
        let any = Contents::new(b'\n', true);
        for (bytes, what) in cases {
            let error = Contents::new(b'\n', false).check("-", bytes).unwrap_err();
            assert!(error.is_input() && error.to_string().contains(what), "{error}");
            for few in [1, 3, 1 << 16] {
                let error = Error::read("-", read(bytes, few).unwrap_err()).to_string();
                assert!(error.contains(what) && error.contains("--text"), "{few}: {error}");
            }
            assert!(any.check("-", bytes).is_ok());
        }
    }

    #[test]
    fn text_is_not_refused() {
        let long = "line\n".repeat(5000);
        let cases: [&[u8]; 26] = [
            b"",
            b"\n",
            b"P",
            b"PK\n",
            b"PAR1",
            b"PAR1\nPAR2\n",
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
            assert!(Contents::new(b'\n', false).check("-", bytes).is_ok(), "{bytes:?}");
            for few in [1, 3, 1 << 16] {
                assert_eq!(read(bytes, few).unwrap(), bytes, "{few}");
            }
        }
        let list = b"\xff\xfe sind zwei\0Buchstaben in\0Latin-1\0";
        assert!(Contents::new(0, false).check("-", list).is_ok());
        // Lines of one byte that end in NUL.
        let list = b"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0";
        assert!(Contents::new(0, false).check("-", list).is_ok());
        assert!(Contents::new(b'\n', false).check("-", list).is_err());
    }

    #[test]
    fn random_bytes_are_hardly_ever_refused() {
        let mut rng = petal_testkit::rng::Rng::new(5);
        let random = |_| {
            let bytes: Vec<u8> = (0..4096).map(|_| rng.below(256) as u8).collect();
            usize::from(Contents::new(b'\n', false).check("-", &bytes).is_err())
        };
        assert_eq!((0..2000).map(random).sum::<usize>(), 0);
    }

    /// Keeps notes as text.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Progress for Notes {
        fn note(&self, note: Note<'_>) {
            self.0.lock().unwrap().push(format!("{note:?}"));
        }
    }

    #[test]
    fn marks_and_line_ends_are_noted_once() {
        let notes = Notes::default();
        let noted = || notes.0.lock().unwrap().drain(..).collect::<Vec<_>>().join(" ");
        let contents = Contents::new(b'\n', false);
        let check = |name: &str, text: &str| contents.check(name, text.as_bytes()).unwrap();
        check("a", "one\r\ntwo\r\n");
        check("b", "\u{feff}no line end");
        contents.note(&notes);
        assert_eq!(noted(), "ByteOrderMark { input: \"b\", more: 0 }");
        check("c", "one\ntwo\n");
        check("d", "\u{feff}one\r\n");
        contents.note(&notes);
        let mark = "ByteOrderMark { input: \"d\", more: 0 }";
        let ends = "MixedLineEnds { crlf: \"a\", more: 1, lf: \"c\" }";
        assert_eq!(noted(), format!("{mark} {ends}"));
        check("c", "one\ntwo\n");
        contents.note(&notes);
        assert_eq!(noted(), "");
        // NUL ends lines: CR and LF are bytes like any other.
        let contents = Contents::new(0, false);
        contents.check("a", b"one\r\n\0").unwrap();
        contents.check("b", b"one\n\0").unwrap();
        contents.note(&notes);
        assert_eq!(noted(), "");
    }
}
