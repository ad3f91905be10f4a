//! The file that an output is appended to: its first record, and how its last one ends.
//!
//! An earlier run may have been killed while it wrote, or its disk was full. The file then ends
//! within a record. That is ended before the first new record: never cut off, because it may come
//! from another program. The next run prints a record again that was not written completely.
//!
//! Cost: reading the file once if records may have line ends, but only the last MiB of more than 64;
//! otherwise reading its last byte. Whether that MiB begins inside quotes follows from the quotes in
//! it; without any it is taken to be outside.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::input::MARK;
use crate::keys::{Dialect, EndScan};

/// A file that an output is appended to.
#[derive(Clone, Debug)]
pub struct AppendedTo {
    file: Arc<File>,
    /// Whether the output is written after its last byte.
    at_end: bool,
}

/// Bytes at the start in which a header is expected.
const FIRST_BYTES: usize = 64 << 10;

/// Bytes read at a time, and of a long file at all.
const STEP: usize = 1 << 20;

/// Length up to which the file is read from its start.
const READ_WHOLE: u64 = 64 << 20;

impl AppendedTo {
    /// A file that is open for reading. `at_end`: the output is written after its last byte, not over
    /// others.
    #[must_use]
    pub fn new(file: File, at_end: bool) -> Self {
        Self { file: Arc::new(file), at_end }
    }

    /// Returns the first bytes.
    pub(crate) fn first_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; FIRST_BYTES];
        let got = self.file.read_at(&mut bytes, 0)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Returns the bytes that end the last record: nothing if it is complete. `dialect`: the records
    /// are CSV; otherwise they end in `delimiter`.
    pub(crate) fn missing_end(
        &self,
        dialect: Option<Dialect>,
        delimiter: u8,
    ) -> io::Result<Vec<u8>> {
        let length = if self.at_end { self.file.metadata()?.len() } else { 0 };
        if length == 0 {
            return Ok(Vec::new());
        }
        let Some(dialect) = dialect.filter(|dialect| !dialect.is_lines()) else {
            let mut last = [0];
            self.file.read_exact_at(&mut last, length - 1)?;
            return Ok(if last[0] == delimiter { vec![] } else { vec![delimiter] });
        };
        let (mut scan, mut complete) = (EndScan::new(dialect), false);
        let begin = if length > READ_WHOLE { length - STEP as u64 } else { 0 };
        let (mut buffer, mut at) = (vec![0; STEP], begin);
        while at < length {
            let max = (length - at).min(STEP as u64) as usize;
            self.file.read_exact_at(&mut buffer[..max], at)?;
            let bytes = &buffer[..max];
            let bytes = if at == 0 { bytes.strip_prefix(MARK).unwrap_or(bytes) } else { bytes };
            if begin > 0 {
                scan = EndScan::anywhere(dialect, bytes);
            }
            complete = scan.last(bytes) == bytes.len().checked_sub(1);
            at += max as u64;
        }
        let mut end = scan.closing();
        if !complete {
            end.push(b'\n');
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_ended_where_it_was_torn() {
        let escaped = Dialect { escape: Some(b'\\'), ..Dialect::RFC };
        let lines = Dialect { quote: None, ..Dialect::RFC };
        let long = format!("1,\"{}", "a\n".repeat(STEP));
        let cases: [(&str, Dialect, &str); 15] = [
            ("", Dialect::RFC, ""),
            ("1,a\n", Dialect::RFC, ""),
            ("1,a", Dialect::RFC, "\n"),
            ("1,\"x", Dialect::RFC, "\"\n"),
            ("1,\"x\n", Dialect::RFC, "\"\n"),
            ("1,\"x\"", Dialect::RFC, "\n"),
            ("1,\"x\"\"", Dialect::RFC, "\"\n"),
            ("\u{feff}\"1\n", Dialect::RFC, "\"\n"),
            (&long, Dialect::RFC, "\"\n"),
            ("1,\"x\\", escaped, "\\\"\n"),
            ("1,x\\", escaped, "\\\n"),
            ("1,x\\\n", escaped, "\n"),
            ("1,\"x\n", lines, ""),
            ("1,\"x", lines, "\n"),
            ("\u{feff}", Dialect::RFC, ""),
        ];
        for (text, dialect, end) in cases {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            let end_of = |file: &File, at_end| {
                let file = AppendedTo::new(file.try_clone().unwrap(), at_end);
                file.missing_end(Some(dialect), b'\n').unwrap()
            };
            assert_eq!(end_of(&file, true), end.as_bytes(), "{:?}", text.get(..20).unwrap_or(text));
            assert!(end_of(&file, false).is_empty());
        }
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read() {
        for (tail, end) in [
            ("\n1,a\n", ""),
            ("\n1,\"b\"\n2,\"x\ny", "\"\n"),
            ("\n1,\"b\"\n2,\"x\ny\"", "\n"),
            (" in quotes\",5\n1,\"b\"\n", ""),
        ] {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(b"\"", 0).unwrap();
            file.write_all_at(tail.as_bytes(), READ_WHOLE).unwrap();
            let file = AppendedTo::new(file, true);
            let found = file.missing_end(Some(Dialect::RFC), b'\n').unwrap();
            assert_eq!(found, end.as_bytes(), "{tail:?}");
        }
    }
}
