//! One error for the whole crate: opaque, with predicates to act on and a text to read.
//!
//! The text says what is wrong and where, what was expected and found, and what to do.

use std::fmt;
use std::io;

use crate::format::Format;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a foreign filter could not be made, read, asked or written.
#[derive(Debug)]
pub struct Error(Box<Kind>);

#[derive(Debug)]
enum Kind {
    Unknown {
        found: String,
    },
    Known {
        what: &'static str,
    },
    Ambiguous {
        formats: Vec<Format>,
    },
    Cut {
        format: &'static str,
        expected: u64,
        found: u64,
    },
    Malformed {
        format: &'static str,
        what: &'static str,
        expected: String,
        found: String,
    },
    Limit {
        format: &'static str,
        what: String,
        do_this: &'static str,
    },
    Full {
        format: &'static str,
        what: String,
        do_this: &'static str,
    },
    Unsupported {
        format: &'static str,
        what: &'static str,
    },
    Invalid {
        what: &'static str,
        expected: &'static str,
        found: String,
    },
    BadFile {
        what: &'static str,
        expected: String,
        found: String,
    },
    Refused {
        why: String,
    },
    Key {
        expected: &'static str,
        found: String,
        number: Option<u64>,
    },
    Both {
        keys: u64,
        example: String,
    },
    KeyForm {
        format: &'static str,
        expected: String,
        found: &'static str,
        wider: Option<&'static str>,
    },
    Different {
        what: &'static str,
        ours: String,
        theirs: String,
    },
    TooLarge {
        bytes: u64,
        limit: u64,
    },
    Alloc {
        bytes: u64,
    },
    Io(io::Error),
}

impl Error {
    fn new(kind: Kind) -> Self {
        Self(Box::new(kind))
    }

    /// No format is recognised; `found` completes "found ...".
    pub(crate) fn unknown(found: impl Into<String>) -> Self {
        Self::new(Kind::Unknown { found: found.into() })
    }

    /// A file that is known and cannot be read; `what` completes "is ...".
    pub(crate) fn known(what: &'static str) -> Self {
        Self::new(Kind::Known { what })
    }

    pub(crate) fn ambiguous(formats: Vec<Format>) -> Self {
        Self::new(Kind::Ambiguous { formats })
    }

    /// A file is not as its format wants it.
    pub(crate) fn malformed(
        format: &'static str,
        what: &'static str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self::new(Kind::Malformed { format, what, expected, found })
    }

    /// A header that is sound, of a file that is too short or too long.
    pub(crate) fn cut(format: Format, expected: u64, file: &[u8]) -> Self {
        Self::new(Kind::Cut { format: format.name(), expected, found: file.len() as u64 })
    }

    /// The length that a sound header asks for, where the file has another.
    pub(crate) fn expected_length(&self) -> Option<u64> {
        match &*self.0 {
            Kind::Cut { expected, .. } => Some(*expected),
            _ => None,
        }
    }

    /// What a file would be if it were not cut, or had less behind it, by half at most.
    pub(crate) fn nearly(&self) -> Option<String> {
        match &*self.0 {
            Kind::Cut { format, expected, found }
                if *found >= expected / 2 && *found <= expected.saturating_mul(2) =>
            {
                Some(format!("a {format} filter of {expected} bytes that was cut or added to"))
            }
            _ => None,
        }
    }

    /// More than the format, or the library it comes from, allows.
    pub(crate) fn limit(format: Format, what: impl Into<String>, do_this: &'static str) -> Self {
        Self::new(Kind::Limit { format: format.name(), what: what.into(), do_this })
    }

    /// A filter takes no more keys, by its library's rules.
    pub(crate) fn full(format: Format, what: impl Into<String>, do_this: &'static str) -> Self {
        Self::new(Kind::Full { format: format.name(), what: what.into(), do_this })
    }

    /// The format cannot do that; `what` completes "a ... filter".
    pub(crate) fn unsupported(format: Format, what: &'static str) -> Self {
        Self::new(Kind::Unsupported { format: format.name(), what })
    }

    pub(crate) fn invalid(
        what: &'static str,
        expected: &'static str,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(Kind::Invalid { what, expected, found: found.to_string() })
    }

    /// A key that cannot be made into what the filter holds.
    pub(crate) fn key(expected: &'static str, key: &[u8]) -> Self {
        Self::new(Kind::Key { expected, found: shown(key), number: None })
    }

    /// No program writes keys of this form into files of this format; `wider` has the same numbers.
    pub(crate) fn key_form(
        format: Format,
        expected: String,
        found: &'static str,
        wider: Option<&'static str>,
    ) -> Self {
        Self::new(Kind::KeyForm { format: format.name(), expected, found, wider })
    }

    /// So many keys, of which this is one, are said to be members and to be none.
    pub(crate) fn in_both(keys: u64, example: &[u8]) -> Self {
        Self::new(Kind::Both { keys, example: shown(example) })
    }

    /// The same of one key of many, counted from 1.
    pub(crate) fn at_key(mut self, which: u64) -> Self {
        if let Kind::Key { number, .. } = &mut *self.0 {
            *number = Some(which);
        }
        self
    }

