//! A table with the instructions that it uses, and the operations on single hashes.

use core::hint::select_unpredictable;

use super::batch::{self, TableInstructions};
use super::block::{BlockOps, bytes, pair};
use super::header::BLOCK;
use super::operations::{Operations, with_shape};
use super::planes::Planes;
use super::shape::{Fingerprint, PairParams, Place};
use crate::kernel::cpu::KernelHandle;
use crate::kernel::primitives::prefetch;
use crate::kernel::select::Portable;
use crate::store::{CacheLine, line_as_bytes, line_as_bytes_mut};

/// Tags whose other blocks are prefetched together when a tag must move.
const CANDIDATES: u32 = 4;

/// A table; its blocks are an argument of each call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairTable {
    params: PairParams,
    /// The processor has their instructions.
    operations: &'static Operations,
}

impl PairTable {
    /// Creates a table; `kernel` selects its instructions.
    pub(crate) fn new(params: PairParams, kernel: KernelHandle) -> Self {
        Self { params, operations: kernel.pair_operations(&params) }
    }

    /// Returns the place of a hash.
    pub(crate) fn place(&self, hash: u64) -> Place {
        self.params.place(hash)
    }

    /// Returns the second block of a place.
    pub(crate) fn second_block(&self, place: Place) -> u64 {
        self.params.other_block(place.block, place.fingerprint)
    }

    /// Prefetches the blocks of a hash.
    #[inline]
    pub(crate) fn prefetch(&self, blocks: &[CacheLine], hash: u64) {
        let place = self.params.place(hash);
        prefetch(blocks, place.block as usize);
        prefetch(blocks, self.params.second_block(hash, place) as usize);
    }

    /// Returns whether the table contains the fingerprint of a hash.
    #[inline]
    pub(crate) fn contains(&self, blocks: &[CacheLine], hash: u64) -> bool {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.contains)(&self.params, blocks, hash) }
    }

    /// Returns the number of copies of the fingerprint of a hash.
    pub(crate) fn count(&self, blocks: &[CacheLine], hash: u64) -> u64 {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.count)(&self.params, blocks, hash) }
    }

    /// Adds a copy of the fingerprint of a hash; false if there is no slot for it. Nothing has changed
    /// then.
    #[inline]
    pub(crate) fn insert(&self, blocks: &mut [CacheLine], hash: u64) -> bool {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.insert)(&self.params, blocks, hash) }
    }

    /// Removes a copy of the fingerprint of a hash; false if there is none.
    #[inline]
    pub(crate) fn remove(&self, blocks: &mut [CacheLine], hash: u64) -> bool {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.remove)(&self.params, blocks, hash) }
    }

    /// Looks up many hashes. `found` has one word for 64 hashes and must be 0.
    ///
    /// # Panics
    /// With AVX-512, if a block of a hash does not exist.
    pub(crate) fn contains_batch(&self, blocks: &[CacheLine], hashes: &[u64], found: &mut [u64]) {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.contains_batch)(&self.params, blocks, hashes, found) }
    }

    /// Adds copies of the fingerprints of hashes in turn, until there is no slot for one. Returns the
    /// number of hashes before that one.
    pub(crate) fn insert_batch(&self, blocks: &mut [CacheLine], hashes: &[u64]) -> usize {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.insert_batch)(&self.params, blocks, hashes) }
    }

    /// Removes a copy of the fingerprint of each hash in turn. A result is true if there was one;
    /// `removed` has one word for 64 hashes and must be 0. Returns the number of copies removed.
    pub(crate) fn remove_batch(
        &self,
        blocks: &mut [CacheLine],
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        // SAFETY: the processor has the instructions.
        unsafe { (self.operations.remove_batch)(&self.params, blocks, hashes, removed) }
    }

    /// Returns the number of tags of a block, if the block is sound.
    pub(super) fn checked_len(&self, line: &CacheLine) -> Option<u32> {
        let (block, buckets) = (line_as_bytes(line), self.params.shape.buckets);
        with_shape!(self.params, |T, B| BlockOps::<T, B>::checked_len(block, buckets))
    }

    /// Returns the fingerprints of a sound block.
    pub(crate) fn fingerprints(&self, line: &CacheLine) -> impl Iterator<Item = Fingerprint> {
        let (block, params) = (*line_as_bytes(line), self.params);
        let len = with_shape!(params, |T, B| BlockOps::<T, B>::len(&block));
        (0..len).map(move |slot| {
            with_shape!(params, |T, B| BlockOps::<T, B>::fingerprint(Portable, &block, slot))
        })
    }

    /// Adds a fingerprint to a block or to the other block of it; false if there is no slot.
    pub(crate) fn insert_fingerprint(&self, blocks: &mut [CacheLine], place: Place) -> bool {
        let params = self.params;
        let other = self.second_block(place);
        with_shape!(params, |T, B| {
            BlockOps::<T, B>::insert_if_free(Portable, blocks, place.block, place.fingerprint)
                || BlockOps::<T, B>::insert_into(Portable, params, blocks, place, other)
        })
    }
}

