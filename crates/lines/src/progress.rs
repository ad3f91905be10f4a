//! Progress of a running job, reported to the caller as values.

use std::fmt;

use crate::keys::{JsonPointer, Transform};

/// Receives the progress of a job. Methods do nothing unless implemented.
pub trait Progress: Sync {
    /// Called when a pass over inputs begins; `bytes` is its size, if known.
    fn phase(&self, what: &'static str, bytes: Option<u64>) {
        let _ = (what, bytes);
    }

    /// Called when a job of several passes has chosen its strategy, and when it changes it. `bytes` is
    /// an estimate of what [`advance`](Self::advance) will report from now on, in all passes together;
    /// 0 if it is unknown.
    fn expect_total(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Called when `bytes` more of the current pass are done, from many threads.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Returns true to stop reading: the pass ends successfully with the lines read so far.
    /// Return true only if the job may end early.
    fn stopped(&self) -> bool {
        false
    }

    /// Returns true to cancel the job: it ends with an error at the next chunk.
    fn cancelled(&self) -> bool {
        false
    }

    /// Called with information for the user.
    fn note(&self, note: Note<'_>) {
        let _ = note;
    }
}

/// Discards all progress.
impl Progress for () {}

impl fmt::Debug for dyn Progress + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Information about a running job.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note<'a> {
    /// An input that can be read only once is copied to the temporary directory.
    Spooling {
        /// The input.
        input: &'a str,
        /// The temporary directory.
        dir: &'a std::path::Path,
    },
    /// Standard input is a terminal: the job waits for what is typed.
    Typed,
    /// An input begins with a UTF-8 byte order mark. The mark is part of its first line, which
    /// therefore differs from the same line without a mark.
    ByteOrderMark {
        /// The input.
        input: &'a str,
        /// Number of other inputs with a mark.
        more: u64,
    },
    /// No record of a JSON input has a value at a pointer of the key, so all records are equal there.
    MissingValue {
        /// The input.
        input: &'a str,
        /// Number of other inputs without such a value.
        more: u64,
        /// The pointer.
        pointer: &'a JsonPointer,
    },
    /// No document of an input has a text at the pointer, so all stay as they are.
    MissingText {
        /// The input.
        input: &'a str,
        /// Number of other inputs without a text.
        more: u64,
        /// The pointer.
        pointer: &'a JsonPointer,
    },
    /// The separator of a CSV input, which follows from its first records.
    Separator {
        /// The first input of the job with this separator.
        input: &'a str,
        /// Number of other inputs with it.
        more: u64,
        /// The byte between its fields.
        separator: u8,
    },
    /// The header of a CSV input has a name twice.
    RepeatedName {
        /// The input.
        input: &'a str,
        /// Number of other inputs with such a header.
        more: u64,
        /// The name.
        name: &'a str,
        /// The numbers of the first two columns with it, counted from 1.
        columns: [u64; 2],
    },
    /// Some records of a CSV input do not have the separator. All have another byte that separates
    /// fields elsewhere, but for a title.
    Undivided {
        /// The input.
        input: &'a str,
        /// Number of other inputs of this kind.
        more: u64,
        /// The separator.
        separator: u8,
        /// The byte that all records have.
        found: u8,
        /// Whether the first records do not have it.
        title: bool,
    },
    /// Fields of keys begin and end with `"`, which belongs to the key, because tabs separate fields.
    LiteralQuotes {
        /// The input.
        input: &'a str,
        /// Number of other inputs of this kind.
        more: u64,
    },
    /// A quoted field spans more lines than is likely, so its quote may be part of the text.
    LongField {
        /// The input.
        input: &'a str,
        /// Number of other inputs of this kind.
        more: u64,
        /// Where its record begins.
        byte: u64,
        /// The lines of the record.
        lines: u64,
    },
    /// All lines of an input look like digests, and are hashed.
    HashedDigests {
        /// The input.
        input: &'a str,
        /// Number of other inputs of this kind.
        more: u64,
        /// The transform that hashes them.
        digest: &'a Transform,
    },
    /// All lines of an input end with CRLF, and are hashed with the CR.
    HashedCr {
        /// The input.
        input: &'a str,
        /// Number of other inputs of this kind.
        more: u64,
        /// The transform that hashes them.
        digest: &'a Transform,
    },
    /// An input has no LF, but CR between its lines, so it is read as one line.
    CrLineEnds {
        /// The input.
        input: &'a str,
        /// Number of other inputs of this kind.
        more: u64,
    },
    /// The file that the output is appended to ends within quotes, because an earlier run was ended
    /// there. The quotes are closed.
    ClosedQuote,
    /// The bytes between and around fields, and a header, are set for inputs that are all tables, which
    /// have their own columns.
    CsvSettings {
        /// The first input.
        input: &'a str,
    },
    /// The fields of a CSV input are separated by another byte than those of the input before it in the
    /// output.
    OtherSeparator {
        /// The input.
        input: &'a str,
        /// Number of other inputs with another separator than `first`.
        more: u64,
        /// The separator of `input`.
        separator: u8,
        /// The first input of the output.
        first: &'a str,
        /// Its separator.
        first_separator: u8,
    },
    /// The header of a CSV input differs from the first record of the file that the output is appended
    /// to.
    OtherOutputHeader {
        /// The input.
        input: &'a str,
    },
    /// The header of a CSV input differs from that of the input before it in the output, so its
    /// records may have their fields in another order than the header that is printed.
    OtherHeader {
        /// The input.
        input: &'a str,
        /// Number of other inputs with another header.
        more: u64,
        /// The input whose header is printed.
        first: &'a str,
    },
    /// One input has CRLF line ends and another one LF, or one input has both. The CR is part of the
    /// line, so lines that look the same differ.
    MixedLineEnds {
        /// The input with CRLF.
        crlf: &'a str,
        /// Number of other inputs with CRLF; if `lf` is `crlf`, of other inputs with both.
        more: u64,
        /// An input with LF. It is `crlf` if that input has both.
        lf: &'a str,
    },
    /// All keys of an input are hexadecimal in lowercase, and all of another one in uppercase, so none of
    /// them are equal.
    MixedHexCase {
        /// The input in lowercase.
        lower: &'a str,
        /// Number of other inputs in lowercase.
        more: u64,
        /// An input in uppercase.
        upper: &'a str,
    },
    /// An input has grown since it was opened. Its bytes of that time were read.
    Grown {
        /// The input.
        input: &'a str,
        /// The length that was read, in bytes of the file.
        read: u64,
        /// The bytes that were added.
        added: u64,
        /// Whether the last line that was read did not end in a delimiter: it may be the beginning
        /// of a longer one.
        cut: bool,
    },
    /// A job continues with the results in its work directory.
    Resuming {
        /// The work directory.
        dir: &'a std::path::Path,
        /// Number of finished phases.
        phases: u64,
    },
    /// An approximate job begins, with this many expected wrong lines.
    Expecting {
        /// Upper estimate from sampled sizes; `None` if an input has an unknown size.
        wrong_lines: Option<f64>,
        /// The false-positive rate.
        fpr: f64,
    },
    /// Number of new lines so far, reported at intervals.
    Tally {
        /// Lines read.
        lines: u64,
        /// Lines that were new.
        new: u64,
        /// The current false-positive rate: the share of new lines that the filter reports as
        /// seen. With a fingerprint log these lines are printed nevertheless.
        fpr: f64,
    },
}
