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

use std::ops::{Deref, DerefMut, Range};

use super::batch::{GROUP, Hashes, Places, batch, each, join};
use super::{prefetch, scale};
use crate::store::Line;

/// 2⁶⁴ divided by the golden ratio, odd.
pub(crate) const MIX_LOW: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd constant of good spectrum for multiplication, from Pelle Evensen's rrmxmx.
pub(crate) const MIX_HIGH: u64 = 0x9fb2_1c65_1e98_df25;

/// The blocks of a filter and how a key marks them. `LANES` is 8 or 16.
#[derive(Clone, Copy, Debug)]
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

/// Aligned as lines are: vectors do not straddle two.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[repr(align(64))]
pub(super) struct Ones<const LANES: usize>([[[u64; LANES]; LANES]; 17]);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl<const LANES: usize> Ones<LANES> {
    /// Those of a key that begins at the lane `start`, which is taken modulo the number of lanes.
    #[inline(always)]
    pub(super) fn of(&self, probes: u32, start: u64) -> &[u64; LANES] {
        &self.row(probes)[start as usize % LANES]
    }

    /// Those of all starts.
    #[inline(always)]
    pub(super) fn row(&self, probes: u32) -> &[[u64; LANES]; LANES] {
        &self.0[probes as usize]
    }
}

impl<const LANES: usize> Rule<LANES> {
    /// Lines of a block.
    pub(super) const LINES: usize = LANES / 8;

    /// For all numbers of probes and all starts, a one for each lane that is marked.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) const ONES: &Ones<LANES> = &{
        let mut ones = [[[0; LANES]; LANES]; 17];
        let mut at = 0;
        while at < 17 * LANES * LANES {
            let (probes, start, lane) = (at / LANES / LANES, at / LANES % LANES, at % LANES);
            ones[probes][start][lane] = ((LANES + lane - start) % LANES < probes) as u64;
            at += 1;
        }
        Ones(ones)
    };

    /// The first line of a hash's block.
    #[inline(always)]
    pub(super) fn at(&self, hash: u64) -> usize {
        scale(hash, self.blocks) as usize * Self::LINES
    }

    /// Asks for the lines of a hash's block.
    #[inline(always)]
    pub(crate) fn prefetch(&self, lines: &[Line], hash: u64) {
        for line in self.lines_of(hash) {
            super::prefetch(lines, line);
        }
    }

    /// The lines of a hash's block, of all lines of the filter.
    #[inline(always)]
    pub(super) fn lines_of(&self, hash: u64) -> Range<usize> {
        let at = self.at(hash);
        at..at + Self::LINES
    }

    /// Sets the bits of a hash in its block; whether any of them was clear.
    #[inline]
    pub(super) fn insert(&self, block: &mut [Line], hash: u64) -> bool {
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

    /// Whether all bits of a hash are set in its block. Ends at the first clear one.
    #[inline]
    pub(super) fn contains(&self, block: &[Line], hash: u64) -> bool {
        let marks = Marks::<LANES>::of(hash);
        (0..self.probes).all(|probe| {
            let (lane, bit) = marks.probe(probe);
            u64::from_le(block[lane / 8].0[lane % 8]) & bit != 0
        })
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

/// Lines with blocks in them: all of a filter's, or a run of them.
pub(crate) struct Blocks<const LANES: usize, L> {
    pub(super) rule: Rule<LANES>,
    pub(super) lines: L,
    /// The number of the first block.
    pub(super) first: u64,
}

impl<const LANES: usize, L, D: Deref<Target = [L]>> Blocks<LANES, D> {
    /// The blocks from `first` on. To look for a hash whose block is not among them is a panic.
    pub(crate) fn new(rule: Rule<LANES>, lines: D, first: u64) -> Self {
        Self { rule, lines, first }
    }

    /// Where the blocks of hashes begin among the lines, which are asked for.
    #[inline(always)]
    fn prepare(&self, hashes: &[u64; GROUP], places: &mut Places) {
        let block = |hash| scale(hash, self.rule.blocks).wrapping_sub(self.first);
        places.hashes = *hashes;
        places.at = hashes.map(|hash| (block(hash) as usize).wrapping_mul(Rule::<LANES>::LINES));
        places.at.iter().for_each(|&at| self.prefetch(at));
    }

    /// Asks for the lines of a block.
    #[inline(always)]
    pub(super) fn prefetch(&self, at: usize) {
        (0..Rule::<LANES>::LINES).for_each(|line| prefetch(&self.lines, at.wrapping_add(line)));
    }
}

impl<const LANES: usize, L: Deref<Target = [Line]>> Blocks<LANES, L> {
    /// Looks for many hashes, at each with `contains`.
    #[inline(always)]
    pub(super) fn contains_batch(
        self,
        hashes: impl Hashes,
        found: &mut [u64],
        contains: impl Fn(&[Line], u64) -> bool,
    ) {
        let look = |blocks: &mut Self, places: &Places, found: &mut u8| {
            let keys = places.at.into_iter().zip(places.hashes);
            let block = |at: usize| at..at + Rule::<LANES>::LINES;
            *found = each(keys, |(at, hash)| contains(&blocks.lines[block(at)], hash));
        };
        batch(self, hashes, found, Self::prepare, look, join);
    }

    /// Sets the bits of many hashes in turn, of each with `insert`. An answer is yes if that hash
    /// was new, those before it in the batch included.
    #[inline(always)]
    pub(super) fn insert_batch(
        self,
        hashes: impl Hashes,
        new: &mut [u64],
        insert: impl Fn(&mut [Line], u64) -> bool,
    ) where
        L: DerefMut,
    {
        let look = |blocks: &mut Self, places: &Places, new: &mut u8| {
            let keys = places.at.into_iter().zip(places.hashes);
            let block = |at: usize| at..at + Rule::<LANES>::LINES;
            *new = each(keys, |(at, hash)| insert(&mut blocks.lines[block(at)], hash));
        };
        batch(self, hashes, new, Self::prepare, look, join);
    }
}
