//! The classic layout: k positions anywhere in m bits.
//!
//! Position i is ⌊x · m / 2⁶⁴⌋ with x₀ = h and xᵢ₊₁ = xᵢ · [`STEP`] (mod 2⁶⁴). Plain double
//! hashing (x + i·d) would be simpler and is not good enough: two keys then share all positions
//! as soon as they share start and stride, with a chance of about 2n/m², which at n = 100 and
//! ε = 10⁻⁵ is three times the rate promised. A multiplicative generator has no stride; its top
//! bits, the ones used, are its good ones. Source: Steele & Vigna 2021 for the multiplier;
//! Boost.Bloom for the idea.
//!
//! Bit p is bit p mod 8 of byte ⌊p/8⌋, counted from the least significant.
//!
//! Cost: up to k cache lines a key; a query of an absent key ends after two on average.

use super::batch::{GROUP, Hashes, batch, each, join};
use super::{prefetch, scale};
use crate::store::Line;

/// Multiplier of a good 64-bit multiplicative congruential generator.
pub(crate) const STEP: u64 = 0xf135_7aea_2e62_a9c5;

/// The bits of a filter and how many a key sets.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) bits: u64,
    pub(crate) probes: u32,
}

/// Where a bit is: line, word, mask.
#[inline(always)]
fn place(bit: u64) -> (usize, usize, u64) {
    ((bit / 512) as usize, (bit / 64 % 8) as usize, 1 << (bit % 64))
}

impl Rule {
    #[inline(always)]
    fn positions(&self, hash: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = self.bits;
        let steps = std::iter::successors(Some(hash), |x| Some(x.wrapping_mul(STEP)));
        steps.take(self.probes as usize).map(move |x| scale(x, bits))
    }

    /// Sets the bits of a hash; whether any of them was clear.
    #[inline]
    pub(crate) fn insert(&self, lines: &mut [Line], hash: u64) -> bool {
        let mut clear = 0;
        for position in self.positions(hash) {
            let (line, word, bit) = place(position);
            let word = &mut lines[line].0[word];
            clear |= bit & !u64::from_le(*word);
            *word |= bit.to_le();
        }
        clear != 0
    }

    /// Whether all bits of a hash are set. Ends at the first clear one.
    #[inline]
    pub(crate) fn contains(&self, lines: &[Line], hash: u64) -> bool {
        self.positions(hash).all(|position| {
            let (line, word, bit) = place(position);
            u64::from_le(lines[line].0[word]) & bit != 0
        })
    }

    #[inline(always)]
    fn prefetch(&self, lines: &[Line], hash: u64, most: usize) {
        for position in self.positions(hash).take(most) {
            prefetch(lines, place(position).0);
        }
    }

    /// Sets the bits of many hashes in turn: an answer is yes if that hash was new, those before
    /// it in the batch included.
    pub(crate) fn insert_batch(&self, lines: &mut [Line], hashes: impl Hashes, new: &mut [u64]) {
        let prepare = |lines: &&mut [Line], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| {
            *group = *hashes;
            hashes.iter().for_each(|&hash| self.prefetch(lines, hash, usize::MAX));
        };
        let look = |lines: &mut &mut [Line], group: &[u64; GROUP], new: &mut u8| {
            *new = each(*group, |hash| self.insert(lines, hash));
        };
        batch(lines, hashes, new, prepare, look, join);
    }

    /// Looks for many hashes. The first two positions, which settle most absent keys, are asked
    /// for ahead.
    pub(crate) fn contains_batch(&self, lines: &[Line], hashes: impl Hashes, found: &mut [u64]) {
        let prepare = |lines: &&[Line], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| {
            *group = *hashes;
            hashes.iter().for_each(|&hash| self.prefetch(lines, hash, 2));
        };
        let look = |lines: &mut &[Line], group: &[u64; GROUP], found: &mut u8| {
            *found = each(*group, |hash| self.contains(lines, hash));
        };
        batch(lines, hashes, found, prepare, look, join);
    }
}
