//! The blocked layout with vectors of less than a cache line, for any instruction set that has them.
//!
//! For each vector of a key's block, the bits of its lanes are computed, and those missing in the words are
//! collected over the block and tested once. An insertion stores the words with the bits. If a key sets a bit
//! in every lane (`ALL`), no lane is masked out.
//!
//! Bits and results are those of [`BlockParams`], which the tests of `kernel` check.

use super::blocked::BlockParams;
use crate::store::CacheLine;

/// For each number of probes, modulo the number of lanes, and each start, a 1 for every lane of the
/// key. Aligned, so that no vector crosses a cache line.
#[repr(align(64))]
pub(super) struct LaneMasks<const LANES: usize>([[[u64; LANES]; LANES]; LANES]);

impl<const LANES: usize> LaneMasks<LANES> {
    /// Returns the mask of a key that starts at lane `start` modulo the number of lanes.
    #[inline(always)]
    pub(super) fn get(&self, probes: u32, start: u64) -> &[u64; LANES] {
        &self.all_starts(probes)[start as usize % LANES]
    }

    /// Returns the masks of all starts.
    #[inline(always)]
    pub(super) fn all_starts(&self, probes: u32) -> &[[u64; LANES]; LANES] {
        &self.0[probes as usize % LANES]
    }
}

impl<const LANES: usize> BlockParams<LANES> {
    pub(super) const LANE_MASKS: &LaneMasks<LANES> = &{
        let mut masks = [[[0; LANES]; LANES]; LANES];
        let mut at = 0;
        while at < LANES * LANES * LANES {
            let (probes, start, lane) = (at / LANES / LANES, at / LANES % LANES, at % LANES);
            let selected = probes == 0 || (LANES + lane - start) % LANES < probes;
            masks[probes][start][lane] = selected as u64;
            at += 1;
        }
        LaneMasks(masks)
    };
}

/// An instruction set with vectors. A value is proof that the machine has it.
///
/// # Safety
/// Any bits are a valid `Vector`.
pub(super) unsafe trait Vectors: Copy {
    /// A vector: an equal part of a cache line.
    type Vector: Copy;

    /// Returns the bits of a hash in part `part` of its block.
    fn bits<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        part: usize,
        hash: u64,
    ) -> Self::Vector;

    fn zero(self) -> Self::Vector;

    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Returns the bits of `a` that are clear in `b`.
    fn and_not(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Whether any bit is set.
    fn any(self, bits: Self::Vector) -> bool;

    /// Sets the bits of a hash in its block. Returns whether any of them was clear.
    #[inline(always)]
    fn insert<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        block: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let mut clear = self.zero();
        for (part, words) in parts_mut::<Self, LANES>(block).iter_mut().enumerate() {
            let bits = self.bits::<LANES, ALL>(probes, part, hash);
            clear = self.or(clear, self.and_not(bits, *words));
            *words = self.or(*words, bits);
        }
        self.any(clear)
    }

    /// Sets the bits of a hash in its block.
    #[inline(always)]
    fn set<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        block: &mut [CacheLine],
        hash: u64,
    ) {
        for (part, words) in parts_mut::<Self, LANES>(block).iter_mut().enumerate() {
            *words = self.or(*words, self.bits::<LANES, ALL>(probes, part, hash));
        }
    }

    /// Returns whether all bits of a hash are set in its block.
    #[inline(always)]
    fn contains<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        block: &[CacheLine],
        hash: u64,
    ) -> bool {
        let mut clear = self.zero();
        for (part, &words) in parts::<Self, LANES>(block).iter().enumerate() {
            let bits = self.bits::<LANES, ALL>(probes, part, hash);
            clear = self.or(clear, self.and_not(bits, words));
        }
        !self.any(clear)
    }
}

/// Returns the number of vectors in a block.
///
/// # Panics
/// If the block has less lines than it must have.
#[inline(always)]
fn parts_of<V, const LANES: usize>(block: &[CacheLine]) -> usize {
    const {
        assert!(
            align_of::<V>() <= CacheLine::BYTES && CacheLine::BYTES.is_multiple_of(size_of::<V>())
        )
    };
    assert!(block.len() >= BlockParams::<LANES>::LINES, "a whole block");
    BlockParams::<LANES>::LINES * CacheLine::BYTES / size_of::<V>()
}

#[inline(always)]
fn parts<T: Vectors, const LANES: usize>(block: &[CacheLine]) -> &[T::Vector] {
    // SAFETY: the block has this number of vectors, and their alignment; any bits are a vector.
    unsafe {
        core::slice::from_raw_parts(block.as_ptr().cast(), parts_of::<T::Vector, LANES>(block))
    }
}

#[inline(always)]
fn parts_mut<T: Vectors, const LANES: usize>(block: &mut [CacheLine]) -> &mut [T::Vector] {
    let len = parts_of::<T::Vector, LANES>(block);
    // SAFETY: as in `parts`; any bits are a line.
    unsafe { core::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), len) }
}

/// Defines the functions of [`Blocked`](super::dispatch::Blocked) for batches, compiled for an instruction
/// set. Its value is `$vectors`.
macro_rules! vector_batches {
    ($vectors:expr, $attribute:meta) => {
        #[$attribute]
        unsafe fn set_small<const LANES: usize>(
            blocks: BlockRange<LANES, &mut [CacheLine]>,
            hashes: impl HashSource,
        ) -> bool {
            let (vectors, params) = ($vectors, blocks.params);
            by_lanes!(params, ALL => blocks.set_small(hashes, |block, hash| {
                vectors.set::<LANES, ALL>(params.probes, block, hash);
            }))
        }

        #[$attribute]
        unsafe fn insert_batch<const LANES: usize>(
            blocks: BlockRange<LANES, &mut [CacheLine]>,
            hashes: impl HashSource,
            new: &mut [u64],
        ) {
            let (vectors, params) = ($vectors, blocks.params);
            by_lanes!(params, ALL => blocks.insert_batch(hashes, new, |block, hash| {
                vectors.insert::<LANES, ALL>(params.probes, block, hash)
            }));
        }

        #[$attribute]
        unsafe fn contains_batch<const LANES: usize>(
            blocks: BlockRange<LANES, &[CacheLine]>,
            hashes: impl HashSource,
            found: &mut [u64],
        ) {
            let (vectors, params) = ($vectors, blocks.params);
            by_lanes!(params, ALL => blocks.contains_batch(hashes, found, |block, hash| {
                vectors.contains::<LANES, ALL>(params.probes, block, hash)
            }));
        }
    };
}
pub(super) use vector_batches;