    /// A whole Parquet file is not as it should be.
    pub(crate) fn bad_file(
        what: &'static str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self::new(Kind::BadFile { what, expected, found })
    }

    /// What is wrong in a part of a Parquet file, said of the file.
    pub(crate) fn in_file(self, part: &'static str) -> Self {
        match *self.0 {
            Kind::Malformed { expected, found, .. } => Self::bad_file(part, expected, found),
            _ => self,
        }
    }

    /// A Parquet file that is sound and cannot be asked; `why` is the whole text.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::new(Kind::Refused { why: why.into() })
    }

    pub(crate) fn different(
        what: &'static str,
        ours: impl fmt::Display,
        theirs: impl fmt::Display,
    ) -> Self {
        Self::new(Kind::Different { what, ours: ours.to_string(), theirs: theirs.to_string() })
    }

    pub(crate) fn too_large(bytes: u64, limit: u64) -> Self {
        Self::new(Kind::TooLarge { bytes, limit })
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        Self::new(Kind::Alloc { bytes })
    }

    /// No format that this crate knows is recognised, or more than one: it must be named.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(&*self.0, Kind::Unknown { .. } | Kind::Known { .. } | Kind::Ambiguous { .. })
    }

    /// The bytes are not a filter of the format they are said to be: damaged, cut short, or
    /// another one.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(&*self.0, Kind::Malformed { .. } | Kind::Cut { .. } | Kind::BadFile { .. })
    }

    /// The format has no room for so much.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(&*self.0, Kind::Limit { .. })
    }

    /// The filter holds as many keys as its library lets it hold.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(&*self.0, Kind::Full { .. })
    }

    /// A key does not have the form that the filter's keys have.
    #[must_use]
    pub fn is_key(&self) -> bool {
        matches!(&*self.0, Kind::Key { .. })
    }

    /// Keys of the format's programs never have the form that was named.
    #[must_use]
    pub fn is_key_form(&self) -> bool {
        matches!(&*self.0, Kind::KeyForm { .. })
    }

    /// Keys are said to be members and to be none.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        matches!(&*self.0, Kind::Both { .. })
    }

    /// Which of many keys it is, counted from 1.
    #[must_use]
    pub fn key_number(&self) -> Option<u64> {
        match &*self.0 {
            Kind::Key { number, .. } => *number,
            _ => None,
        }
    }

    /// A Parquet file is sound, but cannot be asked: encrypted, or without such a column.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(&*self.0, Kind::Refused { .. })
    }

    /// The filter takes more memory than it may.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(&*self.0, Kind::TooLarge { .. } | Kind::Alloc { .. })
    }

    /// Two filters differ, and cannot be put together.
    #[must_use]
    pub fn is_different(&self) -> bool {
        matches!(&*self.0, Kind::Different { .. })
    }

    /// Reading or writing failed.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(&*self.0, Kind::Io(_))
    }
}

/// A key, or how it begins; on one line, and nothing that a terminal would obey.
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
            Kind::Unknown { found } => {
                write!(f, "not a petal file, nor a filter of another known format: found {found}")
            }
            Kind::Known { what } => write!(f, "is {what}"),
            Kind::Ambiguous { formats } => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                write!(f, "may be {}; say which with --format", names.join(" or "))
            }
            Kind::Cut { format, expected, found } => write!(
                f,
                "no whole {format} filter: expected {expected} bytes, found {found}; it was cut or \
                 added to"
            ),
            Kind::Malformed { format, what, expected, found } => {
                write!(f, "no sound {format} filter: {what}: expected {expected}, found {found}")
            }
            Kind::Limit { format, what, do_this } | Kind::Full { format, what, do_this } => {
                write!(f, "{format}: {what}; {do_this}")
            }
            Kind::Unsupported { format, what } => write!(f, "a filter of {format} {what}"),
            Kind::Invalid { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            Kind::BadFile { what, expected, found } => {
                write!(f, "no sound Parquet file: {what}: expected {expected}, found {found}")
            }
            Kind::Refused { why } => f.write_str(why),
            Kind::Key { expected, found, .. } => {
                write!(f, "'{found}' is no key: expected {expected}")
            }
            Kind::KeyForm { format, expected, found, wider } => {
                write!(f, "keys of a {format} filter are {expected}, not {found}")?;
                let Some(wider) = wider else { return Ok(()) };
                let unsigned = (*found, *wider) == ("uint64", "int64");
                let size = if unsigned { "below 2^63" } else { "of any size" };
                write!(f, "; numbers {size} are {wider} there")
            }
            Kind::Both { keys, example } => write!(
                f,
                "keys that are both members and known non-members: {keys}, '{example}' among them; \
                 take them out of one of the lists"
            ),
            Kind::Different { what, ours, theirs } => write!(
                f,
                "the filters differ in their {what} ({ours} and {theirs}) and cannot be put \
                 together"
            ),
            Kind::TooLarge { bytes, limit } => write!(
                f,
                "the filter takes {bytes} bytes or more, and may take {limit}; allow it more memory"
            ),
            Kind::Alloc { bytes } => {
                write!(f, "the system refused {bytes} bytes of memory; free some")
            }
            Kind::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Kind::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(Kind::Io(error))
    }
}
