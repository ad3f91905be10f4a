//! The fields of a CSV record.

use memchr::memchr;

use super::dialect::{Dialect, State};

/// The fields of a record, in order.
pub(crate) struct Fields<'a> {
    /// The bytes from the next field on; `None` after the last field.
    rest: Option<&'a [u8]>,
    dialect: Dialect,
}

/// A field as it is in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    bytes: &'a [u8],
    dialect: Dialect,
}

impl<'a> Fields<'a> {
    /// The fields of a record without its LF.
    pub(crate) fn new(record: &'a [u8], dialect: Dialect) -> Self {
        let rest = match record.strip_suffix(b"\r") {
            Some(before) if !ends_with_escape(before, dialect) => before,
            _ => record,
        };
        Self { rest: Some(rest), dialect }
    }
}

/// Returns whether the next byte after these is escaped.
fn ends_with_escape(bytes: &[u8], dialect: Dialect) -> bool {
    let Some(escape) = dialect.escape else { return false };
    bytes.iter().rev().take_while(|byte| **byte == escape).count() % 2 == 1
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let (rest, dialect) = (self.rest?, self.dialect);
        let end = match dialect {
            Dialect { escape: None, separator, quote } => {
                let quote = quote.filter(|_| rest.first().copied() == quote);
                let begin = quote.map_or(0, |quote| quoted_length(rest, quote));
                memchr(separator, &rest[begin..]).map(|at| begin + at)
            }
            _ => escaped_end(rest, dialect),
        };
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(Field { bytes: &rest[..end.unwrap_or(rest.len())], dialect })
    }
}

/// Returns the length of the quoted part, with its quotes. Without a closing quote it is everything.
fn quoted_length(field: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(found) = memchr(quote, &field[at..]) {
        at += found + 1;
        if field.get(at) != Some(&quote) {
            return at;
        }
        at += 1;
    }
    field.len()
}

/// Returns the position of the separator after the first field, byte by byte.
fn escaped_end(fields: &[u8], dialect: Dialect) -> Option<usize> {
    let mut state = State::FieldStart;
    fields.iter().position(|&byte| {
        let ends = byte == dialect.separator && !state.is_inside();
        state = state.after(byte, dialect);
        ends
    })
}

