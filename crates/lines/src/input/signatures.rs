//! Recognizes formats that are not lines by the first bytes of an input.

use super::compression::{Codec, Magic};
use crate::error::{Advice, Error, Setting};

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
    /// A command that prints the lines of the file at `{}`.
    Command {
        of_file: &'static str,
        /// The same for standard input; `None` if the program needs a file.
        of_stdin: Option<&'static str>,
    },
    /// Other advice.
    Advice(&'static str),
    /// The records are rows: compare them by columns.
    Columns,
}

impl NotLines {
    /// Returns the error; `columns`: the keys are columns. `within`: the compression of the input.
    pub(super) fn error(self, name: &str, columns: bool, within: Option<Codec>) -> Error {
        let Self { what, remedy } = self;
        let advice = match remedy {
            Remedy::Command { of_file, of_stdin } => command(name, of_file, of_stdin, within),
            Remedy::Advice(advice) => advice.to_owned(),
            Remedy::Columns if cfg!(feature = "parquet") && (columns || within.is_some()) => {
                match within {
                    Some(codec) if name != "-" && !is_address(name) => {
                        let whole = quoted(&format!("{name}.table"));
                        let unpack = format!("{} -dc {}", codec.program(), quoted(name));
                        format!("{NO_PIPE}: `{unpack} > {whole}`")
                    }
                    _ => NO_PIPE.to_owned(),
                }
            }
            Remedy::Columns => {
                let read = match cfg!(feature = "parquet") {
                    true => Advice::Specify(Setting::Columns),
                    false => Advice::BuildWithTables,
                };
                return Error::input(name, format!("is {what}, expected lines"))
                    .advise(read)
                    .advise(Advice::Enable(Setting::Text));
            }
        };
        Error::not_lines(name, what, advice)
    }

    /// Returns the error of a file that is to be followed.
    pub(super) fn error_of_followed(self, name: &str) -> Error {
        match self.remedy {
            Remedy::Columns => Error::not_lines(name, self.what, NO_FOLLOWING.to_owned()),
            _ => self.error(name, false, None),
        }
    }
}

/// Returns the advice to run a command, which works as it is pasted. What is compressed is decompressed
/// first, to a file if the program reads no pipe.
fn command(name: &str, of_file: &str, of_stdin: Option<&str>, within: Option<Codec>) -> String {
    let file = quoted(if is_address(name) { "FILE" } else { name });
    let of = |file: &str| of_file.replace("{}", file);
    let unpack = within.map(|codec| format!("{} -dc", codec.program()));
    let pipe = match (name, of_stdin, unpack) {
        ("-", Some(command), None) => return format!("pipe it through `{command}`"),
        ("-", Some(command), Some(unpack)) => {
            return format!("pipe it through `{unpack} | {command}`");
        }
        ("-", None, None) => {
            return format!("save it to FILE, and pipe in the output of `{}`", of("FILE"));
        }
        ("-", None, Some(unpack)) => {
            let whole = of("FILE");
            return format!("save it with `{unpack} > FILE`, and pipe in the output of `{whole}`");
        }
        (_, _, None) => of(&file),
        (_, Some(command), Some(unpack)) => format!("{unpack} {file} | {command}"),
        (_, None, Some(unpack)) => {
            let whole = quoted(&format!("{name}.unpacked"));
            format!("{unpack} {file} > {whole} && {}", of(&whole))
        }
    };
    match is_address(name) {
        true => format!("download it to FILE, and pipe in the output of `{pipe}`"),
        false => format!("pipe in the output of `{pipe}`"),
    }
}

/// Returns whether a name is the address of an object, which other programs do not read.
fn is_address(name: &str) -> bool {
    name.contains("://")
}

/// What to do about tables that are to be followed.
const NO_FOLLOWING: &str = "it cannot be followed; read it when it is complete";

