//! The classic layout: k positions anywhere in m bits.
//!
//! Position i is ⌊x · m / 2⁶⁴⌋ with x₀ = h and xᵢ₊₁ = xᵢ · [`STEP`] (mod 2⁶⁴). Double hashing
//! (x + i·d) would be simpler but raises the rate: two keys with the same start and stride have all
//! positions in common, with a probability of about 2n/m², which at n = 100 and ε = 10⁻⁵ is three
//! times the target. A multiplicative generator has no stride, and its top bits, which are used
//! here, are its best. Source: Steele & Vigna 2021 for the multiplier; Boost.Bloom for the idea.
//!
//! Bit p is bit p mod 8 of byte ⌊p/8⌋; bit 0 is the least significant.
//!
//! Cost: up to k cache lines per key. The query of an absent key reads four in most cases; in a batch
//! and a large filter two on average.

use super::batch::{
    GROUP, HashSource, PREFETCH_FROM, batch, in_groups, join, one_by_one, test_each,
};
use super::primitives::{prefetch, scale, test_and_set};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::store::{CacheLine, lines_as_words, lines_as_words_mut};

/// The multiplier of a 64-bit multiplicative congruential generator.
pub(crate) const STEP: u64 = 0xf135_7aea_2e62_a9c5;

/// Minimum number of cache lines of a large filter, for which memory latency dominates.
pub(super) const LARGE_FILTER: usize = PREFETCH_FROM;
/// Bits that are tested before the first branch: a test is cheaper than a mispredicted branch, and
/// one of sixteen absent keys remains. In a large filter their cache misses overlap.
pub(super) const FIRST_TESTS: usize = 4;
/// Simultaneous lookups in large filters: enough to fill a core's line-fill buffers.
const LOOKUPS: usize = 32;

/// Maximum number of bits that a key sets.
pub(super) const MAX_PROBES: usize = 64;

/// The parameters of a classic filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassicParams {
    pub(crate) bits: u64,
    pub(crate) probes: u32,
}

/// Returns the cache line, the word and the mask of a bit.
#[inline(always)]
pub(super) fn locate(bit: u64) -> (usize, usize, u64) {
    ((bit / 512) as usize, (bit / 64 % 8) as usize, 1 << (bit % 64))
}

/// The powers of [`STEP`]: with them no position waits for the one before it.
pub(super) const POWERS: [u64; MAX_PROBES] = {
    let mut powers = [1u64; MAX_PROBES];
    let mut at = 1;
    while at < MAX_PROBES {
        powers[at] = powers[at - 1].wrapping_mul(STEP);
        at += 1;
    }
    powers
};

/// Calls a function with the number of probes as a constant, so that its loop is unrolled; with 0
/// for numbers of probes that have no code of their own.
macro_rules! unrolled {
    ($probes:expr, $function:ident($($argument:expr),*)) => {
        match $probes {
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            8 => $function::<8>($($argument),*),
            9 => $function::<9>($($argument),*),
            10 => $function::<10>($($argument),*),
            11 => $function::<11>($($argument),*),
            12 => $function::<12>($($argument),*),
            13 => $function::<13>($($argument),*),
            14 => $function::<14>($($argument),*),
            _ => $function::<0>($($argument),*),
        }
    };
}

/// Returns the powers of the probes; `K` is their number or 0.
#[inline(always)]
fn powers<const K: usize>(params: ClassicParams) -> &'static [u64] {
    &POWERS[..if K == 0 { params.probes as usize } else { K }]
}

/// Calls a function for each power. Fewer than four are no loop: the end of a short loop can be
/// mispredicted for every key.
#[inline(always)]
fn for_each(powers: &[u64], mut f: impl FnMut(u64)) {
    let (fours, rest) = powers.as_chunks::<4>();
    for four in fours {
        four.iter().for_each(|&power| f(power));
    }
    let last = match rest {
        [first, second, last @ ..] => {
            f(*first);
            f(*second);
            last
        }
        last => last,
    };
    if let Some(&last) = last.first() {
        f(last);
    }
}

/// Sets the bits of a hash. Returns whether any of them was clear.
///
/// # Safety
/// The words must have all bits.
#[inline(always)]
unsafe fn insert<const K: usize>(words: &mut [u64], params: ClassicParams, hash: u64) -> bool {
    let powers = powers::<K>(params);
    let mut already_set = 0;
    let mut set = |x| {
        let position = scale(x, params.bits);
        // SAFETY: a position is below the number of bits.
        let word = unsafe { words.get_unchecked_mut((position / 64) as usize) };
        test_and_set(word, position, &mut already_set);
    };
    for_each(powers, |power| set(hash.wrapping_mul(power)));
    already_set != powers.len() as u64
}

/// Returns whether all bits of a hash are set, with one branch, after the [`FIRST_TESTS`].
///
/// # Safety
/// As of [`insert`].
#[inline(always)]
unsafe fn contains<const K: usize>(words: &[u64], params: ClassicParams, hash: u64) -> bool {
    let all_set = |powers: &[u64]| {
        // A sum, because compilers add a carry flag in one instruction.
        let mut set = 0;
        for_each(powers, |power| {
            let position = scale(hash.wrapping_mul(power), params.bits);
            // SAFETY: a position is below the number of bits.
            let word = unsafe { *words.get_unchecked((position / 64) as usize) };
            set += u64::from(u64::from_le(word) & (1 << (position % 64)) != 0);
        });
        set == powers.len() as u64
    };
    let powers = powers::<K>(params);
    match powers.split_first_chunk::<FIRST_TESTS>() {
        Some((first, rest)) => all_set(first) && all_set(rest),
        None => all_set(powers),
    }
}

