//! Two files of generated URLs with a known set of common lines.
//!
//! Every line is a pure function of (seed, index): 64 bytes (or another width) and LF. Its last 16 hex digits are a
//! bijection of the index. So all lines are distinct, a file of any size is written in constant memory, and an answer is
//! checked line by line without the files, see [`AnswerCheck`]. In plain order a line takes about 7 ns.
//!
//! Indices `0..common` are in both files, the next `count - common` only in A, the next only in B. Each file has its
//! own order ([`Permutation`]), so that common lines are scattered over both. Hosts end in the reserved names `.example`
//! and `.test` (RFC 2606).

use std::io::{self, Write};
use std::ops::RangeInclusive;

use crate::permutation::{Permutation, mix, unmix};

/// Default length of a line, LF excluded.
pub const URL_BYTES: usize = 64;
/// The supported lengths of a line, LF excluded. The shortest has room for the longest host and path.
pub const WIDTHS: RangeInclusive<usize> = 60..=MAX_HEAD_BYTES + ID_BYTES;
const ID_BYTES: usize = 16;
/// Heads are stored and copied at this size for every width: a copy of a fixed size is a few instructions, and the
/// digits overwrite the excess.
const MAX_HEAD_BYTES: usize = 64;
const HEADS: usize = 4096;
/// Length of the longest line, LF included.
const MAX_LINE_BYTES: usize = MAX_HEAD_BYTES + ID_BYTES + 1;
/// Bytes per write; with the heads they fit in the L2 cache.
const BLOCK_BYTES: usize = 256 << 10;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first file; its order is the order of the answer.
    A,
    /// The second file.
    B,
}

/// The order of the lines in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Common lines scattered, each file in its own order.
    Shuffled,
    /// By index: the common lines first, in the same order in both files.
    Plain,
}

/// A pair of files, computed on demand.
#[derive(Clone, Debug)]
pub struct Corpus {
    seed: u64,
    count: u64,
    common: u64,
    order: Order,
    orders: [Permutation; 2],
    salt: u64,
    head_bytes: usize,
    heads: Vec<[u8; MAX_HEAD_BYTES]>,
}

impl Corpus {
    /// Two files of `count` lines each, `common` of them in both. `None` if `common` is more than `count` or `count`
    /// is 2^40 or more.
    pub fn new(seed: u64, count: u64, common: u64, order: Order) -> Option<Self> {
        if common > count || count >= 1 << 40 {
            return None;
        }
        let orders = [mix(seed ^ 0xa), mix(seed ^ 0xb)].map(|seed| Permutation::new(count, seed));
        let without_heads = Self {
            seed,
            count,
            common,
            order,
            orders,
            salt: mix(seed),
            head_bytes: 0,
            heads: Vec::new(),
        };
        without_heads.with_url_bytes(URL_BYTES)
    }

    /// Sets the length of a line, LF excluded. `None` if it is not one of [`WIDTHS`].
    pub fn with_url_bytes(mut self, bytes: usize) -> Option<Self> {
        if !WIDTHS.contains(&bytes) {
            return None;
        }
        self.head_bytes = bytes - ID_BYTES;
        let first = mix(self.seed ^ 0xc);
        self.heads =
            (0..HEADS as u64).map(|number| head(first ^ number, self.head_bytes)).collect();
        Some(self)
    }

    /// Returns the length of a line, LF included.
    pub fn line_bytes(&self) -> usize {
        self.head_bytes + ID_BYTES + 1
    }

    /// Returns the number of lines of each file.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of common lines.
    pub fn common(&self) -> u64 {
        self.common
    }

    /// Returns the index of the line at a position (below `count`) of a file.
    pub fn index_at(&self, side: Side, position: u64) -> u64 {
        let index = match self.order {
            Order::Plain => position,
            Order::Shuffled => self.orders[side as usize].apply(position),
        };
        if side == Side::B && index >= self.common {
            index + self.count - self.common
        } else {
            index
        }
    }

    /// Returns the first position of an index of this corpus in A followed by B.
    pub fn first_position(&self, index: u64) -> u64 {
        let (side, before, index) = match index.checked_sub(self.count) {
            None => (Side::A, 0, index),
            Some(only_in_b) => (Side::B, self.count, only_in_b + self.common),
        };
        match self.order {
            Order::Plain => before + index,
            Order::Shuffled => before + self.orders[side as usize].invert(index),
        }
    }

    /// Returns how many lines have an index: 2 if it is in both files.
    fn copies(&self, index: u64) -> u64 {
        1 + u64::from(index < self.common)
    }

