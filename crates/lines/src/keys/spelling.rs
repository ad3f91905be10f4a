//! How keys are spelled: with a CR at the end or without, hexadecimal in lowercase or in uppercase.
//!
//! Keys that look equal differ if their spellings do, and a join or a filter finds none of them. Every
//! pass notes the spelling of the keys that it reads, and filters of lines record it, so that both can
//! be compared. This is the one place that says what differs, for every reader of keys.
//!
//! Cost: a look at the last byte of each key, and at all bytes of keys that are hexadecimal, by vector
//! instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use super::hex_shape::{self, BYTES, HexCase, HexShape, LOWER, OTHER, SEPARATED, UPPER};
use super::{Fields, KeySpec, Transform};

/// The spellings in a set of keys; none if the set is empty.
///
/// The lowest byte has flags; above them is the length of the keys plus 1, without a CR at the end: 0 if
/// there are no keys, and `LENGTHS` if several lengths occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling(u64);

const LF: u8 = 1;
const CRLF: u8 = 1 << 1;

/// The lowest bit of the length.
const LENGTH: u32 = u8::BITS;
const LENGTHS: u64 = u32::MAX as u64;

/// How lines end whose CR is part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnds {
    /// No key ends with a CR.
    Lf,
    /// All keys do.
    Crlf,
    /// Some keys do.
    Both,
}

impl Spelling {
    /// Returns the spelling of keys with these properties. No shape: not all keys are hexadecimal in one
    /// case.
    pub(crate) fn new(ends: LineEnds, shape: Option<HexShape>) -> Self {
        let ends = match ends {
            LineEnds::Lf => LF,
            LineEnds::Crlf => CRLF,
            LineEnds::Both => LF | CRLF,
        };
        let case = match shape.map(|shape| shape.case) {
            Some(HexCase::Lower) => LOWER,
            Some(HexCase::Upper) => UPPER,
            Some(HexCase::Bytes) => BYTES,
            None => OTHER,
        };
        let length = shape.and_then(|shape| shape.length).map_or(LENGTHS, |length| length + 1);
        Self::of(ends | case, length)
    }

    /// Keys that are not lines and may have any shape.
    pub(crate) const UNKNOWN: Self = Self::of(LF | OTHER, LENGTHS);

    const fn of(flags: u8, length: u64) -> Self {
        Self(flags as u64 | length << LENGTH)
    }

    fn flags(self) -> u8 {
        self.0 as u8
    }

    /// Returns the spelling of one key, which is a line without its line end.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Self {
        let seen = SeenSpelling::default();
        seen.look_at(&KeySpec::default(), b'\n', [key].into_iter(), false);
        seen.get()
    }

    /// Returns the line ends in the first bytes of an input whose keys are its lines.
    pub(crate) fn of_line_ends(begin: &[u8]) -> Self {
        let is_crlf = |end: usize| end > 0 && begin[end - 1] == b'\r';
        let flag = |end| if is_crlf(end) { CRLF } else { LF };
        Self::of(memchr::memchr_iter(b'\n', begin).fold(0, |all, end| all | flag(end)), 0)
    }

    /// Returns the spellings of both sets of keys.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let flags = self.flags() | other.flags();
        match (self.0 >> LENGTH, other.0 >> LENGTH) {
            (one, 0) => Self::of(flags, one),
            (0, other) => Self::of(flags, other),
            (one, other) => Self::of(flags, if one == other { one } else { LENGTHS }),
        }
    }

    /// Returns how the lines end; `None` if there are no lines.
    pub(crate) fn line_ends(self) -> Option<LineEnds> {
        match self.flags() & (LF | CRLF) {
            0 => None,
            LF => Some(LineEnds::Lf),
            CRLF => Some(LineEnds::Crlf),
            _ => Some(LineEnds::Both),
        }
    }

    /// Returns whether all lines end with CRLF, whose CR is part of the key.
    #[must_use]
    pub fn is_crlf(self) -> bool {
        self.line_ends() == Some(LineEnds::Crlf)
    }

    /// Returns the shape of the keys if all are hexadecimal in one case and one has a letter, or all are the
    /// bytes of as many digits.
    #[must_use]
    pub fn hex_shape(self) -> Option<HexShape> {
        let case = match self.flags() & (LOWER | UPPER | OTHER | BYTES) {
            LOWER => HexCase::Lower,
            UPPER => HexCase::Upper,
            BYTES => HexCase::Bytes,
            _ => return None,
        };
        let is_separated = self.flags() & SEPARATED != 0;
        let length = (self.0 >> LENGTH).checked_sub(1).filter(|_| !is_separated);
        let length = length.filter(|length| HexShape::LENGTHS.contains(length));
        // Bytes of any length are nothing special.
        (case != HexCase::Bytes || length.is_some()).then_some(HexShape { case, length })
    }

    /// Returns the case if all keys are hexadecimal in one case and one has a letter.
    pub(crate) fn hex_case(self) -> Option<HexCase> {
        self.hex_shape().map(|shape| shape.case)
    }

    /// Returns the transform for keys that are looked up among these, after the transforms `before`, if
    /// all are hexadecimal in one case; `None` if it changes nothing.
    #[must_use]
    pub fn transform_to_case(self, before: &[Transform]) -> Option<Transform> {
        Transform::to_shape(self.hex_shape()?, before)
    }

    /// Returns why no key, or only some, can equal a key of a filter; `filter` is `None` if the filter
    /// does not record how its keys are spelled.
    #[must_use]
    pub fn differences(self, filter: Option<Self>) -> Vec<SpellingDifference> {
        use LineEnds::{Both, Crlf, Lf};
        use SpellingDifference as D;
        let ends = match (self.line_ends(), filter.map(Self::line_ends)) {
            // The last byte of a digest may be a CR.
            _ if filter.and_then(Self::hex_case) == Some(HexCase::Bytes) => None,
            (Some(Crlf), None) => Some(D::CrlfAndUnknown),
            (Some(Crlf), Some(Some(Lf))) => Some(D::CrlfAndLf),
            (Some(Lf), Some(Some(Crlf))) => Some(D::LfAndCrlf),
            (Some(Lf | Crlf), Some(Some(Both))) => Some(D::OneAndBoth),
            _ => None,
        };
        let case = match (self.hex_case(), filter.and_then(Self::hex_case)) {
            (Some(HexCase::Lower), Some(HexCase::Upper)) => Some(D::LowerAndUpper),
            (Some(HexCase::Upper), Some(HexCase::Lower)) => Some(D::UpperAndLower),
            _ => None,
        };
        ends.into_iter().chain(case).collect()
    }
}

