//! The fields of a CSV record.

use memchr::memchr;

/// The fields of a record, in order.
pub(crate) struct Fields<'a> {
    /// The bytes from the next field on; `None` after the last field.
    rest: Option<&'a [u8]>,
    separator: u8,
}

/// A field as it is in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of a record without its LF.
    pub(crate) fn new(record: &'a [u8], separator: u8) -> Self {
        Self { rest: Some(record.strip_suffix(b"\r").unwrap_or(record)), separator }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let rest = self.rest?;
        let begin = if rest.first() == Some(&b'"') { quoted_length(rest) } else { 0 };
        let end = memchr(self.separator, &rest[begin..]).map(|at| begin + at);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(Field(&rest[..end.unwrap_or(rest.len())]))
    }
}

/// Returns the length of the quoted part, with its quotes. Without a closing quote it is everything.
fn quoted_length(field: &[u8]) -> usize {
    let mut at = 1;
    while let Some(quote) = memchr(b'"', &field[at..]) {
        at += quote + 1;
        if field.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    field.len()
}

impl Field<'_> {
    /// Returns whether the field begins with a quote.
    pub(crate) fn is_quoted(self) -> bool {
        self.0.first() == Some(&b'"')
    }

    /// Appends the value: without the quotes around it, with one quote for two.
    #[inline]
    pub(crate) fn append(self, value: &mut Vec<u8>) {
        let Some(mut rest) = self.0.strip_prefix(b"\"") else {
            return value.extend_from_slice(self.0);
        };
        while let Some(quote) = memchr(b'"', rest) {
            value.extend_from_slice(&rest[..quote]);
            rest = &rest[quote + 1..];
            match rest.strip_prefix(b"\"") {
                Some(after) => {
                    value.push(b'"');
                    rest = after;
                }
                None => break,
            }
        }
        // What follows the closing quote.
        value.extend_from_slice(rest);
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
    use super::*;
    use petal_testkit::rng::Rng;

    fn values(record: &[u8]) -> Vec<Vec<u8>> {
        Fields::new(record, b',').map(Field::value).collect()
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
            super::super::EndScan::new(b',').ends(&text, usize::MAX, &mut ends);
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
