//! The error type of the crate: [`Error::kind`] has the values, `Display` has a plain text.
//!
//! A text states what is wrong and where, what was expected and found, and what to do.

use std::fmt;
use std::io;

use crate::format::Format;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation on a foreign filter or its file.
#[derive(Debug)]
pub struct Error(Box<ErrorKind>);

/// The cause of an [`Error`], with its values.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes of the file identify no format.
    UnknownFormat {
        /// The first bytes, printable, and the format that the file perhaps had.
        found: String,
        /// Names of the formats that bytes do not identify, so that they must be specified.
        unmarked: Vec<&'static str>,
    },
    /// The file is recognised, but cannot be read.
    UnreadableFormat {
        /// The format, as a predicate.
        format: &'static str,
    },
    /// The file is a whole Parquet file, which has filters in it.
    WholeParquet,
    /// The file is valid in several formats.
    AmbiguousFormat {
        /// These formats.
        formats: Vec<Format>,
    },
    /// The file is shorter or longer than its header states.
    WrongLength {
        /// Name of the format.
        format: &'static str,
        /// The length by the header.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// The file violates its format.
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// The field or section.
        field: &'static str,
        /// The expected value.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// A filter would exceed a limit of the format or its library.
    Limit {
        /// Name of the format.
        format: &'static str,
        /// The limit that would be exceeded.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// The filter takes no more keys by the rules of its library.
    Full {
        /// Name of the format.
        format: &'static str,
        /// The cause.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// The format does not support the operation.
    Unsupported {
        /// Name of the format.
        format: &'static str,
        /// The reason, as a predicate.
        reason: &'static str,
    },
    /// A parameter is out of range.
    Invalid {
        /// Name of the parameter.
        parameter: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// The value that was given.
        found: String,
    },
    /// A Parquet file is damaged.
    MalformedParquet {
        /// The field or section.
        field: &'static str,
        /// The expected value.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// A Parquet file is valid, but its column cannot be queried.
    UnqueryableParquet {
        /// The reason: the whole text.
        reason: String,
    },
    /// A key cannot be encoded as the key type of the filter.
    InvalidKey {
        /// The keys of that type.
        expected: &'static str,
        /// The key, printable and truncated.
        found: String,
        /// The number of the key, counted from 1, if it is one of many.
        number: Option<u64>,
    },
    /// Keys are both members and known non-members.
    Contradiction {
        /// The number of these keys.
        keys: u64,
        /// One of them, printable and truncated.
        example: String,
    },
    /// No program writes keys of this type into files of the format.
    KeyType {
        /// Name of the format.
        format: &'static str,
        /// The key types of the format.
        expected: String,
        /// The key type that was requested.
        found: &'static str,
        /// A key type of the format that has the same numbers.
        wider: Option<&'static str>,
    },
    /// Two filters differ and cannot be combined.
    Incompatible {
        /// The property in which they differ.
        property: &'static str,
        /// Its value in this filter.
        ours: String,
        /// Its value in the other filter.
        theirs: String,
    },
    /// A filter would exceed the memory limit.
    TooLarge {
        /// The size of the filter, or more.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The system refused to allocate memory.
    Alloc {
        /// Size of the allocation.
        bytes: u64,
    },
    /// Reading or writing failed.
    Io(io::Error),
}

impl Error {
    fn new(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }

    /// Returns the cause with its values.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// An unknown format; `found` completes "found ...".
    pub(crate) fn unknown(found: impl Into<String>) -> Self {
        let unmarked = Format::ALL.into_iter().filter(|format| !format.is_recognizable());
        let unmarked = unmarked.map(Format::name).collect();
        Self::new(ErrorKind::UnknownFormat { found: found.into(), unmarked })
    }

    /// A recognised file that cannot be read; `format` completes "is ...".
    pub(crate) fn known(format: &'static str) -> Self {
        Self::new(ErrorKind::UnreadableFormat { format })
    }

    /// A whole Parquet file.
    pub(crate) fn whole_parquet() -> Self {
        Self::new(ErrorKind::WholeParquet)
    }

    pub(crate) fn ambiguous(formats: Vec<Format>) -> Self {
        Self::new(ErrorKind::AmbiguousFormat { formats })
    }

    /// A file that violates its format.
    pub(crate) fn malformed(
        format: &'static str,
        field: &'static str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self::new(ErrorKind::Malformed { format, field, expected, found })
    }

    /// A valid header of a file that is too short or too long.
    pub(crate) fn cut(format: Format, expected: u64, file: &[u8]) -> Self {
        Self::new(ErrorKind::WrongLength {
            format: format.name(),
            expected,
            found: file.len() as u64,
        })
    }

    /// Returns the length that a valid header states, if the file has another.
    pub(crate) fn expected_length(&self) -> Option<u64> {
        match &*self.0 {
            ErrorKind::WrongLength { expected, .. } => Some(*expected),
            _ => None,
        }
    }

    /// Describes a file that is at most half truncated, or at most doubled.
    pub(crate) fn nearly(&self) -> Option<String> {
        match &*self.0 {
            ErrorKind::WrongLength { format, expected, found }
                if *found >= expected / 2 && *found <= expected.saturating_mul(2) =>
            {
                Some(format!(
                    "a {format} filter of {expected} bytes that was truncated or extended"
                ))
            }
            _ => None,
        }
    }

    /// A limit of the format or its library.
    pub(crate) fn limit(format: Format, problem: impl Into<String>, advice: &'static str) -> Self {
        Self::new(ErrorKind::Limit { format: format.name(), problem: problem.into(), advice })
    }

    /// A filter that takes no more keys by the rules of its library.
    pub(crate) fn full(format: Format, problem: impl Into<String>, advice: &'static str) -> Self {
        Self::new(ErrorKind::Full { format: format.name(), problem: problem.into(), advice })
    }

    /// An operation that the format does not support; `reason` completes "a filter of ...".
    pub(crate) fn unsupported(format: Format, reason: &'static str) -> Self {
        Self::new(ErrorKind::Unsupported { format: format.name(), reason })
    }

    pub(crate) fn invalid(
        parameter: &'static str,
        expected: &'static str,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Invalid { parameter, expected, found: found.to_string() })
    }

    /// A key that cannot be encoded as the key type of the filter.
    pub(crate) fn key(expected: &'static str, key: &[u8]) -> Self {
        Self::new(ErrorKind::InvalidKey { expected, found: shown(key), number: None })
    }

    /// A key type that no program writes into files of this format; `wider` has the same numbers.
    pub(crate) fn key_type(
        format: Format,
        expected: String,
        found: &'static str,
        wider: Option<&'static str>,
    ) -> Self {
        Self::new(ErrorKind::KeyType { format: format.name(), expected, found, wider })
    }

    /// Keys that are both members and known non-members; `example` is one of them.
    pub(crate) fn in_both(keys: u64, example: &[u8]) -> Self {
        Self::new(ErrorKind::Contradiction { keys, example: shown(example) })
    }

    /// Adds the number of the key, counted from 1.
    pub(crate) fn at_key(mut self, which: u64) -> Self {
        if let ErrorKind::InvalidKey { number, .. } = &mut *self.0 {
            *number = Some(which);
        }
        self
    }

    /// A damaged Parquet file.
    pub(crate) fn bad_file(
        field: &'static str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self::new(ErrorKind::MalformedParquet { field, expected, found })
    }

    /// Converts the error of a part of a Parquet file to one of the file.
    pub(crate) fn in_file(self, part: &'static str) -> Self {
        match *self.0 {
            ErrorKind::Malformed { expected, found, .. } => Self::bad_file(part, expected, found),
            _ => self,
        }
    }

    /// A valid Parquet file that cannot be queried; `reason` is the whole text.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::UnqueryableParquet { reason: reason.into() })
    }

    pub(crate) fn different(
        property: &'static str,
        ours: impl fmt::Display,
        theirs: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Incompatible {
            property,
            ours: ours.to_string(),
            theirs: theirs.to_string(),
        })
    }

    pub(crate) fn too_large(bytes: u64, limit: u64) -> Self {
        Self::new(ErrorKind::TooLarge { bytes, limit })
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        Self::new(ErrorKind::Alloc { bytes })
    }

    /// Returns true if no format is recognised, or more than one, so that the format must be named.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(
            &*self.0,
            ErrorKind::UnknownFormat { .. }
                | ErrorKind::UnreadableFormat { .. }
                | ErrorKind::WholeParquet
                | ErrorKind::AmbiguousFormat { .. }
        )
    }

    /// Returns true if the bytes violate their format: damaged, truncated, or in another format.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(
            &*self.0,
            ErrorKind::Malformed { .. }
                | ErrorKind::WrongLength { .. }
                | ErrorKind::MalformedParquet { .. }
        )
    }

    /// Returns true if the filter would exceed a limit of the format.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(&*self.0, ErrorKind::Limit { .. })
    }

    /// Returns true if the filter takes no more keys.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(&*self.0, ErrorKind::Full { .. })
    }

    /// Returns true if a key cannot be encoded as the key type of the filter.
    #[must_use]
    pub fn is_key(&self) -> bool {
        matches!(&*self.0, ErrorKind::InvalidKey { .. })
    }

    /// Returns true if no program writes keys of this type into files of the format.
    #[must_use]
    pub fn is_key_type(&self) -> bool {
        matches!(&*self.0, ErrorKind::KeyType { .. })
    }

    /// Returns true if keys are both members and known non-members.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        matches!(&*self.0, ErrorKind::Contradiction { .. })
    }

    /// Returns the number of the key, counted from 1, if it is one of many.
    #[must_use]
    pub fn key_number(&self) -> Option<u64> {
        match &*self.0 {
            ErrorKind::InvalidKey { number, .. } => *number,
            _ => None,
        }
    }

    /// Returns true if a Parquet file is valid, but cannot be queried: encrypted, or without the
    /// column.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(&*self.0, ErrorKind::UnqueryableParquet { .. })
    }

    /// Returns true if the filter needs more memory than its limit, or than the system has.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(&*self.0, ErrorKind::TooLarge { .. } | ErrorKind::Alloc { .. })
    }

    /// Returns true if two filters differ and cannot be combined.
    #[must_use]
    pub fn is_different(&self) -> bool {
        matches!(&*self.0, ErrorKind::Incompatible { .. })
    }

    /// Returns true if reading or writing failed.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(&*self.0, ErrorKind::Io(_))
    }
}

