//! Two files of made-up URLs that share an exact, known set of lines.
//!
//! Every line is a pure function of (seed, index): 64 bytes and LF, with the index hidden in its last 16 hex digits
//! by a bijection. So no two lines are equal, a file of any size is written without memory, and any answer can be
//! judged line by line without either file: see [`Judge`].
//!
//! Indices `0..common` are in both files, the next `count - common` only in A, the next only in B. Each file has its
//! own order ([`Permutation`]), so that common lines are scattered over both. Hosts end in `.example` and `.test`,
//! which belong to nobody (RFC 2606).

use crate::permutation::{Permutation, mix, unmix};

/// Bytes of a line without its LF.
pub const URL_BYTES: usize = 64;
/// Bytes of a line.
pub const LINE_BYTES: usize = URL_BYTES + 1;
const ID_BYTES: usize = 16;
const HEAD_BYTES: usize = URL_BYTES - ID_BYTES;
const HEADS: usize = 4096;

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

/// A pair of files, as a formula.
#[derive(Clone, Debug)]
pub struct Corpus {
    seed: u64,
    count: u64,
    common: u64,
    order: Order,
    scatter: [Permutation; 2],
    heads: Vec<[u8; HEAD_BYTES]>,
}

impl Corpus {
    /// Two files of `count` lines each, `common` of them (at most `count`) in both. `None` if the numbers do not fit.
    pub fn new(seed: u64, count: u64, common: u64, order: Order) -> Option<Self> {
        if common > count || count >= 1 << 40 {
            return None;
        }
        let scatter = [mix(seed ^ 0xa), mix(seed ^ 0xb)].map(|seed| Permutation::new(count, seed));
        let heads = (0..HEADS as u64).map(|number| head(mix(seed ^ 0xc) ^ number)).collect();
        Some(Self { seed, count, common, order, scatter, heads })
    }

    /// How many lines each file has.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many lines are in both.
    pub fn common(&self) -> u64 {
        self.common
    }

    /// The index of the line at a position (below `count`) of a file.
    pub fn index_at(&self, side: Side, position: u64) -> u64 {
        let place = match self.order {
            Order::Plain => position,
            Order::Shuffled => self.scatter[side as usize].apply(position),
        };
        if side == Side::B && place >= self.common {
            place + self.count - self.common
        } else {
            place
        }
    }

    /// The position in file A of an index that A holds.
    pub fn position_in_a(&self, index: u64) -> u64 {
        match self.order {
            Order::Plain => index,
            Order::Shuffled => self.scatter[Side::A as usize].invert(index),
        }
    }

    /// Writes the line of an index, LF included.
    pub fn write_line(&self, index: u64, line: &mut [u8; LINE_BYTES]) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let id = mix(index ^ mix(self.seed));
        let (front, digits) = line.split_at_mut(HEAD_BYTES);
        front.copy_from_slice(&self.heads[(id % HEADS as u64) as usize]);
        for (at, digit) in digits[..ID_BYTES].iter_mut().enumerate() {
            *digit = HEX[(id >> (60 - 4 * at)) as usize & 15];
        }
        digits[ID_BYTES] = b'\n';
    }

    /// The index of a line (without LF), if this corpus could have written it.
    pub fn index_of(&self, url: &[u8]) -> Option<u64> {
        let digits = std::str::from_utf8(url.get(HEAD_BYTES..)?).ok()?;
        let id = u64::from_str_radix(digits, 16).ok()?;
        let index = unmix(id) ^ mix(self.seed);
        let mut line = [0; LINE_BYTES];
        self.write_line(index, &mut line);
        (&line[..URL_BYTES] == url).then_some(index)
    }
}

/// The first 48 bytes of a URL: scheme, host, path, filled up with hex digits, ending in `-`.
fn head(number: u64) -> [u8; HEAD_BYTES] {
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
    url.extend_from_slice(&fill.as_bytes()[..HEAD_BYTES - 1 - url.len()]);
    url.push(b'-');
    let mut head = [b'-'; HEAD_BYTES];
    head.copy_from_slice(&url);
    head
}

/// Judges an answer to "which lines of A are in B", fed line by line.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    corpus: &'a Corpus,
    lines: u64,
    checksum: u64,
    wrong: u64,
    last: Option<u64>,
    in_order: bool,
}

