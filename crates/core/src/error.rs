//! One error for the whole library: opaque, with predicates to act on and a text to read.
//!
//! The text says what is wrong and where, what was expected and found, and what to do.

use std::fmt;
use std::io;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a filter could not be made, united, read or written.
#[derive(Debug)]
pub struct Error(Box<Kind>);

#[derive(Debug)]
enum Kind {
    Invalid { what: &'static str, expected: &'static str, found: String },
    NoMemory { bytes: u64, least: u64 },
    Unattainable { keys: u64, rate: f64, floor: f64, wide: bool },
    Unsized,
    Alloc { bytes: u64 },
    Incompatible { what: &'static str, ours: String, theirs: String },
    Foreign { found: String },
    Version { found: u16 },
    Truncated { expected: u64, found: u64 },
    Corrupt { what: &'static str, at: u64, expected: String, found: String },
    Unaligned,
    Contradiction { hashes: Vec<u64> },
    Unsupported { filter: &'static str, what: &'static str },
    Full { what: &'static str, do_this: &'static str },
    Io(io::Error),
}

impl Error {
    fn new(kind: Kind) -> Self {
        Self(Box::new(kind))
    }

    pub(crate) fn invalid(
        what: &'static str,
        expected: &'static str,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(Kind::Invalid { what, expected, found: found.to_string() })
    }

    /// A rate that is none.
    pub(crate) fn rate(found: f64) -> Self {
        Self::invalid("rate", "more than 0 and less than 1", format!("{found:?}"))
    }

    pub(crate) fn no_memory(bytes: u64) -> Self {
        Self::new(Kind::NoMemory { bytes, least: 64 })
    }

    /// The same error where `bytes` are divided into `parts` of which each is a filter.
    pub(crate) fn in_parts(mut self, bytes: u64, parts: u64) -> Self {
        if let Kind::NoMemory { bytes: found, least } = &mut *self.0 {
            (*found, *least) = (bytes, *least * parts);
        }
        self
    }

    pub(crate) fn unattainable(keys: u64, rate: f64, floor: f64) -> Self {
        Self::new(Kind::Unattainable { keys, rate, floor, wide: false })
    }

    /// Nor with hashes of 128 bits.
    pub(crate) fn unattainable_wide(keys: u64, rate: f64, floor: f64) -> Self {
        Self::new(Kind::Unattainable { keys, rate, floor, wide: true })
    }

    pub(crate) fn unsized_filter() -> Self {
        Self::new(Kind::Unsized)
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        Self::new(Kind::Alloc { bytes })
    }

    pub(crate) fn incompatible(
        what: &'static str,
        ours: impl fmt::Debug,
        theirs: impl fmt::Debug,
    ) -> Self {
        let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
        Self::new(Kind::Incompatible { what, ours, theirs })
    }

    pub(crate) fn foreign(found: &[u8]) -> Self {
        let start = &found[..found.len().min(8)];
        let is_text = start.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'));
        let found = match start {
            [] => "no bytes at all".to_owned(),
            text if is_text => format!("the text {:?}", String::from_utf8_lossy(text)),
            bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
        };
        Self::new(Kind::Foreign { found })
    }

    pub(crate) fn version(found: u16) -> Self {
        Self::new(Kind::Version { found })
    }

    pub(crate) fn truncated(expected: u64, found: u64) -> Self {
        Self::new(Kind::Truncated { expected, found })
    }

    pub(crate) fn corrupt(
        what: &'static str,
        at: usize,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self::new(Kind::Corrupt { what, at: at as u64, expected, found })
    }

    pub(crate) fn unaligned() -> Self {
        Self::new(Kind::Unaligned)
    }

    /// Keys are said to be members and not to be.
    pub(crate) fn contradiction(hashes: Vec<u64>) -> Self {
        Self::new(Kind::Contradiction { hashes })
    }

    /// This type of filter cannot do that; `what` completes "a … filter".
    pub(crate) fn unsupported(filter: &'static str, what: &'static str) -> Self {
        Self::new(Kind::Unsupported { filter, what })
    }

    /// No more keys fit.
    pub(crate) fn full(what: &'static str, do_this: &'static str) -> Self {
        Self::new(Kind::Full { what, do_this })
    }

    /// An argument is outside what it may be.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(&*self.0, Kind::Invalid { .. } | Kind::NoMemory { .. } | Kind::Unsized)
    }

    /// No filter on hashes of this width reaches this rate for so many keys.
    #[must_use]
    pub fn is_unattainable(&self) -> bool {
        matches!(&*self.0, Kind::Unattainable { .. })
    }

    /// The system refused the memory.
    #[must_use]
    pub fn is_alloc(&self) -> bool {
        matches!(&*self.0, Kind::Alloc { .. })
    }

    /// The hashes, ascending, of keys that were said to be members and not to be; empty if the
    /// error is another one.
    #[must_use]
    pub fn contradictions(&self) -> &[u64] {
        match &*self.0 {
            Kind::Contradiction { hashes } => hashes,
            _ => &[],
        }
    }

    /// This type of filter cannot do what was asked of it.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(&*self.0, Kind::Unsupported { .. })
    }

