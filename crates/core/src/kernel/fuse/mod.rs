//! Queries of a binary fuse filter: the XOR of four slots of a key is its fingerprint.
//!
//! A filter is a number of *shards*, each a row of *segments* of 2^s slots. A hash g selects a shard
//! and a *start* in it, the first slot of the key; a multiplier of the shard gives the other three, in
//! the three segments after that of the start. The last three segments of a shard have no starts.
//! docs/reference/format-static.md, "Layout 12", has the full definition.
//!
//! Slots are packed bits. The first segments of the filter, the *wide* ones, have one bit more than
//! the others; a key compares it if all its slots are wide. The multipliers of the shards follow the
//! slots.
//!
//! Invariant: all positions are inside the bytes, whatever the hash and the bytes are, because
//! [`FuseParams`] is validated and [`Fuse::new`] checks the length.
//!
//! Cost: four cache lines near each other, whose addresses do not depend on each other. Source: Graf
//! & Lemire 2022, "Binary fuse filters: fast and smaller than xor filters".

mod params;

use super::batch::{GROUP, HashSource, PREFETCH_FROM, batch, in_groups, join, test_each};
use super::primitives::prefetch;
use crate::store::{CacheLine, lines_as_bytes};
use params::Width;
pub(crate) use params::{FuseParams, KeySlots, MAX_BITS, WAYS, fuse_hash, mixer};

/// The first slot of a key, the product that gives the others, and its fingerprint.
#[cfg(target_arch = "x86_64")]
pub(super) struct KeyStart {
    pub(super) start: u64,
    pub(super) e: u64,
    fingerprint: u32,
}

/// A filter: its dimensions, and the bytes of its slots and multipliers.
#[derive(Clone, Copy)]
pub(crate) struct Fuse<'a> {
    pub(super) params: &'a FuseParams,
    /// Checked to be long enough.
    pub(super) bytes: &'a [u8],
}

/// What a query of one hash finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FuseStep {
    pub(crate) shard: u64,
    pub(crate) slots: [u64; WAYS as usize],
    pub(crate) bits: u32,
    /// The bits of the fingerprint that are compared, and the XOR of the slots.
    pub(crate) fingerprint: u32,
    pub(crate) result: u32,
}

/// How slots are read.
trait SlotWidth: Copy {
    /// Returns the position of a slot, from which it is read.
    fn position(self, slot: u64) -> u64;

    /// Prefetches the slot at a position, whose word may be in two cache lines.
    #[inline(always)]
    fn prefetch(self, fuse: Fuse<'_>, position: u64) {
        prefetch(fuse.bytes, (position / 8) as usize);
        prefetch(fuse.bytes, (position / 8) as usize + 7);
    }

    /// Returns the bits of the slot at a position, and more bits above them.
    ///
    /// # Safety
    /// The position must be that of a slot of the filter of `bytes`.
    #[inline(always)]
    unsafe fn read(self, bytes: *const u8, position: u64) -> u32 {
        // SAFETY: the caller guarantees that the slot exists. A slot begins in one of the words of
        // slots, after which there is at least one multiplier, so eight bytes exist.
        let word = unsafe { bytes.add((position / 8) as usize).cast::<u64>().read_unaligned() };
        (u64::from_le(word) >> (position % 8)) as u32
    }

    /// Returns a mask of the bits that a key compares which starts in this slot.
    fn mask(self, start: u64) -> u32;
}

/// Slots of a byte each, none wide.
#[derive(Clone, Copy)]
struct ByteSlots;

/// Slots of two bytes each, none wide.
#[derive(Clone, Copy)]
struct PairSlots;

/// Slots of which all that a key reads have the same number of bits.
#[derive(Clone, Copy)]
struct EqualSlots {
    bits: u64,
    /// The position of slot 0 if all slots had this number of bits.
    offset: u64,
    mask: u32,
}

