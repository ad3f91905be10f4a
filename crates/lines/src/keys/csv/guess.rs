//! The separator of fields, from the first records.
//!
//! The separator is the byte that divides the first lines into the same number of fields, at least
//! two. Lines are added one by one until only one candidate is left, so the answer depends only on
//! the bytes, and not on how many of them a pipe has delivered. If several are left after the sample,
//! text has the less probable ones: decimal commas, for example, are as regular as semicolons.

use super::dialect::Dialect;
use super::ends::csv_records;
use super::record::Fields;

/// The bytes that may separate fields, the most certain first.
pub(crate) const SEPARATORS: [u8; 4] = [b'\t', b'|', b';', b','];

/// Lines that are looked at.
const LINES: usize = 10;

/// Bytes that are looked at.
const SAMPLE: usize = 64 << 10;

/// Returns the separator of the records that `text` begins with; `None` if more bytes are needed.
/// `ended`: there are none. `dialect` returns the dialect with a separator.
pub(crate) fn guess_separator(
    text: &[u8],
    ended: bool,
    dialect: impl Fn(u8) -> Dialect,
) -> Option<u8> {
    let cut = text.len() >= SAMPLE;
    let mut text = std::borrow::Cow::Borrowed(&text[..text.len().min(SAMPLE)]);
    if ended || cut {
        text.to_mut().push(b'\n');
    }
    let lines = memchr::memchr_iter(b'\n', &text).take(LINES).count();
    let regular = SEPARATORS.map(|separator| Regular::of(&text, dialect(separator)));
    for line in 1..=lines {
        let mut left = SEPARATORS.iter().zip(&regular).filter(|(_, found)| found.lines >= line);
        match (left.next(), left.next()) {
            (Some((separator, _)), None) => return Some(*separator),
            (None, _) => return Some(longest(&regular)),
            _ => {}
        }
    }
    (ended || cut || lines == LINES).then(|| longest(&regular))
}

/// The lines at the start of a text that a candidate divides into records of as many fields.
struct Regular {
    /// Their number: all, unless a record has another number of fields or only one.
    lines: usize,
    /// Whether there is a record.
    any: bool,
}

impl Regular {
    fn of(text: &[u8], dialect: Dialect) -> Self {
        let (mut lines, mut fields) = (0, None);
        for record in csv_records(text, dialect, LINES) {
            if !matches!(record, b"" | b"\r") {
                let count = Fields::new(record, dialect).count();
                if count == 1 || count != *fields.get_or_insert(count) {
                    return Self { lines, any: true };
                }
            }
            lines += 1 + memchr::memchr_iter(b'\n', record).count();
        }
        Self { lines: usize::MAX, any: fields.is_some() }
    }
}

/// Returns the first of the candidates that are regular for the most lines; a comma if none is.
fn longest(regular: &[Regular; SEPARATORS.len()]) -> u8 {
    let lines = |found: &Regular| if found.any { found.lines } else { 0 };
    let most = regular.iter().map(lines).max().unwrap_or(0);
    let first = SEPARATORS.into_iter().zip(regular).find(|(_, found)| lines(found) == most);
    first.filter(|_| most > 0).map_or(b',', |(separator, _)| separator)
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
            ("1\tParis, France\n2\tRome\n", b'\t'),
            ("1\tParis, France\n", b'\t'),
            ("\n1\t\"Paris, France\n2\t\"Rome\n", b'\t'),
            ("id;name\n1;a, b\n", b';'),
            ("1,5;2,5\n1,7;3,5\n", b';'),
            ("id|name, first\n1|a\n", b'|'),
            ("1,Toy Story,Adventure|Animation\n2,Heat,Crime\n", b','),
            ("id,text\n1,\"a;b\n;c\n;\"\n", b','),
            ("\"id\";\"name, full\"\n1;2\n", b';'),
            ("id\n1\n", b','),
            ("a b\n1;2\n", b','),
            ("", b','),
            ("\"a;b\nc;d\n", b','),
            ("1;2", b';'),
            ("a;b,c\n1;2;3,4,5\n", b';'),
        ];
        for (text, separator) in cases {
            assert_eq!(guess_separator(text.as_bytes(), true, rfc), Some(separator), "{text:?}");
            // What a pipe has delivered does not change the answer.
            for most in 0..text.len() {
                let early = guess_separator(&text.as_bytes()[..most], false, rfc);
                assert!(early.is_none_or(|early| early == separator), "{text:?} {most}");
            }
        }
        assert_eq!(guess_separator(b"a;b,c\n", false, rfc), None);
        assert_eq!(guess_separator("a;b,c\n".repeat(LINES).as_bytes(), false, rfc), Some(b';'));
        assert_eq!(guess_separator(&vec![b';'; SAMPLE], false, rfc), Some(b';'));
    }
}