/// Inserts eight hashes in turn.
///
/// # Safety
/// As of [`insert`].
#[inline(never)]
unsafe fn insert_group<const K: usize>(
    words: &mut [u64],
    params: ClassicParams,
    group: &[u64; GROUP],
) -> u8 {
    // SAFETY: the caller guarantees it.
    test_each(*group, |hash| unsafe { insert::<K>(words, params, hash) })
}

/// Looks up eight hashes.
///
/// # Safety
/// As of [`insert`].
#[inline(never)]
unsafe fn contains_group<const K: usize>(
    words: &[u64],
    params: ClassicParams,
    group: &[u64; GROUP],
) -> u8 {
    // SAFETY: the caller guarantees it.
    test_each(*group, |hash| unsafe { contains::<K>(words, params, hash) })
}

impl ClassicParams {
    /// Returns the positions of a hash.
    #[inline(always)]
    pub(crate) fn positions(&self, hash: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = self.bits;
        let steps = core::iter::successors(Some(hash), |x| Some(x.wrapping_mul(STEP)));
        steps.take(self.probes as usize).map(move |x| scale(x, bits))
    }

    /// Sets the bits of a hash. Returns whether any of them was clear.
    #[inline]
    pub(crate) fn insert(&self, lines: &mut [CacheLine], hash: u64) -> bool {
        self.check(lines);
        // SAFETY: the lines have all bits.
        unsafe { insert::<0>(lines_as_words_mut(lines), *self, hash) }
    }

    /// Returns whether all bits of a hash are set. Always inlined: a call takes as long as a quarter of
    /// the query of an absent key.
    #[inline(always)]
    pub(crate) fn contains(&self, lines: &[CacheLine], hash: u64) -> bool {
        self.check(lines);
        // SAFETY: the lines have all bits.
        unsafe { contains::<0>(lines_as_words(lines), *self, hash) }
    }

    /// Checks that all bits exist.
    #[inline(always)]
    pub(super) fn check(&self, lines: &[CacheLine]) {
        assert!(self.bits.div_ceil(512) <= lines.len() as u64, "bits outside the lines");
    }

    #[inline(always)]
    fn prefetch(&self, lines: &[CacheLine], hash: u64) {
        for_each(powers::<0>(*self), |power| {
            let position = scale(hash.wrapping_mul(power), self.bits);
            prefetch(lines, locate(position).0);
        });
    }

    /// Sets the bits of many hashes in turn. A result is true if that hash was new, also to the
    /// hashes before it in the batch.
    pub(crate) fn insert_batch(
        &self,
        lines: &mut [CacheLine],
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        self.check(lines);
        let insert = |lines: &mut [CacheLine], group: &[u64; GROUP]| {
            // SAFETY: the lines have all bits.
            unsafe { unrolled!(self.probes, insert_group(lines_as_words_mut(lines), *self, group)) }
        };
        if lines.len() < LARGE_FILTER {
            return in_groups(hashes, new, |group| insert(lines, group));
        }
        let prepare =
            |lines: &&mut [CacheLine], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| {
                *group = *hashes;
                hashes.iter().for_each(|&hash| self.prefetch(lines, hash));
            };
        let process = |lines: &mut &mut [CacheLine], group: &[u64; GROUP], new: &mut u8| {
            *new = insert(lines, group);
        };
        batch(lines, hashes, new, prepare, process, join);
    }

    /// Looks up many hashes.
    pub(crate) fn contains_batch(
        &self,
        lines: &[CacheLine],
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        if lines.len() >= LARGE_FILTER {
            return self.contains_large(lines, hashes, found);
        }
        self.check(lines);
        in_groups(hashes, found, |group| {
            // SAFETY: the lines have all bits.
            unsafe { unrolled!(self.probes, contains_group(lines_as_words(lines), *self, group)) }
        });
    }

    /// Looks up many hashes in a large filter, [`LOOKUPS`] of them interleaved. In its turn a lookup
    /// tests one bit and prefetches the next, or is replaced by the next hash. Every cache line is
    /// prefetched before it is accessed, and none in vain.
    pub(super) fn contains_large(
        &self,
        lines: &[CacheLine],
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        assert!(found.len() == hashes.words().len().div_ceil(64), "one word for 64 results");
        found.fill(0);
        let mut ahead = one_by_one(hashes).enumerate();
        let start = |(key, x)| {
            let lookup = Lookup { x, key, position: scale(x, self.bits), left: self.probes };
            prefetch(lines, locate(lookup.position).0);
            lookup
        };
        let mut lookups: Vec<Lookup> = ahead.by_ref().take(LOOKUPS).map(start).collect();
        let mut turn = 0;
        while !lookups.is_empty() {
            if turn >= lookups.len() {
                turn = 0;
            }
            let lookup = &mut lookups[turn];
            lookup.left -= 1;
            let set = is_set(lines, lookup.position);
            if set && lookup.left > 0 {
                lookup.x = lookup.x.wrapping_mul(STEP);
                lookup.position = scale(lookup.x, self.bits);
                prefetch(lines, locate(lookup.position).0);
            } else {
                found[lookup.key / 64] |= u64::from(set) << (lookup.key % 64);
                match ahead.next() {
                    Some(hash) => *lookup = start(hash),
                    None => _ = lookups.swap_remove(turn),
                }
            }
            turn += 1;
        }
    }
}

/// A key whose bits are being tested.
struct Lookup {
    /// The state of the generator.
    x: u64,
    /// The index of the key in the batch.
    key: usize,
    /// The next bit to test.
    position: u64,
    /// The number of bits that are not tested yet.
    left: u32,
}

/// Returns whether a bit is set.
#[inline(always)]
pub(crate) fn is_set(lines: &[CacheLine], position: u64) -> bool {
    let (line, word, bit) = locate(position);
    u64::from_le(lines[line].0[word]) & bit != 0
}
