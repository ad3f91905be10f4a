//! The blocked layout: all bits of a key are in one block of 8 or 16 lanes.
//!
//! For a hash h, N blocks, L lanes and k probes:
//!
//! * block = ⌊h · N / 2⁶⁴⌋, which is monotone in h;
//! * g = h · [`MIX_LOW`] and, for lanes 8 to 15, g' = h · [`MIX_HIGH`] (mod 2⁶⁴);
//! * lane l uses bit (g >> (16 + 6·(l mod 8))) mod 64, of g or of g';
//! * the key sets the bits of lanes r, r+1, …, r+k-1 (mod L), where r = (g >> 12) mod L.
//!
//! The bit depends on the lane, not on the number of the probe, so a vector computes all lanes with
//! fixed shifts and masks out L-k of them. With k = L every lane is used and r has no effect.
//!
//! The top bits of h select the block; multiplication by an odd constant moves the entropy of the
//! other bits to the top of g. Fields are taken from the top 52 bits, which depend on all bits
//! below.
//!
//! Cost: one or two cache lines per key.

use core::ops::{Deref, DerefMut, Range};

use super::batch::{
    GROUP, HashSource, PREFETCH_EARLY_FROM, PREFETCH_FROM, PreparedGroup, batch, for_each_hash,
    in_groups, join, test_each,
};
use super::primitives::{prefetch, prefetch_at, scale};
use crate::store::CacheLine;

/// 2⁶⁴ divided by the golden ratio, odd.
pub(crate) const MIX_LOW: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd constant with a good spectrum for multiplication, from Pelle Evensen's rrmxmx.
pub(crate) const MIX_HIGH: u64 = 0x9fb2_1c65_1e98_df25;

/// Evaluates an expression with a constant: whether a key sets a bit in every lane.
macro_rules! by_lanes {
    ($params:expr, $ALL:ident => $call:expr) => {
        if $params.has_all_lanes() {
            const $ALL: bool = true;
            $call
        } else {
            const $ALL: bool = false;
            $call
        }
    };
}
pub(super) use by_lanes;

/// The parameters of a blocked filter. `LANES`, the lanes of a block, is 8 or 16.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockParams<const LANES: usize> {
    pub(crate) blocks: u64,
    pub(crate) probes: u32,
}

/// The lanes and bits of one key.
pub(super) struct KeyProbes<const LANES: usize> {
    low: u64,
    high: u64,
    start: usize,
}

impl<const LANES: usize> KeyProbes<LANES> {
    #[inline(always)]
    pub(super) fn new(hash: u64) -> Self {
        let low = hash.wrapping_mul(MIX_LOW);
        let high = if LANES == 16 { hash.wrapping_mul(MIX_HIGH) } else { 0 };
        Self { low, high, start: (low >> 12) as usize % LANES }
    }

    /// Returns the lane of a probe, and the mask of its bit.
    #[inline(always)]
    pub(super) fn get(&self, probe: u32) -> (usize, u64) {
        let lane = (self.start + probe as usize) % LANES;
        let fields = if lane < 8 { self.low } else { self.high };
        (lane, 1 << (fields >> (16 + 6 * (lane % 8)) & 63))
    }
}

