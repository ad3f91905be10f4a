//! The parts of a text, by which documents are compared: paragraphs, lines or sentences.
//!
//! The text is that of a JSON string as it is in the file, with its escapes, or a line. Parts are places in
//! it, so that a text without some of its parts is written from pieces of the record, and nothing is
//! escaped again.
//!
//! * A **line** ends with an LF.
//! * A **paragraph** ends with a blank line: one of white space only.
//! * A **sentence** ends after `.`, `!`, `?` and white space or the end, after `。`, `！`, `？`, or with a
//!   blank line. Further marks, closing quotes and brackets belong to it.
//!
//! White space is that of Unicode. What has nothing else is no part. The white space after a part goes with
//! it: of a line up to its LF, of a sentence up to an LF, of a paragraph all.
//!
//! Invariant: parts are in order and do not overlap, and each takes at least two bytes of its record, but
//! for the last one.

use std::ops::Range;

use super::{KeySpec, Spare};

/// The parts by which documents are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartUnit {
    /// Lines between blank lines.
    Paragraph,
    /// Lines.
    Line,
    /// Sentences.
    Sentence,
}

/// Where a part is in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where what goes with it begins.
    from: u32,
    /// The end of its text, before white space.
    end: u32,
    /// The end of what goes with it.
    next: u32,
}

/// How texts are divided, and their parts compared.
#[derive(Clone, Debug)]
pub(crate) struct PartRules {
    pub(crate) unit: PartUnit,
    /// How the key of a part is made from its text.
    pub(crate) keys: KeySpec,
    /// Maximum number of parts of a text.
    pub(crate) max: usize,
}

/// The parts of the texts of a batch. A worker reuses the memory for each batch.
#[derive(Default)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    /// The end of the parts of each text in `parts`.
    ends: Vec<usize>,
    text: Vec<u8>,
    key: Vec<u8>,
    spare: Spare,
}

impl Parts {
    /// Removes all texts, and frees memory beyond `max` bytes.
    pub(crate) fn clear(&mut self, max: usize) {
        self.parts.clear();
        self.parts.shrink_to(max / size_of::<Part>());
        self.ends.clear();
        for buffer in [&mut self.text, &mut self.key] {
            buffer.clear();
            buffer.shrink_to(max);
        }
    }

    /// Adds the text at `range` of a record, and calls `each` with the keys of its parts; `escaped`: it
    /// has the escapes of JSON.
    ///
    /// # Errors
    /// If the text has too many parts, or a part has no key; the text says what is wrong.
    pub(crate) fn add(
        &mut self,
        rules: &PartRules,
        record: &[u8],
        range: Range<usize>,
        escaped: bool,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        let Self { parts, ends, text, key, spare } = self;
        let before = parts.len();
        let found = |part: Part, start: u32| {
            if parts.len() - before == rules.max {
                return Err(format!("has more than {} parts", rules.max));
            }
            parts.push(part);
            let raw = &record[start as usize..part.end as usize];
            let plain = if escaped && memchr::memchr(b'\\', raw).is_some() {
                text.clear();
                append_unescaped(raw, text);
                &text[..]
            } else {
                raw
            };
            if rules.keys.is_line() {
                each(plain);
                return Ok(());
            }
            key.clear();
            rules.keys.append_key(plain, spare, key).map_err(|problem| problem.text)?;
            each(key);
            Ok(())
        };
        divide(record, range, escaped, rules.unit, found)?;
        ends.push(parts.len());
        Ok(())
    }

    /// Adds a record without a text.
    pub(crate) fn add_none(&mut self) {
        self.ends.push(self.parts.len());
    }

    /// Returns where the parts of a record are among all.
    pub(crate) fn range(&self, record: usize) -> Range<usize> {
        let start = if record == 0 { 0 } else { self.ends[record - 1] };
        start..self.ends[record]
    }

