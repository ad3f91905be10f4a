//! A table with the instructions that it uses, and the operations on single hashes.

use super::batch;
use super::block::{BLOCK, BlockOps};
use super::planes::Planes;
use super::shape::{Fingerprint, PairParams, Place};
use crate::kernel::cpu::KernelHandle;
use crate::kernel::primitives::prefetch;
use crate::kernel::select::Portable;
use crate::store::{CacheLine, line_as_bytes, line_as_bytes_mut};

#[cfg(target_arch = "x86_64")]
use crate::kernel::select::Avx2Bmi2;

/// Tags whose other blocks are prefetched together when a tag must move.
const CANDIDATES: u32 = 4;

/// A table; its blocks are an argument of each call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairTable {
    params: PairParams,
    #[cfg(target_arch = "x86_64")]
    bmi2: Option<Avx2Bmi2>,
}

/// Evaluates an expression with the operations for the shape of a table.
macro_rules! with_shape {
    ($params:expr, $ops:ident => $call:expr) => {
        match $params.shape.tag_bits {
            6 => {
                type $ops = BlockOps<6, 8>;
                $call
            }
            7 => {
                type $ops = BlockOps<7, 7>;
                $call
            }
            8 => {
                type $ops = BlockOps<8, 6>;
                $call
            }
            10 => {
                type $ops = BlockOps<10, 5>;
                $call
            }
            13 => {
                type $ops = BlockOps<13, 4>;
                $call
            }
            _ => {
                type $ops = BlockOps<18, 3>;
                $call
            }
        }
    };
}

/// Calls a function of the shape, compiled for BMI2 if the machine has it.
macro_rules! dispatch {
    ($table:expr, $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some(select) = $table.bmi2 {
            // SAFETY: a `Avx2Bmi2` is proof that the machine has the instructions.
            return with_shape!($table.params, Ops => unsafe {
                bmi2::$function::<Ops>(select, $table.params, $($argument),*)
            });
        }
        with_shape!($table.params, Ops => Ops::$function(Portable, $table.params, $($argument),*))
    }};
}

impl PairTable {
    /// Creates a table; `kernel` selects its instructions.
    pub(crate) fn new(params: PairParams, kernel: KernelHandle) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = kernel;
        Self {
            params,
            #[cfg(target_arch = "x86_64")]
            bmi2: if kernel.kernel().is_baseline() { None } else { Avx2Bmi2::new() },
        }
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
        dispatch!(self, contains(blocks, hash))
    }

    /// Returns the number of copies of the fingerprint of a hash.
    pub(crate) fn count(&self, blocks: &[CacheLine], hash: u64) -> u64 {
        dispatch!(self, count(blocks, hash))
    }

    /// Adds a copy of the fingerprint of a hash; false if there is no slot for it. Nothing has changed
    /// then.
    #[inline]
    pub(crate) fn insert(&self, blocks: &mut [CacheLine], hash: u64) -> bool {
        dispatch!(self, insert(blocks, hash))
    }

    /// Removes a copy of the fingerprint of a hash; false if there is none.
    #[inline]
    pub(crate) fn remove(&self, blocks: &mut [CacheLine], hash: u64) -> bool {
        dispatch!(self, remove(blocks, hash))
    }

    /// Looks up many hashes. `found` has one word for 64 hashes and must be 0.
    pub(crate) fn contains_batch(&self, blocks: &[CacheLine], hashes: &[u64], found: &mut [u64]) {
        dispatch!(self, contains_batch(blocks, hashes, found))
    }

    /// Adds copies of the fingerprints of hashes in turn, until there is no slot for one. Returns the
    /// number of hashes before that one.
    pub(crate) fn insert_batch(&self, blocks: &mut [CacheLine], hashes: &[u64]) -> usize {
        dispatch!(self, insert_batch(blocks, hashes))
    }

    /// Removes a copy of the fingerprint of each hash in turn. A result is true if there was one;
    /// `removed` has one word for 64 hashes and must be 0. Returns the number of copies removed.
    pub(crate) fn remove_batch(
        &self,
        blocks: &mut [CacheLine],
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        dispatch!(self, remove_batch(blocks, hashes, removed))
    }

    /// Returns the number of tags of a block, if the block is sound.
    pub(super) fn checked_len(&self, line: &CacheLine) -> Option<u32> {
        let (block, buckets) = (line_as_bytes(line), self.params.shape.buckets);
        with_shape!(self.params, Ops => Ops::checked_len(block, buckets))
    }

    /// Returns the fingerprints of a sound block.
    pub(crate) fn fingerprints(&self, line: &CacheLine) -> impl Iterator<Item = Fingerprint> {
        let (block, params) = (*line_as_bytes(line), self.params);
        let len = with_shape!(params, Ops => Ops::len(&block));
        (0..len)
            .map(move |slot| with_shape!(params, Ops => Ops::fingerprint(Portable, &block, slot)))
    }

    /// Adds a fingerprint to a block or to the other block of it; false if there is no slot.
    pub(crate) fn insert_fingerprint(&self, blocks: &mut [CacheLine], place: Place) -> bool {
        let params = self.params;
        with_shape!(params, Ops => Ops::insert_at(Portable, params, blocks, place))
    }
}

