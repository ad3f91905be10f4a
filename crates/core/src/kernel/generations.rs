//! The generations of a windowed filter, interleaved: the blocks of a key in all generations are
//! adjacent, so that a query reads consecutive cache lines.
//!
//! Block b of generation g, of G generations, is block b·G + g of the lines. A key has the same bits
//! in each generation, those of [`BlockParams`]; it is present if any generation has all of them.
//!
//! Cost: G times the cache lines of a block, of which the processor prefetches the later ones by
//! itself.

use core::ops::{Deref, DerefMut};

use super::batch::{GROUP, HashSource, PreparedGroup, batch, join, test_each};
use super::blocked::BlockParams;
use super::cpu::KernelHandle;
use super::primitives::{prefetch, scale};
use crate::store::CacheLine;

/// The cache lines of all generations.
pub(crate) struct GenerationRing<const LANES: usize, L> {
    pub(super) kernel: KernelHandle,
    /// The parameters of each generation.
    pub(super) params: BlockParams<LANES>,
    pub(super) generations: usize,
    /// The index of the newest generation.
    pub(super) newest: usize,
    pub(super) lines: L,
    /// Number of insertions that were new to the newest generation.
    pub(super) new_in_newest: u64,
}

impl<const LANES: usize, L: Deref<Target = [CacheLine]>> GenerationRing<LANES, L> {
    /// Returns the ring of `generations` filters with these parameters.
    ///
    /// # Panics
    /// If `lines` does not have their length, or `newest` is not less than `generations`.
    pub(crate) fn new(
        kernel: KernelHandle,
        params: BlockParams<LANES>,
        generations: usize,
        newest: usize,
        lines: L,
    ) -> Self {
        let ring = Self { kernel, params, generations, newest, lines, new_in_newest: 0 };
        let expected = params.blocks as usize * ring.stride();
        assert!(ring.lines.len() == expected && newest < generations, "expected {expected} lines");
        ring
    }

