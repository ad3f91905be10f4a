//! Queries of a binary fuse filter: the XOR of four slots of a key is its fingerprint.
//!
//! A filter is a number of *shards*, each a row of *segments* of 2^s slots. A hash g selects a shard
//! and a *start* in it, the first slot of the key; a multiplier of the shard gives the other three, in
//! the three segments after that of the start. The last three segments of a shard have no starts.
//! docs/reference/format.md, "Layout 12", has the full definition.
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

use super::batch::{GROUP, HashSource, PREFETCH_FROM, batch, in_groups, join, test_each};
use super::blocked::MIX_HIGH;
use super::primitives::prefetch;
use crate::error::{Error, Result};
use crate::store::{CacheLine, lines_as_bytes};

/// Slots of a key.
pub(crate) const WAYS: u64 = 4;
/// The largest number of bits of all slots. One more must fit into a half word.
pub(crate) const MAX_BITS: u64 = 31;
/// The largest logarithm of the slots of a segment: the number of bits of a slot's place in it.
const MAX_LOG_SEGMENT: u64 = 16;
/// The largest number of slots, so that no position overflows.
const MAX_SLOTS: u64 = 1 << 50;
/// The largest number of slots of a shard: starts are computed from 32 bits of a hash.
const MAX_STRIDE: u64 = 1 << 31;

/// Returns the hash of a key in the filter, whose bits are random even if the filter is built from
/// keys that were selected by their hash. Two hashes may give the same one, as those of a random
/// function do.
#[inline(always)]
pub(crate) fn fuse_hash(hash: u64) -> u64 {
    let product = u128::from(hash) * u128::from(MIX_HIGH);
    (product >> 64) as u64 ^ product as u64
}

/// The dimensions of a filter, validated, and the numbers derived from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FuseParams {
    /// A power of two; 0 without keys.
    shards: u64,
    /// Segments of a shard.
    segments: u64,
    log_segment: u32,
    /// Bits of a slot that is not wide.
    pub(super) bits: u32,
    /// A mask of that number of bits.
    pub(super) narrow_mask: u32,
    /// Slots of a segment.
    segment: u64,
    /// Slots of a shard in which keys may start, and all slots of a shard.
    pub(super) starts: u64,
    pub(super) stride: u64,
    /// The wide slots, and those of them whose keys compare one more bit if they start there.
    pub(super) wide_slots: u64,
    pub(super) wide_starts: u64,
    /// Number of words of slots.
    slot_words: u64,
    /// Number of cache lines of slots and multipliers.
    lines: usize,
    width: Width,
    #[cfg(target_arch = "x86_64")]
    pub(super) lanes: KeyLanes,
}

/// The numbers that give the slots of a key, each with one lane for each slot.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct KeyLanes {
    /// A mask of a slot's place in its segment; 0 for the first slot, which is the start.
    in_segment: [u32; WAYS as usize],
    /// The distance of the last slot of the start's segment to the slot's segment.
    segments: [u32; WAYS as usize],
}

/// How a query reads slots: as bytes, as pairs of bytes, or as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Byte,
    Pair,
    Bits,
}

/// The slots of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeySlots {
    pub(crate) slots: [u64; WAYS as usize],
    pub(crate) fingerprint: u32,
}

impl FuseParams {
    /// # Errors
    /// If a number is out of its range. Zero shards are allowed: a filter without keys.
    pub(crate) fn new(
        shards: u64,
        segments: u64,
        log_segment: u64,
        bits: u64,
        wide: u64,
    ) -> Result<Self> {
        if bits > MAX_BITS {
            return Err(Error::invalid("bits of a slot", "0 to 31", bits));
        }
        if log_segment > MAX_LOG_SEGMENT {
            return Err(Error::invalid("logarithm of a segment", "0 to 16", log_segment));
        }
        if !(WAYS..=MAX_STRIDE >> log_segment).contains(&segments) {
            return Err(Error::invalid("segments of a shard", "4, up to 2^31 slots", segments));
        }
        let stride = segments << log_segment;
        if shards > MAX_SLOTS / stride || shards & shards.wrapping_sub(1) != 0 {
            let expected = "a power of two or 0, and at most 2^50 slots";
            return Err(Error::invalid("shards", expected, shards));
        }
        if wide > shards * segments {
            return Err(Error::invalid("wide segments", "at most all", wide));
        }
        let wide_slots = wide << log_segment;
        let slot_words = (shards * stride * bits + wide_slots).div_ceil(64);
        let segment = 1 << log_segment;
        #[cfg(target_arch = "x86_64")]
        let in_segment = (1 << log_segment) - 1;
        Ok(Self {
            shards,
            segments,
            log_segment: log_segment as u32,
            bits: bits as u32,
            narrow_mask: (1 << bits) - 1,
            segment,
            starts: (segments - (WAYS - 1)) << log_segment,
            stride,
            wide_slots,
            wide_starts: wide.saturating_sub(WAYS - 1) << log_segment,
            slot_words,
            lines: usize::try_from((slot_words + shards).div_ceil(8)).unwrap_or(usize::MAX),
            width: match (bits, wide) {
                (8, 0) => Width::Byte,
                (16, 0) => Width::Pair,
                _ => Width::Bits,
            },
            #[cfg(target_arch = "x86_64")]
            lanes: KeyLanes {
                in_segment: [0, in_segment, in_segment, in_segment],
                segments: [0, 1, 2 + in_segment, 3 + 2 * in_segment],
            },
        })
    }

