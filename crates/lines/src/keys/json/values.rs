//! Where the values of a JSON text begin and end.
//!
//! A text has values one after the other, with or without white space between them. With
//! [`ValueScan::new`]`(true)` the elements of an array at the outermost level are values themselves.
//!
//! Only brackets, quotes and separators are looked at: what they enclose may still be no JSON. A line
//! end inside quotes, which JSON does not have, ends the value, so that a quote that is not closed
//! spoils few lines.
//!
//! Cost: linear in the text, whatever its pieces; a few words of memory, whatever the depth.

use super::JsonValues;

/// Bytes in which [`is_text`] looks for the end of the first value.
const SAMPLE: usize = 64 << 10;

/// Finds the values of a text that comes in pieces.
#[derive(Clone, Debug)]
pub(crate) struct ValueScan {
    /// Whether elements of an array at the outermost level are values.
    elements: bool,
    /// Whether such an array is open.
    in_array: bool,
    /// In the array: whether a comma or the end is expected.
    after_value: bool,
    inside: Option<Inside>,
}

/// The part of a value so far.
#[derive(Clone, Copy, Debug)]
struct Inside {
    length: usize,
    /// Brackets that are open.
    depth: u64,
    quoted: bool,
    escaped: bool,
    /// A number or a word: it ends before the next byte that is no part of it.
    is_word: bool,
    misplaced: bool,
}

/// The next part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// This many bytes between values.
    Between(usize),
    /// A value of this many bytes. `misplaced`: it is where no value can be.
    Value { length: usize, misplaced: bool },
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x1e)
}

impl ValueScan {
    pub(crate) fn new(elements: bool) -> Self {
        Self { elements, in_array: false, after_value: false, inside: None }
    }

    /// Returns whether the text so far ends inside of an array whose elements are values.
    pub(crate) fn is_open(&self) -> bool {
        self.in_array
    }

    /// Returns whether the text so far ends inside of a value.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside.is_some()
    }

    /// Returns the next part, with which `bytes` begins; `None` if more bytes are needed. `bytes` then
    /// must begin with the same bytes the next time. `ended`: there are no more.
    pub(crate) fn next(&mut self, bytes: &[u8], ended: bool) -> Option<Part> {
        let first = *bytes.first()?;
        let Some(mut inside) = self.inside.take() else {
            return self.begin(bytes, first, ended);
        };
        let done = inside.end(bytes) || ended;
        if !done {
            self.inside = Some(inside);
            return None;
        }
        self.after_value = self.in_array;
        Some(Part::Value { length: inside.length, misplaced: inside.misplaced })
    }

    fn begin(&mut self, bytes: &[u8], first: u8, ended: bool) -> Option<Part> {
        if is_space(first) {
            return Some(Part::Between(bytes.iter().take_while(|byte| is_space(**byte)).count()));
        }
        match (first, self.in_array) {
            (b'[', false) if self.elements => (self.in_array, self.after_value) = (true, false),
            (b']', true) => (self.in_array, self.after_value) = (false, false),
            (b',', true) if self.after_value => self.after_value = false,
            (b']' | b'}' | b',' | b':', _) => {
                return Some(Part::Value { length: 1, misplaced: true });
            }
            _ => {
                let is_word = !matches!(first, b'{' | b'[' | b'"');
                let misplaced = self.after_value;
                let (depth, quoted, escaped) = (0, false, false);
                let inside = Inside { length: 0, depth, quoted, escaped, is_word, misplaced };
                self.inside = Some(inside);
                return self.next(bytes, ended);
            }
        }
        Some(Part::Between(1))
    }
}

