//! The shape of hexadecimal keys: their case, and their length if all have the same.

use std::fmt;

/// The shape of keys that all are hexadecimal in one case, as digests are, or the bytes of such digits.
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
    /// The keys are bytes, one for two digits: a digit has no case.
    Bytes,
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
/// The keys are the bytes of digits.
pub(super) const BYTES: u8 = 1 << 6;

/// Returns whether keys with these flags have no shape, whatever other keys have.
pub(super) fn is_decided(flags: u8) -> bool {
    flags & OTHER != 0 || flags & (LOWER | UPPER) == LOWER | UPPER
}

/// The flags of all bytes of some keys.
#[derive(Default)]
pub(super) struct Flags(u8);

impl Flags {
    /// Adds the bytes of a key.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        self.0 |= digits_flags(key).unwrap_or_else(|| bytes_flags(key));
    }

    /// Returns the flags of all bytes so far.
    pub(super) fn all(&self) -> u8 {
        self.0
    }
}

/// Returns a word of this byte.
const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Returns the flags of a key of at least 8 bytes that has nothing but digits.
#[inline(always)]
fn digits_flags(key: &[u8]) -> Option<u8> {
    const HIGH: u64 = splat(0x80);
    let last = key.last_chunk()?;
    let (chunks, _) = key.as_chunks();
    let (mut lower, mut upper, mut bad) = (0, 0, 0);
    // Some bytes of the last chunk are looked at twice.
    for chunk in chunks.iter().chain([last]) {
        let word = u64::from_le_bytes(*chunk);
        // Of all digits only letters have bit 6; bit 5 is their case.
        let letters = word & splat(0x40);
        let in_lowercase = word << 1 & letters;
        lower |= in_lowercase;
        upper |= letters ^ in_lowercase;
        let in_uppercase = word & !(letters >> 1);
        // The highest bit of a byte shows the result of a comparison: below 10, above 0, below 7.
        let (number, letter) = (in_uppercase ^ splat(b'0'), in_uppercase ^ splat(0x40));
        let above_9 = number.wrapping_add(splat(0x80 - 10));
        let above_0 = letter.wrapping_add(splat(0x80 - 1));
        let above_6 = letter.wrapping_add(splat(0x80 - 7));
        bad |= above_9 & (!above_0 | above_6) | word;
    }
    let flag = |word: u64, flag| if word == 0 { 0 } else { flag };
    (bad & HIGH == 0).then_some(flag(lower, LOWER) | flag(upper, UPPER))
}

/// Returns the flags of a key, byte by byte.
fn bytes_flags(key: &[u8]) -> u8 {
    const FLAGS: [u8; 256] = {
        let (mut flags, mut byte) = ([OTHER; 256], 0);
        while byte < 256 {
            match byte as u8 {
                b'0'..=b'9' => flags[byte] = 0,
                b'-' | b':' => flags[byte] = SEPARATED,
                b'a'..=b'f' => flags[byte] = LOWER,
                b'A'..=b'F' => flags[byte] = UPPER,
                _ => {}
            }
            byte += 1;
        }
        flags
    };
    key.iter().fold(0, |flags, byte| flags | FLAGS[usize::from(*byte)])
}

impl HexShape {
    /// Lengths that are recorded: those of digests. Shorter keys may be words or numbers.
    pub(crate) const LENGTHS: std::ops::RangeInclusive<u64> = 32..=1024;

    /// Returns whether keys of this shape have that shape, too.
    pub(super) fn fits(self, shape: Self) -> bool {
        self.case == shape.case && (shape.length.is_none() || shape.length == self.length)
    }