/// How the keys of an input or filter differ from those of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpellingDifference {
    /// Lines end with CRLF; of the filter it is not known.
    CrlfAndUnknown,
    /// Lines end with CRLF, those in the filter do not.
    CrlfAndLf,
    /// Lines end with LF, those in the filter with CRLF.
    LfAndCrlf,
    /// Lines end in one way, those in the filter in both.
    OneAndBoth,
    /// Keys are hexadecimal in lowercase, those in the filter in uppercase.
    LowerAndUpper,
    /// Keys are hexadecimal in uppercase, those in the filter in lowercase.
    UpperAndLower,
}

impl SpellingDifference {
    /// Returns the text of a warning about the keys of `input`.
    #[must_use]
    pub fn text(self, input: &str, filter: &str) -> String {
        let subjects = [format!("the lines of {input} end"), format!("the keys of {input} are")];
        self.text_about(subjects.each_ref().map(String::as_str), filter)
    }

    /// Returns the text of a warning about one key.
    #[must_use]
    pub fn text_of_key(self, filter: &str) -> String {
        self.text_about(["the key ends", "the key is"], filter)
    }

    fn text_about(self, [ends, is]: [&str; 2], filter: &str) -> String {
        const CR: &str = "the CR is part of the line, so lines that look equal differ";
        const CASE: &str = "keys that look equal differ";
        match self {
            Self::CrlfAndUnknown => format!("{ends} with CRLF, and the CR is part of the key"),
            Self::CrlfAndLf => format!("{ends} with CRLF, those in {filter} do not: {CR}"),
            Self::LfAndCrlf => format!("{ends} with LF, those in {filter} with CRLF: {CR}"),
            Self::OneAndBoth => {
                format!("some lines in {filter} end with CRLF and others with LF: {CR}")
            }
            Self::LowerAndUpper => {
                format!("{is} hexadecimal in lowercase, those in {filter} in uppercase: {CASE}")
            }
            Self::UpperAndLower => {
                format!("{is} hexadecimal in uppercase, those in {filter} in lowercase: {CASE}")
            }
        }
    }

    /// Returns whether the difference matters. `found`: keys were found in the filter, or none were looked
    /// for; then it does not matter that the filter has lines that end in both ways.
    #[must_use]
    pub fn matters(self, found: bool) -> bool {
        !found || self != Self::OneAndBoth
    }

    /// Returns the transform that makes such keys equal.
    #[must_use]
    pub fn remedy(self) -> Transform {
        match self {
            Self::LowerAndUpper | Self::UpperAndLower => Transform::Lowercase,
            _ => Transform::StripCr,
        }
    }

    /// Returns whether the transform is needed when the filter is built. Otherwise it is enough to use
    /// it for the other keys.
    #[must_use]
    pub fn needs_rebuilding(self) -> bool {
        self != Self::CrlfAndUnknown
    }
}

/// The spelling of the keys that were read of an input so far, by any thread.
#[derive(Debug, Default)]
pub(crate) struct SeenSpelling(AtomicU64);