impl Inside {
    /// Continues to the end of the value in `bytes`. Returns whether it was found.
    fn end(&mut self, bytes: &[u8]) -> bool {
        while let Some(&byte) = bytes.get(self.length) {
            if self.is_word {
                if is_space(byte) || b",:]}[{\"".contains(&byte) {
                    return true;
                }
            } else if self.quoted {
                if byte == b'\n' {
                    return true;
                }
                self.quoted = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
            } else {
                match byte {
                    b'"' => self.quoted = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
            self.length += 1;
            if !self.is_word && !self.quoted && self.depth == 0 {
                return true;
            }
        }
        false
    }
}

/// Returns whether the values of an input that begins with `bytes` are not one on each line: they are
/// elements of an array, span lines or share one. `None` if more bytes are needed. `ended`: there are
/// none.
///
/// Only the first line decides. It does not end its value if it ends after a bracket or separator; a
/// line that was cut off hardly does.
pub(crate) fn is_text(values: &JsonValues, bytes: &[u8], ended: bool) -> Option<bool> {
    let start = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
    let bytes = &bytes[start..];
    let unknown = (ended || bytes.len() >= SAMPLE || start >= SAMPLE).then_some(false);
    let Some(first) = bytes.first() else { return unknown };
    if *first == b'[' && values.are_named() {
        return Some(true);
    }
    let line_end = memchr::memchr(b'\n', bytes);
    let line = &bytes[..line_end.unwrap_or(bytes.len())];
    let mut scan = ValueScan::new(false);
    match scan.next(line, false) {
        Some(Part::Value { length, misplaced: false }) => {
            match line[length..].iter().find(|byte| !is_space(**byte)) {
                Some(byte) => Some(b"{[".contains(byte)),
                None => line_end.map(|_| false).or(unknown),
            }
        }
        Some(_) => Some(false),
        None if line_end.is_none() => unknown,
        None => {
            let quoted = scan.inside.is_some_and(|inside| inside.quoted || inside.is_word);
            let last = line.trim_ascii_end().last();
            Some(!quoted && last.is_some_and(|byte| b"{[,:".contains(byte)))
        }
    }
}

/// Returns the values of a JSON text that no other program has checked, as [`KeySpec::key`] reads them;
/// `elements`: those of arrays instead of arrays.
///
/// [`KeySpec::key`]: crate::KeySpec::key
#[must_use]
pub fn json_values(text: &[u8], elements: bool) -> Vec<&[u8]> {
    let (mut scan, mut rest, mut values) = (ValueScan::new(elements), text, Vec::new());
    while let Some(part) = scan.next(rest, true) {
        let (length, value) = match part {
            Part::Between(length) => (length, None),
            Part::Value { length, .. } => (length, Some(&rest[..length])),
        };
        values.extend(value);
        rest = &rest[length..];
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    fn values(text: &str, elements: bool) -> Vec<&str> {
        json_values(text.as_bytes(), elements)
            .into_iter()
            .map(|value| str::from_utf8(value).unwrap())
            .collect()
    }

    #[test]
    fn values_are_found_with_any_space_between() {
        let cases: [(&str, bool, &[&str]); 11] = [
            ("{\"a\":[1,\"]\"]}{\"a\":2}", false, &["{\"a\":[1,\"]\"]}", "{\"a\":2}"]),
            ("[{\"a\":1}, 2 ,\"x\\\"\"]", true, &["{\"a\":1}", "2", "\"x\\\"\""]),
            ("[{\"a\":1},2]", false, &["[{\"a\":1},2]"]),
            ("[[1],[2]] [3]", true, &["[1]", "[2]", "3"]),
            ("1 2\n\"a\"3", false, &["1", "2", "\"a\"", "3"]),
            ("{\n \"a\" : {\n}\n}\n{}", false, &["{\n \"a\" : {\n}\n}", "{}"]),
            (" \n", true, &[]),
            ("[]", true, &[]),
            ("{\"a", false, &["{\"a"]),
            ("{\"a\n{\"b\":1}", false, &["{\"a", "{\"b\":1}"]),
            ("1]}", false, &["1", "]", "}"]),
        ];
        for (text, elements, expected) in cases {
            assert_eq!(values(text, elements), expected, "{text:?}");
        }
    }

    #[test]
    fn values_do_not_depend_on_the_pieces_of_the_text() {
        let mut rng = Rng::new(5);
        for _ in 0..3000 {
            let text: Vec<u8> =
                (0..rng.below(60)).map(|_| b"[]{},:\"\\ \n1a"[rng.below(12)]).collect();
            let elements = rng.one_in(2);
            let (mut scan, mut found) = (ValueScan::new(elements), Vec::new());
            let (mut from, mut to) = (0, 0);
            loop {
                match scan.next(&text[from..to], to == text.len()) {
                    Some(Part::Between(length)) => from += length,
                    Some(Part::Value { length, .. }) => {
                        found.push(&text[from..from + length]);
                        from += length;
                    }
                    None if to == text.len() => break,
                    None => to = text.len().min(to + 1 + rng.below(5)),
                }
            }
            assert_eq!(from, text.len());
            assert_eq!(found, json_values(&text, elements), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn the_first_line_shows_whether_each_line_is_a_value() {
        let cases = [
            ("{\"a\":1}\n{\"a\":2} {}\n", "/a", false),
            ("{\"a\":1}  \r\n", "/a", false),
            ("{\"a\":1}", "/a", false),
            ("", "/a", false),
            ("\n \n", "/a", false),
            ("{\"a\":1}{\"a\":2}\n", "/a", true),
            ("{\"a\":1} [\n", "/a", true),
            ("{\"a\":1} x\n", "/a", false),
            ("{\n\"a\":1}\n", "/a", true),
            (" {\"a\":1,\r\n\"b\":2}\n", "/a", true),
            ("[1]\n[2]\n", "/0", false),
            ("[1]\n[2]\n", "", false),
            ("[1]\n[2]\n", "/a", true),
            ("[\n1]\n", "/0", true),
            ("{\"a\":\"cut,\n{\"a\":1}\n", "/a", false),
            ("{\"a\":1\n", "/a", false),
            ("nul\n{}\n", "/a", false),
            ("}\n{}\n", "/a", false),
        ];
        for (text, pointer, expected) in cases {
            let values = JsonValues(vec![pointer.parse().unwrap()]);
            assert_eq!(is_text(&values, text.as_bytes(), true), Some(expected), "{text:?}");
            for end in 0..text.len() {
                let early = is_text(&values, &text.as_bytes()[..end], false);
                assert!(early.is_none_or(|early| early == expected), "{text:?} {end}");
            }
        }
    }
}
