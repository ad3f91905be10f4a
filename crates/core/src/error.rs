//! The error type of the library: [`Error::kind`] has the values, `Display` has a plain text.
//!
//! The text states the problem, its location, the expected and actual values, and a remedy.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::fmt;
#[cfg(feature = "std")]
use std::io;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The error of an operation on a filter or a filter file.
#[derive(Debug)]
pub struct Error(Box<ErrorKind>);

/// The cause of an [`Error`], with its values.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A parameter is out of range.
    Invalid {
        /// Name of the parameter.
        parameter: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// The value that was given.
        found: String,
    },
    /// No filter fits the memory that was given, or a file states more data than allowed.
    NoMemory {
        /// The memory that was given.
        bytes: u64,
        /// The smallest memory that is enough.
        minimum: u64,
    },
    /// No filter reaches this false-positive rate for this number of keys.
    UnattainableFpr {
        /// The number of keys.
        capacity: u64,
        /// The rate that was requested.
        fpr: f64,
        /// The share of queries whose hash collides with the hash of some key.
        floor: f64,
    },
    /// A builder was given no size.
    NoSize {
        /// What determines the size of this type of filter.
        needed: &'static str,
    },
    /// The system refused to allocate memory.
    Alloc {
        /// Size of the allocation.
        bytes: u64,
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
    /// The bytes do not begin with petal's magic number.
    NotPetal {
        /// The first bytes, printable.
        found: String,
    },
    /// The file has a version or a filter type that this library does not support.
    UnsupportedVersion {
        /// The version or type in the file.
        found: u16,
    },
    /// The file is shorter or longer than its header states.
    WrongLength {
        /// The length by the header.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// The file is damaged.
    Corrupt {
        /// The damaged field or section.
        field: &'static str,
        /// Its offset in the file.
        offset: u64,
        /// The expected value.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// The secret of the filter is not in its file, and none was given.
    SecretMissing,
    /// The filter has another secret than the one that was given.
    WrongSecret,
    /// The bytes are not aligned to 64 bytes, as a borrowed filter requires.
    Unaligned,
    /// Keys are both members and known non-members.
    Contradiction {
        /// The hashes of these keys, ascending.
        hashes: Vec<u64>,
    },
    /// The type of filter does not support the operation.
    Unsupported {
        /// Name of the type.
        filter: &'static str,
        /// The reason, as a predicate: "deletes no keys".
        reason: &'static str,
        /// What to do instead.
        advice: &'static str,
    },
    /// The filter takes no more keys.
    Full {
        /// The cause.
        reason: &'static str,
        /// What to do about it.
        advice: &'static str,
    },
    /// Reading or writing failed.
    #[cfg(feature = "std")]
    Io(io::Error),
}

impl Error {
    fn new(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }

    pub(crate) fn invalid(
        parameter: &'static str,
        expected: &'static str,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Invalid { parameter, expected, found: found.to_string() })
    }

    /// A false-positive rate out of range.
    pub(crate) fn fpr(found: f64) -> Self {
        Self::invalid("false-positive rate", "more than 0 and less than 1", format!("{found:?}"))
    }

    pub(crate) fn no_memory(bytes: u64) -> Self {
        Self::new(ErrorKind::NoMemory { bytes, minimum: 64 })
    }

    /// A filter of a stream that takes more memory than is allowed.
    pub(crate) fn over_limit(limit: u64, needed: u64) -> Self {
        Self::new(ErrorKind::NoMemory { bytes: limit, minimum: needed })
    }

    /// Scales a `NoMemory` error of one of `parts` equal filters to the `bytes` of all of them.
    pub(crate) fn in_parts(mut self, bytes: u64, parts: u64) -> Self {
        if let ErrorKind::NoMemory { bytes: found, minimum } = &mut *self.0 {
            (*found, *minimum) = (bytes, *minimum * parts);
        }
        self
    }

    /// A rate that filters with 64-bit hashes do not reach.
    pub(crate) fn unattainable(capacity: u64, fpr: f64, floor: f64) -> Self {
        Self::new(ErrorKind::UnattainableFpr { capacity, fpr, floor })
    }

    /// A builder without a size; `needed` is what determines it.
    pub(crate) fn unsized_filter(needed: &'static str) -> Self {
        Self::new(ErrorKind::NoSize { needed })
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        Self::new(ErrorKind::Alloc { bytes })
    }

    pub(crate) fn incompatible(
        property: &'static str,
        ours: impl fmt::Debug,
        theirs: impl fmt::Debug,
    ) -> Self {
        let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
        Self::new(ErrorKind::Incompatible { property, ours, theirs })
    }

    pub(crate) fn foreign(found: &[u8]) -> Self {
        let start = &found[..found.len().min(8)];
        let is_text = start.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'));
        let found = match start {
            [] => "no bytes at all".to_owned(),
            text if is_text => format!("the text {:?}", String::from_utf8_lossy(text)),
            bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
        };
        Self::new(ErrorKind::NotPetal { found })
    }

    pub(crate) fn version(found: u16) -> Self {
        Self::new(ErrorKind::UnsupportedVersion { found })
    }

    pub(crate) fn truncated(expected: u64, found: u64) -> Self {
        Self::new(ErrorKind::WrongLength { expected, found })
    }

    pub(crate) fn corrupt(
        field: &'static str,
        offset: usize,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self::new(ErrorKind::Corrupt { field, offset: offset as u64, expected, found })
    }

    pub(crate) fn secret_missing() -> Self {
        Self::new(ErrorKind::SecretMissing)
    }

    pub(crate) fn wrong_secret() -> Self {
        Self::new(ErrorKind::WrongSecret)
    }

    pub(crate) fn unaligned() -> Self {
        Self::new(ErrorKind::Unaligned)
    }

    /// Keys that are both members and known non-members.
    pub(crate) fn contradiction(hashes: Vec<u64>) -> Self {
        Self::new(ErrorKind::Contradiction { hashes })
    }

    /// An operation that the type of filter does not support; `reason` completes "a … filter".
    pub(crate) fn unsupported(
        filter: &'static str,
        reason: &'static str,
        advice: &'static str,
    ) -> Self {
        Self::new(ErrorKind::Unsupported { filter, reason, advice })
    }

    /// A filter that takes no more keys.
    pub(crate) fn full(reason: &'static str, advice: &'static str) -> Self {
        Self::new(ErrorKind::Full { reason, advice })
    }

    /// The cause with its values.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Returns true if an argument is out of range or missing.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(
            &*self.0,
            ErrorKind::Invalid { .. } | ErrorKind::NoMemory { .. } | ErrorKind::NoSize { .. }
        )
    }

    /// Returns true if no filter with hashes of this width reaches the rate for this number of keys.
    #[must_use]
    pub fn is_unattainable(&self) -> bool {
        matches!(&*self.0, ErrorKind::UnattainableFpr { .. })
    }

    /// Returns true if the system refused to allocate memory.
    #[must_use]
    pub fn is_alloc(&self) -> bool {
        matches!(&*self.0, ErrorKind::Alloc { .. })
    }

    /// Returns the hashes, ascending, of the keys that are both members and known non-members;
    /// empty for other errors.
    #[must_use]
    pub fn contradictions(&self) -> &[u64] {
        match &*self.0 {
            ErrorKind::Contradiction { hashes } => hashes,
            _ => &[],
        }
    }

    /// Returns true if this type of filter does not support the operation.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(&*self.0, ErrorKind::Unsupported { .. })
    }

    /// Returns true if the filter takes no more keys. The keys in it are unchanged.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(&*self.0, ErrorKind::Full { .. })
    }

    /// Returns true if two filters differ in layout or hash and cannot be combined.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(&*self.0, ErrorKind::Incompatible { .. })
    }

    /// Returns true if the bytes are not a petal file.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        matches!(&*self.0, ErrorKind::NotPetal { .. })
    }

    /// Returns true if the file has a version or type that this library does not support.
    #[must_use]
    pub fn is_unsupported_version(&self) -> bool {
        matches!(&*self.0, ErrorKind::UnsupportedVersion { .. })
    }

    /// Returns true if the file is a petal file, but damaged or truncated.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(&*self.0, ErrorKind::Corrupt { .. } | ErrorKind::WrongLength { .. })
    }

    /// Returns true if the secret of the filter is not in its file, and none was given.
    #[must_use]
    pub fn is_secret_missing(&self) -> bool {
        matches!(&*self.0, ErrorKind::SecretMissing)
    }

    /// Returns true if the secret of the filter is missing or wrong.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(&*self.0, ErrorKind::SecretMissing | ErrorKind::WrongSecret)
    }

    /// Returns true if reading or writing failed.
    #[must_use]
    #[cfg(feature = "std")]
    pub fn is_io(&self) -> bool {
        matches!(&*self.0, ErrorKind::Io(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ErrorKind::Invalid { parameter, expected, found } => {
                write!(f, "{parameter}: expected {expected}, found {found}")
            }
            ErrorKind::NoMemory { bytes, minimum } => {
                let unit = if *bytes == 1 { "byte" } else { "bytes" };
                write!(f, "no filter fits {bytes} {unit}; give at least {minimum} and at most 2^56")
            }
            ErrorKind::UnattainableFpr { capacity, fpr, floor } => {
                write!(
                    f,
                    "a false-positive rate of {fpr:e} for {} keys cannot be reached: with 64-bit \
                     hashes {floor:.1e} of all queries collide with some key; accept a higher rate",
                    Grouped(*capacity),
                )
            }
            ErrorKind::NoSize { needed } => {
                write!(f, "the size of the filter is missing; give {needed}")
            }
            ErrorKind::Alloc { bytes } => write!(
                f,
                "the system refused {bytes} bytes of memory; make the filter smaller or free some"
            ),
            ErrorKind::Incompatible { property, ours, theirs } => write!(
                f,
                "the filters differ in their {property} ({ours} and {theirs}) and cannot be \
                 combined; build both with the same parameters, hash and seed"
            ),
            ErrorKind::NotPetal { found } => write!(
                f,
                "not a petal file: expected it to begin with 89 50 45 54 41 4c 0d 0a, found {found}"
            ),
            ErrorKind::UnsupportedVersion { found } => write!(
                f,
                "version or type {found} of the format is newer than this petal; use the petal \
                 that wrote it, or a later one"
            ),
            ErrorKind::WrongLength { expected, found } => write!(
                f,
                "damaged: {expected} bytes expected, {found} found; the file was truncated or \
                 extended, fetch or build it again"
            ),
            ErrorKind::Corrupt { field, offset, expected, found } => write!(
                f,
                "damaged: {field} at byte {offset}: expected {expected}, found {found}; fetch or \
                 build the file again"
            ),
            ErrorKind::SecretMissing => f.write_str(
                "the secret of this filter is not in its file; give the secret it was built with",
            ),
            ErrorKind::WrongSecret => {
                f.write_str("wrong secret: the filter was built with another one; give that one")
            }
            ErrorKind::Unaligned => write!(
                f,
                "the bytes do not begin at a multiple of 64 in memory, so they cannot be queried \
                 in place; copy them with read_from"
            ),
            ErrorKind::Contradiction { hashes } => write!(
                f,
                "{} keys are among the members and among the known non-members; remove them from \
                 one of the lists",
                hashes.len()
            ),
            ErrorKind::Unsupported { filter, reason, advice } => {
                write!(f, "a {filter} filter {reason}; {advice}")
            }
            ErrorKind::Full { reason, advice } => {
                write!(f, "the filter is full: {reason}; {advice}")
            }
            #[cfg(feature = "std")]
            ErrorKind::Io(error) => error.fmt(f),
        }
    }
}

/// A number with thousands separators: `5,000,000`.
pub(crate) struct Grouped(pub(crate) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let first = match digits.len() % 3 {
            0 => 3,
            length => length,
        };
        let (first, rest) = digits.split_at(first);
        f.write_str(first)?;
        let mut at = 0;
        while let Some(group) = rest.get(at..at + 3) {
            write!(f, ",{group}")?;
            at += 3;
        }
        Ok(())
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &*self.0 {
            #[cfg(feature = "std")]
            ErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(feature = "std")]
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(ErrorKind::Io(error))
    }
}

#[cfg(feature = "std")]
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match *error.0 {
            ErrorKind::Io(error) => error,
            _ if error.is_alloc() => Self::new(io::ErrorKind::OutOfMemory, error),
            _ => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_keys_have_separators() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345, "12,345"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(Grouped(number).to_string(), text);
        }
        let error = Error::unattainable(1000, 1e-18, 5.4e-17).to_string();
        assert!(
            error.starts_with("a false-positive rate of 1e-18 for 1,000 keys cannot"),
            "{error}"
        );
        assert!(Error::no_memory(1).to_string().starts_with("no filter fits 1 byte; "));
    }
}
