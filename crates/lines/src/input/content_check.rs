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

use std::io::{self, Read};
use std::sync::Arc;

use super::compression::Codec;
use super::left_out::LeftOutRecords;
use super::signatures::{Detection, detect};
use super::spellings::Spellings;
use crate::error::Result;
use crate::keys::{SeenSpelling, Spelling};
use crate::poll_read::PollRead;
use crate::progress::Progress;
use crate::tables::TableKind;

/// Bytes at the start of a stream that are checked.
const STREAM_WINDOW: usize = 4 << 10;

/// Returns whether a text has CR, but no LF, so that everything is one line. A CR that may belong to CRLF
/// does not count.
fn is_one_line_with_cr(begin: &[u8]) -> bool {
    let cr = memchr::memchr(b'\r', begin).filter(|at| at + 1 < begin.len());
    cr.is_some() && memchr::memchr(b'\n', begin).is_none()
}

/// The content checks of the inputs of one job, and their results.
#[derive(Debug, Default)]
pub(crate) struct ContentChecks {
    delimiter: u8,
    /// Accept any contents.
    any: bool,
    /// Whether byte order marks have no effect on keys, and are not reported.
    quiet: bool,
    /// Whether keys are lines, so that the first bytes show how they end.
    lines: bool,
    /// Whether the keys are columns, so that tables are inputs.
    columns: bool,
    /// Results of all inputs.
    spellings: Spellings,
    /// The records that are left out of all inputs.
    left_out: LeftOutRecords,
}

impl ContentChecks {
    /// Checks for inputs with this delimiter. With `any`, all contents are accepted without notes.
    pub(crate) fn new(delimiter: u8, any: bool) -> Self {
        Self { delimiter, any, ..Self::default() }
    }

    /// Adds the results to those of other inputs of a job.
    pub(crate) fn with_spellings(self, spellings: &Spellings) -> Self {
        Self { spellings: spellings.clone(), ..self }
    }

    /// Adds the records that are left out to those of other inputs of a job.
    pub(crate) fn with_left_out(self, left_out: &LeftOutRecords) -> Self {
        Self { left_out: left_out.clone(), ..self }
    }

    /// Returns the records that are left out of all inputs.
    pub(super) fn left_out(&self) -> &LeftOutRecords {
        &self.left_out
    }

    /// Returns checks of files that are read as one input: their results are not kept.
    pub(super) fn of_parts(&self) -> Self {
        Self { quiet: true, ..Self::new(self.delimiter, self.any) }
    }

    /// Does not report byte order marks: the keys of records do not depend on them.
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

    /// Looks at the line ends in the first bytes: the keys are lines. The passes look at all keys.
    pub(crate) fn with_line_ends(self) -> Self {
        Self { lines: true, ..self }
    }

    /// Returns the line delimiter.
    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Checks the first bytes of a file; `within`: they were compressed with this codec.
    pub(super) fn check(&self, name: &str, begin: &[u8], within: Option<Codec>) -> Result<()> {
        if self.any {
            return Ok(());
        }
        if let Detection::Refused(found) = detect(begin, self.delimiter, true, within.is_some()) {
            return Err(found.error(name, self.columns, within));
        }
        self.keep(name, begin);
        Ok(())
    }

    fn keep(&self, name: &str, begin: &[u8]) {
        let mark = !self.quiet && begin.starts_with(b"\xef\xbb\xbf");
        let ends = match self.lines && self.delimiter == b'\n' {
            true => Spelling::of_line_ends(begin),
            false => Spelling::default(),
        };
        // Whatever the keys are.
        let cr = self.delimiter == b'\n' && is_one_line_with_cr(begin);
        if mark || cr || ends != Spelling::default() {
            self.spellings.add_first_bytes(name, mark, cr, ends);
        }
    }

    /// Returns the record in which passes over an input note the spelling of its keys.
    pub(super) fn seen(&self, input: &str) -> Arc<SeenSpelling> {
        self.spellings.seen(input)
    }

    /// Returns the offset at which standard input was first opened; sets it to `here` at the first call.
    pub(super) fn start_of(&self, input: &str, here: u64) -> u64 {
        self.spellings.start_of(input, here)
    }

    /// Sets that all keys of an input were read.
    pub(crate) fn set_complete(&self, input: &str) {
        self.spellings.set_complete(input);
    }

