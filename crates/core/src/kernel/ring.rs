//! Generations of blocked filters, interleaved: the blocks that a key has in all of them lie side
//! by side, so that one look is a run of neighbouring lines.
//!
//! Block b of generation g, of G generations, is block b·G + g of the lines. In each generation a
//! key marks the same bits, those of [`Rule`]; it is present if any generation has all of them.
//!
//! Cost: G times the lines of a block, of which the processor asks for the later ones by itself.

use std::ops::{Deref, DerefMut};

use super::batch::{GROUP, Hashes, Places, batch, each, join};
use super::blocked::Rule;
#[cfg(target_arch = "x86_64")]
use super::{Kernel, avx512};
use super::{Ready, prefetch, scale};
use crate::store::Line;

/// The lines of all generations, and which generation is the newest.
pub(crate) struct Ring<const LANES: usize, L> {
    /// That of each generation.
    pub(super) rule: Rule<LANES>,
    pub(super) generations: usize,
    pub(super) newest: usize,
    pub(super) lines: L,
    /// How many keys were new to the newest generation.
    pub(super) fresh: u64,
}

impl<const LANES: usize, L: Deref<Target = [Line]>> Ring<LANES, L> {
    /// `generations` filters of this rule, of which `newest` is the number of the newest.
    ///
    /// # Panics
    /// If the lines are not theirs.
    pub(crate) fn new(rule: Rule<LANES>, generations: usize, newest: usize, lines: L) -> Self {
        let ring = Self { rule, generations, newest, lines, fresh: 0 };
        let whole = rule.blocks as usize * ring.run();
        assert!(ring.lines.len() == whole && newest < generations, "the lines of {whole}");
        ring
    }

    /// Lines of one block in all generations.
    #[inline(always)]
    pub(super) fn run(&self) -> usize {
        self.generations * Rule::<LANES>::LINES
    }

    /// The first of the lines in which a hash is looked for.
    #[inline(always)]
    fn at(&self, hash: u64) -> usize {
        scale(hash, self.rule.blocks) as usize * self.run()
    }

    /// The block of each generation that has a run of lines from `at` on.
    #[inline(always)]
    pub(super) fn blocks(&self, at: usize) -> impl Iterator<Item = &[Line]> {
        self.lines[at..at + self.run()].chunks_exact(Rule::<LANES>::LINES)
    }

    /// The block of the newest generation in the same run.
    #[inline(always)]
    pub(super) fn newest_block(&mut self, at: usize) -> &mut [Line]
    where
        L: DerefMut,
    {
        let first = at + self.newest * Rule::<LANES>::LINES;
        &mut self.lines[first..first + Rule::<LANES>::LINES]
    }

    /// Asks for the run of lines from `at` on.
    #[inline(always)]
    pub(super) fn prefetch(&self, at: usize) {
        (at..at + self.run()).for_each(|line| prefetch(&self.lines, line));
    }

    #[inline(always)]
    fn prepare(&self, hashes: &[u64; GROUP], places: &mut Places) {
        places.hashes = *hashes;
        places.at = hashes.map(|hash| self.at(hash));
        places.at.iter().for_each(|&at| self.prefetch(at));
    }

    /// The rule of a single block.
    #[inline(always)]
    fn one(&self) -> Rule<LANES> {
        Rule { blocks: 1, probes: self.rule.probes }
    }

    #[inline(always)]
    fn contains_at(&self, kernel: Ready, at: usize, hash: u64) -> bool {
        self.blocks(at).any(|block| kernel.contains(self.one(), block, hash))
    }

    /// Sets the bits of a hash in the newest generation; with `IF_ABSENT` only if no generation
    /// has the hash.
    #[inline(always)]
    fn insert_at<const IF_ABSENT: bool>(&mut self, kernel: Ready, at: usize, hash: u64) -> bool
    where
        L: DerefMut,
    {
        let new = !self.contains_at(kernel, at, hash);
        if new || !IF_ABSENT {
            let one = self.one();
            self.fresh += u64::from(kernel.insert(one, self.newest_block(at), hash));
        }
        new
    }

    /// Whether any generation has the hash.
    #[inline]
    pub(crate) fn contains(&self, kernel: Ready, hash: u64) -> bool {
        self.contains_at(kernel, self.at(hash), hash)
    }

    /// Whether any of the generations has the hash whose bits are set in `live`.
    #[inline]
    pub(crate) fn live_contain(&self, kernel: Ready, live: u16, hash: u64) -> bool {
        self.live_contain_at(kernel, live, self.at(hash), hash)
    }

    #[inline(always)]
    fn live_contain_at(&self, kernel: Ready, live: u16, at: usize, hash: u64) -> bool {
        let mut blocks = self.blocks(at).enumerate().filter(|(slot, _)| live >> slot & 1 == 1);
        blocks.any(|(_, block)| kernel.contains(self.one(), block, hash))
    }

