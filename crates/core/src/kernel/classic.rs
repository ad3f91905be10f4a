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
//! Cost: up to k cache lines a key; a query of an absent key ends after two on average, or four in
//! a filter that is near.

use super::batch::{GROUP, Hashes, batch, each, join, one_by_one};
use super::{prefetch, scale};
use crate::store::Line;

/// Multiplier of a good 64-bit multiplicative congruential generator.
pub(crate) const STEP: u64 = 0xf135_7aea_2e62_a9c5;

/// From so many lines (8 MiB) on, waiting for lines takes longer than all else.
pub(super) const FAR: usize = (8 << 20) / Line::BYTES;
/// Bits of a key that are looked at in a near filter without asking whether to go on: looking is
/// cheaper than a branch that nothing can foresee, and of sixteen absent keys one is left.
const BLINDLY: usize = 4;
/// Keys that are looked for at the same time: enough to keep a core's line-fill buffers busy.
const SEARCHES: usize = 32;

/// A key sets at most so many.
pub(super) const MOST_PROBES: usize = 64;

/// The bits of a filter and how many a key sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) bits: u64,
    pub(crate) probes: u32,
}

/// Where a bit is: line, word, mask.
#[inline(always)]
pub(super) fn place(bit: u64) -> (usize, usize, u64) {
    ((bit / 512) as usize, (bit / 64 % 8) as usize, 1 << (bit % 64))
}

impl Rule {
    #[inline(always)]
    pub(super) fn positions(&self, hash: u64) -> impl Iterator<Item = u64> + use<> {
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

    /// Whether all bits of a hash are set. Ends at the first clear one, but in a filter that is near
    /// not before [`BLINDLY`] looks.
    #[inline]
    pub(crate) fn contains(&self, lines: &[Line], hash: u64) -> bool {
        let mut positions = self.positions(hash);
        if lines.len() < FAR {
            let first = positions.by_ref().take(BLINDLY);
            if !first.fold(true, |all, position| all & is_set(lines, position)) {
                return false;
            }
        }
        positions.all(|position| is_set(lines, position))
    }

    #[inline(always)]
    fn prefetch(&self, lines: &[Line], hash: u64) {
        self.positions(hash).for_each(|position| prefetch(lines, place(position).0));
    }

    /// Sets the bits of many hashes in turn: an answer is yes if that hash was new, those before
    /// it in the batch included.
    pub(crate) fn insert_batch(&self, lines: &mut [Line], hashes: impl Hashes, new: &mut [u64]) {
        let far = lines.len() >= FAR;
        let prepare = |lines: &&mut [Line], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| {
            *group = *hashes;
            if far {
                hashes.iter().for_each(|&hash| self.prefetch(lines, hash));
            }
        };
        let look = |lines: &mut &mut [Line], group: &[u64; GROUP], new: &mut u8| {
            *new = each(*group, |hash| self.insert(lines, hash));
        };
        batch(lines, hashes, new, prepare, look, join);
    }

    /// Looks for many hashes.
    pub(crate) fn contains_batch(&self, lines: &[Line], hashes: impl Hashes, found: &mut [u64]) {
        if lines.len() >= FAR {
            return self.contains_far(lines, hashes, found);
        }
        let prepare =
            |_: &&[Line], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| *group = *hashes;
        let look = |lines: &mut &[Line], group: &[u64; GROUP], found: &mut u8| {
            *found = each(*group, |hash| self.contains(lines, hash));
        };
        batch(lines, hashes, found, prepare, look, join);
    }

    /// Looks for many hashes, of which [`SEARCHES`] are on their way at any time. At each turn a
    /// search looks at one bit and asks for the next, or makes room for the next hash: no line is
    /// asked for in vain, and none waited for.
    fn contains_far(&self, lines: &[Line], hashes: impl Hashes, found: &mut [u64]) {
        assert!(found.len() == hashes.words().len().div_ceil(64), "a word for 64 answers");
        found.fill(0);
        let mut ahead = one_by_one(hashes).enumerate();
        let begin = |(key, x)| {
            let search = Search { x, key, position: scale(x, self.bits), left: self.probes };
            prefetch(lines, place(search.position).0);
            search
        };
        let mut searches: Vec<Search> = ahead.by_ref().take(SEARCHES).map(begin).collect();
        let mut turn = 0;
        while !searches.is_empty() {
            if turn >= searches.len() {
                turn = 0;
            }
            let search = &mut searches[turn];
            search.left -= 1;
            let set = is_set(lines, search.position);
            if set && search.left > 0 {
                search.x = search.x.wrapping_mul(STEP);
                search.position = scale(search.x, self.bits);
                prefetch(lines, place(search.position).0);
            } else {
                found[search.key / 64] |= u64::from(set) << (search.key % 64);
                match ahead.next() {
                    Some(hash) => *search = begin(hash),
                    None => _ = searches.swap_remove(turn),
                }
            }
            turn += 1;
        }
    }
}

/// A key that is looked for.
struct Search {
    /// State of its generator.
    x: u64,
    /// Its place in the batch.
    key: usize,
    /// The bit to be looked at next.
    position: u64,
    /// Bits that have not been looked at.
    left: u32,
}

/// Whether a bit is set.
#[inline(always)]
fn is_set(lines: &[Line], position: u64) -> bool {
    let (line, word, bit) = place(position);
    u64::from_le(lines[line].0[word]) & bit != 0
}