/// What a [`Judge`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Lines in the answer.
    pub lines: u64,
    /// Lines that are no common line of the two files.
    pub wrong: u64,
    /// Whether the answer is, as a set, exactly the common lines, each once: the count and the order-independent
    /// checksum agree and no line is wrong. If the lines are in A's order this is a proof; if not, it rests on a
    /// 64-bit sum.
    pub exact: bool,
    /// Whether every line stands after those that come before it in A. Implies that none is there twice.
    pub in_order: bool,
}

impl<'a> Judge<'a> {
    /// A judge who has seen nothing.
    pub fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, lines: 0, checksum: 0, wrong: 0, last: None, in_order: true }
    }

    /// Takes one line of the answer, without LF.
    pub fn see(&mut self, line: &[u8]) {
        self.lines += 1;
        match self.corpus.index_of(line).filter(|&index| index < self.corpus.common) {
            None => {
                self.wrong += 1;
                self.in_order = false;
            }
            Some(index) => {
                self.checksum = self.checksum.wrapping_add(weight(index));
                let position = self.corpus.position_in_a(index);
                self.in_order &= self.last.is_none_or(|last| last < position);
                self.last = Some(position);
            }
        }
    }

    /// The verdict on all that was seen.
    pub fn verdict(&self) -> Verdict {
        let expected =
            (0..self.corpus.common).fold(0_u64, |sum, index| sum.wrapping_add(weight(index)));
        let complete = self.lines == self.corpus.common && self.checksum == expected;
        Verdict {
            lines: self.lines,
            wrong: self.wrong,
            exact: complete && self.wrong == 0,
            in_order: self.in_order,
        }
    }
}

/// What a line adds to the order-independent checksum.
fn weight(index: u64) -> u64 {
    mix(index ^ 0x70e7_a1b1_005e_50d5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::model;

    fn file(corpus: &Corpus, side: Side) -> Vec<u8> {
        let mut out = Vec::new();
        let mut line = [0; LINE_BYTES];
        for position in 0..corpus.count() {
            corpus.write_line(corpus.index_at(side, position), &mut line);
            out.extend_from_slice(&line);
        }
        out
    }

    fn verdict(corpus: &Corpus, answer: &[u8]) -> Verdict {
        let mut judge = Judge::new(corpus);
        model::lines(answer, b'\n').into_iter().for_each(|line| judge.see(line));
        judge.verdict()
    }

    #[test]
    fn the_files_share_what_they_promise() {
        for order in [Order::Shuffled, Order::Plain] {
            for (count, common) in [(1, 0), (1, 1), (1_000, 0), (1_000, 100), (1_000, 1_000)] {
                let corpus = Corpus::new(1, count, common, order).unwrap();
                let (a, b) = (file(&corpus, Side::A), file(&corpus, Side::B));
                assert_eq!(model::dedup(&[&a], b'\n').len() as u64, count * LINE_BYTES as u64);
                assert_eq!(model::dedup(&[&b], b'\n').len() as u64, count * LINE_BYTES as u64);
                let answer = model::common(&a, &[&b], b'\n');
                assert_eq!(answer.len() as u64, common * LINE_BYTES as u64);
                let expected = Verdict { lines: common, wrong: 0, exact: true, in_order: true };
                assert_eq!(verdict(&corpus, &answer), expected);
            }
        }
    }

    #[test]
    fn the_judge_sees_every_fault() {
        let corpus = Corpus::new(2, 500, 50, Order::Shuffled).unwrap();
        let (a, b) = (file(&corpus, Side::A), file(&corpus, Side::B));
        let good = model::common(&a, &[&b], b'\n');
        let lines: Vec<&[u8]> = model::lines(&good, b'\n');
        let judged = |lines: &[&[u8]]| verdict(&corpus, &model::join(lines.iter().copied(), b'\n'));

        let missing = judged(&lines[1..]);
        assert!(!missing.exact && missing.in_order);
        let mut swapped = lines.clone();
        swapped.swap(3, 4);
        assert!(judged(&swapped).exact && !judged(&swapped).in_order);
        let mut twice = lines.clone();
        twice[9] = twice[8];
        assert!(!judged(&twice).exact && !judged(&twice).in_order);
        let only_b = model::diff(&b, &[&a], b'\n');
        let mut foreign = lines.clone();
        foreign[0] = &only_b[..URL_BYTES];
        assert_eq!((judged(&foreign).exact, judged(&foreign).wrong), (false, 1));
        assert_eq!(judged(&[b"https://x", b""]).wrong, 2);
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
