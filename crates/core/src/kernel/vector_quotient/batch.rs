//! The loops over many hashes, in which cache misses overlap.
//!
//! The first block of a hash is prefetched [`AHEAD`] hashes before it is used. The second block is
//! prefetched only if it will be needed, when the first one has arrived.

use super::block::BlockOps;
use super::planes::Planes;
use super::shape::{Fingerprint, PairParams, Place};
use super::table::{TableOps as _, bytes};
use crate::kernel::primitives::prefetch;
use crate::store::CacheLine;

/// Hashes between the prefetch of a first block and its use.
const AHEAD: usize = 32;
/// Hashes between the prefetch of a second block and its use.
const SECOND_AHEAD: usize = 14;
/// Tables of up to this many blocks are near enough: their second blocks are not prefetched before
/// a removal, because finding out whether they are needed takes as long as reading them.
const NEAR: usize = 1 << 15;
/// Hashes of a group of lookups.
const GROUP: usize = 32;

/// Prefetches the first block of a hash, if there is one.
#[inline(always)]
fn prefetch_first(params: PairParams, blocks: &[CacheLine], hash: Option<&u64>) {
    if let Some(hash) = hash {
        prefetch(blocks, params.first_block(*hash) as usize);
    }
}

/// Hashes that are not in their first blocks: their numbers, second blocks and fingerprints.
#[derive(Clone, Copy)]
struct Open {
    entries: [(usize, Place); GROUP],
    len: usize,
}

impl Open {
    const EMPTY: Self = {
        let fingerprint = Fingerprint { bucket: 0, tag: 0 };
        Self { entries: [(0, Place { block: 0, fingerprint }); GROUP], len: 0 }
    };

    /// Sets the results of the hashes that are in their second blocks.
    #[inline(always)]
    fn look_up<const TAG_BITS: usize, const BYTES: usize>(
        &self,
        select: impl Planes,
        blocks: &[CacheLine],
        found: &mut [u64],
    ) {
        for &(at, Place { block, fingerprint }) in self.entries.iter().take(self.len) {
            let slots = BlockOps::<TAG_BITS, BYTES>::find_at(select, blocks, block, fingerprint);
            if let Some(word) = found.get_mut(at / 64) {
                *word |= u64::from(slots != 0) << (at % 64);
            }
        }
    }
}

/// Looks up groups of hashes: those that are not in their first block are looked up in their second
/// block after the first blocks of the next group.
#[inline(always)]
pub(super) fn contains<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Planes,
    params: PairParams,
    blocks: &[CacheLine],
    hashes: &[u64],
    found: &mut [u64],
) {
    let mut open = [Open::EMPTY; 2];
    for at in 0..GROUP {
        prefetch_first(params, blocks, hashes.get(at));
    }
    for (group, group_hashes) in hashes.chunks(GROUP).enumerate() {
        let begin = group * GROUP;
        let [even, odd] = &mut open;
        let (now, before) = if group % 2 == 0 { (even, odd) } else { (odd, even) };
        now.len = 0;
        let mut bits = 0u64;
        for (index, &hash) in group_hashes.iter().enumerate() {
            let at = begin + index;
            prefetch_first(params, blocks, hashes.get(at + GROUP));
            let place = params.place(hash);
            let slots = BlockOps::<TAG_BITS, BYTES>::find_at(
                select,
                blocks,
                place.block,
                place.fingerprint,
            );
            bits |= u64::from(slots != 0) << (at % 64);
            if slots == 0 {
                let block = params.second_block(hash, place);
                prefetch(blocks, block as usize);
                now.entries[now.len % GROUP] = (at, Place { block, ..place });
                now.len += 1;
            }
        }
        if let Some(word) = found.get_mut(begin / 64) {
            *word |= bits;
        }
        before.look_up::<TAG_BITS, BYTES>(select, blocks, found);
        before.len = 0;
    }
    for rest in &open {
        rest.look_up::<TAG_BITS, BYTES>(select, blocks, found);
    }
}

/// Inserts hashes until there is no slot for one. Returns the number of hashes before it.
#[inline(always)]
pub(super) fn insert<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Planes,
    params: PairParams,
    blocks: &mut [CacheLine],
    hashes: &[u64],
) -> usize {
    for at in 0..AHEAD {
        prefetch_first(params, blocks, hashes.get(at));
    }
    for (at, &hash) in hashes.iter().enumerate() {
        prefetch_first(params, blocks, hashes.get(at + AHEAD));
        if let Some(&later) = hashes.get(at + SECOND_AHEAD)
            && bytes(blocks, params.first_block(later))
                .is_some_and(BlockOps::<TAG_BITS, BYTES>::is_full)
        {
            let place = params.place(later);
            prefetch(blocks, params.other_block(place.block, place.fingerprint) as usize);
        }
        if !BlockOps::<TAG_BITS, BYTES>::insert(select, params, blocks, hash) {
            return at;
        }
    }
    hashes.len()
}

/// Removes hashes in turn and returns the number of those that were found.
#[inline(always)]
pub(super) fn remove<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Planes,
    params: PairParams,
    blocks: &mut [CacheLine],
    hashes: &[u64],
    removed: &mut [u64],
) -> u64 {
    let far = blocks.len() > NEAR;
    for at in 0..AHEAD {
        prefetch_first(params, blocks, hashes.get(at));
    }
    let mut total = 0;
    for (at, &hash) in hashes.iter().enumerate() {
        prefetch_first(params, blocks, hashes.get(at + AHEAD));
        if far && let Some(&later) = hashes.get(at + SECOND_AHEAD) {
            let place = params.place(later);
            let may_have = bytes(blocks, place.block).is_some_and(|block| {
                BlockOps::<TAG_BITS, BYTES>::may_have(select, block, place.fingerprint)
            });
            if !may_have {
                prefetch(blocks, params.second_block(later, place) as usize);
            }
        }
        let found = BlockOps::<TAG_BITS, BYTES>::remove(select, params, blocks, hash);
        if let Some(word) = removed.get_mut(at / 64) {
            *word |= u64::from(found) << (at % 64);
        }
        total += u64::from(found);
    }
    total
}