    /// Returns whether all keys have this shape. Then [`append`](Self::append) changes none.
    pub(super) fn has<'a>(self, mut keys: impl Iterator<Item = &'a [u8]>) -> bool {
        let other_case = match self.case {
            HexCase::Lower => UPPER,
            HexCase::Upper => LOWER,
            HexCase::Bytes => return false,
        };
        let mut flags = Flags::default();
        keys.all(|key| {
            flags.add(key);
            let has_length = self.length.is_none_or(|length| key.len() as u64 == length);
            has_length && flags.all() & (OTHER | SEPARATED | other_case) == 0
        })
    }

    /// Appends a hexadecimal key in the case of this shape, and other keys as they are. `None` if the
    /// keys of this shape have one length, and the key is no hexadecimal text of it, or has not the bytes.
    pub(super) fn append(self, key: &[u8], to: &mut Vec<u8>) -> Option<()> {
        if self.case == HexCase::Bytes {
            to.extend_from_slice(key);
            return self.length.is_none_or(|length| 2 * key.len() as u64 == length).then_some(());
        }
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
                HexCase::Bytes => {}
            }
        }
        self.length.is_none_or(fits).then_some(())
    }

    /// Says what the digits of these keys are, if they are more than text.
    pub(super) fn expected(self) -> String {
        match self.length {
            Some(length) => format!("{length} hexadecimal digits, as the keys of the filter"),
            None => "hexadecimal digits".to_owned(),
        }
    }
}

/// A key that is not of the shape of a filter's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherShape {
    /// The number of digits that the keys of the filter have.
    pub(crate) digits: u64,
    /// The byte after a hash of that length with which the key begins.
    pub(crate) after: Option<u8>,
}

impl OtherShape {
    pub(super) fn new(key: &[u8], digits: u64) -> Self {
        let hash = usize::try_from(digits).ok().and_then(|digits| key.split_at_checked(digits));
        let after = hash.and_then(|(hash, after)| {
            let mut flags = Flags::default();
            flags.add(hash);
            after.first().filter(|_| flags.all() & (OTHER | SEPARATED) == 0)
        });
        Self { digits, after: after.copied() }
    }

    /// Returns the names of the transforms whose digests have as many digits.
    pub(crate) fn digests(self) -> Option<&'static str> {
        match self.digits {
            32 => Some("md5 or ntlm"),
            40 => Some("sha1"),
            64 => Some("sha256"),
            _ => None,
        }
    }
}

/// A key as an error names it.
pub(super) struct Described<'a> {
    pub(super) key: &'a [u8],
    /// Its bytes are not shown.
    pub(super) is_secret: bool,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Bytes of a key that are shown.
        const SHOWN: usize = 24;
        let mut flags = Flags::default();
        flags.add(self.key);
        match self.key {
            [] => f.write_str("nothing"),
            key if flags.all() & (OTHER | SEPARATED) == 0 => {
                write!(f, "{} hexadecimal digits", key.len())
            }
            [_] if self.is_secret => f.write_str("1 byte"),
            key if self.is_secret => write!(f, "{} bytes", key.len()),
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
            HexCase::Bytes => "bytes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_have_a_shape_are_not_changed() {
        let keys = ["", "1", "0a1", "0A1", "0aB", "0-a", "0a1\r", "0g1", "00:0a", "123456789a"];
        for case in [HexCase::Lower, HexCase::Upper, HexCase::Bytes] {
            for length in [None, Some(0), Some(3), Some(6), Some(10)] {
                let shape = HexShape { case, length };
                for (one, other) in keys.iter().flat_map(|one| keys.map(|other| (*one, other))) {
                    let both = [one, other].map(str::as_bytes);
                    let keeps = |key: &[u8]| {
                        let mut to = Vec::new();
                        shape.append(key, &mut to).is_some() && to == key
                    };
                    assert!(!shape.has(both.into_iter()) || both.into_iter().all(keeps));
                }
            }
        }
        let shape = HexShape { case: HexCase::Lower, length: Some(3) };
        assert!(shape.has([&b"0a1"[..], b"123"].into_iter()));
    }

    #[test]
    fn words_have_the_flags_of_their_bytes() {
        // Every byte at every place among digits.
        for length in [8, 9, 15, 16, 40, 41] {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    for digit in [b'0', b'9', b'a', b'F'] {
                        let mut key = vec![digit; length];
                        key[at] = byte;
                        let expected = bytes_flags(&key);
                        let is_digits = expected & (OTHER | SEPARATED) == 0;
                        assert_eq!(digits_flags(&key), is_digits.then_some(expected), "{key:?}");
                    }
                }
            }
        }
        assert_eq!(digits_flags(b"0123456"), None);
    }
}
