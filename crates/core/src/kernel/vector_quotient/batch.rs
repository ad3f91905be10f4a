//! The loops over many hashes, in which cache misses overlap.
//!
//! The first block of a hash is prefetched [`AHEAD`] hashes before it is used. The second block is
//! prefetched only if it will be needed, when the first one has arrived.

use super::block::BlockOps;
use super::shape::PairParams;
use super::table::{TableOps as _, bytes};
use crate::kernel::primitives::prefetch;
use crate::kernel::select::Select;
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

/// Looks up groups of hashes: those that are not in their first block are looked up in their second
/// block after the first blocks of the next group.
#[inline(always)]
pub(super) fn contains<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Select,
    params: PairParams,
    blocks: &[CacheLine],
    hashes: &[u64],
    found: &mut [u64],
) {
    let mut open = [0usize; GROUP];
    let mut open_len = 0;
    let mut next_open = [0usize; GROUP];
    let second = |open: &[usize], found: &mut [u64]| {
        for &at in open {
            let place = params.place(hashes[at]);
            let other = params.second_block(hashes[at], place);
            let slots =
                BlockOps::<TAG_BITS, BYTES>::find_at(select, blocks, other, place.fingerprint);
            if let Some(word) = found.get_mut(at / 64) {
                *word |= u64::from(slots != 0) << (at % 64);
            }
        }
    };
    for at in 0..GROUP {
        prefetch_first(params, blocks, hashes.get(at));
    }
    for (group, group_hashes) in hashes.chunks(GROUP).enumerate() {
        let begin = group * GROUP;
        let mut next_len = 0;
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
                prefetch(blocks, params.second_block(hash, place) as usize);
            }
            next_open[next_len % GROUP] = at;
            next_len += usize::from(slots == 0);
        }
        if let Some(word) = found.get_mut(begin / 64) {
            *word |= bits;
        }
        second(&open[..open_len], found);
        (open, open_len) = (next_open, next_len);
    }
    second(&open[..open_len], found);
}

/// Inserts hashes until there is no slot for one. Returns the number of hashes before it.
#[inline(always)]
pub(super) fn insert<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Select,
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
    select: impl Select,
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
            let found = BlockOps::<TAG_BITS, BYTES>::find_at(
                select,
                blocks,
                place.block,
                place.fingerprint,
            );
            if found == 0 {
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
