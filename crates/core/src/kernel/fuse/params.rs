//! The dimensions of a binary fuse filter, and the slots of a hash.

use crate::error::{Error, Result};
use crate::kernel::blocked::{MIX_HIGH, MIX_LOW};

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

/// The largest seed.
const MAX_SEED: u64 = (1 << 16) - 1;

/// Returns the factor that [`fuse_hash`] takes for a seed.
pub(crate) fn mixer(seed: u64) -> u64 {
    MIX_HIGH.wrapping_add(seed.wrapping_mul(2).wrapping_mul(MIX_LOW))
}

/// Returns the hash of a key in the filter, whose bits are random even if the filter is built from
/// keys that were selected by their hash. Two hashes may give the same one, as those of a random
/// function do.
#[inline(always)]
pub(crate) fn fuse_hash(hash: u64, mixer: u64) -> u64 {
    let product = u128::from(hash) * u128::from(mixer);
    (product >> 64) as u64 ^ product as u64
}

/// The dimensions of a filter, validated, and the numbers derived from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FuseParams {
    /// A power of two; 0 without keys.
    pub(super) shards: u64,
    seed: u64,
    /// The factor of hashes, which depends on the seed.
    pub(in crate::kernel) mixer: u64,
    /// Segments of a shard.
    segments: u64,
    log_segment: u32,
    /// Bits of a slot that is not wide.
    pub(in crate::kernel) bits: u32,
    /// A mask of that number of bits.
    pub(in crate::kernel) narrow_mask: u32,
    /// Slots of a segment.
    segment: u64,
    /// Slots of a shard in which keys may start, and all slots of a shard.
    pub(in crate::kernel) starts: u64,
    pub(in crate::kernel) stride: u64,
    /// The wide slots, and those of them whose keys compare one more bit if they start there.
    pub(in crate::kernel) wide_slots: u64,
    pub(in crate::kernel) wide_starts: u64,
    /// Number of words of slots.
    pub(super) slot_words: u64,
    /// Number of cache lines of slots and multipliers.
    pub(super) lines: usize,
    pub(super) width: Width,
    #[cfg(target_arch = "x86_64")]
    pub(in crate::kernel) lanes: KeyLanes,
}

/// The numbers that give the slots of a key, each with one lane for each slot. Not aligned: queries
/// take the same time at any address.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(in crate::kernel) struct KeyLanes {
    /// A mask of a slot's place in its segment; 0 for the first slot, which is the start.
    in_segment: [u32; WAYS as usize],
    /// The distance of the last slot of the start's segment to the slot's segment.
    segments: [u32; WAYS as usize],
}

/// How a query reads slots: as bytes, as pairs of bytes, or as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
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
        seed: u64,
    ) -> Result<Self> {
        if seed > MAX_SEED {
            return Err(Error::invalid("seed of a fuse filter", "0 to 65535", seed));
        }
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
            seed,
            mixer: mixer(seed),
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

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// [`fuse_hash`] with the seed of the filter.
    #[inline(always)]
    pub(in crate::kernel) fn mix(&self, hash: u64) -> u64 {
        fuse_hash(hash, self.mixer)
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
    pub(in crate::kernel) fn in_segment(&self) -> u64 {
        self.segment - 1
    }

    /// Returns the shard of a hash, its highest bits.
    #[inline(always)]
    pub(crate) fn shard(&self, g: u64) -> u64 {
        self.shard_and_start(g).0
    }

    /// Returns the shard of a hash, and the slot of its shard in which a key starts; monotone in the
    /// bits after those of the shard.
    #[inline(always)]
    pub(super) fn shard_and_start(&self, g: u64) -> (u64, u64) {
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
    pub(super) fn slots_from(&self, start: u64, g: u64, multiplier: u64) -> KeySlots {
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
