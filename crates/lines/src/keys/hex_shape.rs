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

/// Bytes that are looked at together, by vector instructions.
const LANES: usize = 16;

/// The flags of all bytes of some keys.
pub(super) struct Flags {
    /// Masks of bytes that may be in a key.
    valid: [u8; LANES],
    /// The bits of letters, and their complements: the case is one bit of them.
    letters: [u8; LANES],
    complements: [u8; LANES],
    /// Masks of separators.
    separators: [u8; LANES],
    /// The flags of keys that are shorter than the lanes.
    short: u8,
}

/// The bit of a letter that is set in lowercase.
const CASE: u8 = 0x20;

const fn mask(is: bool) -> u8 {
    (is as u8).wrapping_neg()
}

/// Returns whether a byte is a letter, and whether it may be in a key, as masks: without a branch.
#[inline(always)]
const fn masks(byte: u8) -> (u8, u8) {
    // The colon follows the digits.
    let letter = mask((byte | CASE).wrapping_sub(b'a') < 6);
    let digit_or_colon = mask(byte.wrapping_sub(b'0') < 11);
    (letter, letter | digit_or_colon | mask(byte == b'-'))
}

#[inline(always)]
const fn separator(byte: u8) -> u8 {
    mask(byte == b'-') | mask(byte == b':')
}

impl Default for Flags {
    fn default() -> Self {
        let none = [0; LANES];
        let valid = [u8::MAX; LANES];
        Self { valid, letters: none, complements: none, separators: none, short: 0 }
    }
}

impl Flags {
    /// Adds the bytes of a key.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        const FLAGS: [u8; 256] = {
            let (mut flags, mut at) = ([0; 256], 0);
            while at < 256 {
                let byte = at as u8;
                let (letter, valid) = masks(byte);
                let case = if byte & CASE == 0 { UPPER } else { LOWER };
                flags[at] = letter & case | !valid & OTHER | separator(byte) & SEPARATED;
                at += 1;
            }
            flags
        };
        match key.last_chunk() {
            None => key.iter().for_each(|byte| self.short |= FLAGS[usize::from(*byte)]),
            Some(last) => {
                let (chunks, rest) = key.as_chunks();
                chunks.iter().for_each(|chunk| self.add_chunk(chunk));
                if !rest.is_empty() {
                    self.add_chunk(last);
                }
            }
        }
    }

    #[inline(always)]
    fn add_chunk(&mut self, chunk: &[u8; LANES]) {
        for (lane, &byte) in chunk.iter().enumerate() {
            let (letter, valid) = masks(byte);
            self.valid[lane] &= valid;
            self.letters[lane] |= letter & byte;
            self.complements[lane] |= letter & !byte;
            self.separators[lane] |= separator(byte);
        }
    }

    /// Returns the flags of all bytes so far.
    pub(super) fn all(&self) -> u8 {
        let any = |lanes: &[u8; LANES]| lanes.iter().fold(0, |all, lane| all | lane);
        let flag = |is: bool, flag| mask(is) & flag;
        self.short
            | flag(self.valid != [u8::MAX; LANES], OTHER)
            | flag(any(&self.letters) & CASE != 0, LOWER)
            | flag(any(&self.complements) & CASE != 0, UPPER)
            | flag(any(&self.separators) != 0, SEPARATED)
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
            HexCase::Lower => "lowercase",
            HexCase::Upper => "uppercase",
        })
    }
}
