//! Blocks with AVX-512: a block is one vector.
//!
//! **Comparing a tag.** A byte permutation collects byte j of eight planes in lane j of eight bytes, and
//! a multiplication of bit matrices by the unit vectors transposes each lane: then each byte has the tag
//! of a slot. Tags of more than eight bits take a comparison for each eight of their bits; the bits may
//! overlap.
//!
//! **Moving tags.** The whole block is shifted by one bit, as one row of 512. A mask keeps the bits
//! before the slot in each plane, and those before the position in the header. It follows from the
//! distance of each byte from the slot or position, by a table.

mod batch;

use core::arch::x86_64::*;

use super::batch::TableInstructions;
use super::block::BlockOps;
use super::header::BLOCK;
use super::planes::{Planes, slot_mask};
use super::shape::{PairParams, Place};
use crate::kernel::avx2::Avx2;
use crate::kernel::select::Select;
use crate::store::CacheLine;

/// Bits of a tag that are compared at once, and bytes of a lane.
const LANE: usize = 8;
/// Comparisons of a tag, at most.
const MAX_PARTS: usize = 3;

/// Proof that the machine has AVX-512 with VBMI, VBMI2, VPOPCNTDQ and GFNI, and the instructions of [`Avx2`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512Gfni(Avx2);

impl Avx512Gfni {
    /// Returns whether a machine with [`Avx512`](crate::kernel::avx512::Avx512) has the other instructions.
    pub(super) fn completes_avx512() -> bool {
        cpu_has!("avx512vbmi", "avx512vbmi2", "avx512vpopcntdq", "gfni")
    }

    /// # Safety
    /// The machine must have the instructions.
    #[inline(always)]
    pub(super) unsafe fn new_unchecked() -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { Avx2::new_unchecked() })
    }
}

impl Select for Avx512Gfni {
    #[inline(always)]
    fn nth_one(self, word: u64, n: u32) -> u32 {
        self.0.nth_one(word, n)
    }

    #[inline(always)]
    fn isolate_nth_one(self, word: u64, n: u32) -> u64 {
        self.0.isolate_nth_one(word, n)
    }

    #[inline(always)]
    fn run_after_zeros(self, word: u64, n: u32) -> u64 {
        self.0.run_after_zeros(word, n)
    }

    #[inline(always)]
    fn opaque(self, word: u64) -> u64 {
        self.0.opaque(word)
    }

    #[inline(always)]
    fn without(self, word: u64, bit: u64) -> u64 {
        self.0.without(word, bit)
    }
}

/// The constants for `TAG_BITS` planes of `BYTES` bytes.
struct Layout<const TAG_BITS: usize, const BYTES: usize>;

impl<const TAG_BITS: usize, const BYTES: usize> Layout<TAG_BITS, BYTES> {
    /// Comparisons of a tag.
    const PARTS: usize = TAG_BITS.div_ceil(LANE);
    /// Bytes of the planes.
    const PLANES: usize = TAG_BITS * BYTES;

    /// Returns the first bit of a part of a tag.
    const fn part_at(part: usize) -> u32 {
        let (first, last) = (part * LANE, TAG_BITS.saturating_sub(LANE));
        (if first < last { first } else { last }) as u32
    }

    /// Permutations that collect the planes of a part. A matrix has its first row in the last byte. If
    /// a tag has fewer than eight bits, the first ones are repeated.
    const TO_LANES: [[u8; BLOCK]; MAX_PARTS] = {
        let mut orders = [[0; BLOCK]; MAX_PARTS];
        let mut part = 0;
        while part < Self::PARTS {
            let mut at = 0;
            while at < LANE * BYTES {
                let plane = (Self::part_at(part) as usize + LANE - 1 - at % LANE) % TAG_BITS;
                orders[part][at] = (plane * BYTES + at / LANE) as u8;
                at += 1;
            }
            part += 1;
        }
        orders
    };

    /// For each byte of the planes the number of slots before it, and for each byte of the header the
    /// number of bits before it.
    const BITS_BEFORE: [u8; BLOCK] = {
        let mut before = [0; BLOCK];
        let mut at = 0;
        while at < BLOCK {
            let byte = if at < Self::PLANES { at % BYTES } else { at - Self::PLANES };
            before[at] = (8 * byte) as u8;
            at += 1;
        }
        before
    };

    /// Shuffles that select byte 0 for the planes and byte 1 for the header.
    const PLANES_OR_HEADER: [u8; BLOCK] = {
        let mut select = [0; BLOCK];
        let mut at = Self::PLANES;
        while at < BLOCK {
            select[at] = 1;
            at += 1;
        }
        select
    };