/// Slots of any number of bits.
#[derive(Clone, Copy)]
struct BitSlots {
    bits: u64,
    /// The bits that all keys compare.
    narrow_mask: u32,
    wide_slots: u64,
    wide_starts: u64,
}

impl SlotWidth for ByteSlots {
    #[inline(always)]
    fn position(self, slot: u64) -> u64 {
        slot
    }

    #[inline(always)]
    fn prefetch(self, fuse: Fuse<'_>, position: u64) {
        prefetch(fuse.bytes, position as usize);
    }

    #[inline(always)]
    unsafe fn read(self, bytes: *const u8, position: u64) -> u32 {
        // SAFETY: the caller guarantees that the slot exists.
        u32::from(unsafe { bytes.add(position as usize).read() })
    }

    #[inline(always)]
    fn mask(self, _: u64) -> u32 {
        0xff
    }
}

impl SlotWidth for PairSlots {
    #[inline(always)]
    fn position(self, slot: u64) -> u64 {
        2 * slot
    }

    #[inline(always)]
    fn prefetch(self, fuse: Fuse<'_>, position: u64) {
        prefetch(fuse.bytes, position as usize);
    }

    #[inline(always)]
    unsafe fn read(self, bytes: *const u8, position: u64) -> u32 {
        // SAFETY: the caller guarantees that the slot exists.
        let pair = unsafe { bytes.add(position as usize).cast::<u16>().read_unaligned() };
        u32::from(u16::from_le(pair))
    }

    #[inline(always)]
    fn mask(self, _: u64) -> u32 {
        0xffff
    }
}

impl SlotWidth for EqualSlots {
    #[inline(always)]
    fn position(self, slot: u64) -> u64 {
        slot * self.bits + self.offset
    }

    #[inline(always)]
    fn mask(self, _: u64) -> u32 {
        self.mask
    }
}

impl BitSlots {
    /// Returns how the slots of a key are read that starts in this slot; `None` if some of them are
    /// wide and others are not, which is rare if there are many segments.
    #[inline(always)]
    fn equal(self, start: u64) -> Option<EqualSlots> {
        if start.wrapping_sub(self.wide_starts) < self.wide_slots - self.wide_starts {
            return None;
        }
        // No branch: whether a key is wide is random.
        let wide = u64::from(start < self.wide_starts);
        Some(EqualSlots {
            bits: self.bits + wide,
            offset: self.wide_slots & wide.wrapping_sub(1),
            mask: self.narrow_mask << wide | wide as u32,
        })
    }
}

impl SlotWidth for BitSlots {
    #[inline(always)]
    fn position(self, slot: u64) -> u64 {
        slot * self.bits + slot.min(self.wide_slots)
    }

    #[inline(always)]
    fn mask(self, start: u64) -> u32 {
        let wide = u32::from(start < self.wide_starts);
        self.narrow_mask << wide | wide
    }
}

impl FuseParams {
    /// Returns the index of the first bit of a slot of the filter.
    #[inline(always)]
    pub(crate) fn bit_of(&self, slot: u64) -> u64 {
        self.bit_slots().position(slot)
    }

    fn bit_slots(&self) -> BitSlots {
        let &Self { narrow_mask, wide_slots, wide_starts, .. } = self;
        BitSlots { bits: self.bits.into(), narrow_mask, wide_slots, wide_starts }
    }
}

/// The positions of the slots of a group of keys.
#[derive(Default)]
struct PreparedKeys {
    positions: [[u64; WAYS as usize]; GROUP],
    fingerprints: [u32; GROUP],
    masks: [u32; GROUP],
}

impl<'a> Fuse<'a> {
    /// # Panics
    /// If there are fewer lines than slots and multipliers take.
    #[inline(always)]
    pub(crate) fn new(params: &'a FuseParams, lines: &'a [CacheLine]) -> Self {
        let bytes = lines_as_bytes(lines);
        assert!(params.lines <= lines.len(), "the lines of slots and multipliers");
        Self { params, bytes }
    }

