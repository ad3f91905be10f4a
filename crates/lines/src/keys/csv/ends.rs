//! Finding the ends of CSV records.
//!
//! Looks at 64 bytes at a time. The bits of the quotes are summed up (prefix XOR, as in simdjson), so
//! that each bit says whether its byte is inside quotes; line ends outside are the ends of records.
//! That is the state machine of the rules if every quote that begins a quoted part follows a
//! separator, a record end or a closing quote. In a block where one does not, a quote stands inside
//! an unquoted field, and the block is read byte by byte. So is a block with an escape.
//!
//! Source of the bit operations: Langdale & Lemire, "Parsing gigabytes of JSON per second", 2019.
//!
//! Cost: one comparison of each byte, one for quotes, one for an escape, and one more in blocks with
//! quotes.

#![allow(unsafe_code)]

use super::dialect::{Dialect, State};

const BLOCK: usize = 64;

/// Finds the ends of records in consecutive texts, of which the first begins with a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndScan {
    dialect: Dialect,
    state: State,
}

impl EndScan {
    /// Begins at the start of a record.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, state: State::FieldStart }
    }

    /// Begins anywhere: at the start of `text`, inside quotes if otherwise more quotes of `text` would
    /// be misplaced. If `text` has no quotes, it is taken to be outside.
    ///
    /// Source: speculative parsing (Ge et al., "Speculative distributed CSV data parsing for big data
    /// analytics", 2019).
    pub(crate) fn anywhere(dialect: Dialect, text: &[u8]) -> Self {
        if dialect.quote.is_none_or(|quote| memchr::memchr(quote, text).is_none()) {
            return Self::new(dialect);
        }
        let [outside, inside] = [State::FieldStart, State::Quoted]
            .map(|state| Self { dialect, state })
            .map(|scan| (scan.misplaced_quotes(text), scan));
        if inside.0 < outside.0 { inside.1 } else { outside.1 }
    }

    /// Returns the number of quotes of a text that stand inside an unquoted field, or close a field
    /// before its end, or open one that begins with a separator, which hardly any does.
    pub(super) fn misplaced_quotes(self, text: &[u8]) -> usize {
        let (mut state, mut opened) = (self.state, false);
        text.iter()
            .filter(|&&byte| {
                let (before, opened_before) = (state, opened);
                state = state.after(byte, self.dialect);
                let is_quote = Some(byte) == self.dialect.quote;
                opened = before == State::FieldStart && is_quote;
                match before {
                    State::Unquoted => is_quote,
                    State::AfterQuote => state == State::Unquoted && byte != b'\r',
                    State::Quoted => opened_before && byte == self.dialect.separator,
                    State::FieldStart | State::Escaped | State::QuotedEscaped => false,
                }
            })
            .count()
    }

    /// Returns whether the text so far ends inside quotes.
    pub(crate) fn is_quoted(&self) -> bool {
        self.state.is_quoted()
    }

    /// Returns the bytes that close open quotes and complete an escape, after the text so far.
    pub(crate) fn closing(&self) -> Vec<u8> {
        let Dialect { quote, escape, .. } = self.dialect;
        let escape = escape.filter(|_| self.is_escaped());
        let quote = quote.filter(|_| self.is_quoted());
        escape.into_iter().chain(quote).collect()
    }

    fn is_escaped(&self) -> bool {
        matches!(self.state, State::Escaped | State::QuotedEscaped)
    }

    /// Appends the positions of at most `max` record ends in `bytes`, ascending. If it stops
    /// because of `max`, the scan cannot be continued.
    pub(crate) fn ends(&mut self, bytes: &[u8], max: usize, ends: &mut Vec<usize>) {
        let full = ends.len().saturating_add(max);
        self.scan(bytes, |base, mut found| {
            while found != 0 {
                ends.push(base + found.trailing_zeros() as usize);
                found &= found - 1;
            }
            ends.len() < full
        });
        ends.truncate(full);
    }

    /// Returns the position of the first record end. The scan cannot be continued after it.
    pub(crate) fn first(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut first = None;
        self.scan(bytes, |base, found| {
            first = (found != 0).then(|| base + found.trailing_zeros() as usize);
            first.is_none()
        });
        first
    }

    /// Returns the position of the last record end.
    pub(crate) fn last(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut last = None;
        self.scan(bytes, |base, found| {
            if found != 0 {
                last = Some(base + found.ilog2() as usize);
            }
            true
        });
        last
    }

    /// Calls `each` with the start of each block and the bits of the record ends in it, until it
    /// returns false.
    fn scan(&mut self, bytes: &[u8], each: impl FnMut(usize, u64) -> bool) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
            // SAFETY: the processor has both features that the function requires.
            return unsafe { self.scan_avx2(bytes, each) };
        }
        self.scan_with(bytes, equal_bytes, each);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1")]
    fn scan_avx2(&mut self, bytes: &[u8], each: impl FnMut(usize, u64) -> bool) {
        self.scan_with(bytes, |block, byte| equal_bytes_avx2(block, byte), each);
    }

    #[inline(always)]
    fn scan_with(
        &mut self,
        bytes: &[u8],
        equal: impl Fn(&[u8; BLOCK], u8) -> u64,
        mut each: impl FnMut(usize, u64) -> bool,
    ) {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for (number, block) in blocks.iter().enumerate() {
            let found = self.block(block, &equal);
            if !each(number * BLOCK, found) {
                return;
            }
        }
        if !rest.is_empty() {
            let found = self.slowly(rest);
            each(blocks.len() * BLOCK, found);
        }
    }

    /// Returns the bits of the record ends in a block.
    #[inline(always)]
    fn block(&mut self, block: &[u8; BLOCK], equal: &impl Fn(&[u8; BLOCK], u8) -> u64) -> u64 {
        let bits = |byte: Option<u8>| byte.map_or(0, |byte| equal(block, byte));
        if self.is_escaped() || bits(self.dialect.escape) != 0 {
            return self.slowly(block);
        }
        let quotes = bits(self.dialect.quote);
        let ends = equal(block, b'\n');
        let last = block[BLOCK - 1];
        if quotes == 0 {
            if self.state == State::Quoted {
                return 0;
            }
            self.state = State::Unquoted.after(last, self.dialect);
            return ends;
        }
        let separators = equal(block, self.dialect.separator);
        // A bit is set from an opening quote on, to the byte before the closing quote.
        let carried = if self.state == State::Quoted { u64::MAX } else { 0 };
        let inside = prefix_xor(quotes) ^ carried;
        let (opening, closing) = (quotes & inside, quotes & !inside);
        let starts = u64::from(matches!(self.state, State::FieldStart | State::AfterQuote));
        if opening & !((separators | ends | closing) << 1 | starts) != 0 {
            return self.slowly(block);
        }
        let end = 1 << (BLOCK - 1);
        self.state = if inside & end != 0 {
            State::Quoted
        } else if closing & end != 0 {
            State::AfterQuote
        } else {
            State::Unquoted.after(last, self.dialect)
        };
        ends & !inside
    }

    /// Returns the bits of the record ends in at most 64 bytes, byte by byte.
    #[cold]
    fn slowly(&mut self, bytes: &[u8]) -> u64 {
        let mut found = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            found |= u64::from(byte == b'\n' && !self.state.is_inside()) << at;
            self.state = self.state.after(byte, self.dialect);
        }
        found
    }
}

