//! SipHash-2-4-128 of eight lines at once, one in each 64-bit lane of an AVX-512 register.
//!
//! The lanes advance together, word by word. A lane whose line has ended keeps its state while
//! longer lines continue. The last word of a line (its last bytes and its length) is processed last,
//! for all lines that have reached it.
//!
//! Source: Aumasson & Bernstein, "SipHash: a fast short-input PRF" (2012), the 128-bit form of
//! the reference code.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, __mmask8, _mm512_add_epi64, _mm512_mask_mov_epi64, _mm512_rol_epi64, _mm512_set_epi64,
    _mm512_set1_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

/// 64-bit lanes of a register.
const LANES: usize = size_of::<__m512i>() / 8;

/// The four words of state of every lane.
#[derive(Clone, Copy)]
struct State {
    a: __m512i,
    b: __m512i,
    c: __m512i,
    d: __m512i,
}

/// Returns the hashes of eight lines: the first halves, then the second halves.
#[target_feature(enable = "avx512f")]
pub(super) fn avx512(key: [u64; 2], lines: &[&[u8]; LANES]) -> [[u64; LANES]; 2] {
    let [low, high] = key;
    let mut state = State {
        a: all(low ^ 0x736f_6d65_7073_6575),
        b: all(high ^ 0x646f_7261_6e64_6f6d ^ 0xee),
        c: all(low ^ 0x6c79_6765_6e65_7261),
        d: all(high ^ 0x7465_6462_7974_6573),
    };
    let words = lines.map(|line| line.as_chunks::<8>().0);
    let shortest = words.iter().map(|words| words.len()).min().unwrap_or(0);
    let longest = words.iter().map(|words| words.len()).max().unwrap_or(0);
    // Words that all lines have need no mask.
    let even = words.map(|words| &words[..shortest]);
    for at in 0..shortest {
        state = state.word(lanes(even.map(|words| u64::from_le_bytes(words[at]))));
    }
    let last = lines.map(last_word);
    for at in shortest..longest {
        let word = |lane: usize| words[lane].get(at).map_or(last[lane], |w| u64::from_le_bytes(*w));
        let going = mask(|lane| words[lane].len() >= at);
        state = state.word(lanes(std::array::from_fn(word))).only(going, state);
    }
    let going = mask(|lane| words[lane].len() == longest);
    state = state.word(lanes(last)).only(going, state);
    state.c = _mm512_xor_si512(state.c, all(0xee));
    state = state.round().round().round().round();
    let first = state.digest();
    state.b = _mm512_xor_si512(state.b, all(0xdd));
    state = state.round().round().round().round();
    [first, state.digest()]
}

impl State {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn round(self) -> Self {
        let Self { mut a, mut b, mut c, mut d } = self;
        a = _mm512_add_epi64(a, b);
        c = _mm512_add_epi64(c, d);
        b = _mm512_xor_si512(_mm512_rol_epi64::<13>(b), a);
        d = _mm512_xor_si512(_mm512_rol_epi64::<16>(d), c);
        a = _mm512_rol_epi64::<32>(a);
        c = _mm512_add_epi64(c, b);
        a = _mm512_add_epi64(a, d);
        b = _mm512_xor_si512(_mm512_rol_epi64::<17>(b), c);
        d = _mm512_xor_si512(_mm512_rol_epi64::<21>(d), a);
        c = _mm512_rol_epi64::<32>(c);
        Self { a, b, c, d }
    }

    /// Absorbs a word of every line.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn word(mut self, word: __m512i) -> Self {
        self.d = _mm512_xor_si512(self.d, word);
        self = self.round().round();
        self.a = _mm512_xor_si512(self.a, word);
        self
    }

    /// Returns this state in the lanes of the mask and `old` in the others.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn only(self, mask: __mmask8, old: Self) -> Self {
        Self {
            a: _mm512_mask_mov_epi64(old.a, mask, self.a),
            b: _mm512_mask_mov_epi64(old.b, mask, self.b),
            c: _mm512_mask_mov_epi64(old.c, mask, self.c),
            d: _mm512_mask_mov_epi64(old.d, mask, self.d),
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn digest(self) -> [u64; LANES] {
        let (ab, cd) = (_mm512_xor_si512(self.a, self.b), _mm512_xor_si512(self.c, self.d));
        let mut digest = [0; LANES];
        // SAFETY: 64 bytes into an array of 64 bytes, without any alignment.
        unsafe { _mm512_storeu_si512(digest.as_mut_ptr().cast(), _mm512_xor_si512(ab, cd)) };
        digest
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn all(word: u64) -> __m512i {
    _mm512_set1_epi64(word.cast_signed())
}

#[target_feature(enable = "avx512f")]
#[inline]
fn lanes(words: [u64; LANES]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = words.map(u64::cast_signed);
    _mm512_set_epi64(h, g, f, e, d, c, b, a)
}

fn mask(holds: impl Fn(usize) -> bool) -> __mmask8 {
    (0..LANES).fold(0, |mask, lane| mask | u8::from(holds(lane)) << lane)
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