    /// Appends the pieces of a record that remain without the parts that are `removed`, in order. Parts
    /// are those at `range`, and the text is at `text` of the record, of `length` bytes.
    pub(crate) fn remaining(
        &self,
        range: Range<usize>,
        removed: &[bool],
        text: Range<usize>,
        length: usize,
        pieces: &mut Vec<Range<usize>>,
    ) {
        let parts = &self.parts[range];
        let kept = |(_, removed): &(&Part, &bool)| !**removed;
        let pairs = || parts.iter().zip(removed);
        let (Some((first, _)), Some((last, _))) = (pairs().find(kept), pairs().rfind(kept)) else {
            // White space alone is no text.
            pieces.extend([0..text.start, text.end..length]);
            return;
        };
        // What is before the first part goes with it, and what is after the last one stays.
        let mut from = 0;
        if removed.first() == Some(&true) {
            pieces.push(0..text.start);
            from = first.from as usize;
        }
        for (part, _) in pairs().filter(|pair| !kept(pair)) {
            if part.from > first.from && part.from < last.from {
                pieces.push(from..part.from as usize);
                from = part.next as usize;
            }
        }
        match (removed.last(), parts.last()) {
            (Some(true), Some(end)) => {
                pieces.extend([from..last.end as usize, end.end as usize..length]);
            }
            _ => pieces.push(from..length),
        }
    }
}

/// What a code point means for the end of a part.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    LineEnd,
    Space,
    /// Ends a sentence before white space.
    Stop,
    /// Ends a sentence.
    WideStop,
    /// Belongs to the sentence that a mark before it ends.
    Closing,
    Other,
}

impl Class {
    fn of(code: u32) -> Self {
        match char::from_u32(code) {
            Some('\n') => Self::LineEnd,
            Some('.' | '!' | '?') => Self::Stop,
            Some('。' | '！' | '？') => Self::WideStop,
            Some(
                '"' | '\'' | ')' | ']' | '}' | '”' | '’' | '»' | '）' | '】' | '」' | '』' | '》',
            ) => Self::Closing,
            Some(letter) if letter.is_whitespace() => Self::Space,
            _ => Self::Other,
        }
    }
}

/// Whether a byte is a code point of the class `Other` without an escape.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        plain[byte as usize] =
            !matches!(byte, b'\\' | b'.' | b'!' | b'?' | b'"' | b'\'' | b')' | b']' | b'}');
        byte += 1;
    }
    plain
};

/// How far a sentence has ended.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    No,
    /// White space would end it.
    Stopped,
    Ended,
}

/// Returns the number of parts of the text at `range` of a record.
pub(crate) fn count_parts(
    record: &[u8],
    range: Range<usize>,
    escaped: bool,
    unit: PartUnit,
) -> usize {
    let mut count = 0;
    let each = |_, _| {
        count += 1;
        Ok(())
    };
    // Counting never fails.
    let _ = divide(record, range, escaped, unit, each);
    count
}

/// Divides the text at `range` of a record; `each` gets each part and where its text begins.
fn divide(
    record: &[u8],
    range: Range<usize>,
    escaped: bool,
    unit: PartUnit,
    mut each: impl FnMut(Part, u32) -> Result<(), String>,
) -> Result<(), String> {
    let Range { start: mut at, end: stop } = range;
    let bytes = &record[..stop];
    // Where the part begins, and its text so far.
    let (mut from, mut text) = (at as u32, None::<(u32, u32)>);
    let mut ending = Ending::No;
    // Of the white space since then: the number of its LFs, the first one, and the end of the last one.
    let (mut ends, mut first_end, mut line) = (0, 0, 0);
    while at < stop {
        let begin = at as u32;
        let code;
        (code, at) = match bytes[at] {
            b'\\' if escaped => escape(bytes, at),
            byte if byte.is_ascii() => (u32::from(byte), at + 1),
            _ => letter(bytes, at),
        };
        let class = Class::of(code);
        match class {
            Class::LineEnd => {
                if ends == 0 {
                    first_end = begin;
                }
                (ends, line) = (ends + 1, at as u32);
                if unit == PartUnit::Line {
                    if let Some((start, end)) = text.take() {
                        each(Part { from, end, next: line }, start)?;
                    }
                    from = line;
                }
            }
            Class::Space => {}
            Class::Stop | Class::WideStop | Class::Closing | Class::Other => {
                if let Some((start, end)) = text {
                    let next = match unit {
                        PartUnit::Line => None,
                        PartUnit::Paragraph => (ends > 1).then_some((line, line)),
                        PartUnit::Sentence => {
                            let is_over = match class {
                                _ if ends > 1 => true,
                                _ if end < begin => ending != Ending::No,
                                Class::Other => ending == Ending::Ended,
                                _ => false,
                            };
                            is_over.then_some((if ends > 0 { first_end } else { begin }, begin))
                        }
                    };
                    if let Some((next, new)) = next {
                        each(Part { from, end, next }, start)?;
                        (from, text, ending) = (new, None, Ending::No);
                    }
                }
                ending = match class {
                    Class::WideStop => Ending::Ended,
                    Class::Stop if ending != Ending::Ended => Ending::Stopped,
                    Class::Other => Ending::No,
                    _ => ending,
                };
                if class == Class::Other {
                    while at < stop && PLAIN[bytes[at] as usize] {
                        at += 1;
                    }
                }
                text = Some((text.map_or(begin, |(start, _)| start), at as u32));
                ends = 0;
            }
        }
    }
    match text {
        Some((start, end)) => each(Part { from, end, next: stop as u32 }, start),
        None => Ok(()),
    }
}

