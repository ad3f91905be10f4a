//! Recognizes formats that are not lines by the first bytes of an input.

use crate::error::{Error, ErrorKind};

/// A format that is not lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotLines {
    /// Name of the format, as in "is …".
    what: &'static str,
    remedy: Remedy,
}

/// How to convert the input to lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// A command that prints the lines; the file is its last argument.
    Command(&'static str),
    /// Other advice.
    Advice(&'static str),
    /// The records are rows: compare them by columns.
    Columns,
}

impl NotLines {
    /// Returns the error; `columns`: the keys are columns.
    pub(super) fn error(self, name: &str, columns: bool) -> Error {
        let Self { what, remedy } = self;
        let advice = match remedy {
            Remedy::Command(command) if name == "-" => format!("pipe it through `{command}`"),
            Remedy::Command(command) => {
                format!("pipe in the output of `{command} {}`", quoted(name))
            }
            Remedy::Advice(advice) => advice.to_owned(),
            Remedy::Columns if columns && cfg!(feature = "parquet") => NO_PIPE.to_owned(),
            Remedy::Columns => {
                let (input, format) = (name.to_owned(), what);
                return ErrorKind::TableWithoutColumns { input, format }.into();
            }
        };
        Error::not_lines(name, what, advice)
    }

    /// Returns the error of a file that is to be followed.
    pub(super) fn error_of_followed(self, name: &str) -> Error {
        match self.remedy {
            Remedy::Columns => Error::not_lines(name, self.what, NO_FOLLOWING.to_owned()),
            _ => self.error(name, false),
        }
    }
}

/// What to do about tables that are to be followed.
const NO_FOLLOWING: &str = "it cannot be followed; read it when it is complete";

/// Returns a file name as a shell reads it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:=@%".contains(c);
    let name = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    if name.chars().all(plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

const fn compressed(what: &'static str, command: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Command(command) }
}

const fn table(what: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Columns }
}

/// What to do about tables that are compressed as a whole, or come through a pipe.
const NO_PIPE: &str =
    "save it to a file that is not compressed, because its parts are read by position";

const fn binary(what: &'static str, advice: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Advice(advice) }
}

const LZMA: NotLines = compressed("compressed with lzma", "xz -dc");
const LZ4_LEGACY: NotLines = compressed("compressed with lz4 in its legacy format", "lz4 -dc");
const COMPRESS: NotLines = compressed("compressed with compress", "gzip -dc");
const SEVEN_ZIP: NotLines = compressed("a 7-Zip archive", "7z x -so");
const ZIP: NotLines = compressed("a zip archive", "unzip -p");
const PARQUET: NotLines = table("a Parquet file");
const ARROW: NotLines = table("an Arrow file");
const ARROW_STREAM: NotLines = table("an Arrow stream");
const FEATHER: NotLines =
    binary("a Feather file of version 1", "write it again as Feather version 2 or Parquet");
const FILTER: NotLines = binary("a petal filter", "name a file of lines in its place");
const FINGERPRINT_LOG: NotLines =
    binary("a petal file of exact fingerprints", "name a file of lines in its place");
const PNG: NotLines = binary("a PNG image", "name a file of lines in its place");
const JPEG: NotLines = binary("a JPEG image", "name a file of lines in its place");
const ELF: NotLines = binary("a program or library (ELF)", "name a file of lines in its place");
const SQLITE: NotLines = binary("an SQLite database", "write the column to a file of lines first");
const UTF16: NotLines = compressed("text in UTF-16", "iconv -f UTF-16 -t UTF-8");
const UTF16_LE: NotLines = compressed("text in UTF-16", "iconv -f UTF-16LE -t UTF-8");
const UTF16_BE: NotLines = compressed("text in UTF-16", "iconv -f UTF-16BE -t UTF-8");
const UTF32: NotLines = compressed("text in UTF-32", "iconv -f UTF-32 -t UTF-8");

/// Returns whether later bytes confirm a signature; `None` if more bytes are needed.
type Confirm = fn(&[u8]) -> Option<bool>;

/// A format, its first bytes with masks, and the confirmation.
type Signature = (NotLines, &'static [(u8, u8)], Confirm);

const fn certain(_: &[u8]) -> Option<bool> {
    Some(true)
}

macro_rules! bytes {
    ($($byte:literal)*) => { &[$(($byte, 0xff)),*] };
}

/// Signatures from the format descriptions of the programs.
const SIGNATURES: [Signature; 16] = [
    (LZ4_LEGACY, bytes!(0x02 0x21 0x4c 0x18), certain),
    (COMPRESS, &[(0x1f, 0xff), (0x9d, 0xff), (0x80, 0xe0)], certain),
    (SEVEN_ZIP, bytes!(0x37 0x7a 0xbc 0xaf 0x27 0x1c), certain),
    (ZIP, bytes!(b'P' b'K' 0x03 0x04), certain),
    (ZIP, bytes!(b'P' b'K' 0x05 0x06), certain),
    (LZMA, bytes!(0x5d 0x00 0x00), has_lzma_sizes),
    // A page header or the footer: field 1, an i32 from 0 to 3.
    (
        PARQUET,
        &[(b'P', 0xff), (b'A', 0xff), (b'R', 0xff), (b'1', 0xff), (0x15, 0xff), (0x00, 0xf9)],
        certain,
    ),
    (ARROW, bytes!(b'A' b'R' b'R' b'O' b'W' b'1' 0x00 0x00), certain),
    // A continuation marker, a length below 64 KiB, and the offset of a flatbuffer's root.
    (
        ARROW_STREAM,
        &[
            (0xff, 0xff),
            (0xff, 0xff),
            (0xff, 0xff),
            (0xff, 0xff),
            (0x00, 0x00),
            (0x00, 0x00),
            (0x00, 0xff),
            (0x00, 0xff),
            (0x00, 0x00),
            (0x00, 0xff),
            (0x00, 0xff),
            (0x00, 0xff),
        ],
        certain,
    ),
    (FEATHER, bytes!(b'F' b'E' b'A' b'1' 0x00 0x00 0x00 0x00), certain),
    (FILTER, bytes!(0x89 b'P' b'E' b'T' b'A' b'L' 0x0d 0x0a), certain),
    (FINGERPRINT_LOG, bytes!(0x89 b'P' b'S' b'E' b'E' b'N' 0x0d 0x0a), certain),
    // The first chunk of an image is IHDR with 13 bytes.
    (PNG, bytes!(0x89 b'P' b'N' b'G' 0x0d 0x0a 0x1a 0x0a), certain),
    // The JFIF segment has 16 bytes.
    (JPEG, bytes!(0xff 0xd8 0xff 0xe0 0x00 0x10), certain),
    // The class is 1 or 2: 32 or 64 bits.
    (ELF, &[(0x7f, 0xff), (b'E', 0xff), (b'L', 0xff), (b'F', 0xff), (0x00, 0xfc)], certain),
    (
        SQLITE,
        bytes!(b'S' b'Q' b'L' b'i' b't' b'e' b' ' b'f' b'o' b'r' b'm' b'a' b't'),
        has_sqlite_versions,
    ),
];

/// An SQLite header has the versions for writing and reading, which are 1 or 2, after its name and
/// the page size.
fn has_sqlite_versions(begin: &[u8]) -> Option<bool> {
    if begin.get(13..16).is_some_and(|rest| rest != b" 3\0") {
        return Some(false);
    }
    begin.get(18..20).map(|versions| versions.iter().all(|version| matches!(version, 1 | 2)))
}

/// An lzma header has a dictionary size that encoders write, and a length that is unknown or below
/// 2^40.
fn has_lzma_sizes(begin: &[u8]) -> Option<bool> {
    let dictionary = begin.get(1..5)?.first_chunk().map(|size| u32::from_le_bytes(*size))?;
    let length = begin.get(5..13)?.first_chunk().map(|length| u64::from_le_bytes(*length))?;
    let usual = dictionary >= 1 << 12
        && (dictionary.is_power_of_two()
            || (dictionary / 3).is_power_of_two() && dictionary % 3 == 0);
    Some(usual && (length == u64::MAX || length < 1 << 40))
}

/// The result of checking the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detection {
    /// A format that is not lines.
    Refused(NotLines),
    /// No signature matches.
    Lines,
    /// More bytes are needed to decide.
    Undecided,
}

/// Bytes needed to recognize UTF-16 or UTF-32, unless the input is shorter.
const WIDE: usize = 16;

/// Byte order marks of UTF-32 and UTF-16.
const WIDE_MARKS: [&[u8]; 3] = [&[0xff, 0xfe], &[0xfe, 0xff], &[0, 0, 0xfe, 0xff]];

/// Checks the first bytes of an input whose lines end in `delimiter`; `ended`: there are no more
/// bytes.
pub(super) fn detect(begin: &[u8], delimiter: u8, ended: bool) -> Detection {
    let mut undecided = false;
    for (found, pattern, confirm) in SIGNATURES {
        if !begin.iter().zip(pattern).all(|(byte, (value, mask))| byte & mask == *value) {
            continue;
        }
        match (begin.len() >= pattern.len()).then(|| confirm(begin)).flatten() {
            Some(true) => return Detection::Refused(found),
            Some(false) => {}
            None => undecided = true,
        }
    }
    let may_be_wide = |mark: &&[u8]| begin.iter().zip(*mark).all(|(byte, of_mark)| byte == of_mark);
    if begin.len() < WIDE && !ended {
        undecided |= WIDE_MARKS.iter().any(may_be_wide);
    } else {
        match wide_text(begin, delimiter) {
            Wide::Is(found) => return Detection::Refused(found),
            Wide::Maybe => undecided = true,
            Wide::No => {}
        }
    }
    if undecided && !ended { Detection::Undecided } else { Detection::Lines }
}

/// Whether bytes are text in UTF-16 or UTF-32.
enum Wide {
    Is(NotLines),
    No,
    /// A byte order mark and valid UTF-16, but nothing that only UTF-16 has.
    Maybe,
}

/// Whether the first bytes are text in UTF-16 or UTF-32.
fn wide_text(begin: &[u8], delimiter: u8) -> Wide {
    let words = |size: usize| begin.chunks_exact(size).skip(1);
    let is_utf32 = |of: fn([u8; 4]) -> u32| {
        words(4)
            .all(|word| word.first_chunk().is_some_and(|word| char::from_u32(of(*word)).is_some()))
    };
    // The byte order marks are letters in Latin-1, and most pairs of its letters are valid UTF-16.
    let utf16 = |of: fn([u8; 2]) -> u16| {
        let units = || words(2).filter_map(|unit| unit.first_chunk()).map(|unit| of(*unit));
        let mut characters = char::decode_utf16(units()).peekable();
        while let Some(character) = characters.next() {
            // The last character may be cut.
            if character.is_err() && characters.peek().is_some() {
                return Wide::No;
            }
        }
        // If lines end in NUL, a zero byte proves nothing, but a UTF-16 line feed does.
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
    // Without a mark: nearly every second byte is zero, which lines that end in NUL may have too.
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