/// The operations of a table; `BlockOps` implements them for its shape.
pub(super) trait TableOps {
    fn contains(select: impl Planes, params: PairParams, blocks: &[CacheLine], hash: u64) -> bool;
    fn count(select: impl Planes, params: PairParams, blocks: &[CacheLine], hash: u64) -> u64;
    fn insert(select: impl Planes, params: PairParams, blocks: &mut [CacheLine], hash: u64)
    -> bool;
    fn remove(select: impl Planes, params: PairParams, blocks: &mut [CacheLine], hash: u64)
    -> bool;
    fn contains_batch(
        select: impl Planes,
        params: PairParams,
        blocks: &[CacheLine],
        hashes: &[u64],
        found: &mut [u64],
    );
    fn insert_batch(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hashes: &[u64],
    ) -> usize;
    fn remove_batch(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64;
}

/// Returns the bytes of a block.
#[inline(always)]
pub(super) fn bytes(blocks: &[CacheLine], at: u64) -> Option<&[u8; BLOCK]> {
    blocks.get(at as usize).map(line_as_bytes)
}

#[inline(always)]
pub(super) fn bytes_mut(blocks: &mut [CacheLine], at: u64) -> Option<&mut [u8; BLOCK]> {
    blocks.get_mut(at as usize).map(line_as_bytes_mut)
}

impl<const TAG_BITS: usize, const BYTES: usize> BlockOps<TAG_BITS, BYTES> {
    /// Returns the slots of a block that have a fingerprint.
    #[inline(always)]
    pub(super) fn find_at(
        select: impl Planes,
        blocks: &[CacheLine],
        block: u64,
        of: Fingerprint,
    ) -> u64 {
        bytes(blocks, block).map_or(0, |block| Self::find(select, block, of))
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
        if found != 0 {
            Self::take(select, block, found.trailing_zeros());
        }
        found != 0
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

    /// Inserts a fingerprint into the block of its place, or else into the other one.
    #[inline(always)]
    pub(super) fn insert_at(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        place: Place,
    ) -> bool {
        if Self::insert_if_free(select, blocks, place.block, place.fingerprint) {
            return true;
        }
        let other = params.other_block(place.block, place.fingerprint);
        Self::insert_if_free(select, blocks, other, place.fingerprint)
            || Self::insert_by_moving(select, params, blocks, place.block, place)
            || Self::insert_by_moving(select, params, blocks, other, place)
    }

    /// Moves any tag from a full block to its other block, and inserts a fingerprint in its place.
    #[cold]
    #[inline(never)]
    fn insert_by_moving(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        block: u64,
        place: Place,
    ) -> bool {
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
                Self::take(select, line, slot(at));
                Self::put(select, line, place.fingerprint);
                return true;
            }
        }
        false
    }