    /// Writes all lines of a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, side: Side, out: &mut impl Write) -> io::Result<()> {
        let step = self.line_bytes();
        let lines = (BLOCK_BYTES / step) as u64;
        let mut block = vec![0; lines as usize * step + MAX_LINE_BYTES];
        let mut position = 0;
        while position < self.count {
            let end = self.count.min(position + lines);
            let mut length = 0;
            for position in position..end {
                if let Some(line) = block[length..].first_chunk_mut() {
                    self.put(self.index_at(side, position), line);
                }
                length += step;
            }
            out.write_all(&block[..length])?;
            position = end;
        }
        out.flush()
    }

    /// Returns the index of a line (without LF). `None` if it is not a line of this corpus.
    pub fn index_of(&self, url: &[u8]) -> Option<u64> {
        let digits = std::str::from_utf8(url.get(self.head_bytes..)?).ok()?;
        let id = u64::from_str_radix(digits, 16).ok()?;
        let index = unmix(id) ^ self.salt;
        let mut line = [0; MAX_LINE_BYTES];
        self.put(index, &mut line);
        (&line[..self.line_bytes() - 1] == url).then_some(index)
    }

    /// Writes the line of an index, LF included, to the start of `line`. The bytes behind it may be overwritten.
    fn put(&self, index: u64, line: &mut [u8; MAX_LINE_BYTES]) {
        let id = mix(index ^ self.salt);
        line[..MAX_HEAD_BYTES].copy_from_slice(&self.heads[(id % HEADS as u64) as usize]);
        let digits = &mut line[self.head_bytes..][..=ID_BYTES];
        digits[..ID_BYTES / 2].copy_from_slice(&hex((id >> 32) as u32));
        digits[ID_BYTES / 2..ID_BYTES].copy_from_slice(&hex(id as u32));
        digits[ID_BYTES] = b'\n';
    }
}

/// Returns the eight lower-case hex digits of a number. Nibbles are spread to bytes; those above 9 are raised by the
/// distance between `9` and `a` in ASCII.
fn hex(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut x = u64::from(number);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let above_nine = (x + 6 * ONES) >> 4 & ONES;
    let letters = above_nine * u64::from(b'a' - b'0' - 10);
    (x + u64::from(b'0') * ONES + letters).swap_bytes().to_le_bytes()
}

/// Returns the first `length` bytes of a URL: scheme, host and path, padded with hex digits, and `-`.
fn head(number: u64, length: usize) -> [u8; MAX_HEAD_BYTES] {
    const SUBDOMAINS: [&str; 8] = ["", "", "www.", "www.", "m.", "img.", "shop.", "blog."];
    const FIRST: [&str; 16] = [
        "red", "blue", "north", "maple", "river", "stone", "amber", "cloud", "pine", "silver",
        "quiet", "lucky", "old", "tiny", "solar", "urban",
    ];
    const SECOND: [&str; 16] = [
        "fox", "lake", "market", "press", "garden", "harbor", "forge", "lab", "ledger", "mill",
        "kite", "atlas", "post", "field", "shop", "wiki",
    ];
    const PATHS: [&str; 16] = [
        "", "p/", "item/", "news/", "tag/", "u/", "a/", "docs/", "2019/", "2024/", "en/", "de/",
        "api/v1/", "page/", "img/", "watch/",
    ];
    let bits = mix(number);
    let scheme = if bits & 3 == 0 { "http" } else { "https" };
    let pick = |shift: u32, names: &[&'static str]| names[(bits >> shift) as usize % names.len()];
    let (subdomain, first, second) = (pick(2, &SUBDOMAINS), pick(8, &FIRST), pick(12, &SECOND));
    let (top, path) = (pick(16, &["example", "test"]), pick(20, &PATHS));
    let mut url = format!("{scheme}://{subdomain}{first}-{second}.{top}/{path}").into_bytes();
    let fill = format!("{:016x}{bits:016x}", mix(bits));
    url.extend(fill.bytes().cycle().take(length - 1 - url.len()));
    let mut head = [b'-'; MAX_HEAD_BYTES];
    head[..url.len()].copy_from_slice(&url);
    head
}

/// Checks an answer line by line: the lines of A that are in B, the distinct lines of A, or those of both files with
/// their counts.
#[derive(Clone, Debug)]
pub struct AnswerCheck<'a> {
    corpus: &'a Corpus,
    expected: u64,
    lines: u64,
    checksum: u64,
    wrong: u64,
    last: Option<u64>,
    in_order: bool,
}

/// The result of an [`AnswerCheck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Lines in the answer.
    pub lines: u64,
    /// Lines that are not in the correct answer.
    pub wrong: u64,
    /// Whether the answer has exactly the correct lines, each once: no line is wrong, and their number and their
    /// checksum are right. Certain if the lines are in A's order; otherwise duplicates are missed with probability
    /// 2^-64.
    pub exact: bool,
    /// Whether the lines are in the order of A, then of B, without duplicates.
    pub in_order: bool,
}