/// Returns a file name as a shell reads it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:=@%".contains(c);
    let name = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    if name.chars().all(plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// A format that a program reads from a file or from standard input.
const fn piped(what: &'static str, of_file: &'static str, of_stdin: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Command { of_file, of_stdin: Some(of_stdin) } }
}

/// A format that a program reads from a file.
const fn archive(what: &'static str, of_file: &'static str) -> NotLines {
    NotLines { what, remedy: Remedy::Command { of_file, of_stdin: None } }
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

const LINES: &str = "name a file of lines in its place";

const LZMA: NotLines = piped("compressed with lzma", "xz -dc {}", "xz -dc");
const COMPRESS: NotLines = piped("compressed with compress", "gzip -dc {}", "gzip -dc");
const LZIP: NotLines = piped("compressed with lzip", "lzip -dc {}", "lzip -dc");
const SNAPPY: NotLines = piped("compressed with snappy", "snzip -dc {}", "snzip -dc");
const SEVEN_ZIP: NotLines = archive("a 7-Zip archive", "7z x -so {}");
const ZIP: NotLines = archive("a zip archive", "unzip -p {}");
const RAR: NotLines = archive("a RAR archive", "unrar p -inul {}");
const AR: NotLines = archive("an ar archive", "ar p {}");
const TAR: NotLines = piped("a tar archive", "tar -xOf {}", "tar -xOf -");
const PARQUET: NotLines = table("a Parquet file");
const ARROW: NotLines = table("an Arrow file");
const ARROW_STREAM: NotLines = table("an Arrow stream");
const FEATHER: NotLines =
    binary("a Feather file of version 1", "write it again as Feather version 2 or Parquet");
const AVRO: NotLines = binary("an Avro file", "write its records as CSV or JSON first");
const ORC: NotLines = binary("an ORC file", "write its rows as CSV, JSON or Parquet first");
const NPY: NotLines = binary("a NumPy array", "write its elements to a file of lines first");
const FILTER: NotLines = binary("a petal filter", LINES);
const FINGERPRINT_LOG: NotLines = binary("a petal file of exact fingerprints", LINES);
const PNG: NotLines = binary("a PNG image", LINES);
const JPEG: NotLines = binary("a JPEG image", LINES);
const GIF: NotLines = binary("a GIF image", LINES);
const PDF: NotLines = piped("a PDF document", "pdftotext {} -", "pdftotext - -");
const OFFICE: NotLines =
    binary("a document of Microsoft Office", "save it as CSV or as text first");
const ELF: NotLines = binary("a program or library (ELF)", LINES);
const SQLITE: NotLines = binary("an SQLite database", "write the column to a file of lines first");
const UTF16: NotLines =
    piped("text in UTF-16", "iconv -f UTF-16 -t UTF-8 {}", "iconv -f UTF-16 -t UTF-8");
const UTF16_LE: NotLines =
    piped("text in UTF-16", "iconv -f UTF-16LE -t UTF-8 {}", "iconv -f UTF-16LE -t UTF-8");
const UTF16_BE: NotLines =
    piped("text in UTF-16", "iconv -f UTF-16BE -t UTF-8 {}", "iconv -f UTF-16BE -t UTF-8");
const UTF32: NotLines =
    piped("text in UTF-32", "iconv -f UTF-32 -t UTF-8 {}", "iconv -f UTF-32 -t UTF-8");

/// Returns the format of compressed data, which is not decompressed twice.
fn compressed(codec: Codec) -> NotLines {
    match codec {
        Codec::Gzip => piped("compressed twice, inside with gzip", "gzip -dc {}", "gzip -dc"),
        Codec::Zstd => piped("compressed twice, inside with zstd", "zstd -dc {}", "zstd -dc"),
        Codec::Xz => piped("compressed twice, inside with xz", "xz -dc {}", "xz -dc"),
        Codec::Bzip2 => piped("compressed twice, inside with bzip2", "bzip2 -dc {}", "bzip2 -dc"),
        Codec::Lz4 => piped("compressed twice, inside with lz4", "lz4 -dc {}", "lz4 -dc"),
        Codec::Skippable => {
            piped("compressed twice, inside with zstd or lz4", "zstd -dc {}", "zstd -dc")
        }
    }
}

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
const SIGNATURES: [Signature; 28] = [
    (COMPRESS, &[(0x1f, 0xff), (0x9d, 0xff), (0x80, 0xe0)], certain),
    (SEVEN_ZIP, bytes!(0x37 0x7a 0xbc 0xaf 0x27 0x1c), certain),
    (ZIP, bytes!(b'P' b'K' 0x03 0x04), certain),
    (ZIP, bytes!(b'P' b'K' 0x05 0x06), certain),
    (LZMA, bytes!(0x5d 0x00 0x00), has_lzma_sizes),
    (LZIP, bytes!(b'L' b'Z' b'I' b'P' 0x01), certain),
    (SNAPPY, bytes!(0xff 0x06 0x00 0x00 b's' b'N' b'a' b'P' b'p' b'Y'), certain),
    (
        RAR,
        &[
            (b'R', 0xff),
            (b'a', 0xff),
            (b'r', 0xff),
            (b'!', 0xff),
            (0x1a, 0xff),
            (0x07, 0xff),
            (0x00, 0xfe),
        ],
        certain,
    ),
    (AR, bytes!(b'!' b'<' b'a' b'r' b'c' b'h' b'>' b'\n'), has_ar_member),
    (TAR, &[], is_tar),
    (AVRO, bytes!(b'O' b'b' b'j' 0x01), certain),
    (ORC, bytes!(b'O' b'R' b'C'), has_control_bytes),
    // The version is below 4.
    (
        NPY,
        &[
            (0x93, 0xff),
            (b'N', 0xff),
            (b'U', 0xff),
            (b'M', 0xff),
            (b'P', 0xff),
            (b'Y', 0xff),
            (0x00, 0xfc),
        ],
        certain,
    ),
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
    // A segment for applications (JFIF, Exif, ICC profile …), or of tables shorter than 256 bytes.
    (JPEG, &[(0xff, 0xff), (0xd8, 0xff), (0xff, 0xff), (0xe0, 0xf0)], has_segment_name),
    (JPEG, bytes!(0xff 0xd8 0xff 0xdb 0x00), certain),
    (GIF, bytes!(b'G' b'I' b'F' b'8' b'7' b'a'), has_gif_screen),
    (GIF, bytes!(b'G' b'I' b'F' b'8' b'9' b'a'), has_gif_screen),
    (PDF, bytes!(b'%' b'P' b'D' b'F' b'-'), has_pdf_object),
    (OFFICE, bytes!(0xd0 0xcf 0x11 0xe0 0xa1 0xb1 0x1a 0xe1), certain),
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

/// A member of an ar archive has a header of 60 bytes in one line, which ends in a backtick.
fn has_ar_member(begin: &[u8]) -> Option<bool> {
    const MEMBER: std::ops::Range<usize> = 8..68;
    match begin.get(MEMBER) {
        Some(header) => Some(header.ends_with(b"`\n")),
        None if begin[MEMBER.start..].contains(&b'\n') => Some(false),
        None => None,
    }
}

/// Bytes of a header in a tar archive.
const TAR_HEADER: usize = 512;

/// A tar archive begins with a header: a name and its padding, a mode in octal digits, and
/// later the checksum of all bytes, in which its own 8 bytes count as spaces.
fn is_tar(begin: &[u8]) -> Option<bool> {
    const NAME: usize = 100;
    const MODE: usize = 108;
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    let (name, rest) = begin.split_at(begin.len().min(NAME));
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let (name, padding) = name.split_at(length);
    let mode = &rest[..rest.len().min(MODE - NAME)];
    let is_name = begin.first() != Some(&0) && name.iter().all(|byte| *byte >= b' ');
    let is_mode = mode.iter().all(|byte| matches!(byte, b'0'..=b'7' | b' ' | 0));
    if !is_name || !is_mode || padding.iter().any(|byte| *byte != 0) {
        return Some(false);
    }
    let header = begin.get(..TAR_HEADER)?;
    let digits = header[CHECKSUM].trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let checksum = str::from_utf8(&digits[..end]).ok();
    let checksum = checksum.and_then(|digits| u32::from_str_radix(digits, 8).ok());
    let all: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let own: u32 = header[CHECKSUM].iter().map(|byte| u32::from(*byte)).sum();
    Some(checksum == Some(all - own + CHECKSUM.len() as u32 * u32::from(b' ')))
}

/// What follows the magic number has control bytes, which text does not have.
fn has_control_bytes(begin: &[u8]) -> Option<bool> {
    const WINDOW: usize = 64;
    let window = &begin[..begin.len().min(WINDOW)];
    let is_control = |byte: &u8| matches!(byte, 1..=8 | 14..=26 | 28..=31);
    match window.iter().any(is_control) {
        true => Some(true),
        false => (begin.len() >= WINDOW).then_some(false),
    }
}

/// A segment for applications has a name that ends in NUL, after its length.
fn has_segment_name(begin: &[u8]) -> Option<bool> {
    const NAME: usize = 6;
    const LONGEST: usize = 32;
    let name = begin.get(NAME..)?;
    let length = name.iter().position(|byte| !byte.is_ascii_graphic() && *byte != b' ');
    match length {
        Some(length) => Some(length >= 3 && name[length] == 0),
        None => (name.len() > LONGEST).then_some(false),
    }
}

/// The screen of a GIF image has a width and a height of two bytes, below 8,192, and an aspect ratio,
/// which is not used.
fn has_gif_screen(begin: &[u8]) -> Option<bool> {
    let [_, width, _, height, _, _, ratio] = begin.get(6..13)?.first_chunk().copied()?;
    Some(width < 0x20 && height < 0x20 && ratio == 0)
}

/// After the first line of a PDF comes a comment of bytes that are not text, or the first object.
fn has_pdf_object(begin: &[u8]) -> Option<bool> {
    let end = begin.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    let Some(end) = end else { return (begin.len() > 16).then_some(false) };
    let rest = begin[end..].trim_ascii_start();
    if let Some(comment) = rest.strip_prefix(b"%") {
        let bytes = comment.get(..4)?;
        return Some(bytes.iter().all(|byte| *byte >= 0x80));
    }
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let words: Vec<_> = rest.splitn(4, |byte| matches!(byte, b' ' | b'\r' | b'\n')).collect();
    match words[..] {
        [number, generation, b"obj", _] => Some(is_number(number) && is_number(generation)),
        _ => (rest.len() > 24 || !rest.is_empty() && !rest[0].is_ascii_digit()).then_some(false),
    }
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
/// bytes. `unpacked`: they are decompressed, so that data that is compressed is so twice.
pub(super) fn detect(begin: &[u8], delimiter: u8, ended: bool, unpacked: bool) -> Detection {
    let mut undecided = false;
    let magic = if ended { Magic::of_whole(begin) } else { Magic::of(begin) };
    match magic {
        Magic::Is(codec) if unpacked => return Detection::Refused(compressed(codec)),
        Magic::Maybe if unpacked => undecided = true,
        _ => {}
    }
    for (found, pattern, confirm) in SIGNATURES {
        if !begin.iter().zip(pattern).all(|(byte, (value, mask))| byte & mask == *value) {
            continue;
        }
        // A record that ends in NUL begins like a tar archive. A stream does not hold it back for the
        // rest of a header, which is looked at when it has come.
        if found == TAR && delimiter == 0 && !ended && begin.len() < TAR_HEADER {
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
    let (max, few) = (pairs - pairs / 10, pairs / 10);
    match (zeros(0), zeros(1)) {
        (first, second) if first <= few && second >= max => Wide::Is(UTF16_LE),
        (first, second) if first >= max && second <= few => Wide::Is(UTF16_BE),
        _ => Wide::No,
    }
}