impl Field<'_> {
    /// Returns whether the field begins with a quote.
    pub(crate) fn is_quoted(self) -> bool {
        self.dialect.quote.is_some() && self.bytes.first().copied() == self.dialect.quote
    }

    /// Appends the value: without the quotes around it, with one quote for two, without escapes.
    #[inline]
    pub(crate) fn append(self, value: &mut Vec<u8>) {
        if self.dialect.escape.is_some() {
            return self.append_unescaped(value);
        }
        let (Some(quote), true) = (self.dialect.quote, self.is_quoted()) else {
            return value.extend_from_slice(self.bytes);
        };
        let mut rest = &self.bytes[1..];
        while let Some(found) = memchr(quote, rest) {
            value.extend_from_slice(&rest[..found]);
            rest = &rest[found + 1..];
            match rest.split_first() {
                Some((next, after)) if *next == quote => {
                    value.push(quote);
                    rest = after;
                }
                _ => break,
            }
        }
        // What follows the closing quote.
        value.extend_from_slice(rest);
    }

    /// Appends the value byte by byte.
    fn append_unescaped(self, value: &mut Vec<u8>) {
        let mut state = State::FieldStart;
        for &byte in self.bytes {
            let next = state.after(byte, self.dialect);
            let opens = state == State::FieldStart && next == State::Quoted;
            let is_syntax =
                matches!(next, State::Escaped | State::QuotedEscaped | State::AfterQuote);
            if !opens && !is_syntax {
                value.push(byte);
            }
            state = next;
        }
        // There is nothing to escape.
        if let (State::Escaped | State::QuotedEscaped, Some(escape)) = (state, self.dialect.escape)
        {
            value.push(escape);
        }
    }

    /// Returns the value.
    pub(crate) fn value(self) -> Vec<u8> {
        let mut value = Vec::new();
        self.append(&mut value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Quoting;
    use super::*;
    use petal_testkit::rng::Rng;

    fn values(record: &[u8]) -> Vec<Vec<u8>> {
        Fields::new(record, Dialect::RFC).map(Field::value).collect()
    }

    #[test]
    fn fields_follow_the_rules() {
        let cases: [(&str, &[&str]); 13] = [
            ("", &[""]),
            ("\r", &[""]),
            ("a,b\r", &["a", "b"]),
            (",", &["", ""]),
            (r#""a,b",c"#, &["a,b", "c"]),
            (r#""a""b","""""#, &["a\"b", "\""]),
            ("\"two\nlines\r\n\",x", &["two\nlines\r\n", "x"]),
            (r#"a"b,c"d""#, &["a\"b", "c\"d\""]),
            (r#""a"b"c,d"#, &["ab\"c", "d"]),
            ("\"\",\"\"", &["", ""]),
            (r#" "a,b""#, &[" \"a", "b\""]),
            ("\"a\rb\"\r", &["a\rb"]),
            ("a\rb,c", &["a\rb", "c"]),
        ];
        for (record, fields) in cases {
            let expected: Vec<_> = fields.iter().map(|field| field.as_bytes().to_vec()).collect();
            assert_eq!(values(record.as_bytes()), expected, "{record:?}");
        }
    }

    #[test]
    fn quotes_and_escapes_follow_the_dialect() {
        let tsv = Dialect::new(b'\t', Quoting::BySeparator, None);
        let escaped = Dialect { escape: Some(b'\\'), ..tsv };
        let both = Dialect { escape: Some(b'\\'), ..Dialect::RFC };
        let single = Dialect { quote: Some(b'\''), ..Dialect::RFC };
        let cases: [(Dialect, &str, &[&str]); 13] = [
            (tsv, "\"K T\" x\t\"a\"\r", &["\"K T\" x", "\"a\""]),
            (tsv, "\"\t\"\"", &["\"", "\"\""]),
            (tsv, "a\\\tb", &["a\\", "b"]),
            (escaped, "a\\\tb\t\"c\\\\\td\\ne", &["a\tb", "\"c\\", "dne"]),
            (escaped, "a\\\nb\\\r", &["a\nb\r"]),
            (escaped, "a\\\\\r", &["a\\"]),
            (escaped, "a\\", &["a\\"]),
            (both, r#""a\",b""c",d"#, &["a\",b\"c", "d"]),
            (both, r#"\"a,b",c"#, &["\"a", "b\"", "c"]),
            (both, r#""a"\,b"#, &["a,b"]),
            (both, r#""a\\",b"#, &["a\\", "b"]),
            (single, "'a,''b',\"c,d\"", &["a,'b", "\"c", "d\""]),
            (Dialect { escape: Some(b'"'), ..tsv }, "\"\ta", &["\ta"]),
        ];
        for (dialect, record, fields) in cases {
            let found: Vec<_> = Fields::new(record.as_bytes(), dialect).map(Field::value).collect();
            let expected: Vec<_> = fields.iter().map(|field| field.as_bytes().to_vec()).collect();
            assert_eq!(found, expected, "{record:?}");
        }
        // The quote is doubled anyway.
        assert_eq!(Dialect::new(b',', Quoting::BySeparator, Some(b'"')), Dialect::RFC);
    }

    /// A text of records: quoted fields with any bytes, others with quotes inside, LF and CRLF.
    fn text(rng: &mut Rng) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..rng.below(6) {
            let fields = 1 + rng.below(4);
            for number in 0..fields {
                let bytes: Vec<u8> =
                    (0..rng.below(6)).map(|_| b"a\xff\",\r\n"[rng.below(6)]).collect();
                if rng.one_in(2) {
                    text.push(b'"');
                    for byte in bytes {
                        text.extend_from_slice(if byte == b'"' {
                            b"\"\""
                        } else {
                            std::slice::from_ref(&byte)
                        });
                    }
                    text.push(b'"');
                    if rng.one_in(4) {
                        text.extend_from_slice(b"x\"y");
                    }
                } else {
                    let plain = bytes.into_iter().filter(|byte| !b",\r\n".contains(byte));
                    text.extend(plain.skip_while(|byte| *byte == b'"'));
                }
                if number + 1 < fields {
                    text.push(b',');
                }
            }
            text.extend_from_slice(if rng.one_in(3) { b"\r\n" } else { b"\n" });
        }
        if rng.one_in(3) {
            text.pop();
        }
        text
    }

    #[test]
    fn records_equal_those_of_the_csv_crate() {
        let (mut rng, mut compared) = (Rng::new(11), 0);
        for _ in 0..20_000 {
            let text = text(&mut rng);
            let mut ends = Vec::new();
            super::super::EndScan::new(Dialect::RFC).ends(&text, usize::MAX, &mut ends);
            if ends.last().map_or(0, |end| end + 1) < text.len() {
                ends.push(text.len());
            }
            let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
            let ours = starts.zip(&ends).map(|(start, &end)| &text[start..end]);
            // The crate skips empty lines.
            let ours = ours.filter(|record| !matches!(**record, [] | [b'\r'])).map(values);
            let mut reader = csv::ReaderBuilder::new();
            let mut reader = reader.has_headers(false).flexible(true).from_reader(&text[..]);
            let theirs = reader
                .byte_records()
                .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
            let (ours, theirs): (Vec<_>, Vec<_>) = (ours.collect(), theirs.collect());
            assert_eq!(ours, theirs, "{:?}", String::from_utf8_lossy(&text));
            compared += ours.len();
        }
        assert!(compared > 40_000, "{compared}");
    }
}