    /// The byte of the tag that has the bit of each byte of the planes.
    const TAG_BYTE: [u8; BLOCK] = {
        let mut bytes = [0; BLOCK];
        let mut at = 0;
        while at < Self::PLANES {
            bytes[at] = (at / BYTES / 8) as u8;
            at += 1;
        }
        bytes
    };

    /// The bit in this byte; 0 in the header.
    const TAG_BIT: [u8; BLOCK] = {
        let mut bits = [0; BLOCK];
        let mut at = 0;
        while at < Self::PLANES {
            bits[at] = 1 << (at / BYTES % 8);
            at += 1;
        }
        bits
    };

    /// All bits but that of the last slot of each plane.
    const NOT_LAST: [u8; BLOCK] = {
        let mut mask = [0xff; BLOCK];
        let mut plane = 0;
        while plane < TAG_BITS {
            mask[(plane + 1) * BYTES - 1] = 0x7f;
            plane += 1;
        }
        mask
    };
}

/// The columns of the unit matrix in each lane.
const UNITS: [u8; BLOCK] = {
    let mut units = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        units[at] = 1 << (at % LANE);
        at += 1;
    }
    units
};

/// The distance of bytes that are before a slot or position.
const AFTER: u8 = 9;

/// The bits of a byte before a slot, by the distance of the slot after that before the first bit of the
/// byte.
const BEFORE: [u8; BLOCK] = {
    let mut table = [0xff; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        let distance = at % 16;
        if distance < AFTER as usize {
            table[at] = ((1u16 << distance >> 1) - (distance > 0) as u16) as u8;
        }
        at += 1;
    }
    table
};

/// The bit of the slot itself, by the same distance; 0 if it is in another byte.
const ITSELF: [u8; BLOCK] = {
    let mut table = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        let distance = at % 16;
        if distance < AFTER as usize {
            table[at] = (1u16 << distance >> 1) as u8;
        }
        at += 1;
    }
    table
};

#[inline(always)]
fn of_bytes(bytes: [u8; BLOCK]) -> __m512i {
    // SAFETY: any 64 bytes are a vector.
    unsafe { core::mem::transmute::<[u8; BLOCK], __m512i>(bytes) }
}

#[inline(always)]
fn to_bytes(vector: __m512i) -> [u8; BLOCK] {
    // SAFETY: a vector is 64 bytes.
    unsafe { core::mem::transmute::<__m512i, [u8; BLOCK]>(vector) }
}

/// For each byte of a block, the distance of a slot or position from its first bit, plus 1; from 0, if
/// it is in an earlier byte, to [`AFTER`], if it is in a later one.
#[inline(always)]
fn distances<const TAG_BITS: usize, const BYTES: usize>(
    _: Avx512Gfni,
    slot: u32,
    position: u32,
) -> __m512i {
    type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
    let both = (slot & 0xff | position << 8).wrapping_add(0x0101) as u16;
    // SAFETY: an `Avx512Gfni` is proof that the machine has the instructions.
    unsafe {
        let both = _mm512_set1_epi16(both.cast_signed());
        let after = _mm512_shuffle_epi8(both, of_bytes(L::<TAG_BITS, BYTES>::PLANES_OR_HEADER));
        let distance = _mm512_subs_epu8(after, of_bytes(L::<TAG_BITS, BYTES>::BITS_BEFORE));
        _mm512_min_epu8(distance, _mm512_set1_epi8(AFTER.cast_signed()))
    }
}

/// Returns the parts of a tag that are compared at once.
#[inline(always)]
fn parts<const TAG_BITS: usize, const BYTES: usize>(tag: u32) -> [u8; MAX_PARTS] {
    let tag = if TAG_BITS < LANE { tag | tag << TAG_BITS } else { tag };
    let mut parts = [0; MAX_PARTS];
    for (part, bits) in parts.iter_mut().enumerate().take(Layout::<TAG_BITS, BYTES>::PARTS) {
        *bits = (tag >> Layout::<TAG_BITS, BYTES>::part_at(part)) as u8;
    }
    parts
}