#[inline(always)]
fn bytes_mut(blocks: &mut [CacheLine], at: u64) -> Option<&mut [u8; BLOCK]> {
    blocks.get_mut(at as usize).map(line_as_bytes_mut)
}

impl<const TAG_BITS: usize, const BYTES: usize> BlockOps<TAG_BITS, BYTES> {
    /// Returns whether some of these slots of two blocks are of a bucket.
    #[inline(always)]
    pub(super) fn any_in_bucket(
        select: impl Planes,
        [first, second]: [&[u8; BLOCK]; 2],
        bucket: u32,
        slots: [u64; 2],
    ) -> bool {
        if !Self::TAGS_DIFFER {
            let in_first = slots[0] & Self::slots_of(select, first, bucket);
            return in_first | slots[1] & Self::slots_of(select, second, bucket) != 0;
        }
        // At most one block has slots, mostly. Which one, and whether they are of the bucket, cannot be
        // predicted.
        let (one, slots_of_one, rest) =
            select_unpredictable(slots[0] != 0, (first, slots[0], slots[1]), (second, slots[1], 0));
        let found = slots_of_one & Self::slots_of(select, one, bucket) != 0;
        // Compilers would test each condition with a branch of its own.
        let rest = select.opaque(select_unpredictable(found, 0, rest));
        if rest != 0 {
            return Self::any_in_second(select, second, bucket, rest);
        }
        found
    }

    /// The rest of [`any_in_bucket`](Self::any_in_bucket), a call because it is rare.
    #[cold]
    #[inline(never)]
    fn any_in_second(select: impl Planes, block: &[u8; BLOCK], bucket: u32, slots: u64) -> bool {
        slots & Self::slots_of(select, block, bucket) != 0
    }

    /// Removes a fingerprint from a block; false if it is not there.
    #[inline(always)]
    fn remove_at(
        select: impl Planes,
        blocks: &mut [CacheLine],
        block: u64,
        of: Fingerprint,
    ) -> bool {
        let Some(block) = bytes_mut(blocks, block) else { return false };
        let found = Self::find(select, block, of);
        if found == 0 {
            return false;
        }
        Self::take(select, block, 63 - found.leading_zeros(), of.bucket);
        true
    }

    /// Removes the fingerprint of a hash from its first block, or else from the second one.
    #[inline(always)]
    pub(super) fn remove_hash(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let place = params.place(hash);
        if Self::remove_at(select, blocks, place.block, place.fingerprint) {
            return true;
        }
        let second = params.second_block(hash, place);
        Self::remove_at(select, blocks, second, place.fingerprint)
    }

    /// Inserts a fingerprint into a block, if it has a free slot.
    #[inline(always)]
    fn insert_if_free(
        select: impl Planes,
        blocks: &mut [CacheLine],
        block: u64,
        of: Fingerprint,
    ) -> bool {
        let Some(block) = bytes_mut(blocks, block).filter(|block| !Self::is_full(block)) else {
            return false;
        };
        Self::put(select, block, of);
        true
    }

    /// Inserts the fingerprint of a hash into its first block, or else into the second one.
    #[inline(always)]
    pub(super) fn insert_hash(
        select: impl TableInstructions,
        params: PairParams,
        blocks: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let place = params.place(hash);
        Self::insert_if_free(select, blocks, place.block, place.fingerprint)
            || Self::insert_into(select, params, blocks, place, params.second_block(hash, place))
    }