impl<'a> AnswerCheck<'a> {
    /// Checks the common lines.
    pub fn of_common(corpus: &'a Corpus) -> Self {
        Self::new(corpus, corpus.common)
    }

    /// Checks all lines of A.
    pub fn of_all(corpus: &'a Corpus) -> Self {
        Self::new(corpus, corpus.count)
    }

    /// Checks the distinct lines of both files.
    pub fn of_both(corpus: &'a Corpus) -> Self {
        Self::new(corpus, 2 * corpus.count - corpus.common)
    }

    /// Checks the lines with indices below `expected`.
    fn new(corpus: &'a Corpus, expected: u64) -> Self {
        Self { corpus, expected, lines: 0, checksum: 0, wrong: 0, last: None, in_order: true }
    }

    /// Adds a line of the answer, without LF.
    pub fn add(&mut self, line: &[u8]) {
        self.add_index(self.corpus.index_of(line));
    }

    /// Adds a line of the answer, without LF, and how often it occurs in both files.
    pub fn add_counted(&mut self, count: u64, line: &[u8]) {
        let index = self.corpus.index_of(line);
        self.add_index(index.filter(|&index| self.corpus.copies(index) == count));
    }

    fn add_index(&mut self, index: Option<u64>) {
        self.lines += 1;
        match index.filter(|&index| index < self.expected) {
            None => {
                self.wrong += 1;
                self.in_order = false;
            }
            Some(index) => {
                self.checksum = self.checksum.wrapping_add(weight(index));
                let position = self.corpus.first_position(index);
                self.in_order &= self.last.is_none_or(|last| last < position);
                self.last = Some(position);
            }
        }
    }

    /// Returns the result for the lines so far.
    pub fn result(&self) -> CheckResult {
        let checksum = (0..self.expected).fold(0_u64, |sum, index| sum.wrapping_add(weight(index)));
        let complete = self.lines == self.expected && self.checksum == checksum;
        CheckResult {
            lines: self.lines,
            wrong: self.wrong,
            exact: complete && self.wrong == 0,
            in_order: self.in_order,
        }
    }
}