    pub(crate) fn shards(&self) -> u64 {
        self.shards
    }

    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    pub(crate) fn log_segment(&self) -> u64 {
        self.log_segment.into()
    }

    pub(crate) fn bits(&self) -> u64 {
        self.bits.into()
    }

    /// Returns the number of segments, from the first on, with one more bit per slot.
    pub(crate) fn wide(&self) -> u64 {
        self.wide_slots >> self.log_segment
    }

    /// Returns the number of slots of a shard.
    pub(crate) fn stride(&self) -> u64 {
        self.stride
    }

    /// Returns the number of wide slots.
    pub(crate) fn wide_slots(&self) -> u64 {
        self.wide_slots
    }

    /// Returns the number of words of slots, after which the multipliers begin.
    pub(crate) fn slot_words(&self) -> u64 {
        self.slot_words
    }

    /// Returns the number of words of slots and multipliers.
    pub(crate) fn words(&self) -> u64 {
        self.slot_words + self.shards
    }

    /// Returns a mask of a slot's place in its segment.
    #[inline(always)]
    pub(super) fn in_segment(&self) -> u64 {
        self.segment - 1
    }

    /// Returns the index of the first bit of a slot of the filter.
    #[inline(always)]
    pub(crate) fn bit_of(&self, slot: u64) -> u64 {
        self.bit_slots().position(slot)
    }

    fn bit_slots(&self) -> BitSlots {
        let &Self { narrow_mask, wide_slots, wide_starts, .. } = self;
        BitSlots { bits: self.bits.into(), narrow_mask, wide_slots, wide_starts }
    }

    /// Returns the shard of a hash, its highest bits.
    #[inline(always)]
    pub(crate) fn shard(&self, g: u64) -> u64 {
        self.shard_and_start(g).0
    }

    /// Returns the shard of a hash, and the slot of its shard in which a key starts; monotone in the
    /// bits after those of the shard.
    #[inline(always)]
    fn shard_and_start(&self, g: u64) -> (u64, u64) {
        // One product instead of two shifts.
        let product = u128::from(g) * u128::from(self.shards);
        let start = (product as u64 >> 32) * self.starts;
        ((product >> 64) as u64, start >> 32)
    }

    /// Returns the slots of a hash in its shard.
    #[inline(always)]
    pub(crate) fn slots_in_shard(&self, g: u64, multiplier: u64) -> KeySlots {
        self.slots_from(self.shard_and_start(g).1, g, multiplier)
    }

    /// Returns the slots of a hash, of which the first is known.
    #[inline(always)]
    fn slots_from(&self, start: u64, g: u64, multiplier: u64) -> KeySlots {
        let e = g.wrapping_mul(multiplier);
        let in_segment = self.in_segment();
        // The first slots of the next segments.
        let second = (start | in_segment) + 1;
        let third = second + self.segment;
        let fourth = third + self.segment;
        KeySlots {
            slots: [
                start,
                second | (e >> 16 & in_segment),
                third | (e >> 32 & in_segment),
                fourth | (e >> 48 & in_segment),
            ],
            fingerprint: (g ^ (e >> 32)) as u32,
        }
    }
}

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
        let g = fuse_hash(hash);
        let (shard, start) = self.params.shard_and_start(g);
        let start = shard * self.params.stride + start;
        // SAFETY: the shard of a hash is less than the number of shards.
        self.params.slots_from(start, g, unsafe { self.multiplier(shard) })
    }

    /// Returns the first slot of a hash and the product that gives the others. There must be a shard.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn start_of(self, hash: u64) -> KeyStart {
        let g = fuse_hash(hash);
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
        let shard = self.params.shard(fuse_hash(hash));
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