    /// Whether the newest generation has the hash.
    pub(crate) fn newest_contains(&self, kernel: Ready, hash: u64) -> bool {
        let block = self.blocks(self.at(hash)).nth(self.newest);
        block.is_some_and(|block| kernel.contains(self.one(), block, hash))
    }

    /// Sets the bits of a hash in the newest generation. Whether no generation had it, and
    /// whether the newest had it not, as a count.
    #[inline]
    pub(crate) fn insert(mut self, kernel: Ready, hash: u64) -> (bool, u64)
    where
        L: DerefMut,
    {
        let new = self.insert_at::<false>(kernel, self.at(hash), hash);
        (new, self.fresh)
    }

    /// Sets the bits of a hash in the newest generation if no generation has it. Returns whether
    /// none had it, and whether the newest lacked it, as a count.
    #[inline]
    pub(crate) fn insert_if_absent(mut self, kernel: Ready, hash: u64) -> (bool, u64)
    where
        L: DerefMut,
    {
        let new = self.insert_at::<true>(kernel, self.at(hash), hash);
        (new, self.fresh)
    }

    /// The rate that the bits as they are now give: for each block the mean over all starts of
    /// the chance that a query hits any generation, and the mean of that over all blocks. The
    /// generations of a block hold different keys and are independent.
    pub(crate) fn rate_now(&self) -> f64 {
        let mut sum = 0.0;
        for run in self.lines.chunks_exact(self.run()) {
            let mut missed = [1.0; LANES];
            for block in run.chunks_exact(Rule::<LANES>::LINES) {
                let words = block.iter().flat_map(|line| line.0);
                let mut fill = [0.0; LANES];
                for (fill, word) in fill.iter_mut().zip(words) {
                    *fill = f64::from(word.count_ones()) / 64.0;
                }
                for (start, missed) in missed.iter_mut().enumerate() {
                    let lane = |probe| fill[(start + probe) % LANES];
                    *missed *= 1.0 - (0..self.rule.probes as usize).map(lane).product::<f64>();
                }
            }
            sum += missed.iter().map(|missed| 1.0 - missed).sum::<f64>();
        }
        sum / (self.rule.blocks as f64 * LANES as f64)
    }
}

impl Ready {
    /// Looks for many hashes; an answer is yes if any generation has that hash. There are words
    /// for all answers, 64 to a word.
    pub(crate) fn contains_batch_in_ring<const LANES: usize>(
        self,
        ring: Ring<LANES, &[Line]>,
        hashes: impl Hashes,
        found: &mut [u64],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.0 == Kernel::Avx512 {
            // SAFETY: the machine has the instructions.
            return unsafe { avx512::ring::contains_batch(ring, hashes, found) };
        }
        let look = |ring: &mut Ring<LANES, &[Line]>, places: &Places, found: &mut u8| {
            let keys = places.at.into_iter().zip(places.hashes);
            *found = each(keys, |(at, hash)| ring.contains_at(self, at, hash));
        };
        batch(ring, hashes, found, Ring::prepare, look, join);
    }

    /// As above, of the generations whose bits are set in `live`.
    pub(crate) fn live_contain_batch<const LANES: usize>(
        self,
        ring: Ring<LANES, &[Line]>,
        live: u16,
        hashes: &[u64],
        found: &mut [u64],
    ) {
        let look = |ring: &mut Ring<LANES, &[Line]>, places: &Places, found: &mut u8| {
            let keys = places.at.into_iter().zip(places.hashes);
            *found = each(keys, |(at, hash)| ring.live_contain_at(self, live, at, hash));
        };
        batch(ring, hashes, found, Ring::prepare, look, join);
    }

    /// Sets the bits of many hashes in turn in the newest generation. An answer is yes if no
    /// generation had that hash, those before it in the batch included. How many hashes the
    /// newest generation had not.
    ///
    /// With `IF_ABSENT`, a hash that any generation has is left as it is.
    pub(crate) fn insert_batch_in_ring<const LANES: usize, const IF_ABSENT: bool>(
        self,
        mut ring: Ring<LANES, &mut [Line]>,
        hashes: impl Hashes,
        new: &mut [u64],
    ) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.0 == Kernel::Avx512 {
            // SAFETY: the machine has the instructions.
            unsafe { avx512::ring::insert_batch::<_, IF_ABSENT>(&mut ring, hashes, new) };
            return ring.fresh;
        }
        let look = |ring: &mut &mut Ring<LANES, &mut [Line]>, places: &Places, new: &mut u8| {
            let keys = places.at.into_iter().zip(places.hashes);
            *new = each(keys, |(at, hash)| ring.insert_at::<IF_ABSENT>(self, at, hash));
        };
        let prepare = |ring: &&mut Ring<LANES, &mut [Line]>, hashes: &_, places: &mut _| {
            ring.prepare(hashes, places);
        };
        batch(&mut ring, hashes, new, prepare, look, join);
        ring.fresh
    }
}
