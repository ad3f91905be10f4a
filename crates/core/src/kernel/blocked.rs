//! The blocked layout: all bits of a key in one block of 8 or 16 lanes.
//!
//! For a hash h, N blocks, L lanes and k probes:
//!
//! * block = ⌊h · N / 2⁶⁴⌋, which grows with h;
//! * g = h · [`MIX_LOW`] and, for lanes 8 to 15, g' = h · [`MIX_HIGH`] (mod 2⁶⁴);
//! * lane l takes bit (g >> (16 + 6·(l mod 8))) mod 64, of g or of g';
//! * the key sets the bits of lanes r, r+1, …, r+k-1 (mod L), where r = (g >> 12) mod L.
//!
//! The bit belongs to the lane, not to the number of the probe: a vector computes all lanes with
//! fixed shifts and masks out L-k of them. With k = L every lane is used and r is idle.
//!
//! The top bits of h choose the block and are spent; multiplying by an odd constant brings the
//! rest to the top of g. Fields come from the top 52 bits, which depend on all bits below.
//!
//! Cost: one or two cache lines a key.

use std::ops::{Deref, DerefMut};

use super::{AHEAD, batch, prefetch, scale};
use crate::answers::Answers;
use crate::store::Line;

/// 2⁶⁴ divided by the golden ratio, odd.
pub(crate) const MIX_LOW: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd constant of good spectrum for multiplication, from Pelle Evensen's rrmxmx.
pub(crate) const MIX_HIGH: u64 = 0x9fb2_1c65_1e98_df25;

/// The blocks of a filter and how a key marks them. `LANES` is 8 or 16.
#[derive(Clone, Copy)]
pub(crate) struct Rule<const LANES: usize> {
    pub(crate) blocks: u64,
    pub(crate) probes: u32,
}

/// The lanes and bits of one key.
pub(super) struct Marks<const LANES: usize> {
    low: u64,
    high: u64,
    start: usize,
}

impl<const LANES: usize> Marks<LANES> {
    #[inline(always)]
    pub(super) fn of(hash: u64) -> Self {
        let low = hash.wrapping_mul(MIX_LOW);
        let high = if LANES == 16 { hash.wrapping_mul(MIX_HIGH) } else { 0 };
        Self { low, high, start: (low >> 12) as usize % LANES }
    }

    /// The lane of a probe, and the mask of its bit.
    #[inline(always)]
    pub(super) fn probe(&self, probe: u32) -> (usize, u64) {
        let lane = (self.start + probe as usize) % LANES;
        let fields = if lane < 8 { self.low } else { self.high };
        (lane, 1 << (fields >> (16 + 6 * (lane % 8)) & 63))
    }
}

impl<const LANES: usize> Rule<LANES> {
    pub(super) const LINES: usize = LANES / 8;

    /// The first line of a hash's block.
    #[inline(always)]
    pub(super) fn at(&self, hash: u64) -> usize {
        scale(hash, self.blocks) as usize * Self::LINES
    }

    /// Sets the bits of a hash; whether any of them was clear.
    #[inline]
    pub(crate) fn insert(&self, lines: &mut [Line], hash: u64) -> bool {
        let at = self.at(hash);
        let block = &mut lines[at..at + Self::LINES];
        let marks = Marks::<LANES>::of(hash);
        let mut clear = 0;
        for probe in 0..self.probes {
            let (lane, bit) = marks.probe(probe);
            let word = &mut block[lane / 8].0[lane % 8];
            clear |= bit & !u64::from_le(*word);
            *word |= bit.to_le();
        }
        clear != 0
    }

    /// Whether all bits of a hash are set. Ends at the first clear one.
    #[inline]
    pub(crate) fn contains(&self, lines: &[Line], hash: u64) -> bool {
        let at = self.at(hash);
        let block = &lines[at..at + Self::LINES];
        let marks = Marks::<LANES>::of(hash);
        (0..self.probes).all(|probe| {
            let (lane, bit) = marks.probe(probe);
            u64::from_le(block[lane / 8].0[lane % 8]) & bit != 0
        })
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, lines: &[Line], hash: u64) {
        let at = self.at(hash);
        (0..Self::LINES).for_each(|line| prefetch(lines, at + line));
    }

    /// Sets the bits of many hashes in turn: an answer is yes if that hash was new, those before
    /// it in the batch included.
    pub(super) fn insert_batch(&self, lines: &mut [Line], hashes: &[u64], new: &mut Answers) {
        let ask = |lines: &&mut [Line], hash| self.prefetch(lines, hash);
        batch(lines, hashes, AHEAD, new, ask, |lines, hash| self.insert(lines, hash));
    }

    /// Looks for many hashes.
    pub(super) fn contains_batch(&self, lines: &[Line], hashes: &[u64], found: &mut Answers) {
        let ask = |lines: &&[Line], hash| self.prefetch(lines, hash);
        batch(lines, hashes, AHEAD, found, ask, |lines, hash| self.contains(lines, hash));
    }

    /// The false-positive rate that the bits as they are now give: for each block the mean over
    /// all starts of the product of its lanes' fill, and the mean of that over all blocks.
    pub(crate) fn rate_now(&self, lines: &[Line]) -> f64 {
        let mut sum = 0.0;
        for block in lines.chunks_exact(Self::LINES) {
            let words = block.iter().flat_map(|line| line.0);
            let mut fill = [0.0; LANES];
            for (fill, word) in fill.iter_mut().zip(words) {
                *fill = f64::from(word.count_ones()) / 64.0;
            }
            for start in 0..LANES {
                let lane = |probe| fill[(start + probe) % LANES];
                sum += (0..self.probes as usize).map(lane).product::<f64>();
            }
        }
        sum / (self.blocks as f64 * LANES as f64)
    }
}

/// Lines that hold all blocks of a rule, checked once: the vector kernels look into them without
/// asking again.
pub(super) struct Blocks<'a, const LANES: usize, L> {
    rule: &'a Rule<LANES>,
    lines: L,
}

impl<'a, const LANES: usize, L: Deref<Target = [Line]>> Blocks<'a, LANES, L> {
    /// # Panics
    /// If there are fewer lines than the blocks need, or no block.
    pub(super) fn new(rule: &'a Rule<LANES>, lines: L) -> Self {
        let there = (lines.len() / Rule::<LANES>::LINES) as u64;
        assert!((1..=there).contains(&rule.blocks), "{} blocks, lines for {there}", rule.blocks);
        Self { rule, lines }
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        self.rule.prefetch(&self.lines, hash);
    }

    /// The block of a hash.
    #[inline(always)]
    pub(super) fn of(&self, hash: u64) -> &[Line] {
        let at = self.rule.at(hash);
        // SAFETY: `scale` is below `blocks`, which is above 0, and so many blocks are there.
        unsafe { self.lines.get_unchecked(at..at + Rule::<LANES>::LINES) }
    }

    /// The block of a hash, to be changed.
    #[inline(always)]
    pub(super) fn of_mut(&mut self, hash: u64) -> &mut [Line]
    where
        L: DerefMut,
    {
        let at = self.rule.at(hash);
        // SAFETY: as in `of`.
        unsafe { self.lines.get_unchecked_mut(at..at + Rule::<LANES>::LINES) }
    }
}