    /// Returns the multiplier of a shard.
    ///
    /// # Safety
    /// The shard must exist.
    #[inline(always)]
    pub(super) unsafe fn multiplier(self, shard: u64) -> u64 {
        let word = (self.params.slot_words + shard) as usize;
        // SAFETY: the caller guarantees that the shard exists, so its multiplier is inside the bytes.
        u64::from_le(unsafe { self.bytes.as_ptr().cast::<u64>().add(word).read_unaligned() })
    }

    /// Returns the slots of a hash. There must be a shard.
    #[inline(always)]
    fn slots_of(self, hash: u64) -> KeySlots {
        let g = self.params.mix(hash);
        let (shard, start) = self.params.shard_and_start(g);
        let start = shard * self.params.stride + start;
        // SAFETY: the shard of a hash is less than the number of shards.
        self.params.slots_from(start, g, unsafe { self.multiplier(shard) })
    }

    /// Returns the first slot of a hash and the product that gives the others. There must be a shard.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn start_of(self, hash: u64) -> KeyStart {
        let g = self.params.mix(hash);
        let (shard, start) = self.params.shard_and_start(g);
        let start = shard * self.params.stride + start;
        // SAFETY: the shard of a hash is less than the number of shards.
        let e = g.wrapping_mul(unsafe { self.multiplier(shard) });
        KeyStart { start, e, fingerprint: (g ^ (e >> 32)) as u32 }
    }

    /// Returns whether the XOR of the slots of a key, and any bits above, has its fingerprint.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn compares_equal(self, key: &KeyStart, sum: u32) -> bool {
        (key.fingerprint ^ sum) & self.params.bit_slots().mask(key.start) == 0
    }

    /// Returns whether the filter contains a hash.
    #[inline(always)]
    pub(crate) fn contains(self, hash: u64) -> bool {
        if self.params.shards == 0 {
            return false;
        }
        match self.params.width {
            Width::Byte => self.matches(ByteSlots, &self.slots_of(hash)),
            Width::Pair => self.matches(PairSlots, &self.slots_of(hash)),
            Width::Bits => self.contains_bits(hash),
        }
    }

    /// [`contains`](Self::contains) with slots of any number of bits.
    #[inline(always)]
    fn contains_bits(self, hash: u64) -> bool {
        let key = self.slots_of(hash);
        match self.params.bit_slots().equal(key.slots[0]) {
            Some(width) => self.matches(width, &key),
            None => Self::contains_mixed(self.params, self.bytes, hash),
        }
    }

    /// [`contains_bits`](Self::contains_bits) for a key with wide slots and others. Computes its
    /// slots again: if they were passed, every query would store them in memory.
    #[cold]
    #[inline(never)]
    fn contains_mixed(params: &FuseParams, bytes: &[u8], hash: u64) -> bool {
        let fuse = Fuse { params, bytes };
        fuse.matches(params.bit_slots(), &fuse.slots_of(hash))
    }

    /// Returns whether the XOR of the slots of a key is its fingerprint.
    #[inline(always)]
    fn matches(self, width: impl SlotWidth, key: &KeySlots) -> bool {
        let sum = key.slots.into_iter().fold(key.fingerprint, |sum, slot| {
            // SAFETY: the slots of a key exist: its start is at most that of the last start of the
            // last shard, and the others are in the three segments after it.
            sum ^ unsafe { width.read(self.bytes.as_ptr(), width.position(slot)) }
        });
        sum & width.mask(key.slots[0]) == 0
    }

    /// Returns true if the filter fits a cache, so that prefetching does not pay.
    pub(super) fn is_small(self) -> bool {
        self.bytes.len() < PREFETCH_FROM * CacheLine::BYTES
    }

    /// Returns true if vectors can be used for batches and are faster: the filter has keys, fits a
    /// cache, and 32 bits are enough for the number of a slot, with a sign, and for a slot that
    /// begins anywhere in a byte.
    pub(super) fn pays_for_vectors(self) -> bool {
        let slots = self.params.shards * self.params.stride;
        self.is_small() && (1..1 << 31).contains(&slots) && self.params.bits + 1 + 7 <= 32
    }

    /// Returns true if slots are read as bits, not as bytes.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn has_bit_slots(self) -> bool {
        self.params.width == Width::Bits
    }

    /// Returns true if the filter has keys and 32 bits are enough for the number of a slot.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn fits_lanes(self) -> bool {
        (1..=1 << 32).contains(&(self.params.shards * self.params.stride))
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    ///
    /// Always inlined, so that it is compiled for the instructions of the caller.
    #[inline(always)]
    pub(super) fn batch(self, hashes: impl HashSource, found: &mut [u64]) {
        if self.params.shards == 0 {
            found.fill(0);
            return;
        }
        match (self.params.width, self.is_small()) {
            (Width::Byte, true) => {
                self.batch_near(hashes, found, |hash| self.matches(ByteSlots, &self.slots_of(hash)))
            }
            (Width::Pair, true) => {
                self.batch_near(hashes, found, |hash| self.matches(PairSlots, &self.slots_of(hash)))
            }
            (Width::Bits, true) => self.batch_near(hashes, found, |hash| self.contains_bits(hash)),
            (Width::Byte, false) => self.batch_ahead(ByteSlots, hashes, found),
            (Width::Pair, false) => self.batch_ahead(PairSlots, hashes, found),
            (Width::Bits, false) => self.batch_ahead(self.params.bit_slots(), hashes, found),
        }
    }

    /// [`batch`](Self::batch) of a filter that fits a cache.
    #[inline(always)]
    fn batch_near(
        self,
        hashes: impl HashSource,
        found: &mut [u64],
        contains: impl Fn(u64) -> bool,
    ) {
        in_groups(hashes, found, |group| test_each(group, |&hash| contains(hash)));
    }

    /// [`batch`](Self::batch) of a filter larger than the cache.
    #[inline(always)]
    fn batch_ahead(self, width: impl SlotWidth, hashes: impl HashSource, found: &mut [u64]) {
        let prepare = |(): &(), group: &[u64; GROUP], prepared: &mut PreparedKeys| {
            for (at, &hash) in group.iter().enumerate() {
                let KeySlots { slots, fingerprint } = self.slots_of(hash);
                prepared.fingerprints[at] = fingerprint;
                prepared.masks[at] = width.mask(slots[0]);
                for (position, slot) in prepared.positions[at].iter_mut().zip(slots) {
                    *position = width.position(slot);
                    width.prefetch(self, *position);
                }
            }
        };
        let process = |(): &mut (), prepared: &PreparedKeys, results: &mut u8| {
            let keys = prepared.positions.iter().zip(prepared.fingerprints).zip(prepared.masks);
            *results = test_each(keys, |((positions, fingerprint), mask)| {
                let sum = positions.iter().fold(fingerprint, |sum, &position| {
                    // SAFETY: prepared above from the slots of a key, which exist.
                    sum ^ unsafe { width.read(self.bytes.as_ptr(), position) }
                });
                sum & mask == 0
            });
        };
        batch((), hashes, found, prepare, process, join);
    }

    /// Returns what a query of a hash finds; `None` if there are no keys.
    pub(crate) fn step(self, hash: u64) -> Option<FuseStep> {
        if self.params.shards == 0 {
            return None;
        }
        let shard = self.params.shard(self.params.mix(hash));
        let KeySlots { slots, fingerprint } = self.slots_of(hash);
        let width = self.params.bit_slots();
        let mask = width.mask(slots[0]);
        let result = slots.into_iter().fold(0, |sum, slot| {
            // SAFETY: the slots of a key exist.
            sum ^ unsafe { width.read(self.bytes.as_ptr(), width.position(slot)) }
        });
        let bits = mask.count_ones();
        Some(FuseStep {
            shard,
            slots,
            bits,
            fingerprint: fingerprint & mask,
            result: result & mask,
        })
    }
}
