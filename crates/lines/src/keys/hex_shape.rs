//! The shape of hexadecimal keys: their case, and their length if all have the same.

use std::fmt;

/// The shape of keys that all are hexadecimal in one case, as digests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HexShape {
    pub(crate) case: HexCase,
    /// The number of digits if all keys have as many, and nothing between them.
    pub length: Option<u64>,
}

/// The case of hexadecimal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HexCase {
    Lower,
    Upper,
}

/// Whether keys are hexadecimal digits, and in one case.
#[derive(Default)]
pub(crate) struct HexDigits(Flags);

impl HexDigits {
    pub(crate) fn add(&mut self, key: &[u8]) {
        self.0.add(key);
    }

    pub(crate) fn is_digits(&self) -> bool {
        self.0.all() & (OTHER | SEPARATED) == 0
    }

    pub(crate) fn is_one_case(&self) -> bool {
        self.0.all() & (LOWER | UPPER) != LOWER | UPPER
    }
}

/// Flags of bytes: a lowercase letter, an uppercase letter.
pub(super) const LOWER: u8 = 1 << 2;
pub(super) const UPPER: u8 = 1 << 3;
/// The byte is not hexadecimal.
pub(super) const OTHER: u8 = 1 << 4;
/// The byte may be between digits: `-` or `:`.
pub(super) const SEPARATED: u8 = 1 << 5;

/// Returns whether keys with these flags have no shape, whatever other keys have.
pub(super) fn is_decided(flags: u8) -> bool {
    flags & OTHER != 0 || flags & (LOWER | UPPER) == LOWER | UPPER
}

/// Returns the flags of a byte, without a branch.
#[inline(always)]
const fn flags_of(byte: u8) -> u8 {
    const fn mask(is: bool) -> u8 {
        (is as u8).wrapping_neg()
    }
    let letter = mask((byte | 0x20).wrapping_sub(b'a') < 6);
    let digit = mask(byte.wrapping_sub(b'0') < 10);
    let separator = mask(byte == b'-') | mask(byte == b':');
    let case = if byte & 0x20 == 0 { UPPER } else { LOWER };
    letter & case | separator & SEPARATED | !(letter | digit | separator) & OTHER
}

/// Bytes whose flags are computed at once.
const LANES: usize = 16;

/// The flags of all bytes of some keys.
#[derive(Default)]
pub(super) struct Flags {
    lanes: [u8; LANES],
    /// Of keys that are shorter than the lanes.
    short: u8,
}

impl Flags {
    /// Adds the bytes of a key.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        const FLAGS: [u8; 256] = {
            let (mut flags, mut byte) = ([0; 256], 0);
            while byte < 256 {
                flags[byte] = flags_of(byte as u8);
                byte += 1;
            }
            flags
        };
        match key.last_chunk() {
            None => key.iter().for_each(|byte| self.short |= FLAGS[usize::from(*byte)]),
            Some(last) => {
                key.as_chunks().0.iter().for_each(|chunk| self.add_chunk(chunk));
                self.add_chunk(last);
            }
        }
    }

    #[inline(always)]
    fn add_chunk(&mut self, chunk: &[u8; LANES]) {
        for (lane, byte) in self.lanes.iter_mut().zip(chunk) {
            *lane |= flags_of(*byte);
        }
    }

    /// Returns the flags of all bytes so far.
    pub(super) fn all(&self) -> u8 {
        self.lanes.iter().fold(self.short, |all, lane| all | lane)
    }
}

impl HexShape {
    /// Lengths that are recorded: those of digests. Shorter keys may be words or numbers.
    pub(crate) const LENGTHS: std::ops::RangeInclusive<u64> = 32..=1024;

    /// Returns whether keys of this shape have that shape, too.
    pub(super) fn fits(self, shape: Self) -> bool {
        self.case == shape.case && (shape.length.is_none() || shape.length == self.length)
    }

    /// Appends a hexadecimal key in the case of this shape, and other keys as they are. `None` if the
    /// keys of this shape have one length, and the key is no hexadecimal text of it.
    pub(super) fn append(self, key: &[u8], to: &mut Vec<u8>) -> Option<()> {
        let mut flags = Flags::default();
        let digits = key.strip_suffix(b"\r").unwrap_or(key);
        flags.add(digits);
        let flags = flags.all();
        let fits = |length| flags & (OTHER | SEPARATED) == 0 && digits.len() as u64 == length;
        let start = to.len();
        to.extend_from_slice(key);
        if flags & OTHER == 0 {
            match self.case {
                HexCase::Lower => to[start..].make_ascii_lowercase(),
                HexCase::Upper => to[start..].make_ascii_uppercase(),
            }
        }
        self.length.is_none_or(fits).then_some(())
    }

    /// Says what the digits of these keys are, if they are more than text.
    pub(super) fn expected(self) -> String {
        match self.length {
            Some(length) => format!("{length} hexadecimal digits, as all keys of the filter have"),
            None => "hexadecimal digits".to_owned(),
        }
    }
}

/// A key as an error names it.
pub(super) struct Described<'a>(pub(super) &'a [u8]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Bytes of a key that are shown.
        const SHOWN: usize = 24;
        let mut flags = Flags::default();
        flags.add(self.0);
        match self.0 {
            [] => f.write_str("nothing"),
            key if flags.all() & (OTHER | SEPARATED) == 0 => {
                write!(f, "{} hexadecimal digits", key.len())
            }
            key => {
                let shown = &key[..key.len().min(SHOWN)];
                let dots = if shown.len() < key.len() { "..." } else { "" };
                write!(f, "'{}{dots}'", shown.escape_ascii())
            }
        }
    }
}

impl fmt::Display for HexShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.case {
            HexCase::Lower => "hexadecimal in lowercase",
            HexCase::Upper => "hexadecimal in uppercase",
        })
    }
}
