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
//! Cost: up to k cache lines per key. A query of an absent key ends after two positions on average,
//! or four in a small filter.

use super::batch::{GROUP, HashSource, batch, join, one_by_one, test_each};
use super::primitives::{prefetch, scale};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::store::CacheLine;

/// The multiplier of a 64-bit multiplicative congruential generator.
pub(crate) const STEP: u64 = 0xf135_7aea_2e62_a9c5;

/// Minimum number of cache lines (8 MiB) of a large filter, for which memory latency dominates.
pub(super) const LARGE_FILTER: usize = (8 << 20) / CacheLine::BYTES;
/// Bits that are tested without a branch in small filters: a test is cheaper than a mispredicted
/// branch, and one of sixteen absent keys remains.
const BRANCHLESS_TESTS: usize = 4;
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
        let mut clear = 0;
        for position in self.positions(hash) {
            let (line, word, bit) = locate(position);
            let word = &mut lines[line].0[word];
            clear |= bit & !u64::from_le(*word);
            *word |= bit.to_le();
        }
        clear != 0
    }

    /// Returns whether all bits of a hash are set. Stops at the first clear bit, but in a small
    /// filter not before [`BRANCHLESS_TESTS`] tests.
    #[inline]
    pub(crate) fn contains(&self, lines: &[CacheLine], hash: u64) -> bool {
        let mut positions = self.positions(hash);
        if lines.len() < LARGE_FILTER {
            let first = positions.by_ref().take(BRANCHLESS_TESTS);
            if !first.fold(true, |all, position| all & is_set(lines, position)) {
                return false;
            }
        }
        positions.all(|position| is_set(lines, position))
    }

    #[inline(always)]
    fn prefetch(&self, lines: &[CacheLine], hash: u64) {
        self.positions(hash).for_each(|position| prefetch(lines, locate(position).0));
    }

    /// Sets the bits of many hashes in turn. A result is true if that hash was new, also to the
    /// hashes before it in the batch.
    pub(crate) fn insert_batch(
        &self,
        lines: &mut [CacheLine],
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        let large = lines.len() >= LARGE_FILTER;
        let prepare =
            |lines: &&mut [CacheLine], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| {
                *group = *hashes;
                if large {
                    hashes.iter().for_each(|&hash| self.prefetch(lines, hash));
                }
            };
        let process = |lines: &mut &mut [CacheLine], group: &[u64; GROUP], new: &mut u8| {
            *new = test_each(*group, |hash| self.insert(lines, hash));
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
        let prepare =
            |_: &&[CacheLine], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| *group = *hashes;
        let process = |lines: &mut &[CacheLine], group: &[u64; GROUP], found: &mut u8| {
            *found = test_each(*group, |hash| self.contains(lines, hash));
        };
        batch(lines, hashes, found, prepare, process, join);
    }

    /// Looks up many hashes in a large filter, [`LOOKUPS`] of them interleaved. In its turn a lookup
    /// tests one bit and prefetches the next, or is replaced by the next hash. Every cache line is
    /// prefetched before it is accessed, and none in vain.
    fn contains_large(&self, lines: &[CacheLine], hashes: impl HashSource, found: &mut [u64]) {
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
