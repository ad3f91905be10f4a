//! How keys are spelled: with a CR at the end or without, hexadecimal in lowercase or in uppercase.
//!
//! Keys that look equal differ if their spellings do, and a join or a filter finds none of them. Every
//! pass notes the spelling of the keys that it reads, and filters of lines record it, so that both can
//! be compared. This is the one place that says what differs, for every reader of keys.
//!
//! Cost: a look at the last byte of each key, and at the first 16 of keys that are hexadecimal.

use std::sync::atomic::{AtomicU8, Ordering};

use super::{Fields, KeySpec, Transform};

/// The spellings in a set of keys; none if the set is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling(u8);

const LF: u8 = 1;
const CRLF: u8 = 1 << 1;
const LOWER: u8 = 1 << 2;
const UPPER: u8 = 1 << 3;
/// A key is not hexadecimal.
const OTHER: u8 = 1 << 4;

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

/// The case of hexadecimal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HexCase {
    Lower,
    Upper,
}

impl Spelling {
    /// Returns the spelling of keys with these properties. No line ends: the set is empty. No case: not
    /// all keys are hexadecimal in one case.
    pub(crate) fn new(ends: LineEnds, case: Option<HexCase>) -> Self {
        let ends = match ends {
            LineEnds::Lf => LF,
            LineEnds::Crlf => CRLF,
            LineEnds::Both => LF | CRLF,
        };
        let case = match case {
            Some(HexCase::Lower) => LOWER,
            Some(HexCase::Upper) => UPPER,
            None => OTHER,
        };
        Self(ends | case)
    }

    /// Keys that are not lines and may be hexadecimal in any case.
    pub(crate) const UNKNOWN: Self = Self(LF | OTHER);

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
        Self(memchr::memchr_iter(b'\n', begin).fold(0, |all, end| all | flag(end)))
    }

    /// Returns the spellings of both sets of keys.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns how the lines end; `None` if there are no lines.
    pub(crate) fn line_ends(self) -> Option<LineEnds> {
        match self.0 & (LF | CRLF) {
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

    /// Returns the case if all keys are hexadecimal in one case and one has a letter.
    pub(crate) fn hex_case(self) -> Option<HexCase> {
        match self.0 & (LOWER | UPPER | OTHER) {
            LOWER => Some(HexCase::Lower),
            UPPER => Some(HexCase::Upper),
            _ => None,
        }
    }

    /// Returns the transform that gives other keys the case of these, if all are hexadecimal in one case.
    #[must_use]
    pub fn transform_to_case(self) -> Option<Transform> {
        self.hex_case().map(|case| match case {
            HexCase::Lower => Transform::Lowercase,
            HexCase::Upper => Transform::Uppercase,
        })
    }

    /// Returns why no key, or only some, can equal a key of a filter; `filter` is `None` if the filter
    /// does not record how its keys are spelled.
    #[must_use]
    pub fn differences(self, filter: Option<Self>) -> Vec<SpellingDifference> {
        use LineEnds::{Both, Crlf, Lf};
        use SpellingDifference as D;
        let ends = match (self.line_ends(), filter.map(Self::line_ends)) {
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
pub(crate) struct SeenSpelling(AtomicU8);

impl SeenSpelling {
    /// Returns the spellings so far.
    pub(crate) fn get(&self) -> Spelling {
        Spelling(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, spelling: Spelling) {
        self.0.fetch_or(spelling.0, Ordering::Relaxed);
    }

    /// Notes the spelling of the keys of records that end in `delimiter`; `unended`: the last one has no
    /// end.
    pub(crate) fn look_at<'a>(
        &self,
        spec: &KeySpec,
        delimiter: u8,
        keys: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
        unended: bool,
    ) {
        let seen = self.get().0;
        let (mut found, is_line) = (0, spec.fields == Fields::Line);
        if is_line && delimiter == b'\n' && seen & (LF | CRLF) != LF | CRLF {
            let ended = keys.len() - usize::from(unended);
            for key in keys.clone().take(ended) {
                found |= if key.ends_with(b"\r") { CRLF } else { LF };
            }
        } else if !is_line && keys.len() > usize::from(unended) {
            found |= LF;
        }
        let is_decided = |flags| flags & OTHER != 0 || flags & (LOWER | UPPER) == LOWER | UPPER;
        if !is_decided(seen) {
            for key in keys {
                found |= if spec.fields.count() == 1 { hex_flags(key) } else { OTHER };
                if is_decided(found) {
                    break;
                }
            }
        }
        // Most batches find nothing new.
        if seen | found != seen {
            self.add(Spelling(found));
        }
    }
}

/// Bytes of a key that are looked at: a digest shows its case in them.
const HEX_BYTES: usize = 16;

/// Returns the cases of the letters of a hexadecimal key, which may have `-` and `:` between digits.
fn hex_flags(key: &[u8]) -> u8 {
    const FLAGS: [u8; 256] = {
        let mut flags = [OTHER; 256];
        let mut byte = 0;
        while byte < 256 {
            match byte as u8 {
                b'0'..=b'9' | b'-' | b':' => flags[byte] = 0,
                b'a'..=b'f' => flags[byte] = LOWER,
                b'A'..=b'F' => flags[byte] = UPPER,
                _ => {}
            }
            byte += 1;
        }
        flags
    };
    let key = key.strip_suffix(b"\r").unwrap_or(key);
    key.iter().take(HEX_BYTES).fold(0, |flags, byte| flags | FLAGS[usize::from(*byte)])
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
            (&[b"0123456789abcdefXYZ"], false, Some(Lf), Some(Lower)),
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
    fn difference_needs_all_keys_of_one_side() {
        let lower = Spelling::new(LineEnds::Lf, Some(HexCase::Lower));
        let upper = Spelling::new(LineEnds::Lf, Some(HexCase::Upper));
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