/// Returns the code point at a byte that is no ASCII, and its end. What is no UTF-8 is one byte long.
fn letter(bytes: &[u8], at: usize) -> (u32, usize) {
    let length = match bytes[at] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    let text = bytes.get(at..at + length).and_then(|bytes| str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(letter) => (letter.into(), at + length),
        None => (char::REPLACEMENT_CHARACTER.into(), at + 1),
    }
}

/// Returns the code point of the escape at a byte, and its end. It is a surrogate if its other half does not
/// follow.
fn escape(bytes: &[u8], at: usize) -> (u32, usize) {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(br"\u")?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(at) else {
        let byte = match bytes.get(at + 1) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            // A quote, a slash or a backslash.
            Some(byte) => *byte,
            None => b'\\',
        };
        return (byte.into(), bytes.len().min(at + 2));
    };
    match unit(at + 6) {
        Some(second @ 0xdc00..0xe000) if (0xd800..0xdc00).contains(&first) => {
            (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), at + 12)
        }
        _ => (first, at + 6),
    }
}

/// Appends the bytes of a part of a JSON string. A surrogate without its other half becomes three bytes,
/// as in WTF-8.
fn append_unescaped(mut raw: &[u8], to: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'\\', raw) {
        to.extend_from_slice(&raw[..at]);
        let (code, end) = escape(raw, at);
        match char::from_u32(code) {
            Some(letter) => to.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            None => to.extend(
                [0xe0 | code >> 12, 0x80 | code >> 6 & 0x3f, 0x80 | code & 0x3f]
                    .map(|byte| byte as u8),
            ),
        }
        raw = &raw[end..];
    }
    to.extend_from_slice(raw);
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    fn rules(unit: PartUnit) -> PartRules {
        PartRules { unit, keys: KeySpec::default(), max: 1000 }
    }

    /// The keys of the parts of a line.
    fn keys(unit: PartUnit, text: &str) -> Vec<String> {
        let mut found = vec![];
        let each = |key: &[u8]| found.push(String::from_utf8(key.to_vec()).unwrap());
        Parts::default().add(&rules(unit), text.as_bytes(), 0..text.len(), false, each).unwrap();
        found
    }

    /// A text without the parts with these keys.
    fn without(unit: PartUnit, text: &str, gone: &[&str]) -> String {
        let (mut parts, mut removed, mut pieces) = (Parts::default(), vec![], vec![]);
        let each = |key: &[u8]| removed.push(gone.iter().any(|gone| gone.as_bytes() == key));
        let all = 0..text.len();
        parts.add(&rules(unit), text.as_bytes(), all.clone(), false, each).unwrap();
        parts.remaining(parts.range(0), &removed, all, text.len(), &mut pieces);
        pieces.into_iter().map(|piece| &text[piece]).collect()
    }

    #[test]
    fn parts_are_paragraphs_lines_and_sentences() {
        use PartUnit::{Line, Paragraph, Sentence};
        for (unit, text, expected) in [
            (Line, "a\n b \r\n\n\u{3000}\nc", &["a", "b", "c"][..]),
            (Line, "", &[]),
            (Line, " \n\n", &[]),
            (Paragraph, "\n\na\nb\n \t\n  c\n\n\nd\n", &["a\nb", "c", "d"]),
            (Sentence, "A b. C 3.14! \"D?\" E", &["A b.", "C 3.14!", "\"D?\"", "E"]),
            (Sentence, "Wait... (What?!) . End.", &["Wait...", "(What?!)", ".", "End."]),
            (Sentence, "Title\n\nText\ngoes on. End", &["Title", "Text\ngoes on.", "End"]),
            (Sentence, "他来了。“好！”她说？是。", &["他来了。", "“好！”", "她说？", "是。"]),
        ] {
            assert_eq!(keys(unit, text), expected, "{unit:?} {text:?}");
        }
    }

    #[test]
    fn white_space_goes_with_the_part_before_it() {
        use PartUnit::{Line, Paragraph, Sentence};
        for (unit, text, gone, expected) in [
            (Line, "a\nb\nc", &["b"][..], "a\nc"),
            (Line, "a\nb\nc", &["c"], "a\nb"),
            (Line, "a\nb\nc\n", &["c"], "a\nb\n"),
            (Line, "a\n\nb\n\nc", &["b"], "a\n\n\nc"),
            (Line, " a\n\n b", &["a"], " b"),
            (Line, "a\nb", &["a", "b"], ""),
            (Paragraph, "a\n\nb\n\n\nc\n", &["b"], "a\n\nc\n"),
            (Paragraph, "a\n\nb\n\n\nc\n", &["c"], "a\n\nb\n"),
            (Paragraph, "\na\n\nb", &["a"], "b"),
            (Sentence, "A. B. C.", &["B."], "A. C."),
            (Sentence, "A. B. C.", &["B.", "C."], "A."),
            (Sentence, "A. B.\n\nC.", &["B."], "A. \n\nC."),
            (Sentence, "A.\n\nB.", &["A."], "B."),
            (Sentence, "好。坏。好人。", &["坏。"], "好。好人。"),
        ] {
            assert_eq!(without(unit, text, gone), expected, "{unit:?} {text:?} {gone:?}");
        }
    }

    /// Any text in any spelling is divided as its plain form is, and what remains is valid.
    #[test]
    fn escapes_are_their_code_points() {
        let mut rng = Rng::new(3);
        let letters = ["a", "。", ".", " ", "\n", "\"", "\\", "é", "😀", "\u{2003}", "\u{1}"];
        for _ in 0..3000 {
            let (mut plain, mut raw) = (String::new(), String::new());
            for _ in 0..rng.below(30) {
                let letter = letters[rng.below(letters.len())];
                plain.push_str(letter);
                let spelled = serde_json::to_string(letter).unwrap();
                match rng.one_in(3) {
                    true => letter
                        .encode_utf16()
                        .for_each(|unit| raw.push_str(&format!("\\u{unit:04x}"))),
                    false => raw.push_str(&spelled[1..spelled.len() - 1]),
                }
            }
            for unit in [PartUnit::Paragraph, PartUnit::Line, PartUnit::Sentence] {
                let (mut parts, mut found) = (Parts::default(), vec![]);
                let each = |key: &[u8]| found.push(String::from_utf8(key.to_vec()).unwrap());
                parts.add(&rules(unit), raw.as_bytes(), 0..raw.len(), true, each).unwrap();
                assert_eq!(found, keys(unit, &plain), "{unit:?} {raw}");
                let gone: Vec<_> = found.iter().filter(|_| rng.one_in(2)).cloned().collect();
                let gone: Vec<_> = gone.iter().map(String::as_str).collect();
                let removed: Vec<_> =
                    found.iter().map(|key| gone.contains(&key.as_str())).collect();
                let (mut pieces, all) = (vec![], 0..raw.len());
                parts.remaining(parts.range(0), &removed, all.clone(), all.end, &mut pieces);
                let left: String = pieces.into_iter().map(|piece| &raw[piece]).collect();
                let left: String = serde_json::from_str(&format!("\"{left}\"")).unwrap();
                if removed.contains(&true) {
                    assert_eq!(left, without(unit, &plain, &gone), "{unit:?} {raw}");
                }
            }
        }
    }

    #[test]
    fn lone_surrogates_are_wtf_8() {
        let mut bytes = vec![];
        append_unescaped(br"\udc80\ud83d\ude00\ud83d\u0041\/", &mut bytes);
        assert_eq!(bytes, b"\xed\xb2\x80\xf0\x9f\x98\x80\xed\xa0\xbdA/");
    }

    #[test]
    fn bytes_that_are_no_text_are_parts() {
        let mut found = vec![];
        let text = b"\xff \xe2\x80\n\xc0\xa0\x80";
        let each = |key: &[u8]| found.push(key.to_vec());
        Parts::default().add(&rules(PartUnit::Line), text, 0..text.len(), false, each).unwrap();
        assert_eq!(found, [&b"\xff \xe2\x80"[..], b"\xc0\xa0\x80"]);
    }

    #[test]
    fn too_many_parts_are_an_error() {
        let rules = PartRules { max: 2, ..rules(PartUnit::Line) };
        let mut parts = Parts::default();
        assert!(parts.add(&rules, b"a\nb", 0..3, false, |_| {}).is_ok());
        let error = parts.add(&rules, b"a\nb\nc", 0..5, false, |_| {}).unwrap_err();
        assert!(error.contains("more than 2 parts"), "{error}");
    }
}