    /// The filter takes no more keys; nothing of what it holds is lost.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(&*self.0, Kind::Full { .. })
    }

    /// Two filters differ in shape or hash and cannot be put together.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(&*self.0, Kind::Incompatible { .. })
    }

    /// The bytes are not a petal file.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        matches!(&*self.0, Kind::Foreign { .. })
    }

    /// The file is of a version or type that this library does not know.
    #[must_use]
    pub fn is_unsupported_version(&self) -> bool {
        matches!(&*self.0, Kind::Version { .. })
    }

    /// The file is a petal file, but damaged or cut short.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(&*self.0, Kind::Corrupt { .. } | Kind::Truncated { .. })
    }

    /// Reading or writing failed.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(&*self.0, Kind::Io(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Invalid { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            Kind::NoMemory { bytes, least } => {
                write!(f, "no filter fits {bytes} bytes; give at least {least} and at most 2^56")
            }
            Kind::Unattainable { keys, rate, floor, wide } => {
                let (bits, or) = if *wide {
                    (128, "")
                } else {
                    (64, ", or take 128-bit hashes: a WideBloomFilter (petal build --type wide)")
                };
                write!(
                    f,
                    "a false-positive rate of {rate:e} for {keys} keys cannot be reached: with \
                     {bits}-bit hashes {floor:.1e} of all queries collide with some key; accept \
                     a higher rate{or}"
                )
            }
            Kind::Unsized => write!(
                f,
                "the filter's size is not given; give keys and rate, keys and memory, or bits \
                 and probes"
            ),
            Kind::Alloc { bytes } => write!(
                f,
                "the system refused {bytes} bytes of memory; make the filter smaller or free some"
            ),
            Kind::Incompatible { what, ours, theirs } => write!(
                f,
                "the filters differ in their {what} ({ours} and {theirs}) and cannot be put \
                 together; build both with the same size, probes, hash and seed"
            ),
            Kind::Foreign { found } => write!(
                f,
                "not a petal file: expected it to begin with 89 50 45 54 41 4c 0d 0a, found {found}"
            ),
            Kind::Version { found } => write!(
                f,
                "version or type {found} of the format is newer than this petal; use the petal \
                 that wrote it, or a later one"
            ),
            Kind::Truncated { expected, found } => write!(
                f,
                "damaged: {expected} bytes expected, {found} found; the file was cut short or \
                 added to, fetch or build it again"
            ),
            Kind::Corrupt { what, at, expected, found } => write!(
                f,
                "damaged: {what} at byte {at}: expected {expected}, found {found}; fetch or build \
                 the file again"
            ),
            Kind::Unaligned => write!(
                f,
                "the bytes do not begin at a multiple of 64 in memory, so they cannot be queried \
                 in place; copy them with read_from"
            ),
            Kind::Contradiction { hashes } => write!(
                f,
                "{} keys are among the members and among the known non-members; take them out of \
                 one of the lists",
                hashes.len()
            ),
            Kind::Unsupported { filter, what } => {
                write!(f, "a {filter} filter {what}; docs/choosing.md tells which type does")
            }
            Kind::Full { what, do_this } => write!(f, "the filter is full: {what}; {do_this}"),
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
