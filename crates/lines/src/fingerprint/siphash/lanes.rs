//! SipHash-2-4-128 in the lanes of vector registers of any size.
//!
//! The lanes advance together, word by word. A lane whose line has ended keeps its state while
//! longer lines continue. The last word of a line (its last bytes and its length) is processed last,
//! for all lines that have reached it.

#![allow(unsafe_code)]

use super::LANES;

/// Eight words in vector registers.
///
/// # Safety
/// The processor must have the instructions of the type. The methods are inlined into functions that
/// enable them.
pub(super) trait Words: Copy {
    unsafe fn new(words: [u64; LANES]) -> Self;
    unsafe fn get(self) -> [u64; LANES];
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// Rotates each word to the left by `LEFT` bits; `RIGHT` is 64 - `LEFT`.
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self;
}

/// The four words of state of every lane.
#[derive(Clone, Copy)]
struct State<W> {
    a: W,
    b: W,
    c: W,
    d: W,
}

/// Returns the hashes of eight lines: the first halves, then the second halves.
///
/// # Safety
/// The processor must have the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn hash<W: Words>(key: [u64; 2], lines: &[&[u8]; LANES]) -> [[u64; LANES]; 2] {
    let [low, high] = key;
    let mut words = [&[][..]; LANES];
    let mut last = [0; LANES];
    for (lane, line) in lines.iter().enumerate() {
        (words[lane], last[lane]) = (line.as_chunks::<8>().0, last_word(line));
    }
    let shortest = words.iter().map(|words| words.len()).min().unwrap_or(0);
    let longest = words.iter().map(|words| words.len()).max().unwrap_or(0);
    let mut group = [0; LANES];
    // SAFETY: the caller promises the instructions of `W`.
    unsafe {
        let all = |word| W::new([word; LANES]);
        let mut state = State {
            a: all(low ^ 0x736f_6d65_7073_6575),
            b: all(high ^ 0x646f_7261_6e64_6f6d ^ 0xee),
            c: all(low ^ 0x6c79_6765_6e65_7261),
            d: all(high ^ 0x7465_6462_7974_6573),
        };
        // Words that all lines have need no mask.
        for at in 0..shortest {
            for (word, words) in group.iter_mut().zip(&words) {
                *word = u64::from_le_bytes(words[at]);
            }
            state = state.word(W::new(group));
        }
        for at in shortest..longest {
            for (lane, word) in group.iter_mut().enumerate() {
                *word = words[lane].get(at).map_or(last[lane], |word| u64::from_le_bytes(*word));
            }
            let going = mask(|lane| words[lane].len() >= at);
            state = state.word(W::new(group)).only(going, state);
        }
        let going = mask(|lane| words[lane].len() == longest);
        state = state.word(W::new(last)).only(going, state);
        state.c = state.c.xor(all(0xee));
        state = state.round().round().round().round();
        let first = state.digest();
        state.b = state.b.xor(all(0xdd));
        state = state.round().round().round().round();
        [first, state.digest()]
    }
}

/// Returns all bits in the lanes for which `holds`.
///
/// # Safety
/// The processor must have the instructions of `W`.
#[inline(always)]
unsafe fn mask<W: Words>(holds: impl Fn(usize) -> bool) -> W {
    let mut lanes = [0; LANES];
    for (lane, word) in lanes.iter_mut().enumerate() {
        *word = if holds(lane) { u64::MAX } else { 0 };
    }
    // SAFETY: the caller promises the instructions of `W`.
    unsafe { W::new(lanes) }
}

/// The processor must have the instructions of `W`.
impl<W: Words> State<W> {
    #[inline(always)]
    unsafe fn round(self) -> Self {
        let Self { mut a, mut b, mut c, mut d } = self;
        // SAFETY: the caller promises the instructions of `W`.
        unsafe {
            a = a.add(b);
            c = c.add(d);
            b = b.rotate::<13, 51>().xor(a);
            d = d.rotate::<16, 48>().xor(c);
            a = a.rotate::<32, 32>();
            c = c.add(b);
            a = a.add(d);
            b = b.rotate::<17, 47>().xor(c);
            d = d.rotate::<21, 43>().xor(a);
            c = c.rotate::<32, 32>();
        }
        Self { a, b, c, d }
    }

    /// Absorbs a word of every line.
    #[inline(always)]
    unsafe fn word(mut self, word: W) -> Self {
        // SAFETY: the caller promises the instructions of `W`.
        unsafe {
            self.d = self.d.xor(word);
            self = self.round().round();
            self.a = self.a.xor(word);
        }
        self
    }

    /// Returns this state in the lanes of the mask and `old` in the others.
    #[inline(always)]
    unsafe fn only(self, mask: W, old: Self) -> Self {
        // SAFETY: the caller promises the instructions of `W`.
        let choose = |new: W, old: W| unsafe { old.xor(old.xor(new).and(mask)) };
        Self {
            a: choose(self.a, old.a),
            b: choose(self.b, old.b),
            c: choose(self.c, old.c),
            d: choose(self.d, old.d),
        }
    }

    #[inline(always)]
    unsafe fn digest(self) -> [u64; LANES] {
        // SAFETY: the caller promises the instructions of `W`.
        unsafe { self.a.xor(self.b).xor(self.c.xor(self.d)).get() }
    }
}

/// Returns the bytes after the last whole word of a line, with its length in the top byte.
#[inline]
fn last_word(line: &[u8]) -> u64 {
    let rest = line.len() % 8;
    let bytes = match line.last_chunk() {
        _ if rest == 0 => 0,
        Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest),
        None => line.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    bytes | (line.len() as u64) << 56
}