/// Returns the start of a key on one line, with control characters escaped.
fn shown(key: &[u8]) -> String {
    const SHOWN: usize = 40;
    let start = String::from_utf8_lossy(&key[..key.len().min(SHOWN)]);
    let mut shown = start.escape_debug().to_string();
    if key.len() > SHOWN {
        shown.push_str("...");
    }
    shown
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ErrorKind::UnknownFormat { found, unmarked } => write!(
                f,
                "not a petal file, nor a filter of another known format: found {found}; specify \
                 the format of a damaged file, or of one without a magic number ({})",
                unmarked.join(", ")
            ),
            ErrorKind::UnreadableFormat { format } => write!(f, "is {format}"),
            ErrorKind::WholeParquet => f.write_str(
                "is a whole Parquet file, which has filters in it; query them with ParquetFile",
            ),
            ErrorKind::AmbiguousFormat { formats } => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                write!(f, "may be {}; specify the format", names.join(" or "))
            }
            ErrorKind::WrongLength { format, expected, found } => write!(
                f,
                "not a whole {format} filter: expected {expected} bytes, found {found}; it was \
                 truncated or extended"
            ),
            ErrorKind::Malformed { format, field, expected, found } => {
                write!(
                    f,
                    "not a valid {format} filter: {field}: expected {expected}, found {found}"
                )
            }
            ErrorKind::Limit { format, problem, advice }
            | ErrorKind::Full { format, problem, advice } => {
                write!(f, "{format}: {problem}; {advice}")
            }
            ErrorKind::Unsupported { format, reason } => write!(f, "a filter of {format} {reason}"),
            ErrorKind::Invalid { parameter, expected, found } => {
                write!(f, "{parameter}: expected {expected}, found {found}")
            }
            ErrorKind::MalformedParquet { field, expected, found } => {
                write!(f, "not a valid Parquet file: {field}: expected {expected}, found {found}")
            }
            ErrorKind::UnqueryableParquet { reason } => f.write_str(reason),
            ErrorKind::InvalidKey { expected, found, .. } => {
                write!(f, "'{found}' is not a key: expected {expected}")
            }
            ErrorKind::KeyType { format, expected, found, wider } => {
                write!(f, "keys of a {format} filter are {expected}, not {found}")?;
                let Some(wider) = wider else { return Ok(()) };
                let unsigned = (*found, *wider) == ("uint64", "int64");
                let size = if unsigned { "below 2^63" } else { "of any size" };
                write!(f, "; numbers {size} are {wider} there")
            }
            ErrorKind::Contradiction { keys, example } => write!(
                f,
                "keys that are both members and known non-members: {keys}, for example \
                 '{example}'; remove them from one of the lists"
            ),
            ErrorKind::Incompatible { property, ours, theirs } => write!(
                f,
                "the filters differ in their {property} ({ours} and {theirs}) and cannot be \
                 combined"
            ),
            ErrorKind::TooLarge { bytes, limit } => write!(
                f,
                "the filter takes {bytes} bytes or more, and the limit is {limit}; raise the \
                 memory limit"
            ),
            ErrorKind::Alloc { bytes } => {
                write!(f, "the system refused {bytes} bytes of memory; free some")
            }
            ErrorKind::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            ErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(ErrorKind::Io(error))
    }
}
