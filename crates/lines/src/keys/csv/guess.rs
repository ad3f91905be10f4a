//! The separator of fields, from the first records.
//!
//! The separator is the byte that divides the first lines into the same number of fields, at least
//! two. A second line is looked at only if the first leaves several candidates, so a header decides,
//! and a stream is hardly held back. The answer depends only on the bytes, and not on how many of them
//! a pipe has delivered. If several candidates are left, a tab is the separator, because text hardly
//! has tabs; others are not chosen from, because a wrong separator makes wrong keys.

use super::dialect::Dialect;
use super::ends::{EndScan, csv_records};
use super::record::Fields;

/// The bytes that may separate fields, the most certain first.
pub(crate) const SEPARATORS: [u8; 4] = [b'\t', b'|', b';', b','];

/// Lines that are looked at: a header and a record.
const LINES: usize = 2;

/// Bytes that are looked at.
const SAMPLE: usize = 64 << 10;

/// Returns the separator of the records that `text` begins with; `None` if more bytes are needed.
/// `ended`: there are none. `dialect` returns the dialect with a separator.
///
/// # Errors
/// If several bytes divide them evenly; two of these.
pub(crate) fn guess_separator(
    text: &[u8],
    ended: bool,
    dialect: impl Fn(u8) -> Dialect,
) -> Result<Option<u8>, [u8; 2]> {
    let whole = ended || text.len() >= SAMPLE;
    let text = &text[..text.len().min(SAMPLE)];
    let first = text.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(text.len());
    let found = SEPARATORS
        .map(|separator| (separator, Candidate::new(&text[first..], whole, dialect(separator))));
    let mut left = Vec::new();
    for line in 1..=LINES {
        if found.iter().any(|(_, one)| one.lines < line && !one.irregular && !whole) {
            return Ok(None);
        }
        let regular = |clean| {
            let of_line = found.iter().filter(move |(_, one)| one.divides(line, clean));
            of_line.map(|(separator, _)| *separator).collect::<Vec<_>>()
        };
        let clean = regular(true);
        let now = if clean.is_empty() { regular(false) } else { clean };
        if now.is_empty() {
            break;
        }
        left = now;
        if left.len() == 1 {
            break;
        }
    }
    match left[..] {
        [] => Ok(Some(b',')),
        [one] | [one @ b'\t', ..] => Ok(Some(one)),
        [one, two, ..] => Err([one, two]),
    }
}

/// How a candidate divides the lines at the start of a text.
struct Candidate {
    /// The lines that it divides into records of as many fields.
    lines: usize,
    /// Whether the next record has another number of fields or only one.
    irregular: bool,
    /// The lines before the first record with a quote inside a field without quotes, which another
    /// separator has hardly.
    clean: usize,
    /// Whether there is a record with several fields.
    any: bool,
}

impl Candidate {
    /// `whole`: the text ends with a record.
    fn new(text: &[u8], whole: bool, dialect: Dialect) -> Self {
        let mut records = csv_records(text, dialect, LINES);
        let length = records.iter().map(|record| record.len() + 1).sum::<usize>();
        if whole && records.len() < LINES && length < text.len() {
            records.push(&text[length..]);
        }
        let mut found = Self { lines: 0, irregular: false, clean: usize::MAX, any: false };
        let mut fields = None;
        for record in records {
            if !matches!(record, b"" | b"\r") {
                let count = Fields::new(record, dialect).count();
                if count == 1 || count != *fields.get_or_insert(count) {
                    found.irregular = true;
                    break;
                }
                found.any = true;
                if EndScan::new(dialect).misplaced_quotes(record) > 0 {
                    found.clean = found.clean.min(found.lines);
                }
            }
            found.lines += 1 + memchr::memchr_iter(b'\n', record).count();
        }
        found
    }

    /// Returns whether it divides the text up to this line evenly; `clean`: also without a quote that
    /// is misplaced.
    fn divides(&self, line: usize, clean: bool) -> bool {
        self.any && (self.lines >= line || !self.irregular) && (self.clean >= line || !clean)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Quoting;
    use super::*;

    fn rfc(separator: u8) -> Dialect {
        Dialect::new(separator, Quoting::BySeparator, None)
    }

    #[test]
    fn separator_divides_the_first_lines_evenly() {
        let cases = [
            ("1\tParis, France\n2\tRome\n", Ok(b'\t')),
            ("1\tParis, France\n", Ok(b'\t')),
            ("1\ta, b\n2\ta, b\n", Ok(b'\t')),
            ("\n1\t\"Paris, France\n2\t\"Rome\n", Ok(b'\t')),
            ("\r\n\n\nid;name\n1;a, b\n", Ok(b';')),
            ("id|name, first\n1|a\n", Ok(b'|')),
            ("id,genres\n1,a|b\n2,a|b\n", Ok(b',')),
            ("id,text\n1,\"a;b\n;c\n;\"\n", Ok(b',')),
            ("\"id\";\"name, full\"\n1;2\n", Ok(b';')),
            ("\"a\nb\nc\";1\n2;3\n", Ok(b';')),
            ("id\n1\n", Ok(b',')),
            ("a b\n1;2\n", Ok(b',')),
            ("", Ok(b',')),
            ("\r", Ok(b',')),
            ("\"a;b\nc;d\n", Ok(b',')),
            ("1;\"a\n", Ok(b';')),
            ("1;2", Ok(b';')),
            ("1;5\" pipe\n2;\n", Ok(b';')),
            // A wrong separator leaves quotes inside fields.
            ("1,\"Mozilla/5.0 (X11; Linux)\",200\n", Ok(b',')),
            ("1;\"Smith, John\"\n2;\"Doe, Jane\"\n", Ok(b';')),
            ("1,5;2,5\n1,7;3,5\n", Err([b';', b','])),
            ("1,Toy Story,Adventure|Animation\n2,Heat,Crime|Action\n", Err([b'|', b','])),
            ("1,Toy Story,Adventure|Animation\n2,Heat,Crime\n", Ok(b',')),
            ("a;b,c\n1;2;3,4,5\n", Err([b';', b','])),
            ("a;b,c", Err([b';', b','])),
        ];
        for (text, separator) in cases {
            let separator = separator.map(Some);
            assert_eq!(guess_separator(text.as_bytes(), true, rfc), separator, "{text:?}");
            // What a pipe has delivered does not change the answer.
            for end in 0..text.len() {
                let early = guess_separator(&text.as_bytes()[..end], false, rfc);
                assert!(early == Ok(None) || early == separator, "{text:?} {end}");
            }
        }
        assert_eq!(guess_separator(b"a;b\n", false, rfc), Ok(Some(b';')));
        assert_eq!(guess_separator(b"a;b,c\n", false, rfc), Ok(None));
        assert_eq!(guess_separator(b"a;b,c\nd;e,f\n", false, rfc), Err([b';', b',']));
        assert_eq!(guess_separator(&vec![b';'; SAMPLE], false, rfc), Ok(Some(b';')));
    }
}