/// Returns the summand of a line in the order-independent checksum.
fn weight(index: u64) -> u64 {
    mix(index ^ 0x70e7_a1b1_005e_50d5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::model;

    fn file(corpus: &Corpus, side: Side) -> Vec<u8> {
        let mut out = Vec::new();
        corpus.write(side, &mut out).unwrap();
        out
    }

    fn check(corpus: &Corpus, answer: &[u8]) -> CheckResult {
        let mut check = AnswerCheck::of_common(corpus);
        model::lines(answer, b'\n').into_iter().for_each(|line| check.add(line));
        check.result()
    }

    #[test]
    fn files_have_the_given_common_lines() {
        for order in [Order::Shuffled, Order::Plain] {
            for (count, common) in [(1, 0), (1, 1), (1_000, 0), (1_000, 100), (1_000, 1_000)] {
                let corpus = Corpus::new(1, count, common, order).unwrap();
                let (a, b) = (file(&corpus, Side::A), file(&corpus, Side::B));
                assert_eq!(
                    model::dedup(&[&a], b'\n').len() as u64,
                    count * corpus.line_bytes() as u64
                );
                assert_eq!(
                    model::dedup(&[&b], b'\n').len() as u64,
                    count * corpus.line_bytes() as u64
                );
                let answer = model::common(&a, &[&b], b'\n');
                assert_eq!(answer.len() as u64, common * corpus.line_bytes() as u64);
                let expected = CheckResult { lines: common, wrong: 0, exact: true, in_order: true };
                assert_eq!(check(&corpus, &answer), expected);
            }
        }
    }

    #[test]
    fn wrong_answers_are_found() {
        let corpus = Corpus::new(2, 500, 50, Order::Shuffled).unwrap();
        let (a, b) = (file(&corpus, Side::A), file(&corpus, Side::B));
        let good = model::common(&a, &[&b], b'\n');
        let lines: Vec<&[u8]> = model::lines(&good, b'\n');
        let result = |lines: &[&[u8]]| check(&corpus, &model::join(lines.iter().copied(), b'\n'));

        let missing = result(&lines[1..]);
        assert!(!missing.exact && missing.in_order);
        let mut swapped = lines.clone();
        swapped.swap(3, 4);
        assert!(result(&swapped).exact && !result(&swapped).in_order);
        let mut twice = lines.clone();
        twice[9] = twice[8];
        assert!(!result(&twice).exact && !result(&twice).in_order);
        let only_b = model::diff(&b, &[&a], b'\n');
        let mut foreign = lines.clone();
        foreign[0] = &only_b[..URL_BYTES];
        assert_eq!((result(&foreign).exact, result(&foreign).wrong), (false, 1));
        assert_eq!(result(&[b"https://x", b""]).wrong, 2);
    }

    #[test]
    fn all_lines_of_a_are_checked() {
        let corpus = Corpus::new(2, 500, 50, Order::Shuffled).unwrap();
        let (a, b) = (file(&corpus, Side::A), file(&corpus, Side::B));
        let result = |answer: &[u8]| {
            let mut check = AnswerCheck::of_all(&corpus);
            model::lines(answer, b'\n').into_iter().for_each(|line| check.add(line));
            check.result()
        };
        let expected = CheckResult { lines: 500, wrong: 0, exact: true, in_order: true };
        assert_eq!(result(&a), expected);
        assert_eq!(
            result(&b),
            CheckResult { lines: 500, wrong: 450, exact: false, in_order: false }
        );
    }

    #[test]
    fn counts_of_both_files_are_checked() {
        for order in [Order::Shuffled, Order::Plain] {
            let corpus = Corpus::new(2, 500, 50, order).unwrap();
            let (a, b) = (file(&corpus, Side::A), file(&corpus, Side::B));
            let union = model::dedup(&[&a, &b], b'\n');
            let both = model::common(&a, &[&b], b'\n');
            let both = model::lines(&both, b'\n');
            let mut counted: Vec<(u64, &[u8])> = model::lines(&union, b'\n')
                .into_iter()
                .map(|line| (1 + u64::from(both.contains(&line)), line))
                .collect();
            let result = |counted: &[(u64, &[u8])]| {
                let mut check = AnswerCheck::of_both(&corpus);
                counted.iter().for_each(|&(count, line)| check.add_counted(count, line));
                check.result()
            };
            let expected = CheckResult { lines: 950, wrong: 0, exact: true, in_order: true };
            assert_eq!(result(&counted), expected);
            assert!(!result(&counted[1..]).exact);
            counted.swap(10, 900);
            assert_eq!(result(&counted), CheckResult { in_order: false, ..expected });
            counted[20].0 = 3 - counted[20].0;
            assert_eq!((result(&counted).exact, result(&counted).wrong), (false, 1));
        }
    }

    #[test]
    fn the_lines_of_a_seed_never_change() {
        let corpus = Corpus::new(1, 100_000, 10_000, Order::Shuffled).unwrap();
        let a = file(&corpus, Side::A);
        let first = String::from_utf8(a[..URL_BYTES].to_vec()).unwrap();
        assert_eq!(first, "https://pine-fox.test/a9b56dee42dc61d232ad24b33-a855095a749079e2");
        let sum = a.iter().fold(0_u64, |sum, &byte| mix(sum ^ u64::from(byte)));
        assert_eq!(sum, 0x26df_4067_5041_dc46, "{sum:#x}");
    }

    #[test]
    fn lines_of_every_width_have_an_index() {
        for bytes in WIDTHS {
            let corpus = Corpus::new(4, 5_000, 10, Order::Shuffled).unwrap();
            let corpus = corpus.with_url_bytes(bytes).unwrap();
            let a = file(&corpus, Side::A);
            for (position, line) in (0..).zip(model::lines(&a, b'\n')) {
                assert_eq!(line.len(), bytes);
                assert_eq!(line[bytes - 17], b'-');
                assert_eq!(corpus.index_of(line), Some(corpus.index_at(Side::A, position)));
            }
        }
        let corpus = Corpus::new(4, 10, 1, Order::Plain).unwrap();
        assert!(corpus.clone().with_url_bytes(59).is_none() && corpus.with_url_bytes(81).is_none());
    }

    #[test]
    fn hex_digits() {
        assert_eq!(&hex(0x0123_4567), b"01234567");
        assert_eq!(&hex(0x89ab_cdef), b"89abcdef");
        assert_eq!(&hex(u32::MAX), b"ffffffff");
    }

    #[test]
    fn lines_look_like_urls() {
        let corpus = Corpus::new(3, 1_000, 10, Order::Shuffled).unwrap();
        let text = String::from_utf8(file(&corpus, Side::A)).unwrap();
        for line in text.lines() {
            assert_eq!(line.len(), URL_BYTES);
            assert!(
                line.starts_with("http") && line.contains("://") && line.contains(['.']),
                "{line}"
            );
        }
        let hosts: std::collections::HashSet<_> =
            text.lines().filter_map(|line| line.split('/').nth(2)).collect();
        assert!(hosts.len() > 300, "{}", hosts.len());
    }
}