    /// Inserts a fingerprint into a block, or else into that of its place, which is full, by moving a
    /// tag of one of them to the other block of that tag.
    #[inline(always)]
    fn insert_into(
        select: impl TableInstructions,
        params: PairParams,
        blocks: &mut [CacheLine],
        place: Place,
        other: u64,
    ) -> bool {
        Self::insert_if_free(select, blocks, other, place.fingerprint)
            || [place.block, other].into_iter().any(|block| {
                select.insert_by_moving::<TAG_BITS, BYTES>(
                    &params,
                    blocks,
                    Place { block, ..place },
                )
            })
    }

    /// Returns the parameters with the shape as a constant.
    #[inline(always)]
    pub(super) fn constant(params: &PairParams) -> PairParams {
        PairParams { shape: Self::SHAPE, ..*params }
    }
}

/// The operations of a table.
impl<const TAG_BITS: usize, const BYTES: usize> BlockOps<TAG_BITS, BYTES> {
    /// Moves any tag from the block of a place, which is full, to the other block of that tag, and
    /// inserts the fingerprint of the place; false if no tag can be moved.
    #[inline(always)]
    pub(super) fn insert_by_moving(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &mut [CacheLine],
        place: Place,
    ) -> bool {
        let params = Self::constant(params);
        let block = place.block;
        let Some(line) = bytes(blocks, block).copied() else { return false };
        // Not always the same slots, which are the first buckets.
        let start = place.fingerprint.tag;
        for at in 0..Self::SLOTS {
            let slot = |at: u32| start.wrapping_add(at) % Self::SLOTS;
            if at.is_multiple_of(CANDIDATES) {
                for ahead in at..at + CANDIDATES {
                    let tag = Self::fingerprint(select, &line, slot(ahead));
                    prefetch(blocks, params.other_block(block, tag) as usize);
                }
            }
            let tag = Self::fingerprint(select, &line, slot(at));
            let other = params.other_block(block, tag);
            if other != block && Self::insert_if_free(select, blocks, other, tag) {
                let Some(line) = bytes_mut(blocks, block) else { return false };
                Self::take(select, line, slot(at), tag.bucket);
                Self::put(select, line, place.fingerprint);
                return true;
            }
        }
        false
    }

    #[inline(always)]
    pub(super) fn contains(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &[CacheLine],
        hash: u64,
    ) -> bool {
        let params = Self::constant(params);
        let place = params.place(hash);
        let numbers = [place.block, params.second_block(hash, place)];
        let Some(pair) = pair(blocks, numbers) else { return false };
        let equal = Self::equal_in_both(select, pair, place.fingerprint);
        Self::any_in_bucket(select, pair, place.fingerprint.bucket, equal)
    }

    #[inline(always)]
    pub(super) fn count(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &[CacheLine],
        hash: u64,
    ) -> u64 {
        let params = Self::constant(params);
        let place = params.place(hash);
        let other = params.second_block(hash, place);
        let count = |block| {
            let found =
                bytes(blocks, block).map(|block| Self::find(select, block, place.fingerprint));
            found.map_or(0, |found| found.count_ones().into())
        };
        count(place.block) + if other == place.block { 0 } else { count(other) }
    }

    #[inline(always)]
    pub(super) fn insert(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        Self::insert_hash(select, Self::constant(params), blocks, hash)
    }

    #[inline(always)]
    pub(super) fn remove(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        Self::remove_hash(select, Self::constant(params), blocks, hash)
    }

    #[inline(always)]
    pub(super) fn contains_batch(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &[CacheLine],
        hashes: &[u64],
        found: &mut [u64],
    ) {
        let params = Self::constant(params);
        select.contains_batch::<TAG_BITS, BYTES>(params, blocks, hashes, found);
    }

    #[inline(always)]
    pub(super) fn insert_batch(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &mut [CacheLine],
        hashes: &[u64],
    ) -> usize {
        batch::insert::<TAG_BITS, BYTES>(select, Self::constant(params), blocks, hashes)
    }

    #[inline(always)]
    pub(super) fn remove_batch(
        select: impl TableInstructions,
        params: &PairParams,
        blocks: &mut [CacheLine],
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        batch::remove::<TAG_BITS, BYTES>(select, Self::constant(params), blocks, hashes, removed)
    }
}