impl SeenSpelling {
    /// Returns the spellings so far.
    pub(crate) fn get(&self) -> Spelling {
        Spelling(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, spelling: Spelling) {
        let union = |seen| Some(Spelling(seen).union(spelling).0);
        // It cannot fail: there is always a union.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, union);
    }

    /// Notes the spelling of the keys of records that end in `delimiter`; `unended`: the last one has no
    /// end.
    pub(crate) fn look_at<'a>(
        &self,
        spec: &KeySpec,
        delimiter: u8,
        mut keys: impl ExactSizeIterator<Item = &'a [u8]>,
        unended: bool,
    ) {
        let seen = self.get();
        let ended = keys.len() - usize::from(unended);
        let are_bytes = Transform::read_digits(&spec.transforms);
        // The last byte of a digest may be a CR.
        let is_line = spec.fields == Fields::Line && !are_bytes;
        let looks_at_ends =
            is_line && delimiter == b'\n' && seen.flags() & (LF | CRLF) != LF | CRLF;
        let mut found = Spelling::default();
        let (mut ends, mut number) = (0, 0);
        if !hex_shape::is_decided(seen.flags()) {
            match spec.fields.count() {
                1 if are_bytes => found = bytes_of(keys.by_ref()),
                1 => found = shape_of(keys.by_ref(), ended, &mut ends, &mut number),
                _ => found = Spelling::of(OTHER, LENGTHS),
            }
        }
        if looks_at_ends {
            // Keys after those of which the shape was of interest.
            for key in keys.take(ended.saturating_sub(number)) {
                ends |= if key.ends_with(b"\r") { CRLF } else { LF };
            }
        } else {
            ends = if !is_line && ended > 0 { LF } else { 0 };
        }
        let found = found.union(Spelling::of(ends, 0));
        // Most batches find nothing new.
        if seen.union(found) != seen {
            self.add(found);
        }
    }
}

/// Returns the number of digits of keys that are the bytes of digits.
fn bytes_of<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Spelling {
    let of = |key: &[u8]| Spelling::of(BYTES, (2 * key.len() as u64 + 1).min(LENGTHS));
    keys.fold(Spelling::default(), |all, key| all.union(of(key)))
}