    /// Returns the parameters with the shape as a constant.
    #[inline(always)]
    pub(super) fn constant(params: PairParams) -> PairParams {
        PairParams { shape: Self::SHAPE, ..params }
    }
}

impl<const TAG_BITS: usize, const BYTES: usize> TableOps for BlockOps<TAG_BITS, BYTES> {
    #[inline(always)]
    fn contains(select: impl Planes, params: PairParams, blocks: &[CacheLine], hash: u64) -> bool {
        let params = Self::constant(params);
        let place = params.place(hash);
        let other = params.second_block(hash, place);
        prefetch(blocks, other as usize);
        Self::find_at(select, blocks, place.block, place.fingerprint) != 0
            || Self::find_at(select, blocks, other, place.fingerprint) != 0
    }

    #[inline(always)]
    fn count(select: impl Planes, params: PairParams, blocks: &[CacheLine], hash: u64) -> u64 {
        let params = Self::constant(params);
        let place = params.place(hash);
        let other = params.second_block(hash, place);
        let first = Self::find_at(select, blocks, place.block, place.fingerprint);
        let second = Self::find_at(select, blocks, other, place.fingerprint);
        let second = if other == place.block { 0 } else { second };
        (first.count_ones() + second.count_ones()).into()
    }

    #[inline(always)]
    fn insert(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let params = Self::constant(params);
        Self::insert_at(select, params, blocks, params.place(hash))
    }

    #[inline(always)]
    fn remove(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let params = Self::constant(params);
        let place = params.place(hash);
        if Self::remove_at(select, blocks, place.block, place.fingerprint) {
            return true;
        }
        let other = params.other_block(place.block, place.fingerprint);
        Self::remove_at(select, blocks, other, place.fingerprint)
    }

    #[inline(always)]
    fn contains_batch(
        select: impl Planes,
        params: PairParams,
        blocks: &[CacheLine],
        hashes: &[u64],
        found: &mut [u64],
    ) {
        batch::contains::<TAG_BITS, BYTES>(select, Self::constant(params), blocks, hashes, found);
    }

    #[inline(always)]
    fn insert_batch(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hashes: &[u64],
    ) -> usize {
        batch::insert::<TAG_BITS, BYTES>(select, Self::constant(params), blocks, hashes)
    }

    #[inline(always)]
    fn remove_batch(
        select: impl Planes,
        params: PairParams,
        blocks: &mut [CacheLine],
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        batch::remove::<TAG_BITS, BYTES>(select, Self::constant(params), blocks, hashes, removed)
    }
}

/// The operations, compiled with the instructions of [`Avx2Bmi2`].
#[cfg(target_arch = "x86_64")]
mod bmi2 {
    use super::{Avx2Bmi2, CacheLine, PairParams, TableOps};

    /// Defines a function that calls the operation of the same name.
    macro_rules! compiled {
        ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            pub(super) fn $name<Ops: TableOps>(
                select: Avx2Bmi2,
                params: PairParams,
                $($argument: $type),*
            ) $(-> $result)? {
                Ops::$name(select, params, $($argument),*)
            }
        )*};
    }

    compiled! {
        contains(blocks: &[CacheLine], hash: u64) -> bool;
        count(blocks: &[CacheLine], hash: u64) -> u64;
        insert(blocks: &mut [CacheLine], hash: u64) -> bool;
        remove(blocks: &mut [CacheLine], hash: u64) -> bool;
        contains_batch(blocks: &[CacheLine], hashes: &[u64], found: &mut [u64]);
        insert_batch(blocks: &mut [CacheLine], hashes: &[u64]) -> usize;
        remove_batch(blocks: &mut [CacheLine], hashes: &[u64], removed: &mut [u64]) -> u64;
    }
}
