//! The start of an input of records: a byte order mark and a header, which are no records, and the
//! dialect of CSV.

use std::io;

use crate::error::{Error, Result};
use crate::keys::{Columns, Dialect, EndScan, guess_separator};
use crate::poll_read::PollRead;
use crate::progress::Progress;

/// The UTF-8 byte order mark.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes read at a time.
const STEP: usize = 16 << 10;

/// What precedes the records of an input.
pub(super) struct Start {
    /// The dialect of CSV.
    pub(super) dialect: Option<Dialect>,
    /// Whether the dialect follows from the first records.
    pub(super) guessed: bool,
    /// The header without its LF; `None` if there is none, or the input has no bytes.
    pub(super) header: Option<Vec<u8>>,
    /// Whether there is a byte order mark.
    pub(super) mark: bool,
    /// Length of everything before the first record.
    pub(super) length: usize,
    /// Bytes that were read from the first record on.
    pub(super) rest: Vec<u8>,
}

impl Start {
    /// Reads the byte order mark, and with `columns` as many records as their dialect depends on, and
    /// their header, if any, which may be `longest` bytes long. Reads as little as the stream allows.
    pub(super) fn read(
        stream: &mut dyn PollRead,
        name: &str,
        columns: Option<&Columns>,
        longest: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let (mut bytes, mut ended) = (Vec::new(), false);
        while !ended && bytes.len() < MARK.len() && MARK.starts_with(&bytes) {
            ended = !read_more(stream, name, &mut bytes, progress)?;
        }
        let mark = bytes.starts_with(MARK);
        let begin = if mark { MARK.len() } else { 0 };
        let named = columns.and_then(|columns| columns.dialect_of(name));
        let (mut dialect, guessed) = (named, columns.is_some() && named.is_none());
        while let (None, Some(columns)) = (dialect, columns) {
            let guess = guess_separator(&bytes[begin..], ended, |byte| columns.dialect(byte))
                .map_err(|separators| Error::ambiguous_separator(name, separators))?;
            dialect = guess.map(|separator| columns.dialect(separator));
            if dialect.is_none() {
                ended = !read_more(stream, name, &mut bytes, progress)?;
            }
        }
        let Some(scanned) = dialect.filter(|_| columns.is_some_and(Columns::has_header)) else {
            let rest = bytes.split_off(begin);
            return Ok(Self { dialect, guessed, header: None, mark, length: begin, rest });
        };
        let (mut scan, mut at) = (EndScan::new(scanned), begin);
        loop {
            // The search ends with the first record; until then it can be continued.
            if let Some(end) = scan.first(&bytes[at..]).map(|end| at + end) {
                let rest = bytes.split_off(end + 1);
                let header = Some(bytes[begin..end].to_vec());
                return Ok(Self { dialect, guessed, header, mark, length: end + 1, rest });
            }
            at = bytes.len();
            if at as u64 > longest {
                return Err(match scan.is_quoted() {
                    true => Error::long_quotes(name, 0, longest),
                    false => Error::line_too_long(name, 0, longest),
                });
            }
            if ended || !read_more(stream, name, &mut bytes, progress)? {
                break;
            }
        }
        if scan.is_quoted() {
            return Err(Error::open_quotes(name, 0));
        }
        let length = bytes.len();
        let header = (length > begin).then(|| bytes.split_off(begin));
        Ok(Self { dialect, guessed, header, mark, length, rest: Vec::new() })
    }
}

/// Appends the bytes that are available, at least one. False at the end, or if the caller stops.
fn read_more(
    stream: &mut dyn PollRead,
    name: &str,
    bytes: &mut Vec<u8>,
    progress: &dyn Progress,
) -> Result<bool> {
    while !stream.ready() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        if progress.stopped() {
            return Ok(false);
        }
    }
    let length = bytes.len();
    bytes.resize(length + STEP, 0);
    let got = loop {
        match stream.read(&mut bytes[length..]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(|e| Error::read(name, e))?,
        }
    };
    bytes.truncate(length + got);
    Ok(got > 0)
}