/// Returns the case and the length of keys without a CR at the end, and adds the line ends of the first
/// `ended`. It stops at keys that show that they have no shape, and adds the number of those read.
fn shape_of<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    ended: usize,
    ends: &mut u8,
    number: &mut usize,
) -> Spelling {
    let (mut flags, mut length) = (hex_shape::Flags::default(), 0);
    for key in keys {
        let (key, end) = match key.strip_suffix(b"\r") {
            Some(key) => (key, CRLF),
            None => (key, LF),
        };
        *ends |= if *number < ended { end } else { 0 };
        *number += 1;
        flags.add(key);
        let own = key.len() as u64 + 1;
        length = if length == 0 || length == own { own } else { LENGTHS };
        let is_turn = number.is_multiple_of(16) || key.len() > 1 << 10;
        if is_turn && hex_shape::is_decided(flags.all()) {
            break;
        }
    }
    Spelling::of(flags.all(), length.min(LENGTHS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelling(keys: &[&[u8]], unended: bool) -> Spelling {
        let seen = SeenSpelling::default();
        seen.look_at(&KeySpec::default(), b'\n', keys.iter().copied(), unended);
        seen.get()
    }

    #[test]
    fn spelling_is_that_of_all_keys() {
        use HexCase::{Lower, Upper};
        use LineEnds::{Both, Crlf, Lf};
        type Case<'a> = (&'a [&'a [u8]], bool, Option<LineEnds>, Option<HexCase>);
        let cases: [Case<'_>; 12] = [
            (&[], false, None, None),
            (&[b"12", b"34"], false, Some(Lf), None),
            (&[b"0a", b"", b"34"], false, Some(Lf), Some(Lower)),
            (&[b"0A\r", b"\r"], false, Some(Crlf), Some(Upper)),
            (&[b"0A\r", b"BC"], true, Some(Crlf), Some(Upper)),
            (&[b"0A\r", b"BC"], false, Some(Both), Some(Upper)),
            (&[b"0a"], true, None, Some(Lower)),
            (&[b"0A", b"0b"], false, Some(Lf), None),
            (&[b"0Ab"], false, Some(Lf), None),
            (&[b"0A", b"word"], false, Some(Lf), None),
            (&[b"00-1F:AA"], false, Some(Lf), Some(Upper)),
            (&[b"0123456789abcdefXYZ"], false, Some(Lf), None),
        ];
        for (keys, unended, ends, case) in cases {
            let spelling = spelling(keys, unended);
            assert_eq!((spelling.line_ends(), spelling.hex_case()), (ends, case), "{keys:?}");
        }
        // Lines that end in NUL have no CRLF.
        let seen = SeenSpelling::default();
        seen.look_at(&KeySpec::default(), 0, [&b"a\r"[..]].into_iter(), false);
        assert_eq!(seen.get().line_ends(), None);
    }

    #[test]
    fn shape_is_that_of_all_bytes_of_all_keys() {
        let digest = |letter: &str, length| letter.repeat(length);
        let shape = |keys: &[&str]| {
            let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
            spelling(&keys, false).hex_shape().map(|shape| (shape.case, shape.length))
        };
        for length in [32, 33, 40, 47, 48, 64, 128, 5000] {
            let (key, upper) = (digest("a", length), digest("B", length));
            let known = (length <= 1024).then_some(length as u64);
            assert_eq!(shape(&[&*key; 40]), Some((HexCase::Lower, known)));
            assert_eq!(shape(&[&format!("{upper}\r")]), Some((HexCase::Upper, known)));
            assert_eq!(shape(&[&key, &upper]), None);
            assert_eq!(shape(&[&key, &key[1..]]), Some((HexCase::Lower, None)));
            assert_eq!(shape(&[&key, ""]), Some((HexCase::Lower, None)));
            // Each byte counts, in the first key and in a late one.
            for at in 0..length {
                for other in [b'g', b'@', b'G', b'`', b'/', b' ', b'B', 0xc1, 0xe1, 0, b';'] {
                    let mut changed = key.clone().into_bytes();
                    changed[at] = other;
                    assert_eq!(spelling(&[&changed], false).hex_shape(), None, "{other} at {at}");
                }
                if at % 7 == 0 {
                    let late = format!("{}-{}", &key[..at], &key[at + 1..]);
                    let keys: Vec<_> = [&*key; 20].into_iter().chain([&*late]).collect();
                    assert_eq!(shape(&keys), Some((HexCase::Lower, None)));
                }
            }
        }
        let short = digest("a", 31);
        assert_eq!(shape(&[&short]), Some((HexCase::Lower, None)));
        assert_eq!(shape(&[&digest("0", 40)]), None);
    }

    #[test]
    fn spellings_of_batches_add_up() {
        let seen = SeenSpelling::default();
        let look = |key: &'static [u8]| {
            seen.look_at(&KeySpec::default(), b'\n', std::iter::once(key), false);
        };
        look(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_eq!(seen.get().hex_shape().unwrap().length, Some(40));
        look(b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        assert_eq!(seen.get().hex_shape().unwrap().length, Some(40));
        look(b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        assert_eq!(seen.get().hex_shape().unwrap().length, None);
        look(b"BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB");
        assert_eq!(seen.get().hex_shape(), None);
    }

    #[test]
    fn keys_that_are_bytes_of_digits_have_a_length() {
        let spec = KeySpec { transforms: vec![Transform::Unhex], ..KeySpec::default() };
        let seen = SeenSpelling::default();
        let look = |keys: &[&[u8]]| {
            seen.look_at(&spec, b'\n', keys.iter().copied(), false);
            (seen.get().hex_shape().map(|shape| (shape.case, shape.length)), seen.get().is_crlf())
        };
        // The last byte is a CR.
        let (sha1, md5) = ([13; 20], [b'a'; 16]);
        assert_eq!(look(&[&sha1, &sha1]), (Some((HexCase::Bytes, Some(40))), false));
        assert_eq!(seen.get().differences(Some(seen.get())), []);
        assert_eq!(look(&[&md5]).0, None);
    }

    #[test]
    fn difference_needs_all_keys_of_one_side() {
        let of = |case| Some(HexShape { case, length: None });
        let lower = Spelling::new(LineEnds::Lf, of(HexCase::Lower));
        let upper = Spelling::new(LineEnds::Lf, of(HexCase::Upper));
        let crlf = Spelling::new(LineEnds::Crlf, None);
        let other = Spelling::new(LineEnds::Lf, None);
        use SpellingDifference as D;
        let cases: [(Spelling, Option<Spelling>, &[D]); 10] = [
            (lower, Some(upper), &[D::LowerAndUpper]),
            (upper, Some(lower), &[D::UpperAndLower]),
            (upper.union(lower), Some(lower), &[]),
            (upper.union(other), Some(lower), &[]),
            (upper, None, &[]),
            (crlf, None, &[D::CrlfAndUnknown]),
            (crlf, Some(other), &[D::CrlfAndLf]),
            (other, Some(crlf), &[D::LfAndCrlf]),
            (other, Some(crlf.union(other)), &[D::OneAndBoth]),
            (crlf, Some(Spelling::default()), &[]),
        ];
        for (keys, filter, expected) in cases {
            assert_eq!(keys.differences(filter), expected, "{keys:?} {filter:?}");
        }
    }
}