/// Returns the slots whose tag has these parts.
#[inline(always)]
fn equal_parts<const TAG_BITS: usize, const BYTES: usize>(
    _: Avx512Gfni,
    block: &[u8; BLOCK],
    parts: [u8; MAX_PARTS],
) -> u64 {
    type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
    let block = of_bytes(*block);
    let mut equal = slot_mask(BYTES);
    for (part, expected) in parts.into_iter().enumerate().take(L::<TAG_BITS, BYTES>::PARTS) {
        // SAFETY: an `Avx512Gfni` is proof that the machine has the instructions.
        equal = unsafe {
            let expected = _mm512_set1_epi8(expected.cast_signed());
            let order = of_bytes(L::<TAG_BITS, BYTES>::TO_LANES[part]);
            let rows = _mm512_permutexvar_epi8(order, block);
            let tags = _mm512_gf2p8affine_epi64_epi8::<0>(of_bytes(UNITS), rows);
            _mm512_mask_cmpeq_epi8_mask(equal, tags, expected)
        };
    }
    equal
}

impl Planes for Avx512Gfni {
    #[inline(always)]
    fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &[u8; BLOCK],
        tag: u32,
    ) -> u64 {
        equal_parts::<TAG_BITS, BYTES>(self, block, parts::<TAG_BITS, BYTES>(tag))
    }

    #[inline(always)]
    fn put<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        tag: u32,
        position: u32,
    ) {
        type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
        let old = of_bytes(*block);
        let distance = distances::<TAG_BITS, BYTES>(self, slot, position);
        // SAFETY: an `Avx512Gfni` is proof that the machine has the instructions.
        let new = unsafe {
            let cleared = if TAG_BITS > 8 {
                let cleared = _mm512_set1_epi32((!tag).cast_signed());
                _mm512_shuffle_epi8(cleared, of_bytes(L::<TAG_BITS, BYTES>::TAG_BYTE))
            } else {
                _mm512_set1_epi8((!tag as u8).cast_signed())
            };
            // Also set in the header, where no bit is tested.
            let set = _mm512_testn_epi8_mask(cleared, of_bytes(L::<TAG_BITS, BYTES>::TAG_BIT));
            let before = _mm512_shuffle_epi8(of_bytes(BEFORE), distance);
            let itself = _mm512_shuffle_epi8(of_bytes(ITSELF), distance);
            let moved = _mm512_shldi_epi64::<1>(old, _mm512_alignr_epi64::<7>(old, old));
            // before ? old : moved
            let new = _mm512_ternarylogic_epi64::<0xca>(before, old, moved);
            // itself ? set : new
            _mm512_ternarylogic_epi64::<0xca>(itself, _mm512_movm_epi8(set), new)
        };
        *block = to_bytes(new);
    }

    #[inline(always)]
    fn take<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        position: u32,
    ) {
        type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
        let old = of_bytes(*block);
        let distance = distances::<TAG_BITS, BYTES>(self, slot, position);
        // SAFETY: an `Avx512Gfni` is proof that the machine has the instructions.
        let new = unsafe {
            let before = _mm512_shuffle_epi8(of_bytes(BEFORE), distance);
            let next = _mm512_alignr_epi64::<1>(_mm512_setzero_si512(), old);
            let moved = _mm512_shrdi_epi64::<1>(old, next);
            let moved = _mm512_and_si512(moved, of_bytes(L::<TAG_BITS, BYTES>::NOT_LAST));
            // before ? old : moved
            _mm512_ternarylogic_epi64::<0xca>(before, old, moved)
        };
        *block = to_bytes(new);
    }
}

impl TableInstructions for Avx512Gfni {
    #[inline(always)]
    fn contains_batch<const TAG_BITS: usize, const BYTES: usize>(
        self,
        params: PairParams,
        blocks: &[CacheLine],
        hashes: &[u64],
        found: &mut [u64],
    ) {
        // SAFETY: an `Avx512Gfni` is proof that the machine has the instructions.
        unsafe { batch::contains::<TAG_BITS, BYTES>(self, params, blocks, hashes, found) }
    }

    #[inline(always)]
    fn insert_by_moving<const TAG_BITS: usize, const BYTES: usize>(
        self,
        params: &PairParams,
        blocks: &mut [CacheLine],
        place: Place,
    ) -> bool {
        // SAFETY: an `Avx512Gfni` is proof that the machine has the instructions.
        unsafe { insert_by_moving::<TAG_BITS, BYTES>(self, params, blocks, place) }
    }
}

#[cold]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni",
    enable = "avx2,bmi1,bmi2,lzcnt,popcnt"
)]
fn insert_by_moving<const TAG_BITS: usize, const BYTES: usize>(
    select: Avx512Gfni,
    params: &PairParams,
    blocks: &mut [CacheLine],
    place: Place,
) -> bool {
    BlockOps::<TAG_BITS, BYTES>::insert_by_moving(select, params, blocks, place)
}