impl<const LANES: usize> BlockParams<LANES> {
    /// Returns the index of the first cache line of a hash's block, which exists. The check does not depend
    /// on the hash, so that compilers move it out of loops.
    ///
    /// # Panics
    /// If there are no blocks, or fewer lines than those of all blocks.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn checked_line(&self, lines: &[CacheLine], hash: u64) -> usize {
        let available = (lines.len() / Self::LINES) as u64;
        // With 0 blocks the subtraction wraps, so this is one comparison for both.
        assert!(self.blocks.wrapping_sub(1) < available, "fewer lines than blocks");
        self.first_line(hash)
    }

    /// Cache lines of a block.
    pub(super) const LINES: usize = LANES / 8;

    /// Whether a key sets a bit in every lane.
    #[inline(always)]
    pub(super) fn has_all_lanes(&self) -> bool {
        self.probes as usize == LANES
    }

    /// Returns the index of a hash's block.
    pub(crate) fn block(&self, hash: u64) -> u64 {
        scale(hash, self.blocks)
    }

    /// Returns the positions of a hash, each in another lane of its block.
    #[inline(always)]
    pub(crate) fn positions(&self, hash: u64) -> impl Iterator<Item = u64> + use<LANES> {
        let key = KeyProbes::<LANES>::new(hash);
        let first = scale(hash, self.blocks) * LANES as u64;
        (0..self.probes).map(move |probe| {
            let (lane, bit) = key.get(probe);
            (first + lane as u64) * 64 + u64::from(bit.trailing_zeros())
        })
    }

    /// Returns the index of the first cache line of a hash's block.
    #[inline(always)]
    pub(super) fn first_line(&self, hash: u64) -> usize {
        scale(hash, self.blocks) as usize * Self::LINES
    }

    /// Prefetches the cache lines of a hash's block.
    #[inline(always)]
    pub(crate) fn prefetch(&self, lines: &[CacheLine], hash: u64) {
        for line in self.line_range(hash) {
            prefetch(lines, line);
        }
    }

    /// Returns the indices of the cache lines of a hash's block.
    #[inline(always)]
    pub(super) fn line_range(&self, hash: u64) -> Range<usize> {
        let at = self.first_line(hash);
        at..at + Self::LINES
    }

    /// Sets the bits of a hash in its block. Returns whether any of them was clear.
    #[inline]
    pub(super) fn insert(&self, block: &mut [CacheLine], hash: u64) -> bool {
        by_lanes!(self, ALL => self.insert_lanes::<ALL>(block, hash))
    }

    /// Returns whether all bits of a hash are set in its block.
    #[inline]
    pub(super) fn contains(&self, block: &[CacheLine], hash: u64) -> bool {
        by_lanes!(self, ALL => self.contains_lanes::<ALL>(block, hash))
    }

    /// Visits all lanes, of which a mask selects those of the key, so that every shift is a constant
    /// and nothing branches on bits: a mispredicted branch costs more than the lanes after it.
    #[inline(always)]
    fn insert_lanes<const ALL: bool>(&self, block: &mut [CacheLine], hash: u64) -> bool {
        let key = KeyProbes::<LANES>::new(hash);
        let selected = self.lanes_from(key.start);
        let mut clear = 0;
        for (at, line) in block.iter_mut().enumerate().take(Self::LINES) {
            let fields = if at == 0 { key.low } else { key.high };
            for lane in 0..8 {
                let one = if ALL { 1 } else { selected >> (8 * at + lane) & 1 };
                let bit = one << (fields >> (16 + 6 * lane) & 63);
                let old = u64::from_le(line.0[lane]);
                let new = old | bit;
                clear |= new ^ old;
                line.0[lane] = new.to_le();
            }
        }
        clear != 0
    }

    /// Same as [`insert_lanes`](Self::insert_lanes) for a query.
    #[inline(always)]
    fn contains_lanes<const ALL: bool>(&self, block: &[CacheLine], hash: u64) -> bool {
        let key = KeyProbes::<LANES>::new(hash);
        let selected = self.lanes_from(key.start);
        // Only the lowest bit counts.
        let mut clear = 0;
        for (at, line) in block.iter().enumerate().take(Self::LINES) {
            let fields = if at == 0 { key.low } else { key.high };
            for lane in 0..8 {
                let word = !u64::from_le(line.0[lane]) >> (fields >> (16 + 6 * lane) & 63);
                clear |= if ALL { word } else { word & selected >> (8 * at + lane) };
            }
        }
        clear & 1 == 0
    }

    /// Returns the lanes of a key that starts at a lane, as bits.
    #[inline(always)]
    fn lanes_from(&self, start: usize) -> u64 {
        let window = (1 << self.probes) - 1;
        (window << LANES | window) >> (LANES - start)
    }

    /// Returns the false-positive rate for the current bits: the mean over all blocks and starts of
    /// the product of the fill ratios of the lanes.
    pub(crate) fn fpr_from_bits(&self, lines: &[CacheLine]) -> f64 {
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

/// Consecutive blocks of a filter, or all of them, with their cache lines.
pub(crate) struct BlockRange<const LANES: usize, L> {
    pub(super) params: BlockParams<LANES>,
    pub(super) lines: L,
    /// The index of the first block in the filter.
    pub(super) first: u64,
}

impl<const LANES: usize, L, D: Deref<Target = [L]>> BlockRange<LANES, D> {
    /// Returns the blocks from `first` on. Lookups of hashes of other blocks panic.
    pub(crate) fn new(params: BlockParams<LANES>, lines: D, first: u64) -> Self {
        Self { params, lines, first }
    }

    /// Computes the cache lines of hashes and prefetches them.
    #[inline(always)]
    fn prepare(&self, hashes: &[u64; GROUP], group: &mut PreparedGroup) {
        let block = |hash| scale(hash, self.params.blocks).wrapping_sub(self.first);
        let first_line = |hash| (block(hash) as usize).wrapping_mul(BlockParams::<LANES>::LINES);
        group.hashes = *hashes;
        group.first_lines = hashes.map(first_line);
        group.first_lines.iter().for_each(|&at| self.prefetch(at));
    }

    /// Prefetches the block whose first cache line is `at`.
    #[inline(always)]
    pub(super) fn prefetch(&self, at: usize) {
        (0..BlockParams::<LANES>::LINES)
            .for_each(|line| prefetch(&self.lines, at.wrapping_add(line)));
    }
}

impl<const LANES: usize, L: Deref<Target = [CacheLine]>> BlockRange<LANES, L> {
    /// Whether the filter has less than this number of lines. The size of the whole filter decides: a
    /// range of its blocks is no closer than the rest.
    #[inline(always)]
    pub(super) fn is_below(&self, lines: usize) -> bool {
        self.params.blocks < (lines / BlockParams::<LANES>::LINES) as u64
    }

    /// Returns the index of the first cache line of a hash's block, which exists.
    ///
    /// # Panics
    /// If the block is not in the range.
    #[inline(always)]
    fn first_line(&self, hash: u64) -> usize {
        let block = scale(hash, self.params.blocks).wrapping_sub(self.first);
        let available = self.lines.len() / BlockParams::<LANES>::LINES;
        assert!(block < available as u64, "block outside the range");
        block as usize * BlockParams::<LANES>::LINES
    }

    /// Returns the block of a hash.
    ///
    /// # Panics
    /// If it is not in the range.
    #[inline(always)]
    pub(super) fn block(&self, hash: u64) -> &[CacheLine] {
        let at = self.first_line(hash);
        // SAFETY: `first_line` has checked that all lines of the block exist.
        unsafe { self.lines.get_unchecked(at..at + BlockParams::<LANES>::LINES) }
    }

    /// Same as [`block`](Self::block), to change it.
    #[inline(always)]
    pub(super) fn block_mut(&mut self, hash: u64) -> &mut [CacheLine]
    where
        L: DerefMut,
    {
        let at = self.first_line(hash);
        // SAFETY: as in `block`.
        unsafe { self.lines.get_unchecked_mut(at..at + BlockParams::<LANES>::LINES) }
    }

    /// Sets the bits of many hashes with `set`. Prefetches a few keys ahead, which is enough for a
    /// filter that fits a cache. False, and nothing is done, if it does not.
    #[inline(always)]
    pub(super) fn set_small(
        mut self,
        hashes: impl HashSource,
        set: impl Fn(&mut [CacheLine], u64),
    ) -> bool
    where
        L: DerefMut,
    {
        let params = self.params;
        if !self.is_below(PREFETCH_FROM) {
            return false;
        }
        if self.is_below(PREFETCH_EARLY_FROM) {
            for_each_hash(hashes, |_| (), |hash| set(self.block_mut(hash), hash));
            return true;
        }
        let (first, start) = (self.first, self.lines.as_ptr());
        let prefetch_block = |hash| {
            let block = scale(hash, params.blocks).wrapping_sub(first) as usize;
            let at = block.wrapping_mul(BlockParams::<LANES>::LINES);
            (0..BlockParams::<LANES>::LINES)
                .for_each(|line| prefetch_at(start.wrapping_add(at.wrapping_add(line))));
        };
        for_each_hash(hashes, prefetch_block, |hash| set(self.block_mut(hash), hash));
        true
    }

    /// Looks up many hashes with `contains`.
    #[inline(always)]
    pub(super) fn contains_batch(
        self,
        hashes: impl HashSource,
        found: &mut [u64],
        contains: impl Fn(&[CacheLine], u64) -> bool,
    ) {
        if self.is_below(PREFETCH_EARLY_FROM) {
            return in_groups(hashes, found, |group| {
                test_each(*group, |hash| contains(self.block(hash), hash))
            });
        }
        let process = |blocks: &mut Self, group: &PreparedGroup, found: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            let block = |at: usize| at..at + BlockParams::<LANES>::LINES;
            *found = test_each(keys, |(at, hash)| contains(&blocks.lines[block(at)], hash));
        };
        batch(self, hashes, found, Self::prepare, process, join);
    }

    /// Sets the bits of many hashes in turn with `insert`. A result is true if that hash was new,
    /// also to the hashes before it in the batch.
    #[inline(always)]
    pub(super) fn insert_batch(
        mut self,
        hashes: impl HashSource,
        new: &mut [u64],
        insert: impl Fn(&mut [CacheLine], u64) -> bool,
    ) where
        L: DerefMut,
    {
        if self.is_below(PREFETCH_EARLY_FROM) {
            return in_groups(hashes, new, |group| {
                test_each(*group, |hash| insert(self.block_mut(hash), hash))
            });
        }
        let process = |blocks: &mut Self, group: &PreparedGroup, new: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            let block = |at: usize| at..at + BlockParams::<LANES>::LINES;
            *new = test_each(keys, |(at, hash)| insert(&mut blocks.lines[block(at)], hash));
        };
        batch(self, hashes, new, Self::prepare, process, join);
    }
}
