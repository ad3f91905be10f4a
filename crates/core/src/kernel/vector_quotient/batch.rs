//! The loops over many hashes, in which cache misses overlap.
//!
//! A lookup prefetches both blocks of a hash, a group of hashes ahead. A change prefetches the first
//! block, [`AHEAD`] hashes before it is used. In large tables it prefetches the second block, too, if
//! that will be needed, when the first one has arrived.

use super::block::{BlockOps, bytes, pair};
use super::header::BLOCK;
use super::planes::Planes;
use super::shape::{Fingerprint, PairParams, Place};
use crate::kernel::primitives::prefetch;
use crate::kernel::select::Portable;
use crate::store::CacheLine;

/// Hashes between the prefetch of a first block and its use.
const AHEAD: usize = 32;
/// Hashes between the prefetch of a second block and its use.
const SECOND_AHEAD: usize = 14;
/// Tables of up to this many blocks are near enough: their second blocks are not prefetched before
/// a change, because finding out whether they are needed takes as long as reading them.
const NEAR: usize = 1 << 15;
/// Hashes of a group of lookups: those of a word of results.
const GROUP: usize = 64;

/// Instructions for which a table is compiled.
pub(super) trait TableInstructions: Planes {
    /// Looks up many hashes. `found` has one word for 64 hashes and must be 0.
    #[inline(always)]
    fn contains_batch<const TAG_BITS: usize, const BYTES: usize>(
        self,
        params: PairParams,
        blocks: &[CacheLine],
        hashes: &[u64],
        found: &mut [u64],
    ) {
        contains::<TAG_BITS, BYTES>(self, params, blocks, hashes, found);
    }

    /// Same as [`BlockOps::insert_by_moving`], compiled with these instructions and not inlined, because it
    /// is rare.
    fn insert_by_moving<const TAG_BITS: usize, const BYTES: usize>(
        self,
        params: &PairParams,
        blocks: &mut [CacheLine],
        place: Place,
    ) -> bool;
}

impl TableInstructions for Portable {
    #[cold]
    #[inline(never)]
    fn insert_by_moving<const TAG_BITS: usize, const BYTES: usize>(
        self,
        params: &PairParams,
        blocks: &mut [CacheLine],
        place: Place,
    ) -> bool {
        BlockOps::<TAG_BITS, BYTES>::insert_by_moving(self, params, blocks, place)
    }
}

/// Prefetches the first block of a hash, if there is one.
#[inline(always)]
fn prefetch_first(params: PairParams, blocks: &[CacheLine], hash: Option<&u64>) {
    if let Some(hash) = hash {
        prefetch(blocks, params.first_block(*hash) as usize);
    }
}

/// A hash that will be looked up: its blocks and its fingerprint.
#[derive(Clone, Copy)]
struct Lookup<'a> {
    pair: [&'a [u8; BLOCK]; 2],
    fingerprint: Fingerprint,
}

impl<'a> Lookup<'a> {
    const EMPTY: Self =
        Self { pair: [&[0; BLOCK]; 2], fingerprint: Fingerprint { bucket: 0, tag: 0 } };

    /// Prefetches the blocks of a hash.
    #[inline(always)]
    fn prefetch(params: PairParams, blocks: &'a [CacheLine], hash: u64) -> Self {
        let Place { block, fingerprint } = params.place(hash);
        let pair = pair(blocks, [block, params.second_block(hash, Place { block, fingerprint })]);
        let Some(pair) = pair else { return Self::EMPTY };
        for block in pair {
            prefetch(block, 0);
        }
        Self { pair, fingerprint }
    }
}

/// Hashes of a group that have a tag in common with a block of theirs: their numbers in the group, and
/// the slots of these tags in both blocks.
struct Candidates {
    entries: [(usize, [u64; 2]); GROUP],
    len: usize,
}

impl Candidates {
    /// Adds a candidate if it has such slots. There is no branch, because it could not be predicted.
    #[inline(always)]
    fn add(&mut self, number: usize, equal: [u64; 2]) {
        self.entries[self.len % GROUP] = (number, equal);
        self.len += usize::from(equal[0] | equal[1] != 0);
    }
}