    /// Reports results that have not been reported, unless any contents are accepted.
    pub(crate) fn note(&self, progress: &dyn Progress) {
        if !self.any {
            self.spellings.note(progress);
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
    /// The compression of the input.
    within: Option<Codec>,
    /// Whether the stream is of files that are followed.
    followed: bool,
}

impl<S: Read> Checked<S> {
    pub(super) fn new(stream: S, name: &str, checks: &Arc<ContentChecks>) -> Self {
        let begin = (!checks.any).then(Vec::new);
        let (name, checks) = (name.to_owned(), Arc::clone(checks));
        Self { stream, name, checks, begin, within: None, followed: false }
    }

    /// The same for a stream that was compressed.
    pub(super) fn within(self, codec: Option<Codec>) -> Self {
        Self { within: codec, ..self }
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
        let detection = detect(begin, self.checks.delimiter, ended, self.within.is_some());
        if let Detection::Refused(found) = detection {
            return Err(match self.followed {
                true => found.error_of_followed(&self.name),
                false => found.error(&self.name, self.checks.columns, self.within),
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
    use std::sync::Mutex;

    use super::*;
    use crate::error::{Advice, Error, ErrorKind, Setting};
    use crate::keys::KeySpec;
    use crate::progress::Note;

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
        let tar = tar_header("a/file", 100);
        let mut ar = b"!<arch>\n".to_vec();
        ar.extend_from_slice(format!("{:58}`\n", "file/").as_bytes());
        let cases: [(&[u8], &str); 32] = [
            (&tar, "a tar archive"),
            (&ar, "an ar archive"),
            (b"Rar!\x1a\x07\0", "RAR"),
            (b"Rar!\x1a\x07\x01\0", "RAR"),
            (b"LZIP\x01\x0c", "lzip"),
            (b"\xff\x06\0\0sNaPpY\0", "snappy"),
            (b"Obj\x01\x04\x14avro.codec", "Avro"),
            (b"ORC\n\x1c\n\x04\x08\x05", "ORC"),
            (b"\x93NUMPY\x01\0v\0{'descr'", "NumPy"),
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "PDF"),
            (b"%PDF-1.4\r\n1 0 obj\r\n<<", "PDF"),
            (b"\xff\xd8\xff\xe1\x1f\xfeExif\0\0II", "JPEG"),
            (b"\xff\xd8\xff\xdb\0\x43\0", "JPEG"),
            (b"GIF89a\x10\0\x10\0\x80\0\0", "GIF"),
            (b"GIF87a\x00\x04\x00\x03\xf7\0\0", "GIF"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "Office"),
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
            let error = ContentChecks::new(b'\n', false).check("-", bytes, None).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Input && error.to_string().contains(what),
                "{error}"
            );
            for few in [1, 3, 1 << 16] {
                let error = Error::read("-", read(bytes, few).unwrap_err());
                assert!(error.to_string().contains(what), "{few}: {error}");
                assert!(error.advice().contains(&Advice::Enable(Setting::Text)), "{few}: {error}");
            }
            assert!(any.check("-", bytes, None).is_ok());
        }
    }

    #[test]
    fn text_is_accepted() {
        let long = "line\n".repeat(5000);
        let cases: [&[u8]; 42] = [
            b"!<arch>\n",
            b"!<arch>\nis how archives of ar begin, but this is a text of lines, longer than a header\n",
            b"Rar!\n",
            b"LZIP\n",
            b"Obj\n",
            b"ORC\nElf\n",
            b"%PDF-1.7\n",
            b"%PDF-1.7\n% is how documents begin\n",
            b"%PDF-1.4\n10 20 objects\n",
            b"GIF89a is the version of most of these images\n",
            b"GIF89a\n\n\n\n\n\n\n\n",
            b"\xff\xd8\xff\xe0 sind vier Buchstaben in Latin-1\n",
            "a line of more than one hundred characters, so that digits follow where a tar has its mode 0000644 \n".as_bytes(),
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
            assert!(ContentChecks::new(b'\n', false).check("-", bytes, None).is_ok(), "{bytes:?}");
            for few in [1, 3, 1 << 16] {
                assert_eq!(read(bytes, few).unwrap(), bytes, "{few}");
            }
        }
        let list = b"\xff\xfe sind zwei\0Buchstaben in\0Latin-1\0";
        assert!(ContentChecks::new(0, false).check("-", list, None).is_ok());
        // Lines of one byte that end in NUL.
        let list = b"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0";
        assert!(ContentChecks::new(0, false).check("-", list, None).is_ok());
        assert!(ContentChecks::new(b'\n', false).check("-", list, None).is_err());
        // The first one is not held back, although a tar archive may begin like it.
        let checks = Arc::new(ContentChecks::new(0, false));
        let mut stream = Checked::new(Trickle(list, 2), "-", &checks);
        assert_eq!(stream.read(&mut [0; 64]).unwrap(), 2);
        let tar = tar_header("a", 8);
        let mut stream = Checked::new(Trickle(&tar, 2), "-", &checks);
        let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("a tar archive"), "{error}");
    }

    /// The header of a file in a tar archive, and the first bytes of the file.
    fn tar_header(name: &str, size: usize) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header.extend_from_slice(b"one\ntwo\n");
        header
    }

    #[test]
    fn what_is_inside_compressed_data_is_refused_with_a_command_that_reads_it() {
        let advice = |name: &str, bytes: &[u8]| {
            let checks = ContentChecks::new(b'\n', false);
            let error = checks.check(name, bytes, Some(Codec::Gzip)).unwrap_err();
            let Some(Advice::Other(advice)) = error.advice().first() else { panic!("{error}") };
            (error.to_string(), advice.clone())
        };
        let utf16 = wide("\u{feff}one\n", u16::to_le_bytes);
        let (tar, zip) = (tar_header("file", 8), &b"PK\x03\x04\x14\0\0\0"[..]);
        for (name, bytes, what, command) in [
            ("a", &tar[..], "a tar archive", "pipe in the output of `gzip -dc a | tar -xOf -`"),
            ("-", &tar[..], "a tar archive", "pipe it through `gzip -dc | tar -xOf -`"),
            (
                "a b",
                zip,
                "a zip archive",
                "pipe in the output of `gzip -dc 'a b' > 'a b.unpacked' && unzip -p 'a b.unpacked'`",
            ),
            (
                "-",
                zip,
                "a zip archive",
                "save it with `gzip -dc > FILE`, and pipe in the output of `unzip -p FILE`",
            ),
            (
                "https://host/a",
                &utf16,
                "UTF-16",
                "download it to FILE, and pipe in the output of `gzip -dc FILE | iconv -f UTF-16 -t UTF-8`",
            ),
            ("a", b"\x1f\x8b\x08\0", "gzip", "pipe in the output of `gzip -dc a | gzip -dc`"),
            ("a", b"\x28\xb5\x2f\xfd", "zstd", "pipe in the output of `gzip -dc a | zstd -dc`"),
            ("a", b"\xfd7zXZ\0", "xz", "pipe in the output of `gzip -dc a | xz -dc`"),
        ] {
            let (error, advice) = advice(name, bytes);
            assert!(error.contains(what), "{error}");
            assert_eq!(advice, command);
        }
    }

    #[test]
    fn random_bytes_are_rarely_refused() {
        let mut rng = petal_testkit::rng::Rng::new(5);
        let random = |_| {
            let bytes: Vec<u8> = (0..4096).map(|_| rng.below(256) as u8).collect();
            usize::from(ContentChecks::new(b'\n', false).check("-", &bytes, None).is_err())
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
    fn every_job_begins_where_standard_input_stands() {
        let spellings = Spellings::default();
        let checks = || ContentChecks::new(b'\n', false).with_spellings(&spellings);
        assert_eq!((checks().start_of("-", 5), checks().start_of("-", 9)), (5, 5));
        assert_eq!(ContentChecks::new(b'\n', false).start_of("-", 9), 9);
    }

    #[test]
    fn marks_and_line_ends_are_noted_once() {
        let notes = Notes::default();
        let noted = || notes.0.lock().unwrap().drain(..).collect::<Vec<_>>().join(" ");
        let checks = ContentChecks::new(b'\n', false).with_line_ends();
        let check = |name: &str, text: &str| checks.check(name, text.as_bytes(), None).unwrap();
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
            ContentChecks::new(b'\n', false).with_line_ends(),
        ] {
            checks.check("f", b"one\rtwo\r", None).unwrap();
            checks.check("g", b"one\r", None).unwrap();
            checks.check("h", b"1%\r2%\r", None).unwrap();
            checks.note(&notes);
            assert_eq!(noted(), "");
            ["f", "g", "h"].into_iter().for_each(|name| checks.set_complete(name));
            // Later bytes have an LF.
            let lines = [&b"1%\r2%"[..], b"done"].into_iter();
            checks.seen("h").look_at(&KeySpec::default(), b'\n', lines, true);
            checks.note(&notes);
            assert_eq!(noted(), "CrLineEnds { input: \"f\", more: 0 }");
        }
        // NUL ends lines: CR and LF are bytes like any other.
        let checks = ContentChecks::new(0, false).with_line_ends();
        checks.check("a", b"one\r\n\0", None).unwrap();
        checks.check("b", b"one\n\0", None).unwrap();
        checks.note(&notes);
        assert_eq!(noted(), "");
    }
}