    /// Returns the number of cache lines of one block in all generations.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        self.generations * BlockParams::<LANES>::LINES
    }

    /// Returns the index of the first cache line of a hash.
    #[inline(always)]
    pub(super) fn first_line(&self, hash: u64) -> usize {
        scale(hash, self.params.blocks) as usize * self.stride()
    }

    /// Returns the block of each generation, from cache line `at`.
    #[inline(always)]
    pub(super) fn blocks(&self, at: usize) -> impl Iterator<Item = &[CacheLine]> {
        self.lines[at..at + self.stride()].chunks_exact(BlockParams::<LANES>::LINES)
    }

    /// Returns the block of the newest generation among those from cache line `at`.
    #[inline(always)]
    pub(super) fn newest_block(&mut self, at: usize) -> &mut [CacheLine]
    where
        L: DerefMut,
    {
        let first = at + self.newest * BlockParams::<LANES>::LINES;
        &mut self.lines[first..first + BlockParams::<LANES>::LINES]
    }

    /// Prefetches the blocks of all generations, from cache line `at`.
    #[inline(always)]
    pub(super) fn prefetch(&self, at: usize) {
        (at..at + self.stride()).for_each(|line| prefetch(&self.lines, line));
    }

    #[inline(always)]
    fn prepare(&self, hashes: &[u64; GROUP], group: &mut PreparedGroup) {
        group.hashes = *hashes;
        group.first_lines = hashes.map(|hash| self.first_line(hash));
        group.first_lines.iter().for_each(|&at| self.prefetch(at));
    }

    /// Returns the parameters of a single block.
    #[inline(always)]
    fn single_block(&self) -> BlockParams<LANES> {
        BlockParams { blocks: 1, probes: self.params.probes }
    }

    /// Returns whether a block contains a hash.
    #[inline(always)]
    fn block_contains(&self, block: &[CacheLine], hash: u64) -> bool {
        self.kernel.contains(self.single_block(), block, hash)
    }

    #[inline(always)]
    pub(super) fn contains_at(&self, at: usize, hash: u64) -> bool {
        self.blocks(at).any(|block| self.block_contains(block, hash))
    }

    #[inline(always)]
    fn live_contain_at(&self, live: u16, at: usize, hash: u64) -> bool {
        let mut blocks = self.blocks(at).enumerate().filter(|(slot, _)| live >> slot & 1 == 1);
        blocks.any(|(_, block)| self.block_contains(block, hash))
    }

    #[inline(always)]
    pub(super) fn insert_at(&mut self, if_absent: bool, at: usize, hash: u64) -> bool
    where
        L: DerefMut,
    {
        let new = !self.contains_at(at, hash);
        if new || !if_absent {
            let (kernel, single) = (self.kernel, self.single_block());
            self.new_in_newest += u64::from(kernel.insert(single, self.newest_block(at), hash));
        }
        new
    }

    /// Returns whether any generation contains the hash.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.contains_at(self.first_line(hash), hash)
    }

    /// Returns whether any generation whose bit is set in `live` contains the hash.
    #[inline]
    pub(crate) fn live_contain(&self, live: u16, hash: u64) -> bool {
        self.live_contain_at(live, self.first_line(hash), hash)
    }

    /// Returns whether the newest generation contains the hash.
    pub(crate) fn newest_contains(&self, hash: u64) -> bool {
        let block = self.blocks(self.first_line(hash)).nth(self.newest);
        block.is_some_and(|block| self.block_contains(block, hash))
    }

    /// Sets the bits of a hash in the newest generation; with `if_absent` only if no generation contains the
    /// hash. Returns whether no generation contained it, and 1 if it was new to the newest.
    #[inline]
    pub(crate) fn insert(mut self, if_absent: bool, hash: u64) -> (bool, u64)
    where
        L: DerefMut,
    {
        let new = self.insert_at(if_absent, self.first_line(hash), hash);
        (new, self.new_in_newest)
    }

    /// Calls `one` for many hashes in turn, each with the first cache line of its blocks.
    #[inline(always)]
    pub(super) fn batch(
        &mut self,
        hashes: impl HashSource,
        results: &mut [u64],
        one: impl Fn(&mut Self, usize, u64) -> bool,
    ) {
        let process = |ring: &mut &mut Self, group: &PreparedGroup, results: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            *results = test_each(keys, |(at, hash)| one(ring, at, hash));
        };
        let prepare = |ring: &&mut Self, hashes: &_, group: &mut _| ring.prepare(hashes, group);
        batch(self, hashes, results, prepare, process, join);
    }

    /// Looks up many hashes in the generations whose bits are set in `live`.
    pub(crate) fn live_contain_batch(mut self, live: u16, hashes: &[u64], found: &mut [u64]) {
        self.batch(hashes, found, |ring, at, hash| ring.live_contain_at(live, at, hash));
    }

    /// Returns the false-positive rate for the current bits: the mean over all blocks and starts of
    /// the probability that a query hits any generation. The generations of a block hold different
    /// keys and are independent.
    pub(crate) fn fpr_from_bits(&self) -> f64 {
        let mut sum = 0.0;
        for blocks in self.lines.chunks_exact(self.stride()) {
            let mut missed = [1.0; LANES];
            for block in blocks.chunks_exact(BlockParams::<LANES>::LINES) {
                let words = block.iter().flat_map(|line| line.0);
                let mut fill = [0.0; LANES];
                for (fill, word) in fill.iter_mut().zip(words) {
                    *fill = f64::from(word.count_ones()) / 64.0;
                }
                for (start, missed) in missed.iter_mut().enumerate() {
                    let lane = |probe| fill[(start + probe) % LANES];
                    *missed *= 1.0 - (0..self.params.probes as usize).map(lane).product::<f64>();
                }
            }
            sum += missed.iter().map(|missed| 1.0 - missed).sum::<f64>();
        }
        sum / (self.params.blocks as f64 * LANES as f64)
    }
}