/// Looks up groups of hashes. While the tags of a group are compared, the blocks of the next group are
/// prefetched.
#[inline(always)]
pub(super) fn contains<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Planes,
    params: PairParams,
    blocks: &[CacheLine],
    hashes: &[u64],
    found: &mut [u64],
) {
    let mut lookups = [[Lookup::EMPTY; GROUP]; 2];
    let [now, next] = &mut lookups;
    let (mut now, mut next) = (now, next);
    for (lookup, &hash) in now.iter_mut().zip(hashes) {
        *lookup = Lookup::prefetch(params, blocks, hash);
    }
    let mut candidates = Candidates { entries: [(0, [0; 2]); GROUP], len: 0 };
    let mut rest = hashes;
    for word in found {
        let (group, later) = rest.split_at(GROUP.min(rest.len()));
        rest = later;
        candidates.len = 0;
        let mut bits = 0;
        for (at, lookup) in now.iter().enumerate().take(group.len()) {
            if let Some(&hash) = later.get(at) {
                next[at] = Lookup::prefetch(params, blocks, hash);
            }
            let Lookup { pair, fingerprint } = *lookup;
            let equal = BlockOps::<TAG_BITS, BYTES>::equal_in_both(select, pair, fingerprint);
            if BlockOps::<TAG_BITS, BYTES>::TAGS_DIFFER {
                candidates.add(at, equal);
            } else {
                bits |= is_found::<TAG_BITS, BYTES>(select, lookup, equal) << at;
            }
        }
        for &(at, equal) in candidates.entries.iter().take(candidates.len) {
            bits |= is_found::<TAG_BITS, BYTES>(select, &now[at % GROUP], equal) << at;
        }
        *word |= bits;
        core::mem::swap(&mut now, &mut next);
    }
}

/// Returns 1 if one of the slots with the tag of a fingerprint is of its bucket, or else 0.
#[inline(always)]
fn is_found<const TAG_BITS: usize, const BYTES: usize>(
    select: impl Planes,
    lookup: &Lookup<'_>,
    equal: [u64; 2],
) -> u64 {
    let bucket = lookup.fingerprint.bucket;
    BlockOps::<TAG_BITS, BYTES>::any_in_bucket(select, lookup.pair, bucket, equal).into()
}

/// Inserts hashes until there is no slot for one. Returns the number of hashes before it.
#[inline(always)]
pub(super) fn insert<const TAG_BITS: usize, const BYTES: usize>(
    select: impl TableInstructions,
    params: PairParams,
    blocks: &mut [CacheLine],
    hashes: &[u64],
) -> usize {
    let far = blocks.len() > NEAR;
    for at in 0..AHEAD {
        prefetch_first(params, blocks, hashes.get(at));
    }
    for (at, &hash) in hashes.iter().enumerate() {
        prefetch_first(params, blocks, hashes.get(at + AHEAD));
        if far
            && let Some(&later) = hashes.get(at + SECOND_AHEAD)
            && bytes(blocks, params.first_block(later))
                .is_some_and(BlockOps::<TAG_BITS, BYTES>::is_full)
        {
            prefetch(blocks, params.second_block(later, params.place(later)) as usize);
        }
        if !BlockOps::<TAG_BITS, BYTES>::insert_hash(select, params, blocks, hash) {
            return at;
        }
    }
    hashes.len()
}

/// Removes hashes in turn and returns the number of those that were found.
#[inline(always)]
pub(super) fn remove<const TAG_BITS: usize, const BYTES: usize>(
    select: impl TableInstructions,
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
        let found = BlockOps::<TAG_BITS, BYTES>::remove_hash(select, params, blocks, hash);
        if let Some(word) = removed.get_mut(at / 64) {
            *word |= u64::from(found) << (at % 64);
        }
        total += u64::from(found);
    }
    total
}