/// Returns at most `max` of the complete CSV records at the start of `bytes`, without their LF.
/// `bytes` begin with a record.
#[must_use]
pub fn csv_records(bytes: &[u8], dialect: Dialect, max: usize) -> Vec<&[u8]> {
    let mut ends = Vec::new();
    match max {
        1 => ends.extend(EndScan::new(dialect).first(bytes)),
        _ => EndScan::new(dialect).ends(bytes, max, &mut ends),
    }
    let mut start = 0;
    ends.into_iter().map(|end| &bytes[std::mem::replace(&mut start, end + 1)..end]).collect()
}

/// Returns for each bit the XOR of it and all lower bits.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Returns the bits of the bytes that equal `byte`.
#[inline(always)]
fn equal_bytes(block: &[u8; BLOCK], byte: u8) -> u64 {
    block.iter().enumerate().fold(0, |bits, (at, &found)| bits | u64::from(found == byte) << at)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn equal_bytes_avx2(block: &[u8; BLOCK], byte: u8) -> u64 {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };
    let wanted = _mm256_set1_epi8(byte.cast_signed());
    let (halves, _) = block.as_chunks::<32>();
    let [low, high] = [0, 1].map(|half| {
        // SAFETY: reads the 32 bytes of `halves[half]`; the load needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) };
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, wanted)).cast_unsigned()
    });
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    fn naive(bytes: &[u8], dialect: Dialect) -> (Vec<usize>, State) {
        let (mut ends, mut state) = (Vec::new(), State::FieldStart);
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' && !state.is_inside() {
                ends.push(at);
            }
            state = state.after(byte, dialect);
        }
        (ends, state)
    }

    /// The state is found from any position of a text, also if quoted fields end with a line end, are
    /// long or stand beside quotes inside unquoted fields.
    #[test]
    fn scan_from_anywhere_finds_the_ends_of_the_records() {
        let mut rng = Rng::new(4);
        let lines = "a line of a long text\n".repeat(100);
        let comments = [
            &["", "one line", "two\nlines", "a \"\"word\"\"\nin quotes, and\r\nmore"][..],
            &["one line\n", "two\nlines\n"],
            &[&lines],
        ];
        let rows: [fn(usize, &str) -> String; 3] = [
            |row, comment| format!("{row},\"{comment}\",plain,\"\"\n"),
            |row, comment| format!("{row},5\" pipe,\"{comment}\",3\n"),
            |row, comment| format!("{row},{},\"{comment}\",3\n", "plain ".repeat(500)),
        ];
        for (comments, row) in comments.iter().flat_map(|it| rows.map(|row| (it, row))) {
            let text: String =
                (0..400).map(|number| row(number, comments[number % comments.len()])).collect();
            let text = text.as_bytes();
            let (ends, _) = naive(text, Dialect::RFC);
            for _ in 0..300 {
                let from = rng.below(text.len() - text.len() / 10);
                let to = text.len().min(from + (17 << 10));
                let (mut found, window) = (Vec::new(), &text[from..to]);
                // Whether the first quote of a text opens a field is known from the byte before it.
                if window[0] == b'"' {
                    continue;
                }
                EndScan::anywhere(Dialect::RFC, window).ends(window, usize::MAX, &mut found);
                let after = ends.iter().filter(|&&end| (from..to).contains(&end));
                let expected: Vec<_> = after.map(|end| end - from).collect();
                let shown = String::from_utf8_lossy(&window[..40]);
                assert!(found == expected, "{from}: {shown:?}");
            }
        }
        assert!(!EndScan::anywhere(Dialect::RFC, b"text, without\nquotes").is_quoted());
    }

    /// Text with quotes where they belong, and with `wild` anywhere.
    fn text(rng: &mut Rng, length: usize, wild: bool) -> Vec<u8> {
        let mut text = Vec::new();
        while text.len() < length {
            if wild {
                text.push(b"a\",\n\r\"\"b"[rng.below(8)]);
                continue;
            }
            let field: Vec<u8> = (0..rng.below(90)).map(|_| b"ab,\n\"c"[rng.below(6)]).collect();
            if rng.one_in(2) {
                text.push(b'"');
                field.iter().for_each(|&byte| {
                    text.extend_from_slice(if byte == b'"' {
                        b"\"\""
                    } else {
                        std::slice::from_ref(&byte)
                    });
                });
                text.push(b'"');
            } else {
                text.extend(field.iter().filter(|byte| byte.is_ascii_alphabetic()));
            }
            text.push(if rng.one_in(4) { b'\n' } else { b',' });
        }
        text.truncate(length);
        text
    }

    #[test]
    fn record_ends_equal_those_of_the_state_machine() {
        let mut rng = Rng::new(3);
        for round in 0..3000 {
            let length = rng.below(700);
            let bytes = text(&mut rng, length, round % 2 == 0);
            let quote = *rng.pick(&[Some(b'"'), Some(b'"'), None, Some(b'c')]);
            let escape = *rng.pick(&[None, None, Some(b'a')]);
            let dialect = Dialect { quote, escape, ..Dialect::RFC };
            let (ends, state) = naive(&bytes, dialect);
            for portable in [false, true] {
                let (mut scan, mut found) = (EndScan::new(dialect), Vec::new());
                if portable {
                    scan.scan_with(&bytes, equal_bytes, |base, bits| {
                        found.extend((0..64).filter(|at| bits >> at & 1 == 1).map(|at| base + at));
                        true
                    });
                } else {
                    scan.ends(&bytes, usize::MAX, &mut found);
                }
                assert_eq!(found, ends, "{:?}", String::from_utf8_lossy(&bytes));
                // Which quotes close is only known at the next byte.
                assert_eq!(scan.is_quoted(), state.is_quoted());
            }
            let max = rng.below(5);
            let mut few = Vec::new();
            EndScan::new(dialect).ends(&bytes, max, &mut few);
            assert_eq!(few, ends[..max.min(ends.len())]);
            assert_eq!(EndScan::new(dialect).first(&bytes), ends.first().copied());
            // In pieces.
            let (mut scan, mut at, mut last) = (EndScan::new(dialect), 0, None);
            while at < bytes.len() {
                let next = bytes.len().min(at + 1 + rng.below(200));
                last = scan.last(&bytes[at..next]).map(|end| at + end).or(last);
                at = next;
            }
            assert_eq!(last, ends.last().copied());
            assert_eq!(scan.is_quoted(), state.is_quoted());
        }
    }
}
